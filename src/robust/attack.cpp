// SPDX-License-Identifier: Apache-2.0
#include "robust/attack.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "base/rounding.h"
#include "bounds/boxes.h"
#include "estimate/jacobian_norm.h"
#include "lipscope/evaluate.h"
#include "net/small.h"

namespace lipscope {
namespace {

constexpr Index kRivals = 9;  // classes tried per sample
constexpr int kSteps = 20, kHalvings = 12, kBoundarySteps = 4;
constexpr Index kRowsTogether = 512;
constexpr std::size_t kNearestRivals = 3;  // nearest rivals that are looked at longer
constexpr int kFewRounds = 6, kRounds = 12, kDescentSteps = 25;
constexpr double kFirstShare = 0.65;

// One sample and one rival class each.
struct Rows {
  std::vector<double> center, x;  // entries one after another
  std::vector<Index> winner, rival, sample;
  std::vector<double> best;  // distances; infinity: none yet
  std::vector<double> best_x;
  std::vector<std::mt19937_64> rng;  // of each row, so that it does not matter which are together
  [[nodiscard]] std::size_t count() const { return winner.size(); }
};

class BoundaryWalk {
 public:
  BoundaryWalk(const Graph& graph, const Norm& norm, const std::function<bool()>& stop)
      : graph_(graph),
        stop_(stop),
        norm_(norm),
        dual_(norm.dual()),
        size_(static_cast<std::size_t>(input_size(graph))),
        classes_(element_count(graph.value(graph.outputs()[0]).type.shape)) {}

  [[nodiscard]] std::size_t size() const { return size_; }

  // Towards the boundary, and back where it was passed.
  void walk(Rows& rows) const {
    std::vector<double> margin, gradient, near(size_), from_center(size_);
    for (int step = 0; step < kSteps && !stop_(); ++step) {
      linearise(rows, margin, gradient);
      for (std::size_t r = 0; r < rows.count(); ++r) {
        const auto x = std::span(rows.x).subspan(r * size_, size_);
        const auto center = std::span(rows.center).subspan(r * size_, size_);
        if (margin[r] < 0) {
          keep(rows, r);
          for (std::size_t j = 0; j < size_; ++j) x[j] = center[j] + 0.9 * (x[j] - center[j]);
          continue;
        }
        const auto w = std::span<const double>(gradient).subspan(r * size_, size_);
        const double slope = vector_norm(w, dual_);
        if (!(slope > 0) || !std::isfinite(slope)) continue;
        double at_center = margin[r];
        for (std::size_t j = 0; j < size_; ++j) at_center += w[j] * (center[j] - x[j]);
        dual_vector(w, dual_, near);
        const double d1 = margin[r] / slope, d2 = std::max(0.0, at_center / slope);
        const double pull = d1 + d2 > 0 ? std::min(0.1, d1 / (d1 + d2)) : 0;
        constexpr double kOver = 1.05;
        for (std::size_t j = 0; j < size_; ++j) {
          x[j] = (1 - pull) * (x[j] - kOver * d1 * near[j]) +
                 pull * (center[j] - kOver * d2 * near[j]);
        }
      }
    }
    linearise(rows, margin, gradient);
    for (std::size_t r = 0; r < rows.count(); ++r) {
      if (margin[r] < 0) keep(rows, r);
    }
  }

  // Descends the margin inside smaller and smaller balls, from random points and from the best one.
  void press(Rows& rows, int rounds) const {
    std::vector<double> margin, gradient, steepest(size_), radius(rows.count());
    std::vector<double> share(rows.count(), kFirstShare);
    std::vector<double> momentum(rows.x.size());
    for (int round = 0; round < rounds && !stop_(); ++round) {
      const std::vector<double> before = rows.best;
      start_inside(rows, share, round % 2 == 0, radius);
      std::ranges::fill(momentum, 0);
      for (int step = 0; step <= kDescentSteps; ++step) {
        linearise(rows, margin, gradient);
        const double way = 0.5 * std::pow(0.9, step);
        for (std::size_t r = 0; r < rows.count(); ++r) {
          if (margin[r] < 0) keep(rows, r);
          const auto w = std::span<const double>(gradient).subspan(r * size_, size_);
          dual_vector(w, dual_, steepest);
          const auto x = std::span(rows.x).subspan(r * size_, size_);
          const auto center = std::span(rows.center).subspan(r * size_, size_);
          for (std::size_t j = 0; j < size_; ++j) {
            double& m = momentum[r * size_ + j];
            m = 0.5 * m - 0.5 * steepest[j];
            x[j] += way * radius[r] * 2 * m;
          }
          pull_inside(x, center, radius[r]);
        }
      }
      shorten(rows);
      for (std::size_t r = 0; r < rows.count(); ++r) {
        if (!(rows.best[r] < before[r])) share[r] = 0.5 + 0.5 * share[r];
      }
    }
  }

  // Along the segment to the best point, then onto the boundary as it is there.
  void polish(Rows& rows) const {
    std::vector<double> margin, gradient, near(size_);
    for (int round = 0; round < kBoundarySteps && !stop_(); ++round) {
      shorten(rows);
      rows.x = rows.best_x;
      linearise(rows, margin, gradient);
      const double over = 1 + std::pow(10.0, -2 - 2 * round);
      for (std::size_t r = 0; r < rows.count(); ++r) {
        const auto x = std::span(rows.x).subspan(r * size_, size_);
        const auto center = std::span(rows.center).subspan(r * size_, size_);
        const auto w = std::span<const double>(gradient).subspan(r * size_, size_);
        const double slope = vector_norm(w, dual_);
        if (std::isinf(rows.best[r]) || !(slope > 0) || !std::isfinite(slope)) continue;
        double at_center = margin[r];
        for (std::size_t j = 0; j < size_; ++j) at_center += w[j] * (center[j] - x[j]);
        dual_vector(w, dual_, near);
        for (std::size_t j = 0; j < size_; ++j)
          x[j] = center[j] - over * std::max(0.0, at_center / slope) * near[j];
      }
      linearise(rows, margin, gradient);
      for (std::size_t r = 0; r < rows.count(); ++r) {
        if (margin[r] < 0) keep(rows, r);
      }
    }
    shorten(rows);
  }

 private:
  void pull_inside(std::span<double> x, std::span<const double> center, double radius) const {
    if (std::isinf(norm_.p())) {
      for (std::size_t j = 0; j < size_; ++j)
        x[j] = std::clamp(x[j], center[j] - radius, center[j] + radius);
      return;
    }
    std::vector<double> step(size_);
    for (std::size_t j = 0; j < size_; ++j) step[j] = x[j] - center[j];
    const double length = vector_norm(step, norm_);
    if (!(length > radius)) return;
    for (std::size_t j = 0; j < size_; ++j) x[j] = center[j] + radius / length * step[j];
  }

  // Into the balls of a share of the best distance: towards the best point, or at random.
  void start_inside(Rows& rows, const std::vector<double>& share, bool at_best,
                    std::vector<double>& radius) const {
    std::uniform_real_distribution<double> uniform(-1, 1);
    for (std::size_t r = 0; r < rows.count(); ++r) {
      radius[r] = std::isinf(rows.best[r]) ? 0 : share[r] * rows.best[r];
      const auto x = std::span(rows.x).subspan(r * size_, size_);
      const auto center = std::span(rows.center).subspan(r * size_, size_);
      for (std::size_t j = 0; j < size_; ++j)
        x[j] = at_best ? rows.best_x[r * size_ + j] : center[j] + radius[r] * uniform(rows.rng[r]);
      pull_inside(x, center, radius[r]);
    }
  }

  [[nodiscard]] std::vector<Tensor> inputs(const std::vector<double>& x, std::size_t count) const {
    std::vector<Tensor> tensors;
    std::size_t begin = 0;
    for (const ValueId id : graph_.inputs()) {
      const ValueType& type = graph_.value(id).type;
      Shape shape = type.shape;
      shape.insert(shape.begin(), static_cast<Index>(count));
      Tensor tensor = Tensor::zeros(type.type, std::move(shape));
      if (is_floating(type.type)) {
        const std::size_t n = to_size(element_count(type.shape));
        const auto to = tensor.doubles();
        for (std::size_t r = 0; r < count; ++r)
          std::copy_n(x.begin() + static_cast<Index>(r * size_ + begin), n,
                      to.begin() + static_cast<Index>(r * n));
        begin += n;
      }
      tensors.push_back(std::move(tensor));
    }
    return tensors;
  }

  // The winner's logit less the largest other one; less the rival's where the winner leads.
  [[nodiscard]] double margin_of(const Rows& rows, std::size_t r, std::span<const double> f) const {
    const double own = f[r * to_size(classes_) + to_size(rows.winner[r])];
    double other = -kInf;
    for (Index j = 0; j < classes_; ++j) {
      if (j != rows.winner[r]) other = std::max(other, f[r * to_size(classes_) + to_size(j)]);
    }
    return own < other ? own - other : own - f[r * to_size(classes_) + to_size(rows.rival[r])];
  }

  void linearise(const Rows& rows, std::vector<double>& margin,
                 std::vector<double>& gradient) const {
    const std::size_t count = rows.count();
    const std::vector<Tensor> in = inputs(rows.x, count);
    const Trace trace(graph_, in, static_cast<Index>(count));
    const Tensor f = trace.value(graph_.outputs()[0]);
    margin.resize(count);
    Tensor weights = Tensor::zeros(ElementType::kFloat64, {static_cast<Index>(count), classes_});
    const auto w = weights.doubles();
    for (std::size_t r = 0; r < count; ++r) {
      margin[r] = margin_of(rows, r, f.doubles());
      w[r * to_size(classes_) + to_size(rows.winner[r])] = 1;
      w[r * to_size(classes_) + to_size(rows.rival[r])] = -1;
    }
    const std::vector<Tensor> found = trace.vjp(std::span(&weights, 1));
    gradient.assign(count * size_, 0);
    std::size_t begin = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (!is_floating(graph_.value(graph_.inputs()[i]).type.type)) continue;
      const std::size_t n = found[i].doubles().size() / count;
      for (std::size_t r = 0; r < count; ++r)
        std::copy_n(found[i].doubles().begin() + static_cast<Index>(r * n), n,
                    gradient.begin() + static_cast<Index>(r * size_ + begin));
      begin += n;
    }
  }

  void keep(Rows& rows, std::size_t r) const {
    std::vector<double> step(size_);
    for (std::size_t j = 0; j < size_; ++j)
      step[j] = rows.x[r * size_ + j] - rows.center[r * size_ + j];
    const double distance = vector_norm(step, norm_);
    if (!(distance < rows.best[r])) return;
    rows.best[r] = distance;
    std::copy_n(rows.x.begin() + static_cast<Index>(r * size_), size_,
                rows.best_x.begin() + static_cast<Index>(r * size_));
  }

  void shorten(Rows& rows) const {
    std::vector<double> low(rows.count(), 0), high(rows.count(), 1);
    const std::vector<double> ends = rows.best_x;
    for (int step = 0; step < kHalvings; ++step) {
      for (std::size_t r = 0; r < rows.count(); ++r) {
        const double t = 0.5 * (low[r] + high[r]);
        for (std::size_t j = r * size_; j < (r + 1) * size_; ++j)
          rows.x[j] = rows.center[j] + t * (ends[j] - rows.center[j]);
      }
      const std::vector<Tensor> in = inputs(rows.x, rows.count());
      const Tensor f = evaluate(graph_, in, static_cast<Index>(rows.count()))[0];
      for (std::size_t r = 0; r < rows.count(); ++r) {
        if (std::isinf(rows.best[r])) continue;
        const bool crossed = margin_of(rows, r, f.doubles()) < 0;
        if (crossed) keep(rows, r);
        (crossed ? high : low)[r] = 0.5 * (low[r] + high[r]);
      }
    }
  }

  const Graph& graph_;
  const std::function<bool()>& stop_;
  Norm norm_, dual_;
  std::size_t size_;
  Index classes_;
};

// The rows with the smallest distances of each sample.
Rows nearest_rows(const Rows& rows, std::size_t size) {
  std::vector<std::size_t> order(rows.count());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t r) {
    return std::pair{rows.sample[r], rows.best[r]};
  });
  Rows kept;
  for (std::size_t k = 0; k < order.size(); ++k) {
    const std::size_t r = order[k];
    if (k >= kNearestRivals && rows.sample[order[k - kNearestRivals]] == rows.sample[r]) continue;
    kept.winner.push_back(rows.winner[r]);
    kept.rival.push_back(rows.rival[r]);
    kept.sample.push_back(rows.sample[r]);
    kept.best.push_back(rows.best[r]);
    kept.rng.push_back(rows.rng[r]);
    const auto copy = [&](const std::vector<double>& from, std::vector<double>& to) {
      to.insert(to.end(), from.begin() + static_cast<Index>(r * size),
                from.begin() + static_cast<Index>((r + 1) * size));
    };
    copy(rows.center, kept.center);
    copy(rows.x, kept.x);
    copy(rows.best_x, kept.best_x);
  }
  return kept;
}

// The classes with the largest other logits.
std::vector<Index> nearest_rivals(std::span<const double> logits, Index winner) {
  std::vector<Index> order(logits.size());
  std::iota(order.begin(), order.end(), Index{0});
  std::erase(order, winner);
  std::ranges::sort(order,
                    [&](Index a, Index b) { return logits[to_size(a)] > logits[to_size(b)]; });
  order.resize(std::min(order.size(), to_size(kRivals)));
  return order;
}

double distance_up_to(std::span<const double> x, std::span<const double> y, const Norm& norm) {
  std::vector<double> step(x.size());
  for (std::size_t j = 0; j < x.size(); ++j) step[j] = magnitude(point(y[j]) - point(x[j]));
  return pnorm_up(step, norm.p());
}

// Where interval evaluation sees another class: at the point or a little further out.
double proved_distance(const LogitRanges& ranges, std::span<const double> center,
                       std::span<const double> found, Index winner, const Norm& norm) {
  for (const double further : {0.0, 1e-9, 1e-7, 1e-5, 1e-3}) {
    std::vector<double> y(found.begin(), found.end());
    for (std::size_t j = 0; j < y.size(); ++j) y[j] += further * (y[j] - center[j]);
    const std::vector<Interval> logits = ranges.of(y);
    for (std::size_t j = 0; j < logits.size(); ++j) {
      if (static_cast<Index>(j) != winner && logits[j].lo > logits[to_size(winner)].hi)
        return distance_up_to(center, y, norm);
    }
  }
  return kInf;
}

}  // namespace

std::vector<double> attack_distances(const Graph& graph, const LogitRanges& ranges,
                                     const AttackQuestion& question) {
  const BoundaryWalk walk(graph, question.norm, question.stop);
  const std::size_t size = walk.size(), count = question.winners.size();
  const std::vector<Interval> logits = ranges.of(question.points);
  const std::size_t classes = count > 0 ? logits.size() / count : 0;
  std::vector<double> distances(count, kInf);
  for (std::size_t s = 0; s < count;) {
    Rows rows;
    for (; s < count && std::ssize(rows.winner) < kRowsTogether; ++s) {
      std::vector<double> middle;
      for (std::size_t j = 0; j < classes; ++j) middle.push_back(midpoint(logits[s * classes + j]));
      for (const Index rival : nearest_rivals(middle, question.winners[s])) {
        rows.winner.push_back(question.winners[s]);
        rows.rival.push_back(rival);
        rows.sample.push_back(static_cast<Index>(s));
        rows.rng.emplace_back(question.seed + static_cast<std::uint64_t>(rival));
        const auto sample = question.points.subspan(s * size, size);
        rows.center.insert(rows.center.end(), sample.begin(), sample.end());
      }
    }
    rows.best.assign(rows.count(), kInf);
    rows.best_x = rows.center;
    rows.x = rows.center;
    walk.walk(rows);
    walk.press(rows, kFewRounds);
    rows = nearest_rows(rows, size);
    walk.press(rows, kRounds);
    walk.polish(rows);
    for (std::size_t r = 0; r < rows.count(); ++r) {
      const std::size_t sample = to_size(rows.sample[r]);
      if (!(rows.best[r] < distances[sample])) continue;
      distances[sample] = std::min(
          distances[sample], proved_distance(ranges, std::span(rows.center).subspan(r * size, size),
                                             std::span(rows.best_x).subspan(r * size, size),
                                             rows.winner[r], question.norm));
    }
  }
  return distances;
}

}  // namespace lipscope
