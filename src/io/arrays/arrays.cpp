// SPDX-License-Identifier: Apache-2.0
#include "lipscope/arrays.h"

#include <numeric>
#include <optional>

#include "io/arrays/formats.h"
#include "io/arrays/gzip.h"
#include "io/input_file.h"

namespace lipscope {
namespace {

constexpr std::size_t kLongestGuess = 100;  // guessing takes the square of it in time

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

[[noreturn]] void no_such_array(const std::string& name, const std::string& key,
                                const std::vector<std::string>& names) {
  if (names.empty()) bad_file(name, "holds no arrays; save some with numpy.savez");
  const std::string* nearest = nullptr;
  std::size_t distance = key.size() / 3 + 2;
  for (const std::string& candidate : names) {
    if (std::max(key.size(), candidate.size()) > kLongestGuess) continue;
    const std::size_t d = edit_distance(key, candidate);
    if (d < distance) {
      distance = d;
      nearest = &candidate;
    }
  }
  const std::string guess =
      nearest != nullptr ? fmt::format("did you mean {}? ", in_quotes(*nearest)) : std::string();
  bad_file(name, "no array {}; {}it has {}", in_quotes(key), guess, listed(names));
}

std::vector<NamedTensor> single(Tensor tensor) {
  std::vector<NamedTensor> one;
  one.push_back({"", std::move(tensor)});
  return one;
}

std::vector<NamedTensor> parse_unpacked(Bytes bytes, const std::string& name,
                                        const ArrayFilter& wanted) {
  if (bytes.empty()) bad_file(name, "is empty; give a file that holds an array");
  if (is_npy(bytes)) return single(parse_npy(bytes, name));
  if (is_zip(bytes)) return parse_npz(bytes, name, wanted);
  if (is_exact_idx(bytes)) return single(parse_idx(bytes, name));
  if (is_cifar(bytes)) return parse_cifar(bytes, name);
  if (is_idx(bytes)) return single(parse_idx(bytes, name));
  const std::string_view foreign = describe_foreign(bytes);
  if (!foreign.empty()) {
    bad_file(name, "{}, not an array; give .npy, .npz, idx, csv or CIFAR-10 records, plain or gzip",
             foreign);
  }
  return single(parse_csv(bytes, name));
}

// The file with its gzip wrapping, if any, taken off.
std::vector<std::byte> read_unpacked(const std::string& file) {
  std::vector<std::byte> bytes = read_file(file);
  std::optional<std::vector<std::byte>> unpacked = gunzip_if_gzip(bytes, display_name(file));
  return unpacked ? std::move(*unpacked) : std::move(bytes);
}

Tensor array_under_key(Bytes bytes, const std::string& name, const std::string& key) {
  std::vector<NamedTensor> arrays =
      parse_unpacked(bytes, name, [&](const std::string& member) { return member == key; });
  std::vector<std::string> names;
  for (NamedTensor& array : arrays) {
    if (array.name == key) return std::move(array.tensor);
    names.push_back(array.name);
  }
  if (names == std::vector<std::string>{""}) {
    throw Error(ErrorCode::kUsage, fmt::format("{}: holds one array without a name; leave out {}",
                                               name, in_quotes(":" + key)));
  }
  no_such_array(name, key, is_zip(bytes) ? npz_names(bytes, name) : names);
}

Tensor only_array(Bytes bytes, const std::string& file) {
  const std::string name = display_name(file);
  if (is_zip(bytes)) {
    const std::vector<std::string> names = npz_names(bytes, name);
    if (names.empty()) bad_file(name, "holds no arrays; save some with numpy.savez");
    if (names.size() > 1) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("{}: holds {} arrays ({}); say which one, as in '{}:{}'", name,
                              names.size(), listed(names), file, printable(names.front())));
    }
  }
  return std::move(parse_unpacked(bytes, name, {}).front().tensor);
}

}  // namespace

std::vector<NamedTensor> parse_arrays(std::span<const std::byte> bytes, const std::string& name,
                                      const ArrayFilter& wanted) {
  const std::optional<std::vector<std::byte>> unpacked = gunzip_if_gzip(bytes, name);
  return parse_unpacked(unpacked ? Bytes(*unpacked) : bytes, name, wanted);
}

std::vector<NamedTensor> read_arrays(const std::string& path, const ArrayFilter& wanted) {
  const ArrayPath where = split_array_path(path);
  const std::vector<std::byte> bytes = read_unpacked(where.file);
  const std::string name = display_name(where.file);
  if (!where.key) return parse_unpacked(bytes, name, wanted);
  std::vector<NamedTensor> one = single(array_under_key(bytes, name, *where.key));
  one.front().name = *where.key;
  return one;
}

Tensor read_array(const std::string& path) {
  const ArrayPath where = split_array_path(path);
  const std::vector<std::byte> bytes = read_unpacked(where.file);
  if (!where.key) return only_array(bytes, where.file);
  return array_under_key(bytes, display_name(where.file), *where.key);
}

}  // namespace lipscope
