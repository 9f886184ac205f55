// SPDX-License-Identifier: Apache-2.0
#include "certify_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

namespace lipscope::app {
namespace {

double share(Index part, Index whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

template <class Holds>
Index count_rows(const std::vector<SampleRow>& rows, const Holds& holds) {
  return std::ranges::count_if(rows, holds);
}

// Scatters neighbours.
std::uint64_t scattered(Index index) {
  auto x = static_cast<std::uint64_t>(index) + 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

Json class_json(const CertifyTable& table) {
  Json list = Json::array();
  const std::vector<ClassRow> rows = table.by_class();
  for (std::size_t c = 0; c < rows.size(); ++c) {
    const ClassRow& row = rows[c];
    Json certified = Json::array();
    for (const double radius : table.radii) {
      const auto first = radius == 0 && table.computed
                             ? std::ranges::upper_bound(row.radii, 0.0)
                             : std::ranges::lower_bound(row.radii, radius);
      certified.push_back(share(row.radii.end() - first, row.count));
    }
    list.push_back({{"class", c},
                    {"count", row.count},
                    {"clean_accuracy", share(row.right, row.count)},
                    {"median_radius", median_of(row.radii)},
                    {"median_attack_radius",
                     row.attacks.empty() ? Json(nullptr) : Json(median_of(row.attacks))},
                    {"certified", std::move(certified)}});
  }
  return list;
}

Json row_json(const SampleRow& row) {
  Json json{{"index", row.index},
            {"label", row.label},
            {"predicted", row.predicted},
            {"radius", row.radius},
            {"method", row.method},
            {"attack_radius", row.attack_radius ? Json(*row.attack_radius) : Json(nullptr)},
            {"rival", row.rival ? Json(*row.rival) : Json(nullptr)},
            {"complete", row.complete}};
  if (row.tie) json["tie"] = true;
  return json;
}

double distance_from(const Json& value) {
  return value.is_number() ? value.get<double>() : HUGE_VAL;  // "inf"
}

SampleRow row_from(const Json& json) {
  SampleRow row{.index = json.at("index").get<Index>(),
                .label = json.at("label").get<Index>(),
                .predicted = json.at("predicted").get<Index>(),
                .radius = distance_from(json.at("radius")),
                .method = json.value("method", std::string()),
                .attack_radius = {},
                .rival = {},
                .tie = json.value("tie", false),
                .complete = json.value("complete", true)};
  if (const auto found = json.find("attack_radius"); found != json.end() && !found->is_null())
    row.attack_radius = distance_from(*found);
  if (const auto found = json.find("rival"); found != json.end() && !found->is_null())
    row.rival = found->get<Index>();
  return row;
}

}  // namespace

bool CertifyTable::certified(const SampleRow& row, double radius) const {
  return row.right() && row.radius >= radius && !(computed && !(row.radius > 0));
}

Index CertifyTable::clean() const { return count_rows(rows, &SampleRow::right); }

Index CertifyTable::certified_at(double radius) const {
  return count_rows(rows, [&](const SampleRow& row) { return certified(row, radius); });
}

Index CertifyTable::unbroken_at(double radius) const {
  return count_rows(rows, [&](const SampleRow& row) {
    return row.right() && !(row.attack_radius && *row.attack_radius <= radius);
  });
}

Index CertifyTable::open_at(double radius) const {
  return count_rows(rows, [&](const SampleRow& row) {
    return row.right() && !certified(row, radius) &&
           !(row.attack_radius && *row.attack_radius <= radius);
  });
}

Verdict CertifyTable::verdict() const {
  if (!required) return Verdict::kHolds;
  const double least = required->percent * static_cast<double>(count());
  if (100 * static_cast<double>(certified_at(required->radius)) >= least) return Verdict::kHolds;
  const bool refuted = 100 * static_cast<double>(unbroken_at(required->radius)) < least;
  return refuted && !computed ? Verdict::kFails : Verdict::kOpen;
}

bool CertifyTable::complete() const { return std::ranges::all_of(rows, &SampleRow::complete); }

std::vector<ClassRow> CertifyTable::by_class() const {
  std::vector<ClassRow> list(static_cast<std::size_t>(classes));
  for (const SampleRow& row : rows) {
    ClassRow& own = list[static_cast<std::size_t>(row.label)];
    ++own.count;
    if (!row.right()) continue;
    ++own.right;
    own.radii.push_back(row.radius);
    if (row.attack_radius) own.attacks.push_back(*row.attack_radius);
  }
  for (ClassRow& row : list) {
    std::ranges::sort(row.radii);
    std::ranges::sort(row.attacks);
  }
  return list;
}

double median_of(const std::vector<double>& ascending) {
  return ascending.empty() ? 0 : ascending[(ascending.size() - 1) / 2];
}

std::vector<std::size_t> rows_to_show(const CertifyTable& table) {
  constexpr std::size_t kOfEach = 8;
  std::vector<std::size_t> order;
  for (std::size_t k = 0; k < table.rows.size(); ++k) {
    if (table.rows[k].right()) order.push_back(k);
  }
  std::set<std::size_t> shown;
  const auto first_by = [&](const auto& key) {
    std::ranges::sort(order, {}, [&](std::size_t k) { return std::pair(key(k), k); });
    shown.insert(order.begin(), order.begin() + std::ssize(order) -
                                    std::max<Index>(0, std::ssize(order) - Index{kOfEach}));
  };
  first_by([&](std::size_t k) { return table.rows[k].radius; });
  first_by([&](std::size_t k) { return -table.rows[k].radius; });
  first_by([&](std::size_t k) { return scattered(table.rows[k].index); });
  return {shown.begin(), shown.end()};
}

std::string chance_hint(const CertifyTable& table, double high) {
  // Nothing is known of samples that the time did not suffice for.
  const Index known =
      std::ranges::count_if(table.rows, [](const SampleRow& row) { return row.predicted >= 0; });
  const double accuracy = share(table.clean(), known);
  const double chance = 1 / static_cast<double>(std::max<Index>(1, table.classes));
  if (known < 10 || accuracy > 1.5 * chance) return "";
  const std::string near = fmt::format(
      "clean accuracy {:.1f} % is near chance ({:.1f} %):", 100 * accuracy, 100 * chance);
  if (high > 1.5) {
    return near +
           fmt::format(" the data go up to {:g}; most models want pixels in [0, 1]: --scale 1/255?",
                       high);
  }
  return near +
         " does the model want other scaling (--scale, --mean, --std), another order of the axes, "
         "or are these the labels of other samples?";
}

void add_table(const CertifyTable& table, Json& document) {
  document["count"] = table.count();
  document["clean_accuracy"] = share(table.clean(), table.count());
  document["certified"] = Json::array();
  for (const double radius : table.radii) {
    Json row{
        {"radius", radius},
        {"accuracy", share(table.certified_at(radius), table.count())},
        {"attacked_accuracy",
         table.attacked ? Json(share(table.unbroken_at(radius), table.count())) : Json(nullptr)}};
    if (table.attacked) row["open"] = share(table.open_at(radius), table.count());
    document["certified"].push_back(std::move(row));
  }
  document["classes"] = class_json(table);
  document["samples"] = Json::array();
  for (const SampleRow& row : table.rows) document["samples"].push_back(row_json(row));
  if (table.required) {
    document["required"] = {{"radius", table.required->radius},
                            {"accuracy", table.required->percent / 100},
                            {"holds", table.verdict() == Verdict::kHolds},
                            {"decided", table.verdict() != Verdict::kOpen}};
  }
}

CertifyTable table_of(const Json& document) {
  CertifyTable table;
  const auto options = document.find("options");
  table.local = document.value("scope", std::string()) == "local";
  table.attacked = table.local || (options != document.end() && options->value("attack", false));
  if (const auto inference = document.find("inference"); inference != document.end())
    table.computed = !inference->is_null();
  if (const auto classes = document.find("classes"); classes != document.end())
    table.classes = std::ssize(*classes);
  for (const Json& row : document.at("certified"))
    table.radii.push_back(distance_from(row.at("radius")));
  for (const Json& row : document.at("samples")) table.rows.push_back(row_from(row));
  if (const auto required = document.find("required"); required != document.end())
    table.required = Requirement{distance_from(required->at("radius")),
                                 std::round(1e12 * distance_from(required->at("accuracy"))) / 1e10};
  return table;
}

}  // namespace lipscope::app
