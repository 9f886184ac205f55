// SPDX-License-Identifier: Apache-2.0
// The checker: reads a certificate, makes the function it is about from the model file, and has
// each of its proofs verified.
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "lipscope/error.h"
#include "proof/document.h"
#include "proof/verify.h"

namespace lipscope {
namespace {

// Throws Rejected.
void check_claims(const OnnxModel& model, const Certificate& certificate,
                  Conventions& conventions) {
  const Statement& statement = certificate.statement;
  const auto selected = [&] {
    try {
      return select(model.graph(statement.options), statement.selection);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUsage) throw;
      reject("not a question about this model: {}", error.what());
    }
  }();
  conventions = selected.conventions;
  if (selected.from != statement.from)
    reject("the function starts at '{}', not at '{}'", selected.from, statement.from);
  const auto outputs = selected.graph.outputs();
  if (outputs.empty() || !is_floating(selected.graph.value(outputs[0]).type.type))
    reject("the output is not a floating tensor");
  Problem problem = problem_of(selected.graph, statement);
  check_values(problem);
  const double upper = std::visit([&](const auto& proof) { return proved_by(proof, problem); },
                                  certificate.upper_proof);
  if (!(upper <= certificate.upper.value)) {
    reject("the {} proves {}, above the claimed upper bound {}", kind_of(certificate.upper_proof),
           upper, certificate.upper.value);
  }
  if (!certificate.lower_proof) return;
  const double lower = proved_by(*certificate.lower_proof, problem);
  if (!(lower >= certificate.lower->value))
    reject("the witness proves {}, below the claimed lower bound {}", lower,
           certificate.lower->value);
}

CheckResult check_document(const OnnxModel& model, const Json& document) {
  const Certificate certificate = read_certificate(document);
  CheckResult result;
  try {
    if (document["sha256"] != certificate_digest(document))
      reject("the digest does not fit the document: it was changed or damaged");
    if (certificate.statement.model_sha256 != model.sha256())
      reject("the certificate is about another model file");
    result.statement = to_text({{"model", document["model"]}, {"query", document["query"]}});
    result.claim = to_text(document["claim"]);
    result.kinds.emplace_back(kind_of(certificate.upper_proof));
    if (certificate.lower_proof) result.kinds.emplace_back(kind_of(*certificate.lower_proof));
    check_claims(model, certificate, result.conventions);
    result.valid = true;
  } catch (const Rejected& rejected) {
    result.reason = one_line(rejected.reason);
  }
  return result;
}

}  // namespace

CheckResult check_certificate(const OnnxModel& model, const std::string& document) {
  const std::vector<CheckResult> results = check_certificates(model, document);
  if (results.size() != 1) throw Error(ErrorCode::kBadFile, "the file holds several certificates");
  return results[0];
}

std::vector<CheckResult> check_certificates(const OnnxModel& model, const std::string& document) {
  std::vector<CheckResult> results;
  for (const Json& one : certificates_in(document)) results.push_back(check_document(model, one));
  if (results.empty()) throw Error(ErrorCode::kBadFile, "the file holds no certificate");
  return results;
}

}  // namespace lipscope
