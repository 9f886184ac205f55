// SPDX-License-Identifier: Apache-2.0
#include "proof/document.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "base/json_reader.h"
#include "base/rounding_basic.h"
#include "base/sha256.h"
#include "lipscope/error.h"
#include "proof/proof_json.h"

namespace lipscope {
namespace {

constexpr std::string_view kName = "certificate", kSchema = "lipscope.certificate/2",
                           kSeveral = "lipscope.certificates/1";

Json vector_json(const Tensor& tensor) {
  return std::vector<double>(tensor.doubles().begin(), tensor.doubles().end());
}

Json bound_json(const Bound& bound) {
  return {
      {"value", bound.value}, {"guarantee", to_string(bound.guarantee)}, {"method", bound.method}};
}

Bound read_bound(const JsonValue& value) {
  static constexpr std::array<std::string_view, 1> kProvedOnly{"proved"};
  return value.object([](JsonFields& fields) {
    (void)fields.at("guarantee").one_of(kProvedOnly);
    const JsonValue claimed = fields.at("value");
    if (claimed.number() == -kInf) claimed.refuse("expected a number or \"inf\"");
    return Bound{claimed.number(), Guarantee::kProved, fields.at("method").text()};
  });
}

Norm read_norm(const JsonValue& value) {
  if (value.text().find(':') != std::string::npos) value.refuse("expected one norm");
  try {
    return parse_norms(value.text()).in;
  } catch (const Error& error) {
    value.refuse(error.what());
  }
}

Domain read_domain(const JsonValue& value) {
  static constexpr std::array<std::string_view, 4> kKinds{"everywhere", "ball", "box", "ball+box"};
  return value.object([](JsonFields& fields) {
    Domain domain;
    const std::string_view kind = fields.at("kind").one_of(kKinds);
    if (kind == "ball" || kind == "ball+box") {
      domain.ball = Ball{Tensor::vector(fields.at("center").numbers()),
                         fields.at("radius").number(), read_norm(fields.at("norm"))};
    }
    if (kind == "box" || kind == "ball+box") {
      domain.box =
          Box{Tensor::vector(fields.at("lo").numbers()), Tensor::vector(fields.at("hi").numbers())};
    }
    return domain;
  });
}

void read_output(const JsonValue& value, Selection& selection) {
  if (value.is_null()) return;
  value.object([&](JsonFields& fields) {
    const auto index = fields.find("index"), margin = fields.find("margin");
    if (index.has_value() == margin.has_value()) value.refuse("expected an index or a margin");
    if (index) selection.output = index->integer();
    if (margin) {
      const JsonValue pair = margin->of_size(2);
      selection.margin = {pair[0].integer(), pair[1].integer()};
    }
  });
}

Statement read_query(const JsonValue& query) {
  return query.object([](JsonFields& fields) {
    Statement statement;
    statement.norms = {read_norm(fields.at("norm_in")), read_norm(fields.at("norm_out"))};
    statement.domain = read_domain(fields.at("domain"));
    read_output(fields.at("output"), statement.selection);
    statement.from = statement.selection.from = fields.at("from").text_or_null();
    statement.selection.to = fields.at("to").text_or_null();
    statement.selection.wrt = fields.at("wrt").text_or_null();
    statement.selection.logits = fields.at("logits").flag();
    if (const auto dims = fields.find("dims")) {
      for (const auto& [name, size] : dims->entries())
        statement.options.dims[name] = size.integer();
    }
    if (const auto shapes = fields.find("shapes")) {
      for (const auto& [name, shape] : shapes->entries())
        statement.options.shapes[name] =
            shape.list([](const JsonValue& size) { return Index{size.integer()}; });
    }
    return statement;
  });
}

void read_proofs(const JsonValue& value, Certificate& certificate) {
  bool upper = false;
  for (Proof& proof : value.list(read_proof)) {
    if (auto* quotient = std::get_if<QuotientProof>(&proof)) {
      if (certificate.lower_proof) value.refuse("two proofs of the lower bound");
      certificate.lower_proof = std::move(*quotient);
      continue;
    }
    if (upper) value.refuse("two proofs of the upper bound");
    upper = true;
    certificate.upper_proof = std::move(proof);
  }
  if (!upper) value.refuse("no proof of the upper bound");
  if (certificate.lower.has_value() != certificate.lower_proof.has_value())
    value.refuse("a lower bound and a quotient, which proves it, come together");
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

Json certificate_to_json(const Certificate& certificate) {
  Json proof = Json::array({proof_to_json(certificate.upper_proof)});
  if (certificate.lower_proof) proof.push_back(proof_to_json(*certificate.lower_proof));
  Json document{{"schema", kSchema},
                {"model", {{"sha256", certificate.statement.model_sha256}}},
                {"query", statement_to_json(certificate.statement)},
                {"claim",
                 {{"lower", certificate.lower ? bound_json(*certificate.lower) : Json(nullptr)},
                  {"upper", bound_json(certificate.upper)}}},
                {"proof", std::move(proof)}};
  document["sha256"] = certificate_digest(document);
  return document;
}

std::string certificate_digest(Json document) {
  document.erase("sha256");
  const std::string text = to_canonical_text(document);
  return sha256(std::as_bytes(std::span(text)));
}

Certificate read_certificate(const Json& document) {
  const JsonValue root(document, kName);
  if (!root.is_object()) root.refuse("not a lipscope certificate");
  return root.object([&](JsonFields& fields) {
    const auto schema = fields.find("schema");
    if (!schema || !schema->is_text()) root.refuse("not a lipscope certificate");
    if (const std::string& found = schema->text(); found != kSchema) {
      if (found.starts_with("lipscope.certificate/"))
        root.refuse(
            fmt::format("{} is another version; this program reads {}: write it again with "
                        "bound --certificate",
                        found, kSchema));
      root.refuse(fmt::format("not a lipscope certificate but {}", found));
    }
    Certificate certificate;
    certificate.statement = read_query(fields.at("query"));
    certificate.statement.model_sha256 =
        fields.at("model").object([](JsonFields& model) { return model.at("sha256").text(); });
    fields.at("claim").object([&](JsonFields& claim) {
      if (const JsonValue lower = claim.at("lower"); !lower.is_null())
        certificate.lower = read_bound(lower);
      certificate.upper = read_bound(claim.at("upper"));
    });
    read_proofs(fields.at("proof"), certificate);
    (void)fields.at("sha256").text();
    return certificate;
  });
}

std::vector<Json> certificates_in(const std::string& text) {
  Json document = parse_json(text, kName);
  const JsonValue root(document, kName);
  if (!root.is_object() || !document.contains("schema") || document["schema"] != kSeveral)
    return {std::move(document)};
  return root.object([](JsonFields& fields) {
    (void)fields.at("schema");
    return fields.at("certificates").list([](const JsonValue& one) { return one.json(); });
  });
}

}  // namespace lipscope
