#include "importer/onnx/onnx_op.h"

#include <gtest/gtest.h>
#include <onnx/defs/schema.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/op_kind.h"

// What holds of each row of onnx_ops.def, so that a new row is tested without a new test.

namespace orrery::importer {
namespace onnx_op_test_cc {
namespace {

// The names in onnx_ops.def.
std::vector<std::string> AllTypes() {
  return {
#define ORRERY_ONNX_OP(type, file) #type,
#include "importer/onnx/onnx_ops.def"
#undef ORRERY_ONNX_OP
  };
}

TEST(OnnxOps, StandInTheOrderOfTheAlphabet) {
  const std::vector<std::string> types = AllTypes();
  EXPECT_TRUE(std::is_sorted(types.begin(), types.end()));
  EXPECT_EQ(std::adjacent_find(types.begin(), types.end()), types.end());
}

// Whether no version of the library's knows the op: of opsets 18 to 21, or of ONNX Runtime.
bool IsNewerThanTheSchemas(absl::string_view type) {
  return onnx::OpSchemaRegistry::Schema(std::string(type)) == nullptr;
}

TEST(OnnxOps, AgreeWithTheSchemasOfOnnx) {
  constexpr int64_t kNewestSchemas = 17;
  for (const OnnxOp* op : OnnxOps()) {
    EXPECT_EQ(FindOnnxOp(op->domain, op->type), op) << op->type;
    EXPECT_NE(op->lower, nullptr) << op->type;
    EXPECT_GE(op->since_opset, 1) << op->type;
    if (!op->domain.empty() || op->since_opset > kNewestSchemas) continue;
    int least = std::numeric_limits<int>::max(), most = 0;  // attributes have become inputs
    for (int version = 7; version <= kNewestSchemas; ++version) {
      const onnx::OpSchema* schema =
          onnx::OpSchemaRegistry::Schema(std::string(op->type), version, "");
      if (schema == nullptr) continue;
      least = std::min(least, schema->min_input());
      most = std::max(most, schema->max_input());
    }
    if (least > most && IsNewerThanTheSchemas(op->type)) continue;
    ASSERT_LE(least, most) << op->type << " is no op of ONNX";
    EXPECT_LE(op->inputs, most) << op->type;
    EXPECT_GE(op->inputs, least) << op->type;
  }
}

TEST(OnnxOps, OthersAreNotFound) {
  EXPECT_EQ(FindOnnxOp("", ""), nullptr);
  EXPECT_EQ(FindOnnxOp("", "relu"), nullptr);
  EXPECT_EQ(FindOnnxOp("com.example", "Relu"), nullptr);
  EXPECT_NE(FindOnnxOp("ai.onnx", "Relu"), nullptr);
}

onnx::NodeProto Node() {
  onnx::NodeProto node;
  node.set_op_type("Gemm");
  for (const char* input : {"x", "w", ""}) node.add_input(input);
  node.add_output("y");
  onnx::AttributeProto* alpha = node.add_attribute();
  alpha->set_name("alpha");
  alpha->set_f(0.5F);
  onnx::AttributeProto* flip = node.add_attribute();
  flip->set_name("transB");
  flip->set_i(1);
  return node;
}

TEST(NodeContext, ReadsTheNode) {
  const onnx::NodeProto node = Node();
  ir::Function function;
  Scope scope = {
      {"x", function.AddInput("x", {ir::DType::kF32, {8, 4}, {}}, ir::InputRole::kData)},
      {"w", function.AddInput("w", {ir::DType::kF32, {3, 4}, {}}, ir::InputRole::kData)}};
  KnownValues known;
  NodeContext context(node, 17, known, function, scope);
  EXPECT_TRUE(context.has_input(1));
  EXPECT_FALSE(context.has_input(2));  // the empty name
  EXPECT_FALSE(context.has_input(3));
  EXPECT_EQ(context.input(1), scope["w"]);
  EXPECT_EQ(context.input_type(1).dims, ir::Dims({3, 4}));
  EXPECT_EQ(context.Float("alpha", 1), 0.5);
  EXPECT_EQ(context.Float("beta", 1), 1);
  EXPECT_EQ(context.Int("transB", 0), 1);
  EXPECT_EQ(context.Int("transA", 0), 0);
}

TEST(NodeContext, AppendsOps) {
  const onnx::NodeProto node = Node();
  ir::Function function;
  Scope scope = {
      {"x", function.AddInput("x", {ir::DType::kF32, {8, 4}, {}}, ir::InputRole::kData)}};
  KnownValues known;
  NodeContext context(node, 17, known, function, scope);
  const auto y = context.Op(ir::OpKind::kRelu, {context.input(0)});
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ(function.value_name(*y), "");
  context.SetOutput(0, *y);
  EXPECT_EQ(function.value_name(*y), "y");
  EXPECT_EQ(scope["y"], *y);
  context.SetOutput(
      1, *context.Constant({ir::DType::kF32, {}, {}}, {}));  // the node has no such output
  EXPECT_EQ(scope.size(), 2);
  const auto bad = context.Op(ir::OpKind::kMatMul, {*y, *y});
  EXPECT_EQ(bad.status().message(), "inner dimensions differ; got 4 and 8");
}

// A value that has a name keeps it: the output is a view of it.
TEST(NodeContext, NamesAValueOnce) {
  const onnx::NodeProto node = Node();
  ir::Function function;
  Scope scope = {{"x", function.AddInput("x", {ir::DType::kF32, {8}, {}}, ir::InputRole::kData)}};
  KnownValues known;
  NodeContext context(node, 17, known, function, scope);
  const ir::ValueId x = scope["x"];
  context.SetOutput(0, x);
  EXPECT_EQ(function.value_name(x), "x");
  EXPECT_EQ(function.value_name(scope["y"]), "y");
  EXPECT_TRUE(context.MadeBy(scope["y"], ir::OpKind::kIdentity));
}

TEST(NodeContextDeathTest, ReadsWhatIsThere) {
  const onnx::NodeProto node = Node();
  ir::Function function;
  Scope scope;
  KnownValues known;
  NodeContext context(node, 17, known, function, scope);
  EXPECT_DEATH(context.input(1), "Gemm reads 'w'");
}

}  // namespace
}  // namespace onnx_op_test_cc
}  // namespace orrery::importer
