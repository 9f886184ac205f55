// SPDX-License-Identifier: Apache-2.0
// The .npy format, versions 1 to 3: magic, header length, a Python dict as text, packed entries.
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#include <array>
#include <charconv>
#include <optional>

#include "io/arrays/entries.h"
#include "io/arrays/formats.h"

namespace lipscope {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMaxDimensions = 64;

struct NumpyType {
  std::string_view code;
  ElementType type;
};
constexpr std::array<NumpyType, 12> kTypes = {{{"f2", ElementType::kFloat16},
                                               {"f4", ElementType::kFloat32},
                                               {"f8", ElementType::kFloat64},
                                               {"i1", ElementType::kInt8},
                                               {"i2", ElementType::kInt16},
                                               {"i4", ElementType::kInt32},
                                               {"i8", ElementType::kInt64},
                                               {"u1", ElementType::kUInt8},
                                               {"u2", ElementType::kUInt16},
                                               {"u4", ElementType::kUInt32},
                                               {"u8", ElementType::kUInt64},
                                               {"b1", ElementType::kBool}}};

struct Header {
  std::optional<ElementType> type;
  std::endian order = std::endian::little;
  std::optional<Layout> layout;
  std::optional<Shape> shape;
};

std::string_view kind_of(char code) {
  switch (code) {
    case 'O': return "Python objects";
    case 'S':
    case 'a':
    case 'U': return "strings";
    case 'c': return "complex numbers";
    case 'M':
    case 'm': return "dates";
    case 'V': return "raw or structured records (bfloat16: save its bits as uint16)";
    case 'f': return "floating-point numbers of another width";
    default: return "entries of another type";
  }
}

// Reads {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } and nothing more general.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  Header parse() {
    Header header;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = string();
      expect(':');
      if (key == "descr") {
        parse_type(header);
      } else if (key == "fortran_order") {
        header.layout = boolean() ? Layout::kColumnMajor : Layout::kRowMajor;
      } else if (key == "shape") {
        header.shape = tuple();
      } else {
        fail();
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (!text_.empty() || !header.type || !header.layout || !header.shape) fail();
    return header;
  }

 private:
  [[noreturn]] void fail() const { bad_file(name_, "damaged .npy header; save the array again"); }

  void skip_space() {
    text_.remove_prefix(std::min(text_.find_first_not_of(" \t\r\n"), text_.size()));
  }
  bool accept(std::string_view token) {
    skip_space();
    if (!text_.starts_with(token)) return false;
    text_.remove_prefix(token.size());
    return true;
  }
  bool accept(char token) { return accept(std::string_view(&token, 1)); }
  void expect(char token) {
    if (!accept(token)) fail();
  }

  std::string_view string() {
    const char quote = accept('\'') ? '\'' : '"';
    if (quote == '"') expect('"');
    const std::size_t end = text_.find(quote);
    if (end == std::string_view::npos) fail();
    const std::string_view content = text_.substr(0, end);
    text_.remove_prefix(end + 1);
    return content;
  }

  bool boolean() {
    if (accept("True")) return true;
    if (!accept("False")) fail();
    return false;
  }

  Shape tuple() {
    Shape shape;
    expect('(');
    while (!accept(')')) {
      shape.push_back(integer());
      if (shape.size() > kMaxDimensions) {
        bad_file(name_, "more than {} dimensions; reshape the array", kMaxDimensions);
      }
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return shape;
  }

  Index integer() {
    skip_space();
    Index value = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (error == std::errc::result_out_of_range) {
      bad_file(name_, "the shape in its header is impossible; save the array again");
    }
    if (error != std::errc()) fail();
    text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
    accept('L');  // Python 2 wrote long integers so.
    return value;
  }

  void parse_type(Header& header) {
    skip_space();
    if (text_.starts_with('[') || text_.starts_with('(')) {
      unsupported_file(name_, "holds structured records; save each field as an array of its own");
    }
    std::string_view code = string();
    if (code.starts_with('>')) header.order = std::endian::big;
    if (code.find_first_of("<>|=") == 0) code.remove_prefix(1);
    for (const NumpyType& known : kTypes) {
      if (known.code == code) header.type = known.type;
    }
    if (header.type) return;
    if (code.empty()) fail();
    unsupported_file(name_,
                     "holds {} (dtype {}); convert the array to a numeric type, such as "
                     "float32, before saving it",
                     kind_of(code.front()), in_quotes(code, 20));
  }

  std::string_view text_;
  const std::string& name_;
};

}  // namespace

bool is_npy(Bytes bytes) { return starts_with(bytes, kMagic); }

Tensor parse_npy(Bytes bytes, const std::string& name) {
  ByteReader reader(bytes, name, ".npy header");
  if (!is_npy(bytes)) bad_file(name, "not a .npy file; save the array with numpy.save");
  reader.take(kMagic.size());
  const auto major = reader.number<std::uint8_t>();
  const auto minor = reader.number<std::uint8_t>();
  if (major < 1 || major > 3) {
    unsupported_file(name, ".npy version {}.{}; save the array with numpy.save", major, minor);
  }
  const std::uint32_t length =
      major == 1 ? reader.number<std::uint16_t>() : reader.number<std::uint32_t>();
  Header header = HeaderParser(as_text(reader.take(length)), name).parse();
  require_packed_bytes(*header.type, *header.shape, reader.remaining(), name);
  return decode_entries(reader.rest(), *header.type, std::move(*header.shape), header.order,
                        *header.layout);
}

std::vector<std::byte> write_npy(const Tensor& tensor) {
  // numpy has no bfloat16.
  const ElementType type =
      tensor.type() == ElementType::kBFloat16 ? ElementType::kUInt16 : tensor.type();
  std::string_view code;
  for (const NumpyType& known : kTypes) {
    if (known.type == type) code = known.code;
  }
  std::string shape;
  for (const Index dimension : tensor.shape()) shape += fmt::format("{}, ", dimension);
  if (tensor.shape().size() > 1) shape.resize(shape.size() - 2);
  std::string header = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                   element_bytes(type) == 1 ? '|' : '<', code, shape);
  // The entries begin at a multiple of 64, after a newline.
  constexpr std::size_t kAlignment = 64;
  const std::size_t before = kMagic.size() + 4;
  header.append(kAlignment - 1 - (before + header.size()) % kAlignment, ' ');
  header += '\n';

  std::string head(kMagic);
  head += {'\x01', '\x00', static_cast<char>(header.size() & 0xffU),
           static_cast<char>(header.size() >> 8U)};
  head += header;
  std::vector<std::byte> out;
  for (const char c : head) out.push_back(static_cast<std::byte>(c));
  const std::vector<std::byte> entries = encode_entries(tensor);
  out.insert(out.end(), entries.begin(), entries.end());
  return out;
}

}  // namespace lipscope
