// SPDX-License-Identifier: Apache-2.0
#include "certify_run.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/checkpoint.h"
#include "base/sha256.h"
#include "certify_question.h"
#include "count_progress.h"
#include "lipscope/sample_rounds.h"
#include "progress.h"
#include "robust/margin_needs.h"
#include "sample_log.h"

namespace lipscope::app {
namespace {

// Of the sample and its label, whatever file they came from and wherever they stand in it.
std::string digest_of(const LabelledData& data, std::size_t s) {
  const auto size = static_cast<std::size_t>(data.size);
  const auto bytes = std::as_bytes(std::span(data.points).subspan(s * size, size));
  std::vector<std::byte> all(bytes.begin(), bytes.end());
  const auto label = std::as_bytes(std::span(data.labels).subspan(s, 1));
  all.insert(all.end(), label.begin(), label.end());
  return sha256(all).substr(0, 32);
}

Json log_question(const Certified& found) {
  return {{"schema", "lipscope.certify-samples/2"},
          {"model", found.sha256},
          {"output", found.output},
          {"norm", found.norm.name()},
          {"scope", found.flags.scope},
          {"inference", found.flags.inference},
          {"accumulate", found.flags.accumulate},
          {"flush_to_zero", found.flags.flush_to_zero},
          {"parts", found.flags.parts},
          {"seed", found.seed},
          {"effort", found.effort ? Json(*found.effort) : Json(nullptr)}};
}

// Everything after the constants.
class SampleRun {
 public:
  SampleRun(const Certified& found, const Certifier& certifier, const LogitTable& logits,
            const Common& common)
      : found_(found),
        certifier_(certifier),
        logits_(logits),
        common_(common),
        log_(found.flags.resume, log_question(found), found.constants.classes) {}

  void run(double end) {
    const bool logged = !found_.flags.resume.empty();
    const std::vector<Decision> decisions = [&] {
      const Unstoppable finish;
      return certifier_.decide(found_.data.points, found_.data.labels, logits_);
    }();
    for (std::size_t s = 0; s < decisions.size(); ++s) {
      samples_.push_back({.decision = decisions[s]});
      digests_.push_back(logged ? digest_of(found_.data, s) : "");
      if (logged) take_over(s);
    }
    const SampleSet set{.points = found_.data.points,
                        .labels = found_.data.labels,
                        .radii = found_.table.radii,
                        .local = found_.flags.local(),
                        .attack = found_.flags.attack,
                        .size = static_cast<std::size_t>(found_.data.size)};
    std::optional<CountProgress> progress;
    const SampleHooks hooks{
        .begin = [&](std::string_view round,
                     Index count) { progress.emplace(common_, std::string(round), count); },
        .done =
            [&](std::size_t s) {
              progress->add(1);
              if (logged) log_.add(digests_[s], samples_[s]);
            }};
    (void)certify_samples(certifier_, set, *common_.clock, end, hooks, samples_);
    for (std::size_t s = 0; logged && s < samples_.size(); ++s) {
      if (!samples_[s].complete) log_.add(digests_[s], samples_[s]);
    }
  }

  [[nodiscard]] std::vector<SampleRow> rows() const {
    const bool attacked = found_.table.attacked;
    std::vector<SampleRow> rows;
    for (std::size_t s = 0; s < samples_.size(); ++s) {
      const Decision& d = samples_[s].decision;
      rows.push_back({.index = found_.data.indices[s],
                      .label = found_.data.labels[s],
                      .predicted = d.predicted,
                      .radius = d.radius,
                      .method = d.method,
                      .attack_radius = attacked ? d.attack_radius : std::nullopt,
                      .rival = d.rival >= 0 ? std::optional(d.rival) : std::nullopt,
                      .tie = !d.certain,
                      .complete = samples_[s].complete && s < logits_.samples});
    }
    return rows;
  }

 private:
  void take_over(std::size_t s) {
    const auto row = log_.earlier().find(digests_[s]);
    SampleWork& work = samples_[s];
    if (row == log_.earlier().end() || !work.decision.certain ||
        work.decision.predicted != found_.data.labels[s])
      return;
    const SampleWork& saved = row->second;
    Decision& d = work.decision;
    if (saved.decision.radius >= d.radius) {
      d.radius = saved.decision.radius;
      d.method = saved.decision.method;
      d.rival = saved.decision.rival;
    }
    d.attack_radius = saved.decision.attack_radius;
    work.attacked = saved.attacked;
    work.whole_failed = saved.whole_failed;
    work.cases_failed = saved.cases_failed;
    work.complete = saved.complete;
  }

  const Certified& found_;
  const Certifier& certifier_;
  const LogitTable& logits_;
  const Common& common_;
  SampleLog log_;
  std::vector<SampleWork> samples_;
  std::vector<std::string> digests_;
};

// How much of so many seconds constants may take. They are what all samples have, so that a short
// run around samples spends more of itself on them.
double constants_time(const CertifyFlags& flags, double seconds) {
  if (!flags.local()) return (flags.attack ? 0.25 : 1) * seconds;
  return std::max(0.1 * seconds, std::min(3.0, 0.3 * seconds));
}

// Of all samples under a budget of work, which is one for each of them.
std::shared_ptr<const LogitTable> read_logits(const Certifier& certifier, const Certified& found,
                                              const RunClock& clock, double end) {
  const Unstoppable each;
  const bool all = clock.counts_work();
  const double before = errand().work;
  auto logits = certifier.logits(
      found.data.points, [&] { return clock.stop_requested() || (!all && clock.now() >= end); });
  if (all) errand().work = before;
  return logits;
}

}  // namespace

Certified run_certify(const CertifyFlags& flags, const Common& common) {
  const RunClock& clock = *common.clock;
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  Certified found{.flags = flags, .seed = common.seed, .effort = common.effort};
  check_flags(flags, found);
  const auto question = read_question(flags, found);
  found.table.radii = radii_to_report(flags, found);
  found.table.local = flags.local();
  found.table.attacked = flags.local() || flags.attack;
  found.table.computed = !flags.inference.empty();
  Certifier certifier(question->logits, question->options);
  found.table.classes = certifier.classes();
  require_classes(found.data, certifier.classes(),
                  flags.data.labels.empty() ? flags.data.data : flags.data.labels);
  // What is left for the document.
  const double end = clock.limit() - std::min(0.3, 0.02 * clock.limit());
  std::shared_ptr<const LogitTable> logits;
  {
    Progress progress(common);
    const RunContext context{.clock = common.clock,
                             .seed = common.seed,
                             .progress = [&](const ProgressEvent& e) { progress.show(e); }};
    // Neither constants nor logits are worth anything alone; then the logits of more samples are
    // worth more than better constants.
    found.constants = certifier.find_cheap_constants(context);
    logits = read_logits(certifier, found, clock, end);
    const double left = clock.counts_work() ? end : end - clock.now();
    if (left > 0)
      found.constants = certifier.find_constants(
          std::chrono::duration<double>(constants_time(flags, left)), context,
          {.logits = logits, .labels = found.data.labels, .radii = found.table.radii});
  }
  found.seconds_constants = seconds();
  SampleRun run(found, certifier, *logits, common);
  run.run(end);
  const Unstoppable finish;
  found.table.rows = run.rows();
  found.local_obstacle = certifier.local_obstacle();
  if (clock.stop_requested()) {
    found.outcome = Outcome::kInterrupted;
  } else if (!found.table.complete() || (!found.table.attacked && !found.constants.finished)) {
    found.outcome = common.cut_short();
  }
  add_hints(found, question->whole);
  found.seconds = seconds();
  return found;
}

}  // namespace lipscope::app
