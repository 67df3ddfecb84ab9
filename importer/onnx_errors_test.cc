#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>

#include "importer/onnx.h"
#include "importer/onnx/onnx_op.h"
#include "importer/onnx_test_util.h"

// Each way in which a model can be wrong, and the whole line that the user reads.

namespace orrery::importer {
namespace onnx_errors_test_cc {
namespace {

using Model = onnx::ModelProto;

struct Case {
  std::string name;
  std::function<void(Model&)> damage;
  std::string error;
  ImportOptions options = {};

  friend std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }
};

// x [8,64] -> MatMul '/l.0/MatMul' -> Relu 'r' -> Gemm 'g' -> y [8,4]
Model Healthy() {
  Model model = ModelOf(R"(
g (float[8,64] x) => (float[8,4] y) <float[64,64] w0 = {}, float[64,4] w1 = {}, float[4] b = {}> {
  h = MatMul(x, w0)
  a = Relu(h)
  y = Gemm(a, w1, b)
})");
  const char* names[] = {"/l.0/MatMul", "r", "g"};
  for (int i = 0; i < 3; ++i) model.mutable_graph()->mutable_node(i)->set_name(names[i]);
  return model;
}

onnx::NodeProto* Node(Model& m, int i) { return m.mutable_graph()->mutable_node(i); }
onnx::TypeProto_Tensor* InputType(Model& m) {
  return m.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type();
}
onnx::TypeProto_Tensor* OutputType(Model& m) {
  return m.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type();
}
onnx::TensorShapeProto_Dimension* InputDim(Model& m, int d) {
  return InputType(m)->mutable_shape()->mutable_dim(d);
}
onnx::AttributeProto* AddAttribute(Model& m, int node, const std::string& name,
                                   onnx::AttributeProto::AttributeType type) {
  onnx::AttributeProto* attribute = Node(m, node)->add_attribute();
  attribute->set_name(name);
  attribute->set_type(type);
  return attribute;
}

class OnnxErrors : public testing::TestWithParam<Case> {};

TEST_P(OnnxErrors, AreOneClearLine) {
  Model model = Healthy();
  GetParam().damage(model);
  EXPECT_EQ(ImportText(model, GetParam().options), GetParam().error);
}

std::string NameOf(const testing::TestParamInfo<Case>& info) { return info.param.name; }

const Case kTypeCases[] = {
    {"InnerDimensions", [](Model& m) { InputDim(m, 1)->set_dim_value(96); },
     "m.onnx: node '/l.0/MatMul': inner dimensions differ; got 96 and 64"},
    {"UnnamedNode",
     [](Model& m) {
       Node(m, 0)->clear_name();
       InputDim(m, 1)->set_dim_value(96);
     },
     "m.onnx: the MatMul that makes 'h': inner dimensions differ; got 96 and 64"},
    {"DynamicWithoutValue", [](Model& m) { InputDim(m, 0)->set_dim_param("batch"); },
     "m.onnx: no value for the dynamic dimension 'batch' (dimension 0 of 'x'); try `batch-size` "
     "N"},
    {"UnknownSymbol",
     [](Model& m) { InputDim(m, 0)->set_dim_param("batch"); },
     "m.onnx: symbol 'btach' is no dynamic dimension of an input; wanted one of batch",
     {.symbols = {{"btach", 8}}}},
    {"SymbolOfFixedModel",
     [](Model&) {},
     "m.onnx: symbol 'batch' is no dynamic dimension of an input; all dimensions are fixed",
     {.symbols = {{"batch", 8}}}},
    {"SymbolBelowOne",
     [](Model& m) { InputDim(m, 0)->set_dim_param("batch"); },
     "m.onnx: symbol 'batch' is 0; wanted a value of at least 1",
     {.symbols = {{"batch", 0}}}},
    {"NegativeDim", [](Model& m) { InputDim(m, 0)->set_dim_value(-1); },
     "m.onnx: input 'x': is f32[-1,64]; wanted no negative dimension and at most 2^60 bytes in "
     "all"},
    {"HugeDim", [](Model& m) { InputDim(m, 0)->set_dim_value(INT64_MAX); },
     "m.onnx: input 'x': is f32[9223372036854775807,64]; wanted no negative dimension and at "
     "most 2^60 bytes in all"},
    {"HugeResult",
     [](Model& m) {
       InputDim(m, 0)->set_dim_value(int64_t{1} << 40);
       InputDim(m, 1)->set_dim_value(1);
       m.mutable_graph()->mutable_initializer(0)->set_dims(0, 1);
       m.mutable_graph()->mutable_initializer(0)->set_dims(1, int64_t{1} << 40);
     },
     "m.onnx: node '/l.0/MatMul': its result would be f32[1099511627776,1099511627776]; wanted at "
     "most 2^60 bytes"},
    {"ElementType", [](Model& m) { InputType(m)->set_elem_type(onnx::TensorProto::COMPLEX64); },
     "m.onnx: input 'x': element type COMPLEX64 is not supported; wanted one of FLOAT, FLOAT16, "
     "BFLOAT16, DOUBLE, BOOL, INT8, INT32, INT64, INT16, UINT8, UINT16, UINT32, UINT64"},
    {"InitializerElementType",
     [](Model& m) { m.mutable_graph()->mutable_initializer(1)->set_data_type(99); },
     "m.onnx: initializer 'w1': element type number 99 is not supported; wanted one of FLOAT, "
     "FLOAT16, BFLOAT16, DOUBLE, BOOL, INT8, INT32, INT64, INT16, UINT8, UINT16, UINT32, UINT64"},
    {"ElementTypesDiffer",
     [](Model& m) { InputType(m)->set_elem_type(onnx::TensorProto::FLOAT16); },
     "m.onnx: node '/l.0/MatMul': element types differ; got f16 and f32"},
    {"UnknownRank", [](Model& m) { InputType(m)->clear_shape(); },
     "m.onnx: input 'x': is f32[of unknown rank]; wanted a tensor of known rank"},
    {"NoTensor",
     [](Model& m) {
       auto* type = m.mutable_graph()->mutable_input(0)->mutable_type();
       type->mutable_sequence_type()->mutable_elem_type()->mutable_tensor_type()->set_elem_type(1);
     },
     "m.onnx: input 'x': is no tensor; wanted a tensor of known rank"},
    {"BiasDoesNotBroadcast",
     [](Model& m) {
       m.mutable_graph()->mutable_initializer(2)->set_dims(0, 2);
       m.mutable_graph()->mutable_initializer(2)->add_dims(8);
     },
     "m.onnx: node 'g': shapes [8,4] and [2,8] do not broadcast"},
    {"BiasGrowsTheProduct",
     [](Model& m) {
       onnx::TensorProto* bias = m.mutable_graph()->mutable_initializer(2);
       bias->clear_dims();
       for (const int dim : {2, 8, 4}) bias->add_dims(dim);
     },
     "m.onnx: node 'g': input 2 has shape [2,8,4]; wanted one that broadcasts to [8,4]"},
    {"AlphaIsInfinite",
     [](Model& m) { AddAttribute(m, 2, "alpha", onnx::AttributeProto::FLOAT)->set_f(1.0F / 0.0F); },
     "m.onnx: node 'g': alpha is inf; wanted a finite number"},
    {"GemmOfThreeDimensions",
     [](Model& m) { InputType(m)->mutable_shape()->add_dim()->set_dim_value(64); },
     "m.onnx: node 'g': input 0 has 3 dimensions; wanted 2"},
    {"FileDeclaresAnotherElementType",
     [](Model& m) { OutputType(m)->set_elem_type(onnx::TensorProto::DOUBLE); },
     "m.onnx: output 'y': the file says f64[8,4]; wanted f32[8,4], as its operands make it"},
    {"FileDeclaresAnotherRank", [](Model& m) { OutputType(m)->mutable_shape()->add_dim(); },
     "m.onnx: output 'y': the file says f32[8,4,?]; wanted f32[8,4], as its operands make it"},
};
INSTANTIATE_TEST_SUITE_P(Types, OnnxErrors, testing::ValuesIn(kTypeCases), NameOf);

// " is not supported; wanted one of 8 op types; see docs/onnx.md"
std::string Unsupported(const std::string& nor = "") {
  return absl::StrCat(" is not supported", nor, "; wanted one of ", OnnxOpCount(),
                      " op types; see docs/onnx.md");
}

const Case kStructureCases[] = {
    {"UnknownOps",
     [](Model& m) {
       Node(m, 1)->set_op_type("Softmex");
       Node(m, 2)->set_op_type("Erv");
     },
     "m.onnx: node 'r': op type Softmex" + Unsupported(" (nor are Erv)")},
    {"UnknownDomain", [](Model& m) { Node(m, 1)->set_domain("com.example"); },
     "m.onnx: node 'r': op type com.example.Relu" + Unsupported()},
    {"Loop", [](Model& m) { Node(m, 1)->set_op_type("Loop"); },
     "m.onnx: node 'r': Loop: how often it runs depends on data: its trip count is not known "
     "beforehand; try to unroll it"},
    {"Sequence", [](Model& m) { Node(m, 1)->set_op_type("SequenceAt"); },
     "m.onnx: node 'r': SequenceAt: sequences are not supported; wanted tensors"},
    {"NewOpset", [](Model& m) { m.mutable_opset_import(0)->set_version(22); },
     "m.onnx: is of opset 22; wanted 21 or older; try torch.onnx.export(…, opset_version=21)"},
    {"OldOpset", [](Model& m) { m.mutable_opset_import(0)->set_version(5); },
     "m.onnx: node 'g': Gemm of opset 5 is not supported; wanted opset 6 or later; try "
     "onnx.version_converter"},
    {"NoOpset", [](Model& m) { m.clear_opset_import(); },
     "m.onnx: names no version of the default opset"},
    {"GraphInGraph",
     [](Model& m) { AddAttribute(m, 1, "body", onnx::AttributeProto::GRAPH)->mutable_g(); },
     "m.onnx: node 'r': attribute 'body' is a graph; only If, Loop and Scan may have one"},
    {"SparseInitializer", [](Model& m) { m.mutable_graph()->add_sparse_initializer(); },
     "m.onnx: has 1 sparse initializers; not supported; wanted dense ones"},
    {"NoOutputs", [](Model& m) { m.mutable_graph()->clear_output(); },
     "m.onnx: the graph has no outputs"},
    {"OutputMadeByNoNode", [](Model& m) { m.mutable_graph()->mutable_output(0)->set_name("q"); },
     "m.onnx: output 'q': is made by no node"},
    {"OutputTwice", [](Model& m) { *m.mutable_graph()->add_output() = m.graph().output(0); },
     "m.onnx: output 'y': stands twice among the outputs"},
    {"InputTwice", [](Model& m) { *m.mutable_graph()->add_input() = m.graph().input(0); },
     "m.onnx: input 'x': stands twice among the inputs"},
    {"InputWithoutName", [](Model& m) { m.mutable_graph()->mutable_input(0)->clear_name(); },
     "m.onnx: a graph input has no name"},
    {"InitializerTwice",
     [](Model& m) { *m.mutable_graph()->add_initializer() = m.graph().initializer(0); },
     "m.onnx: initializer 'w0': stands twice"},
    {"ValueMadeTwice", [](Model& m) { Node(m, 1)->set_output(0, "h"); },
     "m.onnx: node 'r': makes 'h', which node '/l.0/MatMul' makes too; wanted each value made "
     "once"},
    {"NodeMakesInput", [](Model& m) { Node(m, 1)->set_output(0, "w0"); },
     "m.onnx: node 'r': makes 'w0', which is an input or initializer; wanted each value made once"},
    {"UsesNothing", [](Model& m) { Node(m, 1)->set_input(0, "q"); },
     "m.onnx: node 'r': uses 'q', which is no input, no initializer and made by no node"},
    {"OutOfOrder", [](Model& m) { m.mutable_graph()->mutable_node()->SwapElements(0, 1); },
     "m.onnx: node 'r': uses 'h' before node '/l.0/MatMul' makes it; wanted nodes in topological "
     "order"},
    {"Cycle", [](Model& m) { Node(m, 0)->set_input(0, "a"); },
     "m.onnx: node '/l.0/MatMul': needs its own result through 'a' of node 'r'; wanted a graph "
     "without cycles"},
    {"MissingInput", [](Model& m) { Node(m, 0)->set_input(1, ""); },
     "m.onnx: node '/l.0/MatMul': input 1 is missing; MatMul wants 2"},
    {"AttributeOfAnotherType",
     [](Model& m) { AddAttribute(m, 2, "alpha", onnx::AttributeProto::INT)->set_i(1); },
     "m.onnx: node 'g': attribute 'alpha' is of type INT; wanted FLOAT"},
    {"NameWithLineBreak", [](Model& m) { Node(m, 1)->set_input(0, "a\nb\xff"); },
     "m.onnx: node 'r': uses 'a\\x0ab\\xff', which is no input, no initializer and made by no "
     "node"},
};
INSTANTIATE_TEST_SUITE_P(Structure, OnnxErrors, testing::ValuesIn(kStructureCases), NameOf);

}  // namespace
}  // namespace onnx_errors_test_cc
}  // namespace orrery::importer
