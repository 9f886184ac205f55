// SPDX-License-Identifier: Apache-2.0
#include "labelled_data.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "base/sha256.h"
#include "files.h"
#include "io/input_file.h"
#include "lipscope/error.h"
#include "number_flags.h"

namespace lipscope::app {
namespace {

[[noreturn]] void bad(const std::string& path, const std::string& what) {
  throw Error(ErrorCode::kBadFile, fmt::format("{}: {}", path, what));
}

std::vector<Index> to_labels(const Tensor& tensor, const std::string& path) {
  std::vector<Index> labels;
  for (Index i = 0; i < tensor.size(); ++i) {
    const double value = tensor.at(i);
    if (!(value >= 0) || value != std::floor(value) || value > 1e9) {
      bad(path, fmt::format("label {} is {}; labels are whole numbers counted from 0", i, value));
    }
    labels.push_back(static_cast<Index>(value));
  }
  return labels;
}

// `size`: entries of a sample.
void require_one_each(const std::vector<Index>& labels, Index count, Index size,
                      const DataFlags& flags) {
  const Index given = std::ssize(labels);
  if (given == count) return;
  std::string why;
  if (given > count && given % count == 0 && std::ranges::max(labels) <= 1)
    why = "; one-hot rows? a label is the number of its class, counted from 0";
  throw Error(
      ErrorCode::kShape,
      fmt::format("{} samples of {} entries in {} but {} labels in {}{}", count, size, flags.data,
                  given, flags.labels.empty() ? flags.data : flags.labels, why));
}

// The labels among the arrays of the data file, taken out of them.
std::vector<Index> labels_beside(std::vector<NamedTensor>& arrays, const std::string& path) {
  for (auto it = arrays.begin(); it != arrays.end(); ++it) {
    if (it->name != "labels") continue;
    std::vector<Index> labels = to_labels(it->tensor, path);
    arrays.erase(it);
    return labels;
  }
  return {};
}

// [channels, height, width] of a sample of that many entries, from the shape of the array.
Shape image_shape(const Shape& shape, Index size) {
  const auto fits = [&](const Shape& image) {
    return element_count(image) == size && (image[0] == 1 || image[0] == 3) && image[1] >= 4 &&
           image[2] >= 4 && image[1] <= 64 && image[2] <= 64;
  };
  if (shape.size() >= 3) {
    const Shape last(shape.end() - 3, shape.end());
    if (fits(last)) return last;
    const Shape grey{1, shape[shape.size() - 2], shape.back()};
    if (fits(grey)) return grey;
  }
  const auto side = static_cast<Index>(std::lround(std::sqrt(static_cast<double>(size))));
  const Shape square{1, side, side};
  return fits(square) ? square : Shape{};
}

// Bytes of pictures are meant as they are, or as numbers up to 1: nobody can tell from the file.
// The bits of a bfloat16 input, truth values and what a model takes as whole numbers are what they
// are.
void require_scale(const OnnxModel& model, const std::vector<NamedTensor>& arrays,
                   const DataFlags& flags) {
  if (!flags.scale.empty()) return;
  const bool real_input = std::ranges::any_of(
      model.inputs(), [](const ModelInput& input) { return is_floating(input.type); });
  for (const NamedTensor& array : arrays) {
    const ElementType type = array.tensor.type();
    if (!real_input || is_floating(type) || type == ElementType::kBool) continue;
    const bool bits =
        type == ElementType::kUInt16 && model.inputs()[0].type == ElementType::kBFloat16;
    if (bits) continue;
    throw Error(ErrorCode::kUsage,
                fmt::format("{} holds {} and the model takes real numbers: say how they are "
                            "scaled, --scale 1/255 for pixels in [0, 1], or --scale 1 if the "
                            "numbers are meant as they are",
                            flags.data, to_string(type)));
  }
}

// Of a file as it is on disk; of what was read from elsewhere.
std::string digest_of_file(const std::string& path, std::span<const std::byte> read) {
  const std::string file = split_array_path(path).file;
  if (!std::filesystem::is_regular_file(file)) return sha256(read);
  return sha256(read_file(file, std::size_t{1} << 40U));
}

template <class Entries>
Range range_of(const Entries& entries) {
  const auto [low, high] = std::ranges::minmax_element(entries);
  return {*low, *high};
}

// The samples that this run looks at, of those that were read.
void keep_shard(LabelledData& data, const DataFlags& flags) {
  const Shard shard = parse_shard(flags.shard);
  const Index end = flags.limit > 0 ? std::min(data.count, flags.limit) : data.count;
  data.count = 0;
  for (Index s = shard.part - 1; s < end; s += shard.of, ++data.count) {
    // In place: no sample moves to the right.
    if (s > data.count)
      std::copy_n(data.points.begin() + s * data.size, data.size,
                  data.points.begin() + data.count * data.size);
    data.labels[static_cast<std::size_t>(data.count)] = data.labels[static_cast<std::size_t>(s)];
    data.indices.push_back(s);
  }
  if (data.count == 0)
    throw Error(ErrorCode::kUsage, fmt::format("--shard {}: there are only {} samples, so this "
                                               "part has none",
                                               flags.shard, end));
  data.points.resize(static_cast<std::size_t>(data.count * data.size));
  data.points.shrink_to_fit();
  data.labels.resize(static_cast<std::size_t>(data.count));
}

void normalise(LabelledData& data, const DataFlags& flags) {
  if (flags.mean.empty() && flags.std.empty()) return;
  const std::size_t channels = std::max<std::size_t>({1, flags.mean.size(), flags.std.size()});
  const auto pick = [&](const std::vector<double>& list, std::size_t c, double none) {
    if (list.empty()) return none;
    return list.size() == 1 ? list[0] : list[c];
  };
  for (const auto* list : {&flags.mean, &flags.std}) {
    if (std::ranges::any_of(*list, [](double x) { return !std::isfinite(x); }))
      throw Error(ErrorCode::kUsage, "--mean and --std take finite numbers");
    if (list->size() > 1 && list->size() != channels)
      throw Error(ErrorCode::kUsage, "--mean and --std need as many numbers each");
  }
  if (std::ranges::any_of(flags.std, [](double s) { return !(s > 0); }))
    throw Error(ErrorCode::kUsage, "--std takes positive numbers");
  if (data.size % static_cast<Index>(channels) != 0) {
    throw Error(ErrorCode::kUsage,
                fmt::format("--mean or --std has {} numbers, which do not divide "
                            "the {} entries of a sample",
                            channels, data.size));
  }
  const std::size_t size = static_cast<std::size_t>(data.size), plane = size / channels;
  for (std::size_t e = 0; e < data.points.size(); ++e) {
    const std::size_t c = e % size / plane;
    data.points[e] = (data.points[e] - pick(flags.mean, c, 0)) / pick(flags.std, c, 1);
  }
}

}  // namespace

void DataFlags::declare(CLI::App& app) {
  reads_file(
      app.add_option("--data", data, "samples: .npy, .npz, idx, CIFAR records or csv, also gzip"))
      ->required()
      ->type_name("FILE");
  reads_file(app.add_option("--labels", labels,
                            "their classes, counted from 0 (CIFAR records bring them)"))
      ->type_name("FILE");
  app.add_option("--scale", scale,
                 "multiply the data by this; has to be said for integers: 1/255, or 1 if they are "
                 "meant as they are")
      ->type_name("F");
  takes_numbers(
      app.add_option("--mean", mean, "subtract this after scaling, one number or one per channel"))
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("M,...");
  takes_numbers(
      app.add_option("--std", std, "then divide by this; radii are in units of the result"))
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("S,...");
  takes_whole(app.add_option("--limit", limit, "only the first N samples"))
      ->check(CLI::Range(Index{1}, Index{1} << 40))
      ->type_name("N");
  app.add_option("--shard", shard,
                 "only every N-th sample from the I-th, counted from 1: a part of the work for one "
                 "of N jobs; 'merge' joins the results")
      ->type_name("I/N");
}

Shard parse_shard(const std::string& text) {
  if (text.empty()) return {};
  Shard shard{0, 0};
  const char* end = text.data() + text.size();
  const auto part = std::from_chars(text.data(), end, shard.part);
  if (part.ec == std::errc() && part.ptr != end && *part.ptr == '/') {
    const auto of = std::from_chars(part.ptr + 1, end, shard.of);
    if (of.ec == std::errc() && of.ptr == end && shard.part >= 1 && shard.part <= shard.of)
      return shard;
  }
  throw Error(ErrorCode::kUsage,
              fmt::format("--shard '{}': expected I/N with I from 1 to N, for example 1/4", text));
}

LabelledData read_labelled(const OnnxModel& model, const DataFlags& flags) {
  (void)parse_shard(flags.shard);
  std::vector<NamedTensor> arrays = read_arrays(flags.data);
  LabelledData result;
  result.scale = flags.scale.empty() ? 1 : parse_scale(flags.scale);
  result.labels = labels_beside(arrays, flags.data);
  if (!flags.labels.empty()) {
    const Tensor read = read_array(flags.labels);
    result.labels = to_labels(read, flags.labels);
    result.labels_sha256 = digest_of_file(flags.labels, std::as_bytes(std::span(result.labels)));
  } else if (result.labels.empty()) {
    throw Error(ErrorCode::kUsage,
                fmt::format("{} holds no labels; give --labels FILE", flags.data));
  }
  for (const NamedTensor& array : arrays) {
    if (array.tensor.size() == 0)
      bad(flags.data, "holds no samples; a run needs one at least, and its label");
  }
  require_scale(model, arrays, flags);
  if (arrays.size() == 1) arrays[0].name.clear();
  const Samples samples = match_samples(model, arrays, result.scale);
  const Shape shape = arrays.size() == 1 ? arrays[0].tensor.shape() : Shape{};
  arrays.clear();  // they are as large as the samples
  result.options = samples.options;
  result.options.known.clear();
  result.count = samples.count;
  for (const auto& [name, why] : samples.misfits)
    throw Error(ErrorCode::kShape, fmt::format("{}: {}", flags.data, why));
  for (const ModelInput& input : model.inputs()) {
    const Tensor& tensor = samples.inputs.at(input.name);
    result.size += tensor.size() / samples.count;
  }
  require_one_each(result.labels, samples.count, result.size, flags);
  result.in_file = result.count;
  result.points.reserve(static_cast<std::size_t>(result.count * result.size));
  for (Index s = 0; s < result.count; ++s) {
    for (const ModelInput& input : model.inputs()) {
      const Tensor& entries = samples.inputs.at(input.name);
      const Index n = entries.size() / samples.count;
      for (Index i = 0; i < n; ++i) result.points.push_back(entries.at(s * n + i));
    }
  }
  const auto wrong =
      std::ranges::find_if_not(result.points, [](double x) { return std::isfinite(x); });
  if (wrong != result.points.end()) {
    const Index place = wrong - result.points.begin();
    bad(flags.data,
        fmt::format("sample {} holds {} at entry {}; every entry has to be a finite number",
                    place / result.size, *wrong, place % result.size));
  }
  if (!shape.empty()) result.image = image_shape(shape, result.size);
  result.scaled = range_of(result.points);
  result.whole = std::ranges::all_of(result.points, [](double x) { return x == std::floor(x); });
  result.sha256 = digest_of_file(flags.data, std::as_bytes(std::span(result.points)));
  normalise(result, flags);
  result.entries = range_of(result.points);
  keep_shard(result, flags);
  return result;
}

void require_classes(const LabelledData& data, Index classes, const std::string& path) {
  for (std::size_t i = 0; i < data.labels.size(); ++i) {
    if (data.labels[i] < classes) continue;
    const auto [low, high] = std::ranges::minmax_element(data.labels);
    bad(path, fmt::format("label {} is {}, but the model has {} classes, counted from 0{}", i,
                          data.labels[i], classes,
                          *low >= 1 && *high == classes ? "; these seem to count from 1" : ""));
  }
}

}  // namespace lipscope::app
