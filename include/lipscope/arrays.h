// SPDX-License-Identifier: Apache-2.0
// Arrays in files: .npy, .npz, idx, CIFAR-10 binary records and csv, each also gzip-compressed.
// The format is recognised by content, never by the name. "-" is standard input.
//
//   Tensor images = read_array("t10k-images-idx3-ubyte.gz");   // uint8 [10000, 28, 28]
//   Tensor lower = read_array("box.npz:lo");
//
// Every failure is an Error whose message is one line naming the file and what to do: kBadFile when
// the file is missing, damaged or something else, kUnsupported when it holds a type that cannot be
// a tensor (strings, objects, complex numbers), kUsage when an array must be chosen and was not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lipscope/tensor.h"

namespace lipscope {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

// Which members of an .npz to decode; the others are not looked at. Empty: all.
using ArrayFilter = std::function<bool(const std::string& name)>;

// All arrays of a file. An .npz gives its members in file order (none, for an empty one), CIFAR
// records give "data" (uint8 [N, 3, 32, 32]) and "labels" (uint8 [N]), any other file gives one
// array with an empty name. "file.npz:key" gives that member.
[[nodiscard]] std::vector<NamedTensor> read_arrays(const std::string& path,
                                                   const ArrayFilter& wanted = {});

// One array: a single-array file, "file.npz:key", an .npz with exactly one member, or the "data" of
// CIFAR records. A path that exists as a whole is never split at ':'.
[[nodiscard]] Tensor read_array(const std::string& path);

// read_arrays on bytes in memory; `name` stands for the file in messages.
[[nodiscard]] std::vector<NamedTensor> parse_arrays(std::span<const std::byte> bytes,
                                                    const std::string& name,
                                                    const ArrayFilter& wanted = {});

enum class Compression : std::uint8_t { kStored, kDeflated };

// The contents of a file as numpy.save and numpy.savez (savez_compressed) write it, row-major and
// little-endian. Floating entries are rounded to the element type; bfloat16, which numpy lacks, is
// written as uint16 bits.
[[nodiscard]] std::vector<std::byte> write_npy(const Tensor& tensor);
[[nodiscard]] std::vector<std::byte> write_npz(std::span<const NamedTensor> arrays,
                                               Compression compression = Compression::kStored);

}  // namespace lipscope
