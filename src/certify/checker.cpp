// SPDX-License-Identifier: Apache-2.0
// The checker: simple on purpose, and independent of the code that finds bounds. It follows
// docs/theory/composition.md with ranges and gains asked of the operators again.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "attention/expansion.h"
#include "base/interval.h"
#include "base/rounding.h"
#include "bounds/graph_jacobian.h"
#include "certify/document.h"
#include "linalg/operator_norm.h"
#include "lipscope/error.h"
#include "ops/entry_bounds.h"
#include "passes/split_softmax.h"
#include "pieces/bounded_region.h"
#include "pieces/cone_region.h"
#include "pieces/local_bounds.h"
#include "pieces/local_net.h"
#include "pieces/search.h"
#include "sdp/lmi.h"
#include "sdp/network_bounds.h"

namespace lipscope {
namespace {

struct Rejected {
  std::string reason;
};

template <class... Args>
[[noreturn]] void reject(fmt::format_string<Args...> text, Args&&... args) {
  throw Rejected{fmt::format(text, std::forward<Args>(args)...)};
}

using Boxes = std::vector<Box>;

Box line(const Shape& shape) {
  Box box{Tensor::zeros(ElementType::kFloat64, shape), Tensor::zeros(ElementType::kFloat64, shape)};
  std::ranges::fill(box.lower.doubles(), -kInf);
  std::ranges::fill(box.upper.doubles(), kInf);
  return box;
}

class Checker {
 public:
  Checker(const Graph& graph, const CertificateParts& parts)
      : graph_(graph), parts_(parts), split_(split_softmax(graph)) {}

  void check_upper() {
    if (!parts_.upper) reject("the certificate claims no upper bound");
    for (const GainClaim& gain : parts_.gains) {
      claimed_[{gain.node, gain.input, gain.norms.in.p(), gain.norms.out.p()}] = gain.value;
    }
    boxes_ = ranges(domain_boxes());
    if (!parts_.chains.empty()) return check_chains();
    if (!parts_.computed.empty()) return check_computed();
    if (parts_.cases) return check_cases();
    const double composed = compose();
    if (!(composed <= *parts_.upper)) {
      reject("the gains compose to {}, above the claimed upper bound {}", composed, *parts_.upper);
    }
  }

  void check_chains() {
    const NormPair& norms = parts_.statement.norms;
    const ValueId output = graph_.outputs()[0];
    const bool scalar = element_count(graph_.value(output).type.shape) == 1;
    double proved = kInf;
    for (const ChainProof& chain : parts_.chains) {
      if (norms.in != Norm(2) || (chain.whole() && norms.out != Norm(2) && !scalar))
        reject("multipliers prove constants from l2 to l2 only");
      const ValueId from = chain.from.empty() ? graph_.inputs()[0] : value_named(chain.from);
      const ValueId to = chain.at.empty() ? output : value_named(chain.at);
      const SdpNetwork network = network_of_graph(from, to);
      if (!proves(network, chain.multipliers, chain.rho))
        reject("the multipliers do not prove rho = {}", chain.rho);
      known_.push_back({from, to, constant_up(network, chain.rho)});
      if (chain.whole()) proved = known_.back().constant;
    }
    if (std::isinf(proved)) proved = compose();
    if (!(proved <= *parts_.upper))
      reject("rho gives {}, above the claimed upper bound {}", proved, *parts_.upper);
  }

  void check_computed() const {
    const double proved = computed_bound();
    if (!(proved <= *parts_.upper)) {
      reject("{} gives {}, above the claimed upper bound {}", parts_.computed, proved,
             *parts_.upper);
    }
  }

  // A bound of the graph itself on the domain.
  template <class Unsupported, class Bound>
  double graph_bound(Unsupported&& unsupported, Bound&& bound) const {
    const Domain& domain = parts_.statement.domain;
    if (const std::string reason = unsupported(graph_, domain); !reason.empty())
      reject("{}: {}", parts_.computed, reason);
    return bound(graph_, parts_.statement.norms, domain, [] { return false; }).upper;
  }

  double computed_bound() const {
    if (parts_.computed == "expansion") return graph_bound(expansion_unsupported, expansion_bound);
    if (parts_.computed == "graph-jacobian")
      return graph_bound(graph_jacobian_unsupported, graph_jacobian_bound);
    if (const LocalBound* local = find_local_bound(parts_.computed)) return local_bound(*local);
    const NetworkBound* bound = find_network_bound(parts_.computed);
    if (bound == nullptr) reject("there is no bound '{}'", parts_.computed);
    const SdpNetwork network = network_of_graph(graph_.inputs()[0], graph_.outputs()[0]);
    const NormPair& norms = parts_.statement.norms;
    if (const std::string reason = bound->unsupported(network, norms); !reason.empty())
      reject("{}: {}", parts_.computed, reason);
    return bound->upper(network, norms, {});
  }

  LayeredNet layered_net() const {
    constexpr Index kMostWeights = 20'000'000;
    const Domain& domain = parts_.statement.domain;
    const Graph& graph = split_ && !domain.everywhere() ? *split_ : graph_;
    std::string reason;
    auto net = parts_.open_units
                   ? local_net(graph, domain, kMostWeights, *parts_.open_units, reason)
                   : as_layered_net(graph, kMostWeights, reason);
    if (!net) reject("a proof for another kind of network: {}", reason);
    return *std::move(net);
  }

  double local_bound(const LocalBound& bound) const {
    if (parts_.statement.domain.everywhere()) reject("{} needs a bounded domain", bound.name);
    const LayeredNet net = layered_net();
    const NormPair& norms = parts_.statement.norms;
    if (const std::string reason = bound.unsupported(norms, net.inputs(), net.outputs());
        !reason.empty())
      reject("{}: {}", bound.name, reason);
    BoundedRegion region(net, parts_.statement.domain);
    if (!region.usable()) reject("values that are not bounded on the domain");
    return local_bound_up(bound, net, region, norms, {});
  }

  double bound_by_cases(const LayeredNet& net, const Parts& parts) const {
    const Domain& domain = parts_.statement.domain;
    if (domain.everywhere()) {
      ConeRegion region(net);
      return confirmed_bound(net, parts, region, *parts_.cases);
    }
    BoundedRegion region(net, domain);
    if (!region.usable()) reject("values that are not bounded on the domain");
    if (!region.sharpen(parts_.cases->sharp_ends)) reject("lines of another network");
    for (const Multipliers& round : parts_.cases->narrowing) {
      if (!region.narrow(round)) reject("multipliers that narrow no ranges");
    }
    return confirmed_bound(net, parts, region, *parts_.cases);
  }

  void check_cases() const {
    const LayeredNet net = layered_net();
    const auto parts = search_parts_of(parts_.statement.norms, net.inputs(), net.outputs());
    if (!parts) reject("cases prove no bound in these norms");
    const double proved = bound_by_cases(net, *parts);
    if (!(proved <= *parts_.upper))
      reject("the cases prove {}, above the claimed upper bound {}", proved, *parts_.upper);
  }

  void check_lower() const {
    if (!parts_.lower) return;
    if (!parts_.witness) reject("the lower bound has no witness");
    const Witness& witness = *parts_.witness;
    if (witness.x.size() != input_entries() || witness.y.size() != input_entries())
      reject("the witness has the wrong size");
    require_inside(witness.x);
    require_inside(witness.y);
    const Box fx = outputs_at(witness.x), fy = outputs_at(witness.y);
    std::vector<double> moved, step;
    for (std::size_t i = 0; i < fx.lower.doubles().size(); ++i) {
      const Interval change = Interval{fy.lower.doubles()[i], fy.upper.doubles()[i]} -
                              Interval{fx.lower.doubles()[i], fx.upper.doubles()[i]};
      const double least = mignitude(change);
      moved.push_back(std::isfinite(least) ? least : 0);
    }
    for (std::size_t i = 0; i < witness.x.size(); ++i) {
      step.push_back(magnitude(point(witness.y[i]) - point(witness.x[i])));
    }
    const Statement& statement = parts_.statement;
    const double distance = pnorm_up(step, statement.norms.in.p());
    const double reached = pnorm_down(moved, statement.norms.out.p());
    if (!(distance > 0) || !(div_down(reached, distance) >= *parts_.lower)) {
      reject("the witness does not reach the claimed lower bound {}", *parts_.lower);
    }
  }

 private:
  ValueId value_named(const std::string& name) const {
    for (const Node& node : graph_.nodes()) {
      for (const ValueId id : node.outputs) {
        if (graph_.value(id).name == name) return id;
      }
    }
    reject("there is no value '{}'", name);
  }

  SdpNetwork network_of_graph(ValueId from, ValueId to) const {
    constexpr Index kMost = 60'000;
    std::string reason;
    auto network =
        as_sdp_network(graph_, [&](ValueId id) -> const Box& { return boxes_[id.index]; }, kMost,
                       reason, {from, to});
    if (!network) reject("a proof for another kind of network: {}", reason);
    return *std::move(network);
  }

  using Key = std::tuple<std::string, Index, double, double>;

  std::size_t input_entries() const {
    std::size_t size = 0;
    for (const ValueId id : graph_.inputs()) {
      const ValueType& type = graph_.value(id).type;
      if (is_floating(type.type)) size += static_cast<std::size_t>(element_count(type.shape));
    }
    return size;
  }

  Boxes domain_boxes() const {
    const Domain& domain = parts_.statement.domain;
    if (domain.ball && static_cast<std::size_t>(domain.ball->center.size()) != input_entries())
      reject("the ball has the wrong size");
    if (domain.ball && !(domain.ball->radius >= 0)) reject("the ball has no radius");
    if (domain.box && (static_cast<std::size_t>(domain.box->lower.size()) != input_entries() ||
                       static_cast<std::size_t>(domain.box->upper.size()) != input_entries())) {
      reject("the box has the wrong size");
    }
    Boxes boxes;
    std::size_t at = 0;
    for (const ValueId id : graph_.inputs()) {
      const ValueType& type = graph_.value(id).type;
      if (!is_floating(type.type)) {
        boxes.push_back(integer_box(type));
        continue;
      }
      Box box = line(type.shape);
      for (std::size_t i = 0; i < box.lower.doubles().size(); ++i, ++at) {
        double& low = box.lower.doubles()[i];
        double& high = box.upper.doubles()[i];
        if (domain.ball) {
          const double center = domain.ball->center.doubles()[at];
          const double radius = std::max(domain.ball->radius, kMinSubnormal);
          low = sub_down(center, radius);
          high = add_up(center, radius);
        }
        if (domain.box) low = std::max(low, domain.box->lower.doubles()[at]);
        if (domain.box) high = std::min(high, domain.box->upper.doubles()[at]);
        if (std::isnan(low) || std::isnan(high)) reject("the domain holds NaN");
      }
      boxes.push_back(std::move(box));
    }
    return boxes;
  }

  Boxes ranges(const Boxes& inputs) const {
    Boxes boxes(graph_.values().size());
    for (std::size_t v = 0; v < boxes.size(); ++v) {
      const Value& value = graph_.values()[v];
      if (value.constant) boxes[v] = value.constant->box();
      if (!value.constant && !is_floating(value.type.type)) boxes[v] = integer_box(value.type);
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) boxes[graph_.inputs()[i].index] = inputs[i];
    for (const Node& node : graph_.nodes()) {
      Boxes in;
      bool known = true;
      for (const ValueId id : node.inputs) {
        const Value& value = graph_.value(id);
        known = known && (is_floating(value.type.type) || value.constant);
        in.push_back(boxes[id.index]);
      }
      const auto found = known ? node.op->range(in) : std::nullopt;
      for (std::size_t i = 0; i < node.outputs.size(); ++i) {
        const ValueType& type = graph_.value(node.outputs[i]).type;
        if (!is_floating(type.type)) continue;
        Box box = found ? (*found)[i] : line(type.shape);
        for (double& e : box.lower.doubles()) e = std::isnan(e) ? -kInf : e;
        for (double& e : box.upper.doubles()) e = std::isnan(e) ? kInf : e;
        boxes[node.outputs[i].index] = std::move(box);
      }
    }
    return boxes;
  }

  // The claimed gain, after the operator has confirmed that it is large enough.
  double confirmed(const Node& node, Index k, const NormPair& norms) const {
    const auto claim = claimed_.find({node.name, k, norms.in.p(), norms.out.p()});
    if (claim == claimed_.end())
      reject("node '{}': no gain {} for input {}", node.name, norms.name(), k);
    const double value = claim->second;
    if (!(value >= 0)) reject("node '{}': {} is not a gain", node.name, value);
    if (std::isinf(value)) return value;
    Boxes in;
    for (const ValueId id : node.inputs) {
      const Value& input = graph_.value(id);
      if (!is_floating(input.type.type) && !input.constant)
        reject("node '{}': an integer input varies", node.name);
      in.push_back(boxes_[id.index]);
    }
    const auto gain = node.op->gain({norms, in, k});
    if (!gain)
      reject("node '{}': operator {} has no gain {}", node.name, node.op->name(), norms.name());
    if (!(gain->value <= value)) {
      reject("node '{}': the gain {} is {} and not {}", node.name, norms.name(), gain->value,
             value);
    }
    return value;
  }

  // Constants of the maps from the inputs to each value, in the input and in the output norm.
  double compose() const {
    const auto& [in_norm, out_norm] = parts_.statement.norms;
    std::vector<double> in(graph_.values().size()), out(graph_.values().size());
    for (const ValueId id : graph_.inputs()) {
      const ValueType& type = graph_.value(id).type;
      const Index size = element_count(type.shape);
      if (!is_floating(type.type) || size == 0) continue;
      in[id.index] = 1;
      out[id.index] = norm_equivalence_up(size, in_norm, out_norm);
    }
    for (const Node& node : needed_nodes()) {
      std::vector<double> in_parts, out_parts;
      for (std::size_t k = 0; k < node.inputs.size(); ++k) {
        const double from_in = in[node.inputs[k].index], from_out = out[node.inputs[k].index];
        if (from_in == 0 && from_out == 0) continue;
        // Before a part that is known otherwise: no gain makes it finite, and none is claimed.
        if (std::isinf(from_in) && std::isinf(from_out)) {
          in_parts.push_back(kInf);
          out_parts.push_back(kInf);
          continue;
        }
        const auto input = static_cast<Index>(k);
        in_parts.push_back(gain_mul_up(confirmed(node, input, {in_norm, in_norm}), from_in));
        out_parts.push_back(
            in_norm == out_norm
                ? in_parts.back()
                : std::min(gain_mul_up(confirmed(node, input, {out_norm, out_norm}), from_out),
                           gain_mul_up(confirmed(node, input, {in_norm, out_norm}), from_in)));
      }
      if (in_parts.empty()) continue;
      const bool disjoint = node.op->inputs_move_disjoint_outputs();
      for (const ValueId id : node.outputs) in[id.index] = out[id.index] = kInf;
      in[node.outputs[0].index] = disjoint ? pnorm_up(in_parts, in_norm.p()) : sum_up(in_parts);
      out[node.outputs[0].index] = disjoint ? pnorm_up(out_parts, out_norm.p()) : sum_up(out_parts);
      for (const ValueId id : node.outputs) {
        for (const KnownPart& known : known_) {
          if (known.to != id) continue;
          in[id.index] = std::min(in[id.index], gain_mul_up(known.constant, in[known.from.index]));
          if (in_norm == out_norm) out[id.index] = in[id.index];
        }
      }
    }
    return out[graph_.outputs()[0].index];
  }

  std::vector<Node> needed_nodes() const {
    std::vector<bool> live(graph_.values().size());
    live[graph_.outputs()[0].index] = true;
    std::vector<Node> nodes;
    for (std::size_t n = graph_.nodes().size(); n-- > 0;) {
      const Node& node = graph_.nodes()[n];
      if (std::ranges::none_of(node.outputs, [&](ValueId id) { return live[id.index]; })) continue;
      for (const ValueId id : node.inputs) live[id.index] = true;
      nodes.push_back(node);
    }
    std::ranges::reverse(nodes);
    return nodes;
  }

  void require_inside(const std::vector<double>& x) const {
    const Domain& domain = parts_.statement.domain;
    std::vector<double> away;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (!std::isfinite(x[i])) reject("the witness is not finite");
      if (domain.box && !(x[i] >= domain.box->lower.at(static_cast<Index>(i)) &&
                          x[i] <= domain.box->upper.at(static_cast<Index>(i)))) {
        reject("the witness leaves the box");
      }
      if (domain.ball)
        away.push_back(magnitude(point(x[i]) - point(domain.ball->center.doubles()[i])));
    }
    if (domain.ball && !(pnorm_up(away, domain.ball->norm.p()) <= domain.ball->radius))
      reject("the witness leaves the ball");
  }

  Box outputs_at(const std::vector<double>& x) const {
    Boxes inputs;
    std::size_t at = 0;
    for (const ValueId id : graph_.inputs()) {
      const ValueType& type = graph_.value(id).type;
      Tensor tensor = Tensor::zeros(type.type, type.shape);
      if (is_floating(type.type)) {
        for (double& entry : tensor.doubles()) entry = x[at++];
      }
      inputs.push_back({tensor, tensor});
    }
    return ranges(inputs)[graph_.outputs()[0].index];
  }

  const Graph& graph_;
  const CertificateParts& parts_;
  std::optional<Graph> split_;  // of a network that ends in a softmax
  std::map<Key, double> claimed_;
  // Constants in the input norm that hold otherwise.
  struct KnownPart {
    ValueId from, to;
    double constant;
  };
  std::vector<KnownPart> known_;
  Boxes boxes_;
};

}  // namespace

CheckResult check_certificate(const OnnxModel& model, const std::string& text) {
  const Json document = Json::parse(text, nullptr, false);
  if (document.is_discarded() || !document.is_object())
    throw Error(ErrorCode::kBadFile, "the certificate is not JSON");
  CheckResult result;
  if (document.contains("claim")) result.claim = to_text(document["claim"]);
  try {
    require_schema(document);
    if (!document.contains("sha256") || document["sha256"] != certificate_digest(document)) {
      reject("the digest does not fit the document: it was changed or damaged");
    }
    const CertificateParts parts = read_certificate(document);
    if (parts.statement.model_sha256 != model.sha256())
      reject("the certificate is about another model file");
    const Selected selected =
        select(model.graph(parts.statement.options), parts.statement.selection);
    Checker checker(selected.graph, parts);
    checker.check_upper();
    checker.check_lower();
    result.valid = true;
  } catch (const Rejected& rejected) {
    result.reason = rejected.reason;
  }
  return result;
}

}  // namespace lipscope
