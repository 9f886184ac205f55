// SPDX-License-Identifier: Apache-2.0
#include "ops/index/index_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <type_traits>

#include "base/interval.h"
#include "graph/room.h"
#include "lipscope/error.h"

namespace lipscope {
namespace {

std::int32_t narrow(Index i) { return static_cast<std::int32_t>(i); }

void require_narrow(Index cols) {
  if (cols > INT32_MAX) {
    throw Error(ErrorCode::kUnsupported, "an index list over more than 2^31 entries");
  }
}

// In eight interleaved parts: vectorisable, and more accurate than one running sum.
template <class T>
T sum(const T* x, Index n) {
  std::array<T, 8> part{};
  Index i = 0;
  for (; i + 8 <= n; i += 8) {
    for (std::size_t k = 0; k < 8; ++k) part[k] += x[i + static_cast<Index>(k)];
  }
  T total =
      ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
  for (; i < n; ++i) total += x[i];
  return total;
}

// One output that averages a whole plane.
bool is_whole_plane(const IndexMap::Average& form) {
  return form.taps.out_size == 1 && static_cast<Index>(form.taps.taps.size()) == form.taps.in_size;
}

template <class T>
void apply_average(const IndexMap::Average& form, const T* x, T* y) {
  const Taps& taps = form.taps;
  if (is_whole_plane(form)) {
    y[0] = sum(x, taps.in_size) * static_cast<T>(form.weights[0]);
    return;
  }
  std::fill_n(y, taps.out_size, T{});
  for (const Tap& tap : taps.taps) {
    T* to = y + tap.out;
    const T* from = x + tap.in;
    if (taps.step == 1) {
      for (Index i = 0; i < tap.length; ++i) to[i] += from[i];
    } else {
      for (Index i = 0; i < tap.length; ++i) to[i] += from[i * taps.step];
    }
  }
  for (Index i = 0; i < taps.out_size; ++i) {
    y[i] *= static_cast<T>(form.weights[static_cast<std::size_t>(i)]);
  }
}

template <class T>
void apply_weighted(const IndexMap::Weighted& form, Index inner, bool with_constant, const T* x,
                    T* y) {
  const bool constants = with_constant && !form.constants.empty();
  for (std::size_t i = 0; i + 1 < form.begin.size(); ++i) {
    const T start = constants ? static_cast<T>(form.constants[i]) : T{};
    const auto end = static_cast<std::size_t>(form.begin[i + 1]);
    auto j = static_cast<std::size_t>(form.begin[i]);
    T* to = y + static_cast<Index>(i) * inner;
    if (inner == 1) {
      T total = start;
      for (; j < end; ++j) total += static_cast<T>(form.weights[j]) * x[form.sources[j]];
      *to = total;
      continue;
    }
    std::fill_n(to, inner, start);
    for (; j < end; ++j) {
      const T weight = static_cast<T>(form.weights[j]);
      const T* from = x + form.sources[j] * inner;
      for (Index k = 0; k < inner; ++k) to[k] += weight * from[k];
    }
  }
}

template <class T>
void apply_gather(const IndexMap::Gather& form, Index inner, T fill, const T* x, T* y) {
  const auto n = static_cast<Index>(form.sources.size());
  const std::int32_t* source = form.sources.data();
  if (inner == 1) {
    for (Index i = 0; i < n; ++i) y[i] = source[i] < 0 ? fill : x[source[i]];
    return;
  }
  for (Index i = 0; i < n; ++i) {
    if (source[i] < 0) {
      std::fill_n(y + i * inner, inner, fill);
    } else {
      std::copy_n(x + source[i] * inner, inner, y + i * inner);
    }
  }
}

}  // namespace

IndexMap IndexMap::identity(Index size) {
  IndexMap map;
  map.rows_ = map.cols_ = size;
  return map;
}

IndexMap IndexMap::constant(Index rows, Index cols, Fill fill) {
  IndexMap map;
  map.rows_ = rows;
  map.cols_ = cols;
  map.fill_ = fill;
  map.form_ = Constant{};
  return map;
}

IndexMap IndexMap::strided(Index cols, const Shape& dims, const std::vector<Index>& strides,
                           Index offset) {
  Strided form{{}, {}, offset};
  for (std::size_t a = 0; a < dims.size(); ++a) {
    if (dims[a] == 1) continue;
    if (!form.dims.empty() && form.strides.back() == strides[a] * dims[a]) {
      form.dims.back() *= dims[a];
      form.strides.back() = strides[a];
    } else {
      form.dims.push_back(dims[a]);
      form.strides.push_back(strides[a]);
    }
  }
  if (form.dims.empty()) {
    form.dims.push_back(1);
    form.strides.push_back(1);
  }
  const Index rows = element_count(dims);
  if (rows == cols && (rows == 0 || (form.dims.size() == 1 && form.strides[0] == 1))) {
    return identity(rows);
  }
  IndexMap map;
  map.rows_ = rows;
  map.cols_ = cols;
  map.form_ = std::move(form);
  return map;
}

IndexMap IndexMap::gather(Index cols, std::span<const Index> sources, Blocks blocks, Fill fill) {
  require_narrow(cols);
  Gather form;
  form.sources.reserve(sources.size());
  for (const Index s : sources) {
    LIPSCOPE_CHECK(s >= -1 && s < cols);
    form.sources.push_back(narrow(s));
  }
  IndexMap map;
  map.blocks_ = blocks;
  map.rows_ = static_cast<Index>(sources.size());
  map.cols_ = cols;
  map.fill_ = fill;
  map.form_ = std::move(form);
  return map;
}

IndexMap IndexMap::weighted(Index cols, Weighted rows, Blocks blocks) {
  require_narrow(cols);
  IndexMap map;
  map.blocks_ = blocks;
  map.rows_ = static_cast<Index>(rows.begin.size()) - 1;
  map.cols_ = cols;
  map.form_ = std::move(rows);
  return map;
}

IndexMap IndexMap::average(Taps taps, std::vector<double> weights, Index outer) {
  IndexMap map;
  map.blocks_ = {outer, 1};
  map.rows_ = taps.out_size;
  map.cols_ = taps.in_size;
  map.form_ = Average{std::move(taps), std::move(weights)};
  return map;
}

double IndexMap::constant_at(Index row) const {
  const auto i = static_cast<std::size_t>(row);
  if (std::holds_alternative<Constant>(form_)) return fill_.real;
  if (const auto* list = std::get_if<Gather>(&form_)) return list->sources[i] < 0 ? fill_.real : 0;
  if (const auto* csr = std::get_if<Weighted>(&form_)) {
    return csr->constants.empty() ? 0 : csr->constants[i];
  }
  return 0;
}

template <class T>
void IndexMap::apply(const T* x, T* y, bool with_constant) const {
  T fill{};
  if (with_constant) {
    if constexpr (std::is_same_v<T, Index>) {
      fill = fill_.integer;
    } else {
      fill = static_cast<T>(fill_.real);
    }
  }
  const Index n = rows_ * blocks_.inner;
  if (is_identity()) {
    std::copy_n(x, n, y);
  } else if (std::holds_alternative<Constant>(form_)) {
    std::fill_n(y, n, fill);
  } else if (const auto* strided_form = std::get_if<Strided>(&form_)) {
    for_each_run(*strided_form, [&](Index row, Index source, Index length, Index step) {
      T* to = y + row;
      const T* from = x + source;
      if (step == 1) {
        std::copy_n(from, length, to);
      } else {
        for (Index i = 0; i < length; ++i) to[i] = from[i * step];
      }
    });
  } else if (const auto* list = std::get_if<Gather>(&form_)) {
    apply_gather(*list, blocks_.inner, fill, x, y);
  } else if constexpr (std::is_same_v<T, Index>) {
    LIPSCOPE_CHECK(!has_weights());
  } else if (const auto* csr = std::get_if<Weighted>(&form_)) {
    apply_weighted(*csr, blocks_.inner, with_constant, x, y);
  } else {
    apply_average(std::get<Average>(form_), x, y);
  }
}
template void IndexMap::apply(const double*, double*, bool) const;
template void IndexMap::apply(const float*, float*, bool) const;
template void IndexMap::apply(const Index*, Index*, bool) const;

void IndexMap::add_adjoint(const double* y, double* x) const {
  const Index inner = blocks_.inner;
  if (is_identity()) {
    for (Index i = 0; i < rows_; ++i) x[i] += y[i];
    return;
  }
  for_each_term([&](Index row, Index col, double weight) {
    const double* from = y + row * inner;
    double* to = x + col * inner;
    for (Index k = 0; k < inner; ++k) to[k] += weight * from[k];
  });
}

template <class T>
void IndexMap::place(const T* y, T* x) const {
  if (is_identity()) {
    std::copy_n(y, rows_, x);
    return;
  }
  for_each_run(std::get<Strided>(form_), [&](Index row, Index source, Index length, Index step) {
    const T* from = y + row;
    T* to = x + source;
    if (step == 1) {
      std::copy_n(from, length, to);
    } else {
      for (Index i = 0; i < length; ++i) to[i * step] = from[i];
    }
  });
}
template void IndexMap::place(const double*, double*) const;
template void IndexMap::place(const float*, float*) const;
template void IndexMap::place(const Index*, Index*) const;

std::vector<ValueType> IndexMapOp::infer(std::span<const ValueType>) const {
  std::vector<ValueType> types;
  for (const Output& output : outputs_) types.push_back(output.type);
  return types;
}

namespace {

// All blocks of all samples: y = map x.
template <class T>
void apply_all(const IndexMap& map, const ConstView& x, const MutView& y, Index count,
               bool with_constant) {
  const Index outer = map.blocks().outer, inner = map.blocks().inner;
  const Index rows = map.block_rows() * inner, cols = map.block_cols() * inner;
  for_each_sample(count * outer, rows, [&](Index i) {
    const Index b = i / outer, o = i % outer;
    map.apply(x.sample<T>(b) + o * cols, y.sample<T>(b) + o * rows, with_constant);
  });
}

// A constant output whose storage is not the input's.
void fill_constant(const IndexMap& map, const MutView& y, Index count) {
  for_storage(y.storage, [&](auto zero) {
    using T = decltype(zero);
    const T value = std::is_same_v<T, Index> ? static_cast<T>(map.fill().integer)
                                             : static_cast<T>(map.fill().real);
    for (Index b = 0; b < count; ++b) std::fill_n(y.sample<T>(b), y.size, value);
  });
}

}  // namespace

void IndexMapOp::eval(const EvalArgs& args) const {
  for (std::size_t k = 0; k < outputs_.size(); ++k) {
    if (args.out[k].storage != args.in[0].storage) {
      fill_constant(outputs_[k].map, args.out[k], args.count);
      continue;
    }
    for_storage(args.in[0].storage, [&](auto zero) {
      apply_all<decltype(zero)>(outputs_[k].map, args.in[0], args.out[k], args.count, true);
    });
  }
}

void IndexMapOp::jvp(const JvpArgs& args) const {
  for (std::size_t k = 0; k < outputs_.size(); ++k) {
    if (!args.tangent_out[k]) continue;
    if (!args.tangent_in[0]) {
      fill_zero(args.tangent_out[k], args.count);
    } else {
      apply_all<double>(outputs_[k].map, args.tangent_in[0], args.tangent_out[k], args.count,
                        false);
    }
  }
}

bool IndexMapOp::push_wide(std::span<const WideTensor* const> in, std::span<WideTensor> out) const {
  const WideTensor& x = *in[0];
  for (std::size_t k = 0; k < outputs_.size(); ++k) {
    const IndexMap& map = outputs_[k].map;
    WideTensor& y = out[k];
    y.resize(static_cast<std::size_t>(map.rows()), x.moves());
    for (std::size_t i = 0; i < y.value.size(); ++i) {
      const Index row = static_cast<Index>(i) / map.blocks().inner % map.block_rows();
      y.value[i] = Wide(map.constant_at(row));
    }
    map.for_each_entry([&](Index row, Index col, const Interval& weight) {
      const auto i = static_cast<std::size_t>(row), j = static_cast<std::size_t>(col);
      const auto weighted = [&](const Wide& e) {
        if (map.is_average())
          return over(e, static_cast<std::uint64_t>(std::llround(1 / weight.lo)));
        return weight == point(1) ? e : Wide::around(weight) * e;
      };
      y.value[i] += weighted(x.value[j]);
      if (x.moves()) y.tangent[i] += weighted(x.tangent[j]);
    });
  }
  return true;
}

bool IndexMapOp::push_exact(std::span<const ExactTensor* const> in,
                            std::span<ExactTensor> out) const {
  for (std::size_t k = 0; k < outputs_.size(); ++k) {
    const IndexMap& map = outputs_[k].map;
    if (map.has_weights() && !map.is_average()) return false;
    ExactTensor& y = out[k];
    y.resize(static_cast<std::size_t>(map.rows()));
    for (std::size_t i = 0; i < y.size(); ++i) {
      const Index row = static_cast<Index>(i) / map.blocks().inner % map.block_rows();
      y[i] = RationalInterval(map.constant_at(row));
    }
    map.for_each_entry([&](Index row, Index col, const Interval& weight) {
      const RationalInterval& x = (*in[0])[static_cast<std::size_t>(col)];
      RationalInterval& sum = y[static_cast<std::size_t>(row)];
      sum = sum + (map.is_average() ? x / RationalInterval(std::round(1 / midpoint(weight))) : x);
    });
  }
  return true;
}

void IndexMapOp::vjp(const VjpArgs& args) const {
  if (!args.grad_in[0]) return;
  fill_zero(args.grad_in[0], args.count);
  for (std::size_t k = 0; k < outputs_.size(); ++k) {
    if (!args.grad_out[k]) continue;
    const IndexMap& map = outputs_[k].map;
    const Index outer = map.blocks().outer, inner = map.blocks().inner;
    const Index rows = map.block_rows() * inner, cols = map.block_cols() * inner;
    for_each_sample(args.count * outer, rows, [&](Index i) {
      const Index b = i / outer, o = i % outer;
      map.add_adjoint(args.grad_out[k].sample<double>(b) + o * rows,
                      args.grad_in[0].sample<double>(b) + o * cols);
    });
  }
}

Imported index_map_op(const OnnxNode& node, Shape shape, IndexMap map) {
  const ValueType& in = node.input(0);
  LIPSCOPE_CHECK(map.rows() == element_count(shape) && map.cols() == element_count(in.shape));
  if (map.has_weights() && !is_floating(in.type)) {
    node.unsupported("element type " + std::string(to_string(in.type)));
  }
  std::vector<IndexMapOp::Output> outputs;
  outputs.push_back({{in.type, std::move(shape)}, std::move(map)});
  return std::make_shared<IndexMapOp>(node.type(), std::move(outputs));
}

Imported reshape_op(const OnnxNode& node, Shape shape) {
  const Index size = element_count(node.input(0).shape);
  if (element_count(shape) != size) {
    node.malformed(fmt::format("{} entries do not fit shape {}", size, to_string(shape)));
  }
  return index_map_op(node, std::move(shape), IndexMap::identity(size));
}

std::vector<Index> row_major_strides(const Shape& shape) {
  std::vector<Index> strides(shape.size(), 1);
  for (std::size_t a = shape.size(); a-- > 1;) strides[a - 1] = strides[a] * shape[a];
  return strides;
}

Index dims_product(const Shape& shape, Index begin, Index end) {
  Index product = 1;
  for (Index a = begin; a < end; ++a) product *= shape[static_cast<std::size_t>(a)];
  return product;
}

void check_output_size(const OnnxNode& node, const Shape& shape) {
  constexpr Index kMostEntries = Index{1} << 30;
  require_room(shape);
  if (element_count(shape) > kMostEntries) {
    node.unsupported("an output of shape " + to_string(shape));
  }
}

}  // namespace lipscope
