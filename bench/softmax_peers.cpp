// SPDX-License-Identifier: Apache-2.0
// Compiled for this very processor: Eigen and SLEEF are only then as fast as they can be.
#include "softmax_peers.h"

#ifdef LIPSCOPE_BENCH_EIGEN
#include <Eigen/Core>
#endif
#ifdef LIPSCOPE_BENCH_SLEEF
#include <immintrin.h>
#include <sleef.h>
#endif
#ifdef LIPSCOPE_BENCH_XNNPACK
#include <xnnpack.h>
#endif
#ifdef LIPSCOPE_BENCH_DNNL
#include <oneapi/dnnl/dnnl.hpp>
#endif

#include <algorithm>
#include <cmath>
#include <memory>

namespace {

using std::size_t;

// Runs f on each row.
template <class F>
SoftmaxPeer by_rows(std::string name, F f) {
  return {std::move(name), [f](const float* x, float* y, size_t rows, size_t length) {
            return std::function<void()>([=] {
              for (size_t r = 0; r < rows; ++r) f(x + r * length, y + r * length, length);
            });
          }};
}

#ifdef LIPSCOPE_BENCH_EIGEN
void eigen_row(const float* x, float* y, size_t n) {
  const auto size = static_cast<Eigen::Index>(n);
  const Eigen::Map<const Eigen::ArrayXf> in(x, size);
  Eigen::Map<Eigen::ArrayXf> out(y, size);
  out = (in - in.maxCoeff()).exp();
  out *= 1 / out.sum();
}
#endif

#if defined(LIPSCOPE_BENCH_SLEEF) && defined(__AVX2__)
#define LIPSCOPE_BENCH_SLEEF_ROW
#ifdef __AVX512F__
struct Simd {
  using V = __m512;
  static constexpr size_t kLanes = 16;
  static V load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, V v) { _mm512_storeu_ps(p, v); }
  static V set(float v) { return _mm512_set1_ps(v); }
  static V add(V a, V b) { return _mm512_add_ps(a, b); }
  static V sub(V a, V b) { return _mm512_sub_ps(a, b); }
  static V mul(V a, V b) { return _mm512_mul_ps(a, b); }
  static V max(V a, V b) { return _mm512_max_ps(a, b); }
  static V exp10(V a) { return Sleef_expf16_u10avx512f(a); }
};
#else
struct Simd {
  using V = __m256;
  static constexpr size_t kLanes = 8;
  static V load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, V v) { _mm256_storeu_ps(p, v); }
  static V set(float v) { return _mm256_set1_ps(v); }
  static V add(V a, V b) { return _mm256_add_ps(a, b); }
  static V sub(V a, V b) { return _mm256_sub_ps(a, b); }
  static V mul(V a, V b) { return _mm256_mul_ps(a, b); }
  static V max(V a, V b) { return _mm256_max_ps(a, b); }
  static V exp10(V a) { return Sleef_expf8_u10avx2(a); }
};
#endif
// Lengths are multiples of four packs here. The calls of SLEEF's function cannot be inlined.
void sleef_row(const float* x, float* y, size_t n) {
  using S = Simd;
  constexpr size_t kStep = 4 * S::kLanes;
  S::V m[4], s[4];
  for (size_t j = 0; j < 4; ++j) m[j] = S::set(-HUGE_VALF), s[j] = S::set(0);
  for (size_t i = 0; i < n; i += kStep) {
    for (size_t j = 0; j < 4; ++j) m[j] = S::max(m[j], S::load(x + i + j * S::kLanes));
  }
  float lanes[S::kLanes];
  S::store(lanes, S::max(S::max(m[0], m[1]), S::max(m[2], m[3])));
  const S::V top = S::set(*std::max_element(lanes, lanes + S::kLanes));
  for (size_t i = 0; i < n; i += kStep) {
    for (size_t j = 0; j < 4; ++j) {
      const S::V e = S::exp10(S::sub(S::load(x + i + j * S::kLanes), top));
      S::store(y + i + j * S::kLanes, e);
      s[j] = S::add(s[j], e);
    }
  }
  S::store(lanes, S::add(S::add(s[0], s[1]), S::add(s[2], s[3])));
  float sum = 0;
  for (const float lane : lanes) sum += lane;
  const S::V inverse = S::set(1 / sum);
  for (size_t i = 0; i < n; i += S::kLanes) S::store(y + i, S::mul(S::load(y + i), inverse));
}
#endif

#ifdef LIPSCOPE_BENCH_XNNPACK
std::function<void()> xnnpack_run(const float* x, float* y, size_t rows, size_t length) {
  static const bool ready = xnn_initialize(nullptr) == xnn_status_success;
  xnn_operator_t op = nullptr;
  if (!ready || xnn_create_softmax_nc_f32(length, length, length, 0, &op) != xnn_status_success ||
      xnn_setup_softmax_nc_f32(op, rows, x, y, nullptr) != xnn_status_success) {
    return {};
  }
  const std::shared_ptr<xnn_operator> owner(op, xnn_delete_operator);
  return [owner] { xnn_run_operator(owner.get(), nullptr); };
}
#endif

#ifdef LIPSCOPE_BENCH_DNNL
std::function<void()> dnnl_run(const float* x, float* y, size_t rows, size_t length) {
  using namespace dnnl;
  static engine cpu(engine::kind::cpu, 0);
  static stream order(cpu);
  const memory::desc shape({static_cast<memory::dim>(rows), static_cast<memory::dim>(length)},
                           memory::data_type::f32, memory::format_tag::ab);
  const softmax_forward::primitive_desc plan({prop_kind::forward_inference, shape, 1}, cpu);
  const softmax_forward run(plan);
  const memory in(shape, cpu, const_cast<float*>(x)), out(shape, cpu, y);
  return [=] {
    run.execute(order, {{DNNL_ARG_SRC, in}, {DNNL_ARG_DST, out}});
    order.wait();
  };
}
#endif

}  // namespace

std::vector<SoftmaxPeer> softmax_peers() {
  std::vector<SoftmaxPeer> peers;
#ifdef LIPSCOPE_BENCH_DNNL
  peers.push_back({"oneDNN", dnnl_run});
#endif
#ifdef LIPSCOPE_BENCH_SLEEF_ROW
  peers.push_back(by_rows("SLEEF", sleef_row));
#endif
#ifdef LIPSCOPE_BENCH_XNNPACK
  peers.push_back({"XNNPACK", xnnpack_run});
#endif
#ifdef LIPSCOPE_BENCH_EIGEN
  peers.push_back(by_rows("Eigen", eigen_row));
#endif
  return peers;
}
