// SPDX-License-Identifier: Apache-2.0
// Branch and bound over parts of a ball, the part with the least bound first [robustness-4].
#pragma once

#include <functional>
#include <queue>
#include <span>
#include <vector>

#include "lipscope/tensor.h"

namespace lipscope {

// Whether every part is proved, looking at no more than `most` and those that are open then. A Part
// has a `bound`. Rules:
//   bool closed(const Part&)                whether it is proved
//   bool hopeless(const Part&)              asked of the part with the least bound: ends the search
//   bool halve(const Part&, std::vector<Part>& to)   false: there is nothing to split
//   void raise(std::span<Part>, bool last)  raises bounds; `last`: of a part that cannot be split
template <class Part, class Rules>
[[nodiscard]] bool prove_parts(std::vector<Part> wholes, Rules&& rules, Index most,
                               const std::function<bool()>& stop) {
  constexpr std::size_t kTogether = 32;  // parts bounded at once
  const auto later = [](const Part& a, const Part& b) { return a.bound > b.bound; };
  std::priority_queue<Part, std::vector<Part>, decltype(later)> open(later, std::move(wholes));
  Index seen = 0;
  while (!open.empty()) {
    if (rules.hopeless(open.top()) || stop() || seen + std::ssize(open) > most) return false;
    std::vector<Part> children;
    while (!open.empty() && children.size() < kTogether) {
      Part part = open.top();
      open.pop();
      if (rules.halve(part, children)) continue;
      rules.raise(std::span(&part, 1), true);
      if (!rules.closed(part)) return false;
    }
    rules.raise(children, false);
    seen += std::ssize(children);
    for (Part& part : children) {
      if (!rules.closed(part)) open.push(std::move(part));
    }
  }
  return true;
}

}  // namespace lipscope
