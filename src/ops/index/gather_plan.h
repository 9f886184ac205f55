// SPDX-License-Identifier: Apache-2.0
// Where the indices of Gather, GatherElements, GatherND and their Scatter counterparts point: runs
// of `inner` entries of the data, numbered within each of `outer` blocks.
#pragma once

#include <span>
#include <vector>

#include "ops/onnx_node.h"

namespace lipscope {

class GatherPlan {
 public:
  [[nodiscard]] static GatherPlan along_axis(const OnnxNode& node);  // Gather
  [[nodiscard]] static GatherPlan elements(const OnnxNode& node);
  [[nodiscard]] static GatherPlan nd(const OnnxNode& node);

  [[nodiscard]] Index outer() const noexcept { return outer_; }
  [[nodiscard]] Index inner() const noexcept { return inner_; }
  [[nodiscard]] Index cols() const noexcept { return cols_; }  // runs in a block of the data
  [[nodiscard]] Index rows() const noexcept { return rows_; }  // runs in a block of the output
  [[nodiscard]] const Shape& output() const noexcept { return output_; }

  // The run each output run comes from, the same for all blocks; throws kShape when an index is out
  // of range.
  [[nodiscard]] std::vector<Index> sources(const Index* indices) const;
  // The same for a constant, whose bad indices are the file's fault.
  [[nodiscard]] std::vector<Index> constant_sources(const OnnxNode& node) const;

 private:
  enum class Kind { kAxis, kElements, kNd };
  Kind kind_ = Kind::kAxis;
  Index outer_ = 1, inner_ = 1, cols_ = 0, rows_ = 0;
  Shape data_, indices_, output_;
  Index axis_ = 0;        // elements
  Index batch_dims_ = 0;  // nd
};

}  // namespace lipscope
