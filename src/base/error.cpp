// SPDX-License-Identifier: Apache-2.0
#include "lipscope/error.h"

#include <fmt/format.h>

#include <cstring>

#include "base/check.h"

namespace lipscope {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUsage: return "usage";
    case ErrorCode::kBadFile: return "bad-file";
    case ErrorCode::kShape: return "shape";
    case ErrorCode::kUnsupported: return "unsupported";
    case ErrorCode::kInternal: return "internal";
  }
  return "internal";
}

void check_failed(std::string_view condition, std::source_location where) {
  const char* slash = std::strrchr(where.file_name(), '/');
  const char* file = slash != nullptr ? slash + 1 : where.file_name();
  throw Error(ErrorCode::kInternal,
              fmt::format("internal check failed at {}:{}: {}", file, where.line(), condition));
}

}  // namespace lipscope
