// SPDX-License-Identifier: Apache-2.0
#include "net/unit_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "base/parallel.h"
#include "base/rounding.h"
#include "net/limits.h"
#include "net/unit_reader.h"
#include "ops/elementwise/elementwise.h"
#include "ops/windows/max_windows.h"

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

std::atomic<std::size_t> networks = 0;

}  // namespace

Expected<UnitNetwork> UnitReader::read() {
  if (!options_.from && graph_.inputs().size() != 1) return Reason{"several inputs"};
  const ValueId input = options_.from.value_or(graph_.inputs()[0]);
  const ValueId output = options_.to.value_or(graph_.outputs()[0]);
  const Makers made_of = makers(graph_, output, input);
  users_.assign(graph_.values().size(), 0);
  ++users_[output.index];
  for (const Node& node : graph_.nodes()) {
    for (const ValueId id : node.inputs) ++users_[id.index];
  }
  if (made_of.others) return Reason{"not a function of that value alone"};
  append(entries(input), {}, {});
  values_[input.index] = {{0, std::nullopt}};
  set_offset(input, std::vector<Interval>(static_cast<std::size_t>(entries(input)), point(0)));
  prepare(made_of.nodes, input);
  for (std::size_t n = 0; n < made_of.nodes.size(); ++n) {
    if (made_of.nodes[n] && !add(graph_.nodes()[n])) return Reason{std::move(reason_)};
  }
  if (net_.nodes.size() == 1) return Reason{std::string(kOneAffineLayer)};
  append(entries(output), {}, last_terms_of(output));
  net_.nodes.back().bias = offset_of(output);
  return std::move(net_);
}

bool UnitReader::refuse(const Node& node, const std::string& why) {
  reason_ = fmt::format("node '{}': {}", node.name, why);
  return false;
}
bool UnitReader::has_room(const Node& node, std::size_t more) {
  size_ += static_cast<Index>(more);
  return size_ <= kMostUnitEntries ||
         refuse(node, fmt::format("more than {} entries in all", kMostUnitEntries));
}

Index UnitReader::entries(ValueId id) const { return element_count(graph_.value(id).type.shape); }

AffineTerms UnitReader::terms_of(ValueId id) const {
  const auto found = values_.find(id.index);
  return found != values_.end() ? found->second : AffineTerms{};
}

AffineTerms UnitReader::last_terms_of(ValueId id) {
  const auto found = values_.find(id.index);
  return found != values_.end() && users_[id.index] == 1 ? std::move(found->second) : terms_of(id);
}

Box UnitReader::with_offset(ValueId id) const {
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

std::vector<Interval> UnitReader::ranges_of(ValueId id) const { return intervals_of(box_(id)); }

bool UnitReader::add(const Node& node) {
  const auto moving = std::ranges::count_if(node.inputs, [&](ValueId id) { return moves(id); });
  if (moving == 0) return true;
  for (const ValueId id : node.outputs) {
    if (used_[id.index] && !is_floating(graph_.value(id).type.type))
      return refuse(node, "a result that is not real");
  }
  if (const Elementwise* phi = node.op->elementwise()) return add_activation(node, *phi);
  if (const MaxWindows* pool = node.op->max_windows()) return add_max_pool(node, pool->windows());
  if (node.op->scales_negative_entries() && moving == 1 && moves(node.inputs[0]))
    return add_prelu(node);
  if (node.op->picks_extreme() && node.inputs.size() == 2) return add_max_or_min(node);
  return add_affine(node, moving > 1);
}

bool UnitReader::add_affine(const Node& node, bool several) {
  for (std::size_t o = 0; o < node.outputs.size(); ++o) {
    const ValueId result_id = node.outputs[o];
    if (!is_floating(graph_.value(result_id).type.type)) continue;  // nobody uses it
    AffineTerms result;
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

std::vector<Interval> UnitReader::offset_of(ValueId id) const {
  if (!biases_) return {};
  const auto found = offsets_.find(id.index);
  const Box& box = found != offsets_.end() ? found->second : box_(id);
  return intervals_of(box);
}

void UnitReader::set_offset(ValueId id, const std::vector<Interval>& offset) {
  if (!biases_) return;
  const Shape& shape = graph_.value(id).type.shape;
  Box box{Tensor::zeros(ElementType::kFloat64, shape), Tensor::zeros(ElementType::kFloat64, shape)};
  for (std::size_t i = 0; i < offset.size(); ++i) {
    box.lower.doubles()[i] = offset[i].lo;
    box.upper.doubles()[i] = offset[i].hi;
  }
  offsets_[id.index] = std::move(box);
}

void UnitReader::set_offsets_behind(const Node& node) {
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

namespace {

struct UnfitMap {
  std::string why;  // empty: it is no affine map
};

// Throws UnfitMap.
RowMatrix collect_map(const Node& node, const MatrixQuery& query, Index rows, bool several) {
  const std::string unfit_weights =
      several ? fmt::format(
                    "operator {} multiplies or divides values that move with the input, as "
                    "attention does",
                    node.op->name())
              : fmt::format("operator {} has weights that are not finite", node.op->name());
  bool linear = true;
  const auto list = [&](const VisitEntry& visit) {
    Index weights = 0;
    const auto watch = [&](Index i, Index j, double lo, double hi) {
      if (++weights > kMostMapWeights) throw UnfitMap{"a map of more than 20 million weights"};
      if (!std::isfinite(lo) || !std::isfinite(hi) ||
          (several && !(hi - lo <= 1e-6 * std::fabs(lo))))
        throw UnfitMap{unfit_weights};
      visit(i, j, lo, hi);
    };
    linear = linear && node.op->matrix(query, watch);
  };
  const Index cols = query.in[static_cast<std::size_t>(query.wrt)].lower.size();
  RowMatrix map = collect_rows(rows, cols, list);
  if (!linear) throw UnfitMap{};
  return map;
}

}  // namespace

std::optional<RowMatrix> UnitReader::matrix(const Node& node, std::size_t k, std::size_t o,
                                            bool several) {
  if (auto made = ready_.extract(&node)) return std::move(made.mapped());
  std::vector<Box> boxes;
  for (const ValueId id : node.inputs) boxes.push_back(with_offset(id));
  const MatrixQuery query{boxes, static_cast<Index>(k), static_cast<Index>(o)};
  try {
    return collect_map(node, query, entries(node.outputs[o]), several);
  } catch (const UnfitMap& unfit) {
    if (unfit.why.empty()) {
      reason_ = neither_affine_nor_units(node);
    } else {
      refuse(node, unfit.why);
    }
    return std::nullopt;
  }
}

void UnitReader::prepare(const std::vector<bool>& nodes, ValueId input) {
  constexpr double kWorthPiece = 1e5, kMostInAll = 5e7;  // entries
  struct Job {
    const Node* node;
    Index wrt;
    std::vector<Box> boxes;
    std::optional<RowMatrix> map;
  };
  if (biases_) return;
  std::vector<Job> jobs;
  std::vector<bool> moving(graph_.values().size());
  moving[input.index] = true;
  double in_all = 0;
  Index units = 0;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const Node& node = graph_.nodes()[n];
    const auto moved = [&](ValueId id) { return moving[id.index]; };
    const auto wrt = std::ranges::find_if(node.inputs, moved);
    if (!nodes[n] || wrt == node.inputs.end()) continue;
    for (const ValueId id : node.outputs) moving[id.index] = true;
    if (node.op->elementwise() != nullptr) units += entries(node.outputs[0]);
    const double size =
        static_cast<double>(entries(node.outputs[0])) * static_cast<double>(entries(*wrt));
    const auto weighs = [&](ValueId id) { return static_cast<double>(entries(id)) == size; };
    if (node.outputs.size() > 1 || std::ranges::count_if(node.inputs, moved) > 1 ||
        size < kWorthPiece || in_all + size > kMostInAll ||
        std::ranges::none_of(node.inputs, weighs))
      continue;
    in_all += size;
    jobs.push_back({&node, wrt - node.inputs.begin(), {}, {}});
  }
  if (units > kMostUnitEntries) return;  // no such network
  for (Job& job : jobs) {
    for (const ValueId id : job.node->inputs) job.boxes.push_back(box_(id));
  }
  parallel_for(std::ssize(jobs), 1, [&](Index from, Index to) {
    for (Index j = from; j < to; ++j) {
      Job& job = jobs[static_cast<std::size_t>(j)];
      try {
        job.map =
            collect_map(*job.node, {job.boxes, job.wrt, 0}, entries(job.node->outputs[0]), false);
      } catch (const UnfitMap&) {  // matrix() says so
      }
    }
  });
  for (Job& job : jobs) {
    if (job.map) ready_[job.node] = *std::move(job.map);
  }
}

bool UnitReader::add_through(const Node& node, RowMatrix map, const AffineTerms& terms,
                             AffineTerms& result) {
  for (const AffineTerm& term : terms) {
    if (term.map && product_cost(map, *term.map) > kMostMapProducts)
      return refuse(node, "affine maps behind one another that are too large to multiply");
    const bool last = &term == &terms.back();
    RowMatrix through = term.map ? product(map, *term.map) : last ? std::move(map) : map;
    const auto same = std::ranges::find(result, term.node, &AffineTerm::node);
    if (same == result.end()) {
      result.push_back({term.node, std::move(through)});
    } else {
      same->map = sum(*same->map, through);
    }
  }
  return true;
}

void UnitReader::append(Index size, std::vector<Interval> slopes, AffineTerms terms) {
  UnitNode node{size, {}, std::move(slopes), {}, 0, nullptr};
  for (AffineTerm& term : terms) {
    const UnitNode& from = net_.nodes[term.node];
    node.edges.push_back({term.node, term.map ? std::move(*term.map) : identity_rows(from.size)});
    node.depth = std::max(node.depth, from.depth + 1);
  }
  net_.nodes.push_back(std::move(node));
}

bool UnitReader::add_activation(const Node& node, const Elementwise& phi) {
  auto slopes = slopes_on(phi, ranges_of(node.inputs[0]));
  if (!slopes) return refuse(node, fmt::format("operator {} has no finite slope", node.op->name()));
  const ValueId result = node.outputs[0];
  const auto line = slopes_of_line(node.inputs[0], phi);
  if (!line) return append_units(node, *std::move(slopes));
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

std::optional<std::vector<double>> UnitReader::slopes_of_line(ValueId id,
                                                              const Elementwise& phi) const {
  std::vector<double> line;
  for (const Interval& x : intervals_of(with_offset(id))) {
    const auto slope = phi.slopes(x);
    if (!slope || !(slope->lo == slope->hi)) return std::nullopt;
    line.push_back(slope->lo);
  }
  return line;
}

bool UnitReader::add_prelu(const Node& node) {
  // What the function makes of -1.
  const Shape& shape = graph_.value(node.inputs[0]).type.shape;
  Box minus{Tensor::zeros(ElementType::kFloat64, shape),
            Tensor::zeros(ElementType::kFloat64, shape)};
  std::ranges::fill(minus.lower.doubles(), -1);
  std::ranges::fill(minus.upper.doubles(), -1);
  const std::vector<Box> in{minus, box_(node.inputs[1])};
  const auto values = node.op->range(in);
  std::vector<double> below;
  for (std::size_t i = 0; i < minus.lower.doubles().size(); ++i) {
    const double value = values ? (*values)[0].lower.doubles()[i] : kNaN;
    if (!std::isfinite(value) || value != (*values)[0].upper.doubles()[i])
      return refuse(node, "slopes that are not known");
    below.push_back(-value);
  }
  if (!append_units(node, prelu_slopes_on(below, ranges_of(node.inputs[0])))) return false;
  net_.nodes.back().below = std::move(below);
  return true;
}

bool UnitReader::append_units(const Node& node, std::vector<Interval> slopes) {
  const ValueId result = node.outputs[0];
  widen(slopes);
  if (!has_room(node, slopes.size())) return false;
  append(entries(result), std::move(slopes), last_terms_of(node.inputs[0]));
  net_.nodes.back().origin = &node;
  net_.nodes.back().bias = offset_of(node.inputs[0]);
  set_offset(result, std::vector<Interval>(static_cast<std::size_t>(entries(result)), point(0)));
  values_[result.index] = {{net_.nodes.size() - 1, std::nullopt}};
  return true;
}

Index UnitNetwork::size() const {
  Index size = 0;
  for (const UnitNode& node : nodes) size += node.size;
  return size;
}

Expected<UnitNetwork> read_unit_network(const Graph& graph, const BoxOf& box,
                                        const ReadOptions& options) {
  ++networks;
  return UnitReader(graph, box, options).read();
}

std::string neither_affine_nor_units(const Node& node) {
  return fmt::format("node '{}': operator {} is neither affine nor a function of single entries",
                     node.name, node.op->name());
}

std::size_t networks_read() { return networks; }

std::optional<UnitNetwork> on_boxes(const UnitNetwork& network, const BoxOf& box) {
  std::vector<std::vector<Interval>> slopes;
  for (const UnitNode& node : network.nodes) {
    auto own = node.slopes.empty() ? std::vector<Interval>{} : slopes_on(node, box);
    if (!own) return std::nullopt;
    slopes.push_back(*std::move(own));
  }
  UnitNetwork made = network;
  for (std::size_t k = 0; k < slopes.size(); ++k) {
    made.nodes[k].slopes = std::move(slopes[k]);
    made.nodes[k].bias.clear();
  }
  return made;
}

}  // namespace lipscope
