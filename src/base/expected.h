// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>

namespace lipscope {

struct Reason {
  std::string text;
};

// A value, or the reason why there is none.
template <class T>
class Expected {
 public:
  Expected(T value) : value_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  Expected(Reason why) : reason_(std::move(why.text)) {}  // NOLINT(google-explicit-constructor)

  explicit operator bool() const { return value_.has_value(); }
  [[nodiscard]] const T& operator*() const { return *value_; }
  [[nodiscard]] T& operator*() { return *value_; }
  const T* operator->() const { return &*value_; }
  T* operator->() { return &*value_; }
  [[nodiscard]] const T* get() const { return value_ ? &*value_ : nullptr; }
  [[nodiscard]] const std::string& reason() const { return reason_; }

 private:
  std::optional<T> value_;
  std::string reason_;
};

}  // namespace lipscope
