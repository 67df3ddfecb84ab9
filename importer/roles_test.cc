#include "importer/roles.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "importer/onnx_test_util.h"
#include "importer/role_patterns.h"

namespace orrery::importer {
namespace roles_test_cc {
namespace {

// x -> MatMul w -> + b -> y; the bias is read again by an op that has no gradient.
constexpr char kLinear[] = R"(
g (float[8,16] x) => (float[8,4] y, int64[4] i)
<float[16,4] w = {}, float[4] b = {}, int64[4] t = {1, 2, 3, 4}, float[9] idle = {}> {
  h = MatMul(x, w)
  y = Add(h, b)
  i = Add(t, t)
})";

TEST(AssignRoles, ParametersAreWhatAGradientGetsTo) {
  const std::string text = ImportText(ModelOf(kLinear));
  EXPECT_EQ(text.substr(0, text.find(')')), R"(
func @m (
  %x: f32[8,16] data,
  %w: f32[16,4] parameter,
  %b: f32[4] parameter
)");
}

TEST(AssignRoles, Freeze) {
  const std::string text = ImportText(ModelOf(kLinear), {.roles = {.freeze = "^b$|table"}});
  EXPECT_EQ(text.substr(0, text.find(')')), R"(
func @m (
  %x: f32[8,16] data,
  %w: f32[16,4] parameter,
  %b: f32[4] buffer
)");
  EXPECT_EQ(ImportText(ModelOf(kLinear), {.roles = {.freeze = "table"}}),
            "m.onnx: freeze 'table': matches the name of no parameter");
  EXPECT_EQ(ImportText(ModelOf(kLinear), {.roles = {.freeze = "("}}),
            "m.onnx: freeze '(': is no regular expression; wanted one such as 'embed.*weight'");
  EXPECT_EQ(
      ImportText(ModelOf(kLinear), {.roles = {.freeze = std::string(257, 'x')}}),
      absl::StrCat("m.onnx: freeze '", std::string(257, 'x'), "': is longer than 256 characters"));
}

// As the pattern is looked for in the name, a part of it is enough.
TEST(AssignRoles, FreezeMatchesPartsOfNames) {
  const std::string text = ImportText(ModelOf(R"(
g (float[8,4] x) => (float[8,4] y) <float[4] h0_bias = {}, float[4] h0_weight = {}> {
  h = Mul(x, h0_weight)
  y = Add(h, h0_bias)
})"),
                                      {.roles = {.freeze = "bias"}});
  EXPECT_EQ(text.substr(0, text.find(')')), R"(
func @m (
  %x: f32[8,4] data,
  %h0_bias: f32[4] buffer,
  %h0_weight: f32[4] parameter
)");
}

// What only a backward pass reads is trained where a forward pass of the file leads to it.
TEST(AssignRoles, WeightsBehindTheSeedOfTheFilesBackward) {
  const auto inputs = [](const std::string& nodes) {
    const std::string text = ImportText(ModelOf(absl::StrCat(
        "g (float[8,4] x, float[8,4] z) => (float[4,4] q) <float[4,4] w = {}> {", nodes, "}")));
    return text.substr(0, text.find(')'));
  };
  const std::string head = "\nfunc @m (\n  %x: f32[8,4] data,\n  %z: f32[8,4] data,\n";
  EXPECT_EQ(inputs("y = MatMul(x, w) d = LossGrad(y, z) dx, q = MatMulGrad(x, w, d)"),
            absl::StrCat(head, "  %w: f32[4,4] parameter\n"));
  EXPECT_EQ(inputs("dx, q = MatMulGrad(x, w, z)"), absl::StrCat(head, "  %w: f32[4,4] buffer\n"));
}

// A backtracking engine would take longer than anyone waits.
TEST(AssignRoles, FreezeCannotHang) {
  onnx::ModelProto model =
      ModelOf("g (float[2,4] x) => (float[2,4] y) <float[4] w = {}> { y = Add(x, w) }");
  const std::string name(200, 'a');
  model.mutable_graph()->mutable_initializer(0)->set_name(name);
  model.mutable_graph()->mutable_node(0)->set_input(1, name);
  EXPECT_EQ(ImportText(model, {.roles = {.freeze = "(a*)*(a*)*(a*)*b$"}}),
            "m.onnx: freeze '(a*)*(a*)*(a*)*b$': matches the name of no parameter");
}

// A small pattern may stand for a very large one.
TEST(AssignRoles, FreezeRepeatsTooMuch) {
  for (const char* pattern : {"(((.*){30}){30}){20}~", "(x{100}){100}", "x{2000}"}) {
    EXPECT_EQ(ImportText(ModelOf(kLinear), {.roles = {.freeze = pattern}}),
              absl::StrCat("m.onnx: freeze '", pattern,
                           "': repeats too much; wanted a pattern such as 'embed.*weight'"));
  }
}

// Layer norms share their initial values: PyTorch stores them once, but trains them all.
TEST(AssignRoles, CopiesOfAnInitializerAreParametersOfTheirOwn) {
  EXPECT_EQ(ImportText(ModelOf(R"(
g (float[8,4] x) => (float[8,4] y) <float[4] first = {1, 1, 1, 1}> {
  second = Identity(first)
  h = Mul(x, first)
  y = Mul(h, second)
})")),
            R"(
func @m (
  %x: f32[8,4] data,
  %first: f32[4] parameter,
  %second: f32[4] parameter
) {
  %h: f32[8,4] = Mul(%x, %first)
  %y: f32[8,4] = Mul(%h, %second)
  return %y: result
}
)");
}

// The step of DistIR's notebook: weights are inputs of the graph.
TEST(AssignRoles, BackwardPassOfTheFile) {
  onnx::ModelProto model = ModelOf(R"(
g (float[8,16] x, float[8,16] z, float[16,16] wA, float[16,16] wB)
  => (float[8,16] l, float[16,16] dwB, float[8,16] dy0, float[16,16] dwA) {
  y0 = MatMul(x, wA)
  a0 = Relu(y0)
  y1 = MatMul(a0, wB)
  a1 = Relu(y1)
  l = Loss <N = 8> (a1, z)
  dl = LossGrad <N = 8> (a1, z)
  da1 = ReluGrad(y1, dl)
  dy1, dwB = MatMulGrad(a0, wB, da1)
  da0 = ReluGrad(y0, dy1)
  dy0, dwA = MatMulGrad(x, wA, da0)
})");
  model.mutable_graph()->mutable_node(9)->set_domain("dist_ir");
  EXPECT_EQ(ImportText(model), R"(
func @m (
  %x: f32[8,16] data,
  %z: f32[8,16] data,
  %wA: f32[16,16] parameter,
  %wB: f32[16,16] parameter
) {
  %y0: f32[8,16] = MatMul(%x, %wA)
  %a0: f32[8,16] = Relu(%y0)
  %y1: f32[8,16] = MatMul(%a0, %wB)
  %a1: f32[8,16] = Relu(%y1)
  %l: f32[8,16] = Loss(%a1, %z) {batch=8}
  %dl: f32[8,16] = LossGrad(%a1, %z) {batch=8}
  %da1: f32[8,16] = ReluGrad(%y1, %dl)
  %dy1: f32[8,16], %dwB: f32[16,16] = MatMulGrad(%a0, %wB, %da1)
  %da0: f32[8,16] = ReluGrad(%y0, %dy1)
  %dy0: f32[8,16], %dwA: f32[16,16] = MatMulGrad(%x, %wA, %da0)
  return %l: loss, %dwB: gradient(%wB), %dy0: result, %dwA: gradient(%wA)
}
)");
}

// A file that was exported without its parameters has them as inputs: a table and what stands
// behind it are weights; data that is not of the batch is none.
constexpr char kWithoutParameters[] = R"(
g (int64[batch,3] ids, float[3,3] mask, float[10,4] table, float[4,5] w, float[5] b)
  => (float[batch,3,5] y) {
  x = Gather(table, ids)
  m = MatMul(x, w)
  y = Add(m, b)
  u = Relu(mask)
})";

TEST(AssignRoles, WeightsAmongInputs) {
  const std::string text = ImportText(ModelOf(kWithoutParameters), {.batch_size = 2});
  EXPECT_EQ(text.substr(0, text.find(')')), R"(
func @m (
  %ids: i64[2,3] data,
  %mask: f32[3,3] buffer,
  %table: f32[10,4] parameter,
  %w: f32[4,5] parameter,
  %b: f32[5] parameter
)");
}

TEST(AssignRoles, InputsThatTheUserNames) {
  const auto head = [](const RolePatterns& roles) {
    const std::string text =
        ImportText(ModelOf(kWithoutParameters), {.batch_size = 2, .roles = roles});
    return text.substr(0, text.find(')'));
  };
  EXPECT_EQ(head({.data = "^(w|b)$"}), R"(
func @m (
  %ids: i64[2,3] data,
  %mask: f32[3,3] buffer,
  %table: f32[10,4] parameter,
  %w: f32[4,5] data,
  %b: f32[5] data
)");
  EXPECT_EQ(head({.parameters = "nothing"}),
            "m.onnx: parameters 'nothing': matches the name of no input");
  EXPECT_EQ(head({.data = "("}),
            "m.onnx: data '(': is no regular expression; wanted one such as 'embed.*weight'");
  // Without the table nothing is read as a weight but w.
  constexpr char kAdded[] =
      "g (float[batch,4] x, float[4] b) => (float[batch,4] y) { y = Add(x, b) }";
  EXPECT_NE(ImportText(ModelOf(kAdded), {.batch_size = 2}).find("%b: f32[4] buffer"),
            std::string::npos);
  EXPECT_NE(ImportText(ModelOf(kAdded), {.batch_size = 2, .roles = {.parameters = "^b$"}})
                .find("%b: f32[4] parameter"),
            std::string::npos);
}

// Of a batch that the file fixes, inputs of another size at the front.
TEST(AssignRoles, WeightsAmongInputsOfAFixedBatch) {
  const std::string text = ImportText(
      ModelOf("g (float[2,4] x, float[2,4] t, float[4,2] w, float[2] b) => (float[2,2] y) {"
              " s = Add(x, t) m = MatMul(s, w) y = Add(m, b) }"));
  EXPECT_EQ(text.substr(0, text.find(')')), R"(
func @m (
  %x: f32[2,4] data,
  %t: f32[2,4] data,
  %w: f32[4,2] parameter,
  %b: f32[2] data
)");
}

}  // namespace
}  // namespace roles_test_cc
}  // namespace orrery::importer
