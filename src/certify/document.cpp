// SPDX-License-Identifier: Apache-2.0
#include "certify/document.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/sha256.h"
#include "certify/cases_json.h"
#include "lipscope/error.h"

namespace lipscope {
namespace {

Json vector_json(const Tensor& tensor) {
  return std::vector<double>(tensor.doubles().begin(), tensor.doubles().end());
}

double number(const Json& value) {
  if (value.is_string() && value.get<std::string>() == "inf")
    return std::numeric_limits<double>::infinity();
  if (value.is_string() && value.get<std::string>() == "-inf")
    return -std::numeric_limits<double>::infinity();
  return value.get<double>();
}

std::vector<double> numbers(const Json& list) {
  std::vector<double> result;
  for (const Json& entry : list) result.push_back(number(entry));
  return result;
}

std::string text_or_empty(const Json& object, const char* key) {
  return object.contains(key) && object[key].is_string() ? object[key].get<std::string>() : "";
}

Statement read_statement(const Json& document) {
  Statement statement;
  statement.model_sha256 = document.at("model").at("sha256").get<std::string>();
  const Json& query = document.at("query");
  statement.norms = {parse_norms(query.at("norm_in").get<std::string>()).in,
                     parse_norms(query.at("norm_out").get<std::string>()).in};
  statement.from = text_or_empty(query, "from");
  statement.selection.from = statement.from;
  statement.selection.to = text_or_empty(query, "to");
  statement.selection.wrt = text_or_empty(query, "wrt");
  statement.selection.logits = query.value("logits", false);
  statement.options.dims = query.value("dims", statement.options.dims);
  statement.options.shapes = query.value("shapes", statement.options.shapes);
  if (const Json& output = query.at("output"); output.is_object()) {
    if (output.contains("index")) statement.selection.output = output["index"].get<Index>();
    if (output.contains("margin")) {
      statement.selection.margin = {output["margin"].at(0).get<Index>(),
                                    output["margin"].at(1).get<Index>()};
    }
  }
  const Json& domain = query.at("domain");
  const std::string kind = domain.at("kind").get<std::string>();
  if (kind == "ball" || kind == "ball+box") {
    statement.domain.ball =
        Ball{Tensor::vector(numbers(domain.at("center"))), number(domain.at("radius")),
             parse_norms(domain.at("norm").get<std::string>()).in};
  }
  if (kind == "box" || kind == "ball+box") {
    statement.domain.box =
        Box{Tensor::vector(numbers(domain.at("lo"))), Tensor::vector(numbers(domain.at("hi")))};
  }
  if (kind != "everywhere" && statement.domain.everywhere()) {
    throw Error(ErrorCode::kBadFile, fmt::format("unknown domain '{}'", kind));
  }
  return statement;
}

}  // namespace

Json statement_to_json(const Statement& statement) {
  Json domain{{"kind", "everywhere"}};
  const auto& [box, ball] = statement.domain;
  if (ball || box) domain["kind"] = ball && box ? "ball+box" : ball ? "ball" : "box";
  if (ball) {
    domain["center"] = vector_json(ball->center);
    domain["radius"] = ball->radius;
    domain["norm"] = ball->norm.name();
  }
  if (box) {
    domain["lo"] = vector_json(box->lower);
    domain["hi"] = vector_json(box->upper);
  }
  const Selection& selection = statement.selection;
  Json output = nullptr;
  if (selection.output) output = {{"index", *selection.output}};
  if (selection.margin) output = {{"margin", {selection.margin->first, selection.margin->second}}};
  const auto or_null = [](const std::string& text) {
    return text.empty() ? Json(nullptr) : Json(text);
  };
  Json query{{"norm_in", statement.norms.in.name()}, {"norm_out", statement.norms.out.name()},
             {"domain", std::move(domain)},          {"output", std::move(output)},
             {"from", or_null(statement.from)},      {"to", or_null(selection.to)},
             {"wrt", or_null(selection.wrt)},        {"logits", selection.logits}};
  if (!statement.options.dims.empty()) query["dims"] = statement.options.dims;
  if (!statement.options.shapes.empty()) query["shapes"] = statement.options.shapes;
  return query;
}

std::string certificate_digest(Json document) {
  document.erase("sha256");
  const std::string text = to_canonical_text(document);
  return sha256(std::as_bytes(std::span(text)));
}

void require_schema(const Json& document) {
  if (!document.is_object() || text_or_empty(document, "schema") != "lipscope.certificate/1") {
    throw Error(ErrorCode::kBadFile, "not a lipscope certificate");
  }
}

namespace {

void read_open_units(const Json& step, CertificateParts& parts) {
  if (step.contains("open_units"))
    parts.open_units = step["open_units"].get<std::vector<std::size_t>>();
}

}  // namespace

CertificateParts read_certificate(const Json& document) try {
  CertificateParts parts{.statement = read_statement(document)};
  const Json& claim = document.at("claim");
  if (!claim.at("lower").is_null()) parts.lower = number(claim["lower"].at("value"));
  if (!claim.at("upper").is_null()) parts.upper = number(claim["upper"].at("value"));
  for (const Json& step : document.at("proof")) {
    const std::string kind = step.at("kind").get<std::string>();
    if (kind == "composition") {
      for (const Json& gain : step.at("gains")) {
        parts.gains.push_back({gain.at("node").get<std::string>(), gain.at("input").get<Index>(),
                               parse_norms(gain.at("norm").get<std::string>()),
                               number(gain.at("value"))});
      }
    } else if (kind == "lipsdp") {
      ChainProof& chain = parts.chains.emplace_back();
      chain.rho = number(step.at("rho"));
      for (const Json& list : step.at("multipliers")) chain.multipliers.push_back(numbers(list));
      if (step.contains("from")) chain.from = step["from"].get<std::string>();
      if (step.contains("at")) chain.at = step["at"].get<std::string>();
    } else if (kind == "network") {
      parts.computed = step.at("bound").get<std::string>();
      read_open_units(step, parts);
    } else if (kind == "cases") {
      parts.cases = cases_from_json(step);
      read_open_units(step, parts);
    } else if (kind == "quotient") {
      parts.witness = Witness{numbers(step.at("x")), numbers(step.at("y"))};
    } else {
      throw Error(ErrorCode::kBadFile, fmt::format("unknown kind of proof '{}'", kind));
    }
  }
  return parts;
} catch (const nlohmann::json::exception& error) {
  throw Error(ErrorCode::kBadFile, fmt::format("certificate: {}", error.what()));
} catch (const Error& error) {  // such as a norm that is none
  throw Error(ErrorCode::kBadFile, fmt::format("certificate: {}", error.what()));
}

std::string write_certificate(const Statement& statement, const Answer& answer) {
  const auto lower = answer.bracket.lower(Guarantee::kProved),
             upper = answer.bracket.upper(Guarantee::kProved);
  if (!upper || std::isinf(upper->value)) {
    throw Error(ErrorCode::kUnsupported, "there is no finite proved upper bound to certify");
  }
  const auto bound = [](const Bound& b) {
    return Json{{"value", b.value}, {"guarantee", to_string(b.guarantee)}, {"method", b.method}};
  };
  Json proof = Json::array();
  bool composed = answer.computed.empty() && !answer.cases;
  for (const ChainProof& chain : answer.chains) {
    proof.push_back({{"kind", "lipsdp"}, {"rho", chain.rho}, {"multipliers", chain.multipliers}});
    if (!chain.from.empty()) proof.back()["from"] = chain.from;
    if (!chain.at.empty()) proof.back()["at"] = chain.at;
    composed = !chain.whole();
  }
  if (!answer.computed.empty()) {
    proof.push_back({{"kind", "network"}, {"bound", answer.computed}});
  } else if (answer.cases) {
    proof.push_back(cases_to_json(*answer.cases));
    proof.back()["kind"] = "cases";
  }
  if (answer.open_units) proof.back()["open_units"] = *answer.open_units;
  if (composed) {
    Json gains = Json::array();
    for (const GainClaim& gain : answer.gains) {
      gains.push_back({{"node", gain.node},
                       {"input", gain.input},
                       {"norm", gain.norms.name()},
                       {"value", gain.value}});
    }
    proof.push_back({{"kind", "composition"}, {"gains", std::move(gains)}});
  }
  if (answer.witness)
    proof.push_back({{"kind", "quotient"}, {"x", answer.witness->x}, {"y", answer.witness->y}});
  Json document{{"schema", "lipscope.certificate/1"},
                {"model", {{"sha256", statement.model_sha256}}},
                {"query", statement_to_json(statement)},
                {"claim",
                 {{"lower", answer.witness ? bound(*answer.witnessed) : Json(nullptr)},
                  {"upper", bound(*upper)}}},
                {"proof", std::move(proof)}};
  document["sha256"] = certificate_digest(document);
  return to_text(document) + "\n";
}

}  // namespace lipscope
