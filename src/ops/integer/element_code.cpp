// SPDX-License-Identifier: Apache-2.0
#include "ops/integer/element_code.h"

#include <algorithm>

namespace lipscope {
namespace {

struct CodeRow {
  Index code;
  std::string_view name;
  ElementType type;
};
constexpr CodeRow kRows[] = {
    {1, "FLOAT", ElementType::kFloat32},     {2, "UINT8", ElementType::kUInt8},
    {3, "INT8", ElementType::kInt8},         {4, "UINT16", ElementType::kUInt16},
    {5, "INT16", ElementType::kInt16},       {6, "INT32", ElementType::kInt32},
    {7, "INT64", ElementType::kInt64},       {9, "BOOL", ElementType::kBool},
    {10, "FLOAT16", ElementType::kFloat16},  {11, "DOUBLE", ElementType::kFloat64},
    {12, "UINT32", ElementType::kUInt32},    {13, "UINT64", ElementType::kUInt64},
    {16, "BFLOAT16", ElementType::kBFloat16}};

}  // namespace

ElementType element_type_of_code(const OnnxNode& node, Index code) {
  const auto row = std::ranges::find(kRows, code, &CodeRow::code);
  if (row != std::end(kRows)) return row->type;
  if (code == 8) node.unsupported("element type string");
  node.unsupported("element type number " + std::to_string(code));
}

ElementType element_type_of_name(const OnnxNode& node, const std::string& name) {
  const auto row = std::ranges::find(kRows, name, &CodeRow::name);
  if (row != std::end(kRows)) return row->type;
  node.unsupported("element type '" + name + "'");
}

}  // namespace lipscope
