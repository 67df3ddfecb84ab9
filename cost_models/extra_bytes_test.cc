#include <gtest/gtest.h>

#include <string>

#include "cost_models/cost_model.h"
#include "cost_models/kernels/kernel_choice.h"
#include "cost_models/op_fixture_test_util.h"
#include "ir/op_kind.h"

// What software moves besides what ops must.

namespace orrery::cost_models {
namespace extra_bytes_test_cc {
namespace {

using ir::DType;
using ir::OpKind;

constexpr KernelChoice kChoice = {.extra = {.gradient_sum = 12,
                                            .update = 32,
                                            .loss = 36,
                                            .loss_gradient = 10,
                                            .activation = 4,
                                            .sorting = 4,
                                            .norm = 32,
                                            .norm_gradient = 70,
                                            .rotary = 16,
                                            .gated = 4,
                                            .gated_gradient = 8}};

int64_t ExtraOf(const OpFixture& op) {
  EXPECT_TRUE(op.status().ok()) << op.status();
  OpView view = op.view();
  EXPECT_EQ(ExtraBytesOf(view), Bytes(0)) << "without software";
  view.choice = &kChoice;
  return ExtraBytesOf(view).count();
}

TEST(ExtraBytes, AreOfSumsOfGradients) {
  const ir::TensorType half = Tensor({64, 32}, DType::kBF16), wide = Tensor({64, 32});
  EXPECT_EQ(ExtraOf(OpFixture(OpKind::kAccumulate, {half, half})), 12 * 64 * 32);
  EXPECT_EQ(ExtraOf(OpFixture(OpKind::kAccumulate, {wide, wide})), 0);
  EXPECT_EQ(ExtraOf(OpFixture(OpKind::kAdd, {half, half})), 0);
}

TEST(ExtraBytes, AreOfLogits) {
  const ir::TensorType logits = Tensor({16, 1000}, DType::kF16), labels = Tensor({16}, DType::kI64);
  const ir::AttributeSet batch = {{"batch", int64_t{16}}};
  EXPECT_EQ(ExtraOf(OpFixture(OpKind::kCrossEntropy, {logits, labels}, batch)), 36 * 16000);
  EXPECT_EQ(ExtraOf(OpFixture(OpKind::kCrossEntropyGrad, {logits, labels}, batch)), 10 * 16000);
}

// Of rows that experts get and leave: three rows for each of two experts.
TEST(ExtraBytes, AreOfRowsOfExperts) {
  const ir::TensorType tokens = Tensor({1, 4, 8}, DType::kBF16),
                       slots = Tensor({2, 1, 3}, DType::kI64),
                       rows = Tensor({2, 1, 3, 8}, DType::kBF16);
  const ir::AttributeSet size = {{"size", int64_t{4}}};
  EXPECT_EQ(ExtraOf(OpFixture(OpKind::kDispatch, {tokens, slots})), 4 * 2 * 3 * 8);
  EXPECT_EQ(ExtraOf(OpFixture(OpKind::kCombine, {rows, slots}, size)), 4 * 2 * 3 * 8);
}

// Of what the activation is applied to, which is a result of its own.
TEST(ExtraBytes, AreOfActivations) {
  const ir::TensorType x = Tensor({64, 16}, DType::kBF16), w = Tensor({16, 128}, DType::kBF16);
  const ir::AttributeSet gelu = {{"activation", std::string("gelu")}};
  EXPECT_EQ(ExtraOf(OpFixture(OpKind::kLinear, {x, w}, gelu)), 4 * 64 * 128);
  EXPECT_EQ(ExtraOf(OpFixture(OpKind::kLinear, {x, w})), 0);
}

TEST(ExtraBytes, AreOfEagerKernels) {
  const ir::TensorType x = Tensor({64, 16}, DType::kBF16), g = Tensor({16}, DType::kBF16);
  EXPECT_EQ(ExtraOf(OpFixture(OpKind::kRmsNorm, {x, g})), 32 * 64 * 16);
  EXPECT_EQ(ExtraOf(OpFixture(OpKind::kSwiGlu, {x, x})), 4 * 64 * 16);
  EXPECT_EQ(ExtraOf(OpFixture(OpKind::kSwiGluGrad, {x, x, x})), 8 * 64 * 16);
}

// Of each parameter, whatever it has of state.
TEST(ExtraBytes, AreOfParameters) {
  const ir::TensorType a = Tensor({10}, DType::kBF16), b = Tensor({20}, DType::kBF16);
  const OpFixture op(OpKind::kSgd, {a, b, a, b}, {{"parameters", int64_t{2}}});
  EXPECT_EQ(ExtraOf(op), 32 * 30);
}

// Only kernels as they are take time for it: the roofline stays the ideal.
TEST(ExtraBytes, TakeTimeInKernels) {
  const ir::TensorType a = Tensor({1 << 28}, DType::kBF16);
  const OpFixture op(OpKind::kAccumulate, {a, a});
  OpView view = op.view();
  const cluster::Device device = *cluster::FindDevice("a100-80gb");
  const auto time = [&](absl::string_view name) {
    return (*MakeCostModel(name))->Compute(view, device).seconds();
  };
  const double kernels = time("kernels"), roofline = time("roofline");
  view.choice = &kChoice;
  EXPECT_NEAR(time("kernels") / kernels, (6.0 + 12) / 6, 0.1);
  EXPECT_EQ(time("roofline"), roofline);
}

}  // namespace
}  // namespace extra_bytes_test_cc
}  // namespace orrery::cost_models
