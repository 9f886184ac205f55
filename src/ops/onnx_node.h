// SPDX-License-Identifier: Apache-2.0
// What an operator's importer sees of an ONNX node: attributes, input types, constant inputs. No
// protobuf. Every attribute a file sets has to be read (or named in ignore()), so that an attribute
// nobody understands is refused instead of silently changing nothing.
#pragma once

#include <concepts>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "lipscope/graph.h"

namespace lipscope {

using Attribute = std::variant<Index, double, std::string, std::vector<Index>, std::vector<double>,
                               std::vector<std::string>, Tensor>;
using Attributes = std::map<std::string, Attribute, std::less<>>;

struct NodeInput {
  ValueType type;
  std::shared_ptr<const Constant> constant = nullptr;  // null: depends on a graph input

  [[nodiscard]] static NodeInput of(const Value& value) { return {value.type, value.constant}; }
  // As a constant, or as an input of the graph with this type and shape.
  [[nodiscard]] static NodeInput like(const Tensor& value, bool constant) {
    return {{value.type(), value.shape()},
            constant ? std::make_shared<const Constant>(value) : nullptr};
  }
};

// Thrown when a shape-like argument depends on a graph input: the loader binds that input to the
// user's data and tries again, or tells the user.
struct NeedsConstant {
  Index input;
};

class OnnxNode {
 public:
  // Absent optional inputs are empty. `outputs[i]` tells whether output i has a name.
  OnnxNode(std::string type, int opset, Attributes attributes,
           std::vector<std::optional<NodeInput>> inputs, std::vector<bool> outputs = {true});

  [[nodiscard]] const std::string& type() const noexcept { return type_; }
  [[nodiscard]] int opset() const noexcept { return opset_; }

  [[nodiscard]] Index num_inputs() const noexcept { return static_cast<Index>(inputs_.size()); }
  [[nodiscard]] bool has_input(Index k) const;
  // Throws kBadFile when the input is absent.
  [[nodiscard]] const ValueType& input(Index k) const;
  [[nodiscard]] Index rank(Index k) const { return static_cast<Index>(input(k).shape.size()); }
  // The numbers of an input that have to be known when shapes are, exactly; throws NeedsConstant,
  // or kUnsupported for a constant that no stored numbers are equal to.
  [[nodiscard]] const Tensor& constant(Index k) const;
  [[nodiscard]] bool is_constant(Index k) const;
  // Its numbers are those of the file, perhaps in another shape; not computed from them, which in
  // another arithmetic may give other numbers. Also for an input that is absent.
  [[nodiscard]] bool is_stored(Index k) const;
  // A box that holds the numbers of such an input, exact or not.
  [[nodiscard]] Box constant_box(Index k) const;
  // An integer constant as a list, whatever its shape; nothing when the input is absent.
  [[nodiscard]] std::optional<std::vector<Index>> constant_ints(Index k) const;

  [[nodiscard]] Index num_outputs() const noexcept { return static_cast<Index>(outputs_.size()); }
  [[nodiscard]] bool wants_output(Index k) const;

  // Attributes. A wrong type is kBadFile. The plain forms throw kBadFile when it is missing; an
  // omitted real is the schema's (attribute_defaults.h) where that has one.
  [[nodiscard]] bool has(std::string_view name) const;
  [[nodiscard]] Index integer(std::string_view name, Index fallback) const;
  [[nodiscard]] Index integer(std::string_view name) const;
  [[nodiscard]] double real(std::string_view name) const;
  [[nodiscard]] std::optional<double> optional_real(std::string_view name) const;
  [[nodiscard]] std::string text(std::string_view name, std::string_view fallback) const;
  [[nodiscard]] std::optional<std::vector<Index>> integers(std::string_view name) const;
  [[nodiscard]] std::optional<std::vector<double>> reals(std::string_view name) const;
  [[nodiscard]] const Tensor* tensor(std::string_view name) const;
  // Attributes without meaning for inference.
  void ignore(std::initializer_list<std::string_view> names) const;

  // What nobody asked for: names of attributes, and "input 1" and so on.
  [[nodiscard]] std::vector<std::string> unread() const;

  // An axis in [-rank, rank) brought to [0, rank); kBadFile outside.
  [[nodiscard]] static Index axis(Index axis, Index rank);

  // Throws kUnsupported / kBadFile with the given reason.
  [[noreturn]] void unsupported(const std::string& reason) const;
  [[noreturn]] void malformed(const std::string& reason) const;

 private:
  [[nodiscard]] const Constant& known(Index k) const;
  template <class T>
  [[nodiscard]] const T* find(std::string_view name) const;

  std::string type_;
  int opset_;
  Attributes attributes_;
  std::vector<std::optional<NodeInput>> inputs_;
  std::vector<bool> outputs_;
  mutable std::map<Index, std::optional<Tensor>> settled_;  // constants that are not stored
  mutable std::set<std::string, std::less<>> read_;
};

// What an importer makes of a node: an operator and which of the node's inputs feed it, or the
// constant it stands for.
struct Imported {
  std::shared_ptr<const Op> op;
  std::vector<Index> uses;
  std::optional<Tensor> constant;

  template <std::derived_from<Op> T>
  Imported(std::shared_ptr<T> made, std::vector<Index> inputs = {0})
      : op(std::move(made)), uses(std::move(inputs)) {}
  Imported(Tensor value) : constant(std::move(value)) {}
};

}  // namespace lipscope
