// SPDX-License-Identifier: Apache-2.0
// check: re-verifies a certificate from the model file alone.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/json_reader.h"
#include "command.h"
#include "io/gzip.h"
#include "lipscope/certificate.h"
#include "lipscope/error.h"

namespace lipscope {
namespace {

using namespace app;

struct CheckFlags {
  std::string model, certificate;
};

Json check_document(const CheckResult& result) {
  Json document{{"schema", "lipscope.check/1"}, {"valid", result.valid}};
  document["claim"] = result.claim.empty() ? Json(nullptr) : Json::parse(result.claim);
  if (!result.valid) document["reason"] = result.reason;
  return document;
}

std::string check_text(const CheckResult& result) {
  if (!result.valid) return fmt::format("rejected: {}\n", result.reason);
  const Json claim = Json::parse(result.claim);
  std::string text = "valid: ";
  if (!claim["lower"].is_null()) text += fmt::format("{} <= ", to_text(claim["lower"]["value"]));
  return text + fmt::format("L <= {}\n", to_text(claim["upper"]["value"]));
}

Action declare_check(CLI::App& app, const Common&) {
  auto flags = std::make_shared<CheckFlags>();
  app.add_option("model", flags->model, "ONNX file the certificate is about")
      ->required()
      ->type_name("MODEL");
  app.add_option("certificate", flags->certificate, "certificate written by 'bound --certificate'")
      ->required()
      ->type_name("CERTIFICATE");
  return [flags]() -> Result {
    const OnnxModel model = OnnxModel::read(flags->model);
    const auto bytes = read_file(flags->certificate, JsonLimits{}.bytes);
    const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    auto result = std::make_shared<CheckResult>();
    try {
      *result = check_certificate(model, text);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}: {}", flags->certificate, error.what()));
    }
    return {.document = [result] { return check_document(*result); },
            .text = [result] { return check_text(*result); },
            .exit_code = result->valid ? 0 : 1};
  };
}

}  // namespace

std::vector<Command> command_check() {
  return {{.name = "check",
           .summary = "re-verify a certificate from the model file alone",
           .examples = "  lipscope bound net.onnx --certificate net.cert.json\n  lipscope check "
                       "net.onnx net.cert.json",
           .declare = declare_check}};
}

}  // namespace lipscope
