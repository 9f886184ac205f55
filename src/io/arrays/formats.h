// SPDX-License-Identifier: Apache-2.0
// One parser per array format. Each takes the whole (unpacked) file, whose format the caller has
// recognised, and throws kBadFile or kUnsupported; none allocates more than a small multiple of the
// bytes that are there. `name` stands for the file in messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/arrays/bytes.h"
#include "lipscope/arrays.h"

namespace lipscope {

[[nodiscard]] bool is_npy(Bytes bytes);
[[nodiscard]] Tensor parse_npy(Bytes bytes, const std::string& name);

// Any zip archive.
[[nodiscard]] bool is_zip(Bytes bytes);
[[nodiscard]] std::vector<NamedTensor> parse_npz(Bytes bytes, const std::string& name,
                                                 const ArrayFilter& wanted);
// Names of the arrays in file order, without looking at them.
[[nodiscard]] std::vector<std::string> npz_names(Bytes bytes, const std::string& name);

// The magic number is four bytes that other data may begin with; is_exact_idx also compares the
// size of the file with the one its header says.
[[nodiscard]] bool is_idx(Bytes bytes);
[[nodiscard]] bool is_exact_idx(Bytes bytes);
[[nodiscard]] Tensor parse_idx(Bytes bytes, const std::string& name);

// Records have no magic number: a label below 10 and 3072 bytes, and nothing else in the file.
[[nodiscard]] bool is_cifar(Bytes bytes);
[[nodiscard]] std::vector<NamedTensor> parse_cifar(Bytes bytes, const std::string& name);

[[nodiscard]] Tensor parse_csv(Bytes bytes, const std::string& name);

// What a file of another kind is, with its article ("an ONNX model"); empty for text and for what
// is not known. Says "binary data" for bytes that are neither known nor text.
[[nodiscard]] std::string_view describe_foreign(Bytes bytes);

}  // namespace lipscope
