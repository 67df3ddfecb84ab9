#include "transforms/sharding/sharding_nodes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ir/models/mlp.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "transforms/sharding/auto_shard.h"
#include "transforms/sharding/plain_prices_test_util.h"
#include "transforms/sharding/shard.h"
#include "transforms/training/microbatch.h"
#include "transforms/training/training_step.h"

// Optimizers whose state is not of the parameter's shape: what it has of the parameter's dimensions
// is split as those are.

namespace orrery::transforms {
namespace sharding_nodes_test_cc {
namespace {

using ir::Function;

const ir::Mesh& Two() {
  static const ir::Mesh mesh({{"dp", 1}, {"hp", 2}});
  return mesh;
}

Function Step() {
  Function step = ir::Mlp({.layers = 2, .dim = 64, .batch = 3}).value();
  EXPECT_TRUE(AppendOptimizer(step, "adafactor").value());
  return step;
}

// Types of inputs whose names begin so.
std::string Types(const Function& function, absl::string_view prefix) {
  std::string text;
  for (const ir::Input& input : function.inputs()) {
    const absl::string_view name = function.value_name(input.value);
    if (!absl::StartsWith(name, prefix)) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ", name, ": ",
                    ir::ToString(function.type(input.value), function.mesh()));
  }
  return text;
}

// Products are dear and links are fast.
constexpr PlainPrices::Rates kProducts = {
    .flops = 1e9, .bytes = 1e15, .link = 1e10, .latency = 1e-6};

TEST(ShardingNodes, SplitMeansAsTheirParameters) {
  const Function step = Step();
  // Patterns that find the state of a parameter, too, are of that alone.
  for (const std::vector<ShardingPin>& pins :
       {std::vector<ShardingPin>{}, {{"^w0", 0}, {"^w1", 1}}, {{"^w0", 1}, {"^w1", 0}}}) {
    AutoShardReport report;
    const auto sharded = AutoShard(step, Two(), BatchedInputs(step), PlainPrices(Two(), kProducts),
                                   {.pins = pins}, &report);
    ASSERT_TRUE(sharded.ok()) << sharded.status();
    EXPECT_TRUE(ir::Verify(*sharded).ok()) << ir::Verify(*sharded);
    const bool by_columns = !pins.empty() && pins[0].dim == 1;
    const std::string rows = "f32[64@hp,64]", columns = "f32[64,64@hp]";
    EXPECT_EQ(Types(*sharded, by_columns ? "w1" : "w0"),
              absl::StrCat(by_columns ? "w1: " : "w0: ", rows, by_columns ? ", w1" : ", w0",
                           ".r: f32[64@hp,1], ", by_columns ? "w1" : "w0", ".c: f32[1,64]"));
    EXPECT_EQ(Types(*sharded, by_columns ? "w0" : "w1"),
              absl::StrCat(by_columns ? "w0: " : "w1: ", columns, by_columns ? ", w0" : ", w1",
                           ".r: f32[64,1], ", by_columns ? "w0" : "w1", ".c: f32[1,64@hp]"));
  }
}

// What names a mean alone is not passed over: there is nothing to split.
TEST(ShardingNodes, RefuseAPinOfAMeanAlone) {
  const Function step = Step();
  const auto pinned = [&](const ShardingPin& pin) {
    return AutoShard(step, Two(), BatchedInputs(step), PlainPrices(Two(), kProducts),
                     {.pins = {pin}})
        .status();
  };
  EXPECT_TRUE(absl::StrContains(pinned({"^w0.r$", 1}).message(),
                                "dimension 1 of %w0.r, which is f32[64,1], does not divide"))
      << pinned({"^w0.r$", 1});
  EXPECT_TRUE(pinned({"^w0", 1}).ok());
  EXPECT_TRUE(pinned({"^w0.r$", 0}).ok());
}

// Of each matrix 64 numbers of each kind, of which a rank has all of one and half of the other.
TEST(ShardingNodes, CountTheMemoryOfMeans) {
  const auto kept = [](absl::string_view optimizer) {
    Function step = ir::Mlp({.layers = 2, .dim = 64, .batch = 3}).value();
    EXPECT_TRUE(AppendOptimizer(step, optimizer).value());
    AutoShardReport report;
    EXPECT_TRUE(
        AutoShard(step, Two(), BatchedInputs(step), PlainPrices(Two(), kProducts), {}, &report)
            .ok());
    return report.memory;
  };
  EXPECT_EQ(kept("adafactor") - kept("sgd"), 2 * (64 + 32) * 4);
  EXPECT_EQ(kept("momentum") - kept("sgd"), 2 * 64 * 32 * 4);
}

TEST(Shard, SplitsMeansAsTheirParameters) {
  const auto sharded = Shard(Step(), Two());
  ASSERT_TRUE(sharded.ok()) << sharded.status();
  EXPECT_TRUE(ir::Verify(*sharded).ok()) << ir::Verify(*sharded);
  EXPECT_EQ(Types(*sharded, "w0"), "w0: f32[64,64@hp], w0.r: f32[64,1], w0.c: f32[1,64@hp]");
  EXPECT_EQ(Types(*sharded, "w1"), "w1: f32[64@hp,64], w1.r: f32[64@hp,1], w1.c: f32[1,64]");
}

}  // namespace
}  // namespace sharding_nodes_test_cc
}  // namespace orrery::transforms
