// SPDX-License-Identifier: Apache-2.0
#include "io/onnx/onnx_functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/checkpoint.h"
#include "lipscope/error.h"
#include "ops/kind.h"

namespace lipscope {
namespace {

using onnx::FunctionProto;
using onnx::NodeProto;

constexpr double kWorkPerCall = 2000;  // operations

std::string plain_domain(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

// Later versions of the format let a node choose among functions of one name, and give functions
// defaults for attributes. Of their other fields these change nothing: metadata and devices of a
// node, declared types and metadata of a function.
bool has_other_than(const google::protobuf::UnknownFieldSet& fields,
                    std::initializer_list<int> harmless) {
  for (int i = 0; i < fields.field_count(); ++i) {
    if (std::ranges::find(harmless, fields.field(i).number()) == harmless.end()) return true;
  }
  return false;
}
bool has_unknown(const NodeProto& node) { return has_other_than(node.unknown_fields(), {9, 10}); }
bool has_unknown(const FunctionProto& function) {
  return has_other_than(function.unknown_fields(), {12, 14});
}

class Opened {
 public:
  explicit Opened(const onnx::ModelProto& model) : opset_(model_opset(model)) {
    for (const FunctionProto& function : model.functions()) {
      const Key key{plain_domain(function.domain()), function.name()};
      if (!functions_.emplace(key, &function).second) repeated_.insert(key);
    }
  }

  void add(NodeProto& node) { add(node, opset_); }
  std::vector<PlainNode> finish() && { return std::move(nodes_); }

 private:
  using Key = std::pair<std::string, std::string>;  // domain and name
  using Names = std::map<std::string, std::string>;

  void add(NodeProto& node, int opset) {
    const Key key{plain_domain(node.domain()), node.op_type()};
    const auto found = functions_.find(key);
    const bool overload = !functions_.empty() && has_unknown(node);
    if (found == functions_.end() && !overload) {
      nodes_.push_back({std::move(node), opset, {}});
      return;
    }
    std::string reason = found == functions_.end() ? "a field that is not known"
                                                   : refusal_of(node, key, *found->second);
    if (!reason.empty()) {
      reason = fmt::format("operator {}: {}", node.op_type(), reason);
      nodes_.push_back({std::move(node), opset, std::move(reason)});
      return;
    }
    open(node, *found->second);
  }

  // Why a call cannot be followed.
  std::string refusal_of(const NodeProto& node, const Key& key, const FunctionProto& function) {
    if (key.first.empty() && find_op_kind(key.second) != nullptr)
      return "the file defines a function of this name, and programs differ in which they run; "
             "inline the functions of the model";
    if (repeated_.contains(key)) return "the file defines several functions of this name";
    if (has_unknown(node) || has_unknown(function))
      return "the function has defaults or variants; inline the functions of the model";
    for (const auto& attribute : node.attribute()) {
      const auto& names = function.attribute();
      if (std::find(names.begin(), names.end(), attribute.name()) == names.end())
        return fmt::format("the function has no attribute '{}'", attribute.name());
    }
    return {};
  }

  void open(const NodeProto& call, const FunctionProto& function) {
    const std::string label = node_label(call);
    const auto fail = [&](const std::string& why) {
      throw Error(ErrorCode::kBadFile,
                  fmt::format("node '{}': function {}: {}", label, function.name(), why));
    };
    if (std::find(stack_.begin(), stack_.end(), &function) != stack_.end()) fail("it calls itself");
    if (call.input_size() > function.input_size() || call.output_size() > function.output_size())
      fail("more inputs or outputs than it has");
    checkpoint(kWorkPerCall);
    // Functions that hold nothing but calls make no nodes.
    if (nodes_.size() > kMostNodes || calls_ > kMostNodes) fail("too many nodes");
    const std::string prefix = fmt::format("{}#{}/", label, ++calls_);
    Names names;
    for (int i = 0; i < function.input_size(); ++i)
      names[function.input(i)] = i < call.input_size() ? call.input(i) : "";
    for (int i = 0; i < function.output_size(); ++i) {
      const std::string& inner = function.output(i);
      const std::string outer =
          i < call.output_size() && !call.output(i).empty() ? call.output(i) : prefix + inner;
      const auto [at, is_new] = names.emplace(inner, outer);
      if (!is_new) copy_value(at->second, outer, prefix + inner);  // an input handed through
    }
    stack_.push_back(&function);
    for (const NodeProto& inner : function.node()) {
      NodeProto node = renamed(inner, names, prefix);
      resolve_attributes(node, call);
      add(node, default_opset(function.opset_import()));
    }
    stack_.pop_back();
  }

  void copy_value(const std::string& from, const std::string& to, const std::string& name) {
    NodeProto copy;
    copy.set_op_type("Identity");
    copy.set_name(name);
    copy.add_input(from);
    copy.add_output(to);
    nodes_.push_back({std::move(copy), opset_, {}});
  }

  // A body sees its inputs and its own values, nothing else.
  static NodeProto renamed(NodeProto node, const Names& names, const std::string& prefix) {
    const auto outer = [&](std::string& name) {
      if (name.empty()) return;
      const auto found = names.find(name);
      name = found != names.end() ? found->second : prefix + name;
    };
    for (std::string& name : *node.mutable_input()) outer(name);
    for (std::string& name : *node.mutable_output()) outer(name);
    node.set_name(prefix + (node.name().empty() ? node.op_type() : node.name()));
    return node;
  }

  // Attributes that refer to one of the call: its value, or none where the call has none.
  static void resolve_attributes(NodeProto& node, const NodeProto& call) {
    google::protobuf::RepeatedPtrField<onnx::AttributeProto> resolved;
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.ref_attr_name().empty()) {
        *resolved.Add() = std::move(attribute);
        continue;
      }
      for (const auto& given : call.attribute()) {
        if (given.name() != attribute.ref_attr_name()) continue;
        onnx::AttributeProto* copy = resolved.Add();
        *copy = given;
        copy->set_name(attribute.name());
      }
    }
    node.mutable_attribute()->Swap(&resolved);
  }

  static constexpr std::size_t kMostNodes = 1'000'000;
  int opset_;
  std::map<Key, const FunctionProto*> functions_;
  std::set<Key> repeated_;
  std::vector<const FunctionProto*> stack_;
  std::vector<PlainNode> nodes_;
  std::size_t calls_ = 0;
};

}  // namespace

std::string node_label(const NodeProto& node) {
  if (!node.name().empty()) return node.name();
  return node.op_type() + (node.output_size() > 0 ? "(" + node.output(0) + ")" : "");
}

int default_opset(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports) {
  std::optional<int> opset;
  for (const auto& import : imports) {
    if (!plain_domain(import.domain()).empty()) continue;
    // A later one may give an operator another meaning.
    if (import.version() > kNewestOpset || import.version() < 1)
      throw Error(ErrorCode::kUnsupported,
                  fmt::format("opset {} is not known here; export the model for one of 1 to {}",
                              import.version(), kNewestOpset));
    const auto version = static_cast<int>(import.version());
    if (opset && *opset != version)
      throw Error(ErrorCode::kBadFile, "two opsets of the default domain");
    opset = version;
  }
  return opset.value_or(kNoOpset);
}

int model_opset(const onnx::ModelProto& model) {
  constexpr int kFirstWithOpsets = 3;  // of the versions of the format
  const int opset = default_opset(model.opset_import());
  return opset == kNoOpset && model.ir_version() < kFirstWithOpsets ? 1 : opset;
}

std::vector<PlainNode> take_nodes(onnx::ModelProto& model) {
  Opened opened(model);
  for (NodeProto& node : *model.mutable_graph()->mutable_node()) opened.add(node);
  return std::move(opened).finish();
}

}  // namespace lipscope
