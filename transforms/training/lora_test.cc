#include "transforms/training/lora.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "transforms/pass_registry.h"
#include "transforms/simplify/pass_test_util.h"
#include "transforms/training/training_step.h"

namespace orrery::transforms {
namespace lora_test_cc {
namespace {

constexpr char kModel[] =
    R"(%x: bf16[4,6] data, %up.weight: bf16[6,8] parameter, %up.bias: bf16[8] parameter, %down.weight: bf16[6,8] parameter, %head.weight: bf16[6,3] parameter, %labels: i64[4] data
%up: bf16[4,8], %pre: bf16[4,8] = Linear(%x, %up.weight, %up.bias) {activation="gelu_tanh"}
%down: bf16[4,6] = MatMul(%up, %down.weight) {transpose_w=1}
%head: bf16[4,3] = MatMul(%down, %head.weight)
%loss: bf16[4] = CrossEntropy(%head, %labels) {batch=4}
return %loss: loss)";

std::string Adapted(const LoraOptions& options) {
  ir::Function function = ParseLines(kModel);
  const absl::StatusOr<bool> changed = AddLora(function, options);
  EXPECT_TRUE(changed.ok()) << changed.status();
  EXPECT_EQ(changed.value_or(false), options.rank > 0);
  EXPECT_TRUE(ir::Verify(function).ok()) << ir::Verify(function);
  return OpLines(function);
}

// What makes logits has none; an activation stands behind the sum.
TEST(AddLora, PutsPairsBesideProducts) {
  EXPECT_EQ(Adapted({.rank = 2, .alpha = 4}),
            R"(%up.base: bf16[4,8] = Linear(%x, %up.weight, %up.bias)
%up.lora_a: bf16[4,2] = MatMul(%x, %up.lora_a.weight)
%12: bf16[4,2] = Scale(%up.lora_a) {factor=2.0}
%up.lora_b: bf16[4,8] = MatMul(%12, %up.lora_b.weight)
%up.sum: bf16[4,8] = Add(%up.base, %up.lora_b)
%up: bf16[4,8] = Gelu(%up.sum) {approximate="tanh"}
%down.base: bf16[4,6] = MatMul(%up, %down.weight) {transpose_w=1}
%down.lora_a: bf16[4,2] = MatMul(%up, %down.lora_a.weight)
%18: bf16[4,2] = Scale(%down.lora_a) {factor=2.0}
%down.lora_b: bf16[4,6] = MatMul(%18, %down.lora_b.weight)
%down: bf16[4,6] = Add(%down.base, %down.lora_b)
%head: bf16[4,3] = MatMul(%down, %head.weight)
%loss: bf16[4] = CrossEntropy(%head, %labels) {batch=4}
return %loss: loss
)");
}

TEST(AddLora, TakesTheProductsThatMatch) {
  const std::string head = Adapted({.rank = 1, .match = "^head"});
  EXPECT_EQ(head.find("%up.lora_a"), std::string::npos) << head;
  EXPECT_NE(head.find("%head.lora_b: bf16[4,3] = MatMul(%head.lora_a, %head.lora_b.weight)"),
            std::string::npos)
      << head;
  EXPECT_EQ(Adapted({}), OpLines(ParseLines(kModel)));
}

// All else is frozen, and what is frozen has neither gradient nor state.
TEST(AddLora, FreezesAllElse) {
  ir::Function function = ParseLines(kModel);
  ASSERT_TRUE(
      MakeTrainingStep(function, {.optimizer = "adam", .lora = {.rank = 2}, .simplify = false})
          .ok());
  std::string roles;
  for (const ir::Input& input : function.inputs()) {
    if (input.role == ir::InputRole::kData) continue;
    absl::StrAppend(&roles, function.value_name(input.value), " ", ir::ToString(input.role), "\n");
  }
  std::string expected =
      "up.weight frozen\nup.bias frozen\ndown.weight frozen\nhead.weight frozen\n"
      "up.lora_a.weight parameter\nup.lora_b.weight parameter\n"
      "down.lora_a.weight parameter\ndown.lora_b.weight parameter\n";
  for (const char* state : {"master", "m", "v"}) {
    for (const char* of : {"down.lora_b", "down.lora_a", "up.lora_b", "up.lora_a"}) {
      absl::StrAppend(&expected, of, ".weight.", state, " state\n");
    }
  }
  EXPECT_EQ(roles, expected);
}

TEST(AddLora, SaysWhatItWants) {
  ir::Function function = ParseLines(kModel);
  EXPECT_EQ(AddLora(function, {.rank = 2, .match = "attn"}).status().message(),
            "f: `lora` match='attn' is the name of no product with a weight; wanted one such as "
            "attn; opt prints names");
  EXPECT_EQ(AddLora(function, {.rank = 2, .match = "("}).status().message(),
            "`lora` match='(': is no regular expression; wanted one such as attn.*weight");
  ASSERT_TRUE(BuildBackward(function).value());
  EXPECT_EQ(AddLora(function, {.rank = 2}).status().message(),
            "f: has a backward pass already; wanted a forward one for `lora`");
}

// Of a forward pass, too: what it returns first would be the logits.
TEST(AddLora, LeavesLogitsOfAForwardPassAlone) {
  std::string model = kModel;
  const size_t loss = model.find("%loss: bf16[4] = ");
  model = model.substr(0, loss) + "return %head: result, %up: result";
  ir::Function function = ParseLines(model);
  ASSERT_TRUE(
      MakeTrainingStep(function, {.loss = {.kind = "none"}, .lora = {.rank = 2}, .simplify = false})
          .ok());
  const std::string lines = OpLines(function);
  EXPECT_NE(lines.find("%up.lora_b"), std::string::npos) << lines;
  EXPECT_NE(lines.find("%down.lora_b"), std::string::npos) << lines;
  EXPECT_EQ(lines.find("%head.lora"), std::string::npos) << lines;
}

// The pass reads its options as the flag does.
TEST(LoraPass, ReadsWhatTheFlagReads) {
  const auto run = [](absl::string_view text) {
    ir::Function function = ParseLines(kModel);
    const auto calls = ParsePasses(text);
    if (!calls.ok()) return std::string(calls.status().message());
    const absl::StatusOr<bool> changed = RunPass(calls->front(), function);
    return changed.ok() ? OpLines(function) : std::string(changed.status().message());
  };
  EXPECT_EQ(run("lora{rank=2,alpha=4}"), Adapted({.rank = 2, .alpha = 4}));
  EXPECT_EQ(run("lora{rank=1,match=^head}"), Adapted({.rank = 1, .match = "^head"}));
  EXPECT_EQ(run("lora{rank=2000000}"),
            "lora: `lora` 'rank=2000000': rank is '2000000', no number from 1 to 1048576; wanted "
            "rank=16, or as in rank=16,alpha=32,match=attn");
  EXPECT_EQ(run("lora{alpha=nan}"),
            "lora: `lora` 'rank=8,alpha=nan': alpha is 'nan', no number above 0, at most 1e9; "
            "wanted rank=16, or as in rank=16,alpha=32,match=attn");
  EXPECT_EQ(run("lora{rank=2,rank=4}"), "option 'rank' is there twice; wanted it once");
}

TEST(ParseLora, ReadsKeysAndARestThatMayHoldCommas) {
  const LoraOptions options = ParseLora("rank=16,alpha=32,match=q|k{1,2}").value();
  EXPECT_EQ(options.rank, 16);
  EXPECT_EQ(options.alpha, 32);
  EXPECT_EQ(options.match, "q|k{1,2}");
  EXPECT_EQ(ParseLora("rank=8").value().alpha, 0);
  const auto error = [](absl::string_view text) {
    return std::string(ParseLora(text).status().message());
  };
  const std::string wanted = "; wanted rank=16, or as in rank=16,alpha=32,match=attn";
  EXPECT_EQ(error(""), "`lora` '': says no rank" + wanted);
  EXPECT_EQ(error("rank=0"), "`lora` 'rank=0': rank is '0', no number from 1 to 1048576" + wanted);
  EXPECT_EQ(error("rank=4,alpha=-1"),
            "`lora` 'rank=4,alpha=-1': alpha is '-1', no number above 0, at most 1e9" + wanted);
  EXPECT_EQ(error("rank=4,alpha=inf"),
            "`lora` 'rank=4,alpha=inf': alpha is 'inf', no number above 0, at most 1e9" + wanted);
  EXPECT_EQ(error("rank=4,rank=8"), "`lora` 'rank=4,rank=8': rank is there twice" + wanted);
  EXPECT_EQ(error("alpha=4,rank=8,alpha=4"),
            "`lora` 'alpha=4,rank=8,alpha=4': alpha is there twice" + wanted);
  EXPECT_EQ(error("rank=4,match="), "`lora` 'rank=4,match=': match is empty" + wanted);
  EXPECT_EQ(error("16"), "`lora` '16': '16' is no key with a value" + wanted);
}

}  // namespace
}  // namespace lora_test_cc
}  // namespace orrery::transforms
