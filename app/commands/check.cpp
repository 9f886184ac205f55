// SPDX-License-Identifier: Apache-2.0
// check: re-verifies a certificate from the model file alone.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/json_reader.h"
#include "base/printable.h"
#include "command.h"
#include "conventions.h"
#include "files.h"
#include "io/input_file.h"
#include "lipscope/certificate.h"
#include "lipscope/error.h"

namespace lipscope {
namespace {

using namespace app;

struct CheckFlags {
  std::string model, certificate;
};

using Results = std::vector<CheckResult>;

bool all_valid(const Results& results) { return std::ranges::all_of(results, &CheckResult::valid); }

// What one certificate states, and whether it is proved.
Json one_json(const CheckResult& result) {
  Json json{{"valid", result.valid}};
  json["claim"] = result.claim.empty() ? Json(nullptr) : Json::parse(result.claim);
  if (!result.statement.empty()) {
    json.update(Json::parse(result.statement));
    add_conventions(result.conventions, json["query"]);
  }
  if (!result.kinds.empty()) json["proof"] = result.kinds;
  if (!result.valid) json["reason"] = result.reason;
  return json;
}

Json check_document(const Results& results) {
  Json document{{"schema", "lipscope.check/1"}};
  if (results.size() == 1) {
    document.update(one_json(results[0]));
    return document;
  }
  document["valid"] = all_valid(results);
  for (const CheckResult& result : results) document["certificates"].push_back(one_json(result));
  return document;
}

std::string domain_text(const Json& domain) {
  const std::string kind = domain["kind"];
  if (kind == "everywhere") return "the whole space";
  std::string text;
  // Long vectors are for --json.
  const auto vector = [](const Json& list) {
    constexpr std::size_t kMost = 8;
    return list.size() <= kMost ? to_text(list) : fmt::format("[... {} numbers]", list.size());
  };
  if (domain.contains("radius"))
    text = fmt::format("ball of radius {} in l{} around {}", to_text(domain["radius"]),
                       domain["norm"].get<std::string>(), vector(domain["center"]));
  if (domain.contains("lo"))
    text += fmt::format("{}box from {} to {}", text.empty() ? "" : ", within the ",
                        vector(domain["lo"]), vector(domain["hi"]));
  return text;
}

std::string part_text(const Json& query) {
  std::string text;
  const auto add = [&](const char* field, const char* words) {
    if (query[field].is_string())
      text += fmt::format("{}{} '{}'", text.empty() ? "" : ", ", words,
                          one_line(query[field].get<std::string>()));
  };
  add("from", "from the output of node");
  add("to", "to the output of node");
  add("wrt", "with respect to input");
  if (query["logits"] == true) text += text.empty() ? "the logits" : ", the logits";
  return text.empty() ? "the whole model" : text;
}

std::string output_text(const Json& output) {
  if (output.is_null()) return "all entries";
  if (output.contains("index")) return fmt::format("entry {}", to_text(output["index"]));
  return fmt::format("entry {} minus entry {}", to_text(output["margin"][0]),
                     to_text(output["margin"][1]));
}

std::string bound_text(const CheckResult& result, const Json& bound, std::string_view side,
                       const std::string& kind) {
  return fmt::format("  {}  {} by {}, proof: {}{}\n", side, to_text(bound["value"]),
                     one_line(bound["method"].get<std::string>()), kind,
                     kind == "recomputed" && result.valid
                         ? " (computed again; there is no evidence to follow)"
                         : "");
}

std::string one_text(const CheckResult& result) {
  std::string text = result.valid ? "valid" : fmt::format("rejected: {}", one_line(result.reason));
  if (result.statement.empty()) return text + "\n";
  const Json claim = Json::parse(result.claim), statement = Json::parse(result.statement);
  const Json& query = statement["query"];
  text += result.valid ? ": " : "\n  claim   ";
  if (!claim["lower"].is_null()) text += fmt::format("{} <= ", to_text(claim["lower"]["value"]));
  text += fmt::format("L <= {}\n", to_text(claim["upper"]["value"]));
  text += fmt::format("  model   sha256 {}\n", statement["model"]["sha256"].get<std::string>());
  text += fmt::format("  norms   {} to {}\n", query["norm_in"].get<std::string>(),
                      query["norm_out"].get<std::string>());
  text += fmt::format("  domain  {}\n", domain_text(query["domain"]));
  text += fmt::format("  part    {}\n", part_text(query));
  text += fmt::format("  output  {}\n", output_text(query["output"]));
  for (const char* sizes : {"dims", "shapes"}) {
    if (query.contains(sizes)) text += fmt::format("  {}  {}\n", sizes, to_text(query[sizes]));
  }
  text += bound_text(result, claim["upper"], "upper ", result.kinds[0]);
  if (!claim["lower"].is_null())
    text += bound_text(result, claim["lower"], "lower ", result.kinds.at(1));
  return text + conventions_text(result.conventions);
}

std::string check_text(const Results& results) {
  std::string text;
  for (const CheckResult& result : results) text += one_text(result);
  return text;
}

Action declare_check(CLI::App& app, const Common&) {
  auto flags = std::make_shared<CheckFlags>();
  reads_file(app.add_option("model", flags->model, "ONNX file the certificate is about"))
      ->required()
      ->type_name("MODEL");
  reads_file(app.add_option("certificate", flags->certificate,
                            "certificate written by 'bound --certificate'"))
      ->required()
      ->type_name("CERTIFICATE");
  return [flags]() -> Result {
    const OnnxModel model = read_model(flags->model);
    const auto bytes = read_file(flags->certificate, JsonLimits{}.bytes);
    const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    auto results = std::make_shared<Results>();
    try {
      *results = check_certificates(model, text);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}: {}", flags->certificate, error.what()));
    }
    return {.document = [results] { return check_document(*results); },
            .text = [results] { return check_text(*results); },
            .exit_code = all_valid(*results) ? 0 : 1};
  };
}

}  // namespace

std::vector<Command> command_check() {
  return {{.name = "check",
           .summary = "re-verify a certificate from the model file alone",
           .examples = "  lipscope bound net.onnx --certificate net.cert.json\n  lipscope check "
                       "net.onnx net.cert.json",
           .declare = declare_check,
           .seconds = HUGE_VAL}};
}

}  // namespace lipscope
