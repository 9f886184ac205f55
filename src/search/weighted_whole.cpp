// SPDX-License-Identifier: Apache-2.0
#include "search/weighted_whole.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "base/check.h"
#include "base/rounding.h"
#include "linalg/tensor/blas.h"
#include "net/small.h"

namespace lipscope {
namespace {

constexpr std::size_t kDirections = 8;
using Directions = std::array<double, kDirections>;

double length(const Directions& v) {
  double sum = 0;
  for (const double e : v) sum += e * e;
  return std::sqrt(sum);
}

void add(double factor, const Directions& v, Directions& sum) {
  for (std::size_t c = 0; c < kDirections; ++c) sum[c] += factor * v[c];
}

void normalise(Directions& v) {
  const double size = length(v);
  for (double& e : v) e = size > 0 ? e / size : 0;
}

// Vectors for the entries of a sign vector, of length 1, or of l2 vectors, of total length 1.
std::vector<Directions> some_directions(std::size_t n, std::mt19937_64& rng) {
  std::normal_distribution<double> normal;
  std::vector<Directions> made(n);
  for (Directions& v : made) {
    for (double& e : v) e = normal(rng);
    normalise(v);
  }
  return made;
}

// Of vectors of free length: together of length 1.
void normalise_all(std::vector<Directions>& all) {
  double sum = 0;
  for (const Directions& v : all) sum += length(v) * length(v);
  for (Directions& v : all) {
    for (double& e : v) e = sum > 0 ? e / std::sqrt(sum) : 0;
  }
}

// The relaxation of max s'J t over signs or unit vectors t, s to unit vectors for their entries:
// lengths of J'u and J v at the end of an ascent say how much each entry matters.
struct Relaxed {
  std::vector<double> inputs, outputs;
};
Relaxed relaxed(const std::vector<double>& rows, std::size_t m, std::size_t n, bool signs_in,
                bool signs_out) {
  constexpr int kSweeps = 60;
  std::mt19937_64 rng(7);
  std::vector<Directions> t = some_directions(n, rng), s(m);
  if (!signs_in) normalise_all(t);
  Relaxed found{std::vector<double>(n), std::vector<double>(m)};
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (std::size_t i = 0; i < m; ++i) {
      s[i] = {};
      for (std::size_t j = 0; j < n; ++j) add(rows[i * n + j], t[j], s[i]);
      found.outputs[i] = length(s[i]);
      if (signs_out) normalise(s[i]);
    }
    if (!signs_out) normalise_all(s);
    std::ranges::fill(t, Directions{});
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t j = 0; j < n; ++j) add(rows[i * n + j], s[i], t[j]);
    }
    for (std::size_t j = 0; j < n; ++j) {
      found.inputs[j] = length(t[j]);
      if (signs_in) normalise(t[j]);
    }
    if (!signs_in) normalise_all(t);
  }
  return found;
}

// 1 / sqrt(importance), of few bits so that products with weights in single precision are exact.
void append_factors(const std::vector<double>& importance, std::vector<double>& factors) {
  constexpr double kFloor = 0.1;
  const double most = *std::ranges::max_element(importance);
  for (const double s : importance) {
    const double f = most > 0 ? 1 / std::sqrt(std::max(s / most, kFloor)) : 1;
    factors.push_back(std::round(f * 0x1p11) * 0x1p-11);
  }
}

}  // namespace

void WeightedWhole::choose_factors(const Slopes& slopes) {
  const auto m = to_size(net_.outputs()), n = to_size(net_.inputs());
  const Relaxed found = relaxed(plain_jacobian(net_, slopes), m, n, inputs_, outputs_);
  factors_.clear();
  if (inputs_) append_factors(found.inputs, factors_);
  if (outputs_) append_factors(found.outputs, factors_);
}

bool WeightedWhole::use_input_weights(Index, const std::vector<double>& weights) {
  auto scaled = scaled_whole(net_, inputs_, outputs_, weights);
  if (!scaled) return false;
  factors_ = weights;
  scaled_ = std::make_unique<ScaledNet>(*std::move(scaled));
  inner_ = make_bounder(scaled_->net, NormDecomposition{.whole = true});
  return true;
}

double WeightedWhole::upper_bound(const Slopes& slopes, Index, double good_enough,
                                  std::vector<float>& state) {
  if (!inner_) {
    choose_factors(slopes);
    // Importances may be no numbers where the weights are huge.
    if (!use_input_weights(0, factors_))
      LIPSCOPE_CHECK(use_input_weights(0, std::vector<double>(factors_.size(), 1)));
  }
  return mul_up(inner_->upper_bound(slopes, 0, good_enough / scaled_->size, state), scaled_->size);
}

double ascended_norm(const std::vector<double>& rows, Index count, double p, double q) {
  const auto m = to_size(count), n = rows.size() / m;
  std::vector<double> x(n), y(m);
  const auto toward = [](std::vector<double>& v, bool signs) {
    double size = 0;
    for (const double e : v) size += e * e;
    for (double& e : v) e = signs ? (e < 0 ? -1 : 1) : size > 0 ? e / std::sqrt(size) : 0;
  };
  // From the row with the largest norm.
  double most = -1;
  for (std::size_t i = 0; i < m; ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < n; ++j)
      sum += p == kInf ? std::fabs(rows[i * n + j]) : rows[i * n + j] * rows[i * n + j];
    if (!(sum > most)) continue;
    most = sum;
    std::copy_n(&rows[i * n], n, x.begin());
  }
  double best = 0;
  for (int step = 0; step < 20; ++step) {
    toward(x, p == kInf);
    gemv(std::ssize(y), std::ssize(x), 1.0, {rows.data(), std::ssize(x)}, x.data(), 1, 0.0,
         y.data(), 1);
    double norm = 0;
    for (const double e : y) norm += q == 1 ? std::fabs(e) : e * e;
    if (q != 1) norm = std::sqrt(norm);
    if (!(norm > best * (1 + 1e-9))) break;
    best = norm;
    toward(y, q == 1);
    gemm(1, std::ssize(x), std::ssize(y), 1.0, {y.data(), std::ssize(y)},
         {rows.data(), std::ssize(x)}, 0.0, x.data(), std::ssize(x));
  }
  return best;
}

}  // namespace lipscope
