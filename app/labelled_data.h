// SPDX-License-Identifier: Apache-2.0
// Samples with labels, for commands that judge a classifier.
#pragma once

#include <string>
#include <vector>

#include "lipscope/model.h"
#include "lipscope/samples.h"

namespace CLI {
class App;
}

namespace lipscope::app {

struct DataFlags {
  std::string data, labels, scale = "1";
  std::vector<double> mean, std;  // per channel, or one for all
  Index limit = 0;                // 0: all

  void declare(CLI::App& app);
};

struct LabelledData {
  GraphOptions options;
  Index count = 0, size = 0;   // samples, entries of each
  std::vector<double> points;  // samples one after another
  std::vector<Index> labels;
  Shape image;               // [channels, height, width] where a sample looks like one; else empty
  double low = 0, high = 0;  // smallest and largest entry, before --mean and --std
  bool whole = false;        // all entries were whole numbers then
};

// Throws kShape where counts or sizes disagree, kBadFile for NaN or labels that are no numbers of a
// class, kUnsupported for models whose input does not move continuously.
[[nodiscard]] LabelledData read_labelled(const OnnxModel& model, const DataFlags& flags);

// Throws kBadFile unless all labels are below the number of classes.
void require_classes(const LabelledData& data, Index classes, const std::string& path);

}  // namespace lipscope::app
