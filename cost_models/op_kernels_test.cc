#include "cost_models/op_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "cost_models/op_fixture_test_util.h"
#include "ir/op_kind.h"

namespace orrery::cost_models {
namespace op_kernels_test_cc {
namespace {

using ir::DType;
using ir::OpKind;

const cluster::Device& Device() {
  static const cluster::Device& device = *new cluster::Device(*cluster::FindDevice("h100-80gb"));
  return device;
}

Duration SumOf(const OpKernels& kernels) {
  Duration sum(0);
  for (const OpKernel& kernel : kernels) sum += kernel.time;
  return sum;
}

std::vector<ProductLayout> LayoutsOf(const OpFixture& op) {
  std::vector<ProductLayout> layouts;
  for (const OpKernel& kernel : OpKernelsOf(op.view(), Device())) layouts.push_back(kernel.layout);
  return layouts;
}

ir::TensorType Half(std::initializer_list<int64_t> dims) { return Tensor(dims, DType::kBF16); }

TEST(OpKernels, AddUpToTheOp) {
  const auto kernels = MakeCostModel("kernels").value();
  const KernelChoice choice = {.extra = {.activation = 4, .rotary = 16}};
  const ir::AttributeSet flash = {
      {"flash", int64_t{1}}, {"causal", int64_t{1}}, {"heads", int64_t{8}}};
  const ir::TensorType heads = Half({2, 8, 512, 64});
  const OpFixture ops[] = {
      {OpKind::kMatMul, {Half({4, 512, 1024}), Half({1024, 2048})}},
      {OpKind::kMatMulGrad, {Half({512, 1024}), Half({1024, 2048}), Half({512, 2048})}},
      {OpKind::kMatMulWeightGrad, {Half({512, 1024}), Half({512, 2048})}},
      {OpKind::kLinear,
       {Half({512, 1024}), Half({1024, 2048}), Half({2048})},
       {{"activation", "gelu"}}},
      {OpKind::kAttention, {heads, heads, heads}, flash},
      {OpKind::kAttention, {heads, heads, heads}, {{"heads", int64_t{8}}}},
      {OpKind::kAdd, {Half({512, 1024}), Half({512, 1024})}},
      {OpKind::kSoftmax, {Half({512, 1024})}}};
  for (const OpFixture& op : ops) {
    ASSERT_TRUE(op.status().ok()) << op.status();
    OpView view = op.view();
    for (const KernelChoice* of : {static_cast<const KernelChoice*>(nullptr), &choice}) {
      view.choice = of;
      EXPECT_EQ(SumOf(OpKernelsOf(view, Device())), kernels->Compute(view, Device()))
          << ir::GetOpInfo(view.kind).name;
    }
  }
}

TEST(OpKernels, HaveTheirSizes) {
  const OpFixture product(OpKind::kMatMul, {Half({4, 512, 1024}), Half({1024, 2048})});
  const OpKernels kernels = OpKernelsOf(product.view(), Device());
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].form, KernelForm::kProduct);
  EXPECT_EQ(kernels[0].shape, (ir::ProductShape{.m = 2048, .n = 2048, .k = 1024}));
  EXPECT_EQ(kernels[0].flops, FlopsOf(product.view()));
  EXPECT_EQ(kernels[0].bytes, BytesMovedBy(product.view()));
  const ir::TensorType heads = Half({2, 8, 512, 64});
  const OpFixture attention(OpKind::kAttention, {heads, heads, heads},
                            {{"flash", int64_t{1}}, {"causal", int64_t{1}}, {"heads", int64_t{8}}});
  const OpKernels one = OpKernelsOf(attention.view(), Device());
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].form, KernelForm::kAttention);
  EXPECT_DOUBLE_EQ(one[0].flops.count(), FlopsOf(attention.view()).count() / 2);
  const OpFixture sum(OpKind::kAdd, {Half({512, 1024}), Half({512, 1024})});
  EXPECT_EQ(OpKernelsOf(sum.view(), Device())[0].bytes, Bytes(3 * 2 * 512 * 1024));
  const OpFixture view(OpKind::kReshape, {Half({512, 1024})},
                       {{"shape", std::vector<int64_t>{1024, 512}}});
  EXPECT_TRUE(OpKernelsOf(view.view(), Device()).empty());
}

// Of experts it is one kernel in the list, whatever software makes of it.
TEST(OpKernels, OfExpertsAreOneThing) {
  const auto model = MakeCostModel("kernels").value();
  const OpFixture experts(OpKind::kMatMul, {Half({8, 256, 1024}), Half({8, 1024, 512})});
  OpView view = experts.view();
  EXPECT_EQ(OpKernelsOf(view, Device())[0].form, KernelForm::kProduct);
  Duration last;
  for (const bool each : {false, true}) {
    const KernelChoice choice = {.experts = {.present = true, .kernel_each = each}};
    view.choice = &choice;
    const OpKernels kernels = OpKernelsOf(view, Device());
    ASSERT_EQ(kernels.size(), 1u);
    EXPECT_EQ(kernels[0].form, KernelForm::kGrouped);
    EXPECT_EQ(kernels[0].shape, (ir::ProductShape{.batch = 8, .m = 256, .n = 512, .k = 1024}));
    EXPECT_EQ(kernels[0].time, model->Compute(view, Device()));
    EXPECT_GT(kernels[0].time, last);
    last = kernels[0].time;
  }
}

// Products of a list of matrices are of experts where the model has a mixture; those of heads,
// which are two lists deep, and of one matrix never.
TEST(OpKernels, OfExpertsAreThoseOfAListOfMatrices) {
  const KernelChoice with = {.experts = {.present = true}}, without;
  const auto is = [](const OpFixture& op, const KernelChoice* choice) {
    OpView view = op.view();
    view.choice = choice;
    return IsOfExperts(view);
  };
  const auto product = [](std::initializer_list<int64_t> x, std::initializer_list<int64_t> w) {
    return OpFixture(ir::OpKind::kMatMul, {Tensor(x), Tensor(w)});
  };
  EXPECT_TRUE(is(product({8, 128, 64}, {8, 64, 32}), &with));
  EXPECT_FALSE(is(product({8, 128, 64}, {8, 64, 32}), &without));
  EXPECT_FALSE(is(product({8, 128, 64}, {8, 64, 32}), nullptr));
  EXPECT_FALSE(is(product({8, 128, 64}, {64, 32}), &with));
  EXPECT_FALSE(is(product({1, 128, 64}, {1, 64, 32}), &with));
  EXPECT_FALSE(is(product({2, 4, 128, 64}, {2, 4, 64, 128}), &with));
}

// By what software does, whose weights stand as [out, in].
TEST(OpKernels, HaveTheLayoutsOfTheirPhase) {
  using enum ProductLayout;
  using testing::ElementsAre;
  EXPECT_THAT(LayoutsOf({OpKind::kMatMul, {Half({512, 1024}), Half({1024, 2048})}}),
              ElementsAre(kTN));
  EXPECT_THAT(
      LayoutsOf({OpKind::kMatMulGrad, {Half({512, 1024}), Half({1024, 2048}), Half({512, 2048})}}),
      ElementsAre(kNN, kNT));
  EXPECT_THAT(LayoutsOf({OpKind::kMatMulWeightGrad, {Half({512, 1024}), Half({512, 2048})}}),
              ElementsAre(kNT));
  EXPECT_THAT(LayoutsOf({OpKind::kMatMul,
                         {Half({512, 2048}), Half({1024, 2048})},
                         {{"transpose_w", int64_t{1}}}}),
              ElementsAre(kNN));
}

}  // namespace
}  // namespace op_kernels_test_cc
}  // namespace orrery::cost_models
