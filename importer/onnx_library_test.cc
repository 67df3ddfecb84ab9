#include "importer/onnx_library.h"

#include <gtest/gtest.h>

#include <string>

#include "importer/onnx_test_util.h"

namespace orrery::importer {
namespace {

constexpr char kGraph[] = R"(
g (float[8,16] x) => (float[8,4] y) <float[16,4] w = {}> {
  h = MatMul(x, w)
  y = Relu(h)
})";

TEST(CheckWithOnnx, NeedsNoWeights) {
  onnx::ModelProto model = ModelOf(kGraph);
  EXPECT_TRUE(CheckWithOnnx(model).ok()) << CheckWithOnnx(model);
  onnx::TensorProto* w = model.mutable_graph()->mutable_initializer(0);
  w->set_data_location(onnx::TensorProto::EXTERNAL);
  onnx::StringStringEntryProto* location = w->add_external_data();
  location->set_key("location");
  location->set_value("absent.bin");
  EXPECT_TRUE(CheckWithOnnx(model).ok()) << CheckWithOnnx(model);
}

TEST(CheckWithOnnx, SaysWhatIsWrongOnOneLine) {
  onnx::ModelProto model = ModelOf(kGraph);
  model.mutable_graph()->mutable_node(1)->set_op_type("Rely");
  EXPECT_EQ(
      CheckWithOnnx(model).message(),
      "ONNX's checker: No Op registered for Rely with domain_version of 14 ==> Context: Bad node "
      "spec for node. Name: OpType: Rely");
}

TEST(InferWithOnnx, FindsTypes) {
  const auto graph = InferWithOnnx(ModelOf(kGraph));
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ(graph->value_info_size(), 1);
  EXPECT_EQ(graph->value_info(0).name(), "h");
  const auto& shape = graph->value_info(0).type().tensor_type().shape();
  ASSERT_EQ(shape.dim_size(), 2);
  EXPECT_EQ(shape.dim(0).dim_value(), 8);
  EXPECT_EQ(shape.dim(1).dim_value(), 4);
}

TEST(InferWithOnnx, ContradictionsAreOneLine) {
  onnx::ModelProto model = ModelOf(kGraph);
  model.mutable_graph()->mutable_initializer(0)->set_dims(0, 17);
  const std::string inner(InferWithOnnx(model).status().message());
  EXPECT_EQ(inner.rfind("ONNX's shape inference: ", 0), 0) << inner;
  EXPECT_NE(inner.find("Incompatible dimensions for matrix multiplication"), std::string::npos)
      << inner;
  EXPECT_EQ(inner.find('\n'), std::string::npos) << inner;
}

}  // namespace
}  // namespace orrery::importer
