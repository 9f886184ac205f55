// SPDX-License-Identifier: Apache-2.0
#include "certify_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/parallel.h"
#include "base/sha256.h"
#include "conventions.h"
#include "count_progress.h"
#include "files.h"
#include "interrupt.h"
#include "lipscope/error.h"
#include "number_flags.h"
#include "progress.h"
#include "sample_log.h"

namespace lipscope::app {
namespace {

using Clock = std::chrono::steady_clock;

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

// A squash keeps the order of all entries unless it normalises them in groups; a softmax of n equal
// entries gives 1/n each.
bool keeps_order(const Graph& graph, const Node& squash) {
  if (squash.op->name() == "Sigmoid") return true;
  const Shape& shape = graph.value(squash.inputs[0]).type.shape;
  const Tensor zeros = Tensor::zeros(ElementType::kFloat64, shape);
  const Box box{zeros, zeros};
  const auto shares = squash.op->range(std::span(&box, 1));
  if (!shares) return false;
  const double share = (*shares)[0].upper.doubles()[0];
  const double group = 1 / (squash.op->name() == "Softmax" ? share : std::exp(share));
  return group > 0.75 * static_cast<double>(element_count(shape));
}

ElementType format_of(const std::string& name) {
  return name == "float16"    ? ElementType::kFloat16
         : name == "bfloat16" ? ElementType::kBFloat16
                              : ElementType::kFloat32;
}

// Few round numbers between the small and the large radii found.
std::vector<double> round_radii(const std::vector<Decision>& decisions) {
  std::vector<double> found;
  for (const Decision& d : decisions) {
    const double r = d.attack_radius ? std::max(d.radius, *d.attack_radius) : d.radius;
    if (r > 0 && std::isfinite(r)) found.push_back(r);
  }
  if (found.empty()) return {0.1};
  std::ranges::sort(found);
  const double high = found[found.size() * 9 / 10], low = 0.02 * high;
  std::vector<double> radii;
  for (int e = static_cast<int>(std::floor(std::log10(low))); radii.size() < 12; ++e) {
    for (const int digit : {1, 2, 5}) {
      double radius = 0;
      const std::string text = fmt::format("{}e{}", digit, e);
      std::from_chars(text.data(), text.data() + text.size(), radius);
      if (radius > high) return radii.empty() ? std::vector<double>{radius} : radii;
      if (radius >= low) radii.push_back(radius);
    }
  }
  return radii;
}

void add_hints(Certified& found, Index classes) {
  const double accuracy = static_cast<double>(found.clean()) /
                          static_cast<double>(std::max<Index>(1, found.data.count));
  const bool bytes = found.data.high >= 100 && found.data.whole && found.flags.data.std.empty();
  if (found.data.count < 10 || accuracy > 1.5 / static_cast<double>(classes)) {
    if (bytes) {
      found.hints.push_back(fmt::format(
          "the data are whole numbers up to {:g} and radii in their units; if the model was made "
          "for pixels in [0, 1], say so: --scale 1/255",
          found.data.high));
    }
    return;
  }
  std::string hint =
      fmt::format("clean accuracy {:.1f} % is near chance ({:.1f} %):", 100 * accuracy,
                  100.0 / static_cast<double>(classes));
  if (found.data.high > 1.5) {
    hint +=
        fmt::format(" the data go up to {:g}; most models want pixels in [0, 1]: --scale 1/255?",
                    found.data.high);
  } else {
    hint +=
        " does the model want other scaling (--scale, --mean, --std), another order of the axes, "
        "or are these the labels of other samples?";
  }
  found.hints.push_back(hint);
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

std::string digest_of(const LabelledData& data) {
  const auto bytes = std::as_bytes(std::span(data.points));
  std::vector<std::byte> all(bytes.begin(), bytes.end());
  const auto labels = std::as_bytes(std::span(data.labels));
  all.insert(all.end(), labels.begin(), labels.end());
  return sha256(all);
}

// Everything after the constants.
class Run {
 public:
  // `seconds_left`: of the time the user allows; 0 when interrupted.
  Run(Certified& found, const Certifier& certifier, SampleLog& log, const Common& common,
      std::function<double()> seconds_left)
      : found_(found),
        certifier_(certifier),
        log_(log),
        common_(common),
        seconds_left_(std::move(seconds_left)),
        local_(found.flags.scope == "local"),
        size_(static_cast<std::size_t>(found.data.size)) {}

  void run() {
    found_.decisions = certifier_.decide(found_.data.points, found_.data.labels);
    if (!local_ && !found_.flags.attack) return;
    std::vector<std::size_t> left;
    for (std::size_t s = 0; s < found_.decisions.size(); ++s) {
      if (!take_over(s) && found_.right(s)) left.push_back(s);
    }
    CountProgress progress(common_, local_ ? "certifying" : "attacking", std::ssize(left));
    // Samples that were cut short go on as long as there is time.
    for (bool first_round = true; first_round || (!left.empty() && seconds_left_() > 0);
         first_round = false) {
      std::atomic<Index> remaining = std::ssize(left);
      std::vector<char> whole(left.size());
      parallel_for(std::ssize(left), 1, [&](Index first, Index last) {
        for (Index k = first; k < last; ++k) {
          const auto at = static_cast<std::size_t>(k);
          // All samples have the same right to the time that is left.
          const double share =
              seconds_left_() * threads() / static_cast<double>(remaining.fetch_sub(1));
          whole[at] = share > 0 && finish(left[at], share) ? 1 : 0;
          if (first_round) progress.add(1);
        }
      });
      std::vector<std::size_t> cut;
      for (std::size_t k = 0; k < left.size(); ++k) {
        if (whole[k] == 0) cut.push_back(left[k]);
      }
      left = std::move(cut);
    }
    complete_ = left.empty();
  }

  [[nodiscard]] bool complete() const { return complete_; }

 private:
  bool take_over(std::size_t s) {
    const auto row = log_.earlier().find(static_cast<Index>(s));
    if (row == log_.earlier().end()) return false;
    if (!found_.right(s)) return true;
    Decision& d = found_.decisions[s];
    const Decision& saved = row->second;
    if (saved.radius >= d.radius) {
      d.radius = saved.radius;
      d.method = saved.method;
      d.rival = saved.rival;
    }
    d.attack_radius = saved.attack_radius;
    return true;
  }

  // One sample, attacked and improved where asked for; false when it was cut short.
  bool finish(std::size_t s, double seconds) {
    const double end = seconds_left_() - seconds;
    const auto stop = [&] { return seconds_left_() <= std::max(end, 0.0); };
    const auto point = std::span(found_.data.points).subspan(s * size_, size_);
    Decision& d = found_.decisions[s];
    certifier_.attack(point, std::span(&found_.data.labels[s], 1), std::span(&d, 1), stop);
    if (local_) certifier_.improve(point, d, stop);
    if (!found_.flags.attack) d.attack_radius.reset();
    if (stop()) return false;  // what there is is valid, but a longer run may find more
    log_.add(static_cast<Index>(s), d);
    return true;
  }

  Certified& found_;
  const Certifier& certifier_;
  SampleLog& log_;
  const Common& common_;
  std::function<double()> seconds_left_;
  bool local_;
  std::size_t size_;
  bool complete_ = true;
};

}  // namespace

Index Certified::clean() const {
  Index count = 0;
  for (std::size_t s = 0; s < decisions.size(); ++s) count += right(s) ? 1 : 0;
  return count;
}

Index Certified::certified_at(double radius) const {
  Index count = 0;
  for (std::size_t s = 0; s < decisions.size(); ++s)
    count += right(s) && decisions[s].radius >= radius && !unproved(s) ? 1 : 0;
  return count;
}

Index Certified::standing_at(double radius) const {
  Index count = 0;
  for (std::size_t s = 0; s < decisions.size(); ++s) {
    const auto& attack = decisions[s].attack_radius;
    count += right(s) && !(attack && *attack <= radius) ? 1 : 0;
  }
  return count;
}

Verdict Certified::verdict() const {
  if (!required) return Verdict::kHolds;
  const double least = required->percent * static_cast<double>(data.count);
  if (100 * static_cast<double>(certified_at(required->radius)) >= least) return Verdict::kHolds;
  const bool refuted = 100 * static_cast<double>(standing_at(required->radius)) < least;
  return refuted && flags.inference.empty() ? Verdict::kFails : Verdict::kOpen;
}

Certified run_certify(const CertifyFlags& flags, const Common& common) {
  const auto start = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  Certified found{.flags = flags};
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
  if (!flags.require.empty()) found.required = parse_requirement(flags.require);
  for (const double radius : flags.radii) {
    if (!(radius >= 0) || std::isinf(radius))
      throw Error(ErrorCode::kUsage, fmt::format("--radii {}: not a radius", radius));
  }
  const OnnxModel model = read_model(flags.model.path);
  model.require_supported();
  found.model_file = model.name();
  found.sha256 = model.sha256();
  found.data = read_labelled(model, flags.data);
  found.data.options.dims = flags.model.options().dims;
  const Graph whole = model.graph(found.data.options);
  const Node* squash = final_squash(whole);
  if (squash != nullptr && !keeps_order(whole, *squash)) squash = nullptr;
  if (squash != nullptr) {
    (flags.inference.empty() ? found.dropped : found.squash) = squash->op->name();
  }
  found.output = whole.value(whole.outputs()[0]).name;
  Selection logits;
  logits.logits = squash != nullptr;
  const Selected selected = select(whole, logits);
  if (!selected.from.empty()) {
    throw Error(
        ErrorCode::kUnsupported,
        fmt::format("{}: its input is cast to whole numbers at node '{}', so it cannot move "
                    "a little",
                    model.name(), selected.from));
  }
  for (const ValueId id : selected.graph.inputs()) {
    const Value& input = selected.graph.value(id);
    if (is_floating(input.type.type)) continue;
    throw Error(ErrorCode::kUnsupported,
                fmt::format("{}: input '{}' takes whole numbers, which cannot move a little",
                            model.name(), input.name));
  }
  found.conventions = selected.conventions;
  if (!found.conventions.integers_as_reals.empty()) {
    require_unscaled(found.conventions, parse_scale(flags.data.scale));
    if (!flags.data.mean.empty() || !flags.data.std.empty() || !flags.inference.empty())
      throw Error(ErrorCode::kUnsupported,
                  fmt::format("{}: --mean, --std and --inference are for inputs that take real "
                              "numbers; input '{}' takes whole ones",
                              model.name(), found.conventions.integers_as_reals.front()));
  }
  CertifyOptions options{.norm = found.norm, .parts = flags.parts, .seed = common.seed};
  if (!flags.inference.empty()) {
    options.margins_needed =
        inference_margins(whole, squash,
                          {format_of(flags.inference),
                           format_of(flags.accumulate.empty() ? flags.inference : flags.accumulate),
                           flags.flush_to_zero},
                          found.norm);
  }
  Certifier certifier(selected.graph, options);
  require_classes(found.data, certifier.classes(),
                  flags.data.labels.empty() ? flags.data.data : flags.data.labels);
  SampleLog log(flags.resume,
                {{"schema", "lipscope.certify-samples/1"},
                 {"model", found.sha256},
                 {"data", digest_of(found.data)},
                 {"norm", found.norm.name()},
                 {"scope", flags.scope},
                 {"attack", flags.attack},
                 {"inference", flags.inference},
                 {"accumulate", flags.accumulate},
                 {"flush_to_zero", flags.flush_to_zero},
                 {"parts", flags.parts},
                 {"seed", common.seed}},
                {.samples = found.data.count, .classes = certifier.classes()});
  {
    Progress progress(common);
    const RunContext context{.clock = common.clock,
                             .seed = common.seed,
                             .progress = [&](const ProgressEvent& e) { progress.show(e); }};
    const double share = flags.scope == "local" ? 0.1 : 0.25;
    found.constants = certifier.find_constants(
        std::chrono::duration<double>(share * common.clock->limit()), context);
  }
  found.seconds_constants = seconds();
  const auto seconds_left = [&] { return common.seconds_left(); };
  Run run(found, certifier, log, common, seconds_left);
  run.run();
  found.local_obstacle = certifier.local_obstacle();
  if (common.clock->stop_requested()) {
    found.outcome = Outcome::kInterrupted;
  } else if (!run.complete()) {
    found.outcome = Outcome::kTimeLimit;
  }
  found.radii = flags.radii.empty() ? round_radii(found.decisions) : flags.radii;
  if (found.required) found.radii.push_back(found.required->radius);
  std::ranges::sort(found.radii);
  found.radii.erase(std::unique(found.radii.begin(), found.radii.end()), found.radii.end());
  add_hints(found, certifier.classes());
  if (flags.scope == "global" && std::ranges::all_of(found.constants.upper, [](const Bound& b) {
        return std::isinf(b.value);
      })) {
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
  found.seconds = seconds();
  return found;
}

}  // namespace lipscope::app
