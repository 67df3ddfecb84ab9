#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ir/builder.h"
#include "ir/models/model_test_util.h"
#include "ir/op_kind.h"
#include "ir/verifier.h"
#include "search/spaces/choice_list.h"
#include "search/spaces/group_placements.h"
#include "search/spaces/joined_choices.h"
#include "search/spaces/weight_strategies.h"
#include "support/sanitized_test_util.h"
#include "support/status.h"
#include "tests/semantics/compare.h"
#include "tests/semantics/random_step.h"
#include "tests/semantics/shard.h"
#include "transforms/parallel.h"
#include "transforms/plan/mesh.h"
#include "transforms/plan/plan_text.h"
#include "transforms/sharding/plain_prices_test_util.h"
#include "transforms/stages/join_stages.h"
#include "transforms/stages/placed_orders.h"
#include "transforms/training/training_step.h"

// Whichever devices run which ops, a step computes what one device does.

namespace orrery::semantics {
namespace placement_test_cc {
namespace {

using ir::OpKind;
using ir::ValueId;
using transforms::ParallelPlan;
using transforms::PipelinedStep;

// The step as search::UnequalSteps makes it: a whole one for each set, of which it takes the stages
// that the set runs.
absl::StatusOr<PipelinedStep> Place(const ir::Function& step, const ParallelPlan& plan) {
  std::vector<PipelinedStep> steps;
  transforms::UnequalStages unequal{.placed = true};
  for (const transforms::DeviceSet& set : plan.placement.sets) {
    ParallelPlan of_set = plan;
    of_set.dp = set.dp;
    of_set.hp = set.hp;
    of_set.pp = std::ssize(plan.placement.sets);
    ORRERY_ASSIGN_OR_RETURN(const ir::Mesh whole, transforms::MakeMesh(of_set));
    const transforms::PlainPrices prices(whole, {});
    ORRERY_ASSIGN_OR_RETURN(steps.emplace_back(),
                            transforms::ParallelTransform3d(step, of_set, {.prices = &prices}));
    of_set.pp = 1;
    ORRERY_ASSIGN_OR_RETURN(const ir::Mesh mesh, transforms::MakeMesh(of_set));
    unequal.places.push_back({.mesh = mesh, .devices = set.devices});
  }
  std::vector<const PipelinedStep*> pointers;
  for (const PipelinedStep& one : steps) pointers.push_back(&one);
  return transforms::JoinStages(pointers, std::move(unequal));
}

// How many stages it has; 0 where it is not feasible.
size_t ExpectSamePlaced(const ir::Function& step, ParallelPlan plan) {
  plan.pp = std::ssize(plan.placement.sets);
  SCOPED_TRACE(ToString(plan));
  const absl::StatusOr<PipelinedStep> placed = Place(step, plan);
  if (AsInfeasible(placed.status()).has_value()) return 0;
  EXPECT_TRUE(placed.ok()) << placed.status();
  if (!placed.ok()) return 0;
  for (const ir::Function& function : placed->Functions()) {
    EXPECT_TRUE(ir::Verify(function).ok()) << ir::Verify(function);
  }
  const Named inputs = RandomInputs(step, 7);
  const transforms::RankOrders orders = transforms::PlacedOrders(
      transforms::PlacedStagesOf(*placed), static_cast<int32_t>(placed->microbatches),
      plan.schedule.name() == "gpipe");
  const PipelinedOutcome outcome = RunPipelined(*placed, orders, inputs);
  ExpectSame(outcome.outputs, RunAll(step, inputs).outputs);
  EXPECT_LE(outcome.disagreement, kTolerance);
  EXPECT_EQ(outcome.lost, 0);
  return placed->stages.size();
}

// A graph of ops on values of one shape, each of which may read any before it.
class RandomGraph {
 public:
  explicit RandomGraph(uint32_t seed) : random_(seed), builder_("graph") {}

  ir::Function Make(int ops) {
    values_.push_back(builder_.Data("x", Type({8, 4})));
    for (int i = 0; i < ops; ++i) Add(absl::StrCat("v", i, "_"));
    // Whatever nobody reads is in the sum.
    ValueId sum = values_[1];
    for (size_t i = 2; i < values_.size(); ++i) {
      sum = builder_.Op(OpKind::kAdd, {sum, values_[i]}, absl::StrCat("sum", i));
    }
    builder_.Return(sum);
    ir::Function function = std::move(builder_).Finalize().value();
    const absl::Status status =
        transforms::MakeTrainingStep(function, {.optimizer = "momentum", .loss = {.kind = "mse"}});
    EXPECT_TRUE(status.ok()) << status;
    return function;
  }

  // Each op of the step, of those that simplification has left, on one of the sets.
  std::string Placement(const ir::Function& step, const std::vector<std::string>& sets) {
    std::string text;
    for (const ir::OpId op : step.order()) {
      const std::string name(step.value_name(step.result(op)));
      if (!absl::StartsWith(name, "v") || absl::StrContains(name, "weight")) continue;
      absl::StrAppend(&text, "^", name, "$=", sets[random_() % sets.size()], ";");
    }
    return absl::StrCat(text, "*=", sets[random_() % sets.size()]);
  }

 private:
  static ir::TensorType Type(ir::Dims dims) { return {ir::DType::kF32, std::move(dims), {}}; }
  ValueId Any() { return values_[random_() % values_.size()]; }

  void Add(const std::string& name) {
    const ValueId a = Any(), b = Any();
    switch (values_.size() == 1 ? 4 : random_() % 5) {
      case 0:
        values_.push_back(builder_.Op(OpKind::kRelu, {a}, name));
        break;
      case 1:
        values_.push_back(builder_.Op(OpKind::kMul, {a, b}, name));
        break;
      case 2:
        values_.push_back(builder_.Op(OpKind::kAdd, {a, b}, name));
        break;
      default: {
        const ValueId w = builder_.Parameter(name + "weight", Type({4, 4}));
        values_.push_back(builder_.Op(OpKind::kMatMul, {a, w}, name));
      }
    }
  }

  std::mt19937 random_;
  ir::Builder builder_;
  std::vector<ValueId> values_;
};

TEST(Placement, OfAnyOpsOfAGraphChangesNothing) {
  size_t feasible = 0, stages = 0;
  constexpr uint32_t kGraphs = 60;
  for (uint32_t seed = 0; seed < kGraphs; ++seed) {
    SCOPED_TRACE(seed);
    const int ops = 3 + static_cast<int>(seed % 9);
    RandomGraph graph(seed);
    const ir::Function step = graph.Make(ops);
    const std::string placement = graph.Placement(step, {"0", "1", "2"});
    const size_t count =
        ExpectSamePlaced(step, {.microbatches = 1 << (seed % 3),
                                .schedule = seed % 2 == 0 ? "1f1b" : "gpipe",
                                .placement = transforms::ParsePlacement(placement).value()});
    feasible += count > 0 ? 1 : 0;
    stages += count;
  }
  EXPECT_EQ(feasible, kGraphs);
  EXPECT_GE(stages, 4 * kGraphs);
}

TEST(Placement, OnSetsOfSeveralDevicesChangesNothing) {
  size_t feasible = 0;
  constexpr uint32_t kGraphs = 40;
  const std::vector<std::vector<std::string>> sets = {
      {"0-1", "2-3"}, {"2x1@0", "1x2@2"}, {"0-3", "4"}, {"2x2@0", "4-5", "6"}};
  for (uint32_t seed = 0; seed < kGraphs; ++seed) {
    SCOPED_TRACE(seed);
    const int ops = 3 + static_cast<int>(seed % 7);
    RandomGraph graph(1000 + seed);
    const ir::Function step = graph.Make(ops);
    const std::string placement = graph.Placement(step, sets[seed % sets.size()]);
    const auto parsed = transforms::ParsePlacement(placement).value();
    const size_t stages =
        ExpectSamePlaced(step, {.microbatches = 1 + (seed % 2), .placement = parsed});
    feasible += stages > 0 ? 1 : 0;
    if (parsed.most_hp() == 1) {
      EXPECT_GT(stages, 0u) << "hp 1 on both is what the error advises";
    }
  }
  // Where two meshes shard a graph so that other values cross, it is refused.
  EXPECT_GE(feasible, kGraphs / 2);
}

// Stages that are a chain, and branches that go apart and meet: layers, heads and residuals of
// models.
TEST(Placement, OfModelsChangesNothing) {
  struct Case {
    const char *family, *keys, *placement;
    int64_t microbatches;
  };
  constexpr Case kCases[] = {
      {"gpt", "layers=2,hidden=8,heads=2,seq=4,vocab=8,tied_embeddings=0",
       "h\\.0\\.=0;h\\.1\\.=1;*=0", 2},
      {"gpt", "layers=2,hidden=8,heads=2,seq=4,vocab=8", "attn=0;mlp=1;*=0", 2},
      {"gpt", "layers=2,hidden=8,heads=2,seq=4,vocab=8", "attn=0;mlp=1-2;*=0", 2},
      {"bert", "layers=2,hidden=8,heads=2,seq=4,vocab=8,classes=4", "\\.0\\.=1;\\.1\\.=0;*=2", 2},
      {"mlp", "layers=4,dim=6", "0=0;1=1;2=0;*=1", 2},
      {"resnet", "depth=18,image=32,width=2,classes=4", "downsample=1;*=0", 1},
  };
  for (const Case& one : kCases) {
    SCOPED_TRACE(absl::StrCat(one.family, ":", one.keys));
    ir::Function step = ir::BuildModel(one.family, one.keys, 4);
    ASSERT_TRUE(transforms::MakeTrainingStep(step, {.optimizer = "adam"}).ok());
    EXPECT_GE(
        ExpectSamePlaced(step, {.microbatches = one.microbatches,
                                .placement = transforms::ParsePlacement(one.placement).value()}),
        3u);
  }
}

TEST(Placement, GoesWithRecomputationAndZero) {
  RandomGraph graph(3);
  const ir::Function step = graph.Make(8);
  for (const char* more : {"--recompute full", "--zero 1", "--zero 3", "--offload optimizer"}) {
    SCOPED_TRACE(more);
    ParallelPlan plan = transforms::ParsePlan(more).value();
    plan.microbatches = 2;
    plan.placement = transforms::ParsePlacement("v[0-3]=0-1;*=2-3").value();
    EXPECT_GE(ExpectSamePlaced(step, plan), 2u);
  }
}

// What `plan --place-groups`, by itself or beside `--strategies`, has to choose from.
TEST(Placement, OfGroupsThatArePlacedBySearchChangesNothing) {
  struct Case {
    const char *family, *keys;
  };
  constexpr Case kCases[] = {
      {"gpt", "layers=2,hidden=8,heads=2,seq=4,vocab=8,tied_embeddings=0"},
      {"mlp", "layers=4,dim=8"},
      {"resnet", "depth=18,image=32,width=2,classes=4"},
  };
  size_t feasible = 0, placed = 0, pinned = 0;
  for (const Case& one : kCases) {
    SCOPED_TRACE(absl::StrCat(one.family, ":", one.keys));
    ir::Function step = ir::BuildModel(one.family, one.keys, 4);
    ASSERT_TRUE(transforms::MakeTrainingStep(step, {.optimizer = "adam"}).ok());
    search::PlanList plans;
    plans.Insert({.hp = 1, .pp = 2, .microbatches = 2});
    plans.Insert({.hp = 2, .pp = 3, .microbatches = 1, .schedule = "gpipe"});
    std::vector<std::unique_ptr<const search::PlanChoices>> kinds;
    kinds.push_back(std::make_unique<search::WeightStrategies>(
        search::WeightKinds(step, search::StrategyGrain::kKinds)));
    kinds.push_back(std::make_unique<search::GroupPlacements>(search::GroupsByName(step, 4).value(),
                                                              /*most_sets=*/3));
    const search::ChoiceList list(plans, std::make_unique<search::JoinedChoices>(std::move(kinds)));
    std::mt19937 random(5);
    for (int i = 0; i < CasesToWalk(24); ++i) {
      const ParallelPlan plan = list[random() % list.size()];
      if (plan.placement.empty()) continue;
      ++placed;
      if (ExpectSamePlaced(step, plan) == 0) continue;
      ++feasible;
      pinned += plan.pins.empty() ? 0 : 1;
    }
  }
  EXPECT_GT(2 * feasible, placed);
  EXPECT_GT(pinned, 0u);
}

}  // namespace
}  // namespace placement_test_cc
}  // namespace orrery::semantics
