#include "transforms/training/quantize_frozen.h"

#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"
#include "ir/op_kind.h"
#include "transforms/simplify/pass_test_util.h"
#include "transforms/training/lora.h"
#include "transforms/training/training_step.h"

namespace orrery::transforms {
namespace quantize_frozen_test_cc {
namespace {

constexpr char kModel[] =
    R"(%x: bf16[4,6] data, %up.weight: bf16[6,8] parameter, %up.bias: bf16[8] parameter, %down.weight: bf16[6,8] parameter, %head.weight: bf16[6,3] parameter, %labels: i64[4] data
%up: bf16[4,8], %pre: bf16[4,8] = Linear(%x, %up.weight, %up.bias) {activation="gelu_tanh"}
%down: bf16[4,6] = MatMul(%up, %down.weight) {transpose_w=1}
%head: bf16[4,3] = MatMul(%down, %head.weight)
%loss: bf16[4] = CrossEntropy(%head, %labels) {batch=4}
return %loss: loss)";

TEST(QuantizeFrozen, CastsBeforeEachProduct) {
  ir::Function function = ParseLines(kModel);
  EXPECT_EQ(QuantizeFrozen(function, "nf4").status().message(),
            "f: `frozen-dtype` nf4: no frozen matrix that products alone read; wanted some, as "
            "`lora` or `freeze` make them");
  EXPECT_EQ(QuantizeFrozen(function, "int4").status().message(),
            "`frozen-dtype` int4: wanted none, int8 or nf4");
  EXPECT_FALSE(QuantizeFrozen(function, "none").value());
  ASSERT_TRUE(AddLora(function, {.rank = 2, .match = "down"}).value());
  ASSERT_TRUE(QuantizeFrozen(function, "nf4").value());
  EXPECT_TRUE(ir::Verify(function).ok()) << ir::Verify(function);
  EXPECT_EQ(OpLines(function), R"(%8: bf16[6,8] = Cast(%up.weight) {to="bf16"}
%up: bf16[4,8], %pre: bf16[4,8] = Linear(%x, %8, %up.bias) {activation="gelu_tanh"}
%11: bf16[6,8] = Cast(%down.weight) {to="bf16"}
%down.base: bf16[4,6] = MatMul(%up, %11) {transpose_w=1}
%down.lora_a: bf16[4,2] = MatMul(%up, %down.lora_a.weight)
%down.lora_b: bf16[4,6] = MatMul(%down.lora_a, %down.lora_b.weight)
%down: bf16[4,6] = Add(%down.base, %down.lora_b)
%16: bf16[6,3] = Cast(%head.weight) {to="bf16"}
%head: bf16[4,3] = MatMul(%down, %16)
%loss: bf16[4] = CrossEntropy(%head, %labels) {batch=4}
return %loss: loss
)");
}

TEST(QuantizeFrozen, WantsMoreThan8Bits) {
  ir::Function function = ParseLines(absl::StrReplaceAll(kModel, {{"bf16", "f8"}}));
  ASSERT_TRUE(AddLora(function, {.rank = 2, .match = "down"}).value());
  EXPECT_EQ(QuantizeFrozen(function, "nf4").status().message(),
            "f: `frozen-dtype` nf4: its frozen matrices are f8 already; wanted 16 bits or more of "
            "them; try `dtype` bf16, or `frozen-dtype` none");
}

// Backward has casts of its own, where it reads the weight; without quantized weights there is
// nothing to do.
TEST(CastAgainInBackward, HasACastForEachPhase) {
  ir::Function function = ParseLines(kModel);
  EXPECT_FALSE(CastAgainInBackward(function));
  ASSERT_TRUE(AddLora(function, {.rank = 2, .match = "up"}).value());
  ASSERT_TRUE(QuantizeFrozen(function, "int8").value());
  ASSERT_TRUE(BuildBackward(function).value());
  const auto casts = [&] {
    int count = 0;
    for (const ir::OpId op : function.order()) count += function.kind(op) == ir::OpKind::kCast;
    return count;
  };
  EXPECT_EQ(casts(), 3);  // of up, down and head
  EXPECT_TRUE(CastAgainInBackward(function));
  EXPECT_EQ(casts(), 5);  // nobody asks for the gradient of what the first of them is a product of
  EXPECT_TRUE(ir::Verify(function).ok()) << ir::Verify(function);
}

TEST(FrozenDTypeNames, AreThoseOfTheFlag) { EXPECT_EQ(FrozenDTypeNames(), "none, int8 or nf4"); }

}  // namespace
}  // namespace quantize_frozen_test_cc
}  // namespace orrery::transforms
