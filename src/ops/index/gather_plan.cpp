// SPDX-License-Identifier: Apache-2.0
#include "ops/index/gather_plan.h"

#include <fmt/format.h>

#include "lipscope/error.h"
#include "ops/index/index_map.h"

namespace lipscope {
namespace {

Index wrapped(Index index, Index length) {
  const Index i = index < 0 ? index + length : index;
  if (i < 0 || i >= length) {
    throw Error(
        ErrorCode::kShape,
        fmt::format("index {} outside an axis of length {}, counted from 0", index, length));
  }
  return i;
}

void require_integers(const OnnxNode& node, Index k) {
  if (is_floating(node.input(k).type)) node.malformed("the indices have to be integers");
}

}  // namespace

GatherPlan GatherPlan::along_axis(const OnnxNode& node) {
  require_integers(node, 1);
  GatherPlan plan;
  plan.kind_ = Kind::kAxis;
  plan.data_ = node.input(0).shape;
  plan.indices_ = node.input(1).shape;
  const Index rank = node.rank(0), axis = OnnxNode::axis(node.integer("axis", 0), rank);
  plan.outer_ = dims_product(plan.data_, 0, axis);
  plan.cols_ = plan.data_[static_cast<std::size_t>(axis)];
  plan.inner_ = dims_product(plan.data_, axis + 1, rank);
  plan.rows_ = element_count(plan.indices_);
  plan.output_.assign(plan.data_.begin(), plan.data_.begin() + axis);
  plan.output_.insert(plan.output_.end(), plan.indices_.begin(), plan.indices_.end());
  plan.output_.insert(plan.output_.end(), plan.data_.begin() + axis + 1, plan.data_.end());
  check_output_size(node, plan.output_);
  return plan;
}

GatherPlan GatherPlan::elements(const OnnxNode& node) {
  require_integers(node, 1);
  GatherPlan plan;
  plan.kind_ = Kind::kElements;
  plan.data_ = node.input(0).shape;
  plan.indices_ = plan.output_ = node.input(1).shape;
  plan.axis_ = OnnxNode::axis(node.integer("axis", 0), node.rank(0));
  if (plan.indices_.size() != plan.data_.size()) node.malformed("indices and data differ in rank");
  for (std::size_t a = 0; a < plan.data_.size(); ++a) {
    if (static_cast<Index>(a) != plan.axis_ && plan.indices_[a] > plan.data_[a]) {
      node.malformed(
          fmt::format("indices {} for data {}", to_string(plan.indices_), to_string(plan.data_)));
    }
  }
  plan.cols_ = element_count(plan.data_);
  plan.rows_ = element_count(plan.indices_);
  return plan;
}

GatherPlan GatherPlan::nd(const OnnxNode& node) {
  require_integers(node, 1);
  GatherPlan plan;
  plan.kind_ = Kind::kNd;
  plan.data_ = node.input(0).shape;
  plan.indices_ = node.input(1).shape;
  const Index batch = plan.batch_dims_ = node.integer("batch_dims", 0);
  const Index rank = node.rank(0), index_rank = node.rank(1);
  if (index_rank == 0 || batch < 0 || batch >= index_rank || batch > rank) {
    node.malformed("batch_dims or the indices' rank does not fit");
  }
  const Index digits = plan.indices_.back();
  if (batch + digits > rank) node.malformed("more index digits than axes");
  for (Index a = 0; a < batch; ++a) {
    const auto i = static_cast<std::size_t>(a);
    if (plan.data_[i] != plan.indices_[i]) node.malformed("batch axes of data and indices differ");
  }
  plan.inner_ = dims_product(plan.data_, batch + digits, rank);
  plan.cols_ = dims_product(plan.data_, 0, batch + digits);
  plan.rows_ = dims_product(plan.indices_, 0, index_rank - 1);
  plan.output_.assign(plan.indices_.begin(), plan.indices_.end() - 1);
  plan.output_.insert(plan.output_.end(), plan.data_.begin() + batch + digits, plan.data_.end());
  check_output_size(node, plan.output_);
  return plan;
}

std::vector<Index> GatherPlan::sources(const Index* indices) const {
  std::vector<Index> list(static_cast<std::size_t>(rows_));
  const std::vector<Index> strides = row_major_strides(data_);
  const std::size_t rank = data_.size();
  if (kind_ == Kind::kAxis) {
    for (std::size_t i = 0; i < list.size(); ++i) list[i] = wrapped(indices[i], cols_);
  } else if (kind_ == Kind::kElements) {
    const auto axis = static_cast<std::size_t>(axis_);
    for (std::size_t i = 0; i < list.size(); ++i) {
      auto rest = static_cast<Index>(i);
      for (std::size_t a = rank; a-- > 0;) {
        const Index at = a == axis ? wrapped(indices[i], data_[a]) : rest % indices_[a];
        list[i] += at * strides[a];
        rest /= indices_[a];
      }
    }
  } else {
    const auto digits = static_cast<std::size_t>(indices_.back());
    const auto batch = static_cast<std::size_t>(batch_dims_);
    const Index batches = dims_product(data_, 0, batch_dims_);
    const Index per_batch = batches == 0 ? 0 : rows_ / batches;
    const Index cols_per_batch = batches == 0 ? 0 : cols_ / batches;
    for (std::size_t i = 0; i < list.size(); ++i) {
      Index at = 0;
      for (std::size_t j = 0; j < digits; ++j) {
        const Index length = data_[batch + j];
        at = at * length + wrapped(indices[i * digits + j], length);
      }
      list[i] = static_cast<Index>(i) / per_batch * cols_per_batch + at;
    }
  }
  return list;
}

std::vector<Index> GatherPlan::constant_sources(const OnnxNode& node) const {
  try {
    return sources(node.constant(1).ints().data());
  } catch (const Error& error) {
    node.malformed(error.what());
  }
}

}  // namespace lipscope
