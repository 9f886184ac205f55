// SPDX-License-Identifier: Apache-2.0
#include "ops/rows/inverse_deviation.h"

#include <cmath>

#include "ops/dispatch.h"
#include "ops/facets/affine_rows.h"
#include "ops/rows/standardise_relax.h"

namespace lipscope {
namespace {

class InverseDeviation final : public Op {
 public:
  InverseDeviation(ElementType type, Index rows, Index length, const Divisor& divisor)
      : type_(type), rows_(rows), length_(length), divisor_(divisor) {}

  std::string_view name() const override { return "InverseDeviation"; }
  std::vector<ValueType> infer(std::span<const ValueType>) const override {
    return {{type_, {rows_}}};
  }
  void eval(const EvalArgs& args) const override {
    for_real(args.out[0].storage, [&](auto zero) {
      using T = decltype(zero);
      for (Index b = 0; b < args.count; ++b) {
        for (Index row = 0; row < rows_; ++row) {
          const T* x = args.in[0].sample<T>(b) + row * length_;
          const auto n = static_cast<double>(length_);
          double mean = 0, square = 0;
          for (Index i = 0; i < length_; ++i) mean += static_cast<double>(x[i]) / n;
          if (!divisor_.centred) mean = 0;
          for (Index i = 0; i < length_; ++i) {
            const double d = static_cast<double>(x[i]) - mean;
            square += d * d / n;
          }
          args.out[0].sample<T>(b)[row] =
              static_cast<T>(1 / (divisor_.outside ? std::sqrt(square) + divisor_.epsilon
                                                   : std::sqrt(square + divisor_.epsilon)));
        }
      }
    });
  }
  std::optional<std::vector<Box>> range(std::span<const Box> in) const override {
    BoxBuilder out({rows_});
    for_each_row(in[0], [&](Index row, const Group& x) {
      out.set(row, 1 / divisor_.range(divisor_.spread(x)));
    });
    return std::vector<Box>{std::move(out).finish()};
  }
  std::optional<Relaxation> relax(std::span<const Box> in) const override {
    AffineRowsBuilder lower(rows_), upper(rows_);
    for_each_row(in[0], [&](Index row, const Group& x) {
      const InverseForms forms = relax_inverse_deviation(x, divisor_);
      lower.add_offset(row, point(forms.low));
      upper.add_offset(row, point(forms.high));
      for (std::size_t j = 0; j < forms.below.size(); ++j) {
        const Index column = row * length_ + static_cast<Index>(j);
        lower.add(row, column, forms.below[j]);
        upper.add(row, column, forms.above[j]);
      }
    });
    return relaxation(lower, upper);
  }

 private:
  template <class Body>
  void for_each_row(const Box& box, Body&& body) const {
    const BoxEntries x(box);
    std::vector<double> low(static_cast<std::size_t>(length_)), high(low.size());
    for (Index row = 0; row < rows_; ++row) {
      for (std::size_t i = 0; i < low.size(); ++i) {
        const Interval e = x[row * length_ + static_cast<Index>(i)];
        low[i] = e.lo, high[i] = e.hi;
      }
      body(row, Group{low, high});
    }
  }

  ElementType type_;
  Index rows_, length_;
  Divisor divisor_;
};

}  // namespace

std::shared_ptr<const Op> make_inverse_deviation(ElementType type, Index rows, Index length,
                                                 const Divisor& divisor) {
  return std::make_shared<const InverseDeviation>(type, rows, length, divisor);
}

}  // namespace lipscope
