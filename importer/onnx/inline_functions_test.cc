#include "importer/onnx/inline_functions.h"

#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "importer/onnx_test_util.h"

namespace orrery::importer {
namespace inline_functions_test_cc {
namespace {

// A model whose functions stand after the graph in ONNX's text form.
std::string Imported(const std::string& text) {
  onnx::ModelProto model;
  const std::string all =
      absl::StrCat("<ir_version: 8, opset_import: [\"\" : 14, \"f\" : 1]>\n", text);
  const auto status = onnx::OnnxParser::Parse(model, all.c_str());
  ORRERY_CHECK(status.IsOK()) << status.ErrorMessage() << "\n" << all;
  return ImportText(model);
}

constexpr char kHead[] = "<domain: \"f\", opset_import: [\"\" : 14]>\n";

TEST(InlineFunctions, NamesAndAttributes) {
  EXPECT_EQ(Imported(absl::StrCat(R"(
g (float[4,8] x) => (float[4,2] y) <float[8,2] w = {}, float[2] b = {}> {
  a = f.Twice <factor = 0.5> (x, w, b)
  y = f.Twice <factor = 2.0> (x, w, b)
  z = Add(a, y)
}
)",
                                  kHead, R"(Twice <factor> (x, w, b) => (y) {
  h = f.Once <scale = @factor> (x, w, b)
  y = Relu(h)
}
)",
                                  kHead, R"(Once <scale> (x, w, b) => (y) {
  h = Identity(x)
  y = Gemm <alpha: float = @scale> (h, w, b)
}
)")),
            R"(
func @m (
  %x: f32[4,8] data,
  %w: f32[8,2] parameter,
  %b: f32[2] parameter
) {
  %y/h/h: f32[4,8] = Identity(%x)
  %4: f32[4,2] = MatMul(%y/h/h, %w)
  %5: f32[4,2] = Scale(%4) {factor=2.0}
  %y/h: f32[4,2] = Add(%5, %b)
  %y: f32[4,2] = Relu(%y/h)
  return %y: result
}
)");
}

// Attributes that the call leaves out have the defaults of the function, a field that is newer than
// the ONNX library; the graphs of an If have theirs, too.
TEST(InlineFunctions, DefaultsAndAttributesOfBranches) {
  onnx::ModelProto model = ModelOf("g (float[4,8] x) => (float[4,8] y) { y = Scaled(x) }");
  model.mutable_graph()->mutable_node(0)->set_domain("f");
  const onnx::ModelProto body = ModelOf("b (float[4,8] x) => (float[4,8] y) { y = If(c) }");
  const onnx::ModelProto then =
      ModelOf("t () => (float[4,8] r) { r = LeakyRelu<alpha: float = @slope>(x) }");
  onnx::FunctionProto& function = *model.add_functions();
  function.set_domain("f");
  function.set_name("Scaled");
  function.add_input(std::string("x"));
  function.add_output(std::string("y"));
  *function.add_node() =
      ModelOf("k () => (bool c) { c = Constant<value = bool {1}>() }").graph().node(0);
  onnx::NodeProto& choice = *function.add_node() = body.graph().node(0);
  for (const char* name : {"then_branch", "else_branch"}) {
    onnx::AttributeProto& branch = *choice.add_attribute();
    branch.set_name(name);
    branch.set_type(onnx::AttributeProto::GRAPH);
    *branch.mutable_g() = then.graph();
  }
  onnx::AttributeProto slope;
  slope.set_name("slope");
  slope.set_type(onnx::AttributeProto::FLOAT);
  slope.set_f(0.5);
  function.GetReflection()->MutableUnknownFields(&function)->AddLengthDelimited(
      11, slope.SerializeAsString());
  EXPECT_NE(ImportText(model).find("%y: f32[4,8] = LeakyRelu(%x) {alpha=0.5}"), std::string::npos)
      << ImportText(model);
}

TEST(InlineFunctions, CallsItself) {
  EXPECT_EQ(
      Imported(absl::StrCat("g (float[4] x) => (float[4] y) { y = f.A(x) }\n", kHead,
                            "A (x) => (y) { y = f.B(x) }\n", kHead, "B (x) => (y) { y = f.A(x) }")),
      "m.onnx: the A that makes 'y': function 'A' calls itself");
}

TEST(InlineFunctions, TooManyInputs) {
  EXPECT_EQ(
      Imported(absl::StrCat("g (float[4] x) => (float[4] y) { y = f.A(x, x) }\n", kHead,
                            "A (x) => (y) { y = Relu(x) }")),
      "m.onnx: the A that makes 'y': has 2 inputs and 1 outputs; function 'A' wants at most 1 "
      "and 1");
}

// 10^12 calls of a function that does nothing.
TEST(InlineFunctions, StopsWhereFunctionsExplode) {
  std::string text = "g (float[4] x) => (float[4] y) { y = f.A12(x) }\n";
  for (int i = 12; i > 0; --i) {
    absl::StrAppend(&text, kHead, "A", i, " (x) => (y0) {\n");
    for (int call = 9; call >= 0; --call) {
      absl::StrAppend(&text, " y", call, " = f.A", i - 1, "(",
                      call == 9 ? std::string("x") : absl::StrCat("y", call + 1), ")\n");
    }
    absl::StrAppend(&text, "}\n");
  }
  absl::StrAppend(&text, kHead, "A0 (x) => (x) { }");
  EXPECT_EQ(Imported(text), "m.onnx: its functions make more than 65536 nodes");
}

// An output that is an input, an input that the call leaves out.
TEST(InlineFunctions, PassesThrough) {
  EXPECT_EQ(Imported(absl::StrCat(R"(
g (float[4,8] x) => (float[4,8] y, float[4,2] z) <float[8,2] w = {}> { y, z = f.A(x, w) }
)",
                                  kHead, "A (x, w, b) => (x, z) { z = Gemm(x, w, b) }")),
            R"(
func @m (
  %x: f32[4,8] data,
  %w: f32[8,2] parameter
) {
  %y: f32[4,8] = Identity(%x)
  %z: f32[4,2] = MatMul(%x, %w)
  return %y: result, %z: result
}
)");
}

// Calls of one name: as many, as values in all, and no name is looked for twice.
TEST(InlineFunctions, CallsOfOneName) {
  onnx::ModelProto model = ModelOf("g (float[4] x) => (float[4] y0) { }");
  onnx::FunctionProto& function = *model.add_functions();
  function.set_domain("f");
  function.set_name("A");
  function.add_input(std::string("x"));
  function.add_output(std::string("y"));
  for (const char* names : {"xh", "hy"}) {
    onnx::NodeProto& node = *function.add_node();
    node.set_op_type("Relu");
    node.add_input(std::string(1, names[0]));
    node.add_output(std::string(1, names[1]));
  }
  constexpr int kCalls = 10000;
  for (int i = kCalls; i > 0; --i) {
    onnx::NodeProto& call = *model.mutable_graph()->add_node();
    call.set_domain("f");
    call.set_op_type("A");
    call.set_name("c");
    call.add_input(i == kCalls ? std::string("x") : absl::StrCat("y", i));
    call.add_output(absl::StrCat("y", i - 1));
  }
  const std::string text = ImportText(model);
  for (const char* name : {"%c/h: ", "%c/h': ", "%c/h'2: ", "%c/h'9999: "}) {
    EXPECT_NE(text.find(name), std::string::npos) << name;
  }
}

// 2^14 calls in each other whose names grow by 1000 characters a level.
TEST(InlineFunctions, NamesThatMultiply) {
  const std::string name(1000, 'n');
  std::string text = "g (float[4] x) => (float[4] y) { y = f.A14(x) }\n";
  for (int i = 14; i > 0; --i) {
    absl::StrAppend(&text, kHead, "A", i, " (x) => (y) {\n ", name, " = f.A", i - 1,
                    "(x)\n y = f.A", i - 1, "(", name, ")\n}\n");
  }
  absl::StrAppend(&text, kHead, "A0 (x) => (y) { y = Relu(x) }");
  const std::string error = Imported(text);
  EXPECT_NE(
      error.find("what calls of functions copy takes more than 256 MiB; wanted shorter names, "
                 "smaller attributes or fewer calls"),
      std::string::npos)
      << error.substr(0, 1000);
}

// An attribute of 2 MB to which 200 nodes refer.
TEST(InlineFunctions, AnAttributeThatManyNodesReferTo) {
  onnx::ModelProto model = ModelOf("g (float[4] x) => (float[4] y) { y = A(x) }");
  onnx::NodeProto& call = *model.mutable_graph()->mutable_node(0);
  call.set_domain("f");
  onnx::AttributeProto& attribute = *call.add_attribute();
  attribute.set_name("a");
  attribute.set_type(onnx::AttributeProto::STRING);
  attribute.set_s(std::string(2 << 20, 'a'));
  onnx::FunctionProto& function = *model.add_functions();
  function.set_domain("f");
  function.set_name("A");
  function.add_input(std::string("x"));
  function.add_output(std::string("y"));
  for (int i = 0; i < 200; ++i) {
    onnx::NodeProto& node = *function.add_node();
    node.set_op_type("Relu");
    onnx::AttributeProto& reference = *node.add_attribute();
    reference.set_name("b");
    reference.set_ref_attr_name("a");
  }
  EXPECT_EQ(ImportText(model),
            "m.onnx: the A that makes 'y': what calls of functions copy takes more than 256 MiB; "
            "wanted shorter names, smaller attributes or fewer calls");
}

TEST(InlineFunctions, SeesNoValuesOfItsCaller) {
  EXPECT_EQ(Imported(absl::StrCat("g (float[4] x) => (float[4] y) { y = f.A() }\n", kHead,
                                  "A () => (y) { y = Relu(x) }")),
            "m.onnx: the A that makes 'y': function 'A' reads 'x', which is none of its inputs and "
            "made by none of its nodes");
}

TEST(InlineFunctions, StandsOnce) {
  const std::string function = absl::StrCat(kHead, "A (x) => (y) { y = Relu(x) }\n");
  EXPECT_EQ(
      Imported(absl::StrCat("g (float[4] x) => (float[4] y) { y = f.A(x) }\n", function, function)),
      "m.onnx: function 'A' of domain 'f' stands twice");
}

}  // namespace
}  // namespace inline_functions_test_cc
}  // namespace orrery::importer
