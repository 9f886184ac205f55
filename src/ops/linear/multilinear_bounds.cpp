// SPDX-License-Identifier: Apache-2.0
// Ranges and gains of sums of products.
#include <algorithm>
#include <memory>

#include "linalg/tensor/contraction.h"
#include "ops/box.h"
#include "ops/facets/affine_rows.h"
#include "ops/linear/bilinear_range.h"
#include "ops/linear/linear_gain.h"
#include "ops/linear/multilinear.h"

namespace lipscope {
namespace {

using Strides = std::vector<Index>;

// Borrows a box, or owns what was computed.
struct Operand {
  BoundsView values;
  Strides strides;  // by label
  bool is_one = false;
  std::shared_ptr<const Bounds> owned = nullptr;
};

Operand owning(Bounds bounds, Strides strides, bool is_one = false) {
  auto owned = std::make_shared<const Bounds>(std::move(bounds));
  return {BoundsView(*owned), std::move(strides), is_one, owned};
}
Operand one_operand(std::size_t labels) { return owning({{1.0}, {1.0}}, Strides(labels, 0), true); }

bool is_one(const Interval& x) { return x.lo == 1 && x.hi == 1; }

Operand operand(const Multilinear& form, std::span<const Box> in, std::size_t k) {
  return {BoundsView(in[k]), form.strides[k]};
}

// The product of two operands, summed over the labels the output does not have. `b` may be one.
Bounds contract_range(const std::vector<Index>& extents, const Operand& a, const Operand& b,
                      const Strides& out, Index size) {
  std::vector<LoopDim> dims;
  Index terms = 1;
  for (std::size_t l = 0; l < extents.size(); ++l) {
    if (a.strides[l] == 0 && b.strides[l] == 0 && out[l] == 0) continue;
    dims.push_back({extents[l], a.strides[l], b.strides[l], out[l]});
    if (out[l] == 0) terms *= extents[l];
  }
  const auto multiply = [&](const double* x, const double* y, double* to) {
    std::fill_n(to, size, 0.0);
    contract(dims, 1.0, x, y, to, true);
  };
  if (b.is_one && terms <= 1) {
    const auto n = static_cast<std::size_t>(size);
    Bounds copy{std::vector<double>(n), std::vector<double>(n)};
    multiply(a.values.lower.data(), b.values.lower.data(), copy.lower.data());
    multiply(a.values.upper.data(), b.values.upper.data(), copy.upper.data());
    return copy;
  }
  return bilinear_range({multiply, size, b.is_one ? terms - 1 : terms, b.is_one}, a.values,
                        b.values);
}

// Row-major strides over the given labels.
Strides dense_strides(const std::vector<Index>& extents, const std::vector<std::size_t>& labels,
                      Index& size) {
  Strides strides(extents.size(), 0);
  size = 1;
  for (std::size_t i = labels.size(); i-- > 0;) {
    const std::size_t l = labels[i];
    if (extents[l] != 1) strides[l] = size;
    size *= extents[l];
  }
  return strides;
}

// Multiplies operands until two are left. Labels that `wanted` or a later operand has are kept.
void join(const std::vector<Index>& extents, std::vector<Operand>& operands,
          const std::vector<bool>& wanted) {
  if (operands.empty()) operands.push_back(one_operand(extents.size()));
  while (operands.size() > 2) {
    std::vector<std::size_t> kept;
    for (std::size_t l = 0; l < extents.size(); ++l) {
      bool later = wanted[l];
      for (std::size_t i = 2; i < operands.size(); ++i) {
        later = later || operands[i].strides[l] != 0;
      }
      if (later && (operands[0].strides[l] != 0 || operands[1].strides[l] != 0)) kept.push_back(l);
    }
    Index size = 1;
    const Strides strides = dense_strides(extents, kept, size);
    Operand joined =
        owning(contract_range(extents, operands[0], operands[1], strides, size), strides);
    operands.erase(operands.begin());
    operands[0] = std::move(joined);
  }
  if (operands.size() == 1) operands.push_back(one_operand(extents.size()));
}

bool all_hold_doubles(std::span<const Box> in) {
  return std::all_of(in.begin(), in.end(), holds_doubles);
}

// Norm of the rows x cols matrix at `offset` of the bounds.
double block_norm_up(const Bounds& b, Index rows, Index cols, Index offset,
                     const GainQuery& query) {
  std::vector<double> middle, radius;
  bool exact = true;
  for (Index i = offset; i < offset + rows * cols; ++i) {
    const Interval x{b.lower[static_cast<std::size_t>(i)], b.upper[static_cast<std::size_t>(i)]};
    if (!is_bounded(x)) return kInf;
    if (rows * cols == 1) return magnitude(x);
    middle.push_back(midpoint(x));
    radius.push_back(radius_up(x));
    exact = exact && radius.back() == 0;
  }
  return matrix_norm({rows, cols, middle.data(), exact ? nullptr : radius.data()}, query.norms,
                     gain_effort(query))
      .upper;
}

// Whether every label of the other operand belongs to the moving one or to the output.
bool sums_nothing(const Multilinear& form, const Multilinear::Term& term, std::size_t wrt) {
  for (const std::size_t k : term.inputs) {
    if (k == wrt) continue;
    for (std::size_t l = 0; l < form.extents.size(); ++l) {
      const bool used = form.strides[k][l] != 0;
      if (used && form.strides[wrt][l] == 0 && form.out_strides[l] == 0) return false;
    }
  }
  return true;
}

double term_gain_up(const Multilinear& form, const Multilinear::Term& term,
                    const GainQuery& query) {
  const auto wrt = static_cast<std::size_t>(query.wrt);
  const std::vector<Index>& extents = form.extents;
  std::vector<Operand> others;
  for (const std::size_t k : term.inputs) {
    if (k != wrt) others.push_back(operand(form, query.in, k));
  }
  // Labels by what they do to the block matrices [linear-5]. "blocks", "rows" and "cols" are those
  // the other operands have; the rest repeats, copies or adds up.
  std::vector<std::size_t> blocks, rows, cols;
  Index repeats = 1, copies = 1, added = 1;
  std::vector<bool> wanted(extents.size());
  for (std::size_t l = 0; l < extents.size(); ++l) {
    const bool moving = form.strides[wrt][l] != 0, out = form.out_strides[l] != 0;
    bool other = false;
    for (const Operand& o : others) other = other || o.strides[l] != 0;
    wanted[l] = moving || out;
    if (extents[l] == 0 && (moving || out || other)) return 0;
    if (!wanted[l]) continue;
    if (other) {
      (moving && out ? blocks : out ? rows : cols).push_back(l);
    } else {
      (moving && out ? repeats : out ? copies : added) *= extents[l];
    }
  }
  const auto product = [&](const std::vector<std::size_t>& labels) {
    Index n = 1;
    for (const std::size_t l : labels) n *= extents[l];
    return n;
  };
  const Index count = product(blocks), m = product(rows), n = product(cols);
  const auto finish = [&](double norm) {
    double gain = repeated_norm_up(norm, repeats, query.norms);
    gain = gain_mul_up(gain, copied_norm_up(copies, query.norms.out));
    gain = gain_mul_up(gain, added_norm_up(added, query.norms.in));
    return gain_mul_up(gain, std::fabs(term.coefficient));
  };
  // One exact matrix, the usual case: read as it is.
  if (others.size() == 1 && rows.size() == 1 && cols.size() == 1 && count == 1 &&
      others[0].values.lower.data() == others[0].values.upper.data() &&
      sums_nothing(form, term, wrt)) {
    const double* w = others[0].values.lower.data();
    const Index by_row = others[0].strides[rows[0]], by_col = others[0].strides[cols[0]];
    std::vector<double> matrix(static_cast<std::size_t>(m * n));
    constexpr Index kTile = 32;
    for (Index i0 = 0; i0 < m; i0 += kTile) {
      for (Index j0 = 0; j0 < n; j0 += kTile) {
        for (Index i = i0; i < std::min(m, i0 + kTile); ++i) {
          for (Index j = j0; j < std::min(n, j0 + kTile); ++j)
            matrix[static_cast<std::size_t>(i * n + j)] = w[i * by_row + j * by_col];
        }
      }
    }
    return finish(
        matrix_norm({m, n, matrix.data(), nullptr}, query.norms, gain_effort(query)).upper);
  }
  join(extents, others, wanted);
  std::vector<std::size_t> order = blocks;
  order.insert(order.end(), rows.begin(), rows.end());
  order.insert(order.end(), cols.begin(), cols.end());
  Index size = 1;
  const Strides strides = dense_strides(extents, order, size);
  const Bounds b = contract_range(extents, others[0], others[1], strides, size);

  std::vector<double> sizes;
  for (Index i = 0; i < count; ++i) sizes.push_back(block_norm_up(b, m, n, i * m * n, query));
  return finish(diagonal_norm_up(sizes, query.norms));
}

}  // namespace

std::optional<std::vector<Box>> multilinear_range(const Multilinear& form,
                                                  std::span<const Box> in) {
  if (!is_floating(form.out.type) || !all_hold_doubles(in)) return std::nullopt;
  const Index size = element_count(form.out.shape);
  const auto n = static_cast<std::size_t>(size);
  Bounds total{std::vector<double>(n), std::vector<double>(n)};
  if (size == 0) return {{make_box(form.out.shape, total.lower, total.upper)}};
  std::vector<bool> wanted;
  for (const Index s : form.out_strides) wanted.push_back(s != 0);
  for (const Multilinear::Term& term : form.terms) {
    std::vector<Operand> operands;
    for (const std::size_t k : term.inputs) operands.push_back(operand(form, in, k));
    join(form.extents, operands, wanted);
    const Bounds part =
        contract_range(form.extents, operands[0], operands[1], form.out_strides, size);
    for (std::size_t i = 0; i < n; ++i) {
      Interval x{part.lower[i], part.upper[i]};
      if (term.coefficient != 1) x *= point(term.coefficient);
      total.lower[i] = add_down(total.lower[i], x.lo);
      total.upper[i] = add_up(total.upper[i], x.hi);
    }
  }
  return {{make_box(form.out.shape, std::move(total.lower), std::move(total.upper))}};
}

std::optional<Gain> multilinear_gain(const Multilinear& form, const GainQuery& query) {
  if (!is_floating(form.out.type) || !all_hold_doubles(query.in)) return std::nullopt;
  Gain gain{0, "linear-5"};
  const auto wrt = static_cast<std::size_t>(query.wrt);
  if (is_point(query.in[wrt])) return gain;
  for (const Multilinear::Term& term : form.terms) {
    if (std::ranges::count(term.inputs, wrt) == 0) continue;
    gain.value = add_up(gain.value, term_gain_up(form, term, query));
  }
  return gain;
}

bool multilinear_matrix(const Multilinear& form, const MatrixQuery& query,
                        const EntryVisitor& visit) {
  const auto moving = static_cast<std::size_t>(query.wrt);
  const auto moves = [&](const Multilinear::Term& term) {
    return std::ranges::count(term.inputs, moving);
  };
  if (!is_floating(form.out.type) ||
      !std::all_of(query.in.begin(), query.in.end(),
                   [](const Box& b) { return holds_doubles(b); }) ||
      std::ranges::any_of(form.terms, [&](const auto& term) { return moves(term) > 1; }))
    return false;
  for (const Multilinear::Term& term : form.terms) {
    if (moves(term) == 0) continue;
    if (term.coefficient == 1 && term.inputs.size() == 2) {
      const std::size_t other = term.inputs[term.inputs[0] == moving ? 1 : 0];
      const BoundsView weights(query.in[other]);
      const auto take = [&](Index row, std::span<const Index> place) {
        const auto at = static_cast<std::size_t>(place[other]);
        visit(row, place[moving], weights.lower[at], weights.upper[at]);
      };
      constexpr Index kBand = 32;
      for_each_product(form, term, take, kBand);
      continue;
    }
    for_each_product(form, term, [&](Index row, std::span<const Index> place) {
      Interval weight = point(term.coefficient);
      for (const std::size_t k : term.inputs) {
        if (k == moving) continue;
        const Interval factor = entry(query.in[k], place[k]);
        weight = is_one(weight) ? factor : weight * factor;
      }
      visit(row, place[moving], weight.lo, weight.hi);
    });
  }
  return true;
}

std::optional<Relaxation> multilinear_relax(const Multilinear& form, std::span<const Box> in) {
  if (!is_floating(form.out.type) || !all_hold_doubles(in)) return std::nullopt;
  std::vector<Index> first;  // column of the first entry of each input
  Index columns = 0;
  for (const Box& box : in) {
    first.push_back(columns);
    columns += box.lower.size();
  }
  AffineRowsBuilder rows(element_count(form.out.shape));
  for (const Multilinear::Term& term : form.terms) {
    if (term.inputs.empty() || term.inputs.size() > 2) return std::nullopt;
    const std::size_t a = term.inputs.front(), b = term.inputs.back();
    const bool pair = term.inputs.size() == 2;
    for_each_product(form, term, [&](Index row, std::span<const Index> place) {
      const Interval x = entry(in[a], place[a]), y = pair ? entry(in[b], place[b]) : point(1);
      const bool known = is_bounded(x) && is_bounded(y);
      const PairPlane p =
          known ? product_plane(x, y, term.coefficient) : PairPlane{.offset = kEntire};
      rows.add(row, first[a] + place[a], pair || x.lo < x.hi ? p.weight_a : 0);
      if (pair) rows.add(row, first[b] + place[b], p.weight_b);
      rows.add_offset(row, pair || x.lo < x.hi ? p.offset : p.offset + point(p.weight_b));
    });
  }
  return relaxation(rows, rows);
}

}  // namespace lipscope
