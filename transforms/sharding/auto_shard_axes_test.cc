#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "ir/models/mlp.h"
#include "ir/op_kind.h"
#include "ir/text/text.h"
#include "transforms/parallel.h"
#include "transforms/sharding/auto_shard.h"
#include "transforms/sharding/model_step_test_util.h"
#include "transforms/sharding/plain_prices_test_util.h"
#include "transforms/training/microbatch.h"
#include "transforms/training/training_step.h"

// Pins of several axes, and ways of attention along cp.

namespace orrery::transforms {
namespace auto_shard_axes_test_cc {
namespace {

using ir::Function;
using ir::OpKind;

constexpr PlainPrices::Rates kProducts = {
    .flops = 1e9, .bytes = 1e15, .link = 1e10, .latency = 1e-6};

TEST(AutoShard, KeepsPinsOfEachAxis) {
  const Function step = ir::Mlp({.layers = 2, .dim = 64, .batch = 4}).value();
  const ir::Mesh mesh({{"dp", 1}, {"cp", 2}, {"hp", 2}});
  const auto sharded = [&](const ir::Mesh& on, std::vector<ShardingPin> pins) {
    const auto result = AutoShard(step, on, BatchedInputs(step), PlainPrices(on, kProducts),
                                  {.pins = std::move(pins)});
    return result.ok() ? ir::Print(*result) : std::string(result.status().message());
  };
  EXPECT_THAT(sharded(mesh, {{"^w0$", 1, "hp"}, {"^w0$", 0, "cp"}}),
              testing::HasSubstr("%w0: f32[64@cp,64@hp] parameter"));
  // The outer axis first; and a user's pin of data goes before what an axis is for.
  EXPECT_THAT(
      sharded(ir::Mesh({{"dp", 1}, {"cp", 2}, {"ep", 2}}), {{"^w0$", 0, "cp"}, {"^w0$", 0, "ep"}}),
      testing::HasSubstr("%w0: f32[64@ep.cp,64] parameter"));
  EXPECT_THAT(sharded(ir::Mesh({{"dp", 1}, {"cp", 2}}), {{"^x$", ShardingPin::kWhole, "cp"}}),
              testing::HasSubstr("%x: f32[4,64] data"));
  EXPECT_EQ(sharded(ir::Mesh({{"dp", 2}, {"hp", 2}}), {{"^w0$", 0, "dp"}}),
            "mlp: values are pinned to dp; wanted one of hp, cp and ep");
}

// However cheap it is to give each rank whole samples.
TEST(AutoShard, SharesSequencesAlongCpAndNoSamples) {
  const Function step = ModelStep("gpt", "layers=1,hidden=16,heads=4,seq=64,vocab=32,flash=1", 12);
  const auto text = [&](const char* axis) {
    const ir::Mesh mesh({{"dp", 1}, {axis, 2}});
    // Attention over sequences that are split would have a lot to exchange.
    const PlainPrices prices(mesh, {.flops = 1e9, .bytes = 1e9, .link = 1e9, .latency = 1e-9});
    const auto sharded = AutoShard(step, mesh, BatchedInputs(step), prices);
    EXPECT_TRUE(sharded.ok()) << sharded.status();
    return ir::Print(*sharded);
  };
  EXPECT_THAT(text("ep"), testing::HasSubstr("[12@ep,64,16]"));
  EXPECT_THAT(text("cp"), testing::Not(testing::HasSubstr("[12@cp")));
}

TEST(AutoShard, PinsNameWhatARingMakes) {
  const Function step = ModelStep("gpt", "layers=1,hidden=16,heads=4,seq=8,vocab=32,flash=1", 2);
  const ir::Mesh mesh({{"dp", 1}, {"cp", 2}, {"hp", 2}}), hp({{"dp", 1}, {"hp", 2}});
  const auto ring = AutoShard(step, mesh, BatchedInputs(step), PlainPrices(mesh, kProducts),
                              {.pins = {{"^h.0.attn.core$", 2}, {"^dh.0.attn.q$", 2}},
                               .context_attention = ContextAttention::kRing});
  ASSERT_TRUE(ring.ok()) << ring.status();
  EXPECT_THAT(ir::Print(*ring), testing::HasSubstr("%h.0.attn.core: f32[2,8@cp,16@hp], "));
  // Sequences go round along cp only.
  const auto plain = AutoShard(step, hp, BatchedInputs(step), PlainPrices(hp, kProducts),
                               {.context_attention = ContextAttention::kRing});
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_THAT(ir::Print(*plain), testing::Not(testing::HasSubstr("Rotate(")));
}

TEST(AutoShard, ContextAttentionIsAsAsked) {
  const Function step = ModelStep("gpt", "layers=1,hidden=16,heads=4,seq=8,vocab=32,flash=1", 2);
  const ir::Mesh mesh({{"dp", 1}, {"cp", 2}});
  // How q and k of each attention lie, by dimension.
  const auto lie = [&](ContextAttention way) {
    std::string text;
    const auto sharded = AutoShard(step, mesh, BatchedInputs(step), PlainPrices(mesh, kProducts),
                                   {.context_attention = way});
    EXPECT_TRUE(sharded.ok()) << sharded.status();
    for (const ir::OpId op : sharded->order()) {
      const OpKind kind = sharded->kind(op);
      if (kind != OpKind::kAttention && kind != OpKind::kAttentionGrad) continue;
      for (const size_t i : {0u, 1u}) {
        absl::StrAppend(&text, i == 0 ? " " : "/",
                        ir::ToString(sharded->type(sharded->operands(op)[i]), mesh));
      }
    }
    return text;
  };
  const std::string heads = " f32[2,8,16@cp]/f32[2,8,16@cp]", rows = " f32[2,8@cp,16]/f32[2,8,16]",
                    ring = " f32[2,8@cp,16]/f32[2,8@cp,16]";
  EXPECT_EQ(lie(ContextAttention::kAllToAll), heads + heads);
  EXPECT_EQ(lie(ContextAttention::kAllGather), rows + rows);
  EXPECT_EQ(lie(ContextAttention::kRing), ring + ring + ring + ring);
}

}  // namespace
}  // namespace auto_shard_axes_test_cc
}  // namespace orrery::transforms
