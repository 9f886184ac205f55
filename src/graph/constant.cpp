// SPDX-License-Identifier: Apache-2.0
#include "lipscope/constant.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace lipscope {

Constant::Constant(Tensor exact, std::shared_ptr<const Folded> folded)
    : near_(std::move(exact)), folded_(std::move(folded)) {}

Constant::Constant(Tensor near, Box box, std::shared_ptr<const Folded> folded)
    : near_(std::move(near)), folded_(std::move(folded)) {
  LIPSCOPE_CHECK(is_floating(near_.type()) && box.lower.size() == near_.size() &&
                 box.upper.size() == near_.size());
  const bool point =
      std::ranges::equal(std::as_const(box.lower).doubles(), std::as_const(box.upper).doubles());
  if (point) {
    // Entries are shared until somebody writes.
    if (!std::ranges::equal(std::as_const(box.lower).doubles(), std::as_const(near_).doubles()))
      std::ranges::copy(std::as_const(box.lower).doubles(), near_.doubles().begin());
    return;
  }
  box_ = std::make_unique<const Box>(std::move(box));
}

}  // namespace lipscope
