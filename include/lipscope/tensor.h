// SPDX-License-Identifier: Apache-2.0
// Dense row-major arrays.
//
// A tensor has an element type, the one its file or operator declares, and a storage, the way its
// entries are held here. Every integer type and bool is held as int64 (with the wrap-around of its
// own width), every floating type as double, or as float on the fast path. float16, bfloat16 and
// float32 therefore lose nothing when they are read.
//
//   Tensor t = Tensor::zeros(ElementType::kFloat32, {2, 3});   // held as double
//   t.doubles()[4] = 1.5;
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace lipscope {

using Index = std::int64_t;
using Shape = std::vector<Index>;

enum class ElementType : std::uint8_t {
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUInt8,
  kUInt16,
  kUInt32,
  kUInt64,
  kBool,
};

enum class Storage : std::uint8_t { kDouble, kFloat, kInt64 };
enum class Precision : std::uint8_t { kFloat64, kFloat32 };

[[nodiscard]] constexpr bool is_floating(ElementType type) { return type <= ElementType::kFloat64; }
[[nodiscard]] constexpr Storage storage_of(ElementType type, Precision precision) {
  if (!is_floating(type)) return Storage::kInt64;
  return precision == Precision::kFloat64 ? Storage::kDouble : Storage::kFloat;
}
// "float32", "int8", ... as numpy spells them; bfloat16 is "bfloat16".
[[nodiscard]] std::string_view to_string(ElementType type);

// Number of entries; throws kShape when the product overflows or a dimension is negative.
[[nodiscard]] Index element_count(const Shape& shape);
// "[2, 3]".
[[nodiscard]] std::string to_string(const Shape& shape);

// The value an integer takes when stored in the given integer type (two's complement wrap-around;
// bool: 0 or 1). uint64 is kept as the int64 with the same bits.
[[nodiscard]] Index wrap_integer(ElementType type, Index value);

// Nearest value of the given floating type, as a double.
[[nodiscard]] double round_to(ElementType type, double value);

// A value type. Copies share their entries until one of them is written to: asking for entries that
// may be written makes them the tensor's own, so ask anew after a copy was made. One user at a time
// for writing, any number for reading.
class Tensor {
 public:
  Tensor() : Tensor(ElementType::kFloat64, Shape{0}, std::vector<double>{}) {}
  // The entry count must fit the shape (kShape otherwise).
  Tensor(ElementType type, Shape shape, std::vector<double> entries);
  Tensor(ElementType type, Shape shape, std::vector<float> entries);
  Tensor(ElementType type, Shape shape, std::vector<Index> entries);

  [[nodiscard]] static Tensor zeros(ElementType type, Shape shape,
                                    Precision precision = Precision::kFloat64);
  [[nodiscard]] static Tensor vector(std::vector<double> entries);
  [[nodiscard]] static Tensor integers(Shape shape, std::vector<Index> entries);
  [[nodiscard]] static Tensor scalar(double value);

  [[nodiscard]] ElementType type() const noexcept { return type_; }
  [[nodiscard]] Storage storage() const noexcept { return static_cast<Storage>(entries_->index()); }
  [[nodiscard]] const Shape& shape() const noexcept { return shape_; }
  [[nodiscard]] Index size() const noexcept { return size_; }

  // Entries in the storage asked for; throws kInternal when the tensor holds another.
  [[nodiscard]] std::span<const double> doubles() const;
  [[nodiscard]] std::span<double> doubles();
  [[nodiscard]] std::span<const float> floats() const;
  [[nodiscard]] std::span<float> floats();
  [[nodiscard]] std::span<const Index> ints() const;
  [[nodiscard]] std::span<Index> ints();
  [[nodiscard]] const void* data() const;
  [[nodiscard]] void* data();

  // Entry i as a double, whatever the storage (uint64 read as unsigned).
  [[nodiscard]] double at(Index i) const;

  // The same entries under another shape with the same count.
  [[nodiscard]] Tensor reshaped(Shape shape) const;
  // Converted to the storage of the precision; integers stay as they are.
  [[nodiscard]] Tensor with_precision(Precision precision) const;
  // Converted to another element type with ONNX Cast's meaning: truncation towards zero and
  // wrap-around into integers, != 0 into bool. Between floating types the entries stay unrounded:
  // the network is a function of real numbers.
  [[nodiscard]] Tensor cast(ElementType type) const;

  // Same type, shape and entries (NaN equals nothing).
  friend bool operator==(const Tensor& a, const Tensor& b) {
    return a.type_ == b.type_ && a.shape_ == b.shape_ && *a.entries_ == *b.entries_;
  }

 private:
  using Entries = std::variant<std::vector<double>, std::vector<float>, std::vector<Index>>;
  [[nodiscard]] Entries& own();
  ElementType type_;
  Shape shape_;
  Index size_ = 0;
  std::shared_ptr<Entries> entries_;
};

}  // namespace lipscope
