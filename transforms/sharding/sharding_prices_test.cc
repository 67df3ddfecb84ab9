#include "transforms/sharding/sharding_prices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "ir/models/mlp.h"
#include "ir/op_info.h"
#include "transforms/sharding/plain_prices_test_util.h"
#include "transforms/training/microbatch.h"
#include "transforms/training/training_step.h"

namespace orrery::transforms {
namespace sharding_prices_test_cc {
namespace {

// Looks at every question, and answers as PlainPrices does.
class Watched final : public ShardingPrices {
 public:
  explicit Watched(const ir::Mesh& mesh) : mesh_(mesh), plain_(mesh, {}) {}

  double OpSeconds(const LocalOp& op) const override {
    const ir::OpClass op_class = ir::GetOpInfo(op.kind).op_class;
    EXPECT_TRUE(op_class == ir::OpClass::kCompute || op_class == ir::OpClass::kOptimizer)
        << ir::GetOpInfo(op.kind).name;
    for (const auto& types : {op.operands, op.results}) {
      for (const ir::TensorType* type : types) {
        EXPECT_TRUE(type->sharding.replicated()) << "is of the part that a rank holds";
      }
    }
    EXPECT_FALSE(op.results.empty());
    ++ops;
    const double seconds = plain_.OpSeconds(op);
    sum += seconds;
    return seconds;
  }

  double StepSeconds(redistribution::MoveKind kind, const ir::AxisList& axes,
                     Bytes size) const override {
    EXPECT_TRUE(redistribution::Communicates(kind)) << redistribution::ToString(kind);
    EXPECT_FALSE(axes.empty());
    EXPECT_EQ(axes, axes.Sorted());
    EXPECT_GE(size, Bytes(0));
    for (const ir::AxisIndex axis : axes.axes()) EXPECT_LT(axis, mesh_.axes().size());
    ++steps;
    const double seconds = plain_.StepSeconds(kind, axes, size);
    sum += seconds;
    return seconds;
  }

  mutable int ops = 0, steps = 0;
  mutable double sum = 0;

 private:
  const ir::Mesh mesh_;
  const PlainPrices plain_;
};

ir::Function MlpStep() {
  ir::Function step = ir::Mlp({.layers = 4, .dim = 64, .batch = 32}).value();
  EXPECT_TRUE(AppendOptimizer(step, "adam").value());
  return step;
}

// What a step takes in a row is the sum of what is asked, each kernel and collective once.
TEST(ShardingPrices, AreAskedForEachOpOfAStepInARow) {
  const ir::Function step = MlpStep();
  const Watched prices((ir::Mesh()));
  const double seconds = SerialSeconds(step, prices);
  EXPECT_GT(seconds, 0);
  EXPECT_DOUBLE_EQ(seconds, prices.sum);
  EXPECT_EQ(prices.steps, 0);
  const auto kernels = std::ranges::count_if(
      step.order(), [&](ir::OpId op) { return step.info(op).op_class != ir::OpClass::kView; });
  EXPECT_LE(prices.ops, kernels);
  EXPECT_GT(prices.ops, 0);
}

TEST(ShardingPrices, AreAskedForWhatARankHolds) {
  const ir::Function step = MlpStep();
  for (const auto& [dp, hp] : std::vector<std::pair<int64_t, int64_t>>{{4, 1}, {1, 4}, {2, 2}}) {
    const ir::Mesh mesh({{"dp", dp}, {"hp", hp}});
    const Watched choosing(mesh);
    const auto sharded = AutoShard(step, mesh, BatchedInputs(step), choosing);
    ASSERT_TRUE(sharded.ok()) << sharded.status();
    EXPECT_EQ(choosing.ops > 0, hp > 1) << "dp leaves nothing to choose";
    const Watched adding(mesh);
    const double seconds = SerialSeconds(*sharded, adding);
    EXPECT_DOUBLE_EQ(seconds, adding.sum);
    EXPECT_GT(adding.steps, 0);  // gradients are reduced
  }
}

// The same question has the same answer: choices do not depend on how often it was asked.
TEST(ShardingPrices, ArePure) {
  const ir::Function step = MlpStep();
  const ir::Mesh mesh({{"dp", 2}, {"hp", 2}});
  const Watched prices(mesh);
  const auto once = AutoShard(step, mesh, BatchedInputs(step), prices);
  const auto again = AutoShard(step, mesh, BatchedInputs(step), prices);
  ASSERT_TRUE(once.ok() && again.ok());
  const Watched first(mesh), second(mesh);
  EXPECT_EQ(SerialSeconds(*once, first), SerialSeconds(*again, second));
}

}  // namespace
}  // namespace sharding_prices_test_cc
}  // namespace orrery::transforms
