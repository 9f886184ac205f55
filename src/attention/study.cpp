// SPDX-License-Identifier: Apache-2.0
#include "attention/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "attention/dependence.h"
#include "attention/expansion.h"
#include "attention/head_weights.h"
#include "attention/part.h"
#include "attention/published.h"
#include "attention/special_heads.h"
#include "base/checkpoint.h"
#include "base/memory_budget.h"
#include "base/parallel.h"
#include "bounds/boxes.h"
#include "bounds/graph_jacobian.h"
#include "graph/copier.h"
#include "lipscope/error.h"

namespace lipscope {
namespace {

constexpr Index kMostJacobianEntries = Index{1} << 25;  // of one head, formed entry by entry

// Scores of one head as rows; what a mask removes is minus infinity.
Tensor head_scores(const AttentionBlock& block, const Tensor& scores, Index head) {
  Tensor out = Tensor::zeros(ElementType::kFloat64, {block.rows, block.columns});
  const auto rows = out.doubles();
  if (block.to_scores.source.empty()) {
    for (std::size_t i = 0; i < rows.size(); ++i)
      rows[i] = scores.at(head * block.rows * block.columns + static_cast<Index>(i));
    return out;
  }
  std::map<Index, Index> place;
  for (std::size_t p = 0; p < block.to_scores.source.size(); ++p) {
    if (block.to_scores.source[p] >= 0) place[block.to_scores.source[p]] = static_cast<Index>(p);
  }
  for (Index i = 0; i < block.rows; ++i) {
    for (Index j = 0; j < block.columns; ++j) {
      const auto found = place.find(product_place(block, head, i, j));
      rows[static_cast<std::size_t>(i * block.columns + j)] =
          found == place.end() ? -kInf : scores.at(found->second);
    }
  }
  return out;
}

void check_scores(const Tensor& rows, const AttentionBlock& block, Index head,
                  const std::string& name) {
  constexpr double kHidden = -1e8;
  for (Index i = 0; i < block.rows; ++i) {
    bool seen = false;
    for (Index j = 0; j < block.columns; ++j) {
      const double score = rows.at(i * block.columns + j);
      if (std::isnan(score) || score == kInf) {
        throw Error(ErrorCode::kBadFile,
                    fmt::format("{}: node '{}': score ({}, {}) of head {} is {}; check the input "
                                "for values that are too large",
                                name, block.node, i, j, head, score));
      }
      seen = seen || score > kHidden;
    }
    if (!seen) {
      throw Error(ErrorCode::kBadFile,
                  fmt::format("{}: node '{}': the mask hides all of row {} of head {}; give a "
                              "mask that leaves an entry",
                              name, block.node, i, head));
    }
  }
}

// Statistics of one row of probabilities.
struct RowFigures {
  double entropy = 0, spread = 0, first = 0, ratio = 0;
  bool near_half = false;
};

RowFigures row_figures(std::span<const double> scores, Index rank) {
  RowFigures out;
  double top = -kInf, bottom = kInf;
  for (const double s : scores) {
    top = std::max(top, s);
    if (s > -kInf) bottom = std::min(bottom, s);
  }
  std::vector<double> p;
  double total = 0;
  for (const double s : scores) {
    p.push_back(std::exp(s - top));
    total += p.back();
  }
  for (double& x : p) {
    x /= total;
    if (x > 0) out.entropy -= x * std::log(x);
    out.near_half = out.near_half || (x >= 0.4 && x <= 0.6);
  }
  out.spread = top - bottom;
  std::ranges::sort(p, std::greater<>());
  const auto g = [&](std::size_t k) {  // g_k, k from 1
    const double next = k < p.size() ? p[k] : 0;
    return p[k - 1] * (1 - p[k - 1] + next);
  };
  out.first = g(1);
  const double kth = g(std::min(static_cast<std::size_t>(rank), p.size()));
  out.ratio = kth > 0 ? out.first / kth : kInf;
  return out;
}

void describe_rows(const Tensor& scores, const AttentionQuery& question, HeadReport& head,
                   const std::string& name) {
  SoftmaxQuestion ask;
  ask.norms = question.norms;
  ask.epsilons = question.epsilons;
  ask.seed = question.seed;
  ask.rows = false;
  const SoftmaxReport report = study_softmax(scores, ask, name);
  head.softmax = report.summary;
  head.empirical = report.empirical;
  const Index rows = scores.shape()[0], columns = scores.shape()[1];
  double near_half = 0;
  for (Index i = 0; i < rows; ++i) {
    const RowFigures row =
        row_figures(scores.doubles().subspan(static_cast<std::size_t>(i * columns),
                                             static_cast<std::size_t>(columns)),
                    question.jasmin_rank);
    head.entropy += row.entropy / static_cast<double>(rows);
    head.score_spread = std::max(head.score_spread, row.spread);
    near_half += row.near_half ? 1 : 0;
    head.jasmin = std::max(head.jasmin, row.first);
    head.jasmin_ratio = std::max(head.jasmin_ratio, row.ratio);
  }
  head.near_half = near_half / static_cast<double>(rows);
}

void keep_least(std::optional<Bound>& best, double value, const std::string& theorem) {
  if (std::isfinite(value) && (!best || value < best->value))
    best = Bound{value, Guarantee::kProved, theorem};
}

// What the theorems say about one head.
void bound_head(const HeadAt& at, const AttentionQuery& question, bool form_jacobian,
                HeadReport& head) {
  const auto add = [&](const char* name, const char* norm, double value, Guarantee guarantee,
                       const char* theorem) {
    head.bounds.push_back({name, norm, value, guarantee, theorem});
    return value;
  };
  const auto ours = [&](const char* name, double value, const char* theorem) {
    keep_least(head.upper, add(name, "2:2", value, Guarantee::kProved, theorem), theorem);
  };
  double lower = at.stretch_down(at.direction());
  if (form_jacobian) {
    const JacobianNorm norm = at.explicit_norm(kMostJacobianEntries);
    lower = std::max(lower, norm.lower);
    if (std::isfinite(norm.upper)) ours("explicit", norm.upper, "attention-2");
  }
  head.lower = Bound{lower, Guarantee::kProved, "attention-2"};
  ours("covariance", at.covariance_bound(), "attention-3");
  ours("block", at.block_bound(), "attention-4");
  const double each =
      add("token-max", "token-max", at.token_max_bound(), Guarantee::kProved, "attention-5");
  const double radius = question.radius.value_or(0);
  const bool frobenius = question.ball == TokenNorm::kFrobenius;
  add("yudin", "2:2", yudin_bound(at), Guarantee::kReal, "attention-10");
  if (const auto castin = castin_bound(at, radius))
    add("castin", "2:2", *castin, Guarantee::kReal, "attention-11");
  if (const auto hu = hu_bound(at, radius)) add("hu", "2:2", *hu, Guarantee::kReal, "attention-12");
  if (!question.radius) return;
  const HeadBall ball(at, radius, question.ball);
  const char* norm = frobenius ? "2:2" : "token-max";
  const auto on_ball = [&](const char* name, double value, const char* theorem) {
    keep_least(head.ball_upper, add(name, norm, value, Guarantee::kProved, theorem), theorem);
  };
  head.ball_lower = head.lower;  // the centre is in the ball
  if (!frobenius) {
    const double reached = at.token_max_stretch_down(at.token_max_direction());
    head.ball_lower = Bound{reached, Guarantee::kProved, "attention-5"};
  }
  const double centre = frobenius ? head.upper->value : each;
  on_ball("ball: taylor", taylor_bound(at, centre, radius, question.ball), "attention-9");
  on_ball("ball: covariance", ball.covariance_bound(), "attention-8");
  on_ball("ball: lengths", ball.length_bound(), "attention-6");
  if (frobenius)
    add("ball: yudin", "2:2", yudin_bound(at, ball, radius), Guarantee::kReal, "attention-10");
}

// The latest value through which alone the inputs reach `end`.
ValueId bottleneck(const Dependence& dependence, ValueId end) {
  const Graph& graph = dependence.graph();
  for (std::uint32_t v = end.index; v-- > 0;) {
    const ValueId candidate{v};
    if (!dependence.moves(candidate) || !dependence.depends(end, candidate)) continue;
    std::vector<bool> seen(graph.values().size());
    std::vector<ValueId> open{end};
    bool separates = true;
    while (!open.empty() && separates) {
      const ValueId id = open.back();
      open.pop_back();
      if (id == candidate || seen[id.index] || !dependence.moves(id)) continue;
      seen[id.index] = true;
      const Node* maker = dependence.maker(id);
      separates = maker != nullptr;
      if (maker != nullptr) open.insert(open.end(), maker->inputs.begin(), maker->inputs.end());
    }
    if (separates) return candidate;
  }
  return graph.inputs()[0];
}

// Entries of `mixed` that belong to a head.
std::vector<Index> head_rows(const AttentionBlock& block, Index head) {
  const HeadPlaces places = mixed_places(block);
  std::vector<Index> rows;
  for (std::size_t i = 0; i < places.token.size(); ++i) {
    for (std::size_t c = 0; c < places.component.size(); ++c)
      rows.push_back(places(head, static_cast<Index>(i), static_cast<Index>(c)));
  }
  return rows;
}

// The gain of the affine nodes from `mixed` to the output of a block; infinite where unknown.
double projection_gain(const Dependence& dependence, const AttentionBlock& block) {
  double gain = 1;
  for (ValueId at = block.output; at != block.mixed;) {
    const Node& node = *dependence.maker(at);
    const std::size_t input = *dependence.moving_input(node);
    const std::vector<Box> boxes = dependence.loose_boxes(node);
    const auto own = node.op->gain({{Norm(2), Norm(2)}, boxes, static_cast<Index>(input), false});
    gain = own ? gain_mul_up(gain, own->value) : kInf;
    at = node.inputs[input];
  }
  return gain;
}

class Study {
 public:
  Study(const MovingModel& model, const AttentionQuery& question, const std::string& name,
        const RunClock& clock)
      : model_(model),
        question_(question),
        name_(name),
        clock_(clock),
        dependence_(model.graph),
        trace_(model.graph, model.inputs) {
    effort_.should_stop = should_stop_;
    effort_.tolerance = 1e-8;
    effort_.steps = 60;
  }

  AttentionReport run(std::vector<AttentionBlock> blocks) {
    AttentionReport report{.from = model_.from};
    for (AttentionBlock& block : blocks) {
      BlockReport& out = report.blocks.emplace_back();
      out.block = std::move(block);
      for (Index h = 0; h < out.block.heads; ++h) {
        const Tensor scores = head_scores(out.block, trace_.value(out.block.scores), h);
        check_scores(scores, out.block, h, name_);
        HeadReport& head = out.heads.emplace_back();
        head.head = h;
        describe_rows(scores, question_, head, name_);
      }
    }
    const auto start = std::chrono::steady_clock::now();
    const bool whole = ends_by(half_way(), [&] { model_at_point(report); });
    report.model_seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    for (BlockReport& block : report.blocks)
      report.complete = ends_by(clock_.limit(), [&] { examine(block); }) && report.complete;
    if (!whole)
      report.complete = ends_by(clock_.limit(), [&] { model_at_point(report); }) && report.complete;
    if (question_.radius && question_.ball == TokenNorm::kFrobenius)
      report.complete = ends_by(clock_.limit(), [&] { model_on_ball(report); }) && report.complete;
    settle(report);
    return report;
  }

 private:
  // The Frobenius norm of the tokens is the l2 norm of all entries: what holds at the centre is a
  // lower bound on its balls, and there are no bounds of blocks and models in another norm.
  void settle(AttentionReport& report) const {
    const auto close = [&](auto& part) {
      if (question_.radius && question_.ball == TokenNorm::kFrobenius) part.ball_lower = part.lower;
      uncross(part.lower, part.upper);
      uncross(part.ball_lower, part.ball_upper);
    };
    close(report);
    for (BlockReport& block : report.blocks) {
      close(block);
      for (HeadReport& head : block.heads) close(head);
    }
  }

  double half_way() const { return 0.5 * (clock_.now() + clock_.limit()); }

  // Whether the work ends before the time is up, a little after which it is ended, and before
  // memory is.
  bool ends_by(double time, const std::function<void()>& work) const {
    if (clock_.passed(time)) return false;
    try {
      const RunScope scope(clock_, cut_after(time, time - clock_.now()));
      work();
    } catch (const Stopped&) {
      return false;
    } catch (const std::bad_alloc&) {
      relieve_memory();
      return false;
    }
    return !clock_.passed(time);
  }

  LocalNormEffort model_effort() const {
    LocalNormEffort effort = effort_;
    effort.proof = 1e9;
    effort.wide = 4e9;
    effort.tolerance = 1e-10;
    effort.steps = 150;
    return effort;
  }

  void model_at_point(AttentionReport& report) const {
    const LocalNorm norm = local_norm(model_.graph, model_.inputs, {}, model_effort());
    report.lower = norm.lower;
    report.upper = norm.upper;
  }

  void model_on_ball(AttentionReport& report) const {
    Domain domain;
    std::vector<double> all;
    for (const Tensor& tensor : model_.inputs) {
      for (Index i = 0; i < tensor.size(); ++i) all.push_back(tensor.at(i));
    }
    domain.ball = Ball{Tensor::vector(std::move(all)), *question_.radius, Norm(2)};
    if (const auto upper =
            box_norm_up(model_.graph, input_boxes(model_.graph, domain), {}, model_effort()))
      report.ball_upper = Bound{*upper, Guarantee::kProved, "attention-17"};
    const NormPair norms{Norm(2), Norm(2)};
    const auto offer = [&](double upper, const char* theorem) {
      if (upper < (report.ball_upper ? report.ball_upper->value : kInf))
        report.ball_upper = Bound{upper, Guarantee::kProved, theorem};
    };
    if (graph_jacobian_unsupported(model_.graph, domain).empty()) {
      offer(graph_jacobian_bound(model_.graph, norms, domain, should_stop_).upper, "local-14");
    } else if (expansion_unsupported(model_.graph, domain).empty()) {
      offer(expansion_bound(model_.graph, norms, domain, should_stop_).upper, "attention-18");
    }
  }

  void examine(BlockReport& out) {
    const AttentionBlock& block = out.block;
    auto weights = head_weights(model_.graph, block);
    if (auto* heads = std::get_if<std::vector<HeadWeights>>(&weights)) {
      examine_heads(out, *heads);
    } else {
      out.outside = std::get<std::string>(weights);
    }
    std::vector<ValueId> sources = block.sources;
    if (sources.empty()) sources = {bottleneck(dependence_, block.mixed)};
    std::vector<Tensor> tokens;
    for (const ValueId id : sources) tokens.push_back(trace_.value(id));
    if (!out.outside.empty()) {
      if (sources.size() == 1) add_special(out, sources[0]);
      const Graph part = graph_part(model_.graph, sources, std::vector{block.mixed});
      // Heads side by side: each is too small for all threads.
      parallel_for(block.heads, 1, [&](Index from, Index to) {
        for (Index h = from; h < to && !should_stop_(); ++h) {
          HeadReport& head = out.heads[static_cast<std::size_t>(h)];
          LocalNorm norm = local_norm(part, tokens, head_rows(block, h), effort_);
          head.lower = norm.lower;
          head.upper = norm.upper;
        }
      });
    }
    if (should_stop_()) return;
    const Graph part = graph_part(model_.graph, sources, std::vector{block.output});
    const LocalNorm norm = local_norm(part, tokens, {}, effort_);
    out.lower = norm.lower;
    out.upper = norm.upper;
    combine(out);
  }

  void add_special(BlockReport& out, ValueId source) const {
    const auto bounds = special_bounds(model_.graph, out.block, source);
    for (std::size_t h = 0; h < bounds.size(); ++h) out.heads[h].bounds = bounds[h];
  }

  void examine_heads(BlockReport& out, const std::vector<HeadWeights>& heads) {
    const Tensor& source = trace_.value(out.block.sources[0]);
    const std::vector<double> tokens(source.doubles().begin(), source.doubles().end());
    for (std::size_t h = 0; h < heads.size(); ++h) {
      if (should_stop_()) return;
      const HeadAt at(heads[h], tokens);
      bound_head(at, question_, true, out.heads[h]);
    }
  }

  // Heads side by side and their projection: |W_O| times the root of the sum of squares.
  void combine(BlockReport& out) {
    const double projection = projection_gain(dependence_, out.block);
    const auto together = [&](auto&& bound_of) {
      std::vector<double> squares;
      for (const HeadReport& head : out.heads) {
        const std::optional<Bound>& bound = bound_of(head);
        if (!bound || bound->guarantee != Guarantee::kProved) return kInf;
        squares.push_back(mul_up(bound->value, bound->value));
      }
      return gain_mul_up(projection, sqrt_up(sum_up(squares)));
    };
    const double upper = together([](const HeadReport& h) -> auto& { return h.upper; });
    const bool proved = out.upper && out.upper->guarantee == Guarantee::kProved;
    if (std::isfinite(upper) && (!proved || upper < out.upper->value))
      out.upper = Bound{upper, Guarantee::kProved, "attention-3"};
    if (!question_.radius || question_.ball != TokenNorm::kFrobenius) return;
    const double ball = together([](const HeadReport& h) -> auto& { return h.ball_upper; });
    if (std::isfinite(ball)) out.ball_upper = Bound{ball, Guarantee::kProved, "attention-9"};
  }

  const MovingModel& model_;
  const AttentionQuery& question_;
  const std::string& name_;
  const RunClock& clock_;
  std::function<bool()> should_stop_ = [this] { return clock_.passed(clock_.limit()); };
  Dependence dependence_;
  Trace trace_;
  LocalNormEffort effort_;
};

}  // namespace

AttentionReport study_attention(const Graph& graph, std::span<const Tensor> inputs,
                                const AttentionQuery& question, const std::string& name,
                                const RunClock& clock) {
  const MovingModel model = moving_model(graph, inputs);
  std::vector<AttentionBlock> blocks = find_attention(model.graph);
  if (blocks.empty()) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("{}: no attention was found: no softmax between two products of values "
                            "that depend on the input; 'lipscope bound' has the whole model",
                            name));
  }
  for (const AttentionBlock& block : blocks) {
    if (block.columns > 1) continue;
    throw Error(ErrorCode::kUnsupported,
                fmt::format("{}: node '{}': rows of one entry, whose softmax is always 1; give a "
                            "sequence of two tokens or more",
                            name, block.node));
  }
  return Study(model, question, name, clock).run(std::move(blocks));
}

}  // namespace lipscope
