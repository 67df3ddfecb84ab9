#include "transforms/sharding/ring_strategy.h"

#include <gtest/gtest.h>

#include "ir/builder.h"
#include "ir/op_kind.h"
#include "transforms/sharding/plain_prices_test_util.h"
#include "transforms/sharding/ring_attention.h"

namespace orrery::transforms {
namespace ring_strategy_test_cc {
namespace {

using ir::Function;
using ir::OpKind;
using ir::ValueId;

// Attention and its gradient: as they are, or in a ring over the mesh.
Function AttentionAndGradient(bool packed, const ir::Mesh& mesh, bool ring) {
  ir::Builder b("attention", ring ? mesh : ir::Mesh());
  ir::TensorType type{ir::DType::kF32, packed ? ir::Dims{1, 12, 8} : ir::Dims{1, 2, 12, 4}, {}};
  if (ring) type.sharding.Set(packed ? 1 : 2, type.dims.size(), ir::AxisList(0));
  const ir::AttributeSet flash = {{"flash", int64_t{1}}, {"heads", int64_t{2}}};
  const ValueId q = b.Data("q", type), k = b.Data("k", type), v = b.Data("v", type),
                dy = b.Data("dy", type);
  if (ring) {
    const AttentionRing around = {.attributes = flash, .axes = "cp"};
    const AttentionResults y = EmitRing(around, {q, k, v}, {}, b);
    const AttentionOperands d = EmitRingGrad(around, {{q, k, v}, y, dy}, {}, b);
    for (const ValueId value : {y.y, d.q, d.k, d.v}) b.Return(value);
  } else {
    const auto y = b.Ops(OpKind::kAttention, std::vector<ValueId>{q, k, v}, {}, flash);
    const ValueId results[] = {b.function().result(y, 0), b.function().result(y, 1)};
    const auto d = b.Ops(OpKind::kAttentionGrad,
                         std::vector<ValueId>{q, k, v, results[0], results[1], dy}, {}, flash);
    b.Return(results[0]);
    for (int32_t i = 0; i < 3; ++i) b.Return(b.function().result(d, i));
  }
  return std::move(b).Finalize().value();
}

// Where either ops or links take no time nothing hides behind the other, and a ring takes what its
// ops take.
TEST(RingStrategy, CostsWhatItIsMadeOf) {
  for (const int32_t turns : {2, 3, 4}) {
    for (const bool packed : {true, false}) {
      const ir::Mesh mesh({{"cp", turns}});
      const Function whole = AttentionAndGradient(packed, mesh, false);
      const Function ring = AttentionAndGradient(packed, mesh, true);
      for (const PlainPrices::Rates& rates :
           {PlainPrices::Rates{.flops = 1e9, .bytes = 1e9, .link = 1e30, .latency = 0},
            PlainPrices::Rates{.flops = 1e30, .bytes = 1e30, .link = 1e9, .latency = 1e-3}}) {
        const PlainPrices prices(mesh, rates);
        double seconds = 0;
        for (const ir::OpId op : whole.order()) {
          const auto strategy = RingStrategy({whole, mesh, 0, prices}, op);
          ASSERT_TRUE(strategy.has_value());
          EXPECT_EQ(strategy->operands[0], packed ? 1 : 2);
          seconds += strategy->seconds;
        }
        const double expected = SerialSeconds(ring, prices);
        EXPECT_NEAR(seconds, expected, 1e-9 * expected) << turns << " turns";
      }
    }
  }
}

TEST(SplitFurther, AddsTheInnermostAxis) {
  const ir::Mesh mesh({{"cp", 2}, {"hp", 2}});
  EXPECT_EQ(SplitFurther({}, mesh, 1).String("split", ""), "hp");
  EXPECT_EQ(SplitFurther({{"split", "cp"}}, mesh, 1).String("split", ""), "cp.hp");
}

}  // namespace
}  // namespace ring_strategy_test_cc
}  // namespace orrery::transforms
