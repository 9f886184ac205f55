// SPDX-License-Identifier: Apache-2.0
#include "query_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "about_file.h"
#include "base/rounding.h"
#include "bounds/boxes.h"
#include "conventions.h"
#include "files.h"
#include "lipscope/error.h"
#include "number_flags.h"

namespace lipscope::app {
namespace {

// An end of a box: a number, a fraction or an infinity.
std::optional<double> to_end(std::string_view text) {
  if (text == "inf") return kInf;
  if (text == "-inf") return -kInf;
  return parse_ratio(text);
}

// "a,b" as two values.
template <class Value>
std::optional<std::pair<Value, Value>> to_pair(std::string_view text,
                                               std::optional<Value> (*read)(std::string_view)) {
  const std::size_t comma = text.find(',');
  if (comma == std::string_view::npos) return std::nullopt;
  const auto a = read(text.substr(0, comma)), b = read(text.substr(comma + 1));
  if (!a || !b) return std::nullopt;
  return std::pair{*a, *b};
}

// The input of the function, one sample, as one vector.
Tensor flat_input(const Question& question, const std::vector<NamedTensor>& arrays,
                  const std::string& path, double scale) {
  const Graph& graph = question.selected.graph;
  std::vector<double> all;
  if (!question.selected.from.empty()) {
    if (arrays.size() != 1)
      throw Error(ErrorCode::kUsage, fmt::format("{}: expected one array", path));
    for (Index i = 0; i < arrays[0].tensor.size(); ++i)
      all.push_back(arrays[0].tensor.at(i) * scale);
  } else {
    const Samples samples = match_samples(question.model, arrays, scale);
    if (samples.count != 1) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("{}: holds {} samples; give one", path, samples.count));
    }
    require_unscaled(question.selected.conventions, scale);
    const auto tensors = about_file(path, [&] { return samples.for_graph(graph); });
    for (std::size_t k = 0; k < tensors.size(); ++k) {
      if (!is_floating(graph.value(graph.inputs()[k]).type.type)) continue;
      for (Index i = 0; i < tensors[k].size(); ++i) all.push_back(tensors[k].at(i));
    }
  }
  if (static_cast<Index>(all.size()) != input_size(graph)) {
    throw Error(ErrorCode::kShape, fmt::format("{}: {} entries, the function takes {}", path,
                                               all.size(), input_size(graph)));
  }
  for (const double entry : all) {
    if (!std::isfinite(entry))
      throw Error(ErrorCode::kBadFile, fmt::format("{}: holds {}", path, entry));
  }
  return Tensor::vector(std::move(all));
}

Box read_box(const Question& question, const std::string& text) {
  const Index size = input_size(question.selected.graph);
  Box box;
  if (const auto ends = to_pair(text, to_end)) {
    box.lower = Tensor::vector(std::vector<double>(static_cast<std::size_t>(size), ends->first));
    box.upper = Tensor::vector(std::vector<double>(static_cast<std::size_t>(size), ends->second));
  } else if (text.find(',') != std::string::npos || to_end(text)) {
    throw Error(
        ErrorCode::kUsage,
        fmt::format("--box '{}': expected LO,HI as two numbers, or an .npz file with arrays "
                    "'lo' and 'hi'",
                    text));
  } else if (std::error_code ignored; !std::filesystem::exists(text, ignored)) {
    throw Error(
        ErrorCode::kBadFile,
        fmt::format("--box {}: no such file; a box is LO,HI or an .npz with 'lo' and 'hi'", text));
  } else {
    const auto arrays = read_arrays(text, [](const std::string& name) {
      return name == "lo" || name == "hi";
    });  // at once: it may be a pipe
    const auto end = [&](const std::string& name) {
      const auto found = std::ranges::find(arrays, name, &NamedTensor::name);
      return (found != arrays.end() ? found->tensor : read_array(text + ":" + name))
          .cast(ElementType::kFloat64);
    };
    box.lower = end("lo");
    box.upper = end("hi");
  }
  if (box.lower.size() != size || box.upper.size() != size) {
    throw Error(ErrorCode::kShape,
                fmt::format("--box {}: 'lo' and 'hi' need {} entries each", text, size));
  }
  box.lower = box.lower.reshaped({size});
  box.upper = box.upper.reshaped({size});
  for (Index i = 0; i < size; ++i) {
    const double low = box.lower.at(i), high = box.upper.at(i);
    if (std::isnan(low) || std::isnan(high))
      throw Error(ErrorCode::kBadFile, fmt::format("--box {}: entry {} is nan", text, i));
    if (low > high) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("--box {}: entry {} has lo {} above hi {}, so the box is empty", text,
                              i, low, high));
    }
  }
  return box;
}

std::vector<double> read_radii(const std::vector<std::string>& texts) {
  std::vector<double> radii;
  for (const std::string& text : texts) {
    const auto radius = parse_ratio(text);
    if (!radius || !(*radius >= 0) || std::isinf(*radius)) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("--radius '{}': a radius is a number of at least 0, for example 0.1 "
                              "or 8/255",
                              text));
    }
    radii.push_back(std::fabs(*radius));  // -0 is 0
  }
  std::ranges::sort(radii);
  radii.erase(std::ranges::unique(radii).begin(), radii.end());
  return radii;
}

// Whether no point of the box is in the ball, beyond doubt.
bool have_no_point_in_common(const Ball& ball, const Box& box, double radius) {
  std::vector<double> away;
  for (std::size_t i = 0; i < ball.center.doubles().size(); ++i) {
    const double c = ball.center.doubles()[i];
    away.push_back(
        std::max({0.0, sub_down(box.lower.doubles()[i], c), sub_down(c, box.upper.doubles()[i])}));
  }
  return pnorm_down(away, ball.norm.p()) > radius;
}

// `center`: the arrays of --at.
void read_domain(const QueryFlags& flags, const std::vector<NamedTensor>& center,
                 Question& question) {
  const double scale = parse_scale(flags.scale);
  if (flags.at.empty() != flags.radius.empty()) {
    throw Error(ErrorCode::kUsage, "--at and --radius belong together");
  }
  if (flags.at.empty() && !flags.ball.empty())
    throw Error(ErrorCode::kUsage, "--ball is the norm of a ball: it needs --at and --radius");
  if (!flags.at.empty()) {
    if (flags.ball.find(':') != std::string::npos) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("--ball {}: a ball has one norm, for example 2", flags.ball));
    }
    const Norm norm = flags.ball.empty() ? question.norms.in : parse_norm_flag(flags.ball).in;
    question.domain.ball = Ball{flat_input(question, center, flags.at, scale), 0, norm};
    question.radii = read_radii(flags.radius);
  }
  if (flags.box.empty()) return;
  const Box box = read_box(question, flags.box);
  if (!question.domain.ball && std::ranges::equal(box.lower.doubles(), box.upper.doubles())) {
    question.domain.ball = Ball{box.lower, 0, question.norms.in};  // a point: as --radius 0
    question.radii = {0};
    return;
  }
  question.domain.box = box;
  if (question.domain.ball &&
      have_no_point_in_common(*question.domain.ball, *question.domain.box, question.radii[0])) {
    throw Error(ErrorCode::kUsage,
                fmt::format("the ball of radius {} around {} has no point in the box {}",
                            question.radii[0], flags.at, flags.box));
  }
}

std::vector<std::pair<Index, Index>> all_pairs(Index count) {
  std::vector<std::pair<Index, Index>> pairs;
  for (Index i = 0; i < count; ++i) {
    for (Index j = i + 1; j < count; ++j) pairs.emplace_back(i, j);
  }
  return pairs;
}

}  // namespace

void QueryFlags::declare(CLI::App& app) {
  model.declare(app);
  app.add_option("--norm", norm, "input norm P or input:output P:Q; numbers >= 1 or inf")
      ->type_name("P[:Q]")
      ->capture_default_str();
  reads_file(app.add_option("--at", at, "centre of a ball: an array with one sample"))
      ->type_name("FILE");
  app.add_option("--radius", radius,
                 "radius of the ball, or several; numbers or fractions such as 8/255")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check([](const std::string& text) {
        return text.starts_with("--") ? "it needs a number" : std::string();
      })
      ->type_name("R,...");
  app.add_option("--ball", ball, "norm of the ball (default: the input norm)")->type_name("P");
  reads_file(app.add_option("--box", box, "box LO,HI for every entry, or .npz with 'lo' and 'hi'"))
      ->type_name("BOX");
  takes_whole(app.add_option("--output", output, "one output entry, counted from 0"))
      ->type_name("I");
  app.add_option("--margin", margin, "output I minus output J, or 'all' pairs")->type_name("I,J");
  app.add_option("--from", from, "start at the output of this node")->type_name("NODE");
  app.add_option("--to", to, "end at this node")->type_name("NODE");
  app.add_option("--wrt", wrt, "only this input moves")->type_name("INPUT");
  app.add_flag("--logits", logits, "leave out a final Softmax, LogSoftmax or Sigmoid");
  app.add_option("--scale", scale, "multiply --at by this, for example 1/255")->type_name("F");
}

Query Question::query(std::optional<double> radius) const {
  Query result{&selected.graph, norms, domain};
  if (result.domain.ball) result.domain.ball->radius = radius.value_or(0);
  return result;
}

Question read_question(const QueryFlags& flags) {
  const NormPair norms = parse_norm_flag(flags.norm);
  Selection selection{.from = flags.from,
                      .to = flags.to,
                      .wrt = flags.wrt,
                      .logits = flags.logits,
                      .output = flags.output};
  if (!flags.margin.empty() && flags.margin != "all") {
    selection.margin = to_pair(flags.margin, parse_whole);
    if (!selection.margin) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("--margin '{}': expected I,J or all", flags.margin));
    }
  }
  if (flags.output && !flags.margin.empty())
    throw Error(ErrorCode::kUsage, "--output and --margin exclude each other");
  OnnxModel model = read_model(flags.model.path);
  model.require_supported();
  GraphOptions options = flags.model.options();
  std::vector<NamedTensor> center;
  if (!flags.at.empty()) center = read_arrays(flags.at);
  if (!flags.at.empty() && flags.from.empty()) {
    const Samples samples = match_samples(model, center);
    options.shapes = samples.options.shapes;
  }
  Selected selected = select(model.graph(options), selection);
  Question question{
      std::move(model), std::move(options), selection, std::move(selected), norms, {}, {}, {}};
  const ValueType& out = question.selected.graph.value(question.selected.graph.outputs()[0]).type;
  if (flags.margin == "all") question.margins = all_pairs(element_count(out.shape));
  if (element_count(out.shape) == 1)
    question.norms.out = question.norms.in;  // |y| is every norm of a number
  read_domain(flags, center, question);
  return question;
}

Statement Question::statement(std::optional<double> radius) const {
  return {.model_sha256 = model.sha256(),
          .options = options,
          .selection = selection,
          .from = selected.from,
          .norms = norms,
          .domain = query(radius).domain};
}

}  // namespace lipscope::app
