// SPDX-License-Identifier: Apache-2.0
// certify: how far each input may move before the decision can change.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/rounding.h"
#include "certify_json.h"
#include "certify_run.h"
#include "conventions.h"
#include "files.h"
#include "number_flags.h"
#include "terminal.h"

namespace lipscope {
namespace {

using namespace app;

std::string percent(Index part, Index whole) {
  return fmt::format(
      "{:.2f} %", whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0);
}

std::string heading_of(const Certified& found) {
  std::string text =
      fmt::format("{}  {} classes, {} samples, l{}\n", one_line(found.model_file),
                  found.constants.classes, group_digits(found.table.count()), found.norm.name());
  text += fmt::format("  data from {:.5g} to {:.5g}; radii in units of {}\n", found.data.scaled.low,
                      found.data.scaled.high, unit_text(found));
  if (!found.flags.data.shard.empty())
    text += fmt::format("  part {} of the samples; 'lipscope merge' joins the parts\n",
                        found.flags.data.shard);
  if (!found.dropped.empty()) {
    text +=
        fmt::format("  the final {} is left out: it never changes the decision\n", found.dropped);
  }
  text += conventions_text(found.conventions);
  if (found.flags.inference.empty()) {
    return text +
           "  for real arithmetic; --inference charges the rounding of the arithmetic in use\n";
  }
  text += fmt::format(
      "  holds for the {} as {} arithmetic computes them, sums in {}, subnormal numbers {}\n",
      found.squash.empty() ? "logits" : "results of the final " + found.squash,
      found.flags.inference,
      found.flags.accumulate.empty() ? found.flags.inference : found.flags.accumulate,
      found.flags.flush_to_zero ? "flushed to zero or kept" : "kept (--flush-to-zero: or not)");
  if (found.flags.attack) text += "  attacks are on the real-valued function\n";
  return text;
}

std::string accuracy_table(const CertifyTable& table) {
  const Index count = table.count();
  std::vector<std::vector<std::string>> rows{{"radius", "certified"}};
  if (table.attacked) rows[0].insert(rows[0].end(), {"attacked", "open"});
  for (const double radius : table.radii) {
    rows.push_back({fmt::format("{:.6g}", radius), percent(table.certified_at(radius), count)});
    if (!table.attacked) continue;
    rows.back().push_back(percent(table.unbroken_at(radius), count));
    rows.back().push_back(percent(table.open_at(radius), count));
  }
  return format_table(rows);
}

std::string class_table(const CertifyTable& table) {
  const std::vector<ClassRow> classes = table.by_class();
  constexpr std::size_t kMost = 20;
  std::vector<std::vector<std::string>> rows{{"class", "samples", "right", "median radius"}};
  if (table.attacked) rows[0].push_back("median attack");
  for (std::size_t c = 0; c < std::min(classes.size(), kMost); ++c) {
    const ClassRow& row = classes[c];
    rows.push_back({fmt::format("{}", c), fmt::format("{}", row.count),
                    row.count > 0 ? percent(row.right, row.count) : "-",
                    row.count > 0 ? format_down(median_of(row.radii), 4) : "-"});
    if (table.attacked)
      rows.back().push_back(row.attacks.empty() ? "" : format_up(median_of(row.attacks), 4));
  }
  return format_table(rows);
}

// The pairs of classes that limit most samples.
std::string pair_table(const Certified& found) {
  std::map<std::pair<Index, Index>, std::vector<double>> pairs;
  for (const SampleRow& row : found.table.rows) {
    if (row.right() && row.rival) pairs[{row.predicted, *row.rival}].push_back(row.radius);
  }
  std::vector<std::pair<std::size_t, std::pair<Index, Index>>> order;
  for (const auto& [pair, radii] : pairs) order.emplace_back(radii.size(), pair);
  std::ranges::sort(order, std::greater{});
  constexpr std::size_t kMost = 5;
  std::vector<std::vector<std::string>> rows{
      {"class", "against", "samples", "median radius", "constant"}};
  for (std::size_t k = 0; k < std::min(order.size(), kMost); ++k) {
    const auto [i, j] = order[k].second;
    std::vector<double> radii = pairs[{i, j}];
    std::ranges::sort(radii);
    rows.push_back({fmt::format("{}", i), fmt::format("{}", j), fmt::format("{}", radii.size()),
                    format_down(median_of(radii), 4),
                    format_up(found.constants.at(i, j).value, 5)});
  }
  return rows.size() > 1 ? "nearest pairs of classes\n" + format_table(rows) : "";
}

std::string certify_text(const Certified& found) {
  const CertifyTable& table = found.table;
  std::string text = heading_of(found);
  text += fmt::format("  clean accuracy  {}\n\n", percent(table.clean(), table.count()));
  text += "certified accuracy, proved" +
          std::string(table.attacked ? "; attacked: no more than this" : "") + "\n";
  text += accuracy_table(table) + "\n" + class_table(table) + "\n" + pair_table(found);
  if (found.flags.local() && !found.local_obstacle.empty())
    text += fmt::format(
        "\nradii around samples by constants and enclosed gradients, without linear bounds and a "
        "search: {}\n",
        found.local_obstacle);
  if (found.outcome == Outcome::kTimeLimit) {
    const Index left = std::ranges::count(table.rows, false, &SampleRow::complete);
    const char* more = found.effort ? "--effort" : "--time";
    text += left > 0
                ? fmt::format(
                      "\n{} samples could gain from more {}; --resume FILE keeps what is done\n",
                      group_digits(left), more)
                : fmt::format("\nmore {} could make constants smaller and radii larger\n", more);
  }
  if (found.outcome == Outcome::kMemoryLimit)
    text += "\nmemory limit reached; what is above is proved, raise --memory for more\n";
  if (found.outcome == Outcome::kInterrupted) text += "\ninterrupted; what is above is proved\n";
  for (const std::string& hint : found.hints) text += "\nnote: " + one_line(hint) + "\n";
  if (table.required) {
    const char* verdict = table.verdict() == Verdict::kHolds ? "holds"
                          : table.verdict() == Verdict::kFails
                              ? "does not hold"
                              : "not decided; --scope local, --attack "
                                "or more --time may";
    text += fmt::format("\nrequired {}: {}\n", one_line(found.flags.require), verdict);
  }
  return text + fmt::format("\n{:.1f} s, of which constants {:.1f} s\n", found.seconds,
                            found.seconds_constants);
}

int exit_code_of(const Certified& found) {
  if (found.outcome == Outcome::kInterrupted) return 130;
  switch (found.table.verdict()) {
    case Verdict::kHolds: return 0;
    case Verdict::kFails: return 1;
    case Verdict::kOpen: return 5;
  }
  return 0;
}

Action declare_certify(CLI::App& app, const Common& common) {
  auto flags = std::make_shared<CertifyFlags>();
  flags->model.declare(app);
  flags->data.declare(app);
  app.add_option("--norm", flags->norm, "norm of the input: a number >= 1 or inf")
      ->type_name("P")
      ->capture_default_str();
  takes_numbers(
      app.add_option("--radii", flags->radii,
                     "report the accuracy at these radii (default: fixed ones for the norm)"))
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("R,...");
  app.add_option("--scope", flags->scope,
                 "global: constants of the whole space, all samples at once; local: search around "
                 "each sample")
      ->check(CLI::IsMember({"global", "local"}))
      ->type_name("global|local")
      ->capture_default_str();
  app.add_flag("--attack", flags->attack, "look for the nearest input of another class, too");
  takes_whole(app.add_option("--parts", flags->parts,
                             "cases a local search may distinguish per sample and radius; 0: none"))
      ->check(CLI::Range(Index{0}, Index{10'000'000}))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--inference", flags->inference,
                 "let radii hold for the model as run in this arithmetic, rounded to nearest with "
                 "subnormal numbers kept (default: real numbers)")
      ->check(CLI::IsMember({"float32", "float16", "bfloat16"}))
      ->type_name("float32|float16|bfloat16");
  app.add_option("--accumulate", flags->accumulate,
                 "arithmetic in which sums of products, pools and reductions are kept until they "
                 "are complete (default: that of --inference)")
      ->check(CLI::IsMember({"float32", "float16", "bfloat16"}))
      ->type_name("FORMAT");
  app.add_flag("--flush-to-zero", flags->flush_to_zero,
               "the processor may take subnormal operands and results for zero; without it "
               "--inference says nothing about such processors");
  // An empty word is what a variable that was never set becomes.
  const auto not_empty = [](const std::string& text) {
    return text.empty() ? std::string("needs a value, not an empty word") : std::string();
  };
  keeps_file(app.add_option("--resume", flags->resume,
                            "keep what is found for each sample in this file and go on from it"))
      ->check(not_empty)
      ->type_name("FILE");
  app.add_option("--require", flags->require,
                 "exit 1 unless this share is certified at this radius, 5 if that stays open")
      ->check(not_empty)
      ->type_name("R:A%");
  return [flags, &common]() -> Result {
    auto found = std::make_shared<Certified>(run_certify(*flags, common));
    return {.document = [found] { return certify_document(*found); },
            .text = [found] { return certify_text(*found); },
            .exit_code = exit_code_of(*found)};
  };
}

}  // namespace

std::vector<Command> command_certify() {
  return {{.name = "certify",
           .summary = "how far each input may move before the class can change, proved",
           .examples =
               "  lipscope certify net.onnx --data images.idx3.gz --labels labels.idx1.gz --scale "
               "1/255\n"
               "  lipscope certify net.onnx --data x.npy --labels y.npy --norm inf --scope local "
               "--attack --limit 100",
           .declare = declare_certify}};
}

}  // namespace lipscope
