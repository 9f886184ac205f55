// SPDX-License-Identifier: Apache-2.0
#include "bounds/affine_nodes.h"

#include <algorithm>
#include <cmath>

#include "base/rounding.h"

namespace lipscope {
namespace {

struct TooManyEntries {};

Box filled(const Shape& shape, double low, double high) {
  Box box{Tensor::zeros(ElementType::kFloat64, shape), Tensor::zeros(ElementType::kFloat64, shape)};
  std::ranges::fill(box.lower.doubles(), low);
  std::ranges::fill(box.upper.doubles(), high);
  return box;
}

// Entries as they are told, then by rows.
class MatrixReader {
 public:
  explicit MatrixReader(double& left) : left_(left) {}
  void add(Index row, Index column, double low, double high) {
    if ((left_ -= 1) < 0) throw TooManyEntries{};
    if (low == 0 && high == 0) return;
    finite_ = finite_ && std::isfinite(low) && std::isfinite(high);
    rows_.push_back(static_cast<std::uint32_t>(row));
    columns_.push_back(static_cast<std::uint32_t>(column));
    weights_.push_back(midpoint(Interval{low, high}));
    if (low == high) return;
    width_.resize(weights_.size());
    width_.back() = radius_up(Interval{low, high});
  }
  [[nodiscard]] bool finite() const { return finite_; }

  [[nodiscard]] AffineNode::Block block(std::size_t rows, std::size_t columns) const {
    AffineNode::Block block;
    SparseRows& m = block.matrix;
    m.begin.assign(rows + 1, 0);
    for (const auto row : rows_) ++m.begin[row + 1];
    for (std::size_t i = 0; i < rows; ++i) m.begin[i + 1] += m.begin[i];
    m.columns.resize(rows_.size());
    m.weights.resize(rows_.size());
    if (!width_.empty()) m.width.resize(rows_.size());
    std::vector<Index> next = m.begin, terms(columns);
    for (std::size_t k = 0; k < rows_.size(); ++k) {
      const auto to = static_cast<std::size_t>(next[rows_[k]]++);
      m.columns[to] = columns_[k];
      m.weights[to] = weights_[k];
      if (k < width_.size()) m.width[to] = width_[k];
      block.most_terms = std::max(block.most_terms, ++terms[columns_[k]]);
    }
    return block;
  }

 private:
  double& left_;
  bool finite_ = true;
  std::vector<std::uint32_t> rows_, columns_;
  std::vector<double> weights_;
  std::vector<double> width_;  // as far as any is not 0
};

}  // namespace

AffineNodes::AffineNodes(const Graph& graph, double most_entries)
    : nodes_(graph.nodes().size()), moves_(graph.values().size()), left_(most_entries) {
  for (const ValueId id : graph.inputs()) moves_[id.index] = is_floating(graph.value(id).type.type);
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    const Node& node = graph.nodes()[n];
    const bool any = std::ranges::any_of(node.inputs, [&](ValueId id) { return moves_[id.index]; });
    for (const ValueId id : node.outputs)
      moves_[id.index] = any && is_floating(graph.value(id).type.type);
    if (!any || !usable_) continue;
    try {
      nodes_[n] = read(graph, node);
    } catch (const TooManyEntries&) {
      usable_ = false;
    }
  }
}

// A function that is affine in each input whatever the others are, with weights that are bounded
// whatever they are, is affine in all of them together.
std::optional<AffineNode> AffineNodes::read(const Graph& graph, const Node& node) {
  std::vector<Box> anywhere, at_zero;
  for (const ValueId id : node.inputs) {
    const Value& value = graph.value(id);
    if (!moves_[id.index] && !value.constant) return std::nullopt;
    if (moves_[id.index]) {
      anywhere.push_back(filled(value.type.shape, -kInf, kInf));
      at_zero.push_back(filled(value.type.shape, 0, 0));
    } else {
      anywhere.push_back(value.constant->box());
      at_zero.push_back(anywhere.back());
    }
  }
  AffineNode found;
  for (std::size_t o = 0; o < node.outputs.size(); ++o) {
    const ValueType& type = graph.value(node.outputs[o]).type;
    if (!is_floating(type.type)) return std::nullopt;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      if (!moves_[node.inputs[k].index]) continue;
      MatrixReader reader(left_);
      const MatrixQuery query{anywhere, static_cast<Index>(k), static_cast<Index>(o)};
      const bool known = node.op->matrix(
          query, [&](Index i, Index j, double lo, double hi) { reader.add(i, j, lo, hi); });
      if (!known || !reader.finite()) return std::nullopt;
      const auto columns = static_cast<std::size_t>(anywhere[k].lower.size());
      found.blocks.push_back(
          reader.block(static_cast<std::size_t>(element_count(type.shape)), columns));
      found.blocks.back().input = k;
      found.blocks.back().output = o;
    }
  }
  const auto constants = node.op->range(at_zero);
  if (!constants) return std::nullopt;
  for (const Box& box : *constants) {
    std::vector<Interval>& here = found.constants.emplace_back();
    for (std::size_t i = 0; i < box.lower.doubles().size(); ++i)
      here.push_back({box.lower.doubles()[i], box.upper.doubles()[i]});
  }
  return found;
}

}  // namespace lipscope
