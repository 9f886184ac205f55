// SPDX-License-Identifier: Apache-2.0
#include "proof/proof_json.h"

#include <array>
#include <nlohmann/json.hpp>

#include "lipscope/error.h"
#include "proof/cases_json.h"
#include "proof/verify.h"

namespace lipscope {
namespace {

constexpr std::array<std::string_view, 5> kKinds{"composition", "multipliers", "cases",
                                                 "recomputed", "quotient"};

Json gains_json(const std::vector<GainClaim>& gains) {
  Json list = Json::array();
  for (const GainClaim& gain : gains) {
    list.push_back({{"node", gain.node},
                    {"input", gain.input},
                    {"norm", gain.norms.name()},
                    {"value", gain.value}});
    if (gain.steps.empty()) continue;
    Json& steps = list.back()["steps"] = Json::array();
    for (const auto& [theorem, at_most] : gain.steps)
      steps.push_back({{"theorem", theorem}, {"at_most", at_most}});
  }
  return list;
}

NormPair read_norms(const JsonValue& value) {
  try {
    return parse_norms(value.text());
  } catch (const Error& error) {
    value.refuse(error.what());
  }
}

std::vector<GainClaim> read_gains(const JsonValue& value) {
  return value.list([](const JsonValue& entry) {
    return entry.object([](JsonFields& fields) {
      GainClaim gain{fields.at("node").text(), fields.at("input").integer(),
                     read_norms(fields.at("norm")), fields.at("value").number()};
      if (const auto steps = fields.find("steps")) {
        gain.steps = steps->list([](const JsonValue& step) {
          return step.object([](JsonFields& parts) {
            return ProofStep{parts.at("theorem").text(), parts.at("at_most").number()};
          });
        });
      }
      return gain;
    });
  });
}

std::optional<UnitNumbers> read_unstable_units(JsonFields& fields) {
  const auto units = fields.find("open_units");
  return units ? std::optional(units->counts()) : std::nullopt;
}

ChainProof read_chain(const JsonValue& value) {
  return value.object([](JsonFields& fields) {
    ChainProof chain{fields.at("rho").number(),
                     fields.at("multipliers").list([](const JsonValue& l) { return l.numbers(); })};
    if (const auto from = fields.find("from")) chain.from = from->text();
    if (const auto to = fields.find("to")) chain.to = to->text();
    return chain;
  });
}

struct ToJson {
  Json operator()(const CompositionProof& proof) const {
    return {{"gains", gains_json(proof.gains)}};
  }
  Json operator()(const MultiplierProof& proof) const {
    Json chains = Json::array();
    for (const ChainProof& chain : proof.chains) {
      chains.push_back({{"rho", chain.rho}, {"multipliers", chain.multipliers}});
      if (!chain.from.empty()) chains.back()["from"] = chain.from;
      if (!chain.to.empty()) chains.back()["to"] = chain.to;
    }
    Json json{{"chains", std::move(chains)}};
    if (!proof.gains.empty()) json["gains"] = gains_json(proof.gains);
    return json;
  }
  Json operator()(const CaseProof& proof) const {
    Json json = cases_to_json(*proof.tree);
    if (proof.unstable_units) json["open_units"] = *proof.unstable_units;
    return json;
  }
  Json operator()(const RecomputedProof& proof) const {
    Json json{{"bound", proof.bound}};
    if (proof.unstable_units) json["open_units"] = *proof.unstable_units;
    return json;
  }
  Json operator()(const QuotientProof& proof) const {
    return {{"x", proof.witness.x}, {"y", proof.witness.y}};
  }
};

}  // namespace

std::string_view kind_of(const Proof& proof) { return kKinds[proof.index()]; }

Json proof_to_json(const Proof& proof) {
  Json json{{"kind", kind_of(proof)}};
  json.update(std::visit(ToJson{}, proof));
  return json;
}

Proof read_proof(const JsonValue& value) {
  return value.object([](JsonFields& fields) -> Proof {
    const std::string_view kind = fields.at("kind").one_of(kKinds);
    if (kind == "composition") return CompositionProof{read_gains(fields.at("gains"))};
    if (kind == "multipliers") {
      MultiplierProof proof{fields.at("chains").list(read_chain)};
      if (const auto gains = fields.find("gains")) proof.gains = read_gains(*gains);
      return proof;
    }
    if (kind == "cases")
      return CaseProof{std::make_shared<const CaseTree>(read_cases(fields)),
                       read_unstable_units(fields)};
    if (kind == "recomputed")
      return RecomputedProof{fields.at("bound").text(), read_unstable_units(fields)};
    return QuotientProof{{fields.at("x").numbers(), fields.at("y").numbers()}};
  });
}

}  // namespace lipscope
