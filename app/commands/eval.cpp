// SPDX-License-Identifier: Apache-2.0
// eval: runs a model on arrays, and compares with reference outputs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "about_file.h"
#include "base/printable.h"
#include "command.h"
#include "files.h"
#include "lipscope/compare.h"
#include "lipscope/error.h"
#include "lipscope/evaluate.h"
#include "lipscope/samples.h"
#include "model_flags.h"
#include "number_flags.h"
#include "terminal.h"

namespace lipscope {
namespace {

using namespace app;

struct EvalFlags {
  ModelFlags model;
  std::string input, reference, precision = "float64", scale = "1";
  double tolerance = 1e-4;
};

struct Evaluation {
  std::vector<std::string> names;
  std::vector<Tensor> outputs;
  std::optional<Comparison> comparison;
};

Evaluation evaluate_model(const EvalFlags& flags) {
  const OnnxModel model = read_model(flags.model.path);
  model.require_supported();
  if (flags.input.empty() && !model.inputs().empty()) {
    throw Error(ErrorCode::kUsage, fmt::format("{} needs --input FILE with an array for '{}'",
                                               model.name(), model.inputs()[0].name));
  }
  std::vector<NamedTensor> arrays;
  if (!flags.input.empty()) arrays = read_arrays(flags.input);
  Samples samples = match_samples(model, arrays, parse_scale(flags.scale));
  samples.options.dims = flags.model.options().dims;
  const Graph graph = model.graph(samples.options);
  const Precision precision =
      flags.precision == "float32" ? Precision::kFloat32 : Precision::kFloat64;
  Evaluation result;
  result.outputs = about_file(flags.input, [&] {
    return evaluate(graph, samples.for_graph(graph), samples.count, precision);
  });
  for (const ValueId id : graph.outputs()) result.names.push_back(graph.value(id).name);
  for (Tensor& output : result.outputs) output = rounded_to_type(output);
  if (!flags.reference.empty()) {
    result.comparison = compare_outputs(result.names, result.outputs, read_arrays(flags.reference),
                                        flags.tolerance);
  }
  return result;
}

Json entries(const Tensor& tensor) {
  Json list = Json::array();
  list.get_ref<Json::array_t&>().reserve(static_cast<std::size_t>(tensor.size()));
  for (Index i = 0; i < tensor.size(); ++i) {
    if (tensor.type() == ElementType::kBool) {
      list.push_back(tensor.ints()[static_cast<std::size_t>(i)] != 0);
    } else if (tensor.type() == ElementType::kUInt64) {
      list.push_back(static_cast<std::uint64_t>(tensor.ints()[static_cast<std::size_t>(i)]));
    } else if (tensor.storage() == Storage::kInt64) {
      list.push_back(tensor.ints()[static_cast<std::size_t>(i)]);
    } else {
      list.push_back(tensor.at(i));
    }
  }
  return list;
}

Json eval_document(const Evaluation& result) {
  Json outputs = Json::array();
  for (std::size_t i = 0; i < result.outputs.size(); ++i) {
    const Tensor& output = result.outputs[i];
    outputs.push_back({{"name", result.names[i]},
                       {"shape", output.shape()},
                       {"type", to_string(output.type())},
                       {"data", entries(output)}});
  }
  Json document{{"schema", "lipscope.eval/1"}, {"outputs", std::move(outputs)}};
  document["max_error"] = result.comparison ? Json(result.comparison->max_error) : Json(nullptr);
  if (result.comparison && !result.comparison->agrees)
    document["difference"] = result.comparison->reason;
  return document;
}

// The first entries; all of them with --json.
std::string eval_text(const Evaluation& result) {
  constexpr Index kShown = 10;
  std::string text;
  for (std::size_t i = 0; i < result.outputs.size(); ++i) {
    const Tensor& output = result.outputs[i];
    text += fmt::format("{}  {} {}\n", one_line(result.names[i]), format_dims(output.shape()),
                        to_string(output.type()));
    const Index width = output.shape().empty() ? 1 : std::max<Index>(1, output.shape().back());
    const Index rows = std::min<Index>(kShown, output.size() / width);
    for (Index r = 0; r < rows; ++r) {
      text += " ";
      for (Index c = 0; c < std::min(width, kShown); ++c)
        text += fmt::format(" {:>10.6g}", output.at(r * width + c));
      text += width > kShown ? " ...\n" : "\n";
    }
    if (output.size() / width > rows)
      text += fmt::format("  ... {} rows in all; --json prints them\n", output.size() / width);
  }
  if (!result.comparison) return text;
  const Comparison& comparison = *result.comparison;
  return text +
         (comparison.agrees
              ? fmt::format("agrees with the reference, largest error {:.3g}\n",
                            comparison.max_error)
              : fmt::format("differs from the reference: {}\n", one_line(comparison.reason)));
}

Action declare_eval(CLI::App& app, const Common&) {
  auto flags = std::make_shared<EvalFlags>();
  flags->model.declare(app);
  reads_file(
      app.add_option("--input", flags->input, "input array, or .npz with input_0, input_1, ..."))
      ->type_name("FILE");
  reads_file(
      app.add_option("--reference", flags->reference, ".npz with output_0, ... to compare with"))
      ->type_name("FILE");
  takes_numbers(
      app.add_option("--tolerance", flags->tolerance,
                     "allowed error relative to the largest reference entry (at least 1)"))
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--precision", flags->precision, "float64, or float32 for speed")
      ->check(CLI::IsMember({"float64", "float32"}))
      ->capture_default_str();
  app.add_option("--scale", flags->scale, "multiply the input by this, for example 1/255")
      ->type_name("F");
  return [flags]() -> Result {
    auto result = std::make_shared<Evaluation>(evaluate_model(*flags));
    const bool agrees = !result->comparison || result->comparison->agrees;
    return {.document = [result] { return eval_document(*result); },
            .text = [result] { return eval_text(*result); },
            .exit_code = agrees ? 0 : 1};
  };
}

}  // namespace

std::vector<Command> command_eval() {
  return {{.name = "eval",
           .summary = "run a model on arrays, optionally against reference outputs",
           .examples = "  lipscope eval net.onnx --input x.npy\n"
                       "  lipscope eval net.onnx --input t10k-images-idx3-ubyte.gz --scale 1/255 "
                       "--precision float32",
           .declare = declare_eval,
           .seconds = HUGE_VAL}};
}

}  // namespace lipscope
