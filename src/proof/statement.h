// SPDX-License-Identifier: Apache-2.0
// What every kind of proof is about: the function, the norms and the domain of a statement.
#pragma once

#include <fmt/format.h>

#include <string>

#include "lipscope/certificate.h"
#include "net/problem.h"

namespace lipscope {

// A claim that is not proved, and why.
struct Rejected {
  std::string reason;
};

template <class... Args>
[[noreturn]] void reject(fmt::format_string<Args...> text, Args&&... args) {
  throw Rejected{fmt::format(text, std::forward<Args>(args)...)};
}

// Rejects a domain of another size, or one that is none. Borrows the graph.
[[nodiscard]] Problem problem_of(const Graph& graph, const Statement& statement);
// Rejects a function that has no value anywhere on its domain.
void check_values(Problem& problem);

// The value of that name that a node makes; rejects others.
[[nodiscard]] ValueId value_named(const Graph& graph, const std::string& name);

// A form of the network that a proof needs; rejects graphs that do not have it.
template <class T>
[[nodiscard]] const T& needed(const Expected<T>& form) {
  if (!form) reject("a proof for another kind of network: {}", form.reason());
  return *form;
}
template <class T>
[[nodiscard]] T needed(Expected<T>&& form) {
  (void)needed(form);
  return *std::move(form);
}

}  // namespace lipscope
