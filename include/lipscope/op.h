// SPDX-License-Identifier: Apache-2.0
// Operators describe themselves through facets; analyses never ask what kind an operator is.
//
// An Op is an immutable instance with typed fields, made for fixed input types and shapes. All it
// can be asked is in this file. Facets it does not offer return nothing, and callers treat that as
// an ordinary answer:
//
//   if (const Elementwise* curve = node.op->elementwise()) use(curve->slopes(x));
//
// Only the file that defines an operator casts it, and only what recognises patterns of operators
// (src/passes) looks at names: the test `facets` reads the sources for both. `lipscope ops` lists
// who offers what, and tests/kits holds every facet of every operator against its values.
//
// Values are batched: every facet that computes handles `count` independent samples at once. A view
// gives the data of sample b at `sample(b)`; a value shared by all samples (a constant) has stride
// 0. Operators never mix samples.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lipscope/norm.h"
#include "lipscope/proof_steps.h"
#include "lipscope/tensor.h"

namespace lipscope {

struct ValueType {
  ElementType type = ElementType::kFloat32;
  Shape shape;
  friend bool operator==(const ValueType&, const ValueType&) = default;
};

// Borrowed samples of one value. `data` is null where a tangent is known to be zero or a gradient
// is not wanted.
template <class Pointer>
struct BasicView {
  ElementType type = ElementType::kFloat64;
  Storage storage = Storage::kDouble;
  const Shape* shape = nullptr;  // of one sample
  Index size = 0;                // entries of one sample
  Pointer data = nullptr;
  Index stride = 0;  // entries from one sample to the next; 0: one sample shared by all

  template <class T>
  [[nodiscard]] auto sample(Index b) const {
    if constexpr (std::is_const_v<std::remove_pointer_t<Pointer>>) {
      return static_cast<const T*>(data) + b * stride;
    } else {
      return static_cast<T*>(data) + b * stride;
    }
  }
  [[nodiscard]] explicit operator bool() const noexcept { return data != nullptr; }
};
using ConstView = BasicView<const void*>;
using MutView = BasicView<void*>;

struct EvalArgs {
  std::span<const ConstView> in;
  std::span<const MutView> out;
  Index count = 1;
};

// Derivatives work on doubles. Integer values carry no tangent: their views have null data.
struct JvpArgs {
  std::span<const ConstView> in, out;     // values
  std::span<const ConstView> tangent_in;  // null data: zero
  std::span<const MutView> tangent_out;   // overwritten; null for integer outputs
  Index count = 1;
};
struct VjpArgs {
  std::span<const ConstView> in, out;   // values
  std::span<const ConstView> grad_out;  // null data: zero
  std::span<const MutView> grad_in;     // overwritten; null data: not wanted
  Index count = 1;
};

// Asks for a constant L with |f(x) - f(y)|_out <= L |x_k - y_k|_in whenever x and y lie in the
// boxes and differ in input k = wrt only.
struct GainQuery {
  NormPair norms;
  std::span<const Box> in;
  Index wrt = 0;
  bool quick = false;  // a looser constant will do, if it comes in the time of reading the weights
  // Unless null: the steps of the proof, to be written or, when given, to be followed: the answer
  // is then what they prove, +inf if that is nothing, whatever `quick` says.
  ProofSteps* steps = nullptr;
};
struct Gain {
  double value = 0;          // rounded upward; infinity where no finite constant exists
  std::string_view theorem;  // label in docs/theory
};

// Asks for the matrix of an output that is an affine function of input k = wrt while the others
// stay where they are, anywhere in their boxes.
struct MatrixQuery {
  std::span<const Box> in;
  Index wrt = 0;
  Index output = 0;
};
// visit(row, column, lower, upper): the entry lies between the two. An entry may come in several
// pieces, to be added; those that do not come are zero.
using EntryVisitor = std::function<void(Index, Index, double, double)>;

// Sparse rows of affine functions: offsets[i] + sum over j in [begin[i], begin[i + 1]) of
// weights[j] x[columns[j]].
struct AffineRows {
  std::vector<Index> begin = {0};
  std::vector<Index> columns;
  std::vector<double> weights, offsets;
};
// lower(x) <= f(x) <= upper(x) for every x in the boxes. Columns count the entries of all inputs,
// one input after another.
struct Relaxation {
  AffineRows lower, upper;
};

enum class Extreme { kLargest, kSmallest };

// Facets with an interface of their own, which is the library's: the comment names its header.
class Elementwise;
class BoxProduct;
class GraphAdjoint;
class WideMap;
class MachineMap;
class ExactMap;
class MaxWindows;
class SoftmaxRows;
class JointSlopes;
class IndexMapOp;
struct Multilinear;
struct ConvForm;

class Op {
 public:
  virtual ~Op() = default;
  // Types and shapes of the outputs for the inputs the instance was made for.
  [[nodiscard]] virtual std::vector<ValueType> infer(std::span<const ValueType> in) const = 0;
  virtual void eval(const EvalArgs& args) const = 0;

  // True when jvp and vjp are there. At a kink they use one of the one-sided derivatives.
  [[nodiscard]] virtual bool differentiable() const { return false; }
  virtual void jvp(const JvpArgs& args) const;
  virtual void vjp(const VjpArgs& args) const;

  // Boxes holding every output for inputs in the given boxes, rounded outward.
  [[nodiscard]] virtual std::optional<std::vector<Box>> range(std::span<const Box> in) const;
  [[nodiscard]] virtual std::optional<Gain> gain(const GainQuery& query) const;

  // False, and nothing visited, when the output is no such function.
  virtual bool matrix(const MatrixQuery& query, const EntryVisitor& visit) const;

  // Affine functions of the inputs below and above the first output on their boxes.
  [[nodiscard]] virtual std::optional<Relaxation> relax(std::span<const Box> in) const;

  // True when each input moves output entries of its own that no other input touches (Concat).
  [[nodiscard]] virtual bool inputs_move_disjoint_outputs() const { return false; }

  // True when eval finds integer outputs without rounding: it compares, cuts and copies what it is
  // given, so that they are exact wherever the inputs are.
  [[nodiscard]] virtual bool decides_exactly() const { return false; }

  // Unless nothing: each output entry is the largest or smallest of the entries of all inputs at
  // its place, to which they are broadcast (Max, Min).
  [[nodiscard]] virtual std::optional<Extreme> picks_extreme() const { return std::nullopt; }

  // True when output entries are those of input 0 where they are positive, elsewhere those times
  // the entry of input 1 at their place, to which it is broadcast (PRelu).
  [[nodiscard]] virtual bool scales_negative_entries() const { return false; }

  // The same function of each entry; its slopes (ops/elementwise/elementwise.h).
  [[nodiscard]] virtual const Elementwise* elementwise() const { return nullptr; }
  // Products with all Jacobians on a box (ops/facets/box_product.h).
  [[nodiscard]] virtual const BoxProduct* box_product() const { return nullptr; }
  // The derivative as nodes of a graph (ops/facets/adjoint.h).
  [[nodiscard]] virtual const GraphAdjoint* graph_adjoint() const { return nullptr; }
  // Values and derivatives in wide numbers (ops/facets/wide_map.h).
  [[nodiscard]] virtual const WideMap* wide_map() const { return nullptr; }
  // How far values computed in float32, float16 or bfloat16 are off (ops/facets/machine_map.h).
  [[nodiscard]] virtual const MachineMap* machine_map() const { return nullptr; }
  // Values in rational numbers (graph/exact_map.h).
  [[nodiscard]] virtual const ExactMap* exact_map() const { return nullptr; }
  // Each output entry is the largest of some input entries (ops/windows/max_windows.h).
  [[nodiscard]] virtual const MaxWindows* max_windows() const { return nullptr; }
  // Softmax or its logarithm, row by row (ops/rows/softmax_rows.h).
  [[nodiscard]] virtual const SoftmaxRows* softmax_rows() const { return nullptr; }
  // Slopes of all entries together, of an elementwise operator (ops/rows/softmax_pairs.h).
  [[nodiscard]] virtual const JointSlopes* joint_slopes() const { return nullptr; }

  // What the values are made of: copies and weighted sums of entries (ops/index/index_map.h), sums
  // of products of inputs (ops/linear/multilinear.h), a convolution (ops/windows/conv.h).
  [[nodiscard]] virtual const IndexMapOp* index_map() const { return nullptr; }
  [[nodiscard]] virtual const Multilinear* multilinear() const { return nullptr; }
  [[nodiscard]] virtual const ConvForm* convolution() const { return nullptr; }

  // Name shown to people, that of the ONNX operator where there is one.
  [[nodiscard]] virtual std::string_view name() const = 0;
};

}  // namespace lipscope
