// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "io/arrays/formats.h"

namespace lipscope {
namespace {

struct Magic {
  std::string_view bytes;
  std::string_view description;
};

using namespace std::string_view_literals;

// An ONNX file begins with field 1 (ir_version, a small number) and nearly always with field 2, the
// name of its producer. A Keras 3 file is a zip archive and is told apart by its members.
constexpr std::array kMagics = {
    Magic{"\x80\x02"sv, "a Python pickle"},
    Magic{"\x80\x03"sv, "a Python pickle"},
    Magic{"\x80\x04"sv, "a Python pickle"},
    Magic{"\x80\x05"sv, "a Python pickle"},
    Magic{"\x89HDF\r\n\x1a\n"sv, "an HDF5 file"},
    Magic{"\x89PNG"sv, "a PNG image"},
    Magic{"\xff\xd8\xff"sv, "a JPEG image"},
    Magic{"MATLAB 5.0"sv, "a MATLAB file"},
    Magic{"BZh"sv, "bzip2-compressed data"},
    Magic{"\xfd"
          "7zXZ"sv,
          "xz-compressed data"},
    Magic{"\x28\xb5\x2f\xfd"sv, "zstd-compressed data"},
    Magic{"PAR1"sv, "a Parquet file"},
    Magic{"ARROW1"sv, "an Arrow file"},
    Magic{"\x7f"
          "ELF"sv,
          "a program"},
    Magic{"{"sv, "a JSON file"},
    Magic{"["sv, "a JSON file"},
    Magic{"<"sv, "an HTML or XML file"},
};

bool is_onnx(Bytes bytes) {
  return bytes.size() > 3 && bytes[0] == std::byte{0x08} && bytes[1] <= std::byte{0x20} &&
         (bytes[2] == std::byte{0x12} || bytes[2] == std::byte{0x3a} ||
          bytes[2] == std::byte{0x42});
}

// Eight bytes of header length, then JSON.
bool is_safetensors(Bytes bytes) {
  return bytes.size() > 8 && bytes[7] == std::byte{0} && bytes[8] == std::byte{'{'};
}

bool is_text(Bytes bytes) {
  constexpr std::size_t kLookAt = 4096;
  for (const char c : as_text(bytes.first(std::min(bytes.size(), kLookAt)))) {
    const bool control = static_cast<unsigned char>(c) < ' ';
    if (control && "\t\n\v\f\r"sv.find(c) == std::string_view::npos) return false;
  }
  return true;
}

}  // namespace

std::string_view describe_foreign(Bytes bytes) {
  for (const Magic& magic : kMagics) {
    if (starts_with(bytes, magic.bytes)) return magic.description;
  }
  if (is_onnx(bytes)) return "an ONNX model";
  if (is_safetensors(bytes)) return "a safetensors file";
  return is_text(bytes) ? "" : "binary data of an unknown kind";
}

}  // namespace lipscope
