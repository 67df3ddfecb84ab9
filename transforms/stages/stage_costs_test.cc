#include "transforms/stages/stage_costs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "transforms/sharding/model_step_test_util.h"
#include "transforms/stages/stage_cuts.h"

namespace orrery::transforms {
namespace stage_costs_test_cc {
namespace {

double Sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

struct Costs {
  explicit Costs(const ir::Function& step, UnitSize size = UnitSize::kLayers,
                 const StateShares& kept = {}) {
    const IdTable<ir::OpId, StepPhase> phase = FindPhases(step);
    const ForwardChain chain = FindChain(step, phase);
    units = FindUnits(step, chain, size);
    const absl::StatusOr<StagePlan> plan = PlaceUnits(step, phase, chain, false, units);
    EXPECT_TRUE(plan.ok()) << plan.status();
    of = CostsOf(step, chain, units, *plan, nullptr, kept);
  }

  std::vector<StageUnit> units;
  UnitCosts of;
};

constexpr char kGpt[] = "layers=4,hidden=16,heads=2,seq=8,vocab=64,tied_embeddings=0";

// Nothing is lost, nothing counts twice: flops, and bytes of parameters, gradients and moments.
TEST(UnitCosts, AddUpToTheStep) {
  const ir::Function step = ModelStep("gpt", kGpt, 4);
  double flops = 0, parameters = 0, states = 0;
  for (const ir::OpId op : step.order()) flops += FlopsOf(step, op);
  for (const ir::Input& input : step.inputs()) {
    const auto bytes = static_cast<double>(ir::SizeOf(step.type(input.value)).count());
    if (input.role == ir::InputRole::kParameter) parameters += bytes;
    if (input.role == ir::InputRole::kState) states += bytes;
  }
  for (const UnitSize size : {UnitSize::kLayers, UnitSize::kParts, UnitSize::kProducts}) {
    const UnitCosts costs = Costs(step, size).of;
    EXPECT_NEAR(Sum(costs.Seconds(1)), flops, 1e-6 * flops);
    EXPECT_EQ(Sum(costs.weight_bytes), parameters);
    EXPECT_EQ(Sum(costs.state_bytes), 2 * parameters + states);
    EXPECT_LT(Sum(costs.Seconds(4)), flops);
  }
}

// As ZeRO leaves of it: Adam has two moments.
TEST(UnitCosts, OfWhatIsKeptOfTheState) {
  const ir::Function step = ModelStep("gpt", kGpt, 4);
  const double parameters = Sum(Costs(step).of.weight_bytes);
  const UnitCosts kept =
      Costs(step, UnitSize::kLayers, {.weights = 0.5, .gradients = 0.25, .optimizer = 0.125}).of;
  EXPECT_EQ(Sum(kept.weight_bytes), 0.5 * parameters);
  EXPECT_EQ(Sum(kept.state_bytes), (0.5 + 0.25 + 2 * 0.125) * parameters);
}

// Layers are alike, backward takes twice as long as forward, and the residual stream crosses.
TEST(UnitCosts, OfLayers) {
  const Costs costs(ModelStep("gpt", kGpt, 4));
  ASSERT_EQ(costs.units.size(), 5);
  for (const size_t layer : {2U, 3U}) {
    EXPECT_EQ(costs.of.forward[layer], costs.of.forward[1]);
    EXPECT_EQ(costs.of.input_gradient[layer], costs.of.input_gradient[1]);
    EXPECT_EQ(costs.of.state_bytes[layer], costs.of.state_bytes[1]);
    EXPECT_EQ(costs.of.kept_bytes[layer], costs.of.kept_bytes[1]);
  }
  EXPECT_NEAR(costs.of.input_gradient[1] / costs.of.forward[1], 2, 0.2);
  EXPECT_THAT(costs.of.boundary_bytes, testing::ElementsAre(0, 4 * 8 * 16 * 4, 4 * 8 * 16 * 4,
                                                            4 * 8 * 16 * 4, 4 * 8 * 16 * 4));
}

// Of a parameter of two units each has a copy.
TEST(UnitCosts, OfTiedEmbeddings) {
  const Costs tied(
      ModelStep("gpt", "layers=4,hidden=16,heads=2,seq=8,vocab=64,tied_embeddings=1", 4));
  const Costs apart(ModelStep("gpt", kGpt, 4));
  EXPECT_EQ(tied.of.weight_bytes, apart.of.weight_bytes);
}

}  // namespace
}  // namespace stage_costs_test_cc
}  // namespace orrery::transforms
