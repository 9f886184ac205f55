// SPDX-License-Identifier: Apache-2.0
#include "tests/oracle/evaluator.h"

#include <algorithm>
#include <set>

#include "tests/oracle/node.h"

namespace oracle {
namespace {

struct Level {
  mpfr_prec_t bits;
  bool settle;
};
// The last one holds sums of the largest and the smallest double, with room to spare.
constexpr Level kLadder[] = {{256, false}, {1024, false}, {4096, false}, {4096, true}};

// Only the shape of their input matters.
bool reads_shape_only(const std::string& op) {
  return op == "Shape" || op == "Size" || op == "EyeLike";
}

}  // namespace

Evaluator::Evaluator(const onnx::ModelProto& model) : model_(model) {
  for (const auto& import : model.opset_import()) {
    if (import.domain().empty() || import.domain() == "ai.onnx") {
      opset_ = static_cast<int>(import.version());
    }
  }
  const auto& graph = model.graph();
  std::set<std::string> wanted;
  for (const auto& output : graph.output()) wanted.insert(output.name());
  for (int k = graph.node_size(); k-- > 0;) {
    const auto& node = graph.node(k);
    const auto is_wanted = [&](const std::string& name) { return wanted.contains(name); };
    if (std::none_of(node.output().begin(), node.output().end(), is_wanted)) continue;
    needed_.push_back(&node);
    wanted.insert(node.input().begin(), node.input().end());
  }
  std::reverse(needed_.begin(), needed_.end());
}

Evaluator::Values Evaluator::nodes(const Values& inputs, const Values* known) {
  Values values = known != nullptr ? *known : Values{};
  if (known == nullptr) {
    for (const auto& tensor : model_.graph().initializer()) {
      values.emplace(tensor.name(), read_tensor(tensor));
    }
  }
  for (const auto& [name, value] : inputs) {
    Array moving = value;
    moving.moving = true;
    values.insert_or_assign(name, std::move(moving));
  }
  for (const auto* proto : needed_) {
    if (values.contains(proto->output(0))) continue;
    std::vector<const Array*> in;
    bool missing = false;
    for (const auto& name : proto->input()) {
      const auto found = values.find(name);
      missing = missing || (!name.empty() && found == values.end());
      in.push_back(name.empty() || found == values.end() ? nullptr : &found->second);
    }
    const Node node(*proto, opset_, in);
    // While constants are collected, what moves is left out.
    const bool moving = node.any_moving() && !reads_shape_only(proto->op_type());
    if (known == nullptr && (missing || moving)) continue;
    if (missing) throw Undefined("an input of " + proto->op_type() + " is missing");
    const auto found = operators().find(proto->op_type());
    if (found == operators().end()) throw Missing("operator " + proto->op_type());
    std::vector<Array> out = found->second(node);
    for (int k = 0; k < proto->output_size(); ++k) {
      if (proto->output(k).empty()) continue;
      Array& value = out.at(static_cast<std::size_t>(k));
      value.moving = moving;
      value.real = node.any_real() && !is_floating(value.type);
      values.insert_or_assign(proto->output(k), std::move(value));
    }
  }
  return values;
}

const Evaluator::Values& Evaluator::constants(const Values& inputs) {
  if (!have_constants_[level_]) {
    constants_[level_] = nodes(inputs, nullptr);
    have_constants_[level_] = true;
  }
  return constants_[level_];
}

std::vector<Array> Evaluator::outputs(const Values& inputs) {
  const Values values = nodes(inputs, &constants(inputs));
  std::vector<Array> out;
  for (const auto& output : model_.graph().output()) out.push_back(values.at(output.name()));
  return out;
}

void Evaluator::with_precision(const std::function<void()>& body) {
  for (level_ = 0;; ++level_) {
    const Precision precision(kLadder[level_].bits, kLadder[level_].settle);
    try {
      return body();
    } catch (const Undecided&) {
      if (level_ + 1 == kLevels) throw;
    }
  }
}

std::vector<Array> Evaluator::run(const Values& inputs) {
  std::vector<Array> out;
  with_precision([&] { out = outputs(inputs); });
  return out;
}

}  // namespace oracle
