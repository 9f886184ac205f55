// SPDX-License-Identifier: Apache-2.0
#include "machine/product_sum.h"

#include <algorithm>

#include "machine/operands.h"
#include "machine/sum_rounding.h"

namespace lipscope {

void ProductSumBuilder::start() {
  for (std::size_t i = 1; i < next_.size(); ++i) next_[i] += next_[i - 1];
  sum_.begin = next_;
  sum_.first.resize(next_.back());
  sum_.second.resize(next_.back());
}

void ProductSumBuilder::place(std::size_t row, std::uint32_t first, std::uint32_t second) {
  const std::size_t at = next_[row]++;
  sum_.first[at] = first;
  sum_.second[at] = second;
}

namespace {

constexpr double kProductSlack = 1 + 0x1p-20;  // for sums and products of positive numbers here

// What is known of the products of a row, and of the products times the factor.
struct RowTerms {
  SumTerms terms;
  double loss = 0;  // of the terms together: errors of operands, roundings of products

  void clear() {
    terms.clear();
    loss = 0;
  }
  // A term whose real value lies in [low, high], off by at most `off`.
  void add(double low, double high, double off) {
    loss += off;
    terms.plus += std::max(0.0, high) + off;
    terms.minus += std::max(0.0, -low) + off;
    terms.sizes.push_back((std::max(-low, high) + off) * kProductSlack);
  }
  void finish() {
    loss = mul_up(loss, kProductSlack);
    terms.plus = mul_up(terms.plus, kProductSlack);
    terms.minus = mul_up(terms.minus, kProductSlack);
  }
  // A partial sum, at most.
  [[nodiscard]] double most(double rounding) const {
    return add_up(std::max(terms.plus, terms.minus), rounding);
  }
};

class ProductSumStep final : public MachineStep {
 public:
  ProductSumStep(const Machine& machine, ProductSum sum)
      : machine_(machine),
        sum_(std::move(sum)),
        either_(machine),
        factor_(either_.converted(machine.stored(sum_.factor))),
        offset_factor_(either_.converted(machine.stored(sum_.offset ? sum_.offset->factor : 1))) {}

  void run(std::span<const ComputedView> in, const ComputedView& real,
           std::span<double> error) const override {
    const Operands a(machine_, in[sum_.a]), b(machine_, in[sum_.b]);
    std::fill(error.begin(), error.end(), kInf);
    // An infinite weight spoils rows that have no use for it, too: zeros are multiplied by it.
    if (!a.finite() || !b.finite() || !(factor_.error < kInf)) return;
    RowTerms terms;
    for (std::size_t i = 0; i < sum_.rows(); ++i) {
      const Computed offset = offset_at(in, i);
      if (!(offset.error < kInf)) continue;
      error[i] = sum_.factor == 1 ? plain_error(a, b, i, offset, real.real(i), terms)
                                  : scaled_error(a, b, i, offset, terms);
    }
  }

 private:
  [[nodiscard]] Computed offset_at(std::span<const ComputedView> in, std::size_t i) const {
    if (!sum_.offset) return {point(0), 0};
    const Computed c = in[sum_.offset->input].at(sum_.offset->place[i]);
    if (sum_.offset->factor == 1) return either_.converted(c);
    return either_.product(offset_factor_, either_.converted(c));
  }

  // body(first operand, second operand) for products that are not zero.
  template <class Body>
  void over_products(const Operands& a, const Operands& b, std::size_t i, Body&& body) const {
    for (std::size_t t = sum_.begin[i]; t < sum_.begin[i + 1]; ++t) {
      const Operand x = a.at(sum_.first[t]), y = b.at(sum_.second[t]);
      if (x.size + x.error > 0 && y.size + y.error > 0) body(x, y);
    }
  }

  // The real product lies in [low, high]; plus what errors of the operands move it by.
  struct Product {
    double low, high, moved, size;
    Product(const Operand& x, const Operand& y)
        : low(std::min(
              {x.lower * y.lower, x.lower * y.upper, x.upper * y.lower, x.upper * y.upper})),
          high(std::max(
              {x.lower * y.lower, x.lower * y.upper, x.upper * y.lower, x.upper * y.upper})),
          moved(x.size * y.error + x.error * (y.size + y.error)),
          size((x.size + x.error) * (y.size + y.error)) {}
  };

  void collect(const Operands& a, const Operands& b, std::size_t i, RowTerms& row) const {
    const double unit = machine_.sums().unit, lost = machine_.lost(machine_.sums());
    row.clear();
    over_products(a, b, i, [&](const Operand& x, const Operand& y) {
      const Product p(x, y);
      row.add(p.low, p.high, p.moved + (unit * p.size + lost));
    });
  }

  void add_flushes(SumTerms& terms, double each) const {
    if (machine_.flush())
      terms.flushed = mul_up(static_cast<double>(terms.sizes.size()), mul_up(each, kProductSlack));
  }

  [[nodiscard]] double plain_error(const Operands& a, const Operands& b, std::size_t i,
                                   const Computed& offset, const Interval& real,
                                   RowTerms& row) const {
    const NumberFormat &values = machine_.values(), &sums = machine_.sums();
    collect(a, b, i, row);
    if (offset.size() > 0) row.add(offset.real.lo, offset.real.hi, offset.error);
    row.finish();
    add_flushes(row.terms, sums.normal);
    const double added = sum_rounding(row.terms, sums.unit);
    const double most = row.most(added);
    if (!(most <= sums.most)) return kInf;
    double error = add_up(row.loss, added);
    if (sums.type == values.type) return error;
    // Rounded to the format of values before the offset, or after it.
    const double before = std::min(most, add_up(add_up(magnitude(real), offset.size()), error));
    if (!(before <= values.most)) return kInf;
    error = add_up(error, add_up(mul_up(values.unit, before), machine_.lost(values)));
    if (offset.size() == 0) return error;
    const double after = add_up(magnitude(real), error);
    return add_up(error, add_up(mul_up(values.unit, after), machine_.flush() ? values.normal : 0));
  }

  // With the factor on either operand, on products, on sums of blocks or on the whole sum.
  [[nodiscard]] double scaled_error(const Operands& a, const Operands& b, std::size_t i,
                                    const Computed& offset, RowTerms& row) const {
    const double unit = either_.unit(), lost = either_.lost(), range = either_.most();
    const double size = factor_.size(), off = factor_.error, sure = magnitude(factor_.real);
    // Without it, sums may be larger than with it.
    collect(a, b, i, row);
    row.finish();
    add_flushes(row.terms, lost);
    if (!(row.most(sum_rounding(row.terms, unit)) <= range)) return kInf;
    row.clear();
    bool inside = true;
    const double growth = (1 + unit) * (1 + unit);
    over_products(a, b, i, [&](const Operand& x, const Operand& y) {
      const Product p(x, y);
      const double largest = std::max(x.size + x.error, y.size + y.error);
      inside = inside && size * largest * kProductSlack <= range;
      const double tiny = lost * (1 + size + 2 * largest) * growth;
      const double moved = size * p.moved + off * p.size + 2 * unit * growth * size * p.size + tiny;
      const double real = sure * std::max(-p.low, p.high);
      row.add(-real, real, moved);
    });
    if (offset.size() > 0) row.add(offset.real.lo, offset.real.hi, offset.error);
    row.finish();
    add_flushes(row.terms, mul_up(lost, add_up(1, size)));
    const double added = sum_rounding(row.terms, unit);
    if (!inside || !(row.most(added) <= range)) return kInf;
    // Results: of blocks and of the whole, rounded, scaled and rounded again.
    double all = 0;
    for (const double s : row.terms.sizes) all += s;
    const double blocks =
        mul_up(mul_up(4 * unit, growth), add_up(mul_up(all, kProductSlack), added));
    const double count = static_cast<double>(row.terms.sizes.size()) + 4;
    const double small = mul_up(mul_up(2 * count, lost), add_up(1, size));
    return add_up(add_up(row.loss, added), add_up(blocks, small));
  }

  Machine machine_;
  ProductSum sum_;
  EitherFormat either_;
  Computed factor_, offset_factor_;
};

}  // namespace

std::unique_ptr<const MachineStep> product_sum_step(const Machine& machine, ProductSum sum) {
  return std::make_unique<ProductSumStep>(machine, std::move(sum));
}

}  // namespace lipscope
