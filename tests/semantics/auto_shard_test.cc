#include "transforms/sharding/auto_shard.h"

#include <gtest/gtest.h>

#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ir/layout.h"
#include "ir/models/mlp.h"
#include "ir/op_kind.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "support/sanitized_test_util.h"
#include "tests/semantics/compare.h"
#include "tests/semantics/random_step.h"
#include "transforms/parallel.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/sharding/model_step_test_util.h"
#include "transforms/sharding/plain_prices_test_util.h"
#include "transforms/sharding/shard.h"
#include "transforms/training/microbatch.h"
#include "transforms/training/training_step.h"

// Sharding by cost changes nothing that is computed, whatever the prices, and is never dearer than
// Megatron's pattern by its own prices.

namespace orrery::semantics {

namespace redistribution = transforms::redistribution;
namespace auto_shard_test_cc {
namespace {

using transforms::AutoShardReport;
using transforms::PlainPrices;

// Prices under which now this and now that is worth while.
constexpr PlainPrices::Rates kRates[] = {
    {.flops = 1e9, .bytes = 1e12, .link = 1e11, .latency = 1e-9},   // split whatever can be
    {.flops = 1e12, .bytes = 1e9, .link = 1e11, .latency = 1e-9},   // memory above all
    {.flops = 1e12, .bytes = 1e11, .link = 1e10, .latency = 1e-8},  // links count
};

// For each way to redistribute its own price at random: then all of them occur.
class RandomPrices final : public transforms::ShardingPrices {
 public:
  explicit RandomPrices(uint32_t seed) : seed_(seed) {}
  double OpSeconds(const transforms::LocalOp& op) const override {
    double elements = 1;
    for (const ir::TensorType* type : op.results) {
      elements += static_cast<double>(ir::ElementCount(type->dims));
    }
    return Draw(static_cast<uint32_t>(op.kind), static_cast<uint32_t>(elements)) * elements;
  }
  double StepSeconds(redistribution::MoveKind kind, const ir::AxisList&,
                     Bytes size) const override {
    return Draw(1000 + static_cast<uint32_t>(kind), static_cast<uint32_t>(size.count()));
  }

 private:
  double Draw(uint32_t what, uint32_t size) const {
    std::mt19937 random(seed_ * 7919 + what * 104729 + size);
    return static_cast<double>(random() % 1000) / 100;
  }
  const uint32_t seed_;
};

// The step, sharded by `prices`, verifies and computes what it did.
void ExpectSameSharded(const ir::Function& step, const ir::Mesh& mesh,
                       const transforms::ShardingPrices& prices, const Named& inputs,
                       const Named& expected, const transforms::AutoShardOptions& options = {}) {
  SCOPED_TRACE(ir::ToString(mesh));
  AutoShardReport report;
  const auto sharded =
      transforms::AutoShard(step, mesh, transforms::BatchedInputs(step), prices, options, &report);
  ASSERT_TRUE(sharded.ok()) << sharded.status();
  ASSERT_TRUE(ir::Verify(*sharded).ok()) << ir::Verify(*sharded) << ir::Print(*sharded);
  EXPECT_TRUE(report.optimal);
  const Outcome outcome = RunAll(*sharded, inputs);
  ExpectSame(outcome.outputs, expected);
  EXPECT_LE(outcome.disagreement, kTolerance);
  if (testing::Test::HasFailure()) FAIL() << ir::Print(*sharded);
}

// In all degrees, under all prices; never dearer than what Shard makes of it.
void ExpectGood(const ir::Function& step, bool exact = true) {
  const Named inputs = RandomInputs(step, 3);
  const Named expected = RunAll(step, inputs).outputs;
  for (const int64_t hp : CasesToWalk({2, 3, 4})) {
    for (const int64_t dp : {1, 2}) {
      if (dp > 1 && !exact) continue;
      const ir::Mesh mesh({{"dp", dp}, {"hp", hp}});
      const auto pattern = transforms::Shard(step, mesh);
      for (const PlainPrices::Rates& rates : kRates) {
        const PlainPrices prices(mesh, rates);
        ExpectSameSharded(step, mesh, prices, inputs, expected);
        if (testing::Test::HasFailure()) return;
        if (!pattern.ok()) continue;  // nothing divides
        const auto ours =
            transforms::AutoShard(step, mesh, transforms::BatchedInputs(step), prices);
        EXPECT_LE(transforms::SerialSeconds(*ours, prices),
                  transforms::SerialSeconds(*pattern, prices) * (1 + 1e-9))
            << ir::ToString(mesh) << " link " << rates.link;
      }
    }
  }
}

TEST(AutoShard, MlpIsTheMlp) {
  for (const int64_t layers : {1, 2, 3}) {
    ir::Function step = ir::Mlp({.layers = layers, .dim = 12, .batch = 24}).value();
    ExpectGood(step);
    ASSERT_TRUE(transforms::AppendOptimizer(step, "adam").value());
    ExpectGood(step);
  }
}

TEST(AutoShard, TransformersAreTheSame) {
  for (const auto& [family, keys] : std::vector<std::pair<absl::string_view, absl::string_view>>{
           {"gpt", "layers=2,hidden=24,heads=12,seq=6,vocab=12"},
           {"gpt", "layers=1,hidden=16,heads=4,kv_heads=2,seq=4,vocab=8,mlp=swiglu,ffn=12,flash=1"},
           {"bert", "layers=1,hidden=8,heads=2,seq=4,vocab=12,classes=4"}}) {
    SCOPED_TRACE(keys);
    ExpectGood(transforms::ModelStep(family, keys, 2));
  }
}

// How many values lie so that ranks hold unlike many elements; the ranks of an axis together hold
// each element once.
int CountUneven(const ir::Function& function) {
  int uneven = 0;
  for (int32_t v = 0; v < function.value_limit(); ++v) {
    const ir::TensorType& type = function.type(ir::ValueId(v));
    for (size_t d = 0; d < type.dims.size(); ++d) {
      const ir::SplitDimension split = ir::SplitOf(type.sharding, type.dims, d);
      const int64_t parts = function.mesh().size(split.axes);
      if (type.dims[d] % parts == 0) continue;
      ++uneven;
      int64_t held = 0;
      for (int64_t rank = 0; rank < function.mesh().size(); ++rank) {
        held += ir::HeldPart(split, function.mesh(), rank).size();
        EXPECT_LE(ir::HeldPart(split, function.mesh(), rank).size(),
                  ir::LocalType(type, function.mesh()).dims[d]);
      }
      EXPECT_EQ(held, type.dims[d] * function.mesh().size() / parts);
    }
  }
  return uneven;
}

// Ranks that hold less than others, or nothing, compute what one device does; and the choice is
// never dearer than one that splits only what divides.
TEST(AutoShard, UnevenShardsAreTheSame) {
  std::vector<ir::Function> steps;
  steps.push_back(ir::Mlp({.layers = 2, .dim = 10, .batch = 6}).value());
  steps.push_back(ir::Mlp({.layers = 2, .dim = 10, .batch = 6}).value());
  ASSERT_TRUE(transforms::AppendOptimizer(steps.back(), "adam").value());
  for (const auto& [family, keys] : std::vector<std::pair<absl::string_view, absl::string_view>>{
           {"gpt", "layers=1,hidden=20,heads=5,seq=6,vocab=11"},
           {"gpt",
            "layers=1,hidden=20,heads=10,kv_heads=5,seq=5,vocab=8,mlp=swiglu,ffn=13,flash=1"},
           {"bert", "layers=1,hidden=10,heads=5,seq=5,vocab=13,classes=3"}}) {
    steps.push_back(transforms::ModelStep(family, keys, 2));
  }
  int uneven = 0;
  for (const ir::Function& step : steps) {
    const Named inputs = RandomInputs(step, 3);
    const Named expected = RunAll(step, inputs).outputs;
    for (const int64_t hp : CasesToWalk({2, 3, 4, 7})) {
      const ir::Mesh mesh({{"dp", hp == 3 ? 2 : 1}, {"hp", hp}});
      const transforms::AutoShardOptions split{.uneven = transforms::UnevenShards::kSplit};
      for (const PlainPrices::Rates& rates : kRates) {
        const PlainPrices prices(mesh, rates);
        ExpectSameSharded(step, mesh, prices, inputs, expected, split);
        if (testing::Test::HasFailure()) return;
        const auto batched = transforms::BatchedInputs(step);
        const auto ours = transforms::AutoShard(step, mesh, batched, prices, split);
        const auto even = transforms::AutoShard(step, mesh, batched, prices);
        EXPECT_EQ(CountUneven(*even), 0);
        uneven += CountUneven(*ours);
        EXPECT_LE(transforms::SerialSeconds(*ours, prices),
                  transforms::SerialSeconds(*even, prices) * (1 + 1e-9));
      }
      for (uint32_t seed = 0; seed < 4; ++seed) {
        ExpectSameSharded(step, mesh, RandomPrices(seed), inputs, expected, split);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
  EXPECT_GT(uneven, CasesToWalk(500));
}

// Sequences split over cp, and the batch over ep, in all the ways that the prices bring about.
void ExpectGoodOverFurtherAxes(const ir::Function& step) {
  const Named inputs = RandomInputs(step, 5);
  const Named expected = RunAll(step, inputs).outputs;
  for (const ir::Mesh& mesh :
       CasesToWalk({ir::Mesh({{"dp", 2}, {"ep", 2}, {"cp", 2}, {"hp", 2}}),
                    ir::Mesh({{"dp", 1}, {"cp", 2}}), ir::Mesh({{"dp", 1}, {"cp", 4}}),
                    ir::Mesh({{"dp", 2}, {"cp", 2}, {"hp", 2}}), ir::Mesh({{"dp", 1}, {"ep", 2}}),
                    ir::Mesh({{"dp", 1}, {"ep", 4}, {"hp", 2}})})) {
    for (const PlainPrices::Rates& rates : kRates) {
      ExpectSameSharded(step, mesh, PlainPrices(mesh, rates), inputs, expected);
      if (testing::Test::HasFailure()) return;
    }
    for (uint32_t seed = 0; seed < CasesToWalk(10u); ++seed) {
      SCOPED_TRACE(absl::StrCat("seed=", seed));
      ExpectSameSharded(step, mesh, RandomPrices(seed), inputs, expected);
      if (testing::Test::HasFailure()) return;
    }
  }
}

// However attention gets by with split sequences; each way leaves its mark.
TEST(AutoShard, ContextAttentionIsTheSame) {
  using transforms::ContextAttention;
  for (const char* keys : {"layers=1,hidden=16,heads=8,kv_heads=4,seq=8,vocab=8,flash=1",
                           "layers=1,hidden=16,heads=4,seq=8,vocab=8,flash=1,qkv=packed"}) {
    const ir::Function step = transforms::ModelStep("gpt", keys, 2);
    const Named inputs = RandomInputs(step, 5);
    const Named expected = RunAll(step, inputs).outputs;
    for (const ir::Mesh& mesh :
         {ir::Mesh({{"dp", 2}, {"cp", 2}}), ir::Mesh({{"dp", 1}, {"cp", 4}, {"hp", 2}}),
          ir::Mesh({{"dp", 1}, {"ep", 2}, {"cp", 2}, {"hp", 2}})}) {
      const PlainPrices prices(mesh, kRates[0]);
      for (const auto& [way, mark] : std::vector<std::pair<ContextAttention, const char*>>{
               {ContextAttention::kAllToAll, "AllToAll(%"},
               {ContextAttention::kAllGather, "AllGather(%"},
               {ContextAttention::kRing, "Rotate(%"}}) {
        SCOPED_TRACE(mark);
        const transforms::AutoShardOptions options = {.context_attention = way};
        ExpectSameSharded(step, mesh, prices, inputs, expected, options);
        const auto sharded =
            transforms::AutoShard(step, mesh, transforms::BatchedInputs(step), prices, options);
        const std::string text = ir::Print(*sharded);
        EXPECT_TRUE(absl::StrContains(text, mark)) << text;
        EXPECT_EQ(absl::StrContains(text, "MergeAttention("), way == ContextAttention::kRing);
        if (HasFailure()) return;
      }
    }
  }
}

// A family and its keys.
class FurtherAxes : public testing::TestWithParam<std::pair<absl::string_view, absl::string_view>> {
};

INSTANTIATE_TEST_SUITE_P(
    Models, FurtherAxes,
    testing::Values(
        std::pair("gpt", "layers=1,hidden=8,heads=4,seq=8,vocab=8"),
        std::pair("gpt",
                  "layers=1,hidden=8,heads=4,kv_heads=2,seq=8,vocab=8,mlp=swiglu,ffn=8,flash=1"),
        std::pair("gpt", "layers=1,hidden=8,heads=2,seq=4,vocab=8,mlp=swiglu,ffn=8,experts=4"),
        std::pair("gpt", "layers=1,hidden=8,heads=2,seq=8,vocab=8,experts=4,topk=1,flash=1"),
        std::pair("bert", "layers=1,hidden=8,heads=2,seq=8,vocab=12,classes=4")));

TEST_P(FurtherAxes, LeaveTransformersTheSame) {
  const auto& [family, keys] = GetParam();
  ExpectGoodOverFurtherAxes(transforms::ModelStep(family, keys, 4));
}

// Where rows do not divide, and classes do: logits and loss are split over the vocabulary, and the
// rows of a table that is used twice. Whether each rank makes its rows of the gradient of the
// table.
bool ExpectLossInParts(const ir::Function& step, const ir::Mesh& mesh, bool tied) {
  const PlainPrices prices(mesh, kRates[0]);
  const auto sharded = transforms::AutoShard(step, mesh, transforms::BatchedInputs(step), prices);
  EXPECT_TRUE(sharded.ok()) << sharded.status();
  const std::string text = sharded.ok() ? ir::Print(*sharded) : "";
  EXPECT_TRUE(absl::StrContains(text, "CrossEntropyPartsGrad(")) << text;
  EXPECT_TRUE(!tied || absl::StrContains(text, "partial(hp) = Gather(")) << text;
  const Named inputs = RandomInputs(step, 5);
  ExpectSameSharded(step, mesh, prices, inputs, RunAll(step, inputs).outputs);
  return absl::StrContains(text, "split=\"hp\"");
}

TEST(AutoShard, LossesInPartsAreTheSame) {
  int by_rows = 0;
  for (const bool tied : {false, true}) {
    for (const int64_t dp : {1, 2}) {
      const std::string keys =
          absl::StrCat("layers=1,hidden=8,heads=4,seq=5,vocab=96,tied_embeddings=", tied);
      const ir::Function step = transforms::ModelStep("gpt", keys, dp);
      for (const int64_t hp : {2, 3, 4}) {
        by_rows += ExpectLossInParts(step, ir::Mesh({{"dp", dp}, {"hp", hp}}), tied) ? 1 : 0;
        if (HasFailure()) return;
      }
      if (dp == 2) ExpectGood(step);
    }
  }
  EXPECT_GT(by_rows, 1);
}

TEST(AutoShard, FurtherAxesAndPipelinesAreTheSame) {
  using transforms::ContextAttention;
  using transforms::ParallelPlan;
  const ir::Function step = transforms::ModelStep(
      "gpt", "layers=2,hidden=16,heads=4,seq=8,vocab=8,tied_embeddings=0,flash=1", 16);
  const Named inputs = RandomInputs(step, 5);
  const Named expected = RunAll(step, inputs).outputs;
  for (const ContextAttention way :
       {ContextAttention::kAllToAll, ContextAttention::kAllGather, ContextAttention::kRing}) {
    for (ParallelPlan plan : {ParallelPlan{.dp = 2, .hp = 2, .pp = 2, .cp = 2, .microbatches = 2},
                              ParallelPlan{.pp = 2, .cp = 2, .ep = 2, .microbatches = 4}}) {
      plan.context_attention = way;
      SCOPED_TRACE(absl::StrCat("way ", static_cast<int>(way), " dp=", plan.dp));
      const transforms::PlainPrices prices(
          transforms::MakeMesh(plan).value(),
          {.flops = 1e9, .bytes = 1e12, .link = 1e11, .latency = 1e-9});
      const auto sharded =
          transforms::ParallelTransform3d(step, transforms::ByFlops(plan), {.prices = &prices});
      ASSERT_TRUE(sharded.ok()) << sharded.status();
      int64_t rotations = 0;
      for (const ir::Function& function : sharded->Functions()) {
        ASSERT_TRUE(ir::Verify(function).ok()) << ir::Verify(function);
      }
      for (const ir::OpId op : sharded->stages[0].forward.function.order()) {
        if (sharded->stages[0].forward.function.kind(op) == ir::OpKind::kRotate) ++rotations;
      }
      // Keys and values once; for backward they go round again, in backward.
      EXPECT_EQ(rotations, way == ContextAttention::kRing ? 2 : 0);
      const auto orders = OrdersOf("1f1b", *sharded);
      const PipelinedOutcome outcome = RunPipelined(*sharded, orders, inputs);
      ExpectSame(outcome.outputs, expected, 1e-8);
      EXPECT_LE(outcome.disagreement, 1e-8);
      EXPECT_EQ(outcome.lost, 0);
    }
  }
}

TEST(AutoShard, ResnetIsTheSame) {
  ExpectGood(transforms::ModelStep("resnet", "depth=18,image=32,width=4,classes=4", 2), false);
}

TEST(AutoShard, OtherModelsAreTheSame) {
  for (const auto& [family, keys] : std::vector<std::pair<absl::string_view, absl::string_view>>{
           {"gpt", "layers=1,hidden=8,heads=2,seq=4,vocab=8,qkv=packed,flash=1"},
           {"gpt", "layers=1,hidden=8,heads=2,seq=4,vocab=8,mlp=swiglu,ffn=8,experts=4"},
           {"lstm", "layers=1,hidden=4,seq=3,vocab=8"}}) {
    SCOPED_TRACE(keys);
    ExpectGood(transforms::ModelStep(family, keys, 2));
  }
}

TEST(AutoShard, RandomStepsAreTheSame) {
  for (uint32_t seed = 0; seed < CasesToWalk(200u); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed=", seed));
    const ir::Function step = RandomStep({.seed = seed,
                                          .layers = 1 + static_cast<int>(seed % 4),
                                          .batch = 12,
                                          .width_unit = seed % 5 == 0 ? 3 : 12,
                                          .tied = seed % 2 == 0},
                                         seed % 3 == 0 ? "none" : "momentum");
    const Named inputs = RandomInputs(step, seed);
    const Named expected = RunAll(step, inputs).outputs;
    const ir::Mesh mesh({{"dp", 1 + seed % 2}, {"hp", 2 + seed / 2 % 3}});
    ExpectSameSharded(step, mesh, RandomPrices(seed), inputs, expected);
    if (HasFailure()) FAIL() << ir::Print(step);
  }
}

}  // namespace
}  // namespace auto_shard_test_cc
}  // namespace orrery::semantics
