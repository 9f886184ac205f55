// SPDX-License-Identifier: Apache-2.0
#include "sdp/rank_one_cover.h"

#include <algorithm>
#include <cmath>

#include "base/rounding.h"
#include "linalg/norm/definite.h"
#include "linalg/norm/operator_norm.h"
#include "linalg/tensor/blas.h"

namespace lipscope {
namespace {

using Vector = std::vector<double>;

// Above 2^-1074 once for each term of each entry.
double lost_in_cover(const NearMatrix& a) {
  const auto rows = static_cast<double>(a.rows), cols = static_cast<double>(a.cols);
  return mul_up(mul_up(rows, cols), mul_up(8 + rows + cols, kMinSubnormal));
}

Vector times(const NearMatrix& a, const Vector& x) {
  Vector y(static_cast<std::size_t>(a.rows));
  gemv(a.rows, a.cols, 1.0, {a.entries.data(), a.cols}, x.data(), 1, 0.0, y.data(), 1);
  return y;
}
Vector transposed_times(const NearMatrix& a, const Vector& x) {
  Vector y(static_cast<std::size_t>(a.cols));
  gemv(a.cols, a.rows, 1.0, {a.entries.data(), a.cols, true}, x.data(), 1, 0.0, y.data(), 1);
  return y;
}

// About the left singular vector of the largest singular value; plain arithmetic.
Vector strongest_direction(const NearMatrix& x) {
  const auto multiply = [&](const double* from, double* to) {
    const Vector in(from, from + x.rows);
    std::ranges::copy(times(x, transposed_times(x, in)), to);
  };
  Vector u = lanczos(x.rows, multiply, {}, 1e-12, 300).vector;
  u.resize(static_cast<std::size_t>(x.rows));
  return u;
}

// a - s u w', with the rounding in the error.
NearMatrix without(const NearMatrix& a, double s, const Vector& u, const Vector& w) {
  NearMatrix rest = a;
  for (Index i = 0; i < a.rows; ++i) {
    const double factor = s * u[static_cast<std::size_t>(i)];
    for (Index j = 0; j < a.cols; ++j)
      rest.entries[static_cast<std::size_t>(i * a.cols + j)] -=
          factor * w[static_cast<std::size_t>(j)];
  }
  const double size =
      add_up(frobenius_up(a), mul_up(std::fabs(s), mul_up(norm2_up(u), norm2_up(w))));
  rest.error = add_up(add_up(a.error, mul_up(gamma_up(4), size)), lost_in_cover(a));
  return rest;
}

// |A x| for every A within the error.
double image_up(const NearMatrix& a, const Vector& x) {
  const auto terms = static_cast<std::size_t>(a.cols + 2);
  const double rounding = mul_up(gamma_up(terms), frobenius_up(a));
  return add_up(norm2_up(times(a, x)),
                add_up(mul_up(add_up(rounding, a.error), norm2_up(x)), lost_in_cover(a)));
}

// max(0, along - taken / |u|^2).
double less_up(double along, double taken, const Vector& u) {
  const double length = norm2_up(u);
  return max_nan(0, sub_up(along, div_down(taken, mul_up(length, length))));
}

}  // namespace

NearMatrix near_matrix(const RowMatrix& map) {
  NearMatrix a{map.rows, map.cols, Vector(static_cast<std::size_t>(map.rows * map.cols)),
               norm2_up(map.radius)};
  for (Index i = 0; i < map.rows; ++i) {
    map.for_row(i, [&](Index j, std::size_t at) {
      a.entries[static_cast<std::size_t>(i * map.cols + j)] = map.weights[at];
    });
  }
  return a;
}

NearMatrix transposed(const NearMatrix& a) {
  NearMatrix t{a.cols, a.rows, Vector(a.entries.size()), a.error};
  for (Index i = 0; i < a.rows; ++i) {
    for (Index j = 0; j < a.cols; ++j)
      t.entries[static_cast<std::size_t>(j * a.rows + i)] =
          a.entries[static_cast<std::size_t>(i * a.cols + j)];
  }
  return t;
}

double frobenius_up(const NearMatrix& a) {
  // The error has at most so many singular values.
  const double rank = sqrt_up(static_cast<double>(std::min(a.rows, a.cols)));
  return add_up(norm2_up(a.entries), mul_up(rank, a.error));
}

double spectral_up(const NearMatrix& a) {
  const NormPair spectral{Norm(2), Norm(2)};
  const NormBracket near =
      matrix_norm({a.rows, a.cols, a.entries.data()}, spectral, {.want_lower = false});
  return add_up(near.upper, a.error);
}

RankOneCover cover_of_gram(const NearMatrix& x) {
  const Vector u = strongest_direction(x);
  const double length = norm2_down(u), square = mul_down(length, length);
  if (!(length > 0.5)) {
    const double norm = spectral_up(x);
    return {u, 0, mul_up(norm, norm)};
  }
  // X = u z' + q with q'u = 0 and z = X'u / |u|^2. For R = X - u y', any y: |q| <= |R|,
  // |q z| <= |R z| and z - y = R'u / |u|^2.
  const Vector y = transposed_times(x, u);
  const NearMatrix rest = without(x, 1, u, y);
  const double size = spectral_up(rest), taken = mul_up(size, size);
  const double z = div_up(image_up(transposed(x), u), square);
  const double apart = div_up(image_up(transposed(rest), u), square);
  const double mixed = add_up(image_up(rest, y), mul_up(size, apart));
  return {u, less_up(mul_up(z, z), taken, u), add_up(taken, mul_up(mul_up(2, norm2_up(u)), mixed))};
}

FactorCovers cover_of_factors(const NearMatrix& a) {
  const Vector u = strongest_direction(a);
  Vector w = transposed_times(a, u);
  const double strength = norm2_up(w);
  for (double& e : w) e /= strength;
  const double left = norm2_down(u), right = norm2_down(w);
  if (!(left > 0.5) || !(right > 0.5)) {
    const double norm = spectral_up(a);
    return {{u, 0, norm}, {Vector(w.size()), 0, norm}};
  }
  // A = strength u w' + M + E, where M has nothing along u and w and is at most |R|,
  // R = A - strength u w'; E is made of R'u and R w.
  const NearMatrix rest = without(a, strength, u, w);
  const double size = spectral_up(rest);
  const double along_them =
      add_up(div_up(image_up(transposed(rest), u), left), div_up(image_up(rest, w), right));
  const double beside = add_up(size, along_them);
  return {{u, less_up(strength, size, u), beside}, {w, less_up(strength, size, w), beside}};
}

}  // namespace lipscope
