#include <gtest/gtest.h>

#include <string>

#include "importer/onnx_test_util.h"

// If whose condition is known: the branch that is taken stands in its place.

namespace orrery::importer {
namespace control_flow_test_cc {
namespace {

// x -> If(condition): then Relu(x) + c, with its own constant; else x -> y
std::string WithIf(const std::string& head, const std::string& condition) {
  onnx::ModelProto model = ModelOf(absl::StrCat("g (", head, " float[4] x) => (float[4] y) {\n",
                                                condition, "\n y = Identity(x)\n}"));
  onnx::NodeProto& node = *model.mutable_graph()->mutable_node(1);
  node.set_name("if");
  node.set_op_type("If");
  node.set_input(0, std::string(1, 'c'));  // g++ 12 warns of a literal (PR 105651)
  onnx::ModelProto then =
      ModelOf("t () => (float[4] r) <float b = {1.5}> { h = Relu(x)\n r = Add(h, b) }");
  onnx::ModelProto otherwise = ModelOf("e () => (float[4] x) { }");
  for (const auto& [name, graph] : {std::pair("then_branch", &then), {"else_branch", &otherwise}}) {
    onnx::AttributeProto* attribute = node.add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::GRAPH);
    *attribute->mutable_g() = graph->graph();
  }
  return ImportText(model);
}

TEST(If, TakesTheBranchThatIsKnown) {
  EXPECT_EQ(WithIf("", "c = Constant <value = bool {1}> ()"), R"(
func @m (
  %x: f32[4] data
) {
  %if/b: f32[] = Constant() {values=[1.5]}
  %if/h: f32[4] = Relu(%x)
  %y: f32[4] = Add(%if/h, %if/b)
  return %y: result
}
)");
  EXPECT_EQ(WithIf("", "c = Constant <value = bool {0}> ()"), R"(
func @m (
  %x: f32[4] data
) {
  %y: f32[4] = Identity(%x)
  return %y: result
}
)");
}

TEST(If, ConditionThatDependsOnData) {
  EXPECT_EQ(
      WithIf("bool d,", "c = Identity(d)"),
      "m.onnx: node 'if': its condition depends on data; wanted one that is known beforehand");
}

}  // namespace
}  // namespace control_flow_test_cc
}  // namespace orrery::importer
