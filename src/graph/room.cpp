// SPDX-License-Identifier: Apache-2.0
#include "graph/room.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/memory_budget.h"
#include "lipscope/error.h"

namespace lipscope {
namespace {

constexpr double kEntryBytes = 8;

// Any product: it may be beyond what an Index holds.
double entries_of(const Shape& shape) {
  double entries = 1;
  for (const Index d : shape) entries *= static_cast<double>(d);
  return entries;
}

[[noreturn]] void refuse_value(const Shape& shape, double bytes, const std::string& what) {
  throw Error(
      ErrorCode::kUnsupported,
      fmt::format("{} of shape {} has {:.3g} entries and would take {}, {}", what, to_string(shape),
                  entries_of(shape), memory_text(bytes), over_memory_limit()));
}

}  // namespace

void require_room(const Shape& shape, const std::string& what) {
  const double bytes = kEntryBytes * entries_of(shape);
  if (bytes > memory_limit()) refuse_value(shape, bytes, what);
}

void require_room_now(const Shape& shape) {
  constexpr double kCopies = 3;   // the value and both ends of its box
  constexpr double kSmall = 1e6;  // not worth a look
  const double bytes = kCopies * kEntryBytes * entries_of(shape);
  if (bytes > kSmall && bytes > std::min(memory_limit(), memory_left()))
    refuse_value(shape, bytes, "a constant");
}

}  // namespace lipscope
