// SPDX-License-Identifier: Apache-2.0
#include "lipscope/samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/printable.h"
#include "io/arrays/entries.h"
#include "lipscope/error.h"

namespace lipscope {
namespace {

const Tensor& array_for_input(const OnnxModel& model, std::size_t k,
                              std::span<const NamedTensor> arrays) {
  const std::string& name = model.inputs()[k].name;
  const std::string numbered = fmt::format("input_{}", k);
  for (const std::string& key : {name, numbered}) {
    for (const NamedTensor& array : arrays) {
      if (array.name == key) return array.tensor;
    }
  }
  if (model.inputs().size() == 1) {
    // Records of pictures come with their labels.
    const auto data = std::ranges::find(arrays, "data", &NamedTensor::name);
    const bool has_labels = std::ranges::find(arrays, "labels", &NamedTensor::name) != arrays.end();
    if (arrays.size() == 1) return arrays[0].tensor;
    if (arrays.size() == 2 && data != arrays.end() && has_labels) return data->tensor;
  }
  std::vector<std::string> names;
  for (const NamedTensor& array : arrays) names.push_back(array.name);
  throw Error(
      ErrorCode::kBadFile,
      fmt::format("no array for input '{}' of {}: an .npz has to hold '{}' or '{}' (it holds: {})",
                  name, model.name(), numbered, name, listed(names)));
}

// Shape of one sample; symbolic dimensions after the first come from the array.
Shape sample_shape(const ModelInput& input, const Shape& given) {
  if (!input.has_shape) return given;
  Shape shape = input.dims;
  const std::size_t rank = shape.size();
  for (std::size_t i = 0; i < rank; ++i) {
    if (shape[i] >= 0) continue;
    if (i == 0) {
      shape[i] = 1;
    } else if (given.size() == rank || given.size() + 1 == rank) {
      shape[i] = given[i - (rank - given.size())];
    } else {
      throw Error(
          ErrorCode::kShape,
          fmt::format(
              "input '{}' has rank {} with symbolic dimensions; an array of shape {} does not say "
              "how large they are",
              input.name, rank, to_string(given)));
    }
  }
  return shape;
}

// 0 when the array does not hold whole samples.
Index count_samples(const ModelInput& input, const Shape& shape, const Tensor& array) {
  const Index size = element_count(shape);
  if (array.size() == size) return 1;
  const bool whole = size > 0 && array.size() % size == 0;
  return whole && (!input.has_shape || input.batched()) ? array.size() / size : 0;
}

std::string misfit(const ModelInput& input, const Shape& shape, const Tensor& array) {
  return fmt::format("input '{}' takes {} entries{} (shape {}); the array has {} (shape {})",
                     input.name, element_count(shape), input.batched() ? " per sample" : "",
                     to_string(shape), array.size(), to_string(array.shape()));
}

bool is_used(const Graph& graph, ValueId id) {
  const auto holds = [&](std::span<const ValueId> ids) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
  };
  return holds(graph.outputs()) ||
         std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [&](const Node& node) { return holds(node.inputs); });
}

Tensor converted(const ModelInput& input, const Tensor& array, double scale) {
  if (input.type == ElementType::kBFloat16 && array.type() == ElementType::kUInt16) {
    return decode_entries(encode_entries(array), input.type, array.shape(), std::endian::little);
  }
  if (!is_floating(input.type)) {
    if (is_floating(array.type())) {
      for (const double entry : array.doubles()) {
        if (entry != std::nearbyint(entry)) {
          throw Error(ErrorCode::kShape, fmt::format("input '{}' takes {}, the array holds {}",
                                                     input.name, to_string(input.type), entry));
        }
      }
    }
    return array.cast(input.type);
  }
  Tensor result = array.cast(input.type);
  if (scale != 1) {
    for (double& entry : result.doubles()) entry *= scale;
  }
  return result;
}

Tensor repeated(const Tensor& once, Index count) {
  Shape shape = once.shape();
  shape.insert(shape.begin(), count);
  Tensor all = Tensor::zeros(once.type(), std::move(shape));
  const auto copy = [&](auto from, auto to) {
    for (Index b = 0; b < count; ++b)
      std::copy(from.begin(), from.end(), to.begin() + b * once.size());
  };
  if (is_floating(once.type())) {
    copy(once.doubles(), all.doubles());
  } else {
    copy(once.ints(), all.ints());
  }
  return all;
}

}  // namespace

std::vector<Tensor> Samples::for_graph(const Graph& graph) const {
  std::vector<Tensor> result;
  for (const ValueId id : graph.inputs()) {
    const std::string& name = graph.value(id).name;
    if (const auto found = misfits.find(name); found != misfits.end() && is_used(graph, id)) {
      throw Error(ErrorCode::kShape, found->second);
    }
    result.push_back(inputs.at(name));
  }
  return result;
}

Samples match_samples(const OnnxModel& model, std::span<const NamedTensor> arrays, double scale) {
  Samples samples;
  std::map<std::string, Index> counts;
  for (std::size_t k = 0; k < model.inputs().size(); ++k) {
    const ModelInput& input = model.inputs()[k];
    const Tensor& array = array_for_input(model, k, arrays);
    const Shape shape = sample_shape(input, array.shape());
    const Index count = count_samples(input, shape, array);
    if (count == 0) {
      samples.options.shapes[input.name] = shape;
      samples.misfits[input.name] = misfit(input, shape, array);
      samples.inputs[input.name] = Tensor::zeros(input.type, shape);
      counts[input.name] = 1;
      continue;
    }
    counts[input.name] = count;
    samples.options.shapes[input.name] = shape;
    samples.inputs[input.name] = converted(input, array, scale);
    if (count == 1) samples.options.known[input.name] = samples.inputs[input.name].reshaped(shape);
    samples.count = std::max(samples.count, count);
  }
  for (auto& [name, tensor] : samples.inputs) {
    if (counts[name] == samples.count) continue;
    if (counts[name] != 1) {
      throw Error(ErrorCode::kShape, fmt::format("input '{}' has {} samples, another input has {}",
                                                 name, counts[name], samples.count));
    }
    tensor = repeated(tensor, samples.count);
  }
  return samples;
}

}  // namespace lipscope
