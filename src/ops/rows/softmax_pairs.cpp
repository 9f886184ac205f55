// SPDX-License-Identifier: Apache-2.0
#include "ops/rows/softmax_pairs.h"

#include <algorithm>

#include "base/check.h"
#include "base/rounding.h"
#include "ops/elementwise/elementwise.h"
#include "softmax/box.h"

namespace lipscope {
namespace {

// t (1 - t) is at most this for t in [0, top].
double most_of_both(double top) { return top < 0.5 ? mul_up(top, sub_up(1, top)) : 0.25; }

class SoftmaxPairs final : public Elementwise, public JointSlopes {
 public:
  SoftmaxPairs(bool log, Index classes, const std::vector<SoftmaxPair>& pairs)
      : log_(log), classes_(static_cast<std::size_t>(classes)) {
    for (const auto [plus, minus] : pairs)
      pairs_.push_back({static_cast<std::size_t>(plus), static_cast<std::size_t>(minus)});
  }

  std::string_view name() const override { return "SoftmaxPairs"; }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override { return {in[0]}; }
  void eval(const EvalArgs&) const override { check_failed("softmax pairs have no values"); }

  // Any finite ends: nobody asks for values behind it.
  std::optional<std::vector<Box>> range(std::span<const Box> in) const override {
    Box out = in[0];
    for (double& e : out.lower.doubles()) e = std::min(e, 0.0);
    for (double& e : out.upper.doubles()) e = std::max(e, 0.0);
    return std::vector<Box>{std::move(out)};
  }

  // Of two probabilities, each is at most the logistic function of the difference of their inputs.
  std::optional<Interval> slopes(const Interval& x) const override {
    if (log_) return Interval{0, std::min(1.0, sigmoid(x).hi)};
    return Interval{0, std::min(0.25, (0.25 / sqr(cosh(0.5 * x))).hi)};
  }

  const JointSlopes* joint_slopes() const override { return this; }
  std::size_t units() const override { return pairs_.size(); }
  void narrow(std::span<const Interval> values, std::span<Interval> slopes) const override {
    const std::vector<Interval> share = shares(logits(values));
    for (std::size_t u = 0; u < pairs_.size(); ++u) {
      const Interval &plus = share[pairs_[u].plus], &minus = share[pairs_[u].minus];
      Interval slope = plus;
      if (!log_) {
        slope = {
            mul_down(plus.lo, minus.lo),
            std::min({mul_up(plus.hi, minus.hi), most_of_both(plus.hi), most_of_both(minus.hi)})};
      }
      // An empty intersection means that there are no such values at all.
      const Interval both = intersect(slopes[u], slope);
      if (!is_nan(both)) slopes[u] = both;
    }
  }

  double most(std::span<const Interval> values, std::span<const double> weights) const override {
    const std::vector<LogitRanges> boxes = logits(values);
    if (!log_) return most_of_products(boxes, weights);
    std::vector<double> by_class(classes_);
    for (std::size_t u = 0; u < pairs_.size(); ++u)
      by_class[pairs_[u].plus] = add_up(by_class[pairs_[u].plus], weights[u]);
    return most_of(boxes, by_class);
  }

 private:
  struct Pair {
    std::size_t plus, minus;
  };
  // Inputs less one of them, which is 0.
  struct LogitRanges {
    std::vector<double> lower, upper;
  };

  // One for every input that has a known difference to each other one.
  std::vector<LogitRanges> logits(std::span<const Interval> values) const {
    std::vector<LogitRanges> boxes;
    for (std::size_t from = 0; from < classes_; ++from) {
      LogitRanges box{std::vector<double>(classes_, -kInf), std::vector<double>(classes_, kInf)};
      std::vector<bool> known(classes_);
      const auto add = [&](std::size_t i, const Interval& range) {
        known[i] = true;
        box.lower[i] = std::max(box.lower[i], range.lo);
        box.upper[i] = std::min(box.upper[i], range.hi);
      };
      add(from, point(0));
      for (std::size_t u = 0; u < pairs_.size(); ++u) {
        if (pairs_[u].minus == from) add(pairs_[u].plus, values[u]);
        if (pairs_[u].plus == from) add(pairs_[u].minus, -values[u]);
      }
      bool usable = true;
      for (std::size_t i = 0; i < classes_; ++i)
        usable = usable && known[i] && box.lower[i] <= box.upper[i];
      if (usable) boxes.push_back(std::move(box));
    }
    return boxes;
  }

  // Ranges of the probabilities.
  std::vector<Interval> shares(const std::vector<LogitRanges>& boxes) const {
    std::vector<Interval> share(classes_, Interval{0, 1});
    for (const LogitRanges& box : boxes) {
      const std::vector<ShareRange> found = softmax_ranges({box.lower, box.upper});
      for (std::size_t i = 0; i < classes_; ++i) {
        const Interval both = intersect(share[i], found[i].share);
        if (!is_nan(both)) share[i] = both;
      }
    }
    return share;
  }

  // Of a mean of these numbers, none negative, with the probabilities as weights.
  static double most_of(const std::vector<LogitRanges>& boxes, const std::vector<double>& numbers) {
    double most = *std::ranges::max_element(numbers);
    for (const LogitRanges& box : boxes)
      most = min_nan(most, softmax_functional_range({box.lower, box.upper}, numbers).hi);
    return most;
  }

  // Three bounds of sum w_ij s_i s_j over pairs: half the mean of means; the largest weight times
  // (1 - |s|^2) / 2; if all pairs share an input k, the largest weight times s_k (1 - s_k).
  double most_of_products(const std::vector<LogitRanges>& boxes,
                          std::span<const double> weights) const {
    std::vector<std::vector<double>> by_class(classes_, std::vector<double>(classes_));
    std::vector<std::size_t> uses(classes_);
    std::size_t used = 0;
    double largest = 0;
    for (std::size_t u = 0; u < pairs_.size(); ++u) {
      if (weights[u] == 0) continue;
      const auto [i, j] = pairs_[u];
      by_class[i][j] = by_class[j][i] = weights[u];
      ++used, ++uses[i], ++uses[j];
      largest = std::max(largest, weights[u]);
    }
    std::vector<double> means;
    for (const auto& row : by_class) means.push_back(most_of(boxes, row));
    double most = std::min(
        mul_up(0.5, most_of(boxes, means)),
        mul_up(mul_up(0.5, largest), sub_up(1, div_down(1, static_cast<double>(classes_)))));
    const std::vector<Interval> share = shares(boxes);
    for (std::size_t k = 0; k < classes_; ++k) {
      if (uses[k] == used)
        most = std::min(most, mul_up(largest, std::min(most_of_both(share[k].hi),
                                                       most_of_both(sub_up(1, share[k].lo)))));
    }
    return most;
  }

  bool log_;
  std::size_t classes_;
  std::vector<Pair> pairs_;
};

}  // namespace

std::shared_ptr<const Op> make_softmax_pairs(bool log, Index classes,
                                             const std::vector<SoftmaxPair>& pairs) {
  return std::make_shared<SoftmaxPairs>(log, classes, pairs);
}

}  // namespace lipscope
