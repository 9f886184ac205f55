// SPDX-License-Identifier: Apache-2.0
// The result documents of this program, field by field. A field that a command adds to its result
// gets a word here, too. Fields may be missing that older versions did not write.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "report/form.h"

namespace lipscope::app {
namespace {

// One entry, or a difference of two.
void output_form(const JsonValue& value) {
  if (value.is_null()) return;
  value.object([&](JsonFields& fields) {
    const auto index = fields.find("index"), margin = fields.find("margin");
    if (index.has_value() == margin.has_value()) value.refuse("expected an index or a margin");
    index ? count_form(*index) : list_of(count_form, 2)(*margin);
  });
}

// What a picture is made of fits together.
void images_form(const JsonValue& value) {
  value.object([](JsonFields& fields) {
    const JsonValue channels = fields.at("channels");
    if (channels.count() != 1 && channels.count() != 3) channels.refuse("expected 1 or 3");
    for (const char* side : {"height", "width"}) {
      constexpr std::size_t kMost = 1U << 16U;
      if (fields.at(side).count() > kMost) fields.at(side).refuse("no size of a picture");
    }
    list_of(object_of({{"index", count_form}, {"data", text_form}}, {}))(fields.at("samples"));
  });
}

// An entry of a tensor: integers are not doubles here.
void entry_form(const JsonValue& value) {
  if (!value.json().is_number() && !value.json().is_boolean()) measure_form(value);
}

class ResultForms {
 public:
  [[nodiscard]] Form bound_form() const {
    const Form row =
        object_of({{"method", text_form}, {"side", side_}}, {{"value", or_null(real_form)},
                                                             {"guarantee", or_null(guarantee_)},
                                                             {"seconds", distance_form},
                                                             {"gap", measure_form},
                                                             {"note", text_form},
                                                             {"skipped", text_form}});
    const Form witness = object_of(
        {}, {{"x", reals_}, {"y", reals_}, {"direction", measures_}, {"quotient", real_form}});
    const FormFields ends{{"lower", nullable_bound_}, {"upper", nullable_bound_}};
    return object_of({{"schema", text_form}, {"query", query_}, {"methods", list_of(row)}},
                     {{"model", model_},
                      {"lower", nullable_bound_},
                      {"upper", nullable_bound_},
                      {"ratio", or_null(real_form)},
                      {"outcome", outcome_},
                      {"witness", or_null(witness)},
                      {"series", list_of(object_of({{"radius", distance_form}}, ends))},
                      {"margins", list_of(object_of({{"margin", margin_}}, ends))},
                      {"no_bound", text_form},
                      {"little_gain", text_form},
                      {"seconds", distance_form}});
  }

  [[nodiscard]] Form certify_form() const {
    const Form sample = object_of({{"index", count_form},
                                   {"label", whole_form},
                                   {"predicted", whole_form},
                                   {"radius", distance_form}},
                                  {{"method", text_form},
                                   {"attack_radius", or_null(distance_form)},
                                   {"rival", or_null(count_form)},
                                   {"complete", flag_form},
                                   {"tie", flag_form}});
    const Form by_class =
        object_of({{"class", count_form}}, {{"count", count_form},
                                            {"clean_accuracy", distance_form},
                                            {"median_radius", distance_form},
                                            {"median_attack_radius", or_null(distance_form)},
                                            {"certified", reals_}});
    const Form data =
        object_of({}, {{"file", text_form},
                       {"sha256", text_form},
                       {"count", count_form},
                       {"limit", or_null(count_form)},
                       {"scale", real_form},
                       {"range", list_of(real_form, 2)},
                       {"unit", text_form},
                       {"mean", reals_},
                       {"std", reals_},
                       {"labels", object_of({}, {{"file", text_form}, {"sha256", text_form}})}});
    const Form options = object_of({}, {{"attack", flag_form},
                                        {"parts", count_form},
                                        {"seed", count_form},
                                        {"effort", or_null(distance_form)}});
    return object_of(
        {{"schema", text_form},
         {"norm", text_form},
         {"certified", list_of(object_of({{"radius", distance_form}, {"accuracy", distance_form}},
                                         {{"attacked_accuracy", or_null(distance_form)},
                                          {"open", distance_form}}))},
         {"samples", list_of(sample)}},
        {{"model", model_},
         {"data", data},
         {"options", options},
         {"shard", text_form},
         {"missing", count_form},
         {"output", text_form},
         {"scope", word_of({"global", "local"})},
         {"count", count_form},
         {"clean_accuracy", distance_form},
         {"guarantee", object_of({}, {{"radius", guarantee_}, {"attack_radius", guarantee_}})},
         {"dropped", nullable_text_},
         {"inference", nullable_text_},
         {"accumulate", text_form},
         {"subnormals", word_of({"flushed", "kept"})},
         {"squash", nullable_text_},
         {"integers_as_reals", texts_},
         {"casts_as_identity", texts_},
         {"classes", list_of(by_class)},
         {"margins", list_of(object_of({{"margin", margin_}}, {{"upper", nullable_bound_}}))},
         {"images", images_form},
         {"required", object_of({{"radius", distance_form}, {"accuracy", distance_form}},
                                {{"holds", flag_form}, {"decided", flag_form}})},
         {"outcome", outcome_},
         {"hints", texts_},
         {"seconds", distance_form},
         {"seconds_constants", distance_form}});
  }

  [[nodiscard]] Form softmax_form() const {
    return object_of(
        {{"schema", text_form}, {"global", table_of_form(bound_)}},
        {{"lambda", real_form},
         {"rows", count_form},
         {"rows_done", count_form},
         {"complete", flag_form},
         {"outcome", outcome_},
         {"local", list_of(object_of({{"row", count_form}}, {{"norms", table_of_form(bracket_)},
                                                             {"log_sum_exp", measure_form},
                                                             {"probabilities", measures_}}))},
         {"summary", table_of_form(softmax_summary_)},
         {"empirical", empirical_}});
  }

  [[nodiscard]] Form game_form() const {
    const Form step = object_of({}, {{"iteration", count_form},
                                     {"error", measure_form},
                                     {"a_priori", measure_form},
                                     {"a_posteriori", measure_form}});
    const Form contraction =
        object_of({}, {{"factor", bound_}, {"norm", text_form}, {"tau_guaranteed", real_form}});
    const Form trace = object_of({}, {{"damping", real_form},
                                      {"rate", measure_form},
                                      {"bounds", text_form},
                                      {"guarantee", guarantee_},
                                      {"steps", list_of(step)}});
    return object_of(
        {{"schema", text_form}, {"x", reals_}, {"y", reals_}, {"value_bounds", bracket_}},
        {{"tau", distance_form},
         {"rows", count_form},
         {"cols", count_form},
         {"value", measure_form},
         {"gap", bound_},
         {"iterations", count_form},
         {"method", text_form},
         {"converged", flag_form},
         {"contraction", contraction},
         {"distance", bound_},
         {"distance_x", bound_},
         {"distance_y", bound_},
         {"exploitability", bound_},
         {"nash_value", bracket_},
         {"outcome", outcome_},
         {"seconds", distance_form},
         {"trace", trace}});
  }

  [[nodiscard]] Form attention_form() const {
    const Form bound = object_of({{"name", text_form}}, {{"norm", text_form},
                                                         {"value", measure_form},
                                                         {"guarantee", guarantee_},
                                                         {"theorem", text_form}});
    const Form head =
        object_of({{"head", count_form}},
                  {{"rows", count_form},
                   {"score_spread", measure_form},
                   {"entropy", measure_form},
                   {"share_near_half", measure_form},
                   {"jasmin", object_of({}, {{"g_1", measure_form}, {"ratio", measure_form}})},
                   {"softmax", table_of_form(softmax_summary_)},
                   {"local", bracket_},
                   {"bounds", list_of(bound)},
                   {"empirical", empirical_},
                   {"ball", bracket_}});
    const Form block =
        object_of({{"node", text_form}, {"heads", list_of(head)}}, {{"layer", count_form},
                                                                    {"kind", text_form},
                                                                    {"local", bracket_},
                                                                    {"outside", text_form},
                                                                    {"ball", bracket_}});
    const Form model = object_of({}, {{"file", text_form},
                                      {"sha256", text_form},
                                      {"local", bracket_},
                                      {"ball", bracket_},
                                      {"seconds", distance_form}});
    return object_of({{"schema", text_form}, {"blocks", list_of(block)}},
                     {{"sample", count_form},
                      {"from", nullable_text_},
                      {"model", model},
                      {"outcome", outcome_},
                      {"seconds", distance_form},
                      {"radius", or_null(distance_form)},
                      {"ball_norm", text_form},
                      {"integers_as_reals", texts_},
                      {"casts_as_identity", texts_}});
  }

  [[nodiscard]] Form inspect_form() const {
    const Form node = object_of({{"name", text_form}, {"op", text_form}},
                                {{"shape", or_null(list_of(whole_form))},
                                 {"gain", table_of_form(nullable_bound_)},
                                 {"supported", flag_form},
                                 {"reason", text_form}});
    const Form attention = object_of({{"node", text_form}}, {{"kind", text_form},
                                                             {"heads", count_form},
                                                             {"rows", count_form},
                                                             {"columns", count_form},
                                                             {"key_width", count_form},
                                                             {"value_width", count_form},
                                                             {"scale", or_null(measure_form)},
                                                             {"mask", text_form},
                                                             {"sources", texts_},
                                                             {"output", text_form},
                                                             {"norm", text_form},
                                                             {"residual", flag_form},
                                                             {"mlp", text_form}});
    return object_of({{"schema", text_form}, {"nodes", list_of(node)}},
                     {{"model", model_},
                      {"inputs", tensors_},
                      {"outputs", tensors_},
                      {"parameters", or_null(count_form)},
                      {"supported", flag_form},
                      {"outcome", outcome_},
                      {"reason", text_form},
                      {"attention", list_of(attention)}});
  }

  [[nodiscard]] Form eval_form() const {
    const Form output = object_of(
        {{"name", text_form}},
        {{"shape", list_of(count_form)}, {"type", text_form}, {"data", list_of(entry_form)}});
    return object_of({{"schema", text_form}, {"outputs", list_of(output)}},
                     {{"max_error", or_null(measure_form)}, {"difference", text_form}});
  }

  [[nodiscard]] FormFields check_fields() const {
    return {{"claim", or_null(bracket_)},
            {"model", model_},
            {"query", query_},
            {"proof", texts_},
            {"reason", text_form}};
  }

  [[nodiscard]] Form check_form() const {
    FormFields optional = check_fields();
    optional.emplace_back("certificates",
                          list_of(object_of({{"valid", flag_form}}, check_fields())));
    return object_of({{"schema", text_form}, {"valid", flag_form}}, optional);
  }

 private:
  const Form reals_ = list_of(real_form), measures_ = list_of(measure_form);
  const Form nullable_text_ = or_null(text_form), texts_ = list_of(text_form);
  const Form guarantee_ = word_of({"proved", "probable", "real", "estimate"});
  const Form side_ = word_of({"lower", "upper"});
  const Form outcome_ =
      word_of({"finished", "target", "little-gain", "time-limit", "memory-limit", "interrupted"});
  const Form bound_ =
      object_of({{"value", real_form}, {"guarantee", guarantee_}}, {{"method", text_form}});
  const Form nullable_bound_ = or_null(bound_);
  const Form bracket_ = object_of({}, {{"lower", nullable_bound_}, {"upper", nullable_bound_}});
  const Form margin_ = list_of(count_form, 2);
  const Form tensors_ = list_of(object_of({}, {{"name", text_form},
                                               {"shape", list_of(either(text_form, count_form))},
                                               {"type", text_form}}));

  const Form query_ = object_of(
      {{"norm_in", text_form},
       {"norm_out", text_form},
       {"domain", object_of({{"kind", word_of({"everywhere", "ball", "box", "ball+box"})}},
                            {{"center", reals_},
                             {"radius", distance_form},
                             {"norm", text_form},
                             {"lo", reals_},
                             {"hi", reals_}})}},
      {{"output", output_form},
       {"from", nullable_text_},
       {"to", nullable_text_},
       {"wrt", nullable_text_},
       {"logits", flag_form},
       {"dims", table_of_form(count_form)},
       {"shapes", table_of_form(list_of(whole_form))},
       {"integers_as_reals", texts_},
       {"casts_as_identity", texts_}});

  const Form model_ = object_of({}, {{"file", text_form},
                                     {"sha256", text_form},
                                     {"inputs", tensors_},
                                     {"outputs", tensors_},
                                     {"parameters", count_form},
                                     {"opset", whole_form},
                                     {"producer", text_form}});

  const Form softmax_summary_ = object_of({}, {{"max", measure_form},
                                               {"median", measure_form},
                                               {"share_above_0.4", measure_form},
                                               {"max_lower", measure_form},
                                               {"worst_row", whole_form}});
  const Form empirical_ = list_of(object_of({}, {{"epsilon", distance_form},
                                                 {"norm", text_form},
                                                 {"random_max", measure_form},
                                                 {"directed_max", measure_form}}));

 public:
  [[nodiscard]] const Form& guarantee() const { return guarantee_; }
  [[nodiscard]] const Form& side() const { return side_; }
  [[nodiscard]] const Form& bound() const { return bound_; }
};

// {"schema", NAME: rows}.
Form table_form(std::string_view name, Form row) {
  return object_of({{"schema", text_form}, {name, list_of(std::move(row))}}, {});
}

const std::map<std::string_view, Form>& forms_by_schema() {
  static const ResultForms forms;
  static const std::map<std::string_view, Form> table{
      {"lipscope.bound/1", forms.bound_form()},
      {"lipscope.certify/1", forms.certify_form()},
      {"lipscope.softmax/1", forms.softmax_form()},
      {"lipscope.game/1", forms.game_form()},
      {"lipscope.attention/1", forms.attention_form()},
      {"lipscope.inspect/1", forms.inspect_form()},
      {"lipscope.eval/1", forms.eval_form()},
      {"lipscope.check/1", forms.check_form()},
      {"lipscope.methods/1",
       table_form("methods", object_of({{"method", text_form}}, {{"side", forms.side()},
                                                                 {"guarantee", forms.guarantee()},
                                                                 {"summary", text_form},
                                                                 {"theory", text_form}}))},
      {"lipscope.ops/1",
       object_of(
           {{"schema", text_form},
            {"ops", list_of(object_of({{"op", text_form}}, {{"derivative", flag_form},
                                                            {"facets", list_of(text_form)}}))}},
           {{"facets", list_of(object_of({{"facet", text_form}, {"meaning", text_form}}, {}))}})},
      {"lipscope.activations/1",
       table_form("activations", object_of({{"name", text_form}}, {{"attributes", text_form},
                                                                   {"slope_min", real_form},
                                                                   {"slope_max", real_form},
                                                                   {"lipschitz", forms.bound()},
                                                                   {"where", measure_form}}))},
      {"lipscope.version/1", object_of({{"schema", text_form}, {"version", text_form}},
                                       {{"features", table_of_form(text_form)},
                                        {"processor", text_form},
                                        {"threads", count_form},
                                        {"blas", object_of({}, {{"version", text_form},
                                                                {"config", text_form},
                                                                {"kernel", text_form},
                                                                {"recommended", text_form}})}})},
      {"lipscope.error/1",
       object_of({{"schema", text_form}, {"code", text_form}, {"message", text_form}}, {})}};
  return table;
}

}  // namespace

void check_result_form(const JsonValue& document) {
  std::string schema;
  if (document.is_object()) {
    const auto found = JsonFields(document).find("schema");
    if (found && found->is_text()) schema = found->text();
  }
  if (!schema.starts_with("lipscope.")) {
    document.refuse(
        "not a result of this program: there is no \"schema\": \"lipscope....\" in it; make one "
        "with --json");
  }
  if (const auto form = forms_by_schema().find(schema); form != forms_by_schema().end())
    return form->second(document);
  for (const auto& [known, form] : forms_by_schema()) {
    const std::string_view kind = known.substr(0, known.find('/') + 1);
    if (schema.starts_with(kind)) {
      document.refuse(
          fmt::format("{} is another version; this program reads {}", in_quotes(schema), known));
    }
  }
  document.refuse(fmt::format("{} is no result that can be shown", in_quotes(schema)));
}

}  // namespace lipscope::app
