// SPDX-License-Identifier: Apache-2.0
// Ranges and operator norms of index maps.
#include <algorithm>
#include <cmath>

#include "linalg/norm/operator_norm.h"
#include "machine/entry_sum.h"
#include "ops/box.h"
#include "ops/index/index_map.h"
#include "ops/linear/linear_gain.h"

namespace lipscope {
namespace {

// The entries of M, between bounds.
struct Terms {
  std::vector<Index> row, col;
  std::vector<double> lower, upper;

  explicit Terms(const IndexMap& map) {
    map.for_each_bounded_term([&](Index r, Index c, const Interval& w) {
      row.push_back(r);
      col.push_back(c);
      lower.push_back(w.lo);
      upper.push_back(w.hi);
    });
  }
  [[nodiscard]] Interval weight(std::size_t i) const { return {lower[i], upper[i]}; }
};

std::vector<Index> counts(const std::vector<Index>& places, Index size) {
  std::vector<Index> result(static_cast<std::size_t>(size), 0);
  for (const Index i : places) ++result[static_cast<std::size_t>(i)];
  return result;
}

Index largest(const std::vector<Index>& list) {
  return list.empty() ? 0 : *std::max_element(list.begin(), list.end());
}

// The largest norm of a row or column, or all of them, of terms grouped by `place`.
double grouped_norm_up(const std::vector<Index>& place, Index size,
                       const std::vector<double>& weight, double p, const NormPair& norms) {
  std::vector<std::vector<double>> groups(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < place.size(); ++i) {
    groups[static_cast<std::size_t>(place[i])].push_back(weight[i]);
  }
  std::vector<double> sizes;
  sizes.reserve(groups.size());
  for (const auto& group : groups) sizes.push_back(pnorm_up(group, p));
  return diagonal_norm_up(sizes, norms);
}

double copies_norm_up(const IndexMap& map, const NormPair& norms) {
  std::vector<Index> copies(static_cast<std::size_t>(map.block_cols()), 0);
  map.for_each_term([&](Index, Index col, double) { ++copies[static_cast<std::size_t>(col)]; });
  std::vector<double> scale(static_cast<std::size_t>(largest(copies)) + 1, -1.0), sizes;
  sizes.reserve(copies.size());
  for (const Index c : copies) {
    double& s = scale[static_cast<std::size_t>(c)];
    if (s < 0) s = copied_norm_up(c, norms.out);
    sizes.push_back(s);
  }
  return diagonal_norm_up(sizes, norms);
}

// Of a matrix without negative entries, by its largest sums of rows and columns [norms-4] and the
// norms of its outputs.
double small_norm_up(const IndexMap& map, const Terms& places, const std::vector<double>& weight,
                     const NormPair& norms) {
  const double by_row =
      grouped_norm_up(places.row, map.block_rows(), weight, 1, parse_norms("inf"));
  const double by_col =
      grouped_norm_up(places.col, map.block_cols(), weight, 1, parse_norms("inf"));
  return mul_up(max_nan(by_row, by_col),
                norm_equivalence_up(map.block_rows(), norms.in, norms.out));
}

double weighted_norm_up(const IndexMap& map, const NormPair& norms, ProofSteps* steps) {
  const Terms terms(map);
  const Index rows = map.block_rows(), cols = map.block_cols();
  const auto each = [&](auto&& number) {
    std::vector<double> list;
    for (std::size_t i = 0; i < terms.row.size(); ++i) list.push_back(number(terms.weight(i)));
    return list;
  };
  const std::vector<double> sizes = each(magnitude);
  if (largest(counts(terms.col, cols)) <= 1) {
    return grouped_norm_up(terms.row, rows, sizes, dual_down(norms.in).p(), norms);
  }
  if (largest(counts(terms.row, rows)) <= 1) {
    return grouped_norm_up(terms.col, cols, sizes, norms.out.p(), norms);
  }
  const auto norm_of = [&](const std::vector<double>& weight) {
    return sparse_norm({rows, cols, terms.row, terms.col, weight}, norms,
                       NormEffort{.want_lower = false, .steps = steps})
        .upper;
  };
  // Without negative weights the norm grows with them.
  if (std::ranges::all_of(terms.lower, [](double w) { return w >= 0; })) return norm_of(sizes);
  const double around = norm_of(each(midpoint));
  if (terms.lower == terms.upper) return around;
  return add_up(around, small_norm_up(map, terms, each(radius_up), norms));
}

}  // namespace

double IndexMap::norm_up(const NormPair& norms, ProofSteps* steps) const {
  if (rows() == 0 || cols() == 0 || std::holds_alternative<Constant>(form_)) return 0;
  if (is_identity()) return norm_equivalence_up(rows(), norms.in, norms.out);
  const double block =
      has_weights() ? weighted_norm_up(*this, norms, steps) : copies_norm_up(*this, norms);
  return repeated_norm_up(block, blocks_.outer * blocks_.inner, norms);
}

Bounds IndexMap::range(const BoundsView& x) const {
  const Index outer = blocks_.outer, inner = blocks_.inner;
  const Index from_size = cols_ * inner, to_size = rows_ * inner;
  const auto size = static_cast<std::size_t>(rows());
  Bounds result{std::vector<double>(size), std::vector<double>(size)};
  if (!has_weights()) {
    for (Index o = 0; o < outer; ++o) {
      apply(x.lower.data() + o * from_size, result.lower.data() + o * to_size, true);
      apply(x.upper.data() + o * from_size, result.upper.data() + o * to_size, true);
    }
    return result;
  }
  const Terms terms(*this);
  const Bounds weights{terms.lower, terms.upper};
  const auto multiply = [&](const double* a, const double* w, double* out) {
    std::fill_n(out, size, 0.0);
    for (Index o = 0; o < outer; ++o) {
      const double* from = a + o * from_size;
      double* to = out + o * to_size;
      for (std::size_t t = 0; t < terms.row.size(); ++t) {
        const double* source = from + terms.col[t] * inner;
        double* target = to + terms.row[t] * inner;
        for (Index k = 0; k < inner; ++k) target[k] += w[t] * source[k];
      }
    }
  };
  const BilinearMap map{multiply, rows(), largest(counts(terms.row, rows_)), false};
  result = bilinear_range(map, x, BoundsView(weights));
  for (Index i = 0; i < rows(); ++i) {
    const double constant = constant_at(i / inner % std::max<Index>(1, rows_));
    if (constant == 0) continue;
    auto &lower = result.lower[static_cast<std::size_t>(i)],
         &upper = result.upper[static_cast<std::size_t>(i)];
    lower = add_down(lower, constant);
    upper = add_up(upper, constant);
  }
  return result;
}

std::optional<std::vector<Box>> IndexMapOp::range(std::span<const Box> in) const {
  std::vector<Box> boxes;
  for (const Output& output : outputs_) {
    const IndexMap& map = output.map;
    if (holds_doubles(in[0])) {
      Bounds bounds = map.range(BoundsView(in[0]));
      boxes.push_back(
          make_box(output.type.shape, std::move(bounds.lower), std::move(bounds.upper)));
      continue;
    }
    if (in[0].lower.storage() != Storage::kInt64 || is_floating(output.type.type)) {
      return std::nullopt;
    }
    const auto copy = [&](const Tensor& from) {
      Tensor to = Tensor::zeros(output.type.type, output.type.shape);
      for (Index o = 0; o < map.blocks().outer; ++o) {
        map.apply(from.ints().data() + o * map.block_cols() * map.blocks().inner,
                  to.ints().data() + o * map.block_rows() * map.blocks().inner, true);
      }
      return to;
    };
    boxes.push_back({copy(in[0].lower), copy(in[0].upper)});
  }
  return boxes;
}

void IndexMap::visit_entries(bool transposed, const EntryVisitor& visit) const {
  for_each_bounded_term([&](Index row, Index col, const Interval& weight) {
    for (Index o = 0; o < blocks_.outer; ++o) {
      Index r = (o * rows_ + row) * blocks_.inner, c = (o * cols_ + col) * blocks_.inner;
      if (transposed) std::swap(r, c);
      for (Index i = 0; i < blocks_.inner; ++i) visit(r + i, c + i, weight.lo, weight.hi);
    }
  });
}

bool IndexMapOp::matrix(const MatrixQuery& query, const EntryVisitor& visit) const {
  const Output& output = outputs_[static_cast<std::size_t>(query.output)];
  if (!is_floating(output.type.type)) return false;
  output.map.visit_entries(false, visit);
  return true;
}

std::optional<Gain> IndexMapOp::gain(const GainQuery& query) const {
  const Output& output = outputs_[0];
  if (!is_floating(output.type.type) || !holds_doubles(query.in[0])) return std::nullopt;
  const std::string_view theorem = output.map.has_weights() ? "linear-4" : "linear-3";
  if (is_point(query.in[0])) return Gain{0, theorem};
  return Gain{output.map.norm_up(query.norms, query.steps), theorem};
}

std::unique_ptr<const MachineStep> IndexMapOp::machine_step(const Machine& machine,
                                                            std::size_t output) const {
  const IndexMap& map = outputs_[output].map;
  if (!is_floating(outputs_[output].type.type)) return nullptr;
  if (!map.has_weights()) {
    if (!map.fill().stored) return nullptr;
    return copy_step(
        machine,
        [&map](const CopyVisitor& visit) {
          map.for_each_entry([&](Index row, Index col, const Interval&) { visit(row, 0, col); });
        },
        map.fill().real);
  }
  if (!map.is_average()) return nullptr;
  const auto size = static_cast<std::size_t>(map.rows());
  EntrySum sum{.rows = std::vector<std::vector<EntrySum::Entry>>(size),
               .counts = std::vector<double>(size, 1)};
  map.for_each_entry([&](Index row, Index col, const Interval& weight) {
    const auto i = static_cast<std::size_t>(row);
    sum.rows[i].push_back({0, static_cast<std::uint32_t>(col)});
    sum.counts[i] =
        std::round(1 / midpoint(weight));  // a whole number, whose reciprocal was rounded
  });
  return entry_sum_step(machine, std::move(sum));
}

}  // namespace lipscope
