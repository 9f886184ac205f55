// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "io/onnx/onnx_proto.h"
#include "lipscope/tensor.h"

namespace lipscope {

// The bytes of a tensor kept in a file beside the model. The file has to lie inside `folder`:
// absolute paths, "..", and links that lead out are refused (kBadFile).
[[nodiscard]] std::string read_external(const onnx::TensorProto& proto, const std::string& folder,
                                        Index bytes_wanted);

// The files that read_external would look at for the tensors of a model, each once.
[[nodiscard]] std::vector<std::string> external_files(const onnx::ModelProto& model,
                                                      const std::string& folder);

}  // namespace lipscope
