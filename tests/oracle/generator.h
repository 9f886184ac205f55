// SPDX-License-Identifier: Apache-2.0
// Random models: a few recipes one after another, or a worked example of some operator.
#pragma once

#include "tests/oracle/builder.h"

namespace oracle {

struct RandomGraph {
  onnx::ModelProto model;
  std::string wrt;  // the input that moves; empty: all
  bool tame = true;
  std::vector<double> landmarks;  // numbers stored in the graph
  double near = 0;                // where its inputs should lie, if not 0
};
// A seed means the same graph everywhere.
RandomGraph random_graph(std::uint64_t seed);

// One node a line, and the constants: for reports.
std::string describe(const onnx::ModelProto& model);

// A worked example of a random loadable operator, its inputs stored, computed or moving
// (case_recipes.cpp). The opset is the example's.
struct CaseChoice {
  std::size_t kind = 0, example = 0;
  int opset = 13;
};
CaseChoice choose_case(std::mt19937_64& rng);
Value case_layer(Builder& b, const CaseChoice& choice);

}  // namespace oracle
