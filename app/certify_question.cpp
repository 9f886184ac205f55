// SPDX-License-Identifier: Apache-2.0
#include "certify_question.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "conventions.h"
#include "files.h"
#include "lipscope/error.h"
#include "number_flags.h"

namespace lipscope::app {
namespace {

Requirement parse_requirement(const std::string& text) {
  const auto number = [&](std::string_view part) {
    const auto value = parse_ratio(part);
    if (!value || !(*value >= 0)) {
      throw Error(ErrorCode::kUsage, fmt::format("--require '{}': expected RADIUS:ACCURACY% with "
                                                 "an accuracy of at most 100, for example 0.5:70%",
                                                 text));
    }
    return *value;
  };
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos || !text.ends_with('%')) (void)number("");
  const std::string_view all = text;
  Requirement result{number(all.substr(0, colon)),
                     number(all.substr(colon + 1, all.size() - colon - 2))};
  if (result.percent > 100) (void)number("");
  return result;
}

ElementType format_of(const std::string& name) {
  return name == "float16"    ? ElementType::kFloat16
         : name == "bfloat16" ? ElementType::kBFloat16
                              : ElementType::kFloat32;
}

// A ball of the normalised input is an ellipsoid in the data unless all channels are divided by the
// same number; the largest ball inside it is given by the smallest.
std::string scale_hint(const CertifyFlags& flags) {
  const std::vector<double>& std = flags.data.std;
  std::string hint =
      "--mean and --std are outside the model: radii are in units of the normalised input";
  if (!std.empty()) {
    const auto [least, most] = std::ranges::minmax(std);
    hint += fmt::format("; in units of the scaled data a ball of {}{} times the radius is inside",
                        least < most ? "the smallest --std, " : "", least);
  }
  return hint + "; export the normalisation with the model to have radii there";
}

const Node* find_squash(const Graph& whole, const CertifyFlags& flags, Certified& found) {
  const Node* squash = final_squash(whole);
  if (squash == nullptr || !keeps_order(*squash->op)) return nullptr;
  (flags.inference.empty() ? found.dropped : found.squash) = squash->op->name();
  return squash;
}

// Throws kUnsupported for a model whose input cannot move a little.
void require_real_inputs(const Selected& selected, const std::string& model) {
  if (!selected.from.empty()) {
    throw Error(
        ErrorCode::kUnsupported,
        fmt::format("{}: its input is cast to whole numbers at node '{}', so it cannot move "
                    "a little",
                    model, selected.from));
  }
  for (const ValueId id : selected.graph.inputs()) {
    const Value& input = selected.graph.value(id);
    if (is_floating(input.type.type)) continue;
    throw Error(ErrorCode::kUnsupported,
                fmt::format("{}: input '{}' takes whole numbers, which cannot move a little", model,
                            input.name));
  }
}

void require_plain_integers(const CertifyFlags& flags, const Certified& found) {
  if (found.conventions.integers_as_reals.empty()) return;
  require_unscaled(found.conventions, found.data.scale);
  if (!flags.data.mean.empty() || !flags.data.std.empty() || !flags.inference.empty())
    throw Error(ErrorCode::kUnsupported,
                fmt::format("{}: --mean, --std and --inference are for inputs that take real "
                            "numbers; input '{}' takes whole ones",
                            found.model_file, found.conventions.integers_as_reals.front()));
}

// Those of the literature, and some below them for models that were not trained for any.
std::vector<double> usual_radii(const Norm& norm) {
  if (norm == Norm::infinity()) return {1.0 / 255, 2.0 / 255, 4.0 / 255, 8.0 / 255, 0.1, 0.2, 0.3};
  if (norm.p() == 1) return {0.1, 0.2, 0.5, 1, 2, 5, 10};
  return {0.02, 0.05, 0.1, 36.0 / 255, 0.25, 0.5, 1, 2};
}

}  // namespace

void check_flags(const CertifyFlags& flags, Certified& found) {
  const NormPair norms = parse_norm_flag(flags.norm);
  if (flags.norm.find(':') != std::string::npos && !(norms.in == norms.out)) {
    throw Error(ErrorCode::kUsage,
                fmt::format("--norm {}: a radius has one norm, that of the input", flags.norm));
  }
  found.norm = norms.in;
  if (flags.inference.empty() && (flags.flush_to_zero || !flags.accumulate.empty())) {
    throw Error(ErrorCode::kUsage,
                fmt::format("{} belongs to --inference",
                            flags.flush_to_zero ? "--flush-to-zero" : "--accumulate"));
  }
  if (!flags.require.empty()) found.table.required = parse_requirement(flags.require);
  for (const double radius : flags.radii) {
    if (!(radius >= 0) || std::isinf(radius))
      throw Error(ErrorCode::kUsage, fmt::format("--radii {}: not a radius", radius));
  }
}

std::unique_ptr<CertifyQuestion> read_question(const CertifyFlags& flags, Certified& found) {
  const OnnxModel model = read_model(flags.model.path);
  model.require_supported();
  found.model_file = model.name();
  found.sha256 = model.sha256();
  found.data = read_labelled(model, flags.data);
  found.data.options.dims = flags.model.options().dims;
  auto question = std::make_unique<CertifyQuestion>();
  question->whole = model.graph(found.data.options);
  const Graph& whole = question->whole;
  const Node* squash = find_squash(whole, flags, found);
  found.output = whole.value(whole.outputs()[0]).name;
  Selection selection;
  selection.logits = squash != nullptr;
  Selected selected = select(whole, selection);
  require_real_inputs(selected, model.name());
  found.conventions = selected.conventions;
  require_plain_integers(flags, found);
  question->logits = std::move(selected.graph);
  question->options = {.norm = found.norm, .parts = flags.parts, .seed = found.seed};
  if (!flags.inference.empty()) {
    question->options.margins_needed =
        inference_margins(whole, squash,
                          {format_of(flags.inference),
                           format_of(flags.accumulate.empty() ? flags.inference : flags.accumulate),
                           flags.flush_to_zero},
                          found.norm);
  }
  return question;
}

std::vector<double> radii_to_report(const CertifyFlags& flags, const Certified& found) {
  std::vector<double> radii = flags.radii.empty() ? usual_radii(found.norm) : flags.radii;
  if (found.table.required) radii.push_back(found.table.required->radius);
  std::ranges::sort(radii);
  radii.erase(std::unique(radii.begin(), radii.end()), radii.end());
  return radii;
}

void add_hints(Certified& found, const Graph& whole) {
  const CertifyFlags& flags = found.flags;
  if (const std::string hint = chance_hint(found.table, found.data.scaled.high); !hint.empty())
    found.hints.push_back(hint);
  if (found.data.scaled.high >= 100 && found.data.whole && flags.data.std.empty() &&
      flags.data.scale.empty() && found.conventions.integers_as_reals.empty()) {
    found.hints.push_back(fmt::format(
        "the data are whole numbers up to {:g} and radii in their units; if the model was made "
        "for pixels in [0, 1], say so: --scale 1/255",
        found.data.scaled.high));
  }
  const bool finite = std::ranges::any_of(found.constants.upper,
                                          [](const Bound& b) { return std::isfinite(b.value); });
  if (!flags.local() && !finite && found.constants.finished) {
    found.hints.push_back(fmt::format(
        "no margin has a finite constant in the whole space, so no radius is above 0{}: "
        "--scope local finds radii around each sample",
        found.local_obstacle.empty() ? "" : " (" + found.local_obstacle + ")"));
  }
  if (whole.outputs().size() > 1) {
    found.hints.push_back(fmt::format(
        "the model has {} outputs; the first, '{}', decides, and the others are left out",
        whole.outputs().size(), found.output));
  }
  if (!flags.data.std.empty() || !flags.data.mean.empty()) found.hints.push_back(scale_hint(flags));
}

}  // namespace lipscope::app
