#include "ir/copy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "ir/models/model_test_util.h"
#include "ir/op_kind.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "support/check.h"

namespace orrery::ir {
namespace copy_test_cc {
namespace {

Function Parsed(const std::string& text) {
  auto function = ParseFunction(text);
  ORRERY_CHECK(function.ok()) << function.status();
  return *std::move(function);
}

// An op of two results, an op with attributes, names and none, a role of each kind that names an
// input.
constexpr char kFunction[] = R"(
func @f mesh(dp=2) (
  %x: f32[8@dp,4] data,
  %w: f32[4,4] parameter,
  %g: f32[4,4] accumulator
) {
  %3: f32[8@dp,4] = MatMul(%x, %w) {transpose_w=1}
  %dx: f32[8@dp,4], %dw: f32[4,4] partial(dp) = MatMulGrad(%x, %w, %3) {transpose_w=1}
  return %dw: gradient(%w), %3: result, %g: accumulator(%g)
}
)";

// Everything, in its order.
Function CopyOf(const Function& from) {
  Function to(from.name(), from.mesh());
  FunctionCopy copy{.from = from, .to = to};
  for (const Input& input : from.inputs()) CopyInput(input, input.role, copy);
  for (const OpId op : from.order()) CopyOp(op, copy);
  CopyOutputs(from.outputs(), copy);
  return to;
}

TEST(FunctionCopy, OfEverythingIsTheSameText) {
  const Function from = Parsed(kFunction);
  const Function to = CopyOf(from);
  EXPECT_EQ(Print(to), Print(from));
  EXPECT_TRUE(Verify(to).ok()) << Verify(to);
  const Function gpt = BuildModel("gpt", "layers=2,hidden=16,heads=2,seq=4,vocab=8", 2);
  EXPECT_EQ(Print(CopyOf(gpt)), Print(gpt));
}

// Values are those of the other function: here they have other numbers.
TEST(FunctionCopy, GoesBehindWhatIsThereAlready) {
  const Function from = Parsed(kFunction);
  Function to("to", from.mesh());
  const ValueId before = to.AddInput("before", {.dims = {1}, .sharding = {}}, InputRole::kBuffer);
  FunctionCopy copy{.from = from, .to = to};
  for (const Input& input : from.inputs()) CopyInput(input, input.role, copy);
  for (const OpId op : from.order()) CopyOp(op, copy);
  EXPECT_EQ(before.index(), 0);
  for (int32_t v = 0; v < from.value_limit(); ++v) {
    EXPECT_EQ(copy.values[ValueId(v)], ValueId(v + 1));
    EXPECT_EQ(to.value_name(copy.values[ValueId(v)]), from.value_name(ValueId(v)));
    EXPECT_EQ(to.type(copy.values[ValueId(v)]), from.type(ValueId(v)));
  }
  EXPECT_TRUE(to.outputs().empty());
}

TEST(CopyInput, TakesAnotherRole) {
  const Function from = Parsed(kFunction);
  Function to("to", from.mesh());
  FunctionCopy copy{.from = from, .to = to};
  EXPECT_FALSE(copy.values[from.inputs()[1].value].valid());
  CopyInput(from.inputs()[1], InputRole::kSaved, copy);
  ASSERT_EQ(to.inputs().size(), 1u);
  EXPECT_EQ(to.inputs()[0].role, InputRole::kSaved);
  EXPECT_EQ(to.value_name(to.inputs()[0].value), "w");
  EXPECT_EQ(copy.values[from.inputs()[1].value], to.inputs()[0].value);
  EXPECT_FALSE(copy.values[from.inputs()[0].value].valid());
}

TEST(CopyOp, ReadsOtherOperandsAndAttributes) {
  const Function from = Parsed(kFunction);
  Function to("to", from.mesh());
  FunctionCopy copy{.from = from, .to = to};
  for (const Input& input : from.inputs()) CopyInput(input, input.role, copy);
  const ValueId x = copy.values[from.inputs()[0].value], g = copy.values[from.inputs()[2].value];
  CopyOp(from.order()[0], std::vector<ValueId>{x, g}, {{"transpose_w", int64_t{0}}}, copy);
  const OpId made = to.order().back();
  EXPECT_EQ(to.kind(made), OpKind::kMatMul);
  EXPECT_THAT(to.operands(made), testing::ElementsAre(x, g));
  EXPECT_EQ(to.attributes(made).Int("transpose_w", 7), 0);
  EXPECT_EQ(copy.values[from.result(from.order()[0])], to.result(made));
}

TEST(CopyOutputs, NamesTheInputsOfTheCopy) {
  const Function from = Parsed(kFunction);
  const Function to = CopyOf(from);
  ASSERT_EQ(to.outputs().size(), 3u);
  EXPECT_EQ(to.outputs()[0].of, to.inputs()[1].value);
  EXPECT_EQ(to.outputs()[0].role, OutputRole::kGradient);
  EXPECT_FALSE(to.outputs()[1].of.valid());
  EXPECT_EQ(to.outputs()[2].of, to.inputs()[2].value);
  EXPECT_EQ(to.outputs()[2].value, to.inputs()[2].value);
}

TEST(CopyOutputs, TakesSome) {
  const Function from = Parsed(kFunction);
  Function to("to", from.mesh());
  FunctionCopy copy{.from = from, .to = to};
  for (const Input& input : from.inputs()) CopyInput(input, input.role, copy);
  CopyOutputs(std::span(from.outputs()).subspan(2), copy);
  ASSERT_EQ(to.outputs().size(), 1u);
  EXPECT_EQ(to.outputs()[0].role, OutputRole::kAccumulator);
  CopyOutputs({}, copy);
  EXPECT_EQ(to.outputs().size(), 1u);
}

}  // namespace
}  // namespace copy_test_cc
}  // namespace orrery::ir
