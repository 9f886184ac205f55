// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "io/arrays/gzip.h"
#include "lipscope/error.h"
#include "lipscope/evaluate.h"
#include "lipscope/model.h"
#include "lipscope/samples.h"
#include "tests/support/model_writer.h"

namespace lipscope {
namespace {

using testing_support::ModelWriter;
using testing_support::set_attribute;

// The message of the Error that `body` throws; checks its code.
template <class Body>
std::string message_of(ErrorCode code, Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

void expect_message(const std::string& message, std::initializer_list<std::string> parts) {
  EXPECT_EQ(message.rfind("test.onnx: ", 0), 0U) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  for (const std::string& part : parts) EXPECT_NE(message.find(part), std::string::npos) << message;
}

// y = relu(x W + b) with symbolic batch.
ModelWriter small_net() {
  ModelWriter w;
  w.input("x", {-1, 2});
  w.weight("W", {2, 3}, {1, 2, 3, -1, 0, 1});
  w.weight("b", {3}, {0, 0, -1});
  w.node("MatMul", {"x", "W"}, {"h"}, "dense");
  w.node("Add", {"h", "b"}, {"s"}, "bias");
  w.node("Relu", {"s"}, {"y"}, "relu");
  w.output("y");
  return w;
}

OnnxModel parse_model(const std::string& text) {
  return OnnxModel::parse(std::as_bytes(std::span(text)), "test.onnx");
}

TEST(OnnxModel, LoadsAndRunsASmallNet) {
  const OnnxModel model = small_net().read();
  const Graph graph = model.graph();
  EXPECT_EQ(graph.nodes().size(), 3U);
  EXPECT_EQ(graph.parameter_count(), 9);
  EXPECT_EQ(graph.value(graph.outputs()[0]).type.shape, (Shape{1, 3}));
  const std::vector<Tensor> x{Tensor::vector({1, 2})};
  const Tensor y = evaluate(graph, x)[0];
  EXPECT_EQ(y.at(0), 0);
  EXPECT_EQ(y.at(1), 2);
  EXPECT_EQ(y.at(2), 4);
}

TEST(OnnxModel, BatchesAreSamplesSideBySide) {
  const OnnxModel model = small_net().read();
  const std::vector<NamedTensor> arrays{
      {"x", Tensor(ElementType::kFloat32, {2, 2}, std::vector<double>{1, 2, 3, 4})}};
  const Samples samples = match_samples(model, arrays);
  EXPECT_EQ(samples.count, 2);
  const Graph graph = model.graph(samples.options);
  const Tensor y = evaluate(graph, samples.for_graph(graph), samples.count)[0];
  EXPECT_EQ(y.shape(), (Shape{2, 3}));
  EXPECT_EQ(y.at(4), 6);
}

TEST(OnnxModel, GzipIsTransparent) {
  const std::string text = small_net().bytes();
  const auto packed = deflate_bytes(std::as_bytes(std::span(text)), DeflateFormat::kGzip);
  EXPECT_EQ(OnnxModel::parse(packed, "test.onnx").graph().nodes().size(), 3U);
}

TEST(OnnxModel, NodesMayStandInAnyOrder) {
  ModelWriter w = small_net();
  w.model.mutable_graph()->mutable_node()->SwapElements(0, 2);
  EXPECT_EQ(w.read().graph().nodes().front().name, "dense");
}

TEST(OnnxModel, ShapeChainsOfDynamicBatchModelsFold) {
  ModelWriter w;
  w.input("x", {-1, 2, 3});
  w.integers("zero", {1}, {0});
  w.integers("minus", {1}, {-1});
  w.node("Shape", {"x"}, {"shape"});
  w.node("Gather", {"shape", "zero"}, {"n"});
  set_attribute(w.node("Concat", {"n", "minus"}, {"target"}), "axis", Index{0});
  w.node("Reshape", {"x", "target"}, {"y"}, "flat");
  w.output("y");
  const Graph graph = w.read().graph();
  ASSERT_EQ(graph.nodes().size(), 1U);
  EXPECT_EQ(graph.value(graph.outputs()[0]).type.shape, (Shape{1, 6}));
}

TEST(OnnxModel, IntegerInputsThatSetShapesAreBound) {
  ModelWriter w;
  w.input("x", {2, 3});
  w.input("target", {2}, onnx::TensorProto::INT64);
  w.node("Identity", {"target"}, {"t"});
  w.node("Reshape", {"x", "t"}, {"y"}, "reshape");
  w.output("y");
  const OnnxModel model = w.read();
  expect_message(message_of(ErrorCode::kUnsupported, [&] { (void)model.graph(); }),
                 {"'reshape'", "constant", "target"});
  const std::vector<NamedTensor> arrays{
      {"input_0", Tensor(ElementType::kFloat32, {2, 3}, std::vector<double>(6))},
      {"input_1", Tensor::integers({2}, {3, 2})}};
  const Samples samples = match_samples(model, arrays);
  const Graph graph = model.graph(samples.options);
  EXPECT_EQ(graph.inputs().size(), 1U);
  EXPECT_EQ(graph.value(graph.outputs()[0]).type.shape, (Shape{3, 2}));
}

TEST(OnnxModel, SymbolicDimensionsCanBeNamed) {
  ModelWriter w;
  w.input("x", {-1, -1, 4});
  w.node("Relu", {"x"}, {"y"});
  w.output("y");
  const OnnxModel model = w.read();
  expect_message(message_of(ErrorCode::kShape, [&] { (void)model.graph(); }), {"'d1'", "--dim"});
  GraphOptions options;
  options.dims["d1"] = 7;
  const Graph graph = model.graph(options);
  EXPECT_EQ(graph.value(graph.outputs()[0]).type.shape, (Shape{1, 7, 4}));
}

TEST(OnnxModel, SurveyNamesWhatIsNotSupported) {
  ModelWriter w = small_net();
  w.node("FancyOp", {"y"}, {"z"}, "fancy");
  w.node("Relu", {"z"}, {"out"}, "after");
  w.output("out");
  const auto survey = w.read().survey();
  ASSERT_EQ(survey.size(), 5U);
  EXPECT_TRUE(survey[2].supported);
  EXPECT_FALSE(survey[3].supported);
  EXPECT_NE(survey[3].reason.find("FancyOp"), std::string::npos);
  EXPECT_TRUE(survey[4].supported);
  EXPECT_TRUE(survey[4].shapes.empty());
}

TEST(OnnxModelBadInput, EmptyAndTruncatedAndForeignFiles) {
  expect_message(message_of(ErrorCode::kBadFile, [] { (void)parse_model(""); }), {"empty"});
  const std::string whole = small_net().bytes();
  for (const std::size_t keep : {whole.size() - 1, whole.size() / 2, std::size_t{12}}) {
    expect_message(
        message_of(ErrorCode::kBadFile, [&] { (void)parse_model(whole.substr(0, keep)); }),
        {"truncated"});
  }
  expect_message(
      message_of(ErrorCode::kBadFile, [] { (void)parse_model("PK\x03\x04....archive/data.pkl"); }),
      {"torch.onnx.export"});
  expect_message(message_of(ErrorCode::kBadFile, [] { (void)parse_model("\x80\x02}q\x01."); }),
                 {"torch.onnx.export"});
  expect_message(
      message_of(ErrorCode::kBadFile, [] { (void)parse_model("\x89HDF\r\n\x1a\n...."); }),
      {"tf2onnx"});
  expect_message(message_of(ErrorCode::kBadFile, [] { (void)parse_model("\x93NUMPY\x01"); }),
                 {"npy"});
  expect_message(message_of(ErrorCode::kBadFile, [] { (void)parse_model("hello, world\n"); }),
                 {"text"});
}

TEST(OnnxModelBadInput, MissingFile) {
  const std::string message =
      message_of(ErrorCode::kBadFile, [] { (void)OnnxModel::read("no/such/net.onnx"); });
  EXPECT_EQ(message.rfind("no/such/net.onnx: ", 0), 0U) << message;
}

TEST(OnnxModelBadInput, CycleAndDoubleDefinition) {
  ModelWriter w;
  w.input("x", {1, 2});
  w.node("Add", {"x", "b"}, {"a"}, "first");
  w.node("Relu", {"a"}, {"b"}, "second");
  w.output("b");
  expect_message(message_of(ErrorCode::kBadFile, [&] { (void)w.read(); }), {"'first'", "cycle"});
  ModelWriter twice = small_net();
  twice.node("Relu", {"s"}, {"y"}, "again");
  expect_message(message_of(ErrorCode::kBadFile, [&] { (void)twice.read(); }),
                 {"'again'", "'y'", "twice"});
}

TEST(OnnxModelBadInput, UnknownValuesOperatorsAndAttributes) {
  ModelWriter dangling = small_net();
  dangling.node("Relu", {"nothing"}, {"z"}, "lost");
  expect_message(message_of(ErrorCode::kBadFile, [&] { (void)dangling.read().graph(); }),
                 {"'lost'", "'nothing'"});
  ModelWriter unknown = small_net();
  unknown.node("FancyOp", {"y"}, {"z"}, "fancy");
  expect_message(message_of(ErrorCode::kUnsupported, [&] { (void)unknown.read().graph(); }),
                 {"'fancy'", "FancyOp", "lipscope ops"});
  ModelWriter foreign = small_net();
  foreign.node("Gelu", {"y"}, {"z"}, "custom")->set_domain("com.example");
  expect_message(message_of(ErrorCode::kUnsupported, [&] { (void)foreign.read().graph(); }),
                 {"com.example.Gelu"});
  ModelWriter odd = small_net();
  set_attribute(odd.node("Relu", {"y"}, {"z"}, "odd"), "wobble", Index{1});
  expect_message(message_of(ErrorCode::kUnsupported, [&] { (void)odd.read().graph(); }),
                 {"'odd'", "wobble"});
  ModelWriter flow = small_net();
  auto* attribute = flow.node("If", {"y"}, {"z"}, "branch")->add_attribute();
  attribute->set_name("then_branch");
  attribute->set_type(onnx::AttributeProto::GRAPH);
  expect_message(message_of(ErrorCode::kUnsupported, [&] { (void)flow.read().graph(); }),
                 {"'branch'", "control flow"});
}

// What programs may read in two ways is refused.
TEST(OnnxModelBadInput, FilesWithTwoMeanings) {
  ModelWriter twice = small_net();
  onnx::NodeProto* leaky = twice.node("LeakyRelu", {"y"}, {"z"}, "leaky");
  set_attribute(leaky, "alpha", 7.0F);
  set_attribute(leaky, "alpha", 0.1F);
  expect_message(message_of(ErrorCode::kBadFile, [&] { (void)twice.read(); }),
                 {"'leaky'", "'alpha'", "two"});
  ModelWriter refers = small_net();
  leaky = refers.node("LeakyRelu", {"y"}, {"z"}, "leaky");
  set_attribute(leaky, "alpha", 7.0F);
  leaky->mutable_attribute(0)->set_ref_attr_name("slope");
  expect_message(message_of(ErrorCode::kBadFile, [&] { (void)refers.read(); }),
                 {"'leaky'", "'alpha'", "function"});
  ModelWriter raw = small_net();
  raw.model.mutable_graph()->mutable_initializer(0)->set_raw_data(std::string(24, 0));
  expect_message(message_of(ErrorCode::kBadFile, [&] { (void)raw.read(); }), {"'W'", "two places"});
  ModelWriter typed = small_net();
  typed.model.mutable_graph()->mutable_initializer(0)->add_double_data(1);
  expect_message(message_of(ErrorCode::kBadFile, [&] { (void)typed.read(); }),
                 {"'W'", "two places"});
  ModelWriter more = small_net();
  more.node("Relu", {"y", "s"}, {"z"}, "more");
  expect_message(message_of(ErrorCode::kUnsupported, [&] { (void)more.read().graph(); }),
                 {"'more'", "input 1"});
}

// Softmax has another meaning since opset 13.
TEST(OnnxModelBadInput, NoOpset) {
  ModelWriter none = small_net();
  none.model.mutable_opset_import(0)->set_domain("com.example");
  expect_message(message_of(ErrorCode::kBadFile, [&] { (void)none.read(); }), {"'dense'", "opset"});
  ModelWriter old = small_net();  // from before there were opsets
  old.model.set_ir_version(2);
  old.model.clear_opset_import();
  EXPECT_EQ(old.read().opset(), 1);
}

// What its operators mean is not known yet.
TEST(OnnxModelBadInput, OpsetsOfTheFuture) {
  ModelWriter w = small_net();
  w.model.mutable_opset_import(0)->set_version(24);
  EXPECT_EQ(w.read().opset(), 24);
  for (const std::int64_t version : {std::int64_t{25}, std::int64_t{99}, std::int64_t{1} << 32,
                                     (std::int64_t{1} << 32) + 13, std::int64_t{-1}}) {
    w.model.mutable_opset_import(0)->set_version(version);
    expect_message(message_of(ErrorCode::kUnsupported, [&] { (void)w.read(); }),
                   {"opset " + std::to_string(version), "1 to 24"});
  }
  auto* import = w.model.add_opset_import();  // of others nothing is known, nor asked
  w.model.mutable_opset_import(0)->set_version(13);
  import->set_domain("com.example");
  import->set_version(99);
  EXPECT_EQ(w.read().opset(), 13);
}

// Found by fuzzing: names may hold line breaks.
TEST(OnnxModelBadInput, MessagesStayOnOneLine) {
  ModelWriter w = small_net();
  w.node("Fancy\nOp", {"y"}, {"z"}, "two\nlines");
  expect_message(message_of(ErrorCode::kUnsupported, [&] { (void)w.read().graph(); }),
                 {"two\\x0alines"});
  expect_message(message_of(ErrorCode::kUnsupported, [&] { w.read().require_supported(); }),
                 {"two\\x0alines"});
}

TEST(OnnxModelBadInput, NanAndInfiniteWeights) {
  ModelWriter nan = small_net();
  nan.model.mutable_graph()->mutable_initializer(0)->set_float_data(1, NAN);
  expect_message(message_of(ErrorCode::kBadFile, [&] { (void)nan.read(); }),
                 {"'dense'", "'W'", "NaN"});
  ModelWriter infinite = small_net();
  infinite.model.mutable_graph()->mutable_initializer(0)->set_float_data(1, INFINITY);
  expect_message(message_of(ErrorCode::kBadFile, [&] { (void)infinite.read(); }),
                 {"'W'", "infinite"});
  // A mask that is added may hold -inf.
  ModelWriter mask = small_net();
  mask.model.mutable_graph()->mutable_initializer(1)->set_float_data(0, -INFINITY);
  EXPECT_NO_THROW((void)mask.read().graph());
}

TEST(OnnxModelBadInput, TensorSizesThatDisagree) {
  ModelWriter few = small_net();
  few.model.mutable_graph()->mutable_initializer(0)->mutable_float_data()->RemoveLast();
  expect_message(message_of(ErrorCode::kBadFile, [&] { (void)few.read(); }), {"'W'", "6", "5"});
  ModelWriter raw = small_net();
  raw.model.mutable_graph()->mutable_initializer(0)->set_raw_data("1234567");
  expect_message(message_of(ErrorCode::kBadFile, [&] { (void)raw.read(); }), {"'W'", "24", "7"});
  ModelWriter huge = small_net();
  for (int i = 0; i < 4; ++i)
    huge.model.mutable_graph()->mutable_initializer(0)->add_dims(Index{1} << 40);
  expect_message(message_of(ErrorCode::kShape, [&] { (void)huge.read(); }), {"too many entries"});
  ModelWriter negative = small_net();
  negative.model.mutable_graph()->mutable_initializer(0)->set_dims(0, -2);
  expect_message(message_of(ErrorCode::kShape, [&] { (void)negative.read(); }), {"negative"});
}

TEST(OnnxModelBadInput, ShapesThatDoNotFit) {
  ModelWriter w = small_net();
  w.weight("c", {5}, {1, 2, 3, 4, 5});
  w.node("Add", {"y", "c"}, {"z"}, "clash");
  w.output("z");
  const std::string message = message_of(ErrorCode::kBadFile, [&] { (void)w.read().graph(); });
  expect_message(message, {"'clash'"});
}

class ExternalData : public ::testing::Test {
 protected:
  void SetUp() override {
    // Tests run side by side in processes of their own.
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ("lipscope_external_data_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_ / "model");
    write(folder_ / "model" / "w.data", 24);
    write(folder_ / "outside.data", 24);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static void write(const std::filesystem::path& path, std::size_t bytes) {
    std::ofstream(path, std::ios::binary) << std::string(bytes, '\0');
  }
  static ModelWriter with_location(const std::string& location, const std::string& offset = "0") {
    ModelWriter w = small_net();
    auto* tensor = w.model.mutable_graph()->mutable_initializer(0);
    tensor->clear_float_data();
    tensor->set_data_location(onnx::TensorProto::EXTERNAL);
    for (const auto& [key, value] :
         {std::pair<std::string, std::string>{"location", location}, {"offset", offset}}) {
      auto* entry = tensor->add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
    return w;
  }
  std::string folder() const { return (folder_ / "model").string(); }
  std::filesystem::path folder_;
};

TEST_F(ExternalData, IsReadFromBesideTheModel) {
  EXPECT_EQ(with_location("w.data").read(folder()).graph().parameter_count(), 9);
}
TEST_F(ExternalData, MayNotLeaveTheFolder) {
  for (const std::string& path :
       {std::string("../outside.data"), (folder_ / "outside.data").string(),
        std::string("sub/../../outside.data")}) {
    expect_message(
        message_of(ErrorCode::kBadFile, [&] { (void)with_location(path).read(folder()); }),
        {"'W'", "leaves"});
  }
  std::filesystem::create_symlink(folder_ / "outside.data", folder_ / "model" / "link.data");
  expect_message(
      message_of(ErrorCode::kBadFile, [&] { (void)with_location("link.data").read(folder()); }),
      {"leaves"});
}
TEST_F(ExternalData, MissingOrShortFilesAreNamed) {
  expect_message(
      message_of(ErrorCode::kBadFile, [&] { (void)with_location("no.data").read(folder()); }),
      {"'no.data'", "missing"});
  expect_message(
      message_of(ErrorCode::kBadFile, [&] { (void)with_location("w.data", "8").read(folder()); }),
      {"'w.data'", "24"});
  expect_message(
      message_of(ErrorCode::kBadFile, [&] { (void)with_location("w.data", "x").read(folder()); }),
      {"'x'"});
}

TEST(Samples, SaysWhatFits) {
  const OnnxModel model = small_net().read();
  const std::vector<NamedTensor> odd{{"", Tensor::vector({1, 2, 3})}};
  const Samples wrong = match_samples(model, odd);
  const Graph graph = model.graph(wrong.options);
  const std::string message = message_of(ErrorCode::kShape, [&] { (void)wrong.for_graph(graph); });
  EXPECT_NE(message.find("'x'"), std::string::npos) << message;
  const std::vector<NamedTensor> bytes{
      {"", Tensor(ElementType::kUInt8, {2, 2}, std::vector<Index>{0, 51, 102, 255})}};
  const Samples samples = match_samples(model, bytes, 1.0 / 255);
  EXPECT_EQ(samples.count, 2);
  EXPECT_EQ(samples.inputs.at("x").at(3), 255 * (1.0 / 255));
}

// Records of pictures hold both; --at and --input take the pictures.
TEST(Samples, TakesDataBesideLabels) {
  const OnnxModel model = small_net().read();
  const NamedTensor data{"data", Tensor::vector({1, 2})}, labels{"labels", Tensor::vector({7})};
  const std::vector<NamedTensor> both{labels, data};
  EXPECT_EQ(match_samples(model, both).inputs.at("x").at(1), 2);
  const std::vector<NamedTensor> other{{"weights", Tensor::vector({7})}, data};
  EXPECT_THROW((void)match_samples(model, other), Error);
}

}  // namespace
}  // namespace lipscope
