// SPDX-License-Identifier: Apache-2.0
#include "ops/rows/row_forms.h"

#include <algorithm>
#include <cmath>

namespace lipscope {

RowMiddle::RowMiddle(const Group& x) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    at.push_back(midpoint(x[i]));
    reach.push_back(radius_up(x[i]));
  }
}

RowFormWriter::RowFormWriter(const RowMiddle& middle, double side)
    : middle_(middle), side_(side), forms_{{}, std::vector<double>(middle.at.size())} {
  forms_.weights.resize(middle.at.size() * middle.at.size());
}

bool RowFormWriter::plane(std::size_t i, const RowPlane& p) {
  const std::size_t n = middle_.at.size();
  std::vector<double> weights, terms;
  weights.reserve(n);
  terms.reserve(2 * n + 1);
  terms.push_back(side_ < 0 ? -p.height.lo : p.height.hi);
  for (std::size_t j = 0; j < n; ++j) {
    const double weight = side_ * midpoint(p.gradient[j]);
    weights.push_back(weight);
    terms.push_back(mul_up(magnitude(p.gradient[j] - side_ * weight), middle_.reach[j]));
    terms.push_back(mul_up(-weight, middle_.at[j]));
  }
  const double offset = sum_up(terms);
  if (!std::isfinite(offset)) return false;
  for (std::size_t j = 0; j < n; ++j) forms_.weights[i * n + j] = side_ * weights[j];
  forms_.offsets[i] = side_ * offset;
  return true;
}

void RowFormWriter::constant(std::size_t i, double value) {
  const auto n = static_cast<Index>(middle_.at.size());
  std::fill_n(forms_.weights.begin() + static_cast<Index>(i) * n, n, 0.0);
  forms_.offsets[i] = value;
}

bool is_bounded_group(const Group& x) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!is_bounded(x[i])) return false;
  }
  return true;
}

}  // namespace lipscope
