// SPDX-License-Identifier: Apache-2.0
// What certify says about samples, and what follows from it: of one run, or of several that were
// merged.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "lipscope/tensor.h"

namespace lipscope::app {

// "0.5:70%": at least this share of all samples certified at this radius.
struct Requirement {
  double radius = 0, percent = 0;
};

enum class Verdict { kHolds, kFails, kOpen };

struct SampleRow {
  Index index = 0, label = 0, predicted = 0;
  double radius = 0;
  std::string method;
  std::optional<double> attack_radius;
  std::optional<Index> rival;
  bool tie = false, complete = true;

  [[nodiscard]] bool right() const { return label == predicted && !tie; }
};

// Per class: how many samples, how many right, and their radii.
struct ClassRow {
  Index count = 0, right = 0;
  std::vector<double> radii, attacks;  // of the right ones, ascending
};

struct CertifyTable {
  Index classes = 0;
  std::vector<SampleRow> rows;  // by index
  std::vector<double> radii;    // to report about, ascending
  bool attacked = false;        // attack radii were looked for
  bool local = false;
  bool computed = false;  // for the arithmetic of --inference
  std::optional<Requirement> required;

  [[nodiscard]] Index count() const { return std::ssize(rows); }
  // Of the real-valued function.
  [[nodiscard]] Index clean() const;
  [[nodiscard]] Index certified_at(double radius) const;
  // Right and not known to have another class within the radius.
  [[nodiscard]] Index unbroken_at(double radius) const;
  // Neither certified nor known to have another class within the radius.
  [[nodiscard]] Index open_at(double radius) const;
  // Of the requirement; holds when there is none. Attacks are on the real-valued function and
  // refute nothing about another arithmetic.
  [[nodiscard]] Verdict verdict() const;
  [[nodiscard]] bool complete() const;
  [[nodiscard]] std::vector<ClassRow> by_class() const;

 private:
  // In the arithmetic of --inference not even the sample itself is known to be classified as in
  // real arithmetic.
  [[nodiscard]] bool certified(const SampleRow& row, double radius) const;
};

// The middle of an ascending list; 0 without entries.
[[nodiscard]] double median_of(const std::vector<double>& ascending);

// Rows whose pictures are shown: the smallest radii, the largest, and some from everywhere. Those
// of a whole are among those of its parts.
[[nodiscard]] std::vector<std::size_t> rows_to_show(const CertifyTable& table);

// A word about an accuracy near that of guessing; empty where it is better. `high`: the largest
// entry of the data.
[[nodiscard]] std::string chance_hint(const CertifyTable& table, double high);

// The fields of lipscope.certify/1 that follow from the table.
void add_table(const CertifyTable& table, Json& document);
// Back from a document of the right form.
[[nodiscard]] CertifyTable table_of(const Json& document);

}  // namespace lipscope::app
