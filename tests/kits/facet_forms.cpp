// SPDX-License-Identifier: Apache-2.0
// What operators say they are made of, against their values.
#include <set>

#include "linalg/conv/conv_places.h"
#include "ops/facets/adjoint.h"
#include "ops/index/index_map.h"
#include "ops/linear/multilinear.h"
#include "ops/rows/softmax_rows.h"
#include "ops/windows/conv.h"
#include "ops/windows/max_windows.h"
#include "tests/kits/facet_checks.h"

namespace lipscope::kits {
namespace {

std::size_t index_of(Index i) { return static_cast<std::size_t>(i); }

Tensor value_of(const FacetCase& c, std::size_t output = 0) {
  return evaluate(c.built.graph, c.built.inputs)[output];
}

// The entry of a broadcast operand that stands at an entry of the result.
Index broadcast_place(const Shape& full, const Shape& shape, Index flat) {
  const std::vector<Index> strides = broadcast_strides(full, shape);
  Index place = 0;
  for (std::size_t a = full.size(); a-- > 0;) {
    place += flat % full[a] * strides[a];
    flat /= full[a];
  }
  return place;
}

int expect_sums(const Tensor& y, const std::vector<double>& sums,
                const std::vector<double>& sizes) {
  EXPECT_EQ(y.size(), std::ssize(sums));
  for (Index i = 0; i < y.size(); ++i) {
    EXPECT_NEAR(y.at(i), sums[index_of(i)], 1e-12 * (1 + sizes[index_of(i)])) << "entry " << i;
  }
  return static_cast<int>(y.size());
}

}  // namespace

int check_disjoint(const FacetCase& c) {
  if (!c.op().inputs_move_disjoint_outputs() || !c.op().differentiable()) return 0;
  std::vector<int> movers(index_of(element_count(c.output(0).shape)), 0);
  int compared = 0;
  for (std::size_t k = 0; k < c.in.size(); ++k) {
    if (!c.moves(k)) continue;
    std::vector<Tensor> tangents(c.built.inputs.size());
    tangents[index_of(c.source[k])] = random_tensor(c.rng, c.in[k].shape(), 0.5, 1);
    const Tensor pushed = Trace(c.built.graph, c.built.inputs).jvp(tangents)[0];
    for (Index i = 0; i < pushed.size(); ++i) movers[index_of(i)] += pushed.at(i) != 0 ? 1 : 0;
    compared += static_cast<int>(pushed.size());
  }
  for (const int count : movers) EXPECT_LE(count, 1);
  return compared;
}

// Integer outputs are those that intervals know at a point.
int check_decides(const FacetCase& c) {
  if (!c.op().decides_exactly()) return 0;
  const auto ranges = c.op().range(c.boxes(0));
  int compared = 0;
  for (std::size_t o = 0; ranges && o < c.node().outputs.size(); ++o) {
    if (is_floating(c.output(o).type)) continue;
    const Tensor y = value_of(c, o);
    for (Index i = 0; i < y.size(); ++i, ++compared) {
      EXPECT_GE(y.at(i), (*ranges)[o].lower.at(i));
      EXPECT_LE(y.at(i), (*ranges)[o].upper.at(i));
    }
  }
  return compared;
}

int check_extreme(const FacetCase& c) {
  const auto extreme = c.op().picks_extreme();
  if (!extreme || !is_floating(c.output(0).type)) return 0;
  const Tensor y = value_of(c);
  for (Index i = 0; i < y.size(); ++i) {
    double best = *extreme == Extreme::kLargest ? -kInf : kInf;
    for (const Tensor& x : c.in) {
      const double entry = x.at(broadcast_place(y.shape(), x.shape(), i));
      best = *extreme == Extreme::kLargest ? std::max(best, entry) : std::min(best, entry);
    }
    EXPECT_EQ(y.at(i), best);
  }
  return static_cast<int>(y.size());
}

// Positive entries stay; those below zero are multiplied by what the function makes of -1, one of
// the entries of input 1.
int check_negative_scale(const FacetCase& c) {
  if (!c.op().scales_negative_entries() || !c.moves(0)) return 0;
  const auto with = [&](auto&& entry) {
    std::vector<Tensor> x = c.built.inputs;
    for (double& e : x[index_of(c.source[0])].doubles()) e = entry(e);
    return evaluate(c.built.graph, x)[0];
  };
  const Tensor unit = with([](double) { return -1.0; });
  const Tensor up = with([](double e) { return std::fabs(e); });
  const Tensor down = with([](double e) { return -std::fabs(e); });
  std::set<double> scales;
  for (const double s : c.in[1].doubles()) scales.insert(s);
  for (Index i = 0; i < unit.size(); ++i) {
    const double size = std::fabs(c.in[0].at(i));
    EXPECT_EQ(up.at(i), size);
    EXPECT_NEAR(down.at(i), size * unit.at(i), 1e-12);
    EXPECT_TRUE(scales.contains(-unit.at(i)));
  }
  return static_cast<int>(unit.size());
}

int check_windows(const FacetCase& c) {
  const MaxWindows* pool = c.op().max_windows();
  if (pool == nullptr || !is_floating(c.in[0].type())) return 0;
  const Tensor y = value_of(c);
  const std::vector<std::vector<Index>> windows = pool->windows();
  EXPECT_EQ(std::ssize(windows), y.size());
  for (Index i = 0; i < y.size(); ++i) {
    double most = -kInf;
    for (const Index place : windows[index_of(i)]) most = std::max(most, c.in[0].at(place));
    EXPECT_TRUE(windows[index_of(i)].empty() || y.at(i) == most) << "entry " << i;
  }
  return static_cast<int>(y.size());
}

// The entries of all rows add up to 1 each.
int check_softmax(const FacetCase& c) {
  const SoftmaxRows* softmax = c.op().softmax_rows();
  const Tensor y = value_of(c);
  if (softmax == nullptr || y.size() == 0) return 0;
  const bool log = softmax->result() == SoftmaxResult::kLogarithms;
  double sum = 0;
  for (Index i = 0; i < y.size(); ++i) sum += log ? std::exp(y.at(i)) : y.at(i);
  EXPECT_NEAR(sum, static_cast<double>(softmax->rows()), 1e-12 * sum);
  EXPECT_EQ(y.size() % softmax->rows(), 0);
  EXPECT_EQ(single_softmax(c.op()).has_value(), softmax->rows() == 1);
  EXPECT_EQ(keeps_differences(c.op()), softmax->rows() == 1 && log);
  return static_cast<int>(y.size());
}

int check_index_map(const FacetCase& c) {
  const IndexMapOp* told = c.op().index_map();
  if (told == nullptr) return 0;
  int compared = 0;
  for (std::size_t o = 0; o < told->outputs().size(); ++o) {
    const IndexMap& map = told->outputs()[o].map;
    const Tensor y = value_of(c, o);
    if (!is_floating(y.type()) || !is_floating(c.in[0].type())) continue;
    EXPECT_EQ(map.cols(), c.in[0].size());
    std::vector<double> sums(index_of(map.rows())), sizes(sums.size());
    for (Index i = 0; i < map.rows(); ++i)
      sums[index_of(i)] = map.constant_at(i / map.blocks().inner % map.block_rows());
    map.for_each_entry([&](Index row, Index col, const Interval& weight) {
      const double part = midpoint(weight) * c.in[0].at(col);
      sums[index_of(row)] += part, sizes[index_of(row)] += std::fabs(part);
    });
    compared += expect_sums(y, sums, sizes);
  }
  return compared;
}

int check_multilinear(const FacetCase& c) {
  const Multilinear* form = c.op().multilinear();
  if (form == nullptr || !is_floating(form->out.type)) return 0;
  std::vector<double> sums(index_of(element_count(form->out.shape))), sizes(sums.size());
  for (const Multilinear::Term& term : form->terms) {
    for_each_product(*form, term, [&](Index row, std::span<const Index> place) {
      double part = term.coefficient;
      for (const std::size_t k : term.inputs) part *= c.in[k].at(place[k]);
      sums[index_of(row)] += part, sizes[index_of(row)] += std::fabs(part);
    });
  }
  return expect_sums(value_of(c), sums, sizes);
}

// Of one image.
int check_convolution(const FacetCase& c) {
  const ConvForm* form = c.op().convolution();
  if (form == nullptr || form->shape.batch != 1) return 0;
  const ConvShape& s = form->shape;
  const Index channels = form->transposed ? s.in_channels : s.out_channels;
  const Index positions = form->transposed ? s.input_size() : s.output_size();
  std::vector<double> sums(index_of(channels * positions)), sizes(sums.size());
  for (Index i = 0; form->has_bias && i < std::ssize(sums); ++i)
    sums[index_of(i)] = c.in[2].at(i / positions);
  for_each_conv_place(s, [&](Index output, Index input, Index weight) {
    const Index row = form->transposed ? input : output, from = form->transposed ? output : input;
    const double part = c.in[0].at(from) * c.in[1].at(weight);
    sums[index_of(row)] += part, sizes[index_of(row)] += std::fabs(part);
  });
  return expect_sums(value_of(c), sums, sizes);
}

}  // namespace lipscope::kits
