// SPDX-License-Identifier: Apache-2.0
// Ten thousand random networks: no proved lower bound, no difference quotient and no norm of a
// Jacobian above a proved upper bound. Zero tolerance: quotients and Jacobians are enclosed by
// interval arithmetic, so the comparison is exact. Where an operator has no enclosure of its
// Jacobian, the number itself is compared, less its rounding. LIPSCOPE_NETWORKS=n changes how many,
// LIPSCOPE_SEED=n which.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <mutex>
#include <set>

#include "base/parallel.h"
#include "bounds/boxes.h"
#include "bounds/proved_stretch.h"
#include "estimate/composition.h"
#include "estimate/counted_for_test.h"
#include "estimate/jacobian_norm.h"
#include "estimate/quotient.h"
#include "lipscope/bound.h"
#include "lipscope/certificate.h"
#include "ops/elementwise/elementwise.h"
#include "passes/merge_affine.h"
#include "tests/properties/random_network.h"

namespace lipscope::properties {
namespace {

constexpr std::uint64_t kPlannedShare = 20;  // one network in so many runs all methods
constexpr std::chrono::duration<double> kPlannedTime{0.04};

struct Tally {
  Index networks = 0, finite = 0, violations = 0, quotients = 0, jacobians = 0, enclosed = 0;
  Index planned = 0, certificates = 0, semidefinite = 0;
  double tightest = 0;
  std::map<std::string, Index> layers;

  void add(const Tally& other) {
    for (const auto field : {&Tally::networks, &Tally::finite, &Tally::violations,
                             &Tally::quotients, &Tally::jacobians, &Tally::enclosed,
                             &Tally::planned, &Tally::certificates, &Tally::semidefinite})
      this->*field += other.*field;
    tightest = std::max(tightest, other.tightest);
    for (const auto& [name, count] : other.layers) layers[name] += count;
  }
};

std::string how_to_repeat(std::uint64_t seed) {
  return "; repeat with LIPSCOPE_NETWORKS=1 LIPSCOPE_SEED=" + std::to_string(seed);
}

bool is_planned(std::uint64_t seed) { return seed % kPlannedShare == 0; }

// Half of the planned ones are what the semidefinite bound is about.
bool is_semidefinite(std::uint64_t seed) { return seed % (2 * kPlannedShare) == 0; }

NormPair random_norms(Rng& rng) {
  static const double kOrders[] = {1, 1.5, 2, 2, 2, 3, HUGE_VAL};
  const double p = kOrders[rng() % 7];
  const double q = rng() % 3 == 0 ? kOrders[rng() % 7] : p;
  return {Norm(p), Norm(q)};
}

std::vector<double> random_point(Rng& rng, std::size_t size) {
  std::normal_distribution<double> normal(0, 2);
  std::vector<double> x(size);
  for (double& e : x) e = normal(rng);
  return x;
}

// Everywhere, a box (some of whose sides may have no length), a ball, or a box and a ball.
Domain random_domain(Rng& rng, std::size_t size) {
  static const double kSides[] = {0, 0.1, 1, 1, 1};
  static const double kOrders[] = {1, 2, HUGE_VAL};
  Domain domain;
  const std::uint64_t kind = rng() % 8;
  const std::vector<double> center = random_point(rng, size);
  if (kind >= 4 && kind != 6) {
    Tensor low = Tensor::vector(center), high = low;
    for (double& e : high.doubles()) e += kSides[rng() % 5];
    domain.box = Box{low, high};
  }
  if (kind >= 6)
    domain.ball =
        Ball{Tensor::vector(center), rng() % 2 == 0 ? 0.1 : 1.0, Norm(kOrders[rng() % 3])};
  return domain;
}

class NetworkCheck {
 public:
  explicit NetworkCheck(std::uint64_t seed)
      : seed_(seed),
        rng_(seed),
        network_(random_network(seed, is_semidefinite(seed))),
        size_(static_cast<std::size_t>(input_size(network_.graph))),
        query_{&network_.graph,
               is_semidefinite(seed) ? NormPair{Norm(2), Norm(2)} : random_norms(rng_),
               random_domain(rng_, size_)},
        projection_(network_.graph, query_.domain) {}

  Tally run() {
    tally_.networks = 1;
    for (const std::string& name : network_.layers) ++tally_.layers[name];
    bound(network_.graph);
    bound(merge_affine(network_.graph));
    if (is_planned(seed_)) plan();
    tally_.finite = std::isfinite(upper_) ? 1 : 0;
    for (int trial = 0; trial < 2; ++trial) sample();
    return std::move(tally_);
  }

 private:
  void bound(const Graph& graph) {
    const GainSource gains = operator_gains(graph, query_.domain, nullptr, rng_() % 4 == 0);
    take_upper(compose(graph, query_.norms, gains).upper);
  }

  void take_upper(double upper) {
    EXPECT_FALSE(std::isnan(upper)) << how_to_repeat(seed_);
    upper_ = std::min(upper_, upper);
  }

  // All methods on the network as its model file gives it, up to the certificate and its check.
  void plan() {
    tally_.planned = 1;
    const OnnxModel model = network_.record.model();
    const Selected selected = select(model.graph(), {});
    const Query query{&selected.graph, query_.norms, query_.domain};
    const Answer answer = find_bracket(query, {.time = kPlannedTime, .target_ratio = 0}, counted());
    const auto lower = answer.bracket.lower(Guarantee::kProved),
               upper = answer.bracket.upper(Guarantee::kProved);
    if (!upper || std::isinf(upper->value)) return;
    take_upper(upper->value);
    compare("lower bound", lower ? lower->value : 0);
    tally_.semidefinite =
        answer.proof && std::holds_alternative<MultiplierProof>(*answer.proof) ? 1 : 0;
    const CheckResult checked =
        check_certificate(model, write_certificate({.model_sha256 = model.sha256(),
                                                    .from = selected.from,
                                                    .norms = query.norms,
                                                    .domain = query.domain},
                                                   answer));
    EXPECT_TRUE(checked.valid) << checked.reason << how_to_repeat(seed_);
    tally_.certificates = checked.valid ? 1 : 0;
  }

  void sample() {
    const std::vector<double> x = inside(random_point(rng_, size_));
    if (!in_domain(query_.domain, x)) return;
    compare_quotient(x, inside(random_point(rng_, size_)));
    const std::vector<double> direction = steepest(x);
    compare_jacobian(x, direction);
    std::vector<double> y = x;
    for (std::size_t i = 0; i < size_; ++i) y[i] += 1e-4 * direction[i];
    compare_quotient(x, inside(std::move(y)));
  }

  std::vector<double> inside(std::vector<double> x) const {
    projection_.apply(x);
    return x;
  }

  // The direction in which the output moves most, among those the domain has room for.
  std::vector<double> steepest(const std::vector<double>& x) const {
    std::vector<double> direction =
        jacobian_norms(network_.graph, x, 1, query_.norms, std::vector<double>(size_, 1.0), 6)
            .direction;
    const auto low = projection_.low(), high = projection_.high();
    for (std::size_t i = 0; i < size_ && !query_.domain.everywhere(); ++i) {
      if (low[i] == high[i]) direction[i] = 0;
    }
    return direction;
  }

  void compare_quotient(std::vector<double> x, std::vector<double> y) {
    if (!in_domain(query_.domain, y)) return;
    ++tally_.quotients;
    compare("quotient", proved_quotient(query_, {std::move(x), std::move(y)}));
  }

  void compare_jacobian(const std::vector<double>& x, const std::vector<double>& direction) {
    // Beyond the possible rounding error.
    constexpr double kRounding = 1e-9;
    const double value = jacobian_norms(network_.graph, x, 1, query_.norms, direction, 1).value[0];
    ++tally_.jacobians;
    compare("Jacobian", value * (1 - kRounding));
    const auto proved = proved_stretch(
        network_.graph, {.norms = query_.norms, .at = x, .direction = direction, .expected = kInf});
    if (!proved) return;
    ++tally_.enclosed;
    compare("enclosed Jacobian", *proved);
  }

  void compare(const char* what, double lower) {
    tally_.violations += lower > upper_ ? 1 : 0;
    EXPECT_LE(lower, upper_) << what << how_to_repeat(seed_);
    if (std::isfinite(upper_) && upper_ > 0)
      tally_.tightest = std::max(tally_.tightest, lower / upper_);
  }

  std::uint64_t seed_;
  Rng rng_;
  RandomNetwork network_;
  std::size_t size_;
  Query query_;
  DomainProjection projection_;
  double upper_ = HUGE_VAL;  // the smallest that was proved
  Tally tally_;
};

std::uint64_t setting(const char* name, std::uint64_t fallback) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : fallback;
}

Tally check(std::uint64_t seed) {
  try {
    return NetworkCheck(seed).run();
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what() << how_to_repeat(seed);
    return {};
  }
}

Tally check_all(std::uint64_t first, std::uint64_t networks) {
  constexpr Index kAtOnce = 200;
  Tally total;
  std::mutex mutex;
  parallel_for(static_cast<Index>(networks), kAtOnce, [&](Index begin, Index end) {
    Tally part;
    for (Index i = begin; i < end; ++i) part.add(check(first + static_cast<std::uint64_t>(i)));
    const std::lock_guard lock(mutex);
    total.add(part);
  });
  return total;
}

void print(std::uint64_t first, const Tally& t) {
  fmt::print("seeds {} to {}: {} networks, {} with a finite bound; {} violations\n", first,
             first + static_cast<std::uint64_t>(t.networks) - 1, t.networks, t.finite,
             t.violations);
  fmt::print("compared: {} quotients, {} Jacobians, {} enclosed; largest lower/upper {:.9f}\n",
             t.quotients, t.jacobians, t.enclosed, t.tightest);
  fmt::print("all methods: {} networks, {} certificates accepted, {} of them semidefinite\n",
             t.planned, t.certificates, t.semidefinite);
  for (const auto& [name, count] : t.layers) fmt::print("{} {}; ", name, count);
  fmt::print("\n");
}

TEST(RandomNetworks, NothingAboveTheProvedBound) {
  const std::uint64_t networks = setting("LIPSCOPE_NETWORKS", 10000),
                      first = setting("LIPSCOPE_SEED", 1);
  const Tally tally = check_all(first, networks);
  print(first, tally);
  if (networks < 1000) return;
  // Otherwise the test shows little.
  EXPECT_GT(tally.finite, tally.networks / 2);
  EXPECT_GT(tally.enclosed, tally.networks / 2);
  EXPECT_GT(tally.certificates, tally.planned / 2);
  EXPECT_GT(tally.semidefinite, tally.planned / 50);
  EXPECT_GT(tally.tightest, 0.999);
  for (const std::string& name : layer_names()) EXPECT_TRUE(tally.layers.contains(name)) << name;
}

// Certificates of these had no gain for a node behind one without a finite constant, inside a
// segment that was proved otherwise.
TEST(RandomNetworks, SegmentsOverNodesWithoutAConstant) {
  for (const std::uint64_t seed : {700200, 703740}) {
    const Tally tally = check_all(seed, 1);
    EXPECT_EQ(tally.certificates, 1) << seed;
    EXPECT_EQ(tally.semidefinite, 1) << seed;
  }
}

TEST(RandomNetworks, UseEveryActivationWithAFiniteSlope) {
  std::set<std::string> used;
  for (const auto& variants : activations(true)) used.insert(variants[0].op);
  for (const SlopeRow& row : slope_table()) {
    EXPECT_TRUE(used.contains(row.name) || std::isinf(row.lipschitz)) << row.name;
  }
}

}  // namespace
}  // namespace lipscope::properties
