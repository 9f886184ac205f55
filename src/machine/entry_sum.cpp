// SPDX-License-Identifier: Apache-2.0
#include "machine/entry_sum.h"

#include <algorithm>
#include <cmath>

#include "machine/operands.h"
#include "machine/sum_rounding.h"

namespace lipscope {
namespace {

constexpr double kEntrySlack = 1 + 0x1p-20;  // for sums and products of positive numbers here

class EntrySumStep final : public MachineStep {
 public:
  EntrySumStep(const Machine& machine, EntrySum sum)
      : machine_(machine), sum_(std::move(sum)), either_(machine) {}

  void run(std::span<const ComputedView> in, const ComputedView& real,
           std::span<double> error) const override {
    std::vector<Operands> operands;
    const Machine inner =
        sum_.in_sums ? machine_ : Machine(machine_.values(), machine_.values(), machine_.flush());
    for (const ComputedView& view : in) operands.emplace_back(inner, view);
    for (std::size_t i = 0; i < error.size(); ++i) {
      const bool mean = !sum_.counts.empty() && sum_.counts[i] != 1;
      error[i] =
          mean ? mean_error(inner, operands, i) : plain_error(inner, operands, i, real.real(i));
    }
  }

 private:
  // False when an entry overflows.
  bool collect(const std::vector<Operands>& operands, std::size_t i, SumTerms& terms,
               double& moved) const {
    double all = 0;
    for (const EntrySum::Entry& entry : sum_.rows[i]) {
      if (!operands[entry.input].finite()) return false;
      const Operand x = operands[entry.input].at(entry.place);
      if (!(x.size + x.error > 0)) continue;
      all += x.error;
      terms.plus += std::max(0.0, x.upper) + x.error;
      terms.minus += std::max(0.0, -x.lower) + x.error;
      terms.sizes.push_back((x.size + x.error) * kEntrySlack);
    }
    moved = mul_up(all, kEntrySlack);
    terms.plus = mul_up(terms.plus, kEntrySlack);
    terms.minus = mul_up(terms.minus, kEntrySlack);
    return true;
  }

  void add_flushes(SumTerms& terms, double each) const {
    if (machine_.flush()) terms.flushed = mul_up(static_cast<double>(terms.sizes.size()), each);
  }

  [[nodiscard]] double plain_error(const Machine& inner, const std::vector<Operands>& operands,
                                   std::size_t i, const Interval& real) const {
    SumTerms terms;
    double moved = 0;
    if (!collect(operands, i, terms, moved)) return kInf;
    const NumberFormat &values = inner.values(), &sums = inner.sums();
    add_flushes(terms, sums.normal);
    const double added = sum_rounding(terms, sums.unit);
    if (!(add_up(std::max(terms.plus, terms.minus), added) <= sums.most)) return kInf;
    const double error = add_up(moved, added);
    if (sums.type == values.type || terms.sizes.empty()) return error;
    return add_up(error,
                  add_up(mul_up(values.unit, add_up(magnitude(real), error)), inner.lost(values)));
  }

  [[nodiscard]] double mean_error(const Machine& inner, const std::vector<Operands>& operands,
                                  std::size_t i) const {
    const double n = sum_.counts[i], unit = either_.unit(), lost = either_.lost();
    SumTerms terms;
    double moved = 0;
    if (!collect(operands, i, terms, moved)) return kInf;
    // The whole sum, in either format.
    SumTerms whole = terms;
    add_flushes(whole, lost);
    if (!(add_up(std::max(terms.plus, terms.minus), sum_rounding(whole, unit)) <= either_.most()))
      return kInf;
    const double wrong = add_up(divisor_error(inner, n), 4 * unit);
    if (!(wrong < 1)) return kInf;
    // Relative to n: entries may have been divided, or multiplied by 1/n, before they are added.
    const double part = mul_up(n, lost);
    double all = 0;
    for (double& size : terms.sizes) {
      size = add_up(mul_up(size, add_up(1, wrong)), part);
      all += size;
    }
    const double count = static_cast<double>(terms.sizes.size());
    const double parts = mul_up(count, part);
    terms.plus = add_up(mul_up(terms.plus, add_up(1, wrong)), parts);
    terms.minus = add_up(mul_up(terms.minus, add_up(1, wrong)), parts);
    add_flushes(terms, part);
    const double added = sum_rounding(terms, unit);
    const double total = mul_up(all, kEntrySlack);
    const double scaled =
        add_up(add_up(moved, added), add_up(mul_up(mul_up(2, wrong), total), parts));
    const double roundings = add_up(mul_up(4 * unit, add_up(total, scaled)), mul_up(4, part));
    return div_up(add_up(scaled, roundings), n);
  }

  // Relatively: of the count, or of its reciprocal, as stored in either format.
  [[nodiscard]] static double divisor_error(const Machine& inner, double n) {
    double worst = 0;
    for (const NumberFormat& format : {inner.values(), inner.sums()}) {
      const Machine in(format, format, inner.flush());
      const Computed count = in.stored(n), share = in.stored(point(1) / point(n));
      if (!(count.error < kInf) || !(share.error < kInf)) return kInf;
      const double by_count = div_up(count.error, sub_down(n, count.error));
      const double by_share = mul_up(share.error, n);
      worst = std::max({worst, by_count < 0 ? kInf : by_count, by_share});
    }
    return worst;
  }

  Machine machine_;
  EntrySum sum_;
  EitherFormat either_;
};

}  // namespace

std::unique_ptr<const MachineStep> entry_sum_step(const Machine& machine, EntrySum sum) {
  return std::make_unique<EntrySumStep>(machine, std::move(sum));
}

}  // namespace lipscope
