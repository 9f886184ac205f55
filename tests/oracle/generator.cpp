// SPDX-License-Identifier: Apache-2.0
#include "tests/oracle/generator.h"

#include "tests/oracle/recipes.h"

namespace oracle {
namespace {

using T = onnx::TensorProto;
using Recipe = Value (*)(Builder&, const Value&);

struct Weighted {
  int weight;
  Recipe recipe;
};
const std::vector<Weighted> kLayers = {
    {20, scaled_by_constant}, {2, tiny_clip}, {10, chosen_by_constant}, {28, plain_layer},
    {10, shape_layer},        {9, resized},   {5, cast_layer},          {16, pattern}};

Value layer(Builder& b, const Value& x) {
  constexpr int kAttempts = 8;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Index at = b.pick(100);
    for (const auto& [weight, recipe] : kLayers) {
      at -= weight;
      if (at >= 0) continue;
      const Builder::Mark mark = b.mark();
      try {
        return recipe(b, x);
      } catch (const Rejected&) {
        b.take_back(mark);
      } catch (const Undecided&) {
        b.take_back(mark);
      } catch (const Undefined&) {
        b.take_back(mark);
      }
      break;
    }
  }
  return x;
}

Value add_layers(Builder& b, Value x, Index depth) {
  for (Index i = 0; i < depth; ++i) x = layer(b, x);
  return x;
}

RandomGraph finished(Builder& b, const Value& y, const std::string& wrt) {
  const Value last = b.add("Identity", {y});
  return {b.finish(last), wrt, b.tame, b.landmarks(), b.near};
}

RandomGraph layered(std::uint64_t seed) {
  std::mt19937_64 rng(seed);
  static const std::vector<int> kOpsets = {7, 9, 10, 11, 12, 13, 13, 15, 17, 17, 18, 21, 21, 21};
  Builder b(rng(), kOpsets[rng() % kOpsets.size()]);
  const Type type = b.one_of<Type>({T::DOUBLE, T::DOUBLE, T::DOUBLE, T::FLOAT, T::FLOAT});
  const Dims dims = b.one_of<Dims>({{1, 1},
                                    {1, 3},
                                    {1, 2},
                                    {3},
                                    {1},
                                    {2, 2},
                                    {1, 4},
                                    {1, 1, 4},
                                    {1, 2, 2, 2},
                                    {1, 1, 3, 3},
                                    {2, 3},
                                    {1, 2, 3}});
  const bool whole = b.chance(8);
  const Value x =
      whole ? cast_at_once(
                  b, b.input("x", b.one_of<Type>({T::UINT8, T::INT32, T::INT64, T::INT8}), dims),
                  type)
            : b.input("x", type, dims);
  std::string wrt;
  Value y = x;
  if (b.chance(18)) {
    const Type other = b.one_of<Type>({type, type, T::INT64, T::INT32, T::BOOL, T::FLOAT});
    const Value second = b.input("m", other, b.chance(50) ? Dims{1} : x.dims());
    if (b.chance(is_floating(other) ? 60 : 80)) wrt = "x";
    y = two_inputs(b, x, second);
  }
  y = add_layers(b, y, 1 + b.pick(3));
  return finished(b, y, wrt);
}

RandomGraph from_case(std::uint64_t seed) {
  std::mt19937_64 rng(seed);
  const CaseChoice choice = choose_case(rng);
  Builder b(rng(), choice.opset);
  Value y = case_layer(b, choice);
  if (b.chance(30)) y = layer(b, y);
  return finished(b, y, b.chance(25) ? "x" : "");
}

}  // namespace

RandomGraph random_graph(std::uint64_t seed) {
  const Precision precision(1024, true);
  constexpr std::uint64_t kCaseShare = 4, kMix = 0x9E3779B97F4A7C15;
  for (std::uint64_t attempt = 0;; ++attempt) {
    try {
      const std::uint64_t mixed = (seed + attempt * 1000000007) * kMix;
      return seed % kCaseShare == 0 ? from_case(mixed) : layered(mixed);
    } catch (const Rejected&) {
    } catch (const Undecided&) {
    } catch (const Undefined&) {
    }
  }
}

namespace {

std::string text(const Array& array) {
  std::string line = type_name(array.type) + " [";
  for (const Index d : array.dims) line += std::to_string(d) + ",";
  line += "] =";
  constexpr Index kMost = 8;
  for (Index i = 0; i < std::min(kMost, array.size()); ++i) line += " " + array.at(i).text();
  return line + (array.size() > kMost ? " ..." : "");
}

}  // namespace

std::string describe(const onnx::ModelProto& model) {
  std::string lines = "opset " + std::to_string(model.opset_import(0).version()) + "\n";
  for (const auto& input : model.graph().input()) {
    lines +=
        "  input " + input.name() + ": " + type_name(input.type().tensor_type().elem_type()) + " [";
    for (const auto& d : input.type().tensor_type().shape().dim())
      lines += std::to_string(d.dim_value()) + ",";
    lines += "]\n";
  }
  for (const auto& tensor : model.graph().initializer()) {
    lines += "  " + tensor.name() + " = " + text(read_tensor(tensor)) + "\n";
  }
  for (const auto& node : model.graph().node()) {
    lines += "  " + node.output(0) + " = " + node.op_type() + "(";
    for (const auto& name : node.input()) lines += name + ", ";
    lines += ")";
    for (const auto& a : node.attribute()) {
      lines += " " + a.name() + "=" +
               (a.has_t()   ? text(read_tensor(a.t()))
                : a.has_s() ? a.s()
                : a.has_f() ? Number(static_cast<double>(a.f())).text()
                : a.has_i() ? std::to_string(a.i())
                            : "");
      for (const auto i : a.ints()) lines += std::to_string(i) + ",";
      for (const auto f : a.floats()) lines += Number(static_cast<double>(f)).text() + ",";
    }
    lines += "\n";
  }
  return lines;
}

}  // namespace oracle
