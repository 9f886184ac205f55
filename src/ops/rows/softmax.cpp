// SPDX-License-Identifier: Apache-2.0
#include "linalg/softmax/softmax.h"

#include <cmath>

#include "ops/elementwise/unary.h"
#include "ops/facets/adjoint.h"
#include "ops/facets/box_product.h"
#include "ops/facets/wide_map.h"
#include "ops/rows/rows.h"
#include "ops/rows/softmax_relax.h"
#include "ops/rows/softmax_rows.h"
#include "softmax/box.h"
#include "softmax/calculus.h"

namespace lipscope {
namespace {

// Whether the row has a value: NaN, +inf and -inf alone leave none.
template <class T>
bool has_value(const T* x, Index length, Index step) {
  constexpr T kMost = std::numeric_limits<T>::max();
  Index wrong = 0, finite = 0;
  for (Index i = 0; i < length; ++i) {
    wrong += !(x[i * step] <= kMost);
    finite += x[i * step] >= -kMost;
  }
  return wrong == 0 && finite > 0;
}

// y = F of each row; NaN in rows without a value.
template <class F, class T>
void eval_rows(const RowLayout& layout, const T* x, T* y) {
  const auto mode = std::is_same_v<T, double> ? SoftmaxMode::kAccurate : SoftmaxMode::kFast;
  Index done = 0;
  const auto finish = [&](Index end) {
    RowLayout run = layout;
    run.rows = end - done;
    F::rows(run, x + done * layout.row_stride, y + done * layout.row_stride, {.mode = mode});
  };
  for (Index r = 0; r < layout.rows; ++r) {
    const Index at = r * layout.row_stride;
    if (has_value(x + at, layout.length, layout.step)) continue;
    finish(r);
    done = r + 1;
    for (Index i = 0; i < layout.length; ++i) {
      y[at + i * layout.step] = std::numeric_limits<T>::quiet_NaN();
    }
  }
  finish(layout.rows);
}

// Range of sum_j s_j t_j over a box of logits.
Interval weighted_range(const Group& x, std::span<const Interval> t) {
  std::vector<double> low, high;
  for (const Interval& entry : t) {
    if (!is_bounded(entry)) return kEntire;
    low.push_back(entry.lo);
    high.push_back(entry.hi);
  }
  return {softmax_functional_range({x.lower, x.upper}, low).lo,
          softmax_functional_range({x.lower, x.upper}, high).hi};
}

Multilinear row_form(const ValueType& type, const RowSplit& split) {
  const Index by_row = split.length * split.inner;
  return {.name = "Mul",
          .out = type,
          .extents = {split.outer, split.length, split.inner},
          .out_strides = {by_row, split.inner, 1}};
}
// Sums of a b over each row.
ValueId add_row_sums(GraphBuilder& builder, ValueId a, ValueId b, const RowSplit& split) {
  Multilinear form = row_form(builder.value(a).type, split);
  form.strides = {form.out_strides, form.out_strides};
  form.out.shape = {split.rows()};
  form.out_strides = {split.inner, 0, 1};
  form.terms = {{1, {0, 1}}};
  return add_products(builder, std::move(form), {a, b});
}
// x minus a number per row.
ValueId add_row_difference(GraphBuilder& builder, ValueId x, ValueId rows, const RowSplit& split) {
  Multilinear form = row_form(builder.value(x).type, split);
  form.strides = {form.out_strides, {split.inner, 0, 1}};
  form.terms = {{1, {0}}, {-1, {1}}};
  return add_products(builder, std::move(form), {x, rows});
}

struct Softmax {
  static constexpr std::string_view kName = "Softmax";
  template <class T>
  static void rows(const RowLayout& layout, const T* x, T* y, const SoftmaxOptions& options) {
    softmax_rows(layout, x, y, options);
  }
  void value(std::span<double> row) const {
    eval_rows<Softmax>(RowLayout::adjacent(1, std::ssize(row)), row.data(), row.data());
  }
  // The Jacobian diag(y) - y y' is symmetric.
  void push(Row, Row y, Row dx, std::span<double> dy) const {
    const double mean = dot(y, dx);
    for (std::size_t i = 0; i < y.size(); ++i) dy[i] = y[i] * (dx[i] - mean);
  }
  void pull(Row x, Row y, Row g, std::span<double> gx) const { push(x, y, g, gx); }

  static constexpr std::string_view kTheorem = "softmax-13";
  void range(const Group& x, std::span<Interval> y) const {
    const std::vector<ShareRange> ranges = softmax_ranges({x.lower, x.upper});
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = ranges[i].share;
  }
  double gain(const Group& x, const NormPair& norms) const {
    return softmax_box_norm_up({x.lower, x.upper}, norms);
  }
  static constexpr auto relax = relax_softmax;
  // s (g - sum of s g).
  static ValueId add_adjoint(const AdjointArgs& args, const RowSplit& split) {
    const ValueId mean = add_row_sums(args.builder, args.output, args.gradient, split);
    const ValueId centred = add_row_difference(args.builder, args.gradient, mean, split);
    return add_product(args.builder, args.output, centred);
  }

  // Any number may be taken from all entries; about the largest keeps the powers below 1.
  static void wide(std::span<WideDual> row) {
    double top = -kInf;
    for (const WideDual& x : row) top = std::max(top, x.value.near());
    Wide sum, moved;
    for (WideDual& x : row) {
      x.value = exp(x.value - Wide(top));
      sum += x.value;
      moved += x.value * x.tangent;
    }
    const Wide inverse = Wide(1) / sum, mean = moved * inverse;
    for (WideDual& x : row) {
      x.value *= inverse;
      x.tangent = x.value * (x.tangent - mean);
    }
  }

  // [attention-19]
  static double curvature_up(double) { return 1; }

  // s_i (t_i - sum_j s_j t_j), the sum by [softmax-12]; J is symmetric.
  void box_product(const Group& x, std::span<const Interval> t, bool,
                   std::span<Interval> out) const {
    const std::vector<ShareRange> ranges = softmax_ranges({x.lower, x.upper});
    const Interval mean = weighted_range(x, t);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = ranges[i].share * (t[i] - mean);
  }
};

struct LogSoftmax {
  static constexpr std::string_view kName = "LogSoftmax";
  template <class T>
  static void rows(const RowLayout& layout, const T* x, T* y, const SoftmaxOptions& options) {
    log_softmax_rows(layout, x, y, options);
  }
  void value(std::span<double> row) const {
    eval_rows<LogSoftmax>(RowLayout::adjacent(1, std::ssize(row)), row.data(), row.data());
  }
  // With p = exp(y): J = I - 1 p'.
  void push(Row, Row y, Row dx, std::span<double> dy) const {
    double mean = 0;
    for (std::size_t i = 0; i < y.size(); ++i) mean += std::exp(y[i]) * dx[i];
    for (std::size_t i = 0; i < y.size(); ++i) dy[i] = dx[i] - mean;
  }
  void pull(Row, Row y, Row g, std::span<double> gx) const {
    double sum = 0;
    for (const double entry : g) sum += entry;
    for (std::size_t i = 0; i < y.size(); ++i) gx[i] = g[i] - std::exp(y[i]) * sum;
  }

  static constexpr std::string_view kTheorem = "normalisation-5";
  void range(const Group& x, std::span<Interval> y) const {
    const SoftmaxTails tails(x);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = tails.log_share(i);
  }
  double gain(const Group& x, const NormPair& norms) const {
    if (x.size() < 2) return 0;
    const double local = interpolated_norm_up(log_softmax_norms(SoftmaxTails(x)), norms);
    if (norms.in != norms.out) return local;
    return std::min(local, log_softmax_global_norm(norms.in, static_cast<Index>(x.size()), 1).hi);
  }
  static constexpr auto relax = relax_log_softmax;
  static double curvature_up(double length) { return mul_up(0.5, sqrt_up(length)); }

  // t_i - sum_j s_j t_j, or t_i - s_i sum_j t_j.
  void box_product(const Group& x, std::span<const Interval> t, bool transposed,
                   std::span<Interval> out) const {
    if (!transposed) {
      const Interval mean = weighted_range(x, t);
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = t[i] - mean;
      return;
    }
    const std::vector<ShareRange> ranges = softmax_ranges({x.lower, x.upper});
    Interval sum = point(0);
    for (const Interval& entry : t) sum += entry;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = t[i] - ranges[i].share * sum;
  }
};

template <class F>
concept WideRow = requires(std::span<WideDual> row) {
  F::wide(row);
};
template <class F>
concept AdjointRow = requires(const AdjointArgs& args, const RowSplit& split) {
  F::add_adjoint(args, split);
};

// Softmax or LogSoftmax: values by the kernel, everything else by rows.
template <class F>
class SoftmaxOp final : public Op,
                        public BoxProduct,
                        public GraphAdjoint,
                        public WideMap,
                        public SoftmaxRows {
 public:
  explicit SoftmaxOp(RowSplit split) : rows_(F{}, split), split_(split) {}
  const SoftmaxRows* softmax_rows() const override { return this; }
  Index rows() const override { return split_.rows(); }
  SoftmaxResult result() const override {
    return std::is_same_v<F, Softmax> ? SoftmaxResult::kProbabilities : SoftmaxResult::kLogarithms;
  }

  std::string_view name() const override { return F::kName; }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override {
    return rows_.infer(in);
  }
  bool differentiable() const override { return true; }
  void jvp(const JvpArgs& args) const override { rows_.jvp(args); }
  void vjp(const VjpArgs& args) const override { rows_.vjp(args); }
  std::optional<std::vector<Box>> range(std::span<const Box> in) const override {
    return rows_.range(in);
  }
  std::optional<Gain> gain(const GainQuery& query) const override { return rows_.gain(query); }

  void eval(const EvalArgs& args) const override {
    const Index rows = split_.length == 0 ? 0 : split_.rows();
    const Index grain = std::max<Index>(1, kParallelGrain / std::max<Index>(1, split_.length));
    for_real(args.in[0].storage, [&](auto zero) {
      using T = decltype(zero);
      parallel_for(args.count * rows, grain, [&](Index begin, Index end) {
        while (begin < end) {
          const Index sample = begin / rows, row = begin % rows;
          const RowLayout run = run_from(row, std::min(end - begin, rows - row));
          eval_rows<F>(run, args.in[0].sample<T>(sample) + split_.start(row),
                       args.out[0].sample<T>(sample) + split_.start(row));
          begin += run.rows;
        }
      });
    });
  }

  std::optional<Relaxation> relax(std::span<const Box> in) const override {
    return relax_rows(in[0], split_, F::relax);
  }
  const GraphAdjoint* graph_adjoint() const override { return AdjointRow<F> ? this : nullptr; }
  std::optional<ValueId> add_adjoint([[maybe_unused]] const AdjointArgs& args) const override {
    if constexpr (AdjointRow<F>) {
      return F::add_adjoint(args, split_);
    } else {
      return std::nullopt;
    }
  }
  const WideMap* wide_map() const override { return WideRow<F> ? this : nullptr; }
  bool push_wide([[maybe_unused]] std::span<const WideTensor* const> in,
                 [[maybe_unused]] std::span<WideTensor> out) const override {
    if constexpr (WideRow<F>) {
      out[0].resize(in[0]->value.size(), in[0]->moves());
      parallel_for(split_.length > 0 ? split_.rows() : 0, 1, [&](Index begin, Index end) {
        std::vector<WideDual> row(static_cast<std::size_t>(split_.length));
        for (Index r = begin; r < end; ++r) {
          const auto place = [&](std::size_t i) {
            return static_cast<std::size_t>(split_.start(r) + static_cast<Index>(i) * split_.inner);
          };
          for (std::size_t i = 0; i < row.size(); ++i) row[i] = in[0]->at(place(i));
          F::wide(row);
          for (std::size_t i = 0; i < row.size(); ++i) out[0].set(place(i), row[i]);
        }
      });
      return true;
    } else {
      return false;
    }
  }
  const BoxProduct* box_product() const override { return this; }
  double derivative_change_up(std::span<const Box>, double radius) const override {
    return gain_mul_up(radius, F::curvature_up(static_cast<double>(split_.length)));
  }
  bool enclose_product(std::span<const Box> in, std::span<const Interval> t, bool transposed,
                       std::span<Interval> out) const override {
    const BoxEntries x(in[0]);
    const auto length = static_cast<std::size_t>(split_.length);
    std::vector<double> lower(length), upper(length);
    std::vector<Interval> given(length), row(length);
    for (Index r = 0; r < split_.rows() && length > 0; ++r) {
      const auto place = [&](std::size_t i) {
        return split_.start(r) + static_cast<Index>(i) * split_.inner;
      };
      for (std::size_t i = 0; i < length; ++i) {
        lower[i] = x[place(i)].lo, upper[i] = x[place(i)].hi;
        given[i] = t[static_cast<std::size_t>(place(i))];
      }
      F{}.box_product(Group{lower, upper}, given, transposed, row);
      for (std::size_t i = 0; i < length; ++i) out[static_cast<std::size_t>(place(i))] = row[i];
    }
    return true;
  }

 private:
  // At most `most` rows that lie evenly spaced, the first of them being `row`.
  [[nodiscard]] RowLayout run_from(Index row, Index most) const {
    if (split_.inner == 1) return RowLayout::adjacent(most, split_.length);
    return {std::min(most, split_.inner - row % split_.inner), split_.length, 1, split_.inner};
  }

  RowOp<F> rows_;
  RowSplit split_;
};

// 1 at the first of the largest entries (a NaN counts as largest), 0 elsewhere.
struct Hardmax {
  static constexpr std::string_view kName = "Hardmax";
  void value(std::span<double> row) const {
    const auto top = std::max_element(row.begin(), row.end(), [](double a, double b) {
      return std::isnan(b) ? !std::isnan(a) : a < b;
    });
    const auto at = top - row.begin();
    std::fill(row.begin(), row.end(), 0.0);
    row[static_cast<std::size_t>(at)] = 1;
  }
  void push(Row, Row, Row, std::span<double> dy) const { std::fill(dy.begin(), dy.end(), 0.0); }
  void pull(Row, Row, Row, std::span<double> gx) const { std::fill(gx.begin(), gx.end(), 0.0); }

  static constexpr std::string_view kTheorem = "pointwise-3";
  void range(const Group& x, std::span<Interval> y) const {
    for (std::size_t i = 0; i < x.size(); ++i) {
      bool certain = true, possible = true;
      for (std::size_t j = 0; j < x.size(); ++j) {
        if (j == i) continue;
        // Of equal entries the first wins.
        certain = certain && (i < j ? x.lower[i] >= x.upper[j] : x.lower[i] > x.upper[j]);
        possible = possible && (i < j ? x.upper[i] >= x.lower[j] : x.upper[i] > x.lower[j]);
      }
      y[i] = {certain ? 1.0 : 0.0, possible ? 1.0 : 0.0};
    }
  }
  double gain(const Group& x, const NormPair&) const {
    std::vector<Interval> y(x.size());
    range(x, y);
    for (const Interval& entry : y) {
      if (entry.lo != entry.hi) return kInf;
    }
    return 0;
  }
};

template <class F>
std::shared_ptr<const Op> make_row_op(const RowSplit& split) {
  if constexpr (requires { F::relax; }) {
    return std::make_shared<SoftmaxOp<F>>(split);
  } else {
    return std::make_shared<RowOp<F>>(F{}, split);
  }
}

// Below opset 13 the tensor is flattened to a matrix at the axis, whose rows are normalised.
template <class F>
Imported import_row_function(const OnnxNode& node) {
  require_real(node);
  const Shape& shape = node.input(0).shape;
  const bool flattens = node.opset() < 13;
  const Index rank = node.rank(0), given = node.integer("axis", flattens ? 1 : -1);
  if (rank == 0) {
    if (given != 0 && given != -1 && !(flattens && !node.has("axis"))) {
      node.malformed("axis of a scalar");
    }
    return make_row_op<F>(RowSplit{});
  }
  // A flattening axis may be the rank itself: rows of one entry.
  const Index axis = flattens && given == rank ? rank : OnnxNode::axis(given, rank);
  return make_row_op<F>(RowSplit::of(shape, axis, flattens ? rank : axis + 1));
}

std::vector<OpCase> softmax_cases(Rng& rng) {
  std::vector<OpCase> cases = {
      {.inputs = {{random_tensor(rng, {3, 5})}}},
      {.inputs = {{random_tensor(rng, {2, 3, 4})}}, .attributes = {{"axis", Index{1}}}},
      {.inputs = {{random_tensor(rng, {2, 3, 4})}}, .attributes = {{"axis", Index{0}}}},
      {.inputs = {{random_tensor(rng, {2, 3, 4})}}, .opset = 11},
      {.inputs = {{random_tensor(rng, {2, 3, 4})}}, .attributes = {{"axis", Index{2}}}, .opset = 9},
      {.inputs = {{random_tensor(rng, {2, 0})}}},
      {.inputs = {{random_tensor(rng, {0, 3})}}},
      {.inputs = {{random_tensor(rng, {4})}}, .attributes = {{"axis", Index{-1}}}},
      {.inputs = {{random_tensor(rng, {2, 6}, 500, 510)}}},
  };
  return cases;
}

template <class F>
OpKind row_kind() {
  return {F::kName, import_row_function<F>, softmax_cases};
}

}  // namespace

std::vector<OpKind> op_softmax() {
  return {row_kind<Softmax>(), row_kind<LogSoftmax>(), row_kind<Hardmax>()};
}

}  // namespace lipscope
