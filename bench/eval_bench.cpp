// SPDX-License-Identifier: Apache-2.0
// bench_eval [MODEL [EXPECTED]]: float32 evaluation of a model on a batch of 100 against its
// convolutions alone in oneDNN, on data that is already in oneDNN's preferred layout.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <vector>

#include "base/parallel.h"
#include "lipscope/error.h"
#include "lipscope/evaluate.h"
#include "lipscope/model.h"
#include "lipscope/samples.h"
#include "ops/windows/conv.h"

namespace lipscope {
namespace {

constexpr Index kBatch = 100;
constexpr int kRuns = 15;

double best_seconds(const std::function<void()>& body) {
  body();
  double best = HUGE_VAL;
  for (int run = 0; run < kRuns; ++run) {
    const auto start = std::chrono::steady_clock::now();
    body();
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

// Two-dimensional convolution without groups, as oneDNN likes it best.
class BareConvolution {
 public:
  explicit BareConvolution(const ConvShape& s) : stream_(engine()) {
    using dnnl::memory;
    const auto any = [](memory::dims dims) {
      return memory::desc(std::move(dims), memory::data_type::f32, memory::format_tag::any);
    };
    const auto axis = [&](const ConvShape::Spatial& v) { return memory::dims{v[1], v[2]}; };
    const memory::dims dilation{s.dilation[1] - 1, s.dilation[2] - 1};
    memory::dims pad_end;
    for (std::size_t a = 1; a < 3; ++a) {
      pad_end.push_back((s.output[a] - 1) * s.stride[a] + (s.kernel[a] - 1) * s.dilation[a] + 1 -
                        s.input[a] - s.pad[a]);
    }
    const dnnl::convolution_forward::desc desc(
        dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
        any({kBatch, s.in_channels, s.input[1], s.input[2]}),
        any({s.out_channels, s.in_channels, s.kernel[1], s.kernel[2]}), any({s.out_channels}),
        any({kBatch, s.out_channels, s.output[1], s.output[2]}), axis(s.stride), dilation,
        axis(s.pad), pad_end);
    const dnnl::convolution_forward::primitive_desc pd(desc, engine());
    primitive_ = dnnl::convolution_forward(pd);
    arguments_ = {{DNNL_ARG_SRC, memory(pd.src_desc(), engine())},
                  {DNNL_ARG_WEIGHTS, memory(pd.weights_desc(), engine())},
                  {DNNL_ARG_BIAS, memory(pd.bias_desc(), engine())},
                  {DNNL_ARG_DST, memory(pd.dst_desc(), engine())}};
    for (auto& [slot, data] : arguments_) {
      std::fill_n(static_cast<float*>(data.get_data_handle()),
                  data.get_desc().get_size() / sizeof(float), 0.5F);
    }
  }
  void run() {
    primitive_.execute(stream_, arguments_);
    stream_.wait();
  }

 private:
  static const dnnl::engine& engine() {
    static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
    return cpu;
  }
  dnnl::stream stream_;
  dnnl::primitive primitive_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

// The samples of the expected file, repeated to a full batch, and a check that float32 agrees with
// its outputs.
std::vector<Tensor> checked_batch(const OnnxModel& model, const Graph& graph,
                                  const std::string& expected) {
  const auto arrays = read_arrays(expected);
  const Samples samples = match_samples(model, arrays);
  const Tensor output =
      evaluate(graph, samples.for_graph(graph), samples.count, Precision::kFloat32)[0];
  for (const NamedTensor& array : arrays) {
    if (array.name != "output_0") continue;
    double scale = 1, error = 0;
    for (Index i = 0; i < output.size(); ++i) {
      scale = std::max(scale, std::abs(array.tensor.at(i)));
      error = std::max(error, std::abs(array.tensor.at(i) - output.at(i)));
    }
    fmt::print("answer: largest error {:.2g} of the largest output\n", error / scale);
    if (!(error <= 1e-4 * scale))
      throw Error(ErrorCode::kInternal, "wrong answer: the times do not count");
  }
  std::vector<Tensor> batch;
  for (const Tensor& input : samples.for_graph(graph)) {
    const Index sample = input.size() / samples.count;
    std::vector<double> entries(static_cast<std::size_t>(sample * kBatch));
    for (std::size_t i = 0; i < entries.size(); ++i)
      entries[i] = input.at(static_cast<Index>(i) % input.size());
    batch.push_back(Tensor(input.type(), {kBatch, sample}, std::move(entries))
                        .with_precision(Precision::kFloat32));
  }
  return batch;
}

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "models/fashion_cnn.onnx";
  const std::string stem = path.substr(0, path.rfind('.'));
  set_threads(0);
  const OnnxModel model = OnnxModel::read(path);
  const Graph graph = model.graph();
  const auto batch = checked_batch(model, graph, argc > 2 ? argv[2] : stem + ".expected.npz");
  std::vector<BareConvolution> bare;
  for (const Node& node : graph.nodes()) {
    if (const ConvForm* form = node.op->convolution();
        form && !form->transposed && form->shape.groups == 1) {
      bare.emplace_back(form->shape);
    }
  }
  const double whole =
      best_seconds([&] { (void)evaluate(graph, batch, kBatch, Precision::kFloat32); });
  const double alone = best_seconds([&] {
    for (BareConvolution& convolution : bare) convolution.run();
  });
  fmt::print(
      "{}: batch {}, evaluation {:.2f} ms, its {} convolutions in oneDNN {:.2f} ms, ratio {:.2f}\n",
      path, kBatch, 1e3 * whole, bare.size(), 1e3 * alone, whole / alone);
  return 0;
}

}  // namespace
}  // namespace lipscope

int main(int argc, char** argv) {
  try {
    return lipscope::main(argc, argv);
  } catch (const lipscope::Error& error) {
    fmt::print(stderr, "bench_eval: {}\n", error.what());
    return 1;
  }
}
