// SPDX-License-Identifier: Apache-2.0
#include "ops/rows/standardise.h"

#include <algorithm>
#include <cmath>

#include "linalg/norm/operator_norm.h"
#include "ops/dispatch.h"
#include "ops/facets/adjoint.h"
#include "ops/facets/affine_rows.h"
#include "ops/facets/box_product.h"
#include "ops/facets/wide_map.h"
#include "ops/rows/inverse_deviation.h"
#include "ops/rows/row_bounds.h"
#include "ops/rows/standardise_relax.h"

namespace lipscope {
namespace {

// 1/n, which is no double, between two of them.
ValueId add_inverse(GraphBuilder& builder, double n) {
  const Interval x = 1 / point(n);
  const auto tensor = [](double value) {
    return Tensor(ElementType::kFloat64, Shape{}, std::vector<double>{value});
  };
  return builder.constant("gradient", std::make_shared<const Constant>(
                                          tensor(midpoint(x)), Box{tensor(x.lo), tensor(x.hi)}));
}

class StandardiseOp final : public Op, public BoxProduct, public GraphAdjoint, public WideMap {
 public:
  explicit StandardiseOp(Standardisation s)
      : s_(std::move(s)),
        plain_(s_.scale && s_.bias && s_.inner == 1 && s_.channels == s_.length &&
               s_.places.empty()) {}

  std::string_view name() const override { return s_.name; }
  std::vector<ValueType> infer(std::span<const ValueType>) const override {
    if (s_.statistics) return {s_.x, *s_.statistics, *s_.statistics};
    return {s_.x};
  }

  void eval(const EvalArgs& args) const override {
    for_real(args.out[0].storage, [&](auto zero) {
      using T = decltype(zero);
      over_rows(args.count, [&](Index b, Index row) {
        const T* x = args.in[0].sample<T>(b);
        const T* scale = s_.scale ? args.in[1].sample<T>(b) : nullptr;
        const T* bias = s_.bias ? args.in[bias_slot()].sample<T>(b) : nullptr;
        T* y = args.out[0].sample<T>(b);
        const Moments m = moments(x, row);
        const Index begin = row * s_.length;
        if (plain_) {
          const T mean = static_cast<T>(m.mean), inverse = static_cast<T>(m.inverse);
          for (Index i = 0; i < s_.length; ++i) {
            y[begin + i] = (x[begin + i] - mean) * inverse * scale[i] + bias[i];
          }
        }
        for (Index i = begin; i < begin + s_.length && !plain_; ++i) {
          const Index c = channel(i);
          double value = (static_cast<double>(x[place(i)]) - m.mean) * m.inverse;
          if (scale != nullptr) value *= static_cast<double>(scale[c]);
          if (bias != nullptr) value += static_cast<double>(bias[c]);
          y[place(i)] = static_cast<T>(value);
        }
        if (!s_.statistics) return;
        args.out[1].sample<T>(b)[row] = static_cast<T>(m.mean);
        args.out[2].sample<T>(b)[row] = static_cast<T>(m.inverse);
      });
    });
  }

  bool differentiable() const override { return true; }

  // With z the standardised row and n its length, the Jacobian of z is the symmetric matrix
  //   r (I - 1 1'/n) - q z z'/n,
  // where r is the inverse deviation and q = r (epsilon inside the root) or 1/deviation (outside);
  // r I - q z z'/n for rows that are not centred.
  void jvp(const JvpArgs& args) const override {
    const ConstView dx = args.tangent_in[0];
    const ConstView d_scale = s_.scale ? args.tangent_in[1] : ConstView{};
    const ConstView d_bias = s_.bias ? args.tangent_in[bias_slot()] : ConstView{};
    over_rows(args.count, [&](Index b, Index row) {
      const double* x = args.in[0].sample<double>(b);
      const double* scale = s_.scale ? args.in[1].sample<double>(b) : nullptr;
      const Moments m = moments(x, row);
      double mean = 0, along = 0;  // of dx, of z dx
      if (dx) {
        const double* v = dx.sample<double>(b);
        each(row, [&](Index, Index p) { mean += v[p], along += z(m, x, p) * v[p]; });
        mean = s_.centred ? mean / length() : 0, along /= length();
      }
      if (double* y = out(args.tangent_out[0], b); y != nullptr) {
        each(row, [&](Index i, Index p) {
          const Index c = channel(i);
          double value =
              dx ? m.inverse * (dx.sample<double>(b)[p] - mean) - m.pull * z(m, x, p) * along : 0;
          if (scale != nullptr) value *= scale[c];
          if (d_scale) value += d_scale.sample<double>(b)[c] * z(m, x, p);
          if (d_bias) value += d_bias.sample<double>(b)[c];
          y[p] = value;
        });
      }
      if (!s_.statistics) return;
      if (double* y = out(args.tangent_out[1], b); y != nullptr) y[row] = mean;
      if (double* y = out(args.tangent_out[2], b); y != nullptr) {
        y[row] = -m.inverse * m.pull * along;
      }
    });
  }

  void vjp(const VjpArgs& args) const override {
    for (const MutView& grad : args.grad_in) {
      if (grad) fill_zero(grad, args.count);
    }
    const ConstView g = args.grad_out[0];
    for_each_sample(args.count, s_.rows * s_.length, [&](Index b) {
      const double* x = args.in[0].sample<double>(b);
      const double* scale = s_.scale ? args.in[1].sample<double>(b) : nullptr;
      double* gx = out(args.grad_in[0], b);
      double* g_scale = s_.scale ? out(args.grad_in[1], b) : nullptr;
      double* g_bias = s_.bias ? out(args.grad_in[bias_slot()], b) : nullptr;
      for (Index row = 0; row < s_.rows; ++row) {
        const Moments m = moments(x, row);
        if (gx != nullptr && s_.statistics) pull_statistics(args, b, row, m, x, gx);
        if (!g) continue;
        const double* v = g.sample<double>(b);
        double mean = 0, along = 0;
        each(row, [&](Index i, Index p) {
          const Index c = channel(i);
          const double h = scale != nullptr ? scale[c] * v[p] : v[p];
          mean += h;
          along += z(m, x, p) * h;
          if (g_scale != nullptr) g_scale[c] += z(m, x, p) * v[p];
          if (g_bias != nullptr) g_bias[c] += v[p];
        });
        if (gx == nullptr) continue;
        mean = s_.centred ? mean / length() : 0, along /= length();
        each(row, [&](Index i, Index p) {
          const double h = scale != nullptr ? scale[channel(i)] * v[p] : v[p];
          gx[p] += m.inverse * (h - mean) - m.pull * z(m, x, p) * along;
        });
      }
    });
  }

  std::optional<std::vector<Box>> range(std::span<const Box> in) const override {
    if (!(s_.epsilon >= 0)) return std::nullopt;
    const std::optional<BoxEntries> scale = operand(in, s_.scale, 1);
    const std::optional<BoxEntries> bias = operand(in, s_.bias, bias_slot());
    BoxBuilder y(s_.x.shape);
    BoxBuilder mean(s_.statistics ? s_.statistics->shape : Shape{0});
    BoxBuilder inverse(s_.statistics ? s_.statistics->shape : Shape{0});
    for_each_group(in[0], [&](Index row, const Group& group) {
      const std::vector<Interval> z = standardised_range(group, divisor());
      each(row, [&](Index i, Index p) {
        Interval value = z[static_cast<std::size_t>(i - row * s_.length)];
        if (scale) value *= (*scale)[channel(i)];
        if (bias) value += (*bias)[channel(i)];
        y.set(p, value);
      });
      if (!s_.statistics) return;
      mean.set(row, mean_range(group));
      inverse.set(row, 1 / divisor().range(divisor().spread(group)));
    });
    std::vector<Box> boxes;
    boxes.push_back(std::move(y).finish());
    if (s_.statistics) {
      boxes.push_back(std::move(mean).finish());
      boxes.push_back(std::move(inverse).finish());
    }
    return boxes;
  }

  const BoxProduct* box_product() const override { return this; }
  // [attention-19]
  double derivative_change_up(std::span<const Box> in, double radius) const override {
    if (!(s_.epsilon >= 0) || s_.epsilon_outside) return kInf;
    const std::optional<BoxEntries> scale = operand(in, s_.scale, 1);
    const double root_down = sqrt_down(length()), third_up = sqrt_up(div_up(4, 3));
    double largest = 0;
    for_each_group(in[0], [&](Index row, const Group& group) {
      double weight = scale ? 0 : 1;
      if (scale) {
        each(row,
             [&](Index i, Index) { weight = std::max(weight, magnitude((*scale)[channel(i)])); });
      }
      const double here = divisor().range(divisor().spread(group)).lo;
      const double least =
          std::max(sub_down(here, div_up(radius, root_down)), sqrt_down(s_.epsilon));
      if (!(least > 0)) {
        largest = kInf;
        return;
      }
      const double square = mul_down(root_down, mul_down(least, least));
      const double curved = mul_up(radius, div_up(mul_up(weight, third_up), square));
      largest = std::max(largest, std::min(curved, mul_up(2, div_up(weight, least))));
    });
    return largest;
  }

  // The Jacobian of jvp, in intervals; symmetric but for the scale.
  bool enclose_product(std::span<const Box> in, std::span<const Interval> t, bool transposed,
                       std::span<Interval> out) const override {
    if (!(s_.epsilon >= 0)) return false;
    const std::optional<BoxEntries> scale = operand(in, s_.scale, 1);
    for_each_group(in[0], [&](Index row, const Group& group) {
      const std::vector<Interval> z = standardised_range(group, divisor());
      const Interval variance = divisor().spread(group);
      const Interval r = 1 / divisor().range(variance);
      const Interval q = s_.epsilon_outside ? 1 / sqrt(variance) : r;
      std::vector<Interval> given(z.size());
      Interval mean = point(0), along = point(0);
      each(row, [&](Index i, Index p) {
        const auto k = static_cast<std::size_t>(i - row * s_.length);
        given[k] = t[static_cast<std::size_t>(p)];
        if (transposed && scale) given[k] *= (*scale)[channel(i)];
        mean += given[k];
        along += z[k] * given[k];
      });
      mean = s_.centred ? mean / length() : point(0);
      along = along / length();
      each(row, [&](Index i, Index p) {
        const auto k = static_cast<std::size_t>(i - row * s_.length);
        Interval value = r * (given[k] - mean) - q * z[k] * along;
        if (!transposed && scale) value *= (*scale)[channel(i)];
        out[static_cast<std::size_t>(p)] = value;
      });
    });
    return true;
  }

  const WideMap* wide_map() const override {
    const bool told = !s_.epsilon_outside && !s_.statistics && s_.epsilon >= 0 && s_.length > 0;
    return told ? this : nullptr;
  }
  bool push_wide(std::span<const WideTensor* const> in, std::span<WideTensor> out) const override {
    const bool moving = std::ranges::any_of(in, [](const WideTensor* x) { return x->moves(); });
    out[0].resize(in[0]->value.size(), moving);
    const auto n = static_cast<std::uint64_t>(s_.length);
    parallel_for(s_.rows, 1, [&](Index begin, Index end) {
      for (Index row = begin; row < end; ++row) {
        WideDual mean, square;
        each(row, [&](Index, Index p) { mean = mean + in[0]->at(static_cast<std::size_t>(p)); });
        mean = s_.centred ? WideDual{over(mean.value, n), over(mean.tangent, n)} : WideDual{};
        const auto centred = [&](Index p) { return in[0]->at(static_cast<std::size_t>(p)) - mean; };
        each(row, [&](Index, Index p) { square = square + centred(p) * centred(p); });
        // The derivative of v^(-1/2) is -v^(-3/2) / 2.
        const Wide inverse = inverse_sqrt(over(square.value, n) + Wide(s_.epsilon));
        const Wide slope = scaled(inverse * sqr(inverse) * over(square.tangent, n), -1);
        each(row, [&](Index i, Index p) {
          const auto c = static_cast<std::size_t>(channel(i));
          WideDual y = centred(p) * WideDual{inverse, -slope};
          if (s_.scale) y = y * in[1]->at(c);
          if (s_.bias) y = y + in[bias_slot()]->at(c);
          out[0].set(static_cast<std::size_t>(p), y);
        });
      }
    });
    return true;
  }

  // [normalisation-11]; scale and bias as numbers in their boxes.
  std::optional<Relaxation> relax(std::span<const Box> in) const override {
    if (!(s_.epsilon >= 0)) return std::nullopt;
    const std::optional<BoxEntries> scale = operand(in, s_.scale, 1);
    const std::optional<BoxEntries> bias = operand(in, s_.bias, bias_slot());
    const Index size = s_.rows * s_.length;
    AffineRowsBuilder lower(size), upper(size);
    for_each_group(in[0], [&](Index row, const Group& group) {
      ScaleAndBias then;
      each(row, [&](Index i, Index) {
        then.scale.push_back(scale ? (*scale)[channel(i)] : point(1));
        then.bias.push_back(bias ? (*bias)[channel(i)] : point(0));
      });
      const RowRelaxation forms = relax_standardised(group, divisor(), then);
      each(row, [&](Index i, Index p) {
        const auto k = static_cast<std::size_t>(i - row * s_.length);
        lower.add_offset(p, point(forms.lower.offsets[k]));
        upper.add_offset(p, point(forms.upper.offsets[k]));
        each(row, [&](Index j, Index q) {
          const auto at = k * group.size() + static_cast<std::size_t>(j - row * s_.length);
          lower.add(p, q, forms.lower.weights[at]);
          upper.add(p, q, forms.upper.weights[at]);
        });
      });
    });
    return relaxation(std::move(lower), std::move(upper));
  }

  const GraphAdjoint* graph_adjoint() const override {
    return !s_.epsilon_outside && s_.places.empty() && s_.epsilon >= 0 ? this : nullptr;
  }
  // r (h - mean of h - z times the mean of z h) with h the gradient times the scale.
  std::optional<ValueId> add_adjoint(const AdjointArgs& args) const override {
    if (args.wrt != 0) return std::nullopt;
    GraphBuilder& b = args.builder;
    const ValueId x = args.inputs[0];
    Standardisation bare = s_;
    bare.scale = bare.bias = false;
    bare.statistics.reset();
    const ValueId z =
        b.add(std::make_shared<const StandardiseOp>(std::move(bare)), {x}, "gradient")[0];
    const ValueId r =
        b.add(make_inverse_deviation(s_.x.type, s_.rows, s_.length, divisor()), {x}, "gradient")[0];
    // Entry i is entry i % length of row i / length, and i / inner % channels of the scale.
    const std::vector<Index> all{s_.length, 1}, by_row{1, 0};
    const Multilinear form{
        .name = "Mul", .out = s_.x, .extents = {s_.rows, s_.length}, .out_strides = all};
    ValueId h = args.gradient;
    if (s_.scale) {
      const Index outer = s_.rows * s_.length / (s_.inner * s_.channels);
      const std::vector<Index> full{s_.inner * s_.channels, s_.inner, 1};
      h = add_products(b,
                       {.name = "Mul",
                        .out = s_.x,
                        .extents = {outer, s_.channels, s_.inner},
                        .strides = {full, {0, 1, 0}},
                        .out_strides = full,
                        .terms = {{1, {0, 1}}}},
                       {h, args.inputs[1]});
    }
    const auto mean = [&](std::vector<ValueId> factors) {
      Multilinear sum = form;
      sum.out.shape = {s_.rows};
      sum.out_strides = by_row;
      sum.strides.assign(factors.size(), all);
      sum.terms = {{1, {0}}};
      if (factors.size() > 1) sum.terms[0].inputs.push_back(1);
      const ValueId total = add_products(b, std::move(sum), std::move(factors));
      return add_products(b,
                          {.name = "Mul",
                           .out = {s_.x.type, {s_.rows}},
                           .extents = {s_.rows},
                           .strides = {{1}, {0}},
                           .out_strides = {1},
                           .terms = {{1, {0, 1}}}},
                          {total, add_inverse(b, length())});
    };
    Multilinear rest = form;
    rest.strides = {all, all, by_row, by_row};
    rest.terms = {{1, {0}}, {-1, {1, 2}}};
    if (s_.centred) rest.terms.push_back({-1, {3}});
    const ValueId along = mean({z, h});
    const ValueId e = add_products(b, rest, {h, z, along, s_.centred ? mean({h}) : along});
    Multilinear scaled = form;
    scaled.strides = {all, by_row};
    scaled.terms = {{1, {0, 1}}};
    return add_products(b, scaled, {e, r});
  }

  std::optional<Gain> gain(const GainQuery& query) const override {
    if (!(s_.epsilon >= 0)) return std::nullopt;
    const auto moved = static_cast<std::size_t>(query.wrt);
    if (moved != 0) return affine_gain(query, s_.bias && moved == bias_slot());
    const std::optional<BoxEntries> scale = operand(query.in, s_.scale, 1);
    std::vector<double> blocks, sizes(static_cast<std::size_t>(s_.length), 1.0);
    for_each_group(query.in[0], [&](Index row, const Group& group) {
      if (!group.moves()) return;
      if (scale) {
        each(row, [&](Index i, Index) {
          sizes[static_cast<std::size_t>(i - row * s_.length)] = magnitude((*scale)[channel(i)]);
        });
      }
      const CornerNorms norms = standardised_norms(group, divisor(), sizes);
      blocks.push_back(interpolated_norm_up(norms, query.norms));
    });
    return Gain{diagonal_norm_up(blocks, query.norms), "normalisation-7"};
  }

 private:
  struct Moments {
    double mean, inverse, pull;
  };

  [[nodiscard]] Divisor divisor() const { return {s_.epsilon, s_.epsilon_outside, s_.centred}; }
  static std::optional<BoxEntries> operand(std::span<const Box> in, bool there, std::size_t k) {
    if (there) return std::optional<BoxEntries>(std::in_place, in[k]);
    return std::nullopt;
  }
  // body(row, its entries in the box).
  template <class Body>
  void for_each_group(const Box& box, Body&& body) const {
    const BoxEntries x(box);
    if (s_.length == 0) return;
    std::vector<double> lower(static_cast<std::size_t>(s_.length)), upper(lower.size());
    for (Index row = 0; row < s_.rows; ++row) {
      each(row, [&](Index i, Index p) {
        const auto k = static_cast<std::size_t>(i - row * s_.length);
        lower[k] = x[p].lo, upper[k] = x[p].hi;
      });
      body(row, Group{lower, upper});
    }
  }
  // Of scale, which multiplies the standardised entries, or bias.
  Gain affine_gain(const GainQuery& query, bool bias) const {
    const BoxEntries moved(query.in[static_cast<std::size_t>(query.wrt)]);
    EntryGain gain(moved);
    for_each_group(query.in[0], [&](Index row, const Group& group) {
      std::vector<Interval> z(group.size(), point(1));
      if (!bias) z = standardised_range(group, divisor());
      each(row, [&](Index i, Index) {
        gain.follow(channel(i), magnitude(z[static_cast<std::size_t>(i - row * s_.length)]));
      });
    });
    return {gain.value(query.norms), "pointwise-2"};
  }

  [[nodiscard]] double length() const { return static_cast<double>(s_.length); }
  [[nodiscard]] std::size_t bias_slot() const { return s_.scale ? 2 : 1; }
  [[nodiscard]] Index channel(Index i) const { return i / s_.inner % s_.channels; }
  [[nodiscard]] Index place(Index i) const {
    return s_.places.empty() ? i : s_.places[static_cast<std::size_t>(i)];
  }
  static double z(const Moments& m, const double* x, Index p) {
    return (x[p] - m.mean) * m.inverse;
  }
  static double* out(const MutView& view, Index b) {
    return view ? view.sample<double>(b) : nullptr;
  }

  // body(entry, its place) over a row.
  template <class Body>
  void each(Index row, Body&& body) const {
    for (Index i = row * s_.length; i < (row + 1) * s_.length; ++i) body(i, place(i));
  }
  template <class Body>
  void over_rows(Index count, Body&& body) const {
    const Index grain = std::max<Index>(1, kParallelGrain / std::max<Index>(1, s_.length));
    parallel_for(count * s_.rows, grain, [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) body(i / s_.rows, i % s_.rows);
    });
  }

  // Sum of term(place) over a row, in several lanes.
  template <class Term>
  double row_sum(Index row, Term&& term) const {
    double total = 0;
    if (!s_.places.empty()) {
      each(row, [&](Index, Index p) { total += term(p); });
      return total;
    }
    constexpr Index kLanes = 8;
    double lanes[kLanes] = {};
    const Index end = (row + 1) * s_.length;
    Index i = row * s_.length;
    for (; i + kLanes <= end; i += kLanes) {
      for (Index k = 0; k < kLanes; ++k) lanes[k] += term(i + k);
    }
    for (; i < end; ++i) total += term(i);
    for (const double lane : lanes) total += lane;
    return total;
  }

  template <class T>
  Moments moments(const T* x, Index row) const {
    const double sum =
        s_.centred ? row_sum(row, [&](Index p) { return static_cast<double>(x[p]); }) : 0;
    const double mean = sum / length();
    const double variance = row_sum(row,
                                    [&](Index p) {
                                      const double d = static_cast<double>(x[p]) - mean;
                                      return d * d;
                                    }) /
                            length();
    if (!s_.epsilon_outside) {
      const double inverse = 1 / std::sqrt(variance + s_.epsilon);
      return {mean, inverse, inverse};
    }
    const double deviation = std::sqrt(variance);
    return {mean, 1 / (deviation + s_.epsilon), deviation > 0 ? 1 / deviation : 0};
  }

  void pull_statistics(const VjpArgs& args, Index b, Index row, const Moments& m, const double* x,
                       double* gx) const {
    const double g_mean = args.grad_out[1] ? args.grad_out[1].sample<double>(b)[row] : 0;
    const double g_inverse = args.grad_out[2] ? args.grad_out[2].sample<double>(b)[row] : 0;
    each(row, [&](Index, Index p) {
      gx[p] += (g_mean - g_inverse * m.inverse * m.pull * z(m, x, p)) / length();
    });
  }

  Standardisation s_;
  bool plain_;  // scale and bias run along with the row: the common case, made fast
};

}  // namespace

std::shared_ptr<const Op> make_standardise(Standardisation s) {
  return std::make_shared<const StandardiseOp>(std::move(s));
}

}  // namespace lipscope
