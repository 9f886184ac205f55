// SPDX-License-Identifier: Apache-2.0
#include "estimate/gain_memory.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/checkpoint.h"
#include "base/portable.h"
#include "base/sha256.h"

namespace lipscope {
namespace {

constexpr double kWorkPerInput = 200;  // operations

ProvedGain ask(const Node& node, const GainQuery& query) {
  ProofSteps steps;
  GainQuery own = query;
  own.steps = &steps;
  const auto gain = node.op->gain(own);
  if (!gain || !(gain->value < kInf)) return {kInf};
  return {portable_claim(gain->value), steps.list()};
}

// A tensor of one number, the usual thing for an unbounded domain, is told by that number: shapes
// are fixed by the operator.
void add_digest(const Tensor& tensor, std::string& text) {
  const auto entries = tensor.doubles();
  const bool uniform = std::ranges::all_of(entries, [&](double e) {
    return std::bit_cast<std::uint64_t>(e) == std::bit_cast<std::uint64_t>(entries[0]);
  });
  const auto told = std::as_bytes(uniform && !entries.empty() ? entries.first(1) : entries);
  text += uniform ? '=' : '#';
  if (uniform) {
    text.append(reinterpret_cast<const char*>(told.data()), told.size());
  } else {
    text += sha256(told);
  }
}

}  // namespace

std::shared_ptr<GainMemory> make_gain_memory() { return std::make_shared<GainMemory>(); }

std::optional<ProvedGain> GainMemory::Place::find(const Question& question) const {
  const std::scoped_lock lock(mutex_);
  const auto found = known_.find(question);
  return found != known_.end() ? std::optional(found->second) : std::nullopt;
}

ProvedGain GainMemory::Place::keep(const Question& question, ProvedGain gain) {
  const std::scoped_lock lock(mutex_);
  return known_.emplace(question, std::move(gain)).first->second;
}

std::shared_ptr<GainMemory::Place> GainMemory::place(
    const std::shared_ptr<const Op>& op, std::vector<std::shared_ptr<const Constant>> constants,
    std::string boxes) {
  Key key{op.get(), {}, std::move(boxes)};
  for (const auto& constant : constants) key.constants.push_back(constant.get());
  const std::scoped_lock lock(mutex_);
  std::shared_ptr<Place>& place = places_[std::move(key)];
  if (!place) {
    place = std::make_shared<Place>();
    place->op_ = op;
    place->constants_ = std::move(constants);
  }
  return place;
}

void RememberedGains::visit(const Node& node) {
  at_.reset();
  in_.clear();
  place_ = nullptr;
  // An integer that depends on the input moves in steps.
  const bool steps = std::ranges::any_of(node.inputs, [&](ValueId id) {
    const Value& value = graph_.value(id);
    return !is_floating(value.type.type) && !value.constant;
  });
  std::vector<std::shared_ptr<const Constant>> constants;
  std::string text;
  for (const ValueId id : node.inputs) {
    if (steps) break;
    const Value& value = graph_.value(id);
    in_.push_back(boxes_(id));
    charge(kWorkPerInput + static_cast<double>(value.constant ? 0 : in_.back().lower.size()));
    if (value.constant) {
      constants.push_back(value.constant);
    } else if (memory_) {
      add_digest(in_.back().lower, text);
      add_digest(in_.back().upper, text);
    }
  }
  if (!steps) {
    place_ = memory_ ? memory_->place(node.op, std::move(constants),
                                      sha256(std::as_bytes(std::span<const char>(text))))
                     : std::make_shared<GainMemory::Place>();
  }
  at_ = node.outputs[0];
}

ProvedGain RememberedGains::gain(const Node& node, Index k, const NormPair& norms, bool quick) {
  if (at_ != node.outputs[0]) visit(node);
  if (!place_) return {kInf};
  const GainMemory::Place::Question question{k, norms.in.p(), norms.out.p(), quick};
  if (auto known = place_->find(question)) return std::move(*known);
  charge(kWorkPerInput);
  return place_->keep(question, ask(node, {norms, in_, k, quick, nullptr}));
}

}  // namespace lipscope
