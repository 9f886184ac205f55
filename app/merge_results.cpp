// SPDX-License-Identifier: Apache-2.0
#include "merge_results.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "certify_table.h"
#include "lipscope/error.h"
#include "report/form.h"

namespace lipscope::app {
namespace {

// A kind of result that is a list of samples.
struct Kind {
  std::string_view schema;
  // Fields that have to be the same, as JSON pointers; a missing field is the same as a missing
  // one.
  std::vector<std::string> question;
  // What follows from all samples together, in a document that has the fields of the first result
  // and the samples of all.
  std::function<void(const std::vector<NamedResult>&, Json&)> summarise;
};

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::kBadFile, message); }

const Json* field(const Json& document, const std::string& pointer) {
  const nlohmann::ordered_json::json_pointer place(pointer);
  return document.contains(place) ? &document.at(place) : nullptr;
}

void require_same(const Kind& kind, const NamedResult& a, const NamedResult& b) {
  for (const std::string& pointer : kind.question) {
    const Json *x = field(a.document, pointer), *y = field(b.document, pointer);
    const bool same = x == nullptr || y == nullptr ? x == y : to_text(*x) == to_text(*y);
    if (same) continue;
    std::string name = pointer.substr(1);
    std::ranges::replace(name, '/', '.');
    throw Error(ErrorCode::kUsage,
                fmt::format("{} and {} are results of different questions: {} differs", a.name,
                            b.name, name));
  }
}

// By index. Throws where one is there twice.
std::map<Index, Json> joined_samples(const std::vector<NamedResult>& results) {
  std::map<Index, Json> samples;
  std::map<Index, std::string> from;
  for (const NamedResult& result : results) {
    for (const Json& row : result.document.at("samples")) {
      const Index index = row.at("index").get<Index>();
      if (!samples.emplace(index, row).second)
        refuse(fmt::format("{}: sample {} is in {}, too; give every part once", result.name, index,
                           from[index]));
      from[index] = result.name;
    }
  }
  return samples;
}

// Indices that are not there, the first few of them, and how many.
struct Missing {
  Index count = 0;
  std::vector<Index> first;
};

Missing missing_samples(const std::map<Index, Json>& samples, const Json& document) {
  Missing missing;
  const Json* in_file = field(document, "/data/count");
  const Json* limit = field(document, "/data/limit");
  if (in_file == nullptr) return missing;
  Index end = in_file->get<Index>();
  if (limit != nullptr && limit->is_number()) end = std::min(end, limit->get<Index>());
  if (!samples.empty() && samples.rbegin()->first >= end)
    refuse(fmt::format("sample {} is beyond the {} samples of the data", samples.rbegin()->first,
                       end));
  for (Index s = 0; s < end; ++s) {
    if (samples.contains(s)) continue;
    ++missing.count;
    if (missing.first.size() < 5) missing.first.push_back(s);
  }
  return missing;
}

std::string_view worst_outcome(const std::vector<NamedResult>& results) {
  constexpr std::array<std::string_view, 4> kWorst = {"interrupted", "memory-limit", "time-limit",
                                                      "finished"};
  for (const std::string_view outcome : kWorst) {
    for (const NamedResult& result : results) {
      if (result.document.value("outcome", std::string()) == outcome) return outcome;
    }
  }
  return "finished";
}

// Every constant is proved, so the least of each pair counts.
Json least_margins(const std::vector<NamedResult>& results) {
  Json least = results[0].document.value("margins", Json::array());
  const auto value = [](const Json& row) {
    const Json& upper = row.at("upper").at("value");
    return upper.is_number() ? upper.get<double>() : HUGE_VAL;
  };
  for (const NamedResult& result : results) {
    const Json other = result.document.value("margins", Json::array());
    for (std::size_t k = 0; k < std::min(least.size(), other.size()); ++k) {
      if (value(other[k]) < value(least[k])) least[k] = other[k];
    }
  }
  return least;
}

void join_images(const std::vector<NamedResult>& results, const CertifyTable& table,
                 Json& document) {
  if (!document.contains("images")) return;
  std::map<Index, Json> all;
  for (const NamedResult& result : results) {
    if (!result.document.contains("images")) continue;
    for (const Json& image : result.document.at("images").at("samples"))
      all.emplace(image.at("index").get<Index>(), image);
  }
  Json shown = Json::array();
  for (const std::size_t k : rows_to_show(table)) {
    if (const auto found = all.find(table.rows[k].index); found != all.end())
      shown.push_back(found->second);
  }
  document["images"]["samples"] = std::move(shown);
}

std::vector<std::string> joined_hints(const std::vector<NamedResult>& results,
                                      const CertifyTable& table, const Json& document) {
  std::vector<std::string> hints;
  const Json* range = field(document, "/data/range");
  const double high = range != nullptr && (*range)[1].is_number() ? (*range)[1].get<double>() : 0;
  if (const std::string hint = chance_hint(table, high); !hint.empty()) hints.push_back(hint);
  for (const NamedResult& result : results) {
    for (const std::string hint : result.document.value("hints", Json::array())) {
      // Those about the accuracy are about a part.
      if (!hint.starts_with("clean accuracy ") && std::ranges::find(hints, hint) == hints.end())
        hints.push_back(hint);
    }
  }
  return hints;
}

void summarise_certify(const std::vector<NamedResult>& results, Json& document) {
  CertifyTable table = table_of(document);
  for (const SampleRow& row : table.rows) {
    if (row.label < 0 || row.label >= table.classes)
      refuse(fmt::format("sample {} has label {}, but there are {} classes", row.index, row.label,
                         table.classes));
    if (row.attack_radius && *row.attack_radius < row.radius)
      refuse(fmt::format("sample {} has another class at distance {}, within its radius of {}",
                         row.index, *row.attack_radius, row.radius));
    if (!row.right() && row.radius > 0)
      refuse(fmt::format("sample {} has a radius of {}, but its class is not that of its label",
                         row.index, row.radius));
  }
  add_table(table, document);
  if (document.contains("margins")) document["margins"] = least_margins(results);
  join_images(results, table, document);
  document["hints"] = joined_hints(results, table, document);
  for (const char* name : {"seconds", "seconds_constants"}) {
    double sum = 0;
    for (const NamedResult& result : results) sum += result.document.value(name, 0.0);
    document[name] = sum;
  }
}

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> list = {
      {"lipscope.certify/1",
       {"/model/sha256", "/data/sha256", "/data/labels/sha256", "/data/count", "/data/limit",
        "/data/scale", "/data/mean", "/data/std", "/output", "/norm", "/scope", "/options",
        "/inference", "/accumulate", "/subnormals", "/squash", "/dropped", "/required/radius",
        "/required/accuracy"},
       summarise_certify}};
  return list;
}

const Kind& kind_of(const NamedResult& result) {
  const std::string schema =
      result.document.is_object() ? result.document.value("schema", std::string()) : std::string();
  const auto found = std::ranges::find(kinds(), schema, &Kind::schema);
  if (found != kinds().end()) return *found;
  std::vector<std::string_view> known;
  for (const Kind& kind : kinds()) known.push_back(kind.schema);
  refuse(fmt::format("{}: not a result that can be merged; there are {}", result.name,
                     fmt::join(known, ", ")));
}

std::vector<double> radii_of(const Json& document) {
  std::vector<double> radii;
  for (const Json& row : document.at("certified")) radii.push_back(row.at("radius").get<double>());
  return radii;
}

}  // namespace

Json merge_results(const std::vector<NamedResult>& results, bool partial) {
  const Kind& kind = kind_of(results[0]);
  for (const NamedResult& result : results) {
    (void)kind_of(result);
    check_result_form(JsonValue(result.document, result.name));
    if (&kind_of(result) != &kind)
      throw Error(ErrorCode::kUsage, fmt::format("{} and {} are results of different commands",
                                                 results[0].name, result.name));
    require_same(kind, results[0], result);
    if (radii_of(result.document) != radii_of(results[0].document))
      throw Error(ErrorCode::kUsage,
                  fmt::format("{} and {} are results of different questions: radii differ",
                              results[0].name, result.name));
  }
  const std::map<Index, Json> samples = joined_samples(results);
  Json document = results[0].document;
  const Missing missing = missing_samples(samples, document);
  if (missing.count > 0 && !partial)
    refuse(
        fmt::format("{} samples are in no result, first {}; give the other parts, too, or "
                    "--partial",
                    missing.count, fmt::join(missing.first, ", ")));
  document.erase("shard");
  document["samples"] = Json::array();
  for (const auto& [index, row] : samples) document["samples"].push_back(row);
  document["outcome"] = worst_outcome(results);
  kind.summarise(results, document);
  if (missing.count > 0) document["missing"] = missing.count;
  return document;
}

}  // namespace lipscope::app
