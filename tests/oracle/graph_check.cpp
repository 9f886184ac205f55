// SPDX-License-Identifier: Apache-2.0
#include "tests/oracle/graph_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>

#include "io/onnx/onnx_tensor.h"
#include "lipscope/certificate.h"
#include "lipscope/error.h"
#include "lipscope/evaluate.h"
#include "lipscope/select.h"
#include "tests/oracle/quotients.h"

namespace oracle {
namespace {

using lipscope::Guarantee;
using lipscope::Tensor;
constexpr auto kBool = lipscope::ElementType::kBool;

constexpr std::uint64_t kCertificateShare = 8, kPlannedShare = 10;

std::string shortened(std::string reason) {
  // Names and numbers of this graph are of no interest.
  const std::size_t colon = reason.rfind(": ");
  if (colon != std::string::npos) reason = reason.substr(colon + 2);
  std::string out;
  for (const char c : reason) {
    if (!(c >= '0' && c <= '9')) out += c;
  }
  return out.substr(0, 70);
}

class GraphCheck {
 public:
  GraphCheck(const RandomGraph& graph, std::uint64_t seed)
      : seed_(seed), rng_(seed * 77 + 1), made_(graph) {
    for (const auto& node : made_.model.graph().node()) ++tally_.operators[node.op_type()];
    tally_.graphs = 1;
  }

  Tally run() {
    try {
      load();
    } catch (const lipscope::Error& error) {
      if (error.code() == lipscope::ErrorCode::kInternal)
        fail(std::string("internal: ") + error.what());
      ++tally_.refused;
      ++tally_.reasons[std::string(to_string(error.code())) + ": " + shortened(error.what())];
      return tally_;
    }
    try {
      if (made_.wrt.empty()) compare_values();
      constexpr int kQueries = 2;
      for (int k = 0; k < kQueries; ++k) query();
    } catch (const lipscope::Error& error) {
      if (error.code() == lipscope::ErrorCode::kInternal)
        fail(std::string("internal: ") + error.what());
      ++tally_.reasons[std::string(to_string(error.code())) + ": " + shortened(error.what())];
    } catch (const Missing& error) {
      fail(std::string("the oracle: ") + error.what());
    }
    return tally_;
  }

 private:
  Index pick(Index n) { return static_cast<Index>(rng_() % static_cast<std::uint64_t>(n)); }
  double normal() { return std::normal_distribution<double>()(rng_); }
  template <class List>
  auto one_of(const List& list) {
    return *(std::begin(list) + pick(std::ssize(list)));
  }

  void load() {
    const std::string bytes = made_.model.SerializeAsString();
    onnx_ = lipscope::OnnxModel::parse(std::as_bytes(std::span(bytes)), "random.onnx");
    whole_ = onnx_->graph();
    selection_.wrt = made_.wrt;
    const lipscope::Index entries =
        lipscope::element_count(whole_->value(whole_->outputs()[0]).type.shape);
    if (pick(10) == 0) selection_.output = pick(entries);
    if (pick(10) == 0 && entries > 1 && !selection_.output)
      selection_.margin = {pick(entries - 1), entries - 1};
    selected_ = lipscope::select(*whole_, selection_);
    std::vector<std::string> moving;
    for (const lipscope::ValueId id : selected_->graph.inputs()) {
      const lipscope::Value& value = selected_->graph.value(id);
      if (lipscope::is_floating(value.type.type)) moving.push_back(value.name);
    }
    // A function of nothing would have to be a constant.
    if (moving.empty()) {
      for (const auto& input : made_.model.graph().input()) moving.push_back(input.name());
      no_reals_ = true;
    }
    starts_inside_ = !selected_->from.empty();
    Evaluator::Values others;
    for (const auto& input : made_.model.graph().input()) {
      if (std::find(moving.begin(), moving.end(), input.name()) != moving.end()) continue;
      others.emplace(input.name(), other_value(input));
    }
    function_.emplace(made_.model, moving, std::move(others), selection_);
  }

  Array other_value(const onnx::ValueInfoProto& input) {
    Dims dims;
    for (const auto& d : input.type().tensor_type().shape().dim()) dims.push_back(d.dim_value());
    Array array(input.type().tensor_type().elem_type(), dims);
    for (Number& e : array.entries) {
      e = is_floating(array.type) ? Number(normal() * one_of(std::vector{1.0, 1.0, 30.0}))
                                  : wrapped(array.type, Number(pick(20) - 3));
    }
    return array;
  }

  // Types and shapes as they should be, numbers where rounding cannot have done much.
  void compare_values() {
    std::vector<Tensor> inputs;
    Evaluator::Values values;
    for (const lipscope::ValueId id : whole_->inputs()) {
      const lipscope::Value& value = whole_->value(id);
      Tensor tensor = Tensor::zeros(value.type.type, value.type.shape);
      if (lipscope::is_floating(value.type.type)) {
        for (double& e : tensor.doubles()) e = std::round(normal() * 1024) / 1024;
      } else {
        constexpr Index kBelow = 100;  // in every type
        for (Index& e : tensor.ints()) e = pick(value.type.type == kBool ? 2 : kBelow);
      }
      for (const auto& input : made_.model.graph().input()) {
        if (input.name() != value.name) continue;
        Array array(input.type().tensor_type().elem_type(), value.type.shape);
        for (Index i = 0; i < array.size(); ++i) array.at(i) = Number(tensor.at(i));
        values.emplace(value.name, std::move(array));
      }
      inputs.push_back(std::move(tensor));
    }
    const std::vector<Tensor> got = lipscope::evaluate(*whole_, inputs);
    Array expected;
    try {
      expected = Evaluator(made_.model).run(values).at(0);
    } catch (const Undecided&) {
      ++tally_.undecided;
      return;
    } catch (const Undefined&) {
      ++tally_.undefined;
      return;
    }
    ++tally_.evaluations;
    if (got[0].type() != lipscope::element_type(expected.type)) {
      fail(fmt::format("eval: type {} instead of {}", to_string(got[0].type()),
                       type_name(expected.type)));
      return;
    }
    if (got[0].shape() != expected.dims) {
      fail(fmt::format("eval: shape {} instead of {}", fmt::join(got[0].shape(), "x"),
                       fmt::join(expected.dims, "x")));
      return;
    }
    double size = 1;
    for (const Number& e : expected.entries) {
      if (e.is_finite()) size = std::max(size, std::abs(e.middle()));
    }
    constexpr double kRounding = 1e-7;
    for (Index i = 0; i < expected.size() && made_.tame; ++i) {
      const double g = got[0].at(i), e = expected.at(i).middle();
      if (!expected.at(i).is_finite() || std::abs(g - e) <= kRounding * size) continue;
      fail(fmt::format("eval: entry {} is {} instead of {}; inputs {}", i, g, e, text_of(inputs)));
      return;
    }
  }
  static std::string text_of(const std::vector<Tensor>& tensors) {
    std::string text;
    for (const Tensor& t : tensors) {
      for (Index i = 0; i < t.size(); ++i) text += fmt::format("{:.17g} ", t.at(i));
    }
    return text;
  }

  double coordinate(double scale) {
    const Index kind = pick(10);
    if (kind < 3 && !made_.landmarks.empty()) {
      const double mark = one_of(made_.landmarks);
      return mark * one_of(std::vector{1.0, 1 + 0x1p-20, 1 - 0x1p-20, 0.9, 1.5, -1.0});
    }
    if (kind == 3) return one_of(std::vector{0.0, 0x1p-40, -0x1p-40, 1.0, 0.5, -3.0, 3.0});
    return normal() * scale;
  }
  Point random_point() {
    const double scale = one_of(std::vector{1.0, 1.0, 1.0, 0.01, 30.0});
    Point x(function_->size());
    const bool same = pick(6) == 0;
    for (double& e : x) e = coordinate(scale);
    // Nearly equal entries: where a variance is small.
    for (double& e : x) e = same ? x[0] + 1e-4 * scale * normal() : e;
    // What an integer input takes in the file.
    const bool whole = !selected_->conventions.integers_as_reals.empty() && pick(2) == 0;
    for (double& e : x) e = whole ? std::round(e * 10) : e;
    return x;
  }

  lipscope::Domain random_domain() {
    lipscope::Domain domain;
    const auto n = static_cast<Index>(function_->size());
    const Index kind = made_.near != 0 ? 5 + pick(5) : pick(10);
    if (kind < 5 || no_reals_) return domain;
    Point centre = random_point();
    double scale = pick(2) == 0 && centre[0] != 0 ? std::abs(centre[0]) : 1.0;
    if (pick(5) == 0 && !made_.landmarks.empty()) {
      std::fill(centre.begin(), centre.end(),
                one_of(made_.landmarks) * one_of(std::vector{1.0, 0.75, 1.5}));
    }
    if (made_.near != 0 && pick(4) != 0) {
      std::fill(centre.begin(), centre.end(), made_.near * one_of(std::vector{0.8, 0.8, 0.8, 1.0}));
      scale = std::abs(made_.near);
    }
    const double radius = scale * one_of(std::vector{1.0, 0.1, 1e-3, 5.0});
    if (kind < 8 || kind == 9) {
      Point low = centre, high = centre;
      for (std::size_t i = 0; i < low.size(); ++i) {
        low[i] -= pick(12) == 0 ? 0 : radius;
        high[i] += pick(12) == 0 ? 0 : radius;
      }
      domain.box = lipscope::Box{Tensor(lipscope::ElementType::kFloat64, {n}, low),
                                 Tensor(lipscope::ElementType::kFloat64, {n}, high)};
    }
    if (kind >= 8) {
      domain.ball = lipscope::Ball{
          .center = Tensor(lipscope::ElementType::kFloat64, {n}, centre),
          .radius = radius,
          .norm = lipscope::parse_norms(one_of(std::vector<std::string>{"1", "2", "inf", "3"})).in};
    }
    return domain;
  }

  void query() {
    if (starts_inside_ || function_->size() == 0) return;
    static const std::vector<std::string> kNorms = {"1",     "2",   "inf",   "2",   "3",    "1:inf",
                                                    "inf:1", "2:1", "inf:2", "1:2", "1.5:3"};
    const lipscope::Query query{.graph = &selected_->graph,
                                .norms = lipscope::parse_norms(one_of(kNorms)),
                                .domain = random_domain()};
    lipscope::Budget budget;
    budget.time = std::chrono::duration<double>(0.03);
    if (seed_ % kPlannedShare != 0) {
      budget.time = std::chrono::duration<double>(5);
      budget.methods = {"layer-product", "dag"};
      if (pick(12) == 0) budget.methods.emplace_back("jacobian-ascent");
      if (pick(6) == 0) budget.methods.emplace_back("pattern-ascent");
      if (pick(3) == 0) budget.methods.emplace_back("graph-jacobian");
      if (pick(4) == 0) budget.methods.emplace_back("fast-lip");
      if (pick(made_.near != 0 ? 2 : 20) == 0) {
        budget.methods.emplace_back("exact-local");
        budget.time = std::chrono::duration<double>(0.2);
      }
    }
    lipscope::RunContext context;
    context.seed = seed_;
    const lipscope::Answer answer = bracket(query, budget, context);
    ++tally_.queries;
    const auto upper = answer.bracket.upper(Guarantee::kProved);
    if (answer.witness && answer.witnessed && answer.witnessed->guarantee == Guarantee::kProved) {
      check_witness(query, *answer.witness, answer.witnessed->value);
    }
    if (!upper || !std::isfinite(upper->value)) return;
    ++tally_.finite;
    attack(query, *upper);
    if (seed_ % kCertificateShare == 0) certificate(query, answer);
  }

  // Says what was asked where the answer is an internal error.
  lipscope::Answer bracket(const lipscope::Query& query, const lipscope::Budget& budget,
                           const lipscope::RunContext& context) {
    try {
      return lipscope::find_bracket(query, budget, context);
    } catch (const lipscope::Error& error) {
      if (error.code() == lipscope::ErrorCode::kInternal)
        fail(std::string("internal: ") + error.what() + about(query));
      throw;
    }
  }

  void check_witness(const lipscope::Query& query, const lipscope::Witness& witness,
                     double claimed) {
    if (!inside(query.domain, witness.x) || !inside(query.domain, witness.y)) {
      return fail("a witness outside the domain" + about(query));
    }
    const auto ends = quotient(query, witness.x, witness.y);
    if (!ends) return;
    ++tally_.witnesses;
    // What an unknown input is, a witness does not say.
    if (made_.wrt.empty() && ends->upper < claimed) {
      fail(fmt::format("lower bound {:.17g}, its witness {} {} gives {:.17g}", claimed, witness.x,
                       witness.y, ends->upper) +
           about(query));
    }
  }

  std::optional<Function::Ends> quotient(const lipscope::Query& query, const Point& x,
                                         const Point& y) {
    try {
      return function_->quotient(x, y, query.norms);
    } catch (const Undecided&) {
      ++tally_.undecided;
    } catch (const Undefined&) {
      ++tally_.undefined;
    }
    return std::nullopt;
  }

  void attack(const lipscope::Query& query, const lipscope::Bound& upper) {
    constexpr int kStarts = 4;
    for (int k = 0; k < kStarts; ++k) {
      Point x = start_in(query.domain);
      Point steps(x.size());
      double reach = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        double scale = std::max(std::abs(x[i]), 1e-3);
        if (query.domain.box) {
          scale = query.domain.box->upper.doubles()[i] - query.domain.box->lower.doubles()[i];
        }
        if (query.domain.ball) scale = std::min(scale, query.domain.ball->radius);
        steps[i] = scale * 0x1p-20;
        if (query.domain.box && x[i] + steps[i] > query.domain.box->upper.doubles()[i])
          steps[i] = -steps[i];
        reach = std::max(reach, scale);
      }
      try {
        const std::vector<Point> columns = function_->slopes(x, steps);
        const Point d = strongest_direction(columns, query.norms.in.p(), query.norms.out.p());
        for (const double t :
             {reach * 0x1p-20, reach * 0x1p-6, reach, -reach * 0x1p-16, -reach * 0.5}) {
          compare(query, upper, x, moved(query.domain, x, d, t));
        }
        compare(query, upper, x, start_in(query.domain));
      } catch (const Undecided&) {
        ++tally_.undecided;
      } catch (const Undefined&) {
        ++tally_.undefined;
      }
    }
  }

  Point start_in(const lipscope::Domain& domain) {
    Point x = random_point();
    if (domain.everywhere()) return x;
    if (domain.box) {
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double low = domain.box->lower.doubles()[i], high = domain.box->upper.doubles()[i];
        x[i] = std::clamp(low + (high - low) * std::uniform_real_distribution<double>()(rng_), low,
                          high);
      }
    }
    if (domain.ball) {
      const auto centre = domain.ball->center.doubles();
      double share = 1;
      do {
        for (std::size_t i = 0; i < x.size(); ++i) {
          const double from =
              domain.box ? x[i]
                         : centre[i] + domain.ball->radius *
                                           std::uniform_real_distribution<double>(-1, 1)(rng_);
          x[i] = centre[i] + share * (from - centre[i]);
        }
        share *= 0.7;
      } while (!inside(domain, x) && share > 1e-9);
    }
    return x;
  }
  static Point moved(const lipscope::Domain& domain, const Point& x, const Point& d, double t) {
    constexpr int kHalvings = 24;
    for (int k = 0; k < kHalvings; ++k, t *= 0.5) {
      Point y = x;
      for (std::size_t i = 0; i < x.size(); ++i) y[i] += t * d[i];
      if (inside(domain, y)) return y;
    }
    return x;
  }

  void compare(const lipscope::Query& query, const lipscope::Bound& upper, const Point& x,
               const Point& y) {
    if (x == y || !inside(query.domain, x) || !inside(query.domain, y)) return;
    const auto ends = quotient(query, x, y);
    if (!ends) return;
    ++tally_.quotients;
    if (upper.value > 0) tally_.tightest = std::max(tally_.tightest, ends->lower / upper.value);
    if (ends->lower <= upper.value) return;
    fail(fmt::format(
             "upper bound {:.17g} by {}, but the quotient between {::.17g} and {::.17g} is {:.17g}",
             upper.value, upper.method, x, y, ends->lower) +
         about(query));
  }

  void certificate(const lipscope::Query& query, const lipscope::Answer& answer) {
    const std::string document = lipscope::write_certificate({.model_sha256 = onnx_->sha256(),
                                                              .options = {},
                                                              .selection = selection_,
                                                              .from = selected_->from,
                                                              .norms = query.norms,
                                                              .domain = query.domain},
                                                             answer);
    if (const char* file = std::getenv("LIPSCOPE_DUMP")) {
      std::ofstream(std::string(file) + ".json") << document;
    }
    const lipscope::CheckResult result = lipscope::check_certificate(*onnx_, document);
    if (result.valid) {
      ++tally_.certificates;
    } else {
      fail("certificate refused: " + result.reason + about(query));
    }
  }

  std::string about(const lipscope::Query& query) const {
    std::string text = "; norms " + query.norms.name();
    if (selection_.output) text += fmt::format(", output {}", *selection_.output);
    if (selection_.margin)
      text += fmt::format(", margin {},{}", selection_.margin->first, selection_.margin->second);
    if (!made_.wrt.empty()) {
      text += ", wrt " + made_.wrt + " with";
      for (const auto& [name, value] : function_->others()) {
        text += " " + name + " =";
        for (const Number& e : value.entries) text += " " + e.text();
      }
    }
    if (query.domain.box)
      text += fmt::format(", box {::.17g} to {::.17g}", query.domain.box->lower.doubles(),
                          query.domain.box->upper.doubles());
    if (query.domain.ball)
      text +=
          fmt::format(", ball {::.17g} radius {:.17g} norm {}", query.domain.ball->center.doubles(),
                      query.domain.ball->radius, query.domain.ball->norm.name());
    return text;
  }

  // Once for each graph is enough.
  void fail(const std::string& what) {
    if (!tally_.failures.empty()) return;
    tally_.failures.push_back(fmt::format("seed {}: {}\n{}", seed_, what, describe(made_.model)));
  }

  std::uint64_t seed_;
  std::mt19937_64 rng_;
  const RandomGraph& made_;
  std::optional<lipscope::OnnxModel> onnx_;
  std::optional<lipscope::Graph> whole_;
  std::optional<lipscope::Selected> selected_;
  lipscope::Selection selection_;
  std::optional<Function> function_;
  bool starts_inside_ = false;
  bool no_reals_ = false;  // no input of the selected graph
  Tally tally_;
};

}  // namespace

void Tally::add(const Tally& o) {
  for (const auto field : {&Tally::graphs, &Tally::refused, &Tally::queries, &Tally::finite,
                           &Tally::quotients, &Tally::undecided, &Tally::undefined,
                           &Tally::evaluations, &Tally::witnesses, &Tally::certificates}) {
    this->*field += o.*field;
  }
  tightest = std::max(tightest, o.tightest);
  for (const auto& [name, n] : o.reasons) reasons[name] += n;
  for (const auto& [name, n] : o.operators) operators[name] += n;
  failures.insert(failures.end(), o.failures.begin(), o.failures.end());
}

Tally check_graph(const RandomGraph& graph, std::uint64_t seed) {
  return GraphCheck(graph, seed).run();
}
std::string kind_of(const std::string& failure) {
  const std::size_t start = failure.find(": ") + 2;
  return failure.substr(start, 9);
}

}  // namespace oracle
