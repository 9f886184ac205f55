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

// Every `of`-th sample from the `part`-th, counted from 1.
struct Shard {
  Index part = 1, of = 1;
};

struct DataFlags {
  std::string data, labels;
  std::string scale;              // empty: not said
  std::vector<double> mean, std;  // per channel, or one for all
  Index limit = 0;                // 0: all
  std::string shard;              // "I/N"; empty: all

  void declare(CLI::App& app);
};

struct Range {
  double low = 0, high = 0;
};

struct LabelledData {
  GraphOptions options;
  Index count = 0, size = 0;   // samples of this run, entries of each
  std::vector<double> points;  // samples one after another
  std::vector<Index> labels;
  std::vector<Index> indices;  // where in the file each stands
  Index in_file = 0;           // samples
  Shape image;  // [channels, height, width] where a sample looks like one; else empty
  double scale = 1;
  // Of all samples in the file, whatever this run looks at.
  Range scaled;                       // behind --scale
  Range entries;                      // and behind --mean and --std
  bool whole = false;                 // all entries were whole numbers behind --scale
  std::string sha256, labels_sha256;  // of the files
};

// Throws kShape where counts or sizes disagree, kBadFile for NaN or labels that are no numbers of a
// class, kUsage for integers that a model takes as real numbers without a word about their scale,
// kUnsupported for models whose input does not move continuously.
[[nodiscard]] LabelledData read_labelled(const OnnxModel& model, const DataFlags& flags);

// "I/N" with I from 1 to N; empty: all. Throws kUsage.
[[nodiscard]] Shard parse_shard(const std::string& text);

// Throws kBadFile unless all labels are below the number of classes.
void require_classes(const LabelledData& data, Index classes, const std::string& path);

}  // namespace lipscope::app
