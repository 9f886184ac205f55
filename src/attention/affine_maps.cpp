// SPDX-License-Identifier: Apache-2.0
#include "attention/affine_maps.h"

#include <algorithm>

namespace lipscope {

const RowMatrix& AffineMaps::matrix(ValueId id) {
  if (const auto known = made_.find(id.index); known != made_.end()) return known->second;
  const Index cols = element_count(graph_.value(origin_).type.shape);
  if (id == origin_) return made_[id.index] = identity_rows(cols);
  const Node& node = *dependence_.maker(id);
  const std::vector<Box> boxes = dependence_.loose_boxes(node);
  const Index rows = element_count(graph_.value(id).type.shape);
  std::optional<RowMatrix> total;
  for (std::size_t k = 0; k < node.inputs.size(); ++k) {
    if (!dependence_.moves(node.inputs[k])) continue;
    const Index width = element_count(graph_.value(node.inputs[k]).type.shape);
    const RowMatrix own = collect_rows(rows, width, [&](const VisitEntry& visit) {
      static_cast<void>(visit_matrix(node, {boxes, static_cast<Index>(k), 0}, visit));
    });
    RowMatrix part = product(own, matrix(node.inputs[k]));
    total = total ? sum(*total, part) : std::move(part);
  }
  return made_[id.index] = std::move(*total);
}

std::optional<SharedWeights> shared_weights(const RowMatrix& map, const Box& at_zero,
                                            const HeadPlaces& places, Index head, Index width) {
  const auto tokens = static_cast<Index>(places.token.size());
  const auto components = static_cast<Index>(places.component.size());
  SharedWeights out{IntervalMatrix(width, components),
                    std::vector<Interval>(static_cast<std::size_t>(components))};
  std::vector<Interval> row(static_cast<std::size_t>(width));
  for (Index c = 0; c < components; ++c) {
    for (Index i = 0; i < tokens; ++i) {
      const Index entry = places(head, i, c);
      std::ranges::fill(row, point(0));
      bool own = true;
      map.for_row(entry, [&](Index column, std::size_t at) {
        const double w = map.weights[at], r = map.radius_at(at);
        if (w == 0 && r == 0) return;
        own = own && column / width == i;
        row[static_cast<std::size_t>(column % width)] = {sub_down(w, r), add_up(w, r)};
      });
      if (!own) return std::nullopt;
      const auto place = static_cast<std::size_t>(entry);
      const Interval bias{at_zero.lower.doubles()[place], at_zero.upper.doubles()[place]};
      auto& known = out.bias[static_cast<std::size_t>(c)];
      known = i == 0 ? bias : hull(known, bias);
      for (Index b = 0; b < width; ++b) {
        Interval& weight = out.weights(b, c);
        weight = i == 0 ? row[static_cast<std::size_t>(b)]
                        : hull(weight, row[static_cast<std::size_t>(b)]);
      }
    }
  }
  return out;
}

}  // namespace lipscope
