// SPDX-License-Identifier: Apache-2.0
#include "sdp/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/rounding.h"
#include "ops/elementwise.h"
#include "ops/max_windows.h"
#include "sdp/reader.h"
#include "sdp/reduce.h"

namespace lipscope {

namespace {

// Nodes a value is made of, when `from` is given.
struct Makers {
  std::vector<bool> nodes;
  bool others = false;  // whether there is a way around `from`
};

Makers makers(const Graph& graph, ValueId value, ValueId from) {
  std::vector<bool> needed(graph.values().size());
  Makers found{std::vector<bool>(graph.nodes().size()), false};
  needed[value.index] = true;
  for (std::size_t n = graph.nodes().size(); n-- > 0;) {
    const Node& node = graph.nodes()[n];
    found.nodes[n] = std::ranges::any_of(
        node.outputs, [&](ValueId id) { return needed[id.index] && id != from; });
    for (const ValueId id : node.inputs) needed[id.index] = needed[id.index] || found.nodes[n];
  }
  for (const ValueId id : graph.inputs())
    found.others = found.others || (needed[id.index] && id != from);
  return found;
}

std::vector<Interval> intervals_of(const Box& box) {
  const auto lower = box.lower.doubles(), upper = box.upper.doubles();
  std::vector<Interval> entries;
  for (std::size_t i = 0; i < lower.size(); ++i) entries.push_back({lower[i], upper[i]});
  return entries;
}

}  // namespace

std::optional<SdpNetwork> SdpReader::read(const SdpPart& part) {
  if (!part.from && graph_.inputs().size() != 1) return no("several inputs");
  const ValueId input = part.from.value_or(graph_.inputs()[0]);
  const ValueId output = part.to.value_or(graph_.outputs()[0]);
  const Makers made_of = makers(graph_, output, input);
  users_.assign(graph_.values().size(), 0);
  ++users_[output.index];
  for (const Node& node : graph_.nodes()) {
    for (const ValueId id : node.inputs) ++users_[id.index];
  }
  if (made_of.others) return no("not a function of that value alone");
  append(entries(input), {}, {});
  values_[input.index] = {{0, std::nullopt}};
  set_offset(input, std::vector<Interval>(static_cast<std::size_t>(entries(input)), point(0)));
  for (std::size_t n = 0; n < made_of.nodes.size(); ++n) {
    if (made_of.nodes[n] && !add(graph_.nodes()[n])) return std::nullopt;
  }
  if (net_.nodes.size() == 1) return no(std::string(kOneAffineLayer));
  append(entries(output), {}, last_terms_of(output));
  net_.nodes.back().bias = offset_of(output);
  return std::move(net_);
}

std::optional<SdpNetwork> SdpReader::no(std::string why) {
  reason = std::move(why);
  return std::nullopt;
}
bool SdpReader::refuse(const Node& node, const std::string& why) {
  reason = fmt::format("node '{}': {}", node.name, why);
  return false;
}
bool SdpReader::has_room(const Node& node, std::size_t more) {
  size_ += static_cast<Index>(more);
  return size_ <= most_ || refuse(node, fmt::format("more than {} entries in all", most_));
}

Index SdpReader::entries(ValueId id) const { return element_count(graph_.value(id).type.shape); }

SdpTerms SdpReader::terms_of(ValueId id) const {
  const auto found = values_.find(id.index);
  return found != values_.end() ? found->second : SdpTerms{};
}

SdpTerms SdpReader::last_terms_of(ValueId id) {
  const auto found = values_.find(id.index);
  return found != values_.end() && users_[id.index] == 1 ? std::move(found->second) : terms_of(id);
}

Box SdpReader::with_offset(ValueId id) const {
  Box box = box_(id);
  if (!biases_ || !moves(id)) return box;
  const std::vector<Interval> offset = offset_of(id);
  const auto lower = box.lower.doubles(), upper = box.upper.doubles();
  for (std::size_t i = 0; i < offset.size(); ++i) {
    lower[i] = min_nan(lower[i], offset[i].lo);
    upper[i] = max_nan(upper[i], offset[i].hi);
  }
  return box;
}

std::vector<Interval> SdpReader::ranges_of(ValueId id) const { return intervals_of(box_(id)); }

bool SdpReader::add(const Node& node) {
  const auto moving = std::ranges::count_if(node.inputs, [&](ValueId id) { return moves(id); });
  if (moving == 0) return true;
  for (const ValueId id : node.outputs) {
    if (used_[id.index] && !is_floating(graph_.value(id).type.type))
      return refuse(node, "a result that is not real");
  }
  if (const auto* phi = dynamic_cast<const Elementwise*>(node.op.get()))
    return add_activation(node, *phi);
  if (const auto windows = max_windows(*node.op)) return add_max_pool(node, *windows);
  const std::string_view name = node.op->name();
  if (name == "PRelu" && moving == 1 && moves(node.inputs[0])) return add_prelu(node);
  if ((name == "Max" || name == "Min") && node.inputs.size() == 2) return add_max_or_min(node);
  return add_affine(node, moving > 1);
}

bool SdpReader::add_affine(const Node& node, bool several) {
  for (std::size_t o = 0; o < node.outputs.size(); ++o) {
    const ValueId result_id = node.outputs[o];
    if (!is_floating(graph_.value(result_id).type.type)) continue;  // nobody uses it
    SdpTerms result;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      if (!moves(node.inputs[k])) continue;
      auto map = matrix(node, k, o, several);
      if (!map || !add_through(node, *std::move(map), terms_of(node.inputs[k]), result))
        return false;
    }
    values_[result_id.index] = std::move(result);
  }
  set_offsets_behind(node);
  return true;
}

std::vector<Interval> SdpReader::offset_of(ValueId id) const {
  if (!biases_) return {};
  const auto found = offsets_.find(id.index);
  const Box& box = found != offsets_.end() ? found->second : box_(id);
  return intervals_of(box);
}

void SdpReader::set_offset(ValueId id, const std::vector<Interval>& offset) {
  if (!biases_) return;
  const Shape& shape = graph_.value(id).type.shape;
  Box box{Tensor::zeros(ElementType::kFloat64, shape), Tensor::zeros(ElementType::kFloat64, shape)};
  for (std::size_t i = 0; i < offset.size(); ++i) {
    box.lower.doubles()[i] = offset[i].lo;
    box.upper.doubles()[i] = offset[i].hi;
  }
  offsets_[id.index] = std::move(box);
}

void SdpReader::set_offsets_behind(const Node& node) {
  if (!biases_) return;
  std::vector<Box> in;
  for (const ValueId id : node.inputs) {
    const auto found = offsets_.find(id.index);
    in.push_back(found != offsets_.end() ? found->second : box_(id));
  }
  auto range = node.op->range(in);
  for (std::size_t o = 0; o < node.outputs.size(); ++o) {
    const ValueId id = node.outputs[o];
    if (range) {
      offsets_[id.index] = std::move((*range)[o]);
    } else {
      set_offset(id, std::vector<Interval>(static_cast<std::size_t>(entries(id)), {-kInf, kInf}));
    }
  }
}

std::optional<RowMatrix> SdpReader::matrix(const Node& node, std::size_t k, std::size_t o,
                                           bool several) {
  std::vector<Box> boxes;
  for (const ValueId id : node.inputs) boxes.push_back(with_offset(id));
  const MatrixQuery query{boxes, static_cast<Index>(k), static_cast<Index>(o)};
  struct Unfit {
    std::string why;
  };
  const std::string unfit_weights =
      several ? fmt::format(
                    "operator {} multiplies or divides values that move with the input, as "
                    "attention does",
                    node.op->name())
              : fmt::format("operator {} has weights that are not finite", node.op->name());
  constexpr std::size_t kMostWeights = 20'000'000;
  bool linear = true;
  const auto list = [&](const VisitEntry& visit) {
    std::size_t weights = 0;
    const auto watch = [&](Index i, Index j, double lo, double hi) {
      if (++weights > kMostWeights) throw Unfit{"a map of more than 20 million weights"};
      if (!std::isfinite(lo) || !std::isfinite(hi) ||
          (several && !(hi - lo <= 1e-6 * std::fabs(lo))))
        throw Unfit{unfit_weights};
      visit(i, j, lo, hi);
    };
    linear = linear && node.op->matrix(query, watch);
  };
  RowMatrix map;
  try {
    map = collect_rows(entries(node.outputs[o]), entries(node.inputs[k]), list);
  } catch (const Unfit& unfit) {
    refuse(node, unfit.why);
    return std::nullopt;
  }
  if (!linear) {
    refuse(node, fmt::format("operator {} is neither affine nor a function of single entries",
                             node.op->name()));
    return std::nullopt;
  }
  return map;
}

bool SdpReader::add_through(const Node& node, RowMatrix map, const SdpTerms& terms,
                            SdpTerms& result) {
  constexpr double kMostProducts = 3e7;
  for (const SdpTerm& term : terms) {
    if (term.map && product_cost(map, *term.map) > kMostProducts)
      return refuse(node, "affine maps behind one another that are too large to multiply");
    const bool last = &term == &terms.back();
    RowMatrix through = term.map ? product(map, *term.map) : last ? std::move(map) : map;
    const auto same = std::ranges::find(result, term.node, &SdpTerm::node);
    if (same == result.end()) {
      result.push_back({term.node, std::move(through)});
    } else {
      same->map = sum(*same->map, through);
    }
  }
  return true;
}

void SdpReader::append(Index size, std::vector<Interval> slopes, SdpTerms terms) {
  SdpNode node{size, {}, std::move(slopes), {}, 0, nullptr};
  for (SdpTerm& term : terms) {
    const SdpNode& from = net_.nodes[term.node];
    node.edges.push_back({term.node, term.map ? std::move(*term.map) : identity_rows(from.size)});
    node.depth = std::max(node.depth, from.depth + 1);
  }
  net_.nodes.push_back(std::move(node));
}

bool SdpReader::add_activation(const Node& node, const Elementwise& phi) {
  std::vector<Interval> slopes;
  for (const Interval& x : ranges_of(node.inputs[0])) {
    const auto slope = phi.slopes(x);
    if (!slope || !is_bounded(*slope))
      return refuse(node, fmt::format("operator {} has no finite slope", node.op->name()));
    slopes.push_back(*slope);
  }
  const ValueId result = node.outputs[0];
  const auto line = slopes_of_line(node.inputs[0], phi);
  if (!line) return append_units(node, std::move(slopes));
  const auto n = static_cast<Index>(line->size());
  const RowMatrix map = collect_rows(n, n, [&](const VisitEntry& visit) {
    for (Index i = 0; i < n; ++i) {
      const double slope = (*line)[static_cast<std::size_t>(i)];
      visit(i, i, slope, slope);
    }
  });
  set_offsets_behind(node);
  return add_through(node, map, terms_of(node.inputs[0]), values_[result.index]);
}

std::optional<std::vector<double>> SdpReader::slopes_of_line(ValueId id,
                                                             const Elementwise& phi) const {
  std::vector<double> line;
  for (const Interval& x : intervals_of(with_offset(id))) {
    const auto slope = phi.slopes(x);
    if (!slope || !(slope->lo == slope->hi)) return std::nullopt;
    line.push_back(slope->lo);
  }
  return line;
}

bool SdpReader::add_prelu(const Node& node) {
  // What the function makes of -1.
  const Shape& shape = graph_.value(node.inputs[0]).type.shape;
  Box minus{Tensor::zeros(ElementType::kFloat64, shape),
            Tensor::zeros(ElementType::kFloat64, shape)};
  std::ranges::fill(minus.lower.doubles(), -1);
  std::ranges::fill(minus.upper.doubles(), -1);
  const std::vector<Box> in{minus, box_(node.inputs[1])};
  const auto values = node.op->range(in);
  const std::vector<Interval> ranges = ranges_of(node.inputs[0]);
  std::vector<Interval> slopes;
  std::vector<double> below;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const double value = values ? (*values)[0].lower.doubles()[i] : kNaN;
    if (!std::isfinite(value) || value != (*values)[0].upper.doubles()[i])
      return refuse(node, "slopes that are not known");
    below.push_back(-value);
    slopes.push_back(ranges[i].lo >= 0   ? point(1)
                     : ranges[i].hi <= 0 ? point(-value)
                                         : hull(point(-value), point(1)));
  }
  if (!append_units(node, std::move(slopes))) return false;
  net_.nodes.back().below = std::move(below);
  return true;
}

bool SdpReader::append_units(const Node& node, std::vector<Interval> slopes) {
  const ValueId result = node.outputs[0];
  // A range without width would ask for an infinite multiplier; a wider one is as true.
  for (Interval& slope : slopes) {
    const double least = 1e-4 * std::max(magnitude(slope), 1e-2);
    if ((slope.lo == 0 && slope.hi == 0) || slope.hi - slope.lo >= least) continue;
    slope = {sub_down(slope.lo, least), add_up(slope.hi, least)};
  }
  if (!has_room(node, slopes.size())) return false;
  append(entries(result), std::move(slopes), last_terms_of(node.inputs[0]));
  net_.nodes.back().origin = &node;
  net_.nodes.back().bias = offset_of(node.inputs[0]);
  set_offset(result, std::vector<Interval>(static_cast<std::size_t>(entries(result)), point(0)));
  values_[result.index] = {{net_.nodes.size() - 1, std::nullopt}};
  return true;
}

Index SdpNetwork::size() const {
  Index size = 0;
  for (const SdpNode& node : nodes) size += node.size;
  return size;
}

std::optional<SdpNetwork> read_sdp_network(const Graph& graph,
                                           const std::function<const Box&(ValueId)>& box,
                                           Index most, std::string& reason, bool biases) {
  SdpReader reader(graph, box, most);
  if (biases) reader.want_biases();
  std::optional<SdpNetwork> network = reader.read();
  reason = std::move(reader.reason);
  return network;
}

std::optional<SdpNetwork> as_sdp_network(const Graph& graph,
                                         const std::function<const Box&(ValueId)>& box, Index most,
                                         std::string& reason, const SdpPart& part) {
  SdpReader reader(graph, box, most);
  std::optional<SdpNetwork> network = reader.read(part);
  reason = std::move(reader.reason);
  if (!network) return std::nullopt;
  drop_dead_entries(*network);
  scale_nodes(*network);
  return network;
}

}  // namespace lipscope
