#include "ir/function.h"

#include <span>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/text/text.h"
#include "ir/verifier.h"

namespace orrery::ir {
namespace function_test_cc {
namespace {

const TensorType kPair{DType::kF32, {2}, {}};

OpId Relu(Function& function, ValueId x, absl::string_view name = "") {
  const absl::string_view names[] = {name};
  return function.AddOp(OpKind::kRelu, std::span(&x, 1), AttributesId(0), std::span(&kPair, 1),
                        name.empty() ? std::span<const absl::string_view>() : names);
}

TEST(Function, HoldsWhatWasAdded) {
  Function function("f");
  const ValueId x = function.AddInput("x", kPair, InputRole::kParameter);
  const OpId op = Relu(function, x, "y");
  const ValueId y = function.result(op);
  function.AddOutput({.value = y, .role = OutputRole::kLoss, .of = ValueId()});
  EXPECT_EQ(function.name(), "f");
  EXPECT_EQ(function.kind(op), OpKind::kRelu);
  EXPECT_EQ(function.info(op).name, "Relu");
  EXPECT_EQ(function.operands(op).size(), 1u);
  EXPECT_EQ(function.operands(op)[0], x);
  EXPECT_EQ(function.result_count(op), 1);
  EXPECT_EQ(function.producer(y), op);
  EXPECT_FALSE(function.producer(x).valid());
  EXPECT_EQ(function.type_id(x), function.type_id(y));
  EXPECT_EQ(function.value_name(y), "y");
  EXPECT_EQ(function.input_role(x), InputRole::kParameter);
  EXPECT_EQ(function.op_limit(), 1);
  EXPECT_EQ(function.value_limit(), 2);
  EXPECT_TRUE(function.attributes(op).empty());
  EXPECT_EQ(CountUses(function).rows(), (std::vector<int32_t>{1, 1}));
}

TEST(Function, CopiesStandAlone) {
  Function function("f");
  const ValueId x = function.AddInput("x", kPair, InputRole::kData);
  const OpId op = Relu(function, x, "y");
  function.SetOutputs({{.value = function.result(op), .role = OutputRole::kResult, .of = {}}});
  Function copy = function;
  copy.SetName(copy.result(op), "other");
  Relu(copy, x, "third");
  EXPECT_EQ(function.value_name(function.result(op)), "y");
  EXPECT_EQ(function.order().size(), 1u);
  EXPECT_TRUE(Verify(function).ok());
  EXPECT_EQ(PrintValue(copy, copy.result(op)), "%other");
}

// Regression: the pool of operands grew while the operands of another op were read from it.
TEST(Function, TakesTheOperandsOfAnotherOpOfItsOwn) {
  Function function("f");
  std::vector<ValueId> values;
  for (int i = 0; i < 7; ++i) values.push_back(function.AddInput("", kPair, InputRole::kData));
  OpId last = function.AddOp(OpKind::kSgd, values, AttributesId(0), {});
  for (int i = 0; i < 100; ++i) {
    last = function.AddOp(OpKind::kSgd, function.operands(last), AttributesId(0), {});
    const auto operands = function.operands(last);
    ASSERT_EQ(std::vector<ValueId>(operands.begin(), operands.end()), values);
  }
}

TEST(Function, RolesHaveNames) {
  EXPECT_EQ(ToString(InputRole::kData), "data");
  EXPECT_EQ(ToString(InputRole::kAccumulator), "accumulator");
  EXPECT_EQ(ToString(OutputRole::kResult), "result");
  EXPECT_EQ(ToString(OutputRole::kAccumulator), "accumulator");
}

TEST(PrintValue, QuotesWhatIsNotPlain) {
  Function function("f");
  EXPECT_EQ(PrintValue(function, function.AddInput("y0", kPair, InputRole::kData)), "%y0");
  EXPECT_EQ(PrintValue(function, function.AddInput("a b", kPair, InputRole::kData)), "%\"a b\"");
  EXPECT_EQ(PrintValue(function, function.AddInput("7", kPair, InputRole::kData)), "%\"7\"");
  EXPECT_EQ(PrintValue(function, function.AddInput("", kPair, InputRole::kData)), "%3");
}

// Regression: messages named values by their row, and the text by their position, so that they
// differed once a pass had dropped an op or added an input.
TEST(PrintValue, NamesAPlaceAsTheTextDoes) {
  Function function("f");
  const ValueId x = function.AddInput("", kPair, InputRole::kData);
  const OpId dropped = Relu(function, x), kept = Relu(function, x);
  const ValueId late = function.AddInput("", kPair, InputRole::kData);
  const OpId last = Relu(function, function.result(kept));
  function.SetOrder({kept, last});
  function.SetOutputs({{.value = function.result(last), .role = OutputRole::kResult, .of = {}}});
  const std::string text =
      "func @f (\n  %0: f32[2] data,\n  %1: f32[2] data\n) {\n"
      "  %2: f32[2] = Relu(%0)\n  %3: f32[2] = Relu(%2)\n  return %3: result\n}\n";
  EXPECT_EQ(Print(function), text);
  EXPECT_EQ(Print(ParseFunction(text).value()), text);
  EXPECT_EQ(PrintValue(function, late), "%1");
  EXPECT_EQ(PrintValue(function, function.result(kept)), "%2");
  EXPECT_EQ(PrintValue(function, function.result(last)), "%3");
  EXPECT_EQ(PrintValue(function, function.result(dropped)), "%<value1>");
}

TEST(Function, GoesOntoAnotherMesh) {
  Function function("f", Mesh({{"pp", 2}, {"hp", 4}}));
  const Mesh other({{"pp", 8}, {"hp", 4}});
  function.SetMesh(other);
  EXPECT_EQ(function.mesh(), other);
}

TEST(Function, TellsHowMuchMemoryItTakes) {
  Function function("f");
  ValueId value = function.AddInput("x", kPair, InputRole::kData);
  const int64_t empty = function.held_bytes();
  constexpr int64_t kOps = 1000;
  for (int64_t i = 0; i < kOps; ++i) value = function.result(Relu(function, value));
  const int64_t an_op = (function.held_bytes() - empty) / kOps;
  EXPECT_GE(an_op, 60);
  EXPECT_LE(an_op, 200);
}

TEST(FunctionDeathTest, NamesOurOwnBugs) {
  Function function("f");
  const ValueId x = function.AddInput("x", kPair, InputRole::kData);
  const OpId op = Relu(function, x);
  EXPECT_DEATH(function.input_role(function.result(op)), "value1 is no input of f");
  EXPECT_DEATH(Relu(function, ValueId()), "op1 Relu uses value<none>");
  EXPECT_DEATH(Relu(function, ValueId(9)), "op1 Relu uses value9");
}

}  // namespace
}  // namespace function_test_cc
}  // namespace orrery::ir
