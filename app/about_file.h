// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "lipscope/error.h"

namespace lipscope::app {

// What `body` gives; arrays that do not fit are reported as the fault of the file they came from.
template <class Body>
auto about_file(const std::string& path, Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (const Error& error) {
    const std::string what = error.what();
    if (error.code() != ErrorCode::kShape || path.empty() || what.starts_with(path)) throw;
    throw Error(error.code(), path + ": " + what);
  }
}

}  // namespace lipscope::app
