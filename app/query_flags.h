// SPDX-License-Identifier: Apache-2.0
// Flags that say which function, where and in which norms.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lipscope/bound.h"
#include "lipscope/certificate.h"
#include "lipscope/samples.h"
#include "lipscope/select.h"
#include "model_flags.h"

namespace CLI {
class App;
}

namespace lipscope::app {

struct QueryFlags {
  ModelFlags model;
  std::string norm = "2", at, ball, box, margin, from, to, wrt, scale = "1";
  std::vector<std::string> radius;
  std::optional<Index> output;
  bool logits = false;

  void declare(CLI::App& app);
};

// The question, ready to be asked: graphs outlive the queries that point at them.
struct Question {
  OnnxModel model;
  GraphOptions options;
  Selection selection;
  Selected selected;
  NormPair norms{Norm(2), Norm(2)};
  Domain domain;                                 // without the radius
  std::vector<double> radii;                     // empty: no ball
  std::vector<std::pair<Index, Index>> margins;  // all pairs, for --margin all

  [[nodiscard]] Query query(std::optional<double> radius) const;
  [[nodiscard]] Statement statement(std::optional<double> radius) const;
};

// Throws kUsage for flags that contradict each other.
[[nodiscard]] Question read_question(const QueryFlags& flags);

}  // namespace lipscope::app
