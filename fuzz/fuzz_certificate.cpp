// SPDX-License-Identifier: Apache-2.0
// Certificates: read and checked against a small model. What is accepted may not contradict what
// is known to be true of the same question.
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>

#include "base/json_reader.h"
#include "driver.h"
#include "json_mutations.h"
#include "lipscope/bound.h"
#include "lipscope/certificate.h"
#include "tests/support/model_writer.h"

namespace lipscope::fuzz {
namespace {

const OnnxModel& small_model() {
  static const OnnxModel model = [] {
    testing_support::ModelWriter w;
    w.input("x", {-1, 2});
    w.weight("A", {2, 3}, {1, -2, 0.5F, 0.25F, 1, -1});
    w.weight("a", {3}, {0.1F, 0, -0.3F});
    w.weight("B", {3, 2}, {1, 0.5F, -1, 2, 0.75F, 0});
    w.node("Gemm", {"x", "A", "a"}, {"h"}, "first");
    w.node("Relu", {"h"}, {"r"}, "relu");
    w.node("MatMul", {"r", "B"}, {"y"}, "second");
    w.output("y");
    return w.read();
  }();
  return model;
}

// One certificate of each kind of proof, norm and domain.
std::vector<std::string> certificates() {
  struct Asked {
    const char* norm;
    const char* method;
    Selection selection = {};
    Domain domain = {};
  };
  Selection margin;
  margin.margin = {0, 1};
  Selection part;
  part.to = "relu";
  Domain box, ball;
  box.box = Box{Tensor::vector({-0.5, -0.0}), Tensor::vector({0.25, 1})};
  ball.ball = Ball{Tensor::vector({0, -0.0}), 0.5, Norm(2)};
  const std::vector<Asked> questions{{"2", "layer-product"},
                                     {"1:inf", "dag"},
                                     {"2", "lipsdp"},
                                     {"2", "exact-global"},
                                     {"inf", "exact-global"},
                                     {"2", "eclipse-fast"},
                                     {"2", "layer-product", margin},
                                     {"2", "layer-product", part},
                                     {"2", "exact-local", {}, box},
                                     {"2", "graph-jacobian", {}, ball}};
  std::vector<std::string> texts;
  for (const Asked& asked : questions) {
    const Selected selected = select(small_model().graph(), asked.selection);
    const NormPair norms = parse_norms(asked.norm);
    const Query query{&selected.graph, norms, asked.domain};
    const Budget budget{.time = std::chrono::seconds(5),
                        .methods = {asked.method, "jacobian-ascent"}};
    const Statement statement{.model_sha256 = small_model().sha256(),
                              .options = {},
                              .selection = asked.selection,
                              .from = selected.from,
                              .norms = norms,
                              .domain = asked.domain};
    texts.push_back(write_certificate(statement, find_bracket(query, budget, {})));
  }
  return texts;
}

struct Truth {
  double lower = 0, upper = INFINITY;  // both proved
};

// What the seeds prove, by question.
std::map<std::string, Truth>& truths() {
  static std::map<std::string, Truth> table;
  return table;
}

double value_of(const Json& bound, double otherwise) {
  return bound.is_object() ? JsonValue(bound["value"], "claim").number() : otherwise;
}

void compare_with_truth(const Json& document) {
  const auto found = truths().find(to_canonical_text(document["query"]));
  if (found == truths().end()) return;
  const Json& claim = document["claim"];
  if (value_of(claim["upper"], INFINITY) < found->second.lower ||
      value_of(claim["lower"], 0) > found->second.upper)
    throw std::logic_error("a false claim was accepted");
}

}  // namespace

std::vector<Input> seeds() {
  static const std::vector<std::string> texts = certificates();
  std::vector<Input> inputs;
  for (const std::string& text : texts) {
    inputs.push_back(input(text));
    const Json document = parse_json(text, "seed");
    Truth& truth = truths()[to_canonical_text(document["query"])];
    truth.lower = std::max(truth.lower, value_of(document["claim"]["lower"], 0));
    truth.upper = std::min(truth.upper, value_of(document["claim"]["upper"], INFINITY));
  }
  return inputs;
}

}  // namespace lipscope::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lipscope;
  return fuzz::run([&] {
    const std::string text(reinterpret_cast<const char*>(data), size);
    const CheckResult result = check_certificate(fuzz::small_model(), text);
    if (!result.valid) {
      // Another outcome each, as for errors.
      throw Error(ErrorCode::kBadFile, result.reason);
    }
    fuzz::compare_with_truth(parse_json(text, "accepted"));
  });
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  return lipscope::fuzz::mutate_text(data, size, max_size, seed);
}
