// SPDX-License-Identifier: Apache-2.0
// From arrays in files to the inputs of a model.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "lipscope/arrays.h"
#include "lipscope/model.h"

namespace lipscope {

// Arrays matched to the inputs of a model: one sample or several.
struct Samples {
  Index count = 1;
  GraphOptions options;                  // what the arrays say about shapes
  std::map<std::string, Tensor> inputs;  // by input name, `count` samples each

  // Why an array does not fit its input, by input name. It matters only if the graph uses the
  // input.
  std::map<std::string, std::string> misfits;

  // In the order of the graph's inputs; throws kShape for an input that is used and does not fit.
  [[nodiscard]] std::vector<Tensor> for_graph(const Graph& graph) const;
};

// An array belongs to an input by its name, as "input_0", "input_1", ... in the model's order, or
// by being the only one, or the one called "data" beside "labels". Entry counts have to be a
// multiple of one sample's; arrays are reshaped, never transposed. Integers are taken as numbers
// for a floating input; uint16 for bfloat16 are its bits. Throws kShape or kBadFile naming the
// input and what fits.
[[nodiscard]] Samples match_samples(const OnnxModel& model, std::span<const NamedTensor> arrays,
                                    double scale = 1);

}  // namespace lipscope
