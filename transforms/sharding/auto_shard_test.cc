#include "transforms/sharding/auto_shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "ir/batch.h"
#include "ir/builder.h"
#include "ir/models/mlp.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "transforms/sharding/axis_layout.h"
#include "transforms/sharding/facts/axis_use.h"
#include "transforms/sharding/model_step_test_util.h"
#include "transforms/sharding/plain_prices_test_util.h"
#include "transforms/training/microbatch.h"
#include "transforms/training/training_step.h"

namespace orrery::transforms {
namespace auto_shard_test_cc {
namespace {

using ir::Function;
using ir::OpKind;
using ir::ValueId;

const ir::Mesh& Two() {
  static const ir::Mesh mesh({{"dp", 1}, {"hp", 2}});
  return mesh;
}

Function Sharded(const Function& step, const PlainPrices::Rates& rates,
                 const AutoShardOptions& options = {}, AutoShardReport* report = nullptr) {
  auto sharded =
      AutoShard(step, Two(), BatchedInputs(step), PlainPrices(Two(), rates), options, report);
  EXPECT_TRUE(sharded.ok()) << sharded.status();
  if (!sharded.ok()) return step;
  EXPECT_TRUE(ir::Verify(*sharded).ok()) << ir::Verify(*sharded);
  return *std::move(sharded);
}

std::map<OpKind, int> Count(const Function& function) {
  std::map<OpKind, int> counts;
  for (const ir::OpId op : function.order()) {
    if (function.info(op).op_class == ir::OpClass::kCollective) ++counts[function.kind(op)];
  }
  return counts;
}

AxisLayout LayoutOfNamed(const Function& function, absl::string_view name) {
  for (const ir::Input& input : function.inputs()) {
    if (function.value_name(input.value) != name) continue;
    return LayoutOf(function.type(input.value).sharding, 1);
  }
  for (const ir::OpId op : function.order()) {
    for (int32_t i = 0; i < function.result_count(op); ++i) {
      const ValueId value = function.result(op, i);
      if (function.value_name(value) == name) return LayoutOf(function.type(value).sharding, 1);
    }
  }
  ADD_FAILURE() << "no " << name;
  return kNoLayout;
}

// Products dominate, and a batch of three cannot be split: one all-reduce for columns and rows.
constexpr PlainPrices::Rates kProducts = {
    .flops = 1e9, .bytes = 1e15, .link = 1e10, .latency = 1e-6};

TEST(AutoShard, FindsThePairsOfAnMlp) {
  const Function step = ir::Mlp({.layers = 4, .dim = 64, .batch = 3}).value();
  AutoShardReport report;
  const Function sharded = Sharded(step, kProducts, {}, &report);
  // Rows first leave the loss split, too; columns first would need its operand whole.
  for (const auto& [name, layout] : std::map<std::string, AxisLayout>{
           {"w0", 0}, {"w1", 1}, {"w2", 0}, {"w3", 1}, {"dw0", 0}, {"dw3", 1}}) {
    EXPECT_EQ(LayoutOfNamed(sharded, name), layout) << name;
  }
  // One a pair forward, and one backward.
  EXPECT_EQ(Count(sharded), (std::map<OpKind, int>{{OpKind::kAllReduce, 4}})) << ir::Print(sharded);
  EXPECT_TRUE(report.optimal);
  EXPECT_NEAR(report.seconds, SerialSeconds(sharded, PlainPrices(Two(), kProducts)),
              1e-9 * report.seconds);
}

constexpr char kOddGpt[] = "layers=2,hidden=64,heads=4,seq=3,vocab=33";
constexpr char kEvenGpt[] = "layers=2,hidden=64,heads=4,seq=8,vocab=33";

void ExpectMegatronWeights(const Function& sharded) {
  for (const std::string layer : {"h.0.", "h.1."}) {
    for (const char* name : {"attn.q.weight", "attn.k.weight", "attn.v.weight", "mlp.up.weight"}) {
      EXPECT_EQ(LayoutOfNamed(sharded, layer + name), 1) << layer << name;
    }
    for (const char* name : {"attn.proj.weight", "mlp.down.weight"}) {
      EXPECT_EQ(LayoutOfNamed(sharded, layer + name), 0) << layer << name;
    }
  }
}

TEST(AutoShard, FindsMegatronsPairs) {
  const Function sharded = Sharded(ModelStep("gpt", kOddGpt, 1), kProducts);
  ExpectMegatronWeights(sharded);
  // An all-reduce for attention and for the feed-forward of each layer, forward and backward.
  EXPECT_GE(Count(sharded)[OpKind::kAllReduce], 8);
  if (HasFailure()) ADD_FAILURE() << ir::Print(sharded);
}

// Where norms and residuals take long, they are split along the sequence.
TEST(AutoShard, FindsSequenceParallelismWhereItPays) {
  const PlainPrices::Rates rates = {.flops = 1e9, .bytes = 2e9, .link = 1e10, .latency = 1e-9};
  const Function sharded = Sharded(ModelStep("gpt", kEvenGpt, 1), rates);
  ExpectMegatronWeights(sharded);
  for (const char* name : {"h.0.ln_1", "h.0.ln_2", "h.1.ln_1", "h.1.ln_2"}) {
    EXPECT_EQ(LayoutOfNamed(sharded, name), 1) << name;
  }
  auto counts = Count(sharded);
  EXPECT_GE(counts[OpKind::kReduceScatter], 8);
  EXPECT_GE(counts[OpKind::kAllGather], 8);
  if (HasFailure()) ADD_FAILURE() << ir::Print(sharded);
}

// Rows of the loss cannot be split, and there are many classes.
constexpr char kWideGpt[] = "layers=1,hidden=16,heads=4,seq=3,vocab=512,tied_embeddings=";

// Ranks exchange two numbers for each row instead of its logits.
TEST(AutoShard, SplitsTheLossOverTheVocabularyWhereItPays) {
  const std::string text =
      ir::Print(Sharded(ModelStep("gpt", absl::StrCat(kWideGpt, 0), 1), kProducts));
  EXPECT_THAT(text, testing::HasSubstr(
                        R"(  %lm_head: f32[1,3,512@hp] = MatMul(%ln_f, %lm_head.weight)
  %91: f32[1,3,2@hp,2] = CrossEntropyParts(%lm_head, %labels) {parts=2}
  %92: f32[1,3,2,2] = AllGather(%91) {axes="hp", dim=2}
  %loss: f32[1,3] = CrossEntropyOfParts(%92, %labels) {batch=3}
  %dlm_head: f32[1,3,512@hp] = CrossEntropyPartsGrad(%lm_head, %labels, %92) {batch=3}
)"));
  // One kernel for all of the loss is cheaper than three where each message takes long.
  const PlainPrices::Rates slow = {.flops = 1e12, .bytes = 1e15, .link = 1e10, .latency = 1};
  EXPECT_THAT(ir::Print(Sharded(ModelStep("gpt", absl::StrCat(kWideGpt, 0), 1), slow)),
              testing::HasSubstr(" = CrossEntropy("));
  // Or where links take more of a say.
  EXPECT_THAT(ir::Print(Sharded(ModelStep("gpt", absl::StrCat(kWideGpt, 0), 1), kProducts,
                                {.link_price = 1e9})),
              testing::HasSubstr(" = CrossEntropy("));
}

// A second for each kernel, whatever it does, and next to nothing besides.
class LaunchPrices final : public ShardingPrices {
 public:
  double OpSeconds(const LocalOp& op) const override {
    const bool view = ir::GetOpInfo(op.kind).op_class == ir::OpClass::kView;
    return (view ? 0 : 1) + plain_.OpSeconds(op);
  }
  double StepSeconds(redistribution::MoveKind kind, const ir::AxisList& axes,
                     Bytes size) const override {
    return plain_.StepSeconds(kind, axes, size);
  }

 private:
  const PlainPrices plain_{Two(), {.flops = 1e15, .bytes = 1e15, .link = 1e15, .latency = 1e-15}};
};

// What is split takes a little less than what is whole, but a loss in parts one kernel more.
TEST(AutoShard, KeepsTheLossWholeWhereLaunchesCount) {
  const Function step = ModelStep("gpt", absl::StrCat(kWideGpt, 0), 1);
  AutoShardReport report, of_pattern;
  const auto sharded = AutoShard(step, Two(), BatchedInputs(step), LaunchPrices(), {}, &report);
  ASSERT_TRUE(sharded.ok()) << sharded.status();
  EXPECT_THAT(ir::Print(*sharded), testing::HasSubstr(" = CrossEntropy("));
  // The pattern has it by the vocabulary, whatever that costs.
  const auto pattern = AutoShard(step, Two(), BatchedInputs(step), LaunchPrices(),
                                 {.pattern = SequenceParallel::kOff}, &of_pattern);
  ASSERT_TRUE(pattern.ok()) << pattern.status();
  EXPECT_THAT(ir::Print(*pattern), testing::HasSubstr(" = CrossEntropyParts("));
  EXPECT_LT(report.seconds, of_pattern.seconds);
}

// Megatron's embedding: each rank looks up the words that it has.
TEST(AutoShard, SplitsATiedEmbeddingByRows) {
  const Function sharded = Sharded(ModelStep("gpt", absl::StrCat(kWideGpt, 1), 1), kProducts);
  EXPECT_EQ(LayoutOfNamed(sharded, "wte.weight"), 0);
  EXPECT_EQ(LayoutOfNamed(sharded, "wte.partial"), kPartialLayout);
  EXPECT_EQ(LayoutOfNamed(sharded, "lm_head"), 2);
  EXPECT_THAT(ir::Print(sharded), testing::HasSubstr(R"({axis=0, size=512, split="hp"})"));
  EXPECT_EQ(Count(sharded)[OpKind::kAllGather], 1) << ir::Print(sharded);  // of parts of the loss
}

// Three rows of one sample: only heads divide, and k and v have but one for two ranks.
TEST(AutoShard, SplitsGroupedHeadsOverMoreRanksThanKeysHave) {
  ir::Builder b("grouped");
  const ValueId q = b.Parameter("q", {ir::DType::kF32, {1, 3, 8}, {}});
  const ValueId k = b.Parameter("k", {ir::DType::kF32, {1, 3, 4}, {}});
  const ValueId operands[] = {q, k, k};
  const ir::OpId op = b.Ops(
      OpKind::kAttention, operands, std::vector<absl::string_view>{"y", "l"},
      {{"flash", int64_t{1}}, {"heads", int64_t{2}}, {"kv_heads", int64_t{1}}, {"scale", 0.5}});
  b.Return(b.function().result(op));
  const auto step = std::move(b).Finalize();
  ASSERT_TRUE(step.ok()) << step.status();
  const Function sharded = Sharded(*step, kProducts);
  EXPECT_EQ(LayoutOfNamed(sharded, "k"), kWholeLayout);
  EXPECT_EQ(LayoutOfNamed(sharded, "l"), 1);
  if (HasFailure()) ADD_FAILURE() << ir::Print(sharded);
}

TEST(AutoShard, KeepsPins) {
  const Function step = ir::Mlp({.layers = 4, .dim = 64, .batch = 3}).value();
  const Function sharded = Sharded(step, kProducts, {.pins = {{"^w0$", 0}, {"^a1$", 1}, {"^w3$"}}});
  EXPECT_EQ(LayoutOfNamed(sharded, "w0"), 0);
  EXPECT_EQ(LayoutOfNamed(sharded, "dw0"), 0);
  EXPECT_EQ(LayoutOfNamed(sharded, "a1"), 1);
  EXPECT_EQ(LayoutOfNamed(sharded, "w3"), kWholeLayout);
  // The first one that matches counts.
  const Function first = Sharded(step, kProducts, {.pins = {{"^w1$", 1}, {"^w[01]$", 0}}});
  EXPECT_EQ(LayoutOfNamed(first, "w1"), 1);
  EXPECT_EQ(LayoutOfNamed(first, "w0"), 0);
}

TEST(AutoShard, SaysWhichPinCannotBeKept) {
  Function step = ir::Mlp({.layers = 2, .dim = 6, .batch = 3}).value();
  ASSERT_TRUE(AppendOptimizer(step, "momentum").value());
  const auto error = [&](const ShardingPin& pin, const ir::Mesh& mesh = Two()) {
    const auto sharded =
        AutoShard(step, mesh, BatchedInputs(step), PlainPrices(mesh, kProducts), {.pins = {pin}});
    return sharded.ok() ? "kept" : std::string(sharded.status().message());
  };
  EXPECT_EQ(error({"^w0$", 1}), "kept");
  EXPECT_EQ(error({"^w0$", 2}),
            "mlp: pin '^w0$=hp@2': %w0 is f32[6,6]; wanted one of its 2 dimensions, counted from "
            "0, or whole");
  EXPECT_EQ(error({"^x$", 0}),
            "mlp: pin '^x$=hp@0': dimension 0 of %x, which is f32[3,6], does not divide over hp=2");
  EXPECT_EQ(error({"nothing", 0}), "mlp: pin 'nothing=hp@0': matches the name of no value");
  EXPECT_EQ(error({"(", ShardingPin::kWhole}),
            "mlp: pin '(=hp@whole': is no regular expression; wanted one such as "
            "'mlp.up.weight$'");
  EXPECT_EQ(error({"^w0$", 1}, ir::Mesh({{"dp", 3}, {"hp", 1}})),
            "values are pinned to hp, and mesh(dp=3, hp=1) has no such axis of several ranks; "
            "wanted hp of at least 2");
  const auto torn = AutoShard(step, Two(), BatchedInputs(step), PlainPrices(Two(), kProducts),
                              {.pins = {{"^w0$", 1}, {"^w0.m$", 0}}});
  EXPECT_THAT(std::string(torn.status().message()),
              testing::StartsWith("mlp: the pin of %w0.m cannot be kept: %w0 and what"));
}

// Products share their weights: rows alone would leave all of them on each rank, as dp does.
TEST(AutoShard, SharesWeightsOfProductsOverHp) {
  // Far more rows than columns: to sum gradients of weights would cost next to nothing.
  constexpr char kLongGpt[] = "layers=1,hidden=16,heads=4,seq=256,vocab=32";
  int layers = 0;
  for (const double link : {1e12, 1e11, 1e10, 1e9}) {
    const PlainPrices::Rates rates = {.flops = 1e9, .bytes = 1e12, .link = link, .latency = 0};
    const Function step = Sharded(ModelStep("gpt", kLongGpt, 4), rates, {});
    const Function* const functions[] = {&step};
    for (const AxisUse& use : UsesOfAxis(functions, "hp")) {
      if (use.layer != "mlp") continue;
      ++layers;
      EXPECT_TRUE(use.splits.contains("columns")) << link << ": " << ToString({use});
      EXPECT_FALSE(use.splits.contains("sequence")) << link << ": " << ToString({use});
    }
  }
  EXPECT_EQ(layers, 4);
}

// Whole samples are what dp is for: by themselves hp's ranks share weights, and no batch.
TEST(AutoShard, SplitsTheBatchOverHpOnlyWhenAsked) {
  constexpr PlainPrices::Rates kDear = {.flops = 1e12, .bytes = 1e12, .link = 1e6, .latency = 1e-3};
  const auto splits = [&](const AutoShardOptions& options) {
    const Function sharded = Sharded(ModelStep("gpt", kEvenGpt, 4), kDear, options);
    const IdTable<ir::ValueId, int8_t> batch = ir::BatchDims(sharded);
    const ir::AxisIndex hp = sharded.mesh().Find("hp").value();
    int found = 0;
    for (int32_t v = 0; v < sharded.value_limit(); ++v) {
      const ir::ValueId value(v);
      if (batch[value] < 0) continue;
      const ir::Sharding& sharding = sharded.type(value).sharding;
      found += sharding.at(static_cast<size_t>(batch[value])).contains(hp) ? 1 : 0;
    }
    return found;
  };
  EXPECT_EQ(splits({}), 0);
  EXPECT_GT(splits({.pins = {{"batch", ShardingPin::kBatch}}}), 0);
}

// Megatron's layout, whatever it costs: where links are dear, the batch would be split instead.
TEST(AutoShard, PlacesSequenceParallelismWhenAsked) {
  constexpr PlainPrices::Rates kDear = {.flops = 1e12, .bytes = 1e12, .link = 1e6, .latency = 1e-3};
  const Function sharded =
      Sharded(ModelStep("gpt", kEvenGpt, 1), kDear, {.pattern = SequenceParallel::kOn});
  ExpectMegatronWeights(sharded);
  for (const char* name : {"h.0.attn.proj", "h.1.mlp.down"}) {
    EXPECT_EQ(LayoutOfNamed(sharded, name), 1) << name;
  }
  EXPECT_GE(Count(sharded)[OpKind::kReduceScatter], 4);
  if (HasFailure()) ADD_FAILURE() << ir::Print(sharded);
}

// The dearer a byte, the less is held and the longer it takes. Equal choices are known by one
// number.
TEST(AutoShard, WeighsMemory) {
  Function step = ir::Mlp({.layers = 4, .dim = 64, .batch = 3}).value();
  ASSERT_TRUE(AppendOptimizer(step, "adam").value());
  constexpr PlainPrices::Rates kDear = {.flops = 1e9, .bytes = 1e15, .link = 1e6, .latency = 1e-3};
  const auto chosen = [&](double price) {
    AutoShardReport report;
    Sharded(step, kDear, {.memory_price = price}, &report);
    return report;
  };
  const AutoShardReport cheapest = chosen(0);
  const AutoShardReport least = chosen(1);
  EXPECT_LT(least.memory, cheapest.memory);
  EXPECT_GT(least.seconds, cheapest.seconds);  // without what memory counts
  EXPECT_LT(least.seconds, 1e6);
  EXPECT_NE(least.choice, cheapest.choice);
  const AutoShardReport again = chosen(1e-15);
  EXPECT_EQ(again.choice, cheapest.choice);
  EXPECT_EQ(again.seconds, cheapest.seconds);
}

// With memory for half of what is kept whole, weights are split although that takes longer.
TEST(AutoShard, KeepsToALimitOfMemory) {
  Function step = ir::Mlp({.layers = 4, .dim = 64, .batch = 3}).value();
  ASSERT_TRUE(AppendOptimizer(step, "adam").value());
  constexpr PlainPrices::Rates kDear = {.flops = 1e15, .bytes = 1e15, .link = 1e6, .latency = 1e-3};
  AutoShardReport free, tight, hopeless;
  const Function whole = Sharded(step, kDear, {}, &free);
  EXPECT_EQ(LayoutOfNamed(whole, "w0"), kWholeLayout);
  const Bytes limit(static_cast<int64_t>(0.6 * free.memory));
  Sharded(step, kDear, {.memory_limit = limit}, &tight);
  EXPECT_LE(tight.memory, static_cast<double>(limit.count()));
  EXPECT_GT(tight.seconds, free.seconds);
  EXPECT_FALSE(tight.optimal);  // nothing is proven about it
  Sharded(step, kDear, {.memory_limit = Bytes(1)}, &hopeless);
  EXPECT_LT(hopeless.memory, tight.memory);
  // What microbatches in flight keep counts for each.
  AutoShardReport more;
  Sharded(step, kDear, {.in_flight = 3}, &more);
  EXPECT_GT(more.memory, free.memory);
}

// An update counts for a part of a microbatch only: a split of it alone, which the parameters have
// to be gathered for each time, no longer pays.
TEST(AutoShard, CountsTheUpdateOnceAStep) {
  Function step = ir::Mlp({.layers = 2, .dim = 64, .batch = 3}).value();
  ASSERT_TRUE(AppendOptimizer(step, "adam").value());
  constexpr PlainPrices::Rates kMemory = {.flops = 1e15, .bytes = 1e8, .link = 3e8, .latency = 0};
  AutoShardReport once, often;
  Sharded(step, kMemory, {}, &once);
  Sharded(step, kMemory, {.microbatches = 1000}, &often);
  EXPECT_LT(often.seconds, once.seconds);
}

TEST(AutoShard, SplitsDataAlongFurtherAxes) {
  const Function step = ModelStep("gpt", kEvenGpt, 1);
  const auto sharded = [&](const ir::Mesh& mesh) {
    const auto result =
        AutoShard(step, mesh, BatchedInputs(step), PlainPrices(mesh, kProducts), {});
    EXPECT_TRUE(!result.ok() || ir::Verify(*result).ok());
    return result.ok() ? ir::Print(*result) : std::string(result.status().message());
  };
  EXPECT_THAT(sharded(ir::Mesh({{"dp", 1}, {"cp", 2}, {"hp", 2}})),
              testing::HasSubstr(": i64[1,8@cp] data"));
  EXPECT_THAT(sharded(ir::Mesh({{"dp", 1}, {"cp", 3}, {"hp", 2}})),
              testing::HasSubstr("cp=3: dimension 1 of %"));
  EXPECT_THAT(sharded(ir::Mesh({{"dp", 1}, {"ep", 2}, {"hp", 2}})),
              testing::HasSubstr("ep=2: dimension 0 of %"));
  const Function vector = ir::ParseFunction(
                              "func @f (%x: f32[4] data) {\n %y: f32[4] = Relu(%x)\n return %y: "
                              "result\n}")
                              .value();
  const ir::Mesh mesh({{"dp", 1}, {"cp", 2}});
  EXPECT_THAT(
      std::string(AutoShard(vector, mesh, BatchedInputs(vector), PlainPrices(mesh, kProducts))
                      .status()
                      .message()),
      testing::HasSubstr("cp=2: no data input has a dimension 1 to split"));
}

TEST(AutoShard, WithoutHpIsShard) {
  const Function step = ir::Mlp({.layers = 2, .dim = 6, .batch = 4}).value();
  const ir::Mesh mesh({{"dp", 2}, {"hp", 1}});
  const auto sharded = AutoShard(step, mesh, BatchedInputs(step), PlainPrices(mesh, kProducts));
  ASSERT_TRUE(sharded.ok()) << sharded.status();
  EXPECT_THAT(ir::Print(*sharded), testing::HasSubstr("%x: f32[4@dp,6] data"));
}

}  // namespace
}  // namespace auto_shard_test_cc
}  // namespace orrery::transforms
