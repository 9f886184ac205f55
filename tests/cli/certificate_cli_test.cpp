// SPDX-License-Identifier: Apache-2.0
// Certificates that are damaged, forged or about something else, as check meets them.
#include "tests/cli/cli_fixture.h"
#include "tests/support/model_writer.h"
#include "tests/support/resealed.h"

namespace {

using namespace lipscope::testing_support;
using Document = lipscope::Json;  // with its fields in order

class CertificateCli : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    ModelWriter writer;
    writer.input("x", {-1, 2});
    writer.weight("A", {2, 2}, {1, 1, 1, 1});
    writer.node("MatMul", {"x", "A"}, {"h"}, "first");
    writer.node("Relu", {"h"}, {"r"}, "relu");
    writer.node("MatMul", {"r", "A"}, {"y"}, "second");
    writer.output("y");
    model_ = file("net.onnx", writer.bytes());
  }

  std::string certificate(const std::string& flags = "") const {
    const std::string path = (folder_ / "c.json").string();
    const Outcome bound = run("bound --effort 1/20 " + model_ + flags + " --certificate " + path);
    EXPECT_EQ(bound.code, 0) << bound.err;
    return slurp(path);
  }
  Document document(const std::string& flags = "") const {
    return Document::parse(certificate(flags));
  }
  std::string signed_again(const Document& changed) const {
    return file("changed.json", resealed_text(changed));
  }
  std::string call(const std::string& path) const { return "check " + model_ + " " + path; }
  void expect_malformed(const Document& changed, const std::string& word) const {
    expect_failure(call(signed_again(changed)), 3, word);
  }
  // Read and not believed: an answer, on standard output.
  void expect_rejected(const std::string& path, const std::string& word = "") const {
    const Outcome plain = run(call(path));
    EXPECT_EQ(plain.code, 1) << plain.err;
    EXPECT_EQ(plain.out.find("rejected: "), 0U) << plain.out;
    EXPECT_NE(plain.out.find(word), std::string::npos) << plain.out;
    EXPECT_EQ(plain.err, "");
    const Outcome machine = run(call(path) + " --json");
    EXPECT_EQ(machine.code, 1);
    EXPECT_EQ(Json::parse(machine.out)["valid"], false);
  }

  std::string model_;
};

TEST_F(CertificateCli, AHonestOneIsAccepted) {
  const Outcome result = run(call(file("c.json", certificate())));
  EXPECT_EQ(result.code, 0) << result.out << result.err;
}

// -0 is another double than 0, and the digest is of its text.
TEST_F(CertificateCli, MinusZeroIsKept) {
  const std::string text = certificate(" --box=-0,1");
  EXPECT_NE(text.find("[-0,-0]"), std::string::npos) << text;
  const Outcome result = run(call(file("c.json", text)));
  EXPECT_EQ(result.code, 0) << result.out << result.err;
}

// True, but no statement about a constant.
TEST_F(CertificateCli, MinusInfinityIsNoClaim) {
  Document changed = document();
  changed["claim"]["lower"]["value"] = "-inf";
  expect_malformed(changed, "value");
}

TEST_F(CertificateCli, HostileFilesAreRefusedOnOneLine) {
  for (const std::string open : {"[", "{\"a\":", "{\"schema\":["}) {
    std::string deep;
    for (int i = 0; i < 300'000; ++i) deep += open;
    expect_failure(call(file("deep.json", deep)), 3, "brackets");
  }
  // All brackets closed, in a document that is right otherwise.
  std::string text = certificate();
  const std::string claim = "\"claim\":";
  text.insert(text.find(claim) + claim.size(),
              std::string(300'000, '[') + std::string(300'000, ']') + ",\"more\":");
  expect_failure(call(file("deep.json", text)), 3, "brackets");
  const std::string big = file("big.json", "{}");
  fs::resize_file(big, std::uintmax_t{1} << 30U);  // a hole
  expect_failure(call(big), 3, "1073741824 bytes");
  fs::resize_file(big, 100'000);
  expect_failure(call(big), 3, "not JSON");
  expect_failure(call(file("empty.json", "")), 3, "truncated");
  expect_failure(call(folder_.string()), 3, "directory");
  expect_failure(call("nowhere.json"), 3, "nowhere.json");
  expect_failure(call("/dev/zero"), 3, "/dev/zero: is a device");
}

TEST_F(CertificateCli, ATruncatedOneIsRefused) {
  const std::string text = certificate();
  for (std::size_t length = text.size() - 2; length > 0; length = length * 3 / 4)
    expect_failure(call(file("cut.json", text.substr(0, length))), 3, "truncated");
}

TEST_F(CertificateCli, OneForAnotherModelOrNormIsRejected) {
  const std::string path = file("c.json", certificate());
  const Outcome other = run("check " + kModels + "fashion_mlp.onnx " + path);
  EXPECT_EQ(other.code, 1);
  EXPECT_NE(other.out.find("another model"), std::string::npos) << other.out;
  Document changed = document();
  changed["query"]["norm_in"] = "inf";
  changed["query"]["norm_out"] = "1";
  expect_rejected(file("unsigned.json", lipscope::to_text(changed)), "digest");
  expect_rejected(signed_again(changed));
  changed = document();
  changed["claim"]["upper"]["value"] = 3.9;
  expect_rejected(signed_again(changed));
}

TEST_F(CertificateCli, AnotherSchemaIsRefused) {
  const std::string schema = document()["schema"];
  const std::string kind = schema.substr(0, schema.find('/') + 1);
  for (const std::string& other :
       {kind + "99", kind, std::string("lipscope.bound/1"), std::string("2"), std::string()}) {
    Document changed = document();
    changed["schema"] = other;
    expect_malformed(changed, "certificate");
  }
  Document changed = document();
  changed["schema"] = 1;
  expect_malformed(changed, "certificate");
  changed.erase("schema");
  expect_malformed(changed, "certificate");
}

// Nothing falls back to a default.
TEST_F(CertificateCli, WrongTypesAreRefused) {
  const Document good = document(" --box=-1,1");
  const auto refused = [&](const char* pointer, const Document& value, const std::string& word) {
    Document changed = good;
    changed[Document::json_pointer(pointer)] = value;
    expect_malformed(changed, word);
  };
  refused("/query/to", 1e308, "query.to: expected a string or null, found a number");
  refused("/query/wrt", Document::array(), "query.wrt: expected a string or null, found an array");
  refused("/query/from", false, "query.from");
  refused("/query/logits", "yes", "query.logits: expected true or false");
  refused("/query/norm_in", 2, "query.norm_in: expected a string");
  refused("/query/norm_in", "2:3", "query.norm_in");
  refused("/query/norm_in", "0.5", "query.norm_in");
  refused("/query/norm_out", nullptr, "query.norm_out");
  refused("/query/domain", "everywhere", "query.domain");
  refused("/query/domain/kind", "sphere", "query.domain.kind");
  refused("/query/domain/lo", 0, "query.domain.lo");
  refused("/query/domain/lo/1", "x", "query.domain.lo[1]");
  refused("/query/domain/radius", 1, "query.domain: unknown field 'radius'");
  refused("/query/output", 0, "query.output");
  refused("/query/output", {{"index", "0"}}, "query.output.index");
  refused("/query/output", {{"index", 0.5}}, "query.output.index");
  refused("/query/output", {{"margin", {0, 1, 1}}}, "query.output.margin");
  refused("/query/output", {{"index", 0}, {"margin", {0, 1}}}, "query.output");
  refused("/query/output", Document::object(), "query.output");
  refused("/query/dims", {{"batch", 1.5}}, "query.dims.batch");
  refused("/query/shapes", {{"x", 2}}, "query.shapes.x");
  refused("/query/surprise", 1, "query: unknown field 'surprise'");
  refused("/model", good["model"]["sha256"], "model");
  refused("/model/file", "net.onnx", "model: unknown field 'file'");
  refused("/claim/upper", nullptr, "claim.upper");
  refused("/claim/upper/value", "4", "claim.upper.value");
  refused("/claim/upper/value", "nan", "claim.upper.value");
  refused("/claim/upper/value", 9007199254740993, "claim.upper.value");
  refused("/claim/upper/guarantee", "real", "claim.upper.guarantee");
  refused("/proof", Document::object(), "proof");
  refused("/proof/0/kind", "trust", "proof[0]");
  refused("/proof/0/surprise", 1, "unknown field 'surprise'");
  refused("/more", 1, "unknown field 'more'");
  for (const char* field : {"query", "claim", "proof", "model"}) {
    Document changed = good;
    changed.erase(field);
    expect_malformed(changed, std::string("'") + field + "'");
  }
}

TEST_F(CertificateCli, RepeatedFieldsAndNumbersBeyondDoubleAreRefused) {
  std::string text = certificate();
  const std::string at = "\"logits\":false";
  text.replace(text.find(at), at.size(), "\"logits\":false,\"logits\":true");
  expect_failure(call(file("twice.json", text)), 3, "query: the field 'logits' is there twice");
  text = certificate();
  const std::string value = "\"value\":";
  text.insert(text.find(value) + value.size(), "1e999,\"x\":");
  expect_failure(call(file("large.json", text)), 3, "a number beyond the largest double");
}

// One output or the difference of two.
TEST_F(CertificateCli, OutputAndMarginExcludeEachOther) {
  expect_failure("bound " + model_ + " --output 0 --margin 0,1", 2, "--margin");
  expect_failure("bound " + model_ + " --output 0 --margin all", 2, "--margin");
}

}  // namespace
