#include "ir/verifier.h"

#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ir/op_kind.h"
#include "ir/text/text.h"
#include "support/status.h"

namespace orrery::ir {
namespace verifier_test_cc {
namespace {

const TensorType kPair{DType::kF32, {2}, {}};

// What the verifier says of the body of a function over %x: f32[8,4] and mesh(dp=2, hp=4).
std::string OfBody(absl::string_view body) {
  const auto function = ParseFunctions(absl::StrCat(
      "func @f mesh(dp=2, hp=4) (%x: f32[8,4] data, %w: f32[4,4] parameter) {", body, "}"));
  return function.ok() ? "ok" : std::string(function.status().message());
}

// What it says of an input of that type.
std::string OfInput(absl::string_view type) {
  const auto function = ParseFunctions(
      absl::StrCat("func @f mesh(dp=2, hp=4) (%x: ", type, " data) { return %x: result }"));
  return function.ok() ? "ok" : std::string(function.status().message());
}

OpId AddRelu(Function& function, ValueId x, const TensorType& type, absl::string_view name = "") {
  return function.AddOp(OpKind::kRelu, std::span(&x, 1), AttributesId(0), std::span(&type, 1),
                        std::span(&name, 1));
}

void ReturnAll(Function& function) {
  function.SetOutputs({});
  for (const OpId op : function.order()) {
    function.AddOutput({.value = function.result(op), .role = OutputRole::kResult, .of = {}});
  }
}

class OrderTest : public testing::Test {
 protected:
  OrderTest() {
    const ValueId x = function_.AddInput("x", kPair, InputRole::kData);
    first_ = AddRelu(function_, x, kPair);
    second_ = AddRelu(function_, function_.result(first_), kPair);
    ReturnAll(function_);
  }
  std::string Message() const { return std::string(Verify(function_).message()); }

  Function function_{"f"};
  OpId first_, second_;
};

TEST_F(OrderTest, IsTopological) {
  EXPECT_EQ(Message(), "");
  function_.SetOrder({second_, first_});
  EXPECT_EQ(Message(), "f: %1 (Relu): uses %2 before it is defined");
}

TEST_F(OrderTest, HasEachOpOnce) {
  function_.SetOrder({first_, second_, first_});
  EXPECT_EQ(Message(), "f: %1 (Relu): stands twice in the order");
}

TEST_F(OrderTest, HasWhatItsOpsUse) {
  function_.SetOrder({second_});
  EXPECT_EQ(Message(), "f: %1 (Relu): uses %<value1> before it is defined");
}

TEST_F(OrderTest, HasWhatIsReturned) {
  function_.SetOrder({first_});
  EXPECT_EQ(Message(), "f: %<value2> is returned but not defined");
}

TEST(Arity, IsThatOfTheRecord) {
  EXPECT_EQ(OfBody("%y: f32[8,4] = Relu(%x, %x) return %y: result"),
            "f: %y (Relu): got 2 operands; wanted 1");
  EXPECT_EQ(OfBody("%y: f32[8,4] = Relu() return %y: result"),
            "f: %y (Relu): got 0 operands; wanted 1");
  EXPECT_EQ(OfBody("%y: f32[8,4], %z: f32[8,4] = Relu(%x) return %y: result"),
            "f: %y (Relu): got 2 results; wanted 1");
  EXPECT_EQ(OfBody("Relu(%x) return"), "f: Relu: got 0 results; wanted 1");
  EXPECT_EQ(OfBody("%y: f32[8,4] = Send(%x) return %y: result"),
            "f: %y (Send): got 1 results; wanted 0");
  EXPECT_EQ(OfBody("%y: f32[4,4], %z: f32[4,4] = Sgd(%w, %w) {parameters=1} return %y: result"),
            "f: %y (Sgd): got 2 results; wanted 1");
}

TEST(Types, AreThoseThatTheRecordInfers) {
  EXPECT_EQ(OfBody("%y: f32[8,5] = Relu(%x) return %y: result"),
            "f: %y (Relu): result 0 is declared f32[8,5] but its operands make it f32[8,4]");
  EXPECT_EQ(OfBody("%y: f16[8,4] = Relu(%x) return %y: result"),
            "f: %y (Relu): result 0 is declared f16[8,4] but its operands make it f32[8,4]");
  EXPECT_EQ(OfBody("%y: f32[8@dp,4] = Relu(%x) return %y: result"),
            "f: %y (Relu): result 0 is declared f32[8@dp,4] but its operands make it f32[8,4]");
  EXPECT_EQ(OfBody("%y: f32[4,4] = MatMul(%w, %x) return %y: result"),
            "f: %y (MatMul): inner dimensions differ; got 4 and 8");
  EXPECT_EQ(OfBody("%dx: f32[8,4], %dw: f32[8,4] = MatMulGrad(%x, %w, %x) return %dx: result"),
            "f: %dx (MatMulGrad): result 1 is declared f32[8,4] but its operands make it f32[4,4]");
}

TEST(Shardings, UseAnAxisOnce) {
  EXPECT_EQ(OfInput("f32[8@dp,4@hp]"), "ok");
  EXPECT_EQ(OfInput("f32[8@hp.dp,4]"), "ok");
  EXPECT_EQ(OfInput("f32[8@dp,4@dp]"), "f: %x is f32[8@dp,4@dp]; wanted each axis at most once");
  EXPECT_EQ(OfInput("f32[8@dp,4] partial(dp)"),
            "f: %x is f32[8@dp,4] partial(dp); wanted each axis at most once");
}

// Shards of parameters, state and gradients, and what is computed with them, may leave the last
// ranks less; samples only as far as they are moved.
TEST(Shardings, OfShardsMayBeUneven) {
  const auto verify = [](const std::string& body) {
    const auto function = ParseFunction(absl::StrCat(
        "func @f mesh(dp=4, hp=2) (%w: f32[10@dp,4] parameter, %g: f32[10,4] partial(dp) saved, "
        "%x: f32[4,4] data) {",
        body, "}"));
    const auto infeasible = AsInfeasible(function.status());
    return infeasible.has_value() ? infeasible->detail : std::string(function.status().message());
  };
  EXPECT_EQ(verify("%s: f32[10@dp,4] = ReduceScatter(%g) {axes=\"dp\", dim=0, uneven=1}\n"
                   "%v: f32[10@dp,4] = Sgd(%w, %s) {parameters=1}\n"
                   "%a: f32[10,4] = AllGather(%v) {axes=\"dp\", dim=0}\n"
                   "%y: f32[10,4] = MatMul(%a, %x) return %y: result, %v: updated(%w)"),
            "");
  EXPECT_EQ(verify("%y: f32[10@dp,4] = MatMul(%w, %x) return %y: result"), "");
  EXPECT_EQ(verify("%s: f32[10@dp,4] = ReduceScatter(%g) {axes=\"dp\", dim=0} return %s: result"),
            "f: %s (ReduceScatter): dimension 0 (10) does not divide over dp");
  EXPECT_EQ(verify("%h: f32[10@dp.hp,4] = AllSlice(%w) {axes=\"hp\", dim=0, uneven=1} return "
                   "%h: result"),
            "");
  EXPECT_EQ(verify("%h: f32[4@dp.hp,4] = AllSlice(%x) {axes=\"dp.hp\", dim=0, uneven=1}\n"
                   "%y: f32[4,4] = AllGather(%h) {axes=\"dp.hp\", dim=0} return %y: result"),
            "");
}

// An infeasible candidate, not an error: a search counts it and goes on.
TEST(Shardings, Divide) {
  EXPECT_EQ(OfInput("f32[10@hp]"), "f: %x: dimension 0 of 10 does not divide into 4 parts");
  EXPECT_EQ(OfInput("f32[8,4@dp.hp]"), "f: %x: dimension 1 of 4 does not divide into 8 parts");
  const auto function = ParseFunction("func @f mesh(dp=4) (%x: f32[10@dp] data) { return }");
  const auto infeasible = AsInfeasible(function.status());
  ASSERT_TRUE(infeasible.has_value());
  EXPECT_EQ(infeasible->reason, InfeasibleReason::kDivisibility);
  EXPECT_EQ(infeasible->detail, "f: %x: dimension 0 of 10 does not divide into 4 parts");
  EXPECT_FALSE(
      AsInfeasible(ParseFunction("func @f mesh(dp=4) (%x: f32[8@dp,4@dp] data) {return}").status())
          .has_value());
}

// Regression: such a message began "f: %y (Constant): f: %y …".
TEST(Shardings, OfResultsAreNamedOnce) {
  EXPECT_EQ(OfBody("%y: f32[8@hp,4@hp] = Constant() return %y: result"),
            "f: %y is f32[8@hp,4@hp]; wanted each axis at most once");
}

// Regression: axes that the mesh lacks were looked up beyond its end.
TEST(Shardings, NeedAMesh) {
  for (const bool partial : {false, true}) {
    TensorType sharded = kPair;
    if (partial) {
      sharded.sharding.partial = AxisList(3);
    } else {
      sharded.sharding.Set(0, 1, AxisList(3));
    }
    Function of_input("f", Mesh({{"dp", 2}}));
    of_input.AddInput("x", sharded, InputRole::kData);
    EXPECT_EQ(Verify(of_input).message(), "f: %x is sharded over axes that mesh(dp=2) lacks");
    Function of_result("f");
    AddRelu(of_result, of_result.AddInput("x", kPair, InputRole::kData), sharded, "y");
    EXPECT_EQ(Verify(of_result).message(), "f: %y is sharded over axes that mesh() lacks");
  }
}

// Regression: a sharding of more dimensions than the tensor was read beyond the end of the dims.
TEST(Shardings, HaveOneSplitADimension) {
  TensorType long_type = kPair, idle_type = kPair;
  long_type.sharding.split = {AxisList(), AxisList(0)};
  idle_type.sharding.split = {AxisList()};
  const std::string wanted = "; wanted one split a dimension, or none where all are whole";
  Function function("f", Mesh({{"dp", 2}}));
  function.AddInput("x", long_type, InputRole::kData);
  EXPECT_EQ(Verify(function).message(), "f: %x has 1 dimensions and a sharding of 2" + wanted);
  Function idle("f", Mesh({{"dp", 2}}));
  idle.AddInput("x", idle_type, InputRole::kData);
  EXPECT_EQ(Verify(idle).message(), "f: %x has 1 dimensions and a sharding of 1" + wanted);
}

TEST(Sizes, ArePositiveAndFit) {
  const std::string wanted = "; wanted dimensions of at least 1 and at most 2^60 bytes";
  EXPECT_EQ(OfInput("f32[]"), "ok");
  EXPECT_EQ(OfInput("f32[0]"), "f: %x is f32[0]" + wanted);
  EXPECT_EQ(OfInput("f32[2,-1]"), "f: %x is f32[2,-1]" + wanted);
  EXPECT_EQ(OfInput("i8[1152921504606846976]"), "ok");
  EXPECT_EQ(OfInput("i8[1152921504606846977]"), "f: %x is i8[1152921504606846977]" + wanted);
  EXPECT_EQ(OfInput("f64[4294967296,4294967296]"), "f: %x is f64[4294967296,4294967296]" + wanted);
  EXPECT_EQ(OfInput("i8[9223372036854775807,9223372036854775807]"),
            "f: %x is i8[9223372036854775807,9223372036854775807]" + wanted);
}

TEST(Sizes, OfResultsFit) {
  EXPECT_EQ(ParseFunctions("func @f (%x: i8[1099511627776,1] data, %y: i8[1,1099511627776] data) {"
                           "%z: i8[1099511627776,1099511627776] = Add(%x, %y) return %z: result }")
                .status()
                .message(),
            "f: %z (Add): its result would be i8[1099511627776,1099511627776]; wanted at most 2^60 "
            "bytes");
}

// Regression: a split tensor of more than 32 dimensions aborted, and one of more than 127 wrote
// beyond the factors of its sharding rule.
TEST(Sizes, HaveAtMostThirtyDimensions) {
  const auto of_rank = [](int rank) {
    std::string ones;
    for (int d = 1; d < rank; ++d) ones += "1,";
    const std::string type = absl::StrCat("f32[", ones, "8@dp]");
    const auto function =
        ParseFunctions(absl::StrCat("func @f mesh(dp=2) (%x: ", type, " data) { %y: ", type,
                                    " = Relu(%x) return %y: result }"));
    return std::string(function.status().message());
  };
  EXPECT_EQ(of_rank(30), "");
  EXPECT_EQ(of_rank(31), "f: %x has 31 dimensions; wanted at most 30");
  EXPECT_EQ(of_rank(300), "f: %x has 300 dimensions; wanted at most 30");
}

TEST(Names, AreThoseOfOneValue) {
  Function function("f");
  const ValueId x = function.AddInput("x", kPair, InputRole::kData);
  function.AddInput("x", kPair, InputRole::kData);
  EXPECT_EQ(Verify(function).message(), "f: %x is the name of two values; wanted one");
  Function other("f");
  const OpId op = AddRelu(other, other.AddInput("x", kPair, InputRole::kData), kPair, "x");
  ReturnAll(other);
  EXPECT_EQ(Verify(other).message(), "f: %x is the name of two values; wanted one");
  other.SetOrder({});
  other.SetOutputs({{.value = x, .role = OutputRole::kResult, .of = {}}});
  EXPECT_TRUE(Verify(other).ok()) << op << " is gone, and its name with it";
}

TEST(DeadOps, AreNone) {
  EXPECT_EQ(OfBody("%y: f32[8,4] = Relu(%x) return"),
            "f: %y (Relu): nothing uses its results; wanted no dead op");
  EXPECT_EQ(OfBody("%y: f32[8,4] = Relu(%x) %z: f32[8,4] = Relu(%y) return %y: result"),
            "f: %z (Relu): nothing uses its results; wanted no dead op");
  EXPECT_EQ(OfBody("Send(%x) {to=1} return"), "ok");
  EXPECT_EQ(OfBody("%dx: f32[8,4], %dw: f32[4,4] = MatMulGrad(%x, %w, %x) return %dw: result"),
            "ok");
}

TEST(Outputs, StandOnceInARole) {
  EXPECT_EQ(OfBody("return %x: result, %x: saved"), "ok");
  EXPECT_EQ(OfBody("return %x: result, %x: result"), "f: %x is returned twice as result");
}

TEST(Outputs, NameTheInputThatTheyBelongTo) {
  const std::string wanted = "; wanted the input that it belongs to, as in gradient(%w)";
  EXPECT_EQ(OfBody("return %x: gradient(%w)"), "ok");
  EXPECT_EQ(OfBody("return %x: gradient"), "f: %x is returned as gradient" + wanted);
  EXPECT_EQ(OfBody("return %x: updated"), "f: %x is returned as updated" + wanted);
  EXPECT_EQ(OfBody("%y: f32[8,4] = Relu(%x) return %x: gradient(%y)"),
            "f: %x is returned as gradient" + wanted);
  EXPECT_EQ(OfBody("return %x: loss(%w)"),
            "f: %x is returned as loss; that role belongs to no input");
  EXPECT_EQ(OfBody("return %x: result(%w)"),
            "f: %x is returned as result; that role belongs to no input");
}

// Regression: an accumulation was let belong to any input, against rule 8.
TEST(Outputs, OfAccumulationsNameAnAccumulator) {
  const std::string wanted =
      "f: %x is returned as accumulator; wanted the input accumulator that it belongs to, as in "
      "accumulator(%sum)";
  EXPECT_EQ(OfBody("return %x: accumulator"), wanted);
  EXPECT_EQ(OfBody("return %x: accumulator(%w)"), wanted);
}

// Regression: an output of no value was looked up before the beginning of the values.
TEST(Outputs, AreValues) {
  Function function("f");
  function.AddOutput({});
  EXPECT_EQ(Verify(function).message(), "f: returns no value as result; wanted one");
}

TEST(OutputsDeathTest, AreValuesOfThisFunction) {
  Function function("f");
  function.AddOutput({.value = ValueId(3), .role = OutputRole::kResult, .of = {}});
  EXPECT_DEATH(Verify(function).IgnoreError(), "f returns value3 of value<none>");
}

}  // namespace
}  // namespace verifier_test_cc
}  // namespace orrery::ir
