#include "importer/onnx/onnx_given_values.h"

#include <gtest/gtest.h>

#include <limits>

#include "importer/onnx_test_util.h"

namespace orrery::importer {
namespace onnx_given_values_test_cc {
namespace {

using ir::DType;
using ir::Tensor;

TEST(GivenValues, MakeAnInputAConstant) {
  const onnx::ModelProto model = ModelOf(R"(
g (float[2,N] x, float[N] b, int64[1] unused) => (float[2,N] y) { y = Add(x, b) })");
  EXPECT_EQ(ImportText(model, {.symbols = {{"N", 3}},
                               .values = {{"b", Tensor::OfFloats(DType::kF32, {3}, {1, 2, 0.5})}}}),
            R"(
func @m (
  %x: f32[2,3] data,
  %unused: i64[1] data
) {
  %b: f32[3] = Constant() {values=[1.0, 2.0, 0.5]}
  %y: f32[2,3] = Add(%x, %b)
  return %y: result
}
)");
}

// Every element type passes through ONNX's own form.
TEST(GivenValues, KeepEveryBit) {
  constexpr double kHuge = std::numeric_limits<double>::infinity();
  const Tensor tensors[] = {
      Tensor::OfFloats(DType::kF64, {3}, {0.1, -1e300, 5e-324}),
      Tensor::OfFloats(DType::kF32, {3}, {0.5, -0x1.8p127, static_cast<double>(0.1F)}),
      Tensor::OfFloats(DType::kF16, {6},
                       {65504, -0.125, 0x1p-24, 0x1.ff8p-15, 0x1p-14, 1 + 0x1p-10}),
      Tensor::OfFloats(DType::kF16, {2}, {kHuge, -kHuge}),
      Tensor::OfFloats(DType::kBF16, {3}, {0x1.fep127, -0x1p-126, 1.5}),
      Tensor::OfInts(DType::kBool, {2}, {0, 1}),
      Tensor::OfInts(DType::kI8, {2}, {-128, 127}),
      Tensor::OfInts(DType::kU8, {2}, {0, 255}),
      Tensor::OfInts(DType::kI16, {2}, {-32768, 32767}),
      Tensor::OfInts(DType::kU16, {2}, {0, 65535}),
      Tensor::OfInts(DType::kI32, {2}, {-2147483648LL, 2147483647}),
      Tensor::OfInts(DType::kU32, {2}, {0, 4294967295LL}),
      Tensor::OfInts(DType::kI64, {2}, {std::numeric_limits<int64_t>::min(), 7}),
      Tensor::OfInts(DType::kU64, {2}, {-1, 7}),
  };
  for (const Tensor& tensor : tensors) {
    SCOPED_TRACE(ir::ToString(tensor.type(), ir::Mesh()));
    onnx::ModelProto model;
    model.set_ir_version(7);
    model.add_opset_import()->set_version(14);
    onnx::GraphProto& graph = *model.mutable_graph();
    graph.set_name("g");
    graph.add_input()->set_name("x");
    *graph.add_node() = [] {
      onnx::NodeProto node;
      node.set_op_type("Identity");
      node.add_input("x");
      node.add_output("y");
      return node;
    }();
    graph.add_output()->set_name("y");
    ASSERT_TRUE(GiveValues({{"x", tensor}}, graph).ok());
    EXPECT_EQ(graph.input_size(), 0);
    onnx::TypeProto_Tensor& type = *graph.mutable_output(0)->mutable_type()->mutable_tensor_type();
    type.set_elem_type(graph.node(0).attribute(0).t().data_type());
    for (const int64_t dim : tensor.dims()) type.mutable_shape()->add_dim()->set_dim_value(dim);
    const auto function = ImportOnnx(WriteTestFile("m.onnx", model.SerializeAsString()));
    ASSERT_TRUE(function.ok()) << function.status();
    const ir::OpId op = function->order()[0];
    EXPECT_EQ(ir::ConstantTensor(function->attributes(op), function->type(function->result(op))),
              tensor);
  }
}

TEST(GivenValues, OfAnotherTypeOrNameAreErrors) {
  const onnx::ModelProto model = ModelOf("g (float[2,N] x) => (float[2,N] y) { y = Relu(x) }");
  EXPECT_EQ(ImportText(model, {.values = {{"z", Tensor(DType::kF32, {2, 2})}}}),
            "m.onnx: a value is given for 'z', which is no input of the graph");
  EXPECT_EQ(ImportText(model, {.values = {{"x", Tensor(DType::kF32, {3, 2})}}}),
            "m.onnx: input 'x': the value given is f32[3,2]; wanted f32[2,N]");
  EXPECT_EQ(ImportText(model, {.values = {{"x", Tensor(DType::kI64, {2, 2})}}}),
            "m.onnx: input 'x': the value given is i64[2,2]; wanted f32[2,N]");
}

}  // namespace
}  // namespace onnx_given_values_test_cc
}  // namespace orrery::importer
