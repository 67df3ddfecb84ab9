#include "importer/onnx/onnx_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "importer/onnx.h"
#include "importer/onnx_test_util.h"

namespace orrery::importer {
namespace onnx_file_test_cc {
namespace {

std::string ImportBytes(const std::string& bytes) {
  return TextOf(ImportOnnx(WriteTestFile("m.onnx", bytes)));
}

onnx::ModelProto WithWeights(size_t bytes) {
  onnx::ModelProto model = ModelOf(R"(
g (float[8,128] x) => (float[8,128] y) <float[128,128] w = {}> {
  c = Constant <value = float[2] {1.0, 2.0}> ()
  y = MatMul(x, w)
})");
  model.mutable_graph()->mutable_initializer(0)->set_raw_data(std::string(bytes, '\x42'));
  model.mutable_graph()->mutable_node(0)->mutable_attribute(0)->mutable_t()->set_raw_data(
      std::string(bytes, '\x42'));
  return model;
}

TEST(ReadOnnxFile, LeavesOutTheWeights) {
  const onnx::ModelProto model = WithWeights(128 * 128 * 4);
  const auto read = ReadOnnxFile(WriteTestFile("m.onnx", model.SerializeAsString()));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_FALSE(read->graph().initializer(0).has_raw_data());
  EXPECT_FALSE(read->graph().node(0).attribute(0).t().has_raw_data());
  onnx::ModelProto expected = model;
  expected.mutable_graph()->mutable_initializer(0)->clear_raw_data();
  expected.mutable_graph()->mutable_node(0)->mutable_attribute(0)->mutable_t()->clear_raw_data();
  EXPECT_EQ(read->DebugString(), expected.DebugString());
}

TEST(ReadOnnxFile, KeepsSmallData) {
  const onnx::ModelProto model = WithWeights(32768);
  const auto read = ReadOnnxFile(WriteTestFile("m.onnx", model.SerializeAsString()));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->SerializeAsString(), model.SerializeAsString());
}

TEST(ReadOnnxFile, NotAFile) {
  const auto missing = ImportOnnx("/nowhere/m.onnx");
  EXPECT_EQ(missing.status(), absl::NotFoundError("/nowhere/m.onnx: no such file"));
  std::filesystem::create_directories(TestFolder() + "folder.onnx");
  EXPECT_EQ(TextOf(ImportOnnx(TestFolder() + "folder.onnx")),
            "folder.onnx: is a folder; wanted an ONNX file");
  ASSERT_EQ(mkfifo((TestFolder() + "pipe.onnx").c_str(), 0600), 0);
  EXPECT_EQ(TextOf(ImportOnnx(TestFolder() + "pipe.onnx")),
            "pipe.onnx: is no regular file; wanted an ONNX file");
}

TEST(ReadOnnxFile, NotAModel) {
  EXPECT_EQ(ImportBytes(""), "m.onnx: is empty; wanted an ONNX model");
  EXPECT_EQ(
      ImportBytes(std::string(4, '\0')),
      "m.onnx: byte 1: found no field of a message; the file is cut short, damaged or no ONNX "
      "model");
  EXPECT_EQ(
      ImportBytes("func @step (\n) {\n"),
      "m.onnx: byte 1: found a field of a kind that ONNX has not; the file is cut short, damaged "
      "or no ONNX model");
  EXPECT_EQ(ImportBytes("\x08\x07"), "m.onnx: holds no graph; wanted an ONNX model");
  EXPECT_EQ(ImportBytes("\x08\xff"),
            "m.onnx: byte 2: found half a number; the file is cut short, damaged or no ONNX model");
  EXPECT_EQ(ImportBytes("\x0a\xff"),
            "m.onnx: byte 2: found half a length; the file is cut short, damaged or no ONNX model");
  // A model whose opset_import is no message.
  EXPECT_EQ(ImportBytes(std::string("\x42\x01\x0f", 3)), "m.onnx: is damaged or no ONNX model");
}

TEST(ReadOnnxFile, CutShort) {
  const std::string bytes = WithWeights(2048).SerializeAsString();
  const std::string text = ImportBytes(bytes.substr(0, bytes.size() - 100));
  EXPECT_EQ(text, absl::StrCat("m.onnx: byte 5: a field claims ", bytes.size() - 11,
                               " bytes where ", bytes.size() - 105,
                               " are left; the file is cut short, damaged or no ONNX model"));
}

// A length of 4 GiB in a file of a few bytes must not ask for memory.
TEST(ReadOnnxFile, ClaimsMoreThanItHas) {
  EXPECT_EQ(
      ImportBytes("\x0a\xff\xff\xff\xff\x0f"),
      "m.onnx: byte 6: a field claims 4294967295 bytes where 0 are left; the file is cut short, "
      "damaged or no ONNX model");
}

// A field of the wire format that holds bytes: its head.
std::string Head(uint32_t field, uint64_t size) {
  std::string head(1, static_cast<char>(field << 3 | 2));
  for (; size >= 0x80; size >>= 7) head.push_back(static_cast<char>(size | 0x80));
  head.push_back(static_cast<char>(size));
  return head;
}

// 3 GiB of weights in the file itself, which is a hole on the disk: nobody reads them.
TEST(ReadOnnxFile, LargerThanProtobufCanCount) {
  onnx::ModelProto model =
      ModelOf("g (float[8,32768] x) => (float[8,24576] y) { y = MatMul(x, w) }");
  onnx::TensorProto weight;
  weight.set_name("w");
  weight.set_data_type(onnx::TensorProto::FLOAT);
  weight.add_dims(32768);
  weight.add_dims(24576);
  constexpr uint64_t kBytes = uint64_t{3} << 30;
  const std::string tensor = weight.SerializeAsString() + Head(9, kBytes);
  const std::string graph =
      model.graph().SerializeAsString() + Head(5, tensor.size() + kBytes) + tensor;
  model.clear_graph();
  const std::string head = model.SerializeAsString() + Head(7, graph.size() + kBytes) + graph;
  const std::string path = WriteTestFile("large.onnx", head);
  std::error_code error;
  std::filesystem::resize_file(path, head.size() + kBytes, error);
  if (error) GTEST_SKIP() << "no file of 3 GiB here: " << error.message();
  EXPECT_EQ(TextOf(ImportOnnx(path)), R"(
func @large (
  %x: f32[8,32768] data,
  %w: f32[32768,24576] parameter
) {
  %y: f32[8,24576] = MatMul(%x, %w)
  return %y: result
}
)");
  std::filesystem::remove(path);
}

// Weights may lie in branches and functions, too.
TEST(ReadOnnxFile, LeavesOutWeightsInside) {
  const onnx::ModelProto inner = WithWeights(128 * 128 * 4);
  onnx::ModelProto model = ModelOf("g (bool c) => (float[8,128] y) { y = If(c) }");
  onnx::AttributeProto& branch = *model.mutable_graph()->mutable_node(0)->add_attribute();
  branch.set_name("then_branch");
  branch.set_type(onnx::AttributeProto::GRAPH);
  *branch.mutable_g() = inner.graph();
  onnx::FunctionProto& function = *model.add_functions();
  function.set_name("A");
  *function.add_node() = inner.graph().node(0);
  const auto read = ReadOnnxFile(WriteTestFile("m.onnx", model.SerializeAsString()));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_LT(read->ByteSizeLong(), 1000);
  const onnx::GraphProto& graph = read->graph().node(0).attribute(0).g();
  ASSERT_EQ(graph.initializer_size(), 1);
  EXPECT_EQ(graph.initializer(0).dims_size(), 2);
  EXPECT_EQ(read->functions(0).node(0).attribute(0).t().name(), "");
}

}  // namespace
}  // namespace onnx_file_test_cc
}  // namespace orrery::importer
