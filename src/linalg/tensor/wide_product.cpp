// SPDX-License-Identifier: Apache-2.0
#include "linalg/tensor/wide_product.h"

#include <algorithm>

#include "base/parallel.h"

namespace lipscope {
namespace {

constexpr Index kGrain = 256;
constexpr std::size_t kSums = 2 * kWideDigits - 1;
// Products of digits i and j count 2^(20 (i + j) - 512); those below are left out.
constexpr std::size_t kFirstSum = 11;
constexpr Index kMostTerms = Index{1} << 15;  // of products below 2^38, in a double

// Digit i of all entries is at [i * size]; `used` are those that are not all zero.
struct DigitPlanes {
  std::vector<double> digits;
  std::vector<std::size_t> used;
};

DigitPlanes planes_of(std::span<const Wide> x) {
  DigitPlanes planes;
  planes.digits.resize(kWideDigits * x.size());
  parallel_for(std::ssize(x), kGrain, [&](Index begin, Index end) {
    for (auto e = static_cast<std::size_t>(begin); e < static_cast<std::size_t>(end); ++e)
      to_digits(x[e], &planes.digits[e], x.size());
  });
  for (std::size_t i = 0; i < kWideDigits; ++i) {
    const std::span plane = std::span(planes.digits).subspan(i * x.size(), x.size());
    if (std::ranges::any_of(plane, [](double d) { return d != 0; })) planes.used.push_back(i);
  }
  return planes;
}

// Adds products of planes, one after another, to the sums of the digits `places`, by entry.
void add_sums(std::vector<std::int64_t>& sums, const std::vector<std::size_t>& places,
              const std::vector<double>& products, std::size_t size) {
  parallel_for(static_cast<Index>(size), 4 * kGrain, [&](Index begin, Index end) {
    for (auto e = static_cast<std::size_t>(begin); e < static_cast<std::size_t>(end); ++e) {
      for (std::size_t p = 0; p < places.size(); ++p)
        sums[e * kSums + places[p]] += static_cast<std::int64_t>(products[p * size + e]);
    }
  });
}

// Sizes of the middles and distances, upward; false when something is not known.
bool sizes_of(std::span<const Wide> x, std::vector<double>& size, std::vector<double>& off,
              bool& exact) {
  size.resize(x.size());
  off.resize(x.size());
  exact = true;
  for (std::size_t e = 0; e < x.size(); ++e) {
    if (!x[e].known()) return false;
    size[e] = x[e].size_up();
    off[e] = x[e].off();
    exact = exact && off[e] == 0;
  }
  return true;
}

// (|a| + off a) off b + off a |b| plus what was left out.
std::vector<double> offs_of(const ProductMap& map, std::span<const Wide> a, std::span<const Wide> b,
                            bool& known) {
  std::vector<double> size_a, off_a, size_b, off_b;
  bool exact_a = false, exact_b = false;
  known = sizes_of(a, size_a, off_a, exact_a) && sizes_of(b, size_b, off_b, exact_b);
  const auto n = static_cast<std::size_t>(map.out_size);
  std::vector<double> sum(n), more(n);
  if (!known) return sum;
  if (!exact_b) {
    for (std::size_t e = 0; e < a.size(); ++e) size_a[e] = add_up(size_a[e], off_a[e]);
    map.apply(1, size_a.data(), off_b.data(), sum.data());
  }
  if (!exact_a) {
    map.apply(1, off_a.data(), size_b.data(), more.data());
    for (std::size_t e = 0; e < n; ++e) sum[e] = add_up(sum[e], more[e]);
  }
  // Sums of what is not negative: each rounding is relative, or far below a unit.
  const double rate = add_up(1, gamma_up(static_cast<std::size_t>(map.terms) + 4));
  const double dropped = mul_up(static_cast<double>(map.terms), 0x1p-270);
  for (double& off : sum) off = add_up(mul_up(off, rate), dropped);
  return sum;
}

}  // namespace

std::vector<std::vector<Wide>> wide_products(const ProductMap& map,
                                             std::span<const std::span<const Wide>> as,
                                             std::span<const Wide> b) {
  const auto size = static_cast<std::size_t>(map.out_size);
  std::vector<std::vector<Wide>> results(as.size(), std::vector<Wide>(size, Wide::unknown()));
  if (map.terms > kMostTerms) return results;
  const DigitPlanes right = planes_of(b);
  for (std::size_t k = 0; k < as.size(); ++k) {
    bool known = false;
    const std::vector<double> offs = offs_of(map, as[k], b, known);
    if (!known) continue;
    const DigitPlanes left = planes_of(as[k]);
    std::vector<std::int64_t> sums(size * kSums);
    std::vector<double> stacked, products;
    for (const std::size_t j : right.used) {
      stacked.clear();
      std::vector<std::size_t> places;
      for (const std::size_t i : left.used) {
        if (i + j < kFirstSum) continue;
        places.push_back(i + j);
        const auto plane = left.digits.begin() + static_cast<Index>(i) * map.a_size;
        stacked.insert(stacked.end(), plane, plane + map.a_size);
      }
      if (places.empty()) continue;
      products.resize(places.size() * size);
      map.apply(std::ssize(places), stacked.data(),
                right.digits.data() + static_cast<Index>(j) * map.b_size, products.data());
      add_sums(sums, places, products, size);
    }
    parallel_for(map.out_size, kGrain, [&](Index begin, Index end) {
      for (auto e = static_cast<std::size_t>(begin); e < static_cast<std::size_t>(end); ++e) {
        const std::span<const std::int64_t, kSums> of_entry(&sums[e * kSums], kSums);
        results[k][e] = from_digit_sums(of_entry, offs[e]);
      }
    });
  }
  return results;
}

}  // namespace lipscope
