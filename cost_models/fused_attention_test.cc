#include "cost_models/fused_attention.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <utility>
#include <vector>

#include "cost_models/op_fixture_test_util.h"
#include "ir/op_kind.h"

namespace orrery::cost_models {
namespace fused_attention_test_cc {
namespace {

using ir::OpKind;

ir::TensorType Half(std::initializer_list<int64_t> dims) { return Tensor(dims, ir::DType::kBF16); }

// Of 8 heads of 64, `queries` of which are the last of `keys`.
FusedAttention Of(int64_t queries, int64_t keys, ir::AttributeSet attributes) {
  attributes.Set("heads", int64_t{8});
  attributes.Set("flash", int64_t{1});
  const OpFixture op(OpKind::kAttention,
                     {Half({2, queries, 512}), Half({2, keys, 512}), Half({2, keys, 512})},
                     std::move(attributes));
  EXPECT_TRUE(op.status().ok()) << op.status();
  EXPECT_TRUE(IsFusedAttention(op.view()));
  return FusedAttentionOf(op.view());
}

TEST(FusedAttention, HasTheShapeOfItsOp) {
  const FusedAttention attention = Of(1024, 1024, {});
  EXPECT_EQ(attention.batch, 2);
  EXPECT_EQ(attention.heads, 8);
  EXPECT_EQ(attention.queries, 1024);
  EXPECT_EQ(attention.width, 64);
  EXPECT_EQ(attention.dtype, ir::DType::kBF16);
  EXPECT_EQ(attention.visible, 1);
  EXPECT_DOUBLE_EQ(attention.flops.count(), 4.0 * 2 * 8 * 1024 * 1024 * 64);
}

// Half of a square; of a slice of queries at the end of all keys the more, the later it is.
TEST(FusedAttention, SeesWhatCausalityLeaves) {
  const ir::AttributeSet causal = {{"causal", int64_t{1}}};
  EXPECT_DOUBLE_EQ(Of(1024, 1024, causal).visible, 0.5);
  EXPECT_DOUBLE_EQ(Of(256, 1024, causal).visible, 1 - 256 / 2048.0);
  EXPECT_DOUBLE_EQ(Of(1, 4096, causal).visible, 1 - 1 / 8192.0);
}

// A rank that has a part of the queries and all keys sees half of them on average.
TEST(FusedAttention, OfAPartOfTheSequenceSeesHalf) {
  const OpFixture op(OpKind::kAttention,
                     {Half({2, 256, 512}), Half({2, 1024, 512}), Half({2, 1024, 512})},
                     {{"causal", int64_t{1}}, {"flash", int64_t{1}}, {"heads", int64_t{8}}});
  const ir::TensorType whole = Half({2, 1024, 512});
  OpView view = op.view();
  view.first_operand = &whole;
  EXPECT_DOUBLE_EQ(FusedAttentionOf(view).visible, 0.5);
}

TEST(FusedAttention, IsOfTheClassOfItsSoftware) {
  const OpFixture op(OpKind::kAttention,
                     {Half({2, 64, 512}), Half({2, 64, 512}), Half({2, 64, 512})},
                     {{"flash", int64_t{1}}, {"heads", int64_t{8}}});
  OpView view = op.view();
  EXPECT_EQ(FusedAttentionOf(view).kernel, AttentionClass::kCudnn);
  const KernelChoice choice = {.attention = AttentionClass::kFlash1};
  view.choice = &choice;
  EXPECT_EQ(FusedAttentionOf(view).kernel, AttentionClass::kFlash1);
}

TEST(AttentionInParts, HasTheShapeOfItsOp) {
  const ir::TensorType q = Half({2, 1024, 512}), k = Half({2, 1024, 128}), v = Half({2, 1024, 64}),
                       y = Half({2, 1024, 256}), p = Half({2, 8, 1024, 1024});
  const ir::AttributeSet attributes = {
      {"causal", int64_t{1}}, {"dropout", 0.1}, {"heads", int64_t{8}}, {"kv_heads", int64_t{2}}};
  const OpFixture op(OpKind::kAttention, {q, k, v}, attributes);
  ASSERT_TRUE(op.status().ok()) << op.status();
  EXPECT_FALSE(IsFusedAttention(op.view()));
  ASSERT_TRUE(IsAttentionInParts(op.view()));
  const ir::TensorType* const inputs[] = {&q, &k, &v, &y, &p, &y};
  const ir::TensorType* const gradients[] = {&q, &k, &v};
  const OpView back = {OpKind::kAttentionGrad, attributes, inputs, gradients};
  for (const OpView& view : {op.view(), back}) {
    const AttentionInParts attention = AttentionInPartsOf(view);
    EXPECT_EQ(attention.batch, 2);
    EXPECT_EQ(attention.heads, 8);
    EXPECT_EQ(attention.keys, 1024);
    EXPECT_EQ(attention.width, 64);
    EXPECT_EQ(attention.value_width, 32);
    EXPECT_EQ(attention.visible, 0.5);
    EXPECT_TRUE(attention.dropout);
    EXPECT_EQ(attention.backward, view.kind == OpKind::kAttentionGrad);
  }
}

// The host launches products, softmax and dropout each; a fused one once, and a view never.
TEST(AttentionInParts, IsAsManyLaunchesAsKernels) {
  const ir::TensorType q = Half({1, 1024, 128});
  const auto launches = [&](int64_t heads, int64_t flash) {
    const OpFixture op(OpKind::kAttention, {q, q, q},
                       {{"heads", heads}, {"flash", flash}, {"dropout", 0.1}});
    EXPECT_TRUE(op.status().ok()) << op.status();
    return LaunchesOf(op.view());
  };
  EXPECT_EQ(launches(4, 0), 4);
  EXPECT_EQ(launches(2, 0), 8);  // softmax of two heads is five kernels
  EXPECT_EQ(launches(4, 1), 1);
  const OpFixture view(OpKind::kReshape, {q}, {{"shape", std::vector<int64_t>{1024, 128}}});
  ASSERT_TRUE(view.status().ok()) << view.status();
  EXPECT_EQ(LaunchesOf(view.view()), 0);
}

}  // namespace
}  // namespace fused_attention_test_cc
}  // namespace orrery::cost_models
