// SPDX-License-Identifier: Apache-2.0
#include "ops/rows/reduce.h"

#include <cmath>
#include <limits>

#include "lipscope/error.h"
#include "ops/broadcast/max_relax.h"
#include "ops/integer/integers.h"

namespace lipscope {

Reduction reduction_of(const OnnxNode& node, int axes_input_since, bool no_op) {
  const Shape& shape = node.input(0).shape;
  const auto rank = static_cast<Index>(shape.size());
  const bool keep = node.integer("keepdims", 1) != 0;
  const bool as_input = node.opset() >= axes_input_since;
  const auto given = as_input ? node.constant_ints(1) : node.integers("axes");
  const bool none_is_none = as_input && node.integer("noop_with_empty_axes", 0) != 0;
  const bool empty = !given || given->empty();
  if (empty && none_is_none && !no_op) {
    node.unsupported("noop_with_empty_axes: its meaning for this operator is not settled");
  }
  std::vector<bool> reduced(shape.size(), empty && !none_is_none);
  if (!empty) {
    for (const Index axis : *given) {
      reduced[static_cast<std::size_t>(OnnxNode::axis(axis, rank))] = true;
    }
  }
  Reduction result{.in = shape, .kept = shape, .out = {}};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (reduced[d]) result.kept[d] = 1;
    if (!reduced[d] || keep) result.out.push_back(result.kept[d]);
  }
  return result;
}

std::vector<OpCase> reduction_cases(Rng& rng, int axes_input_since, double low, double high) {
  std::vector<OpCase> cases;
  const auto add = [&](Shape shape, std::optional<std::vector<Index>> axes, bool keep, int opset) {
    OpCase c{.inputs = {{random_tensor_avoiding(rng, std::move(shape), {0}, low, high)}},
             .attributes = {{"keepdims", Index{keep}}},
             .opset = opset};
    if (axes && opset >= axes_input_since) c.inputs.push_back(fixed_ints(*axes));
    if (axes && opset < axes_input_since) c.attributes.emplace("axes", *axes);
    cases.push_back(std::move(c));
  };
  for (const int opset : {11, 13, 18}) {
    add({2, 3, 4}, {}, true, opset);
    add({2, 3, 4}, {}, false, opset);
    add({2, 3, 4}, {{-1}}, false, opset);
    add({1, 3, 2, 2}, {{2, 3}}, true, opset);
    add({2, 3, 2, 3}, {{0, -2}}, false, opset);
    add({2, 17}, {{1}}, true, opset);
    add({}, {}, true, opset);
  }
  return cases;
}

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Sums and products of integers wrap; sizes of the results do not depend on the type.
struct AddIntegers {
  ElementType type;
  Index start() const { return 0; }
  Index map(Index x) const { return x; }
  Index merge(Index a, Index b) const { return add_integers(a, b); }
  Index finish(Index acc, Index) const { return acc; }
};

struct Adding {
  using Exact = RationalInterval;
  static Exact exact_map(const Exact& x) { return x; }
  static Exact exact(const Exact& a, const Exact& b) { return a + b; }
  static double start() { return 0; }
  static double map(double x) { return x; }
  static double merge(double a, double b) { return a + b; }
  static double finish(double acc, double) { return acc; }
};

struct ReduceSum : Adding {
  static constexpr std::string_view kName = "ReduceSum";
  static Interval range(const Group& x) { return sum_range(x); }
  static double gain(const Group& x, Norm p) { return sum_gain(x, p); }
  static double slope(double, double, double) { return 1; }
  static Interval weight(double) { return point(1); }
  static constexpr bool kDivides = false;
  using Integer = AddIntegers;
};
struct ReduceMean : Adding {
  static constexpr std::string_view kName = "ReduceMean";
  static Interval range(const Group& x) { return mean_range(x); }
  static double gain(const Group& x, Norm p) { return mean_gain(x, p); }
  static double finish(double acc, double n) { return acc / n; }
  static double slope(double, double, double n) { return 1 / n; }
  static Interval weight(double n) { return point(1) / point(n); }
  static constexpr bool kDivides = true;
  // A mean is never beyond its type, but the sum may be, and runtimes do not agree on it then.
  struct Integer : AddIntegers {
    Index merge(Index a, Index b) const {
      const Index sum = add_integers(a, b);
      const bool wraps =
          type == ElementType::kUInt64 ? bits_of(sum) < bits_of(a) : ((a ^ sum) & (b ^ sum)) < 0;
      if (wraps)
        throw Error(ErrorCode::kUnsupported,
                    "operator ReduceMean: whole numbers whose sum is beyond 64 bits");
      return sum;
    }
    Index finish(Index acc, Index n) const { return divide_integers(type, acc, n); }
  };
};
struct L1 : Adding {
  static constexpr std::string_view kName = "ReduceL1";
  static Interval range(const Group& x) { return l1_range(x); }
  static double gain(const Group& x, Norm p) { return l1_gain(x, p); }
  static double map(double x) { return std::abs(x); }
  static Exact exact_map(const Exact& x) { return abs(x); }
  static double slope(double x, double, double) { return x < 0 ? -1 : 1; }
  struct Integer : AddIntegers {
    Index map(Index x) const { return x < 0 && !is_unsigned(type) ? subtract_integers(0, x) : x; }
  };
};
struct L2 : Adding {
  static constexpr std::string_view kName = "ReduceL2";
  static Interval range(const Group& x) { return l2_range(x); }
  static double gain(const Group& x, Norm p) { return l2_gain(x, p); }
  static void exact() = delete;  // a root is not rational
  static double map(double x) { return x * x; }
  static double finish(double acc, double) { return std::sqrt(acc); }
  static double slope(double x, double y, double) { return y == 0 ? 0 : x / y; }
};
struct SumSquare : Adding {
  static constexpr std::string_view kName = "ReduceSumSquare";
  static Interval range(const Group& x) { return sum_square_range(x); }
  static double gain(const Group& x, Norm p) { return sum_square_gain(x, p); }
  static double map(double x) { return x * x; }
  static Exact exact_map(const Exact& x) { return abs(x) * abs(x); }
  static double slope(double x, double, double) { return 2 * x; }
  struct Integer : AddIntegers {
    Index map(Index x) const { return multiply_integers(x, x); }
  };
};
struct LogSum : Adding {
  static constexpr std::string_view kName = "ReduceLogSum";
  static Interval range(const Group& x) { return log_sum_range(x); }
  static double gain(const Group& x, Norm p) { return log_sum_gain(x, p); }
  static void exact() = delete;
  static double finish(double acc, double) { return std::log(acc); }
  static double slope(double, double y, double) { return std::exp(-y); }
};
struct Prod {
  static constexpr std::string_view kName = "ReduceProd";
  static Interval range(const Group& x) { return product_range(x); }
  static double gain(const Group& x, Norm p) { return product_gain(x, p); }
  static constexpr bool kProduct = true;
  static double start() { return 1; }
  static double map(double x) { return x; }
  static double merge(double a, double b) { return a * b; }
  static RationalInterval exact_map(const RationalInterval& x) { return x; }
  static RationalInterval exact(const RationalInterval& a, const RationalInterval& b) {
    return a * b;
  }
  static double finish(double acc, double) { return acc; }
  struct Integer : AddIntegers {
    Index start() const { return 1; }
    Index merge(Index a, Index b) const { return multiply_integers(a, b); }
  };
};

struct ReduceMax {
  static constexpr std::string_view kName = "ReduceMax";
  static Interval range(const Group& x) { return max_range(x); }
  static double gain(const Group& x, Norm p) { return max_gain(x, p); }
  static constexpr auto relax = relax_largest;
  static constexpr bool kSelects = true;
  static RationalInterval exact_map(const RationalInterval& x) { return x; }
  static RationalInterval exact(const RationalInterval& a, const RationalInterval& b) {
    return max(a, b);
  }
  static double start() { return -kInfinity; }
  static double map(double x) { return x; }
  template <class T>
  static T merge(T a, T b) {
    return a > b || a != a ? a : b;  // a NaN on either side stays
  }
  static double finish(double acc, double) { return acc; }
  struct Integer {
    ElementType type;
    Index start() const { return order_key(type, smallest_integer(type)); }
    Index map(Index x) const { return order_key(type, x); }
    Index merge(Index a, Index b) const { return ReduceMax::merge(a, b); }
    Index finish(Index acc, Index) const { return order_key(type, acc); }
  };
};
struct ReduceMin {
  static constexpr std::string_view kName = "ReduceMin";
  static Interval range(const Group& x) { return min_range(x); }
  static double gain(const Group& x, Norm p) { return min_gain(x, p); }
  static constexpr auto relax = relax_smallest;
  static constexpr bool kSelects = true;
  static RationalInterval exact_map(const RationalInterval& x) { return x; }
  static RationalInterval exact(const RationalInterval& a, const RationalInterval& b) {
    return min(a, b);
  }
  static double start() { return kInfinity; }
  static double map(double x) { return x; }
  template <class T>
  static T merge(T a, T b) {
    return a < b || a != a ? a : b;
  }
  static double finish(double acc, double) { return acc; }
  struct Integer : ReduceMax::Integer {
    Index start() const { return order_key(type, largest_integer(type)); }
    Index merge(Index a, Index b) const { return ReduceMin::merge(a, b); }
  };
};

// top + log(sum of exp(x - top)), top being the largest entry.
struct LogSumExp {
  static constexpr std::string_view kName = "ReduceLogSumExp";
  static Interval range(const Group& x) { return log_sum_exp_range(x); }
  static double gain(const Group& x, Norm p) { return log_sum_exp_gain(x, p); }
  static constexpr bool kShifted = true;
  template <class T>
  static std::vector<double> reduced(const Broadcast<1>& plan, const T* x, Index results) {
    const auto m = static_cast<std::size_t>(results);
    std::vector<double> top(m, -kInfinity), sum(m);
    for_each_entry(plan, x,
                   [&](std::size_t o, double entry) { top[o] = ReduceMax::merge(top[o], entry); });
    for (double& t : top) t = std::isfinite(t) ? t : 0;
    for_each_entry(plan, x,
                   [&](std::size_t o, double entry) { sum[o] += std::exp(entry - top[o]); });
    for (std::size_t o = 0; o < m; ++o) sum[o] = top[o] + std::log(sum[o]);
    return sum;
  }
  static double slope(double x, double y, double) { return x == -kInfinity ? 0 : std::exp(x - y); }

 private:
  template <class T, class Body>
  static void for_each_entry(const Broadcast<1>& plan, const T* x, Body&& body) {
    plan.for_each_run([&](Index at, const auto& offset, Index n) {
      for (Index i = 0; i < n; ++i) {
        body(static_cast<std::size_t>(offset[0] + i * plan.step(0)),
             static_cast<double>(x[at + i]));
      }
    });
  }
};

template <class F>
constexpr int kAxesInputSince = std::is_same_v<F, ReduceSum> ? 13 : 18;
// Reducing over no axes at all changes nothing.
template <class F>
constexpr bool kNoOp =
    std::is_same_v<F, ReduceSum> || std::is_same_v<F, ReduceMean> || std::is_same_v<F, Prod> ||
    std::is_same_v<F, ReduceMax> || std::is_same_v<F, ReduceMin> || std::is_same_v<F, LogSumExp>;

template <class F>
Imported import_reduce(const OnnxNode& node) {
  const ElementType type = node.input(0).type;
  const bool ok = is_floating(type) || (requires { typename F::Integer; } &&
                                        (type != ElementType::kBool || requires { F::kSelects; }));
  if (!ok) node.unsupported("element type " + std::string(to_string(type)));
  return std::make_shared<ReduceOp<F>>(reduction_of(node, kAxesInputSince<F>, kNoOp<F>),
                                       is_floating(type));
}

template <class F>
OpKind reduce_kind() {
  constexpr auto kCases = [](Rng& rng) {
    const bool positive = std::is_same_v<F, LogSum>;
    auto cases = reduction_cases(rng, kAxesInputSince<F>, positive ? 0.5 : -2, 2);
    if (requires { typename F::Integer; }) {
      for (const ElementType type : {ElementType::kInt32, ElementType::kUInt64}) {
        const Index high = std::is_same_v<F, ReduceMean> ? -8 : -1;  // sums of means do not wrap
        cases.push_back(
            {.inputs = {{Tensor(type, {2, 3}, std::vector<Index>{4, high, 2, 7, 0, 9})}},
             .attributes = {{"axes", std::vector<Index>{1}}},
             .opset = 12});
      }
    }
    if (kNoOp<F>) {
      cases.push_back({.inputs = {{random_tensor(rng, {2, 3})}, fixed_ints({})},
                       .attributes = {{"noop_with_empty_axes", Index{1}}},
                       .opset = 18});
    }
    return cases;
  };
  return {F::kName, import_reduce<F>, kCases};
}

}  // namespace

std::vector<OpKind> op_reduce() {
  auto rows = std::vector<OpKind>{reduce_kind<ReduceSum>(), reduce_kind<ReduceMean>(),
                                  reduce_kind<Prod>(),      reduce_kind<ReduceMax>(),
                                  reduce_kind<ReduceMin>(), reduce_kind<L1>(),
                                  reduce_kind<L2>(),        reduce_kind<SumSquare>(),
                                  reduce_kind<LogSum>(),    reduce_kind<LogSumExp>()};
  return rows;
}

}  // namespace lipscope
