// SPDX-License-Identifier: Apache-2.0
// The one file that knows oneDNN (2.x API).
#include "linalg/conv/convolution.h"

#ifdef LIPSCOPE_HAVE_DNNL

#include <omp.h>

#include <algorithm>
#include <compare>
#include <map>
#include <memory>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>

#include "base/checkpoint.h"
#include "base/parallel.h"

namespace lipscope {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;

// Images per call are chosen so that reordered copies of this many entries stay in cache.
constexpr Index kCachedEntries = Index{1} << 16;
constexpr std::size_t kCachedPrimitives = 128;

enum class Direction : std::uint8_t { kForward, kForwardBias, kAdjointInput };
struct Key {
  ConvShape shape;
  Direction direction;
  friend auto operator<=>(const Key&, const Key&) = default;
};

// oneDNN takes the threads of OpenMP, and plans for them when it compiles. While alive, it has the
// current thread alone.
class OneOpenMpThread {
 public:
  OneOpenMpThread() : threads_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneOpenMpThread() { omp_set_num_threads(threads_); }
  OneOpenMpThread(const OneOpenMpThread&) = delete;
  OneOpenMpThread& operator=(const OneOpenMpThread&) = delete;

 private:
  int threads_;
};

const dnnl::engine& cpu() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

// A copy between the row-major layout and the one oneDNN prefers; nothing when they agree.
std::optional<dnnl::reorder> reorder(const memory::desc& from, const memory::desc& to) {
  if (from == to) return std::nullopt;
  return dnnl::reorder(dnnl::reorder::primitive_desc(cpu(), from, cpu(), to));
}

// One of the three arrays: its row-major layout and the preferred one.
struct Side {
  memory::desc plain, preferred;
  std::optional<dnnl::reorder> copy;
};

// Compiled for one shape. Immutable, and safe to run from several threads because the scratchpad
// comes from the caller.
struct Compiled {
  dnnl::primitive primitive;
  Side image_in, weights, image_out;
  memory::desc bias, scratchpad;
  int in_slot, out_slot;
};

struct Descs {
  memory::dims x, w, y, bias, stride, dilation, pad_begin, pad_end;
  Tag image, weight;
};

Descs describe(const ConvShape& s) {
  const bool volume = s.input[0] != 1 || s.output[0] != 1 || s.kernel[0] != 1 || s.pad[0] != 0;
  Descs d;
  d.x = {s.batch, s.in_channels};
  d.y = {s.batch, s.out_channels};
  d.bias = {s.out_channels};
  if (s.groups > 1) d.w.push_back(s.groups);
  d.w.insert(d.w.end(), {s.out_channels / s.groups, s.in_channels / s.groups});
  for (std::size_t a = volume ? 0 : 1; a < 3; ++a) {
    d.x.push_back(s.input[a]);
    d.y.push_back(s.output[a]);
    d.w.push_back(s.kernel[a]);
    d.stride.push_back(s.stride[a]);
    d.dilation.push_back(s.dilation[a] - 1);
    d.pad_begin.push_back(s.pad[a]);
    d.pad_end.push_back((s.output[a] - 1) * s.stride[a] + (s.kernel[a] - 1) * s.dilation[a] + 1 -
                        s.input[a] - s.pad[a]);
  }
  d.image = volume ? Tag::ncdhw : Tag::nchw;
  d.weight =
      volume ? (s.groups > 1 ? Tag::goidhw : Tag::oidhw) : (s.groups > 1 ? Tag::goihw : Tag::oihw);
  return d;
}

memory::desc image_layout(const memory::dims& dims, Tag tag) {
  return {dims, memory::data_type::f32, tag};
}

std::shared_ptr<const Compiled> compile(const Key& key) {
  const Descs d = describe(key.shape);
  const auto any_x = image_layout(d.x, Tag::any), any_w = image_layout(d.w, Tag::any);
  const auto any_y = image_layout(d.y, Tag::any), bias = image_layout(d.bias, Tag::a);
  const auto plain_x = image_layout(d.x, d.image), plain_w = image_layout(d.w, d.weight);
  const auto plain_y = image_layout(d.y, d.image);
  constexpr auto kDirect = dnnl::algorithm::convolution_direct;
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);

  using Forward = dnnl::convolution_forward;
  const bool adjoint = key.direction == Direction::kAdjointInput;
  const auto kind =
      adjoint ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  const Forward::desc forward = key.direction == Direction::kForwardBias
                                    ? Forward::desc(kind, kDirect, any_x, any_w, bias, any_y,
                                                    d.stride, d.dilation, d.pad_begin, d.pad_end)
                                    : Forward::desc(kind, kDirect, any_x, any_w, any_y, d.stride,
                                                    d.dilation, d.pad_begin, d.pad_end);
  const Forward::primitive_desc pd(forward, attributes, cpu());
  auto result = std::make_shared<Compiled>();
  if (!adjoint) {
    result->primitive = Forward(pd);
    result->image_in = {plain_x, pd.src_desc(), reorder(plain_x, pd.src_desc())};
    result->weights = {plain_w, pd.weights_desc(), reorder(plain_w, pd.weights_desc())};
    result->image_out = {plain_y, pd.dst_desc(), reorder(pd.dst_desc(), plain_y)};
    result->bias = bias;
    result->scratchpad = pd.scratchpad_desc();
    result->in_slot = DNNL_ARG_SRC;
    result->out_slot = DNNL_ARG_DST;
    return result;
  }
  using Backward = dnnl::convolution_backward_data;
  const Backward::desc backward(kDirect, any_x, any_w, any_y, d.stride, d.dilation, d.pad_begin,
                                d.pad_end);
  const Backward::primitive_desc back(backward, attributes, cpu(), pd);
  result->primitive = Backward(back);
  result->image_in = {plain_y, back.diff_dst_desc(), reorder(plain_y, back.diff_dst_desc())};
  result->weights = {plain_w, back.weights_desc(), reorder(plain_w, back.weights_desc())};
  result->image_out = {plain_x, back.diff_src_desc(), reorder(back.diff_src_desc(), plain_x)};
  result->scratchpad = back.scratchpad_desc();
  result->in_slot = DNNL_ARG_DIFF_DST;
  result->out_slot = DNNL_ARG_DIFF_SRC;
  return result;
}

// Null when oneDNN has nothing for the shape.
std::shared_ptr<const Compiled> compiled(const Key& key) {
  static std::mutex mutex;
  static std::map<Key, std::shared_ptr<const Compiled>> cache;
  const std::lock_guard lock(mutex);
  if (const auto found = cache.find(key); found != cache.end()) return found->second;
  if (cache.size() >= kCachedPrimitives) cache.clear();
  std::shared_ptr<const Compiled> made;
  try {
    made = compile(key);
  } catch (const dnnl::error&) {
  }
  cache.emplace(key, made);
  return made;
}

// oneDNN takes no pointers to const, but does not write its inputs.
memory borrow(const memory::desc& desc, const float* data) {
  return {desc, cpu(), const_cast<float*>(data)};
}

// Weights and bias as the primitive wants them; shared by all images.
struct Weights {
  memory weights, bias;
  Weights(const Compiled& c, const float* w, const float* b) : weights(borrow(c.weights.plain, w)) {
    if (b != nullptr) bias = borrow(c.bias, b);
    if (!c.weights.copy) return;
    memory preferred(c.weights.preferred, cpu());
    dnnl::stream stream(cpu());
    c.weights.copy->execute(stream, weights, preferred);
    stream.wait();
    weights = preferred;
  }
};

// The memory one thread needs.
class Runner {
 public:
  Runner(const Compiled& c, const Weights& w)
      : c_(c),
        w_(w),
        stream_(cpu()),
        in_(c.image_in.copy ? memory(c.image_in.preferred, cpu()) : memory()),
        out_(c.image_out.copy ? memory(c.image_out.preferred, cpu()) : memory()),
        scratchpad_(c.scratchpad, cpu()) {}

  void run(const float* in, float* out) {
    memory from = borrow(c_.image_in.plain, in), to = borrow(c_.image_out.plain, out);
    if (c_.image_in.copy) c_.image_in.copy->execute(stream_, from, in_);
    c_.primitive.execute(stream_, {{c_.in_slot, c_.image_in.copy ? in_ : from},
                                   {DNNL_ARG_WEIGHTS, w_.weights},
                                   {DNNL_ARG_BIAS, w_.bias},
                                   {DNNL_ARG_SCRATCHPAD, scratchpad_},
                                   {c_.out_slot, c_.image_out.copy ? out_ : to}});
    if (c_.image_out.copy) c_.image_out.copy->execute(stream_, out_, to);
    stream_.wait();
  }

 private:
  const Compiled& c_;
  const Weights& w_;
  dnnl::stream stream_;
  memory in_, out_, scratchpad_;
};

struct Work {
  const float *in, *weights, *bias;
  float* out;
  Index in_step, out_step;  // entries per image
};

// A batch is cut into pieces of images, each run on one thread.
bool run_dnnl(ConvShape shape, Direction direction, const Work& work) {
  const OneOpenMpThread alone;
  const Index batch = shape.batch;
  checkpoint(kBlasOperation * static_cast<double>(shape.y_size()) *
             static_cast<double>(shape.w_size() / std::max<Index>(1, shape.out_channels)));
  if (shape.x_size() == 0 || shape.y_size() == 0 || shape.w_size() == 0) return false;
  if (std::max({shape.x_size(), shape.y_size(), shape.w_size()}) > INT32_MAX) return false;
  if (batch == 1) {
    const auto c = compiled({shape, direction});
    if (!c) return false;
    const Weights weights(*c, work.weights, work.bias);
    Runner(*c, weights).run(work.in, work.out);
    return true;
  }
  const Index step =
      std::clamp<Index>(kCachedEntries / (work.in_step + work.out_step), 1, (batch + 1) / 2);
  const Index pieces = batch / step, rest = batch % step;
  shape.batch = step;
  const auto whole = compiled({shape, direction});
  shape.batch = rest;
  const auto last = rest != 0 ? compiled({shape, direction}) : whole;
  if (!whole || !last) return false;
  const Weights weights(*whole, work.weights, work.bias);
  parallel_for(pieces, 1, [&](Index begin, Index end) {
    const OneOpenMpThread inner;
    Runner runner(*whole, weights);
    for (Index i = begin * step; i < end * step; i += step) {
      runner.run(work.in + i * work.in_step, work.out + i * work.out_step);
    }
  });
  if (rest == 0) return true;
  const Weights last_weights(*last, work.weights, work.bias);
  const Index i = pieces * step;
  Runner(*last, last_weights).run(work.in + i * work.in_step, work.out + i * work.out_step);
  return true;
}

}  // namespace

bool conv_forward_dnnl(const ConvShape& shape, const float* x, const float* w, const float* bias,
                       float* y) {
  const Index images = std::max<Index>(shape.batch, 1);
  return run_dnnl(shape, bias != nullptr ? Direction::kForwardBias : Direction::kForward,
                  {x, w, bias, y, shape.x_size() / images, shape.y_size() / images});
}

bool conv_adjoint_input_dnnl(const ConvShape& shape, const float* y, const float* w, float* x) {
  const Index images = std::max<Index>(shape.batch, 1);
  return run_dnnl(shape, Direction::kAdjointInput,
                  {y, w, nullptr, x, shape.y_size() / images, shape.x_size() / images});
}

}  // namespace lipscope

#else

namespace lipscope {

bool conv_forward_dnnl(const ConvShape&, const float*, const float*, const float*, float*) {
  return false;
}
bool conv_adjoint_input_dnnl(const ConvShape&, const float*, const float*, float*) { return false; }

}  // namespace lipscope

#endif
