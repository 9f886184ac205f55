// SPDX-License-Identifier: Apache-2.0
#include "estimate/gain_memory.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/portable.h"
#include "base/sha256.h"

namespace lipscope {
namespace {

ProvedGain ask(const Node& node, Index k, const NormPair& norms, std::span<const Box> in,
               bool quick) {
  ProofSteps steps;
  const auto gain = node.op->gain({norms, in, k, quick, &steps});
  if (!gain || !(gain->value < kInf)) return {kInf};
  return {portable_claim(gain->value), steps.list()};
}

// A tensor of one number, the usual thing for an unbounded domain, is told by that number: shapes
// are fixed by the operator.
std::string digest(const std::vector<const Box*>& boxes) {
  std::string text;
  for (const Box* box : boxes) {
    for (const Tensor* tensor : {&box->lower, &box->upper}) {
      const auto entries = tensor->doubles();
      const bool uniform = std::ranges::all_of(entries, [&](double e) {
        return std::bit_cast<std::uint64_t>(e) == std::bit_cast<std::uint64_t>(entries[0]);
      });
      text += (uniform ? "=" : "#") +
              sha256(std::as_bytes(uniform && !entries.empty() ? entries.first(1) : entries));
    }
  }
  return text;
}

}  // namespace

std::shared_ptr<GainMemory> make_gain_memory() { return std::make_shared<GainMemory>(); }

ProvedGain GainMemory::gain(ValueBoxes& boxes, const Node& node, Index k, const NormPair& norms,
                            bool quick) {
  Key key{node.op.get(), k, norms.in.p(), norms.out.p(), {}, {}, quick};
  Entry entry{{kInf}, node.op, {}};
  std::vector<Box> in;
  std::vector<const Box*> varying;
  for (const ValueId id : node.inputs) {
    const Value& value = boxes.graph().value(id);
    // An integer that depends on the input moves in steps.
    if (!is_floating(value.type.type) && !value.constant) return {kInf};
    if (value.constant) {
      key.constants.push_back(value.constant.get());
      entry.constants.push_back(value.constant);
    } else {
      varying.push_back(&boxes.at(id));
    }
    in.push_back(boxes.at(id));
  }
  key.boxes = digest(varying);
  {
    const std::scoped_lock lock(mutex_);
    if (const auto found = known_.find(key); found != known_.end()) return found->second.gain;
  }
  entry.gain = ask(node, k, norms, in, quick);
  const std::scoped_lock lock(mutex_);
  return known_.emplace(std::move(key), std::move(entry)).first->second.gain;
}

}  // namespace lipscope
