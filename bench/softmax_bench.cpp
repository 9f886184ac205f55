// SPDX-License-Identifier: Apache-2.0
// bench_softmax: softmax of float32 rows on one thread, fast and accurate mode, against those of
// oneDNN, SLEEF, XNNPACK and Eigen that were there at build time, and against memcpy. Nanoseconds
// per entry, the least of several rounds in which all take turns. Errors are the largest in ulp
// against long double, over results from 2^-126 on; a mode that is wrong ends the program with 1.
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "linalg/softmax/softmax.h"
#include "softmax_peers.h"

namespace lipscope {
namespace {

struct Contender {
  std::string name;
  std::function<void()> run;
  double error = 0, time = HUGE_VAL;
};

template <class T>
double largest_error(const std::vector<T>& x, const std::vector<T>& s, std::size_t length) {
  double worst = 0;
  for (std::size_t start = 0; start < x.size(); start += length) {
    const auto row = x.begin() + static_cast<std::ptrdiff_t>(start);
    const T top = *std::max_element(row, row + static_cast<std::ptrdiff_t>(length));
    const auto term = [&](std::size_t i) {
      return std::exp(static_cast<long double>(x[start + i]) - static_cast<long double>(top));
    };
    long double sum = 0;
    for (std::size_t i = 0; i < length; ++i) sum += term(i);
    for (std::size_t i = 0; i < length; ++i) {
      const long double exact = term(i) / sum;
      if (exact < static_cast<long double>(std::numeric_limits<T>::min())) continue;
      const long double ulp =
          std::ldexp(1.0L, std::ilogb(exact) + 1 - std::numeric_limits<T>::digits);
      const long double error = std::abs(static_cast<long double>(s[start + i]) - exact) / ulp;
      worst = std::max(worst, static_cast<double>(error));
    }
  }
  return worst;
}

template <class T>
bool measure(std::size_t length) {
  const std::size_t rows = std::max<std::size_t>(1, 4096 / length), count = rows * length;
  std::mt19937 random(1);
  std::normal_distribution<T> normal(0, 3);
  std::vector<T> x(count), y(count);
  for (T& v : x) v = normal(random);

  std::vector<Contender> all;
  const auto ours = [&](const char* name, SoftmaxMode mode) {
    all.push_back({name, [&, mode] {
                     softmax_rows(
                         RowLayout::adjacent(static_cast<Index>(rows), static_cast<Index>(length)),
                         x.data(), y.data(), {.mode = mode});
                   }});
  };
  ours("fast", SoftmaxMode::kFast);
  ours("accurate", SoftmaxMode::kAccurate);
  all.push_back({"memcpy", [&] { std::memcpy(y.data(), x.data(), count * sizeof(T)); }});
  if constexpr (sizeof(T) == 4) {
    for (const SoftmaxPeer& peer : softmax_peers()) {
      if (auto run = peer.prepare(x.data(), y.data(), rows, length))
        all.push_back({peer.name, run});
    }
  }

  for (Contender& c : all) {
    c.run();
    if (c.name != "memcpy") c.error = largest_error(x, y, length);
  }
  const std::size_t repeats = std::max<std::size_t>(1, 200000 / count);
  for (int round = 0; round < (count > 1000000 ? 12 : 80); ++round) {
    for (Contender& c : all) {
      const auto start = std::chrono::steady_clock::now();
      for (std::size_t i = 0; i < repeats; ++i) c.run();
      const std::chrono::duration<double, std::nano> spent =
          std::chrono::steady_clock::now() - start;
      c.time = std::min(c.time, spent.count() / static_cast<double>(repeats * count));
    }
  }

  fmt::print("{:>9} {}:", length, sizeof(T) == 4 ? "float " : "double");
  // In cache memcpy depends on how the two arrays lie to each other.
  const bool large = count > 1000000;
  for (const Contender& c : all) {
    if (c.name == "memcpy" && !large) continue;
    fmt::print("  {} {:.3f} ns", c.name, c.time);
    if (c.error > 0) fmt::print(" {:.1f} ulp", c.error);
  }
  const Contender &fast = all[0], &accurate = all[1], &copy = all[2];
  fmt::print("\n{:17}  accurate / fast {:.2f}", "", accurate.time / fast.time);
  if (large) fmt::print(", fast / memcpy {:.2f}", fast.time / copy.time);
  const auto best = std::min_element(all.begin() + 3, all.end(),
                                     [](const auto& a, const auto& b) { return a.time < b.time; });
  bool good = fast.error <= 6 && accurate.error <= 4;
  if (best != all.end()) {
    fmt::print(", fastest other ({}) / fast {:.2f}", best->name, best->time / fast.time);
    good = good && fast.error <= best->error;
  }
  fmt::print("{}\n", good ? "" : "  WRONG: too large an error");
  return good;
}

}  // namespace
}  // namespace lipscope

int main() {
  omp_set_num_threads(1);
  bool good = true;
  for (const std::size_t length : {64, 512, 4096, 65536, 1 << 24}) {
    good = lipscope::measure<float>(length) && good;
  }
  for (const std::size_t length : {64, 512, 4096, 65536}) {
    good = lipscope::measure<double>(length) && good;
  }
  return good ? 0 : 1;
}
