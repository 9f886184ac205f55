// SPDX-License-Identifier: Apache-2.0
#include "ops/onnx_node.h"

#include <fmt/format.h>

#include "graph/settle.h"
#include "lipscope/error.h"
#include "ops/attribute_defaults.h"

namespace lipscope {
namespace {

// No attribute has a blank in its name.
std::string input_label(Index k) { return fmt::format("input {}", k); }

}  // namespace

OnnxNode::OnnxNode(std::string type, int opset, Attributes attributes,
                   std::vector<std::optional<NodeInput>> inputs, std::vector<bool> outputs)
    : type_(std::move(type)),
      opset_(opset),
      attributes_(std::move(attributes)),
      inputs_(std::move(inputs)),
      outputs_(std::move(outputs)) {}

bool OnnxNode::has_input(Index k) const {
  read_.insert(input_label(k));
  return k >= 0 && k < num_inputs() && inputs_[static_cast<std::size_t>(k)].has_value();
}

const ValueType& OnnxNode::input(Index k) const {
  if (!has_input(k)) malformed(fmt::format("input {} is missing", k));
  return inputs_[static_cast<std::size_t>(k)]->type;
}

bool OnnxNode::is_constant(Index k) const {
  return has_input(k) && inputs_[static_cast<std::size_t>(k)]->constant != nullptr;
}

bool OnnxNode::is_stored(Index k) const {
  if (!has_input(k)) return true;
  const Constant* constant = inputs_[static_cast<std::size_t>(k)]->constant.get();
  while (constant != nullptr && constant->folded() != nullptr) {
    const std::string_view name = constant->folded()->op->name();
    if (name != "Identity" && name != "Reshape" && name != "Squeeze" && name != "Unsqueeze")
      return false;
    constant = constant->folded()->inputs[0].get();
  }
  return constant != nullptr;
}

const Constant& OnnxNode::known(Index k) const {
  if (!has_input(k)) malformed(fmt::format("input {} is missing", k));
  const Constant* value = inputs_[static_cast<std::size_t>(k)]->constant.get();
  if (value == nullptr) throw NeedsConstant{k};
  return *value;
}

const Tensor& OnnxNode::constant(Index k) const {
  const Constant& value = known(k);
  if (const Tensor* exact = value.exact()) return *exact;
  const auto [found, first] = settled_.try_emplace(k);
  if (first) found->second = settled(value);
  if (!found->second) {
    unsupported(fmt::format(
        "input {} is computed in the graph, and the result is no float64 number; store one", k));
  }
  return *found->second;
}

Box OnnxNode::constant_box(Index k) const { return known(k).box(); }

std::optional<std::vector<Index>> OnnxNode::constant_ints(Index k) const {
  if (!has_input(k)) return std::nullopt;
  const Tensor& value = constant(k);
  if (is_floating(value.type())) malformed(fmt::format("input {} has to be integers", k));
  const auto entries = value.ints();
  return std::vector<Index>(entries.begin(), entries.end());
}

bool OnnxNode::wants_output(Index k) const {
  return k >= 0 && k < num_outputs() && outputs_[static_cast<std::size_t>(k)];
}

bool OnnxNode::has(std::string_view name) const {
  const auto found = attributes_.find(name);
  if (found == attributes_.end()) return false;
  read_.insert(found->first);
  return true;
}

template <class T>
const T* OnnxNode::find(std::string_view name) const {
  if (!has(name)) return nullptr;
  const auto* value = std::get_if<T>(&attributes_.find(name)->second);
  if (value == nullptr) malformed(fmt::format("attribute '{}' has the wrong type", name));
  return value;
}

Index OnnxNode::integer(std::string_view name, Index fallback) const {
  const auto* value = find<Index>(name);
  return value != nullptr ? *value : fallback;
}
Index OnnxNode::integer(std::string_view name) const {
  const auto* value = find<Index>(name);
  if (value == nullptr) malformed(fmt::format("attribute '{}' is missing", name));
  return *value;
}
std::optional<double> OnnxNode::optional_real(std::string_view name) const {
  const auto* value = find<double>(name);
  return value != nullptr ? *value : attribute_default(type_, name, opset_);
}
double OnnxNode::real(std::string_view name) const {
  const auto value = optional_real(name);
  if (!value) malformed(fmt::format("attribute '{}' is missing", name));
  return *value;
}
std::string OnnxNode::text(std::string_view name, std::string_view fallback) const {
  const auto* value = find<std::string>(name);
  return value != nullptr ? *value : std::string(fallback);
}
std::optional<std::vector<Index>> OnnxNode::integers(std::string_view name) const {
  const auto* value = find<std::vector<Index>>(name);
  if (value == nullptr) return std::nullopt;
  return *value;
}
std::optional<std::vector<double>> OnnxNode::reals(std::string_view name) const {
  const auto* value = find<std::vector<double>>(name);
  if (value == nullptr) return std::nullopt;
  return *value;
}
const Tensor* OnnxNode::tensor(std::string_view name) const { return find<Tensor>(name); }

void OnnxNode::ignore(std::initializer_list<std::string_view> names) const {
  for (const std::string_view name : names) (void)has(name);
}

std::vector<std::string> OnnxNode::unread() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : attributes_) {
    if (!read_.contains(name)) names.push_back(name);
  }
  for (Index k = 0; k < num_inputs(); ++k) {
    if (inputs_[static_cast<std::size_t>(k)] && !read_.contains(input_label(k)))
      names.push_back(input_label(k));
  }
  return names;
}

Index OnnxNode::axis(Index axis, Index rank) {
  if (axis < -rank || axis >= rank) {
    throw Error(ErrorCode::kBadFile,
                fmt::format("axis {} does not exist in a tensor of rank {}", axis, rank));
  }
  return axis < 0 ? axis + rank : axis;
}

void OnnxNode::unsupported(const std::string& reason) const {
  throw Error(ErrorCode::kUnsupported, fmt::format("operator {}: {}", type_, reason));
}
void OnnxNode::malformed(const std::string& reason) const {
  throw Error(ErrorCode::kBadFile, fmt::format("operator {}: {}", type_, reason));
}

}  // namespace lipscope
