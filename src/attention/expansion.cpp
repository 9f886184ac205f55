// SPDX-License-Identifier: Apache-2.0
#include "attention/expansion.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "attention/dependence.h"
#include "attention/find.h"
#include "attention/head_ball.h"
#include "attention/head_weights.h"
#include "base/parallel.h"
#include "base/rounding.h"
#include "bounds/derivative_boxes.h"
#include "bounds/jumps.h"
#include "linalg/norm/operator_norm.h"
#include "ops/elementwise/elementwise.h"
#include "ops/facets/box_product.h"

namespace lipscope {
namespace {

constexpr double kMostEntries = 6e7;  // of all Jacobians that are formed
constexpr double kMostWork = 4e9;     // entries of matrices visited for them

// Something that is not affine, from value `in` to value `out`.
struct Unit {
  ValueId in, out;
  const Elementwise* curve = nullptr;  // or one of these:
  std::optional<AttentionBlock> block = {};
  const Node* rows = nullptr;  // softmax or a normalisation
};

Index entries_of(const Graph& graph, ValueId id) {
  return element_count(graph.value(id).type.shape);
}

// Values that depend on the products of queries and keys, up to what is mixed. Nothing when one of
// them is used elsewhere.
std::optional<std::vector<bool>> inside_of(const Dependence& dependence,
                                           const AttentionBlock& block) {
  const Graph& graph = dependence.graph();
  std::vector<bool> inside(graph.values().size());
  inside[block.products.index] = true;
  for (const Node& node : graph.nodes()) {
    const bool any = std::ranges::any_of(node.inputs, [&](ValueId id) { return inside[id.index]; });
    if (!any) continue;
    for (const ValueId id : node.outputs) {
      if (id == block.mixed) continue;
      if (!dependence.depends(block.mixed, id)) return std::nullopt;
      inside[id.index] = true;
    }
  }
  return inside;
}

struct Units {
  std::vector<Unit> list;  // in the order of the graph
  std::string reason;      // why there are none; empty: they are all of them
};

Units find_units(const Graph& graph) {
  Dependence dependence(graph);
  Units units;
  std::vector<bool> covered(graph.values().size());
  for (AttentionBlock& block : find_attention(graph)) {
    if (block.kind != AttentionKind::kSelf) continue;
    const auto inside = inside_of(dependence, block);
    if (!inside) continue;
    for (std::size_t v = 0; v < covered.size(); ++v) covered[v] = covered[v] || (*inside)[v];
    covered[block.mixed.index] = true;
    const ValueId in = block.sources[0], out = block.mixed;
    units.list.push_back({.in = in, .out = out, .block = std::move(block)});
  }
  for (const Node& node : graph.nodes()) {
    const ValueId out = node.outputs[0];
    if (!dependence.moves(out) || covered[out.index] || dependence.affine(node)) continue;
    const Elementwise* curve = node.op->elementwise();
    if (node.op->box_product() != nullptr && node.outputs.size() == 1 &&
        dependence.moving_input(node) == std::size_t{0}) {
      units.list.push_back({.in = node.inputs[0], .out = out, .rows = &node});
      continue;
    }
    if (curve == nullptr) {
      units.reason = "node '" + node.name + "': operator " + std::string(node.op->name()) +
                     " is neither affine nor a function of single entries or rows nor part of "
                     "attention that is covered";
      return units;
    }
    units.list.push_back({.in = node.inputs[0], .out = out, .curve = curve});
  }
  std::ranges::sort(units.list, {}, [](const Unit& unit) { return unit.out; });
  return units;
}

// The rows of one Jacobian: with respect to the input, and to the output of each unit before.
struct Jacobians {
  CentredMatrix input;
  std::vector<CentredMatrix> units;
};

// Rows times a number each, columns times a number each; both empty: 1.
CentredMatrix scaled(const CentredMatrix& a, std::span<const double> rows,
                     std::span<const double> cols) {
  IntervalMatrix out(a.rows, a.cols);
  for (Index i = 0; i < a.rows; ++i) {
    for (Index j = 0; j < a.cols; ++j) {
      const auto at = static_cast<std::size_t>(i * a.cols + j);
      Interval entry{sub_down(a.middle[at], a.radius[at]), add_up(a.middle[at], a.radius[at])};
      if (!rows.empty()) entry *= point(rows[static_cast<std::size_t>(i)]);
      if (!cols.empty()) entry *= point(cols[static_cast<std::size_t>(j)]);
      out(i, j) = entry;
    }
  }
  return CentredMatrix(out);
}

// Norm of the rows and columns that do not vanish.
double norm_of(const CentredMatrix& a, std::span<const double> rows, std::span<const double> cols) {
  std::vector<Index> kept_rows, kept_cols;
  for (Index i = 0; i < a.rows; ++i) {
    if (rows.empty() || rows[static_cast<std::size_t>(i)] > 0) kept_rows.push_back(i);
  }
  for (Index j = 0; j < a.cols; ++j) {
    if (cols.empty() || cols[static_cast<std::size_t>(j)] > 0) kept_cols.push_back(j);
  }
  if (kept_rows.empty() || kept_cols.empty()) return 0;
  CentredMatrix part(static_cast<Index>(kept_rows.size()), static_cast<Index>(kept_cols.size()));
  std::vector<double> row_factors, col_factors;
  for (const Index i : kept_rows)
    row_factors.push_back(rows.empty() ? 1 : rows[static_cast<std::size_t>(i)]);
  for (const Index j : kept_cols)
    col_factors.push_back(cols.empty() ? 1 : cols[static_cast<std::size_t>(j)]);
  for (std::size_t i = 0; i < kept_rows.size(); ++i) {
    for (std::size_t j = 0; j < kept_cols.size(); ++j) {
      const auto from = static_cast<std::size_t>(kept_rows[i] * a.cols + kept_cols[j]);
      part.middle[i * kept_cols.size() + j] = a.middle[from];
      part.radius[i * kept_cols.size() + j] = a.radius[from];
    }
  }
  return spectral_norm_up(scaled(part, row_factors, col_factors));
}

std::vector<double> row_lengths_up(const CentredMatrix& a, std::span<const double> cols) {
  std::vector<double> out, row(static_cast<std::size_t>(a.cols));
  for (Index i = 0; i < a.rows; ++i) {
    for (std::size_t j = 0; j < row.size(); ++j) {
      const std::size_t at = static_cast<std::size_t>(i * a.cols) + j;
      row[j] = mul_up(add_up(std::fabs(a.middle[at]), a.radius[at]), cols.empty() ? 1 : cols[j]);
    }
    out.push_back(norm2_up(row));
  }
  return out;
}

class Expander {
 public:
  Expander(const Graph& graph, const Domain& domain, std::vector<Unit> units,
           const std::function<bool()>& should_stop)
      : graph_(graph),
        radius_(domain.ball->radius),
        units_(std::move(units)),
        should_stop_(should_stop),
        derivative_(graph, centre_boxes(graph, domain)) {
    derivative_.prepare(graph.outputs()[0]);
  }

  Expansion run() {
    for (std::size_t i = 0; i < units_.size(); ++i) {
      if (!jacobians(units_[i].in, i)) return failed();
      if (!weigh(i)) return failed();
    }
    if (!jacobians(graph_.outputs()[0], units_.size())) return failed();
    double upper = norm_of(now_.input, {}, {});
    for (std::size_t l = 0; l < units_.size(); ++l)
      upper = add_up(upper, gain_mul_up(norm_of(now_.units[l], {}, out_[l]), reach_[l]));
    if (std::isfinite(upper)) return {upper, {}};
    return {kInf, "the bound is above the largest double"};
  }

 private:
  static std::vector<Box> centre_boxes(const Graph& graph, const Domain& domain) {
    std::vector<Box> boxes;
    for (const Tensor& tensor : split_inputs(graph, domain.ball->center.doubles()))
      boxes.push_back({tensor, tensor});
    return boxes;
  }

  Expansion failed() const {
    return {kInf, should_stop_() ? "stopped" : (reason_.empty() ? "no derivative" : reason_)};
  }

  // Of a value, with respect to the input and the outputs of the first units.
  bool jacobians(ValueId value, std::size_t units) {
    const Index rows = entries_of(graph_, value);
    std::vector<ValueId> taps;
    for (std::size_t l = 0; l < units; ++l) taps.push_back(units_[l].out);
    now_.input = CentredMatrix(rows, input_size(graph_));
    now_.units.clear();
    for (const ValueId tap : taps) now_.units.emplace_back(rows, entries_of(graph_, tap));
    std::atomic<bool> known = true;
    parallel_for(rows, 4, [&](Index from, Index to) {
      std::vector<double> weights(static_cast<std::size_t>(rows));
      for (Index r = from; r < to && known; ++r) {
        std::ranges::fill(weights, 0.0);
        weights[static_cast<std::size_t>(r)] = 1;
        const auto found =
            should_stop_() ? std::nullopt : derivative_.pull_rows(weights, value, taps);
        if (!found) {
          known = false;
          return;
        }
        write_row((*found)[0], r, now_.input);
        for (std::size_t l = 0; l < taps.size(); ++l) write_row((*found)[1 + l], r, now_.units[l]);
      }
    });
    return known;
  }

  static void write_row(const DerivativeBoxes::Row& row, Index r, CentredMatrix& to) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::size_t at = static_cast<std::size_t>(r * to.cols) + c;
      to.middle[at] = midpoint(row[c]);
      to.radius[at] = is_bounded(row[c]) ? radius_up(row[c]) : kInf;
    }
  }

  // How far the input of unit i moves, what its Jacobian changes by then, and the weights of that.
  bool weigh(std::size_t i) {
    std::vector<double> reach = row_lengths_up(now_.input, {});
    double whole = norm_of(now_.input, {}, {});
    for (std::size_t l = 0; l < i; ++l) {
      const std::vector<double> more = row_lengths_up(now_.units[l], out_[l]);
      for (std::size_t k = 0; k < reach.size(); ++k)
        reach[k] = add_up(reach[k], gain_mul_up(more[k], reach_[l]));
      whole = add_up(whole, gain_mul_up(norm_of(now_.units[l], {}, out_[l]), reach_[l]));
    }
    for (double& e : reach) e = gain_mul_up(e, radius_);
    const Unit& unit = units_[i];
    std::vector<double> in, out;
    if (unit.curve != nullptr) {
      const auto change = slope_changes(unit, reach);
      if (!change) return false;
      in = out = *change;
    } else {
      const double moved = gain_mul_up(whole, radius_);
      const double change = unit.block ? attention_change(unit, moved) : row_change(unit, moved);
      if (!std::isfinite(change)) return false;
      in.assign(static_cast<std::size_t>(entries_of(graph_, unit.in)), sqrt_up(change));
      out.assign(static_cast<std::size_t>(entries_of(graph_, unit.out)), sqrt_up(change));
    }
    double weight = norm_of(now_.input, in, {});
    for (std::size_t l = 0; l < i; ++l)
      weight = add_up(weight, gain_mul_up(norm_of(now_.units[l], in, out_[l]), reach_[l]));
    out_.push_back(std::move(out));
    reach_.push_back(weight);
    return std::isfinite(weight);
  }

  // Roots of the largest changes of the slopes.
  std::optional<std::vector<double>> slope_changes(const Unit& unit,
                                                   const std::vector<double>& reach) {
    const Box& at = derivative_.values().at(unit.in);
    const auto low = at.lower.doubles(), high = at.upper.doubles();
    std::vector<double> roots;
    for (std::size_t k = 0; k < reach.size(); ++k) {
      const Interval near{sub_down(low[k], reach[k]), add_up(high[k], reach[k])};
      const auto here = unit.curve->slopes({low[k], high[k]}), all = unit.curve->slopes(near);
      if (!here || !all || !is_bounded(*all) || !is_bounded(*here)) {
        reason_ = "slopes that are not bounded";
        return std::nullopt;
      }
      const double change = std::max(sub_up(all->hi, here->lo), sub_up(here->hi, all->lo));
      roots.push_back(sqrt_up(std::max(change, 0.0)));
    }
    return roots;
  }

  double row_change(const Unit& unit, double distance) {
    if (distance == 0) return 0;
    std::vector<Box> boxes;
    for (const ValueId id : unit.rows->inputs) boxes.push_back(derivative_.values().at(id));
    const double change = unit.rows->op->box_product()->derivative_change_up(boxes, distance);
    if (!std::isfinite(change))
      reason_ = "node '" + unit.rows->name + "': its derivative is not bounded on the ball";
    return change;
  }

  // What the Jacobian of all heads changes by when tokens move by `distance`.
  double attention_change(const Unit& unit, double distance) {
    constexpr int kShells = 3;
    if (distance == 0) return 0;
    const auto weights = head_weights(graph_, *unit.block);
    const auto* heads = std::get_if<std::vector<HeadWeights>>(&weights);
    if (heads == nullptr || !std::isfinite(distance)) {
      reason_ = heads == nullptr ? std::get<std::string>(weights) : "tokens that are not bounded";
      return kInf;
    }
    // Heads are centred at doubles near the tokens.
    const Box& at = derivative_.values().at(unit.in);
    std::vector<double> tokens, radii;
    for (std::size_t k = 0; k < at.lower.doubles().size(); ++k) {
      const Interval token{at.lower.doubles()[k], at.upper.doubles()[k]};
      tokens.push_back(midpoint(token));
      radii.push_back(radius_up(token));
    }
    const double off = norm2_up(radii);
    std::vector<double> squares;
    for (const HeadWeights& head : *heads) {
      const HeadAt here(head, tokens);
      double change = 0, done = 0;
      for (int k = 1; k <= kShells; ++k) {
        const double to = k == kShells ? distance : distance * k / kShells;
        const HeadBall ball(here, add_up(to, off), TokenNorm::kFrobenius);
        change = add_up(change, gain_mul_up(sub_up(to, done), ball.curvature()));
        done = to;
      }
      squares.push_back(mul_up(change, change));
    }
    return sqrt_up(sum_up(squares));
  }

  const Graph& graph_;
  double radius_;
  std::vector<Unit> units_;
  const std::function<bool()>& should_stop_;
  DerivativeBoxes derivative_;
  Jacobians now_;
  // By unit: roots of what each entry of the Jacobian's columns can change by, and the largest norm
  // of the weighted derivative of its input.
  std::vector<std::vector<double>> out_;
  std::vector<double> reach_;
  std::string reason_;
};

Expansion euclidean_bound(const Graph& graph, const Domain& domain,
                          const std::function<bool()>& should_stop) {
  Units units = find_units(graph);
  // At a point no unit changes, but the limit of small balls sees what jumps there [local-5].
  if (domain.ball->radius == 0) {
    units = {};
    const std::string jump =
        jump_next_to(graph, split_inputs(graph, domain.ball->center.doubles()));
    if (!jump.empty()) return {kInf, "node '" + jump + "': no bounded slope next to the point"};
  }
  if (!units.reason.empty()) return {kInf, units.reason};
  const double inputs = static_cast<double>(input_size(graph));
  double rows = static_cast<double>(entries_of(graph, graph.outputs()[0])), before = inputs;
  double largest = rows * inputs, all_rows = rows;
  for (const Unit& unit : units.list) {
    const double own = static_cast<double>(entries_of(graph, unit.in));
    largest = std::max(largest, own * before);
    all_rows += own;
    before += static_cast<double>(entries_of(graph, unit.out));
  }
  if (largest > kMostEntries) return {kInf, "too large to form the Jacobians"};
  double visits = 0;
  for (const Value& value : graph.values())
    visits += static_cast<double>(element_count(value.type.shape));
  if (all_rows * visits > kMostWork) return {kInf, "too large to form the Jacobians"};
  return Expander(graph, domain, std::move(units.list), should_stop).run();
}

}  // namespace

std::string expansion_unsupported(const Graph& graph, const Domain& domain) {
  if (!domain.ball) return "the domain is no ball";
  if (input_size(graph) == 0) return "no floating input";
  for (const ValueId id : graph.inputs()) {
    if (!is_floating(graph.value(id).type.type)) return "an integer input";
  }
  return {};
}

Expansion expansion_bound(const Graph& graph, const NormPair& norms, const Domain& domain,
                          const std::function<bool()>& should_stop) {
  const Index size = input_size(graph), outputs = entries_of(graph, graph.outputs()[0]);
  Domain around = domain;
  Ball& ball = *around.ball;
  ball.radius = gain_mul_up(ball.radius, norm_equivalence_up(size, ball.norm, Norm(2)));
  ball.norm = Norm(2);
  Expansion found = euclidean_bound(graph, around, should_stop);
  const double apart = mul_up(norm_equivalence_up(size, norms.in, Norm(2)),
                              norm_equivalence_up(outputs, Norm(2), norms.out));
  found.upper = gain_mul_up(found.upper, apart);
  return found;
}

}  // namespace lipscope
