// SPDX-License-Identifier: Apache-2.0
#include "softmax/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <random>

#include "base/parallel.h"
#include "lipscope/error.h"

namespace lipscope {
namespace {

double length_of(std::span<const double> v, double p) {
  double top = 0, sum = 0;
  for (const double x : v) top = std::max(top, std::fabs(x));
  if (top == 0 || p == kInf) return top;
  for (const double x : v) {
    const double r = std::fabs(x) / top;
    sum += p == 1 ? r : p == 2 ? r * r : std::pow(r, p);
  }
  return top * (p == 2 ? std::sqrt(sum) : std::pow(sum, 1 / p));
}

// v scaled to the given norm.
std::vector<double> resized(std::vector<double> v, double p, double size) {
  const double now = length_of(v, p);
  for (double& x : v) x = now > 0 ? x / now * size : 0;
  return v;
}

// Rows of an array, checked.
class Rows {
 public:
  Rows(const Tensor& array, const std::string& name) : array_(array) {
    columns_ = array.shape().empty() ? 1 : array.shape().back();
    count_ = columns_ == 0 ? 0 : array.size() / columns_;
    if (array.size() == 0) {
      throw Error(
          ErrorCode::kBadFile,
          columns_ == 0 && array.shape().size() > 0
              ? fmt::format("{}: row 0 is empty (shape {})", name, to_string(array.shape()))
              : fmt::format("{}: holds no rows (shape {})", name, to_string(array.shape())));
    }
    for (Index row = 0; row < count_; ++row) check(row, name);
  }
  [[nodiscard]] Index count() const { return count_; }
  [[nodiscard]] Index columns() const { return columns_; }
  [[nodiscard]] Index longest() const { return longest_; }  // entries that are not masked
  [[nodiscard]] std::vector<double> row(Index r) const {
    std::vector<double> x(static_cast<std::size_t>(columns_));
    for (Index c = 0; c < columns_; ++c)
      x[static_cast<std::size_t>(c)] = array_.at(r * columns_ + c);
    return x;
  }

 private:
  void check(Index r, const std::string& name) {
    Index entries = 0;
    for (Index c = 0; c < columns_; ++c) {
      const double x = array_.at(r * columns_ + c);
      if (x == -kInf) continue;
      if (!std::isfinite(x)) {
        throw Error(ErrorCode::kBadFile, fmt::format("{}: row {}, column {} is {}", name, r, c, x));
      }
      ++entries;
    }
    longest_ = std::max(longest_, entries);
    if (entries == 0)
      throw Error(
          ErrorCode::kBadFile,
          fmt::format("{}: row {} is empty: columns 0 to {} are masked", name, r, columns_ - 1));
  }

  const Tensor& array_;
  Index count_ = 0, columns_ = 0, longest_ = 0;
};

// What one row adds.
struct Finding {
  SoftmaxRowReport report;
  bool done = false, complete = false;   // the norms; everything
  std::vector<double> random, directed;  // for each epsilon, for each norm
};

// The largest quotients of one row; false if stopped.
bool perturb(const SoftmaxRow& row, const SoftmaxQuestion& question,
             const std::vector<SoftmaxNorm>& norms, std::uint64_t seed,
             const std::function<bool()>& should_stop, Finding& found) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  for (std::size_t j = 0; j < norms.size(); ++j) {
    const NormPair& pair = norms[j].norms();
    const double p = pair.in.p();
    if (should_stop()) return false;
    const std::vector<double> worst = norms[j].worst_direction(row);
    for (std::size_t e = 0; e < question.epsilons.size(); ++e) {
      const std::size_t cell = e * norms.size() + j;
      const auto quotient = [&](const std::vector<double>& d, double size) {
        return softmax_quotient(row, resized(d, p, size), pair);
      };
      for (const double sign : {1.0, -1.0}) {
        found.directed[cell] =
            std::max(found.directed[cell], quotient(worst, sign * question.epsilons[e]));
      }
      for (Index k = 0; k < question.directions; ++k) {
        if (should_stop()) return false;
        std::vector<double> d(row.weights().size());
        for (double& x : d) x = normal(random);
        found.random[cell] = std::max(found.random[cell], quotient(d, question.epsilons[e]));
      }
    }
  }
  return true;
}

Finding examine(std::span<const double> logits, const SoftmaxQuestion& question,
                const std::vector<SoftmaxNorm>& norms, std::uint64_t seed,
                const std::function<bool()>& should_stop) {
  const SoftmaxRow row(logits, question.lambda);
  Finding found;
  for (const SoftmaxNorm& norm : norms) found.report.norms.push_back(norm(row));
  if (question.rows) {
    found.report.log_sum_exp = row.log_sum_exp();
    found.report.probabilities.resize(logits.size());
    for (std::size_t k = 0; k < row.weights().size(); ++k) {
      found.report.probabilities[static_cast<std::size_t>(row.places()[k])] =
          midpoint(row.probability(k));
    }
  }
  found.random.resize(question.epsilons.size() * norms.size());
  found.directed.resize(found.random.size());
  found.done = true;
  found.complete =
      question.epsilons.empty() || perturb(row, question, norms, seed, should_stop, found);
  return found;
}

SoftmaxSummary summarise(const std::vector<Finding>& rows, std::size_t norm) {
  SoftmaxSummary summary;
  std::vector<double> upper;
  double above = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const NormBracket& b = rows[r].report.norms[norm];
    upper.push_back(b.upper);
    above += b.upper > 0.4 ? 1 : 0;
    if (b.lower > summary.max_lower)
      summary.max_lower = b.lower, summary.worst_row = rows[r].report.row;
  }
  std::sort(upper.begin(), upper.end());
  const std::size_t n = upper.size();
  summary.max = upper.back();
  summary.median = n % 2 == 1 ? upper[n / 2] : 0.5 * (upper[n / 2 - 1] + upper[n / 2]);
  summary.share_above = above / static_cast<double>(n);
  return summary;
}

}  // namespace

// s_i (e^(lambda d_i) - mean) / (1 + mean of expm1) with everything relative to the largest weight.
double softmax_quotient(const SoftmaxRow& row, std::span<const double> d, const NormPair& norms) {
  const std::span<const double> w = row.weights();
  const double size = length_of(d, norms.in.p());
  if (!(size > 0) || w.size() < 2) return 0;
  double mean = 0, total = w[0];
  for (std::size_t i = 1; i < w.size(); ++i) {
    mean += w[i] * std::expm1(row.lambda() * (d[i] - d[0]));
    total += w[i];
  }
  mean /= total;
  std::vector<double> y(w.size());
  for (std::size_t i = 0; i < w.size(); ++i) {
    const double moved = i == 0 ? 0 : std::expm1(row.lambda() * (d[i] - d[0]));
    y[i] = w[i] / total * (moved - mean) / (1 + mean);
  }
  // The quotient of exact numbers is at most the constant.
  return std::min(length_of(y, norms.out.p()) / size,
                  softmax_global_norm(norms, 2, row.lambda()).hi);
}

SoftmaxReport study_softmax(const Tensor& logits, const SoftmaxQuestion& question,
                            const std::string& name,
                            const std::function<bool(Index)>& should_stop) {
  if (!std::isfinite(question.lambda) || question.lambda == 0) {
    throw Error(ErrorCode::kUsage,
                fmt::format("lambda must be finite and not 0, not {}", question.lambda));
  }
  for (const double epsilon : question.epsilons) {
    if (!(epsilon > 0) || !std::isfinite(epsilon))
      throw Error(ErrorCode::kUsage, fmt::format("epsilon must be positive, not {}", epsilon));
  }
  const Rows rows(logits, name);
  std::vector<SoftmaxNorm> norms;
  for (const NormPair& pair : question.norms) norms.emplace_back(pair);
  std::atomic<Index> done = 0;
  const std::function<bool()> stop = [&] { return should_stop && should_stop(done); };
  std::vector<Finding> found(static_cast<std::size_t>(rows.count()));
  parallel_for(rows.count(), 1, [&](Index begin, Index end) {
    for (Index r = begin; r < end && (r == 0 || !stop()); ++r) {
      Finding& row = found[static_cast<std::size_t>(r)];
      row = examine(rows.row(r), question, norms,
                    question.seed * 0x9e3779b97f4a7c15 + static_cast<std::uint64_t>(r), stop);
      row.report.row = r;
      ++done;
    }
  });
  SoftmaxReport report{.rows = rows.count(), .columns = rows.columns()};
  report.complete = std::all_of(found.begin(), found.end(), [](auto& f) { return f.complete; });
  std::erase_if(found, [](const Finding& f) { return !f.done; });
  report.rows_done = std::ssize(found);
  for (std::size_t j = 0; j < norms.size(); ++j) {
    report.global.push_back(
        softmax_global_norm(question.norms[j], rows.longest(), question.lambda));
    report.summary.push_back(summarise(found, j));
  }
  for (std::size_t e = 0; e < question.epsilons.size(); ++e) {
    for (std::size_t j = 0; j < norms.size(); ++j) {
      EmpiricalConstant cell{question.epsilons[e], question.norms[j]};
      for (const Finding& f : found) {
        cell.random_max = std::max(cell.random_max, f.random[e * norms.size() + j]);
        cell.directed_max = std::max(cell.directed_max, f.directed[e * norms.size() + j]);
      }
      report.empirical.push_back(cell);
    }
  }
  if (question.rows) {
    for (Finding& f : found) report.local.push_back(std::move(f.report));
  }
  return report;
}

}  // namespace lipscope
