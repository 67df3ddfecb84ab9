#include "transforms/stages/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "ir/text/text.h"
#include "transforms/schedules/orders.h"
#include "transforms/stages/mirrored_stage.h"
#include "transforms/stages/place_chain.h"
#include "transforms/stages/placed_orders.h"
#include "transforms/stages/stage_plan.h"

// Which ops are of which stage where stages are a graph, and in which order sets run them.

namespace orrery::transforms {
namespace placement_test_cc {
namespace {

using ::testing::ElementsAre;

std::string Trouble(absl::string_view text) {
  const absl::StatusOr<Placement> placement = ParsePlacement(text);
  return placement.ok() ? ToString(*placement) : std::string(placement.status().message());
}

TEST(Placement, ReadsAndPrints) {
  const Placement placement = ParsePlacement("text\\.=0-3;x=y=2x2@4;*=0-3").value();
  EXPECT_EQ(ToString(placement), "text\\.=0-3;x=y=2x2@4;*=0-3");
  EXPECT_EQ(placement.ranks(), 8);
  EXPECT_EQ(placement.most_dp(), 4);
  EXPECT_EQ(placement.most_hp(), 2);
  ASSERT_EQ(placement.sets.size(), 2u);
  EXPECT_THAT(placement.sets[1].devices, ElementsAre(4, 5, 6, 7));
  EXPECT_EQ(placement.groups[1].pattern, "x=y");
  EXPECT_EQ(placement.groups[2].set, 0);
  EXPECT_EQ(Trouble("a=4x1@8"), "a=8-11");
  EXPECT_EQ(Trouble("a=2x2@0,2,4,6;b=1,3,7-8"), "a=2x2@0,2,4,6;b=1,3,7-8");
  EXPECT_EQ(Trouble("a=1x2@4-5"), "a=1x2@4");
  EXPECT_EQ(Trouble(""), "");
}

TEST(Placement, SaysWhatIsWrong) {
  EXPECT_EQ(Trouble("text"),
            "'text': wanted a pattern and its devices, as in text=0-3;image=4-7;*=0-3");
  EXPECT_EQ(Trouble("=0"),
            "'=0': wanted a pattern and its devices, as in text=0-3;image=4-7;*=0-3");
  // What has no group is no plan without a placement.
  EXPECT_EQ(Trouble(";"), "';': wanted a pattern and its devices, as in text=0-3;image=4-7;*=0-3");
  EXPECT_EQ(Trouble(" "), "' ': wanted a pattern and its devices, as in text=0-3;image=4-7;*=0-3");
  EXPECT_EQ(Trouble("a=0-"),
            "'0-': wanted devices, as in 0-3, or dp x hp of them, as in 2x2@4 or 2x1@0,4");
  EXPECT_EQ(Trouble("a=3-1"),
            "'3-1': wanted devices, as in 0-3, or dp x hp of them, as in 2x2@4 or 2x1@0,4");
  EXPECT_EQ(Trouble("a=0-999999999999"),
            "'0-999999999999': wanted devices, as in 0-3, or dp x hp of them, as in 2x2@4 or "
            "2x1@0,4");
  EXPECT_EQ(Trouble("a=2x2@0,1,2"), "'2x2@0,1,2': 3 devices; wanted 4, or the first of them");
  EXPECT_EQ(Trouble("a=0-3,2"), "device 2 is twice in '0-3,2'; wanted each once");
  EXPECT_EQ(Trouble("(=0"), "'(': missing ): (; wanted a regular expression, or *");
  EXPECT_EQ(Trouble("a=0-3;b=3-5"),
            "device 3 is of 0-3 and of 3-5; wanted sets that are the same, or have none in common");
  EXPECT_EQ(Trouble("a=2x2@0;b=0-3"),
            "device 0 is of 2x2@0 and of 0-3; wanted sets that are the same, or have none in "
            "common");
}

// Two branches that leave %s and meet in %j, and a sum behind it.
constexpr char kBranches[] = R"(func @step (
  %x: f32[8,4] data,
  %z: f32[8,4] data,
  %w0: f32[4,4] parameter,
  %w1: f32[4,4] parameter,
  %w2: f32[4,4] parameter
) {
  %s: f32[8,4] = MatMul(%x, %w0)
  %a: f32[8,4] = MatMul(%s, %w1)
  %b: f32[8,4] = MatMul(%s, %w2)
  %a.relu: f32[8,4] = Relu(%a)
  %j: f32[8,4] = Mul(%a.relu, %b)
  %l: f32[8,4] = Loss(%j, %z) {batch=8}
  %dj: f32[8,4] = LossGrad(%j, %z) {batch=8}
  %da.relu: f32[8,4] = Mul(%dj, %b)
  %db: f32[8,4] = Mul(%dj, %a.relu)
  %da: f32[8,4] = ReluGrad(%a, %da.relu)
  %ds.b: f32[8,4] = MatMul(%db, %w2) {transpose_w=1}
  %dw2: f32[4,4] = MatMul(%s, %db) {transpose_x=1}
  %ds.a: f32[8,4] = MatMul(%da, %w1) {transpose_w=1}
  %dw1: f32[4,4] = MatMul(%s, %da) {transpose_x=1}
  %ds: f32[8,4] = Add(%ds.b, %ds.a)
  %dw0: f32[4,4] = MatMul(%x, %ds) {transpose_x=1}
  return %l: loss, %dw0: gradient(%w0), %dw1: gradient(%w1), %dw2: gradient(%w2)
}
)";

ir::Function Branches() {
  absl::StatusOr<ir::Function> function = ir::ParseFunction(kBranches);
  EXPECT_TRUE(function.ok()) << function.status();
  return *std::move(function);
}

// "0: s a | ds": ops by stage, forward and then backward, behind the devices of the stage.
std::string StagesText(const ir::Function& function, absl::string_view placement) {
  StageChoice choice{.placement = ParsePlacement(placement).value()};
  const absl::StatusOr<StagePlan> plan = PlanStages(function, {.choice = choice});
  if (!plan.ok()) return std::string(plan.status().message());
  std::string text;
  for (size_t s = 0; s < plan->sets.size(); ++s) {
    const DeviceSet& set = choice.placement.sets[static_cast<size_t>(plan->sets[s])];
    absl::StrAppend(&text, s == 0 ? "" : "\n", ToString(set), ":");
    for (const StepPhase phase : {StepPhase::kForward, StepPhase::kBackward}) {
      if (phase == StepPhase::kBackward) absl::StrAppend(&text, " |");
      for (const ir::OpId op : function.order()) {
        if (plan->phase[op] != phase || plan->stage[op] != static_cast<int32_t>(s)) continue;
        absl::StrAppend(&text, " ", function.value_name(function.result(op)));
      }
    }
  }
  return text;
}

// Backward mirrors forward, and the sum of the gradients of %s is made where %s is.
TEST(PlaceChain, DividesSetsWhereTheyWaitForEachOther) {
  const ir::Function function = Branches();
  EXPECT_EQ(StagesText(function, "^b=1;*=0"),
            "0: s a a.relu | da ds.a dw1 ds dw0\n"
            "1: b | ds.b dw2\n"
            "0: j l dj | da.relu db");
  EXPECT_EQ(StagesText(function, "^a=0;^b=1;^s$=2;*=3"),
            "2: s | ds dw0\n"
            "0: a a.relu | da ds.a dw1\n"
            "1: b | ds.b dw2\n"
            "3: j l dj | da.relu db");
  EXPECT_EQ(StagesText(function, "*=5"),
            "5: s a b a.relu j l dj | da.relu db da ds.b dw2 ds.a dw1 ds dw0");
}

TEST(MirroredStages, AreThoseOfOpsThatReadOrMakeAll) {
  const ir::Function function = Branches();
  const IdTable<ir::OpId, StepPhase> phase = FindPhases(function);
  const PlacedChain placed =
      PlaceChain(function, FindChain(function, phase), ParsePlacement("^b=1;*=0").value());
  EXPECT_THAT(placed.positions, ElementsAre(3, 4));
  EXPECT_THAT(placed.sets, ElementsAre(1, 0, 1));  // by the first group that has them
  IdTable<ir::OpId, int32_t> stage(function.op_limit(), -1);
  for (size_t i = 0; i < placed.chain.ops.size(); ++i) {
    stage[placed.chain.ops[i]] = static_cast<int32_t>(
        std::ranges::upper_bound(placed.positions, i) - placed.positions.begin());
  }
  const MirroredStages mirrored(function, placed.chain, stage, true);
  const auto named = [&](absl::string_view name) {
    for (int32_t v = 0; v < function.value_limit(); ++v) {
      if (function.value_name(ir::ValueId(v)) == name) return ir::ValueId(v);
    }
    return ir::ValueId();
  };
  const auto stages = [&](std::vector<ir::ValueId> values) { return mirrored.StagesOf(values); };
  EXPECT_THAT(stages({named("s")}), ElementsAre(0, 0, 1));
  EXPECT_THAT(stages({named("s"), named("w2")}), ElementsAre(1));
  EXPECT_THAT(stages({named("a.relu"), named("b")}), ElementsAre(2));
  EXPECT_THAT(stages({named("w0"), named("b")}), ElementsAre());
  EXPECT_THAT(stages({}), ElementsAre());
  // By names: %ds.b has none of them, as %db has, and the sum is of gradients of %s.
  const auto stage_of = [&](absl::string_view name) {
    return mirrored.StageOf(function.producer(named(name)), {}, 2);
  };
  EXPECT_EQ(stage_of("ds.b"), 1);
  EXPECT_EQ(stage_of("db"), 2);
  EXPECT_EQ(stage_of("ds"), 0);
  const std::vector<ir::ValueId> weight = {named("w2")};
  EXPECT_EQ(mirrored.StageOf(function.producer(named("j")), weight, 2), 1);
}

TEST(PlaceChain, SaysWhatNoGroupHas) {
  const ir::Function function = Branches();
  const ForwardChain chain = FindChain(function, FindPhases(function));
  const auto trouble = [&](absl::string_view placement) {
    return std::string(
        CheckPlacement(function, chain, ParsePlacement(placement).value()).message());
  };
  EXPECT_EQ(trouble("^b=1;*=0"), "");
  EXPECT_EQ(trouble("^[as]=0;^b=1"),
            "`placement`: no group has %j; wanted one for each op; try *=DEVICES as the last");
  EXPECT_EQ(trouble("^b=1;^b$=2;*=0"),
            "`placement`: '^b$' matches no forward op that no pattern before it does; `opt` prints "
            "names");
  EXPECT_EQ(trouble("*=0;^dw=1"),
            "`placement`: '^dw' matches no forward op that no pattern before it does; `opt` prints "
            "names");
}

std::string Text(const RankOrders& orders) {
  std::string text;
  for (const auto& order : orders) {
    absl::StrAppend(&text, text.empty() ? "" : " | ");
    for (const ScheduleStep& step : order) {
      absl::StrAppend(&text, text.empty() || text.back() == ' ' ? "" : " ", step.stage,
                      step.kind == StepKind::kForward ? "F" : "B", step.microbatch);
    }
  }
  return text;
}

std::vector<PlacedStage> Chain(int32_t stages) {
  std::vector<PlacedStage> chain;
  for (int32_t s = 0; s < stages; ++s) {
    chain.push_back({.set = s});
    if (s > 0) chain[static_cast<size_t>(s)].forward_needs = {s - 1};
    if (s > 0) chain[static_cast<size_t>(s) - 1].backward_needs = {s};
  }
  return chain;
}

// Of the two towers, one waits beside the joint stage on its set.
TEST(PlacedOrders, RunBranchesAtOnce) {
  const std::vector<PlacedStage> towers = {
      {.set = 0, .backward_needs = {2}},
      {.set = 1, .backward_needs = {2}},
      {.set = 0, .forward_needs = {0, 1}, .backward_needs = {}},
  };
  EXPECT_EQ(Text(PlacedOrders(towers, 2, false)),
            "0F0 2F0 2B0 0B0 0F1 2F1 2B1 0B1 | 1F0 1F1 1B0 1B1");
  EXPECT_EQ(Text(PlacedOrders(towers, 2, true)),
            "0F0 2F0 0F1 2F1 2B0 0B0 2B1 0B1 | 1F0 1F1 1B0 1B1");
  EXPECT_THAT(MostUnderWay(towers, 8, false), ElementsAre(1, 2, 1));
  EXPECT_THAT(MostUnderWay(towers, 8, true), ElementsAre(8, 8, 8));
}

// On a chain they are those schedules, and take as long.
TEST(PlacedOrders, OfAChainAreGpipeAndOneForwardOneBackward) {
  for (const bool gpipe : {false, true}) {
    const PipelineSchedule& schedule = **FindSchedule(gpipe ? "gpipe" : "1f1b");
    for (const int32_t ranks : {1, 2, 4}) {
      for (const int32_t microbatches : {1, 3, 8}) {
        SCOPED_TRACE(absl::StrCat(schedule.name, " ", ranks, " ", microbatches));
        const RankOrders placed = PlacedOrders(Chain(ranks), microbatches, gpipe);
        const PipelineShape shape = schedule.ShapeOf(ranks, microbatches);
        const RankOrders orders = schedule.OrdersOf(shape);
        EXPECT_EQ(Text(placed), Text(orders));
        EXPECT_EQ(placed, orders);  // slots, too
        const Timing timing = TimePlacedOrders(Chain(ranks), placed, shape.durations);
        const Timing of_chain = TimeOrders(orders, schedule.placement, shape, shape.durations);
        EXPECT_EQ(timing.steps, of_chain.steps);
        EXPECT_EQ(timing.idle, of_chain.idle);
      }
    }
  }
}

// Stages of very unequal length on one set go by their times; a chain that is no faster so, by unit
// times.
TEST(PlacedOrders, GoByTimesWhereThatIsFaster) {
  std::vector<PlacedStage> stages = {
      {.set = 1, .forward = 1, .backward = 2, .backward_needs = {1}},
      {.set = 0, .forward = 50, .backward = 100, .forward_needs = {0}, .backward_needs = {2}},
      {.set = 1, .forward = 40, .backward = 80, .forward_needs = {1}},
  };
  const std::string by_times = Text(PlacedOrders(stages, 4, false));
  for (PlacedStage& stage : stages) stage.forward = stage.backward = 1;
  EXPECT_NE(by_times, Text(PlacedOrders(stages, 4, false)));
  EXPECT_EQ(by_times,
            "1F0 1F1 1B0 1F2 1B1 1F3 1B2 1B3 | "
            "0F0 0F1 0F2 2F0 2B0 2F1 2B1 0B0 0F3 2F2 2B2 0B1 2F3 2B3 0B2 0B3");

  std::vector<PlacedStage> chain = Chain(2);
  chain[0].forward = 3;
  chain[0].backward = 6;
  chain[1].backward = 2;
  EXPECT_EQ(PlacedOrders(chain, 8, false), PlacedOrders(Chain(2), 8, false));
}

// Each step once and after what it needs, at most so many under way, of any graph.
TEST(PlacedOrders, AreOrdersOfAnyGraph) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const int32_t count = 1 + static_cast<int32_t>(random() % 8), sets = 3;
    const int32_t microbatches = 1 + static_cast<int32_t>(random() % 5);
    std::vector<PlacedStage> stages(static_cast<size_t>(count));
    for (int32_t s = 0; s < count; ++s) {
      PlacedStage& stage = stages[static_cast<size_t>(s)];
      stage = {.set = static_cast<int32_t>(random() % sets),
               .forward = static_cast<int64_t>(random() % 4),
               .backward = static_cast<int64_t>(random() % 4)};
      for (int32_t need = 0; need < s; ++need) {
        if (random() % 3 == 0) stage.forward_needs.push_back(need);
        if (random() % 3 == 0) stages[static_cast<size_t>(need)].backward_needs.push_back(s);
      }
    }
    const bool gpipe = seed % 2 == 1;
    const RankOrders orders = PlacedOrders(stages, microbatches, gpipe);
    // As early as they can be.
    const Timing timing = TimePlacedOrders(stages, orders, {.weight_gradient = 0});
    std::map<std::tuple<StepKind, int32_t, int32_t>, int32_t> slots;
    for (size_t set = 0; set < orders.size(); ++set) {
      int32_t last = -1;
      for (size_t i = 0; i < orders[set].size(); ++i) {
        const ScheduleStep& step = orders[set][i];
        EXPECT_EQ(step.slot, timing.steps[set][i].start);
        EXPECT_EQ(stages[static_cast<size_t>(step.stage)].set, static_cast<int32_t>(set));
        EXPECT_GT(step.slot, last);
        last = step.slot;
        slots[{step.kind, step.stage, step.microbatch}] = step.slot;
      }
    }
    ASSERT_EQ(std::ssize(slots), 2 * count * microbatches);
    const std::vector<int64_t> most = MostUnderWay(stages, microbatches, gpipe);
    for (int32_t s = 0; s < count; ++s) {
      const PlacedStage& stage = stages[static_cast<size_t>(s)];
      for (int32_t m = 0; m < microbatches; ++m) {
        const int32_t forward = slots.at({StepKind::kForward, s, m});
        const int32_t backward = slots.at({StepKind::kBackward, s, m});
        EXPECT_LT(forward, backward);
        for (const int32_t need : stage.forward_needs) {
          EXPECT_LT(slots.at({StepKind::kForward, need, m}), forward);
        }
        for (const int32_t need : stage.backward_needs) {
          EXPECT_LT(slots.at({StepKind::kBackward, need, m}), backward);
        }
        const auto ahead = static_cast<int32_t>(m + most[static_cast<size_t>(s)]);
        if (ahead < microbatches) {
          EXPECT_LT(backward, slots.at({StepKind::kForward, s, ahead}));
        }
      }
    }
  }
}

}  // namespace
}  // namespace placement_test_cc
}  // namespace orrery::transforms
