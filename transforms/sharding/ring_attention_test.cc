#include "transforms/sharding/ring_attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/execution/execute.h"
#include "ir/op_kind.h"
#include "ir/tensor_parts.h"
#include "ir/text/text.h"
#include "ir/verifier.h"

// Rings against the one Attention, and the one AttentionGrad, that they stand for.

namespace orrery::transforms {
namespace ring_attention_test_cc {
namespace {

using ir::AttributeSet;
using ir::Builder;
using ir::DType;
using ir::OpId;
using ir::OpKind;
using ir::Tensor;
using ir::TensorType;
using ir::ValueId;

constexpr int64_t kBatch = 2, kRows = 12, kWidth = 2;

struct Case {
  int64_t ranks = 1;  // of the ring
  int64_t heads = 2, kv_heads = 2;
  bool causal = false, packed = true;
  int64_t head_ranks = 1;  // over which heads are split, beside the ring

  AttributeSet attributes() const {
    AttributeSet attributes = {
        {"flash", int64_t{1}}, {"heads", heads}, {"kv_heads", kv_heads}, {"scale", 0.5}};
    if (causal) attributes.Set("causal", int64_t{1});
    return attributes;
  }
  std::string ToString() const {
    return absl::StrCat(ranks, " ranks x ", head_ranks, ", ", heads, " heads over ", kv_heads,
                        causal ? ", causal" : "", packed ? ", packed" : "");
  }
  ir::Mesh mesh() const {
    return ir::Mesh(
        {{"cp", static_cast<int32_t>(ranks)}, {"hp", static_cast<int32_t>(head_ranks)}});
  }
  // Of rows and of `count` heads: sharded over the mesh where there is one. Heads that do not
  // divide stay whole.
  TensorType Type(int64_t count, bool sharded) const {
    TensorType type{DType::kF32, {kBatch, kRows, count * kWidth}, {}};
    if (!packed) type.dims = {kBatch, count, kRows, kWidth};
    if (!sharded) return type;
    type.sharding.Set(packed ? 1 : 2, type.dims.size(), ir::AxisList(0));
    if (count % head_ranks == 0) {
      type.sharding.Set(packed ? 2 : 1, type.dims.size(), ir::AxisList(1));
    }
    return type;
  }
};

// Results of forward and all gradients: in a ring, or by one op each.
absl::StatusOr<ir::Function> Build(const Case& test, bool ring) {
  Builder b("attention", ring ? test.mesh() : ir::Mesh());
  const auto input = [&](absl::string_view name, int64_t heads) {
    return b.Data(name, test.Type(heads, ring));
  };
  const AttentionOperands in = {input("q", test.heads), input("k", test.kv_heads),
                                input("v", test.kv_heads)};
  const ValueId dy = input("dy", test.heads);
  AttentionResults results;
  AttentionOperands gradients;
  if (ring) {
    const AttentionRing around = {.attributes = test.attributes(), .axes = "cp"};
    results = EmitRing(around, in, {}, b);
    gradients = EmitRingGrad(around, {.operands = in, .results = results, .dy = dy}, {}, b);
  } else {
    const std::vector<ValueId> forward = {in.q, in.k, in.v};
    const OpId op = b.Ops(OpKind::kAttention, forward, {}, test.attributes());
    if (!op.valid()) return b.status();
    results = {b.function().result(op, 0), b.function().result(op, 1)};
    const std::vector<ValueId> backward = {in.q, in.k, in.v, results.y, results.logarithms, dy};
    const OpId grad = b.Ops(OpKind::kAttentionGrad, backward, {}, test.attributes());
    if (!grad.valid()) return b.status();
    gradients = {b.function().result(grad, 0), b.function().result(grad, 1),
                 b.function().result(grad, 2)};
  }
  for (const ValueId value :
       {results.y, results.logarithms, gradients.q, gradients.k, gradients.v}) {
    b.Return(value);
  }
  return std::move(b).Finalize();
}

Tensor AnyTensor(const TensorType& type, std::mt19937& random) {
  Tensor tensor(type.dtype, type.dims);
  for (double& value : tensor.floats()) value = static_cast<double>(random() % 401) / 100 - 2;
  return tensor;
}

void ExpectRingIsTheWhole(const Case& test) {
  SCOPED_TRACE(test.ToString());
  std::mt19937 random(1);
  const TensorType q = test.Type(test.heads, false), k = test.Type(test.kv_heads, false);
  const ir::NamedTensors inputs = {{"q", AnyTensor(q, random)},
                                   {"k", AnyTensor(k, random)},
                                   {"v", AnyTensor(k, random)},
                                   {"dy", AnyTensor(q, random)}};
  const auto whole = Build(test, false), ring = Build(test, true);
  ASSERT_TRUE(whole.ok()) << whole.status();
  ASSERT_TRUE(ring.ok()) << ring.status();
  ASSERT_TRUE(ir::Verify(*ring).ok()) << ir::Verify(*ring);
  const auto expected = ir::Execute(*whole, inputs, {.round = false});
  const auto ours = ir::Execute(*ring, inputs, {.round = false});
  ASSERT_TRUE(expected.ok()) << expected.status();
  ASSERT_TRUE(ours.ok()) << ours.status();
  EXPECT_LE(ours->disagreement, 1e-9);
  for (size_t i = 0; i < expected->outputs.size(); ++i) {
    EXPECT_LE(ir::Distance(ours->outputs[i], expected->outputs[i]), 1e-9) << "output " << i;
  }
}

TEST(RingAttention, IsAttentionToAllKeys) {
  for (const int64_t ranks : {1, 2, 3, 4}) {
    for (const bool causal : {false, true}) {
      for (const bool packed : {false, true}) {
        for (const int64_t kv_heads : {1, 2, 4}) {
          ExpectRingIsTheWhole({.ranks = ranks,
                                .heads = 4,
                                .kv_heads = kv_heads,
                                .causal = causal,
                                .packed = packed});
        }
      }
    }
  }
}

// Heads of q on four ranks, and those of k whole on each.
TEST(RingAttention, GoesBesideSplitHeads) {
  for (const bool causal : {false, true}) {
    for (const int64_t kv_heads : {2, 4}) {
      ExpectRingIsTheWhole(
          {.ranks = 3, .heads = 4, .kv_heads = kv_heads, .causal = causal, .head_ranks = 4});
    }
  }
}

// f32 holds the lowest logarithms, those of rows of which a turn sees nothing.
TEST(RingAttention, OfRoundedNumbersIsFinite) {
  const Case test = {.ranks = 4, .causal = true};
  std::mt19937 random(2);
  const TensorType q = test.Type(2, false);
  const ir::NamedTensors inputs = {{"q", AnyTensor(q, random)},
                                   {"k", AnyTensor(q, random)},
                                   {"v", AnyTensor(q, random)},
                                   {"dy", AnyTensor(q, random)}};
  const auto expected = ir::Execute(Build(test, false).value(), inputs);
  const auto ours = ir::Execute(Build(test, true).value(), inputs);
  ASSERT_TRUE(expected.ok() && ours.ok());
  for (size_t i = 0; i < expected->outputs.size(); ++i) {
    EXPECT_LE(ir::Distance(ours->outputs[i], expected->outputs[i]), 1e-4) << "output " << i;
  }
}

// What travels is issued before what it travels behind.
TEST(RingAttention, SendsTheNextPartBeforeItsTurn) {
  Builder b("ring", ir::Mesh({{"cp", 3}}));
  TensorType type{DType::kF32, {1, 6, 4}, {}};
  type.sharding.Set(1, 3, ir::AxisList(0));
  const AttentionRing ring = {.attributes = {{"flash", int64_t{1}}, {"heads", int64_t{2}}},
                              .axes = "cp"};
  const AttentionOperands in = {b.Data("q", type), b.Data("k", type), b.Data("v", type)};
  const absl::string_view names[] = {"y", "l"}, gradients[] = {"dq", "dk", "dv"};
  const AttentionResults results = EmitRing(ring, in, names, b);
  const ValueId dy = b.Data("dy", type);
  const AttentionOperands out =
      EmitRingGrad(ring, {.operands = in, .results = results, .dy = dy}, gradients, b);
  for (const ValueId value : {results.y, out.q, out.k, out.v}) b.Return(value);
  const auto function = std::move(b).Finalize();
  ASSERT_TRUE(function.ok()) << function.status();
  EXPECT_EQ(ir::Print(*function), R"(func @ring mesh(cp=3) (
  %q: f32[1,6@cp,4] data,
  %k: f32[1,6@cp,4] data,
  %v: f32[1,6@cp,4] data,
  %dy: f32[1,6@cp,4] data
) {
  %4: f32[1,6@cp,4] = Rotate(%k) {axes="cp", dim=1, parts=3}
  %5: f32[1,6@cp,4] = Rotate(%v) {axes="cp", dim=1, parts=3}
  %6: f32[1,6@cp,4], %7: f32[1,2,6@cp] = Attention(%q, %k, %v) {flash=1, heads=2, ring_rows=2, turn=0}
  %8: f32[1,6@cp,4] = Rotate(%4) {axes="cp", dim=1, parts=3}
  %9: f32[1,6@cp,4] = Rotate(%5) {axes="cp", dim=1, parts=3}
  %10: f32[1,6@cp,4], %11: f32[1,2,6@cp] = Attention(%q, %4, %5) {flash=1, heads=2, ring_rows=2, turn=1}
  %12: f32[1,6@cp,4], %13: f32[1,2,6@cp] = MergeAttention(%6, %7, %10, %11)
  %14: f32[1,6@cp,4], %15: f32[1,2,6@cp] = Attention(%q, %8, %9) {flash=1, heads=2, ring_rows=2, turn=2}
  %y: f32[1,6@cp,4], %l: f32[1,2,6@cp] = MergeAttention(%12, %13, %14, %15)
  %18: f32[1,6@cp,4] = Rotate(%k) {axes="cp", dim=1, parts=3}
  %19: f32[1,6@cp,4] = Rotate(%v) {axes="cp", dim=1, parts=3}
  %20: f32[1,6@cp,4], %21: f32[1,6@cp,4], %22: f32[1,6@cp,4] = AttentionGrad(%q, %k, %v, %y, %l, %dy) {flash=1, heads=2, ring_rows=2, turn=0}
  %23: f32[1,6@cp,4] = Rotate(%18) {axes="cp", dim=1, parts=3}
  %24: f32[1,6@cp,4] = Rotate(%19) {axes="cp", dim=1, parts=3}
  %25: f32[1,6@cp,4] = Rotate(%21) {axes="cp", dim=1, parts=3}
  %26: f32[1,6@cp,4] = Rotate(%22) {axes="cp", dim=1, parts=3}
  %27: f32[1,6@cp,4], %28: f32[1,6@cp,4], %29: f32[1,6@cp,4] = AttentionGrad(%q, %18, %19, %y, %l, %dy) {flash=1, heads=2, ring_rows=2, turn=1}
  %30: f32[1,6@cp,4] = Add(%20, %27)
  %31: f32[1,6@cp,4] = Add(%25, %28)
  %32: f32[1,6@cp,4] = Add(%26, %29)
  %33: f32[1,6@cp,4] = Rotate(%31) {axes="cp", dim=1, parts=3}
  %34: f32[1,6@cp,4] = Rotate(%32) {axes="cp", dim=1, parts=3}
  %35: f32[1,6@cp,4], %36: f32[1,6@cp,4], %37: f32[1,6@cp,4] = AttentionGrad(%q, %23, %24, %y, %l, %dy) {flash=1, heads=2, ring_rows=2, turn=2}
  %dq: f32[1,6@cp,4] = Add(%30, %35)
  %39: f32[1,6@cp,4] = Add(%33, %36)
  %40: f32[1,6@cp,4] = Add(%34, %37)
  %dk: f32[1,6@cp,4] = Rotate(%39) {axes="cp", dim=1, parts=3}
  %dv: f32[1,6@cp,4] = Rotate(%40) {axes="cp", dim=1, parts=3}
  return %y: result, %dq: result, %dk: result, %dv: result
}
)");
}

std::string ErrorOf(const AttentionRing& ring, const ir::Mesh& mesh, const TensorType& type) {
  Builder b("ring", mesh);
  const AttentionOperands in = {b.Data("q", type), b.Data("k", type), b.Data("v", type)};
  const AttentionResults results = EmitRing(ring, in, {}, b);
  const AttentionOperands out =
      EmitRingGrad(ring, {.operands = in, .results = results, .dy = in.q}, {}, b);
  EXPECT_FALSE(results.y.valid() && out.q.valid());
  return std::string(std::move(b).Finalize().status().message());
}

TEST(RingAttention, SaysWhatDoesNotFit) {
  const ir::Mesh mesh({{"cp", 4}});
  const AttributeSet flash = {{"flash", int64_t{1}}, {"heads", int64_t{2}}};
  const AttributeSet plain = {{"heads", int64_t{2}}};
  const TensorType whole{DType::kF32, {1, 8, 4}, {}};
  TensorType split = whole;
  split.sharding.Set(1, 3, ir::AxisList(0));
  const std::vector<std::string> errors = {
      ErrorOf({.attributes = plain, .axes = "cp"}, mesh, split),
      ErrorOf({.attributes = flash, .axes = "tp"}, mesh, split),
      ErrorOf({.attributes = flash, .axes = "cp"}, mesh, {DType::kF32, {1, 6, 4}, {}}),
      ErrorOf({.attributes = flash, .axes = "cp"}, mesh, whole),
      ErrorOf({.attributes = flash, .axes = "cp"}, mesh, {DType::kF32, {8}, {}}),
  };
  EXPECT_THAT(
      errors,
      testing::ElementsAre(
          "ring: attention in a ring has flash=0; wanted flash=1, as it keeps no probabilities",
          "axes=\"tp\" are no axes of mesh(cp=4)",
          "ring: attention has 6 rows for a ring of 4 ranks along cp; wanted rows that divide",
          "ring: Rotate: dimension 1 of its operand is split over ''; wanted parts=4 ranks along "
          "cp "
          "with one part each, or one rank with all",
          "ring: Attention: q, k and v have shapes [8], [8] and [8] with heads=2; wanted "
          "[batch,rows,heads width] or [batch,heads,rows,width], one batch, one width of q and k, "
          "and as many heads of k and v as go into those of q"));
}

}  // namespace
}  // namespace ring_attention_test_cc
}  // namespace orrery::transforms
