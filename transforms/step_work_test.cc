#include "transforms/step_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ir/models/mlp.h"
#include "ir/text/text.h"
#include "support/status.h"
#include "transforms/parallel.h"
#include "transforms/plan/mesh.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/sharding/model_step_test_util.h"
#include "transforms/sharding/plain_prices_test_util.h"
#include "transforms/sharding/sharding_memo.h"
#include "transforms/slices/slices.h"

namespace orrery::transforms {
namespace step_work_test_cc {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

ir::Function MlpStep(ir::DType dtype = ir::DType::kF32) {
  ir::Function step = ir::Mlp({.layers = 4, .dim = 32, .batch = 12, .dtype = dtype}).value();
  EXPECT_TRUE(AppendOptimizer(step, "sgd").ok());
  return step;
}

// The stages of work that an observer sees, and what comes of them: "" or why not.
struct Seen {
  std::vector<std::string> names;
  std::string error;
};

Seen Watch(const ir::Function& step, const ParallelPlan& plan, const PlanContext& context = {}) {
  Seen seen;
  const auto pipelined = ParallelTransform3d(step, ByFlops(plan), context,
                                             [&](const StepStage& stage, const StepWork& /*work*/) {
                                               seen.names.emplace_back(stage.name);
                                             });
  const auto infeasible = AsInfeasible(pipelined.status());
  seen.error =
      infeasible.has_value() ? infeasible->detail : std::string(pipelined.status().message());
  return seen;
}

TEST(StepStages, SayWhatTheyDo) {
  std::set<absl::string_view> names;
  for (const StepStage* stage : AllStepStages()) {
    EXPECT_TRUE(names.insert(stage->name).second) << stage->name;
    EXPECT_FALSE(stage->summary.empty()) << stage->name;
    EXPECT_FALSE(absl::EndsWith(stage->summary, ".")) << stage->name;
    EXPECT_NE(stage->run, nullptr) << stage->name;
  }
}

TEST(StepStages, AreTheseInThisOrder) {
  std::vector<std::string> names;
  for (const StepStage* stage : AllStepStages()) names.emplace_back(stage->name);
  EXPECT_THAT(names, ElementsAre("slice", "microbatch", "negatives", "pad", "shard", "fp8",
                                 "zero-groups", "cut", "recompute", "offload-activations", "zero",
                                 "average", "orthogonalize", "offload-optimizer", "unfold-slices"));
}

// Else plans share nothing from there on.
TEST(StepStages, SayWhatTheyReadButForSlices) {
  for (const StepStage* stage : AllStepStages()) {
    const bool slices = absl::StrContains(stage->name, "slice");
    EXPECT_EQ(stage->reads == nullptr, slices) << stage->name;
    EXPECT_EQ(stage->ways_read == nullptr, stage->ways == nullptr) << stage->name;
  }
}

TEST(Places, OfAStageKnowNothingOfOtherStages) {
  const ir::Mesh mesh({{"pp", 2}, {"dp", 4}, {"hp", 8}});
  EXPECT_EQ(Places(mesh), "pp=2*32 dp=4*8 hp=8*1");
  EXPECT_EQ(PlacesInStage(mesh), "pp dp=4*8 hp=8*1");
  EXPECT_EQ(PlacesInStage(ir::Mesh({{"pp", 16}, {"dp", 4}, {"hp", 8}})), PlacesInStage(mesh));
  EXPECT_NE(PlacesInStage(ir::Mesh({{"dp", 4}, {"hp", 8}, {"pp", 2}})), PlacesInStage(mesh));
}

TEST(KeyOf, TellsTextsApart) {
  EXPECT_EQ(KeyOf("a/b"), "3:a/b");
  EXPECT_NE(absl::StrCat(KeyOf("a"), KeyOf("bc")), absl::StrCat(KeyOf("ab"), KeyOf("c")));
}

TEST(NumberOfAll, SeesNamesAndRolesAndNoStages) {
  ir::Function step = MlpStep();
  const uint64_t number = NumberOfAll(step);
  EXPECT_EQ(NumberOfAll(MlpStep()), number);
  ir::Function renamed = step;
  renamed.SetName(step.inputs().front().value, "other");
  EXPECT_NE(NumberOfAll(renamed), number);
  ir::Function role = step;
  role.SetInputRole(step.inputs().front().value, ir::InputRole::kBuffer);
  EXPECT_NE(NumberOfAll(role), number);
  ir::Function two = step, four = step, wide = step;
  two.SetMesh(ir::Mesh({{"pp", 2}, {"hp", 2}}));
  four.SetMesh(ir::Mesh({{"pp", 4}, {"hp", 2}}));
  wide.SetMesh(ir::Mesh({{"pp", 2}, {"hp", 4}}));
  EXPECT_EQ(NumberOfAll(two), NumberOfAll(four));
  EXPECT_NE(NumberOfAll(two), NumberOfAll(wide));
}

TEST(StepStages, AreSeenWhereTheyApply) {
  const ir::Function step = MlpStep();
  EXPECT_THAT(Watch(step, {}).names, ElementsAre("microbatch", "cut"));
  EXPECT_THAT(Watch(step, {.pp = 2, .microbatches = 2}).names, ElementsAre("microbatch", "cut"));
  EXPECT_THAT(Watch(step, {.dp = 2}).names, ElementsAre("microbatch", "shard", "cut"));
  EXPECT_THAT(Watch(step, {.hp = 2, .uneven = UnevenShards::kPad}).names,
              ElementsAre("microbatch", "pad", "shard", "cut"));
  // A group is of ZeRO's stages, and all of dp is none.
  EXPECT_THAT(Watch(step, {.dp = 4, .zero_group = 2}).names,
              ElementsAre("microbatch", "shard", "cut"));
  EXPECT_THAT(Watch(step, {.dp = 4, .zero = 1, .zero_group = 4}).names,
              ElementsAre("microbatch", "shard", "cut", "zero"));
  EXPECT_THAT(Watch(step, {.dp = 4, .zero = 1, .zero_group = 2}).names,
              ElementsAre("microbatch", "shard", "zero-groups", "cut", "zero"));
  EXPECT_THAT(Watch(MlpStep(ir::DType::kBF16), {.dtype = StepDType::kF8Mixed}).names,
              ElementsAre("microbatch", "fp8", "cut"));
  EXPECT_THAT(Watch(step, {.recompute = ParseRecomputePolicy("full").value()}).names,
              ElementsAre("microbatch", "cut", "recompute"));
  EXPECT_THAT(Watch(step, {.offload = {.activations = true}}).names,
              ElementsAre("microbatch", "cut", "offload-activations"));
  EXPECT_THAT(Watch(step, {.offload = {.optimizer = true}}).names,
              ElementsAre("microbatch", "cut", "offload-optimizer"));
}

TEST(StepStages, OfSlicesAreOthers) {
  const ir::Function step =
      ModelStep("gpt", "layers=2,hidden=8,heads=2,seq=8,vocab=8,tied_embeddings=0", 2);
  const PlanContext context = {.slices = EqualSlices(step, 4).value()};
  const Seen seen = Watch(step, {.pp = 2, .microbatches = 4}, context);
  EXPECT_EQ(seen.error, "");
  EXPECT_THAT(seen.names, ElementsAre("slice", "cut", "unfold-slices"));
}

// The first of three stages would wait for a sum of the last, which waits for the first.
TEST(StepStages, UpdateAParameterOfTwoStagesByThemselves) {
  const ir::Function step = ir::ParseFunction(R"(func @tied (
  %x: f32[8,4] data,
  %z: f32[8,4] data,
  %w: f32[4,4] parameter
) {
  %y0: f32[8,4] = MatMul(%x, %w)
  %y1: f32[8,4] = MatMul(%y0, %w)
  %y2: f32[8,4] = MatMul(%y1, %w)
  %l: f32[8,4] = Loss(%y2, %z) {batch=8}
  return %y2: result, %l: loss
})")
                                .value();
  ir::Function trained = step;
  ASSERT_TRUE(MakeTrainingStep(trained, {.optimizer = "sgd"}).ok());
  const PlanContext alone = {.updates_each_microbatch = true};
  EXPECT_EQ(Watch(trained, {.pp = 2, .microbatches = 2}, alone).error, "");
  EXPECT_EQ(Watch(trained, {.pp = 3, .microbatches = 2}).error, "");
  EXPECT_TRUE(absl::StrContains(Watch(trained, {.pp = 3, .microbatches = 2}, alone).error,
                                "parameter %w is of stages 0, 1, 2"));
}

// A pin alone is a reason to shard: it says whether it can be kept.
TEST(StepStages, ShardWhatIsPinned) {
  const ir::Function step = MlpStep();
  const ParallelPlan plan = {.pins = {{"w0", ShardingPin::kWhole}}};
  const PlainPrices prices(MakeMesh(plan).value(), {});
  const Seen seen = Watch(step, plan, {.prices = &prices});
  EXPECT_TRUE(absl::StrContains(seen.error, "values are pinned to hp")) << seen.error;
  EXPECT_THAT(seen.names, IsEmpty());
  const ParallelPlan nothing = {.hp = 2, .pins = {{"nothing", ShardingPin::kWhole}}};
  const PlainPrices of_two(MakeMesh(nothing).value(), {});
  const Seen missed = Watch(step, nothing, {.prices = &of_two});
  EXPECT_TRUE(absl::StrContains(missed.error, "matches the name of no value")) << missed.error;
  EXPECT_THAT(missed.names, ElementsAre("microbatch"));
}

// The check of any stage comes before the work of all, also of those that have nothing to do.
TEST(StepStages, AreCheckedBeforeAnyRuns) {
  const ir::Function step = MlpStep();
  const Seen unknown = Watch(step, {.dp = 4, .zero = 5});
  EXPECT_EQ(unknown.error, "ZeRO's stage is 5; wanted 0, 1, 2 or 3");
  EXPECT_THAT(unknown.names, IsEmpty());
  const Seen groups = Watch(step, {.dp = 6, .microbatches = 2, .zero = 1, .zero_group = 4});
  EXPECT_EQ(groups.error, "dp=6 does not divide into groups of 4 ranks that share parameters");
  EXPECT_THAT(groups.names, IsEmpty());
  const Seen pattern = Watch(step, {.cp = 2, .microbatches = 2});
  EXPECT_TRUE(absl::StrContains(pattern.error, "by column and row products alone"))
      << pattern.error;
  EXPECT_THAT(pattern.names, IsEmpty());
  const Seen host = Watch(step, {.microbatches = 2, .offload = {.optimizer = true}},
                          {.updates_each_microbatch = true});
  EXPECT_TRUE(absl::StrContains(host.error, "the optimizer on the host")) << host.error;
  EXPECT_THAT(host.names, IsEmpty());
  const Seen devices = Watch(step, {.dp = 2}, {.devices = {0, 1, 2}});
  EXPECT_EQ(devices.error, "got 3 devices for 2 ranks; wanted one each");
  EXPECT_THAT(devices.names, IsEmpty());
}

// Among them what does not divide: the batch of 12 samples, and the layers.
TEST(StepStages, AreCheckedForWhatDoesNotDivide) {
  const ir::Function step = MlpStep();
  const auto refuses = [&](const ParallelPlan& plan, absl::string_view why) {
    const Seen seen = Watch(step, plan);
    EXPECT_EQ(seen.error, why);
    EXPECT_THAT(seen.names, IsEmpty()) << why;
  };
  refuses({.microbatches = 5}, "a batch of 12 does not divide into 5 microbatches");
  refuses({.dp = 5}, "dp=5: dimension 0 of %x (12) does not divide");
  refuses({.dp = 4, .microbatches = 2}, "dp=4: dimension 0 of %x (6) does not divide");
  refuses({.pp = 2, .layers_per_stage = {1, 1, 2}},
          "`layers-per-stage` 1,1,2 is for 3 stages; wanted 2");
  refuses({.pp = 2, .layers_per_stage = {4, 0}},
          "`layers-per-stage` 4,0; wanted at least 1 layer in each stage");
  refuses({.dp = 2, .pp = 2, .microbatches = 3, .layers_per_stage = {3, 2}},
          "`layers-per-stage` 3,2 adds up to 5 layers; the model has 4");
  refuses({.dp = 2, .pp = 2, .microbatches = 3, .split_at = "^nothing$"},
          "`split-at` '^nothing$' matches at 0 positions; wanted 1 for 2 stages");
  refuses({.dp = 2, .pp = 2, .microbatches = 3, .split_at = "("},
          "`split-at` '(': missing ): ((); wanted a regular expression");
  const std::string ops = absl::StrCat(step.order().size());
  refuses({.pp = 1000, .microbatches = 2},
          ops + " ops do not cut into 1000 stages; try fewer of `chunks` or `pp`");
}

// Slices are as many as microbatches, and of the whole batch.
TEST(StepStages, AreCheckedForSlices) {
  const ir::Function step =
      ModelStep("gpt", "layers=2,hidden=8,heads=2,seq=8,vocab=8,tied_embeddings=0", 2);
  const PlanContext context = {.slices = EqualSlices(step, 4).value()};
  const Seen uneven = Watch(step, {.dp = 4, .microbatches = 4}, context);
  EXPECT_TRUE(absl::StrContains(uneven.error, "dp=4: dimension 0 of ")) << uneven.error;
  EXPECT_TRUE(absl::StrContains(uneven.error, " (2) does not divide")) << uneven.error;
  EXPECT_THAT(uneven.names, IsEmpty());
  EXPECT_EQ(Watch(step, {.dp = 2, .microbatches = 4}, context).error, "");
  // 2^22 ops are the most; each slice has those of the step.
  const auto many = static_cast<int64_t>((1 << 22) / step.order().size() + 1);
  PlanContext fine = {.slices = std::vector<SliceRange>(static_cast<size_t>(many)),
                      .decided_on = {.begin = 0, .rows = 1}};
  const Seen seen = Watch(step, {.microbatches = many}, fine);
  EXPECT_TRUE(absl::StrContains(seen.error, " slices of ")) << seen.error;
  EXPECT_THAT(seen.names, IsEmpty());
}

// What the whole step says of places that a user names is so of the function that is cut.
TEST(StepStages, FindPlacesInTheWholeStep) {
  const ir::Function step =
      ModelStep("gpt", "layers=4,hidden=16,heads=4,seq=8,vocab=16,tied_embeddings=0", 8);
  for (const int64_t dp : {1, 2}) {
    for (const int64_t hp : {1, 2}) {
      const ParallelPlan base = {.dp = dp, .hp = hp, .pp = 2, .microbatches = 2};
      ParallelPlan layers = base, names = base;
      layers.layers_per_stage = {1, 3};
      names.split_at = "^h\\.2\\.ln_1$";
      for (const ParallelPlan& plan : {layers, names}) {
        const PlainPrices prices(MakeMesh(plan).value(), {});
        EXPECT_EQ(Watch(step, plan).error, "") << dp << hp;
        EXPECT_EQ(Watch(step, plan, {.prices = &prices}).error, "") << dp << hp;
      }
    }
  }
}

// Of several checks that fail, the first in the list is told; choices that do not go together
// before what does not divide.
TEST(StepStages, AreCheckedInTheirOrder) {
  const ir::Function step = MlpStep();
  const Seen seen =
      Watch(step, {.zero = 1, .offload = {.optimizer = true}}, {.updates_each_microbatch = true});
  EXPECT_TRUE(absl::StrContains(seen.error, "ZeRO's stage 1")) << seen.error;
  const Seen choices = Watch(step, {.dp = 6, .microbatches = 5, .zero = 1, .zero_group = 4});
  EXPECT_TRUE(absl::StrContains(choices.error, "groups of 4 ranks")) << choices.error;
  const Seen batch = Watch(step, {.dp = 5, .microbatches = 5});
  EXPECT_TRUE(absl::StrContains(batch.error, "5 microbatches")) << batch.error;
}

// What an observer is shown: one function until the step is cut, those of its stages afterwards.
TEST(StepWork, ShowsTheFunctionsAsTheyAre) {
  const ir::Function step = MlpStep();
  std::vector<std::string> shown;
  const auto pipelined = ParallelTransform3d(
      step, ByFlops({.dp = 2, .pp = 2, .microbatches = 3}), {},
      [&](const StepStage& stage, const StepWork& work) {
        const std::vector<ir::Function> functions = work.Functions();
        EXPECT_EQ(work.step.has_value(), functions.size() > 1) << stage.name;
        EXPECT_EQ(&work.whole, &step);
        if (stage.name == "microbatch") {
          EXPECT_EQ(functions[0].type(functions[0].inputs()[0].value).dims[0], 4);
          EXPECT_TRUE(functions[0].mesh().empty());
        }
        if (stage.name == "shard") {
          EXPECT_EQ(functions[0].mesh(), work.mesh);
        }
        if (stage.name == "cut") {
          EXPECT_EQ(work.step->stages.size(), 2u);
        }
      });
  ASSERT_TRUE(pipelined.ok()) << pipelined.status();
}

// Without microbatches and ranks to shard over, nothing is copied.
TEST(StepWork, IsTheStepItselfWhereNothingChanges) {
  const ir::Function step = MlpStep();
  const auto pipelined =
      ParallelTransform3d(step, {}, {}, [&](const StepStage& stage, const StepWork& work) {
        if (stage.name != "microbatch") return;
        EXPECT_EQ(&work.part(), &step);
        EXPECT_EQ(&work.last(), &step);
      });
  EXPECT_TRUE(pipelined.ok()) << pipelined.status();
}

TEST(DecidedOn, IsASliceInTheMiddleUnlessSaid) {
  const ir::Function step =
      ModelStep("gpt", "layers=1,hidden=8,heads=2,seq=8,vocab=8,tied_embeddings=0", 2);
  const auto decided = [&](const PlanContext& context) { return DecidedOn(step, context); };
  const SliceRange middle = decided({.slices = {{0, 5}, {5, 2}, {7, 1}, {8, 0}}});
  EXPECT_EQ(middle.begin, 4);
  EXPECT_EQ(middle.rows, 2);
  const SliceRange said = decided({.slices = {{0, 8}}, .decided_on = {.begin = 3, .rows = 1}});
  EXPECT_EQ(said.begin, 3);
  EXPECT_EQ(said.rows, 1);
}

// Where answers are remembered the pattern's stream is asked for whole and in parts, and the
// cheaper one is taken, as AutoShard does by itself.
TEST(StepStages, TakeTheCheaperStreamOfThePattern) {
  const ir::Function step = ModelStep("gpt", "layers=2,hidden=64,heads=8,seq=64,vocab=64", 8);
  const ir::Mesh mesh = MakeMesh({.hp = 4}).value();
  for (const double latency : {1e-9, 1e-3}) {
    SCOPED_TRACE(latency);
    const PlainPrices prices(mesh, {.latency = latency});
    ShardingMemo memo;
    const auto chosen = [&](ShardingMemo* with, SequenceParallel sequence) {
      AutoShardReport report;
      const auto wants = [&](const AutoShardReport& of) {
        report = of;
        return false;
      };
      const ParallelPlan plan = {.hp = 4, .sequence_parallel = sequence};
      const auto ways = ParallelTransformWays(
          step, plan,
          {.prices = &prices, .by_pattern = true, .alternative = {.wants = wants, .memo = with}});
      EXPECT_TRUE(absl::IsCancelled(ways.status())) << ways.status();
      return report;
    };
    const AutoShardReport alone = chosen(nullptr, SequenceParallel::kAuto);
    const AutoShardReport either = chosen(&memo, SequenceParallel::kAuto);
    const int64_t solved = memo.solved();
    const AutoShardReport whole = chosen(&memo, SequenceParallel::kOff);
    const AutoShardReport in_parts = chosen(&memo, SequenceParallel::kOn);
    EXPECT_EQ(either.choice, alone.choice);
    EXPECT_EQ(either.seconds, alone.seconds);
    EXPECT_EQ(either.seconds, std::min(whole.seconds, in_parts.seconds));
    EXPECT_NE(whole.choice, in_parts.choice) << "the test shows nothing";
    EXPECT_EQ(memo.solved(), solved) << "solved again";
  }
}

}  // namespace
}  // namespace step_work_test_cc
}  // namespace orrery::transforms
