// SPDX-License-Identifier: Apache-2.0
// Values of ONNX graphs in exact or enclosing arithmetic. Nothing of src/ but the protobuf classes.
//
//   oracle::Evaluator evaluator(model);
//   const auto outputs = evaluator.run({{"x", x}});
#pragma once

#include <array>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/oracle/array.h"

namespace oracle {

// One thread at a time. The model has to stay.
class Evaluator {
 public:
  explicit Evaluator(const onnx::ModelProto& model);

  using Values = std::map<std::string, Array>;
  // The outputs at given inputs. Starts with few bits; where a decision remains open it takes more,
  // and throws Undecided in the end.
  std::vector<Array> run(const Values& inputs);
  // The same with as many bits as the body asks for: called again with more when it throws
  // Undecided. Inside, outputs() is at the precision of the moment.
  void with_precision(const std::function<void()>& body);
  std::vector<Array> outputs(const Values& inputs);

 private:
  static constexpr std::size_t kLevels = 4;
  // What does not depend on inputs but for their shapes, by precision.
  const Values& constants(const Values& inputs);
  Values nodes(const Values& inputs, const Values* known);

  const onnx::ModelProto& model_;
  int opset_ = 0;
  std::vector<const onnx::NodeProto*> needed_;
  std::size_t level_ = 0;
  std::array<Values, kLevels> constants_;
  std::array<bool, kLevels> have_constants_ = {};
};

}  // namespace oracle
