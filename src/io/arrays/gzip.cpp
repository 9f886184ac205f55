// SPDX-License-Identifier: Apache-2.0
#include "io/arrays/gzip.h"

#define ZLIB_CONST
#include <zlib.h>

#include <limits>
#include <memory>

#include "base/check.h"
#include "base/memory_budget.h"

namespace lipscope {
namespace {

constexpr std::string_view kGzipMagic = "\x1f\x8b";
constexpr int kRawWindow = -MAX_WBITS;
constexpr int kGzipWindow = 16 + MAX_WBITS;
constexpr std::size_t kFirstBlock = std::size_t{64} << 10U;

// zlib counts in unsigned int.
uInt clamp_to_uint(std::uint64_t count) {
  return static_cast<uInt>(std::min<std::uint64_t>(count, std::numeric_limits<uInt>::max()));
}

const Bytef* zlib_pointer(const std::byte* at) { return reinterpret_cast<const Bytef*>(at); }
Bytef* zlib_pointer(std::byte* at) { return reinterpret_cast<Bytef*>(at); }

// One zlib stream; it frees what zlib allocated. One user at a time.
class Inflater {
 public:
  explicit Inflater(int window_bits) {
    if (inflateInit2(&stream_, window_bits) != Z_OK) throw std::bad_alloc();
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }

  // Appends the stream that `bytes` begins with to `out`, which may grow to `max_bytes`, and
  // returns how many bytes of input it took.
  std::size_t run(Bytes bytes, std::vector<std::byte>& out, std::uint64_t max_bytes,
                  const std::string& name) {
    std::size_t taken = 0;
    std::size_t filled = out.size();
    for (int status = Z_OK; status != Z_STREAM_END;) {
      // One byte beyond the limit tells a stream that ends there from one that goes on.
      if (filled == out.size()) {
        const std::uint64_t next =
            std::min(out.size() + std::max(kFirstBlock, out.size() / 2), max_bytes + 1);
        require_memory(static_cast<double>(next), name + ": what it unpacks to");
        out.reserve(static_cast<std::size_t>(next));  // resize would ask for more
        out.resize(static_cast<std::size_t>(next));
      }
      stream_.next_in = zlib_pointer(bytes.data() + taken);
      stream_.avail_in = clamp_to_uint(bytes.size() - taken);
      stream_.next_out = zlib_pointer(out.data() + filled);
      stream_.avail_out = clamp_to_uint(out.size() - filled);
      status = inflate(&stream_, Z_NO_FLUSH);
      taken = static_cast<std::size_t>(stream_.next_in - zlib_pointer(bytes.data()));
      filled = static_cast<std::size_t>(stream_.next_out - zlib_pointer(out.data()));
      if (filled > max_bytes) {
        bad_file(name,
                 "unpacks to more than {} bytes, from {}; unpack it first or check what it holds",
                 max_bytes, bytes.size());
      }
      const bool stuck = taken == bytes.size() && stream_.avail_out > 0;
      if (status == Z_BUF_ERROR || (status == Z_OK && stuck)) {
        bad_file(name, "truncated compressed data; copy or save the file again");
      }
      if (status == Z_MEM_ERROR) throw std::bad_alloc();
      if (status != Z_OK && status != Z_STREAM_END) {
        bad_file(name, "damaged compressed data ({}); copy or save the file again",
                 stream_.msg != nullptr ? stream_.msg : "a preset dictionary is needed");
      }
    }
    out.resize(filled);
    return taken;
  }

 private:
  z_stream stream_{};
};

bool all_zero(Bytes bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace

std::optional<std::vector<std::byte>> gunzip_if_gzip(Bytes bytes, const std::string& name,
                                                     std::uint64_t max_bytes) {
  if (!starts_with(bytes, kGzipMagic)) return std::nullopt;
  std::vector<std::byte> out;
  while (!bytes.empty()) {
    if (!starts_with(bytes, kGzipMagic)) {
      // Tapes and some download tools pad with zeros.
      if (all_zero(bytes)) break;
      bad_file(name, "{} bytes after the end of the gzip data; copy or save the file again",
               bytes.size());
    }
    bytes = bytes.subspan(Inflater(kGzipWindow).run(bytes, out, max_bytes, name));
  }
  return out;
}

std::vector<std::byte> inflate_raw(Bytes bytes, std::uint64_t size, const std::string& name) {
  // No deflate data unpacks to more than 1032 times its size.
  if (size / 1040 > bytes.size()) {
    bad_file(name, "{} compressed bytes cannot hold the {} the directory says; save it again",
             bytes.size(), size);
  }
  std::vector<std::byte> out;
  const std::size_t taken = Inflater(kRawWindow).run(bytes, out, size, name);
  if (out.size() != size || taken != bytes.size()) {
    bad_file(name, "unpacks to {} bytes where the directory says {}; save it again", out.size(),
             size);
  }
  return out;
}

std::vector<std::byte> deflate_bytes(Bytes bytes, DeflateFormat format) {
  z_stream stream{};
  const int window = format == DeflateFormat::kRaw ? kRawWindow : kGzipWindow;
  constexpr int kMemoryLevel = 8;
  LIPSCOPE_CHECK(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, window, kMemoryLevel,
                              Z_DEFAULT_STRATEGY) == Z_OK);
  const std::unique_ptr<z_stream, int (*)(z_stream*)> cleanup(&stream, deflateEnd);
  std::vector<std::byte> out(deflateBound(&stream, bytes.size()));
  LIPSCOPE_CHECK(bytes.size() <= std::numeric_limits<uInt>::max() &&
                 out.size() <= std::numeric_limits<uInt>::max());
  stream.next_in = zlib_pointer(bytes.data());
  stream.avail_in = clamp_to_uint(bytes.size());
  stream.next_out = zlib_pointer(out.data());
  stream.avail_out = clamp_to_uint(out.size());
  LIPSCOPE_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(out.size() - stream.avail_out);
  return out;
}

}  // namespace lipscope
