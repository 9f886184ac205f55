// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "ops/box.h"
#include "ops/broadcast/max_relax.h"
#include "ops/dispatch.h"
#include "ops/facets/box_product.h"
#include "ops/facets/machine_map.h"
#include "ops/kind.h"
#include "ops/windows/max_windows.h"
#include "ops/windows/taps.h"

namespace lipscope {
namespace {

// Where the optional second output counts from: row-major or column-major within a plane.
enum class Indices { kNone, kRowMajor, kColumnMajor };

class MaxPool final : public Op, public BoxProduct, public MachineMap, public MaxWindows {
 public:
  MaxPool(std::string name, ValueType type, Index planes, Window window, Indices indices)
      : name_(std::move(name)),
        type_(std::move(type)),
        planes_(planes),
        window_(std::move(window)),
        taps_(lay_out(window_)),
        indices_(indices) {}

  std::string_view name() const override { return name_; }
  bool decides_exactly() const override { return indices_ != Indices::kNone; }
  std::vector<ValueType> infer(std::span<const ValueType>) const override {
    if (indices_ == Indices::kNone) return {type_};
    return {type_, {ElementType::kInt64, type_.shape}};
  }

  void eval(const EvalArgs& args) const override {
    for_storage(args.in[0].storage, [&](auto zero) {
      using T = decltype(zero);
      for_each_plane(args.count, [&](Index b, Index plane) {
        const T* x = args.in[0].sample<T>(b) + plane * taps_.in_size;
        T* y = args.out[0].sample<T>(b) + plane * taps_.out_size;
        if (is_whole_plane()) {
          *y = max_of(x, taps_.in_size);
        } else {
          maxima(x, y);
        }
        if (indices_ == Indices::kNone) return;
        Index* to = args.out[1].sample<Index>(b) + plane * taps_.out_size;
        const std::vector<std::int32_t> best = arg_maxima(x);
        for (std::size_t i = 0; i < best.size(); ++i) {
          to[i] = plane * taps_.in_size + in_order_asked(best[i]);
        }
      });
    });
  }

  bool differentiable() const override { return true; }
  void jvp(const JvpArgs& args) const override {
    const MutView& out = args.tangent_out[0];
    if (!out) return;
    if (!args.tangent_in[0]) return fill_zero(out, args.count);
    for_each_plane(args.count, [&](Index b, Index plane) {
      const Index shift = plane * taps_.in_size;
      const double* from = args.tangent_in[0].sample<double>(b) + shift;
      double* to = out.sample<double>(b) + plane * taps_.out_size;
      for (const std::int32_t s : arg_maxima(args.in[0].sample<double>(b) + shift)) *to++ = from[s];
    });
  }
  void vjp(const VjpArgs& args) const override {
    const MutView& in = args.grad_in[0];
    if (!in) return;
    fill_zero(in, args.count);
    if (!args.grad_out[0]) return;
    for_each_plane(args.count, [&](Index b, Index plane) {
      const Index shift = plane * taps_.in_size;
      const double* from = args.grad_out[0].sample<double>(b) + plane * taps_.out_size;
      double* to = in.sample<double>(b) + shift;
      for (const std::int32_t s : arg_maxima(args.in[0].sample<double>(b) + shift))
        to[s] += *from++;
    });
  }

  std::optional<std::vector<Box>> range(std::span<const Box> in) const override {
    if (!holds_doubles(in[0])) return std::nullopt;
    const auto n = static_cast<std::size_t>(planes_ * taps_.out_size);
    std::vector<double> lower(n), upper(n);
    for_each_plane(1, [&](Index, Index plane) {
      const Index from = plane * taps_.in_size, to = plane * taps_.out_size;
      maxima(in[0].lower.doubles().data() + from, lower.data() + to);
      maxima(in[0].upper.doubles().data() + from, upper.data() + to);
    });
    std::vector<Box> boxes{make_box(type_.shape, std::move(lower), std::move(upper))};
    if (indices_ != Indices::kNone) boxes.push_back(index_box(in[0]));
    return boxes;
  }
  std::optional<Gain> gain(const GainQuery& query) const override {
    if (!holds_doubles(query.in[0])) return std::nullopt;
    if (is_point(query.in[0])) return Gain{0, "linear-7"};
    return Gain{window_gain_up(taps_, planes_, Norm::infinity(), query.norms), "linear-7"};
  }

  const BoxProduct* box_product() const override { return this; }
  // The derivative is a mean of those of the entries that can be the largest.
  bool enclose_product(std::span<const Box> in, std::span<const Interval> t, bool transposed,
                       std::span<Interval> out) const override {
    if (!holds_doubles(in[0])) return false;
    const auto low = in[0].lower.doubles(), high = in[0].upper.doubles();
    std::ranges::fill(out, point(0));
    const std::vector<std::vector<Index>> all = windows();
    for (std::size_t i = 0; i < all.size(); ++i) {
      double most = -kInf;
      for (const Index s : all[i]) most = std::max(most, low[static_cast<std::size_t>(s)]);
      std::vector<std::size_t> able;
      for (const Index s : all[i]) {
        if (!(high[static_cast<std::size_t>(s)] < most))
          able.push_back(static_cast<std::size_t>(s));
      }
      for (std::size_t k = 0; k < able.size(); ++k) {
        if (!transposed) {
          out[i] = k == 0 ? t[able[k]] : hull(out[i], t[able[k]]);
        } else {
          out[able[k]] += able.size() == 1 ? t[i] : hull(t[i], point(0));
        }
      }
    }
    return true;
  }
  double derivative_change_up(std::span<const Box>, double) const override { return kInf; }

  std::optional<Relaxation> relax(std::span<const Box> in) const override {
    if (!holds_doubles(in[0])) return std::nullopt;
    const std::vector<std::vector<Index>> all = windows();
    AffineRowsBuilder lower(std::ssize(all)), upper(std::ssize(all));
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].empty()) return std::nullopt;  // nothing but padding
      std::vector<Interval> entries;
      for (const Index s : all[i]) entries.push_back(entry(in[0], s));
      relax_largest(entries, all[i], static_cast<Index>(i), lower, upper);
    }
    return relaxation(lower, upper);
  }

  const MachineMap* machine_map() const override {
    return is_floating(type_.type) ? this : nullptr;
  }
  std::unique_ptr<const MachineStep> machine_step(const Machine&,
                                                  std::size_t output) const override {
    if (output != 0) return nullptr;
    return selection_step([all = windows()](const CopyVisitor& visit) {
      for (std::size_t i = 0; i < all.size(); ++i) {
        for (const Index s : all[i]) visit(static_cast<Index>(i), 0, s);
      }
    });
  }

  const MaxWindows* max_windows() const override { return this; }
  [[nodiscard]] std::vector<std::vector<Index>> windows() const override {
    std::vector<std::vector<Index>> all(static_cast<std::size_t>(planes_ * taps_.out_size));
    for (Index plane = 0; plane < planes_; ++plane) {
      for (const Tap& tap : taps_.taps) {
        for (Index i = 0; i < tap.length; ++i)
          all[static_cast<std::size_t>(plane * taps_.out_size + tap.out + i)].push_back(
              plane * taps_.in_size + tap.in + i * taps_.step);
      }
    }
    return all;
  }

 private:
  // Exact at a point, anything elsewhere.
  Box index_box(const Box& in) const {
    const auto n = static_cast<std::size_t>(planes_ * taps_.out_size);
    const auto last = static_cast<double>(std::max<Index>(0, planes_ * taps_.in_size - 1));
    std::vector<double> lower(n, 0), upper(n, last);
    if (is_point(in)) {
      for_each_plane(1, [&](Index, Index plane) {
        const Index shift = plane * taps_.in_size;
        auto to = static_cast<std::size_t>(plane * taps_.out_size);
        for (const std::int32_t best : arg_maxima(in.lower.doubles().data() + shift)) {
          lower[to] = upper[to] = static_cast<double>(shift + in_order_asked(best));
          ++to;
        }
      });
    }
    return make_box(type_.shape, std::move(lower), std::move(upper));
  }

  template <class Body>
  void for_each_plane(Index count, Body&& body) const {
    if (planes_ == 0) return;
    for_each_sample(count * planes_, taps_.in_size,
                    [&](Index i) { body(i / planes_, i % planes_); });
  }

  // NaN counts as larger than everything, as in numpy.
  template <class T>
  static bool beats(T x, T best) {
    return x > best || x != x;
  }
  template <class T>
  static constexpr T lowest() {
    if constexpr (std::numeric_limits<T>::has_infinity) return -std::numeric_limits<T>::infinity();
    return std::numeric_limits<T>::min();
  }

  bool is_whole_plane() const {
    return taps_.out_size == 1 && static_cast<Index>(taps_.taps.size()) == taps_.in_size;
  }
  template <class T>
  static T max_of(const T* x, Index n) {
    T best = lowest<T>();
    for (Index i = 0; i < n; ++i) best = beats(x[i], best) ? x[i] : best;
    return best;
  }

  template <class T>
  void maxima(const T* x, T* y) const {
    std::fill_n(y, taps_.out_size, lowest<T>());
    for (const Tap& tap : taps_.taps) {
      T* to = y + tap.out;
      const T* from = x + tap.in;
      if (taps_.step == 1) {
        for (Index i = 0; i < tap.length; ++i) to[i] = beats(from[i], to[i]) ? from[i] : to[i];
      } else {
        for (Index i = 0; i < tap.length; ++i) {
          const T v = from[i * taps_.step];
          to[i] = beats(v, to[i]) ? v : to[i];
        }
      }
    }
  }

  // The first entry of each window that is largest (or NaN).
  template <class T>
  std::vector<std::int32_t> arg_maxima(const T* x) const {
    std::vector<std::int32_t> best(static_cast<std::size_t>(taps_.out_size), -1);
    for (const Tap& tap : taps_.taps) {
      for (std::int32_t i = 0; i < tap.length; ++i) {
        std::int32_t& at = best[static_cast<std::size_t>(tap.out + i)];
        const auto candidate = tap.in + i * static_cast<std::int32_t>(taps_.step);
        if (at < 0 || (x[at] == x[at] && beats(x[candidate], x[at]))) at = candidate;
      }
    }
    return best;
  }

  Index in_order_asked(Index position) const {
    if (indices_ == Indices::kRowMajor) return position;
    Index result = 0;
    for (std::size_t a = window_.rank(); a-- > 0;) {
      Index below = 1;
      for (std::size_t c = 0; c < a; ++c) below *= window_.input[c];
      result += position % window_.input[a] * below;
      position /= window_.input[a];
    }
    return result;
  }

  std::string name_;
  ValueType type_;
  Index planes_;
  Window window_;
  Taps taps_;
  Indices indices_;
};

Imported import_max_pool(const OnnxNode& node) {
  const Shape& in = node.input(0).shape;
  if (in.size() < 3) node.malformed("the input has no spatial axes");
  const bool ceil_mode = node.integer("ceil_mode", 0) != 0;
  const bool column_major = node.integer("storage_order", 0) != 0;
  Window window = read_window(node, std::span(in).subspan(2), {}, ceil_mode);
  for (const Index n : window_counts(window, false)) {
    if (n == 0) node.unsupported("a window that lies wholly in the padding");
  }
  ValueType type{node.input(0).type, {in[0], in[1]}};
  type.shape.insert(type.shape.end(), window.output.begin(), window.output.end());
  Indices indices = Indices::kNone;
  if (node.wants_output(1)) indices = column_major ? Indices::kColumnMajor : Indices::kRowMajor;
  return std::make_shared<MaxPool>(node.type(), std::move(type), in[0] * in[1], std::move(window),
                                   indices);
}

Imported import_global_max_pool(const OnnxNode& node) {
  const Shape& in = node.input(0).shape;
  if (in.size() < 2) node.malformed("the input has no channels");
  ValueType type{node.input(0).type, Shape(in.size(), 1)};
  std::copy_n(in.begin(), 2, type.shape.begin());
  Index plane = 1;
  for (std::size_t a = 2; a < in.size(); ++a) plane *= in[a];
  if (plane == 0) node.malformed("the maximum of nothing");
  Window window{{plane}, {1}, {1}, {0}, {0}, {plane}, {1}};
  return std::make_shared<MaxPool>(node.type(), std::move(type), in[0] * in[1], std::move(window),
                                   Indices::kNone);
}

// Distinct entries at least 0.05 apart, in random order.
Tensor spread(Rng& rng, const Shape& shape) {
  Tensor tensor = Tensor::zeros(ElementType::kFloat32, shape);
  const auto entries = tensor.doubles();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    entries[i] = 0.05 * static_cast<double>(i) - 0.025 * static_cast<double>(entries.size());
  }
  std::shuffle(entries.begin(), entries.end(), rng);
  return tensor;
}

std::vector<OpCase> max_pool_cases(Rng& rng) {
  using List = std::vector<Index>;
  const auto make = [&](const Shape& shape, List kernel, Attributes attributes = {}) {
    attributes["kernel_shape"] = std::move(kernel);
    return OpCase{.inputs = {{spread(rng, shape)}}, .attributes = std::move(attributes)};
  };
  std::vector<OpCase> cases{
      make({1, 2, 7}, {3}),
      make({2, 2, 5, 6}, {3, 2}, {{"strides", List{2, 1}}, {"pads", List{1, 0, 1, 1}}}),
      make({1, 2, 6, 6}, {3, 3}, {{"strides", List{2, 2}}, {"ceil_mode", Index{1}}}),
      make({1, 1, 5, 6}, {3, 3},
           {{"strides", List{2, 2}}, {"auto_pad", std::string("SAME_UPPER")}}),
      make({1, 1, 5, 5}, {2, 2}, {{"auto_pad", std::string("SAME_LOWER")}}),
      make({1, 1, 5, 5}, {2, 2}, {{"strides", List{2, 2}}, {"auto_pad", std::string("VALID")}}),
      make({1, 1, 4, 5, 6}, {2, 2, 2}, {{"dilations", List{1, 2, 2}}}),
      make({1, 3, 4, 4}, {4, 4}),
      make({0, 3, 4, 4}, {2, 2}),
      make({1, 2, 5, 4}, {2, 2}, {{"storage_order", Index{1}}})};
  cases.back().outputs = 2;
  cases.push_back(
      {.inputs = {{Tensor(ElementType::kUInt8, {1, 1, 4}, std::vector<Index>{3, 1, 2, 9})}},
       .attributes = {{"kernel_shape", List{2}}},
       .outputs = 2});
  return cases;
}

std::vector<OpCase> global_max_pool_cases(Rng& rng) {
  return {{.inputs = {{spread(rng, {1, 3, 5, 5})}}}, {.inputs = {{spread(rng, {2, 2, 3})}}}};
}

}  // namespace

std::vector<OpKind> op_max_pool() {
  return {{"MaxPool", import_max_pool, max_pool_cases},
          {"GlobalMaxPool", import_global_max_pool, global_max_pool_cases}};
}

}  // namespace lipscope
