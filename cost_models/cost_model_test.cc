#include "cost_models/cost_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cost_models/op_fixture_test_util.h"
#include "ir/op_kind.h"

namespace orrery::cost_models {
namespace cost_model_test_cc {
namespace {

using ir::DType;
using ir::OpKind;
using ::testing::ElementsAre;

TEST(CostModel, KnowsTheNamesOfTheList) {
  std::vector<std::string> names;
  for (const CostModelInfo* info : AllCostModels()) names.emplace_back(info->name);
  EXPECT_THAT(names, ElementsAre("roofline", "distir", "kernels"));
}

TEST(CostModel, EveryRecordIsCompleteAndMakesItsModel) {
  for (const CostModelInfo* info : AllCostModels()) {
    EXPECT_FALSE(info->summary.empty()) << info->name;
    EXPECT_FALSE(info->source.empty()) << info->name;
    const auto model = MakeCostModel(info->name);
    ASSERT_TRUE(model.ok()) << info->name;
    EXPECT_NE(*model, nullptr) << info->name;
  }
}

TEST(CostModel, AnUnknownNameIsToldTheNamesThatThereAre) {
  const auto model = MakeCostModel("rofline");
  EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(model.status().message(),
            "cost model 'rofline' is unknown; wanted one of roofline, distir, kernels, "
            "kernels:FILE or measured:FILE; did you mean roofline?");
}

TEST(CostModel, OnlyDistIrCopiesEverything) {
  EXPECT_TRUE((*MakeCostModel("distir"))->copies_everything());
  EXPECT_FALSE((*MakeCostModel("roofline"))->copies_everything());
}

TEST(FlopsOf, CountsAMultiplyAddAsTwo) {
  const OpFixture product(OpKind::kMatMul, {Tensor({3, 5}), Tensor({5, 7})});
  EXPECT_EQ(FlopsOf(product.view()).count(), 2 * 3 * 5 * 7);
  const OpFixture backward(OpKind::kMatMulGrad, {Tensor({3, 5}), Tensor({5, 7}), Tensor({3, 7})});
  EXPECT_EQ(FlopsOf(backward.view()).count(), 2 * 2 * 3 * 5 * 7);
}

TEST(FlopsOf, ReadsAttributes) {
  const OpFixture product(OpKind::kMatMul, {Tensor({5, 3}), Tensor({7, 5})},
                          {{"transpose_x", int64_t{1}}, {"transpose_w", int64_t{1}}});
  ASSERT_TRUE(product.status().ok()) << product.status();
  EXPECT_EQ(FlopsOf(product.view()).count(), 2 * 3 * 5 * 7);
}

TEST(FlopsOf, IsNoneForMovementAndForViews) {
  EXPECT_EQ(FlopsOf(OpFixture(OpKind::kTranspose, {Tensor({3, 5})}).view()).count(), 0);
  EXPECT_EQ(FlopsOf(OpFixture(OpKind::kIdentity, {Tensor({3, 5})}).view()).count(), 0);
}

TEST(FlopsOf, CountsAllParametersOfAnOptimizer) {
  const OpFixture sgd(OpKind::kSgd, {Tensor({10}), Tensor({20}), Tensor({10}), Tensor({20})},
                      {{"parameters", int64_t{2}}});
  EXPECT_EQ(FlopsOf(sgd.view()).count(), 2 * (10 + 20));
}

TEST(BytesMovedBy, ReadsOperandsAndWritesResultsOnce) {
  const OpFixture product(OpKind::kMatMul,
                          {Tensor({3, 5}, DType::kF16), Tensor({5, 7}, DType::kF16)});
  EXPECT_EQ(BytesMovedBy(product.view()), Bytes(2 * (15 + 35 + 21)));
  const OpFixture sgd(OpKind::kSgd, {Tensor({10}), Tensor({10})}, {{"parameters", int64_t{1}}});
  EXPECT_EQ(BytesMovedBy(sgd.view()), Bytes(4 * (10 + 10 + 10)));
}

TEST(BytesMovedBy, IsNoneForAView) {
  EXPECT_EQ(BytesMovedBy(OpFixture(OpKind::kIdentity, {Tensor({8, 8})}).view()), Bytes(0));
  EXPECT_EQ(BytesMovedBy(OpFixture(OpKind::kCollect, {Tensor({8, 8}), Tensor({4, 8})}).view()),
            Bytes(0));
}

}  // namespace
}  // namespace cost_model_test_cc
}  // namespace orrery::cost_models
