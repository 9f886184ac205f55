// SPDX-License-Identifier: Apache-2.0
// Random ONNX models, node by node. Each value is known at one sample point, by the oracle: its
// type, its shape, what it is. A node that has no value there is never added.
#pragma once

#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tests/oracle/array.h"

namespace oracle {

// A layer that did not work out; what it added is taken back.
struct Rejected : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Value {
  std::string name;
  Array sample;
  const Dims& dims() const { return sample.dims; }
  Type type() const { return sample.type; }
};

using Attribute = std::variant<Index, float, std::string, Dims, std::vector<float>, Array>;
using Attributes = std::vector<std::pair<std::string, Attribute>>;

onnx::TensorProto make_tensor(const Array& array);

class Builder {
 public:
  Builder(std::uint64_t seed, int opset);

  Index pick(Index n) { return static_cast<Index>(rng_() % static_cast<std::uint64_t>(n)); }
  bool chance(int percent) { return pick(100) < percent; }
  template <class T>
  const T& one_of(const std::vector<T>& list) {
    return list[static_cast<std::size_t>(pick(static_cast<Index>(list.size())))];
  }
  double uniform(double low, double high);
  std::mt19937_64& rng() { return rng_; }
  int opset() const { return opset_; }

  Value input(const std::string& name, Type type, Dims dims);
  Value input(const std::string& name, Array sample);
  // Stored in the file, as an initializer or by a Constant node.
  Value constant(const Array& array);
  Value constant(Type type, Dims dims, const std::vector<double>& entries);
  Value scalar(Type type, double value) { return constant(type, {}, {value}); }
  Value integers(const std::vector<Index>& entries);
  Value random_constant(Type type, Dims dims, double low = -2, double high = 2);

  // Throws Rejected where it has no value at the sample point, or one that is no use.
  std::vector<Value> add_all(const std::string& op, const std::vector<Value>& inputs,
                             const Attributes& attributes, int outputs);
  Value add(const std::string& op, const std::vector<Value>& inputs,
            const Attributes& attributes = {}) {
    return add_all(op, inputs, attributes, 1)[0];
  }

  // What was added since is taken back.
  struct Mark {
    int nodes, initializers;
  };
  Mark mark() const { return {model_.graph().node_size(), model_.graph().initializer_size()}; }
  void take_back(const Mark& mark);

  // Without what does not reach the output.
  onnx::ModelProto finish(const Value& output) const;
  // Numbers stored in floating constants: where a graph may have its kinks.
  const std::vector<double>& landmarks() const { return landmarks_; }
  double near = 0;   // where inputs should lie to see it all, if not 0
  bool tame = true;  // of ordinary size, and nothing cancels: rounding errors stay small

 private:
  onnx::ModelProto model_;
  int opset_;
  std::mt19937_64 rng_;
  std::vector<double> landmarks_;
  int names_ = 0;
};

inline const Value kAbsent{};

}  // namespace oracle
