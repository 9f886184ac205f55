// SPDX-License-Identifier: Apache-2.0
#include "lipscope/sample_rounds.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/memory_budget.h"
#include "base/parallel.h"
#include "net/small.h"
#include "robust/own_budget.h"

namespace lipscope {
namespace {

// Of a sample, as a part of the run's budget of work.
constexpr double kSampleShare = 0.025;

enum class Round { kWhole, kAttack, kCases, kRadius };
struct RoundName {
  Round round;
  std::string_view name;
};
constexpr std::array<RoundName, 4> kRounds = {{{Round::kWhole, "linear bounds"},
                                               {Round::kAttack, "attacks"},
                                               {Round::kCases, "cases"},
                                               {Round::kRadius, "largest radii"}}};

class SampleRounds {
 public:
  SampleRounds(const Certifier& certifier, const SampleSet& set, const RunClock& clock, double end,
               const SampleHooks& hooks, std::span<SampleWork> samples)
      : certifier_(certifier),
        set_(set),
        clock_(clock),
        end_(end),
        hooks_(hooks),
        samples_(samples) {
    for (std::size_t s = 0; s < samples.size(); ++s) {
      const Decision& d = samples[s].decision;
      if (!d.certain || d.predicted != set.labels[s] || !(set.local || set.attack))
        samples[s].complete = true;
    }
  }

  bool run() {
    if (clock_.counts_work()) {
      run_each();
    } else {
      for (const RoundName& round : kRounds) run_round(round);
    }
    return std::ranges::all_of(samples_, &SampleWork::complete);
  }

 private:
  // Every sample through all rounds, with a budget of its own.
  void run_each() {
    std::vector<std::size_t> left;
    for (std::size_t s = 0; s < samples_.size(); ++s) {
      if (!samples_[s].complete) left.push_back(s);
    }
    if (hooks_.begin) hooks_.begin(set_.local ? "radii" : "attacks", std::ssize(left));
    parallel_for(std::ssize(left), 1, [&](Index first, Index last) {
      for (Index k = first; k < last; ++k) {
        const OwnBudget budget(clock_, 0, kSampleShare * clock_.limit());
        for (const RoundName& round : kRounds) {
          if (budget.over() || !wants(round.round, left[to_size(k)])) continue;
          advance(round.round, left[to_size(k)], budget);
        }
        if (hooks_.done && !clock_.stop_requested()) hooks_.done(left[to_size(k)]);
      }
    });
  }

  void run_round(const RoundName& round) {
    std::vector<std::size_t> left;
    for (std::size_t s = 0; s < samples_.size(); ++s) {
      if (wants(round.round, s)) left.push_back(s);
    }
    if (left.empty() || clock_.stop_requested() || clock_.now() >= end_) return;
    if (round.round == Round::kCases)
      std::ranges::stable_sort(left, {}, [&](std::size_t s) { return hardness(s); });
    if (hooks_.begin) hooks_.begin(round.name, std::ssize(left));
    parallel_for(std::ssize(left), 1, [&](Index first, Index last) {
      for (Index k = first; k < last; ++k) {
        const OwnBudget budget(clock_, end_, 0);
        if (budget.over()) return;
        if (advance(round.round, left[to_size(k)], budget) && hooks_.done)
          hooks_.done(left[to_size(k)]);
      }
    });
  }

  [[nodiscard]] bool wants(Round round, std::size_t s) const {
    const SampleWork& work = samples_[s];
    if (work.complete) return false;
    switch (round) {
      case Round::kWhole: return set_.local && next_open(work, work.whole_failed) > 0;
      case Round::kAttack: return !work.attacked && (set_.attack || next_open(work, HUGE_VAL) > 0);
      case Round::kCases: return set_.local && next_open(work, work.cases_failed) > 0;
      case Round::kRadius: return true;
    }
    return false;
  }

  // The least radius that is asked for, open and below `failed`; 0: none.
  [[nodiscard]] double next_open(const SampleWork& work, double failed) const {
    for (const double radius : set_.radii) {
      if (radius > 0 && radius < failed && work.open_at(radius)) return radius;
    }
    return 0;
  }

  // A ball that is small beside the way to another class needs few cases.
  [[nodiscard]] double hardness(std::size_t s) const {
    const SampleWork& work = samples_[s];
    const double radius = next_open(work, work.cases_failed);
    return radius / work.decision.attack_radius.value_or(HUGE_VAL);
  }

  // False when it was cut short: the sample is as the last step that was finished left it.
  bool advance(Round round, std::size_t s, const OwnBudget& budget) {
    try {
      switch (round) {
        case Round::kWhole: return climb(s, BallDepth::kWhole, budget);
        case Round::kAttack: return attack(s, budget);
        case Round::kCases: return climb(s, BallDepth::kCases, budget);
        case Round::kRadius: return widen(s, budget);
      }
    } catch (const Stopped&) {
      return false;
    } catch (const std::bad_alloc&) {
      relieve_memory();
      return false;
    }
    return false;
  }

  // From one radius that is asked for to the next, until one is not proved.
  bool climb(std::size_t s, BallDepth depth, const OwnBudget& budget) {
    SampleWork& work = samples_[s];
    double& failed = depth == BallDepth::kWhole ? work.whole_failed : work.cases_failed;
    for (double radius = 0; (radius = next_open(work, failed)) > 0;) {
      Decision tried = work.decision;
      const bool proved =
          certifier_.prove(point(s), radius, depth, tried, [&] { return budget.over(); });
      if (!proved && budget.over()) return false;
      work.decision = tried;
      if (!proved) failed = radius;
    }
    return true;
  }

  bool attack(std::size_t s, const OwnBudget& budget) {
    SampleWork& work = samples_[s];
    Decision tried = work.decision;
    certifier_.attack(point(s), set_.labels.subspan(s, 1), std::span(&tried, 1),
                      [&] { return budget.over(); });
    const auto before = work.decision.attack_radius;
    if (before && !(tried.attack_radius && *tried.attack_radius < *before))
      tried.attack_radius = before;
    work.decision = tried;
    work.attacked = !budget.over();
    if (work.attacked && !set_.local) work.complete = true;
    return work.attacked;
  }

  bool widen(std::size_t s, const OwnBudget& budget) {
    SampleWork& work = samples_[s];
    if (!work.attacked && !attack(s, budget)) return false;
    if (set_.local) {
      Decision tried = work.decision;
      certifier_.improve(
          point(s), tried, [&] { return budget.over(); }, work.cases_failed);
      work.decision = tried;
      if (budget.over()) return false;
    }
    work.complete = true;
    return true;
  }

  [[nodiscard]] std::span<const double> point(std::size_t s) const {
    return set_.points.subspan(s * set_.size, set_.size);
  }

  const Certifier& certifier_;
  const SampleSet& set_;
  const RunClock& clock_;
  double end_;
  const SampleHooks& hooks_;
  std::span<SampleWork> samples_;
};

}  // namespace

bool certify_samples(const Certifier& certifier, const SampleSet& set, const RunClock& clock,
                     double end, const SampleHooks& hooks, std::span<SampleWork> samples) {
  return SampleRounds(certifier, set, clock, end, hooks, samples).run();
}

}  // namespace lipscope
