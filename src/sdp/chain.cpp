// SPDX-License-Identifier: Apache-2.0
#include "sdp/chain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "base/rounding.h"
#include "linalg/conv_taps.h"
#include "ops/conv.h"
#include "ops/elementwise.h"
#include "ops/multilinear.h"

namespace lipscope {
namespace {

using Put = std::function<void(Index row, Index col, Index weight)>;

// Places of the weights of a product x W with one row x; false for any other form.
bool dense_places(const Multilinear& form, Index& rows, Index& cols, const Put* put) {
  const std::size_t labels = form.extents.size();
  if ((form.name != "Gemm" && form.name != "MatMul") || labels < 3) return false;
  for (std::size_t l = 0; l + 2 < labels; ++l) {
    if (form.extents[l] != 1) return false;
  }
  for (const Multilinear::Term& term : form.terms) {
    if (term.inputs.size() == 2 && term.coefficient != 1) return false;
  }
  rows = form.extents[labels - 2];
  cols = form.extents[labels - 1];
  if (put == nullptr) return true;
  const Index by_row = form.strides[1][labels - 2], by_col = form.strides[1][labels - 1];
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < cols; ++j) (*put)(i, j, i * by_row + j * by_col);
  }
  return true;
}

void conv_places(const ConvShape& s, const Put& put) {
  const TapLists taps(s, true);
  const Index ins = s.in_channels / s.groups, outs = s.out_channels / s.groups;
  const Index positions = s.output_size(), cells = s.input_size(), kernel = s.kernel_size();
  for (Index o = 0; o < s.out_channels; ++o) {
    const Index first = o / outs * ins;
    for (Index at = 0; at < positions; ++at) {
      taps.for_each(at, [&](Index cell, Index tap) {
        for (Index c = 0; c < ins; ++c)
          put(o * positions + at, (first + c) * cells + cell, (o * ins + c) * kernel + tap);
      });
    }
  }
}

constexpr double kMostDoubles = 2.5e8;

class Reader {
 public:
  Reader(const Graph& graph, const std::function<const Box&(ValueId)>& box, Index most)
      : graph_(graph), box_(box), most_(most) {}

  std::optional<Chain> read() {
    if (graph_.inputs().size() != 1) return no("several inputs");
    ValueId last = graph_.inputs()[0];
    for (const Node& node : graph_.nodes()) {
      if (shifts(node, last)) {
        last = node.outputs[0];
        continue;
      }
      if (node.inputs.empty() || node.inputs[0] != last || node.outputs.size() != 1)
        return no(fmt::format("node '{}' does not continue a chain", node.name));
      if (!add(node)) return std::nullopt;
      last = node.outputs[0];
    }
    if (chain_.layers.empty()) return no("no dense layer");
    if (chain_.layers.size() == chain_.slopes.size()) add_identity();
    if (chain_.slopes.empty()) return no("one affine layer: its norm says all");
    return std::move(chain_);
  }
  std::string reason;

 private:
  std::optional<Chain> no(std::string why) {
    reason = std::move(why);
    return std::nullopt;
  }
  bool refuse(const Node& node, const std::string& why) {
    reason = fmt::format("node '{}': {}", node.name, why);
    return false;
  }

  // x plus or minus a constant: differences stay as they are.
  bool shifts(const Node& node, ValueId x) const {
    if (node.op->name() != "Add" && node.op->name() != "Sub") return false;
    const std::size_t side = node.inputs[0] == x ? 0 : 1;
    if (node.inputs[side] != x || (side == 1 && node.op->name() == "Sub")) return false;
    return graph_.value(node.inputs[1 - side]).constant &&
           graph_.value(x).type == graph_.value(node.outputs[0]).type;
  }

  bool add(const Node& node) {
    const std::string_view name = node.op->name();
    if (name == "Flatten" || name == "Reshape" || name == "Identity") return true;
    if (const auto* phi = dynamic_cast<const Elementwise*>(node.op.get()))
      return activate(node, *phi);
    if (chain_.layers.size() > chain_.slopes.size())
      return refuse(node, fmt::format("operator {} behind an affine layer", name));
    for (std::size_t k = 1; k < node.inputs.size(); ++k) {
      if (!graph_.value(node.inputs[k]).constant) return refuse(node, "weights that vary");
    }
    ChainLayer layer;
    if (const auto conv = as_convolution(*node.op); conv && !conv->transposed) {
      if (conv->shape.batch != 1) return refuse(node, "several images");
      layer.rows = conv->shape.out_channels * conv->shape.output_size();
      layer.cols = conv->shape.in_channels * conv->shape.input_size();
      return fits(node, layer) &&
             fill(node, layer, [&](const Put& put) { conv_places(conv->shape, put); });
    }
    const Multilinear* form = as_multilinear(*node.op);
    if (form == nullptr || !dense_places(*form, layer.rows, layer.cols, nullptr))
      return refuse(node, fmt::format("operator {} is neither a layer nor an activation", name));
    return fits(node, layer) && fill(node, layer, [&](const Put& put) {
             dense_places(*form, layer.rows, layer.cols, &put);
           });
  }

  // Behind a last activation, so that every chain ends with a layer.
  void add_identity() {
    const Index n = chain_.layers.back().rows;
    ChainLayer layer{n, n, std::vector<double>(static_cast<std::size_t>(n * n)), {}};
    for (Index i = 0; i < n; ++i) layer.weights[static_cast<std::size_t>(i * (n + 1))] = 1;
    chain_.layers.push_back(std::move(layer));
  }

  bool fits(const Node& node, const ChainLayer& layer) {
    if (chain_.layers.empty()) size_ += layer.cols;
    size_ += layer.rows;
    memory_ += static_cast<double>(layer.rows) * static_cast<double>(layer.rows + 2 * layer.cols);
    if (memory_ > kMostDoubles) return refuse(node, "layers too large to factor");
    if (size_ <= most_ && layer.rows > 0 && layer.cols > 0) return true;
    return refuse(node, size_ > most_ ? fmt::format("more than {} entries in all", most_)
                                      : std::string("an empty layer"));
  }

  bool fill(const Node& node, ChainLayer& layer, const std::function<void(const Put&)>& places) {
    const Box& box = box_(node.inputs[1]);
    const auto lower = box.lower.doubles(), upper = box.upper.doubles();
    double largest = 0;
    for (std::size_t i = 0; i < lower.size(); ++i) {
      if (!std::isfinite(lower[i]) || !std::isfinite(upper[i]))
        return refuse(node, "weights that are not finite");
      largest = std::max({largest, std::fabs(lower[i]), std::fabs(upper[i])});
    }
    int exponent = 0;
    if (largest > 0) std::frexp(largest, &exponent);
    chain_.exponent += exponent;
    const bool exact = std::equal(lower.begin(), lower.end(), upper.begin());
    const auto entries = static_cast<std::size_t>(layer.rows * layer.cols);
    layer.weights.assign(entries, 0);
    layer.radius.assign(exact ? 0 : entries, 0);
    bool lost = false;  // digits, to underflow
    places([&](Index row, Index col, Index weight) {
      const auto at = static_cast<std::size_t>(row * layer.cols + col);
      const Interval w{lower[static_cast<std::size_t>(weight)],
                       upper[static_cast<std::size_t>(weight)]};
      layer.weights[at] = std::ldexp(midpoint(w), -exponent);
      if (!exact) layer.radius[at] = std::ldexp(radius_up(w), -exponent);
      lost = lost || (layer.weights[at] != 0 && std::fabs(layer.weights[at]) < DBL_MIN) ||
             (!exact && layer.radius[at] != 0 && layer.radius[at] < DBL_MIN);
    });
    if (lost) return refuse(node, "weights of too different sizes");
    chain_.layers.push_back(std::move(layer));
    return true;
  }

  bool activate(const Node& node, const Elementwise& phi) {
    if (chain_.layers.size() != chain_.slopes.size() + 1)
      return refuse(node, "an activation without a layer before it");
    const Box& box = box_(node.inputs[0]);
    std::vector<Interval> slopes;
    for (std::size_t i = 0; i < box.lower.doubles().size(); ++i) {
      const auto slope = phi.slopes({box.lower.doubles()[i], box.upper.doubles()[i]});
      if (!slope || !is_bounded(*slope))
        return refuse(node, fmt::format("operator {} has no finite slope", node.op->name()));
      // A range without width would ask for an infinite multiplier; a wider one is as true.
      const double least = 1e-4 * std::max(magnitude(*slope), 1e-2);
      slopes.push_back(slope->hi - slope->lo >= least
                           ? *slope
                           : Interval{sub_down(slope->lo, least), add_up(slope->hi, least)});
    }
    chain_.slopes.push_back(std::move(slopes));
    return true;
  }

  const Graph& graph_;
  const std::function<const Box&(ValueId)>& box_;
  Index most_, size_ = 0;
  double memory_ = 0;  // of the proof, in doubles
  Chain chain_;
};

}  // namespace

Index Chain::size() const {
  Index size = inputs();
  for (const ChainLayer& layer : layers) size += layer.rows;
  return size;
}

std::optional<Chain> as_chain(const Graph& graph, const std::function<const Box&(ValueId)>& box,
                              Index most, std::string& reason) {
  Reader reader(graph, box, most);
  std::optional<Chain> chain = reader.read();
  reason = std::move(reader.reason);
  return chain;
}

}  // namespace lipscope
