#include "lowering/prepared_step.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ir/models/model_test_util.h"
#include "lowering/lower.h"
#include "lowering/step_bound.h"
#include "simulator/engine/play.h"
#include "simulator/program/program_text.h"
#include "simulator/report/report.h"
#include "support/sanitized_test_util.h"
#include "transforms/parallel.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/plan/plan_text.h"
#include "transforms/training/split_backward.h"
#include "transforms/training/training_step.h"

namespace orrery::lowering {
namespace prepared_step_test_cc {
namespace {

using transforms::ParallelPlan;

// One of several steps, as a schedule wants it, with what it runs on.
class Case {
 public:
  Case(const ParallelPlan& plan, const std::string& cluster, const std::string& model,
       const LoweringOptions& options = {})
      : schedule_(*plan.schedule),
        cluster_(cluster::ParseCluster(cluster).value()),
        cost_model_(cost_models::MakeCostModel("roofline").value()),
        options_(options) {
    ir::Function one = ir::BuildModel("gpt", model, 48);
    EXPECT_TRUE(transforms::MakeTrainingStep(one, {.optimizer = "adam"}).ok());
    shape_ =
        schedule_.ShapeOf(static_cast<int32_t>(plan.pp), static_cast<int32_t>(plan.microbatches));
    if (!schedule_.CheckShape(shape_).ok()) return;
    bool splits = false;
    for (const auto& order : schedule_.OrdersOf(shape_)) {
      for (const auto& step : order) {
        splits = splits || step.kind == transforms::StepKind::kInputGradient;
      }
    }
    if (splits) {
      EXPECT_TRUE(transforms::SplitBackward(one).ok());
    }
    auto step =
        transforms::ParallelTransform3d(one, transforms::ByFlops(plan),
                                        {.chunks = shape_.chunks,
                                         .placement = schedule_.placement,
                                         .split_backward = splits,
                                         .updates_each_microbatch = schedule_.asynchronous});
    if (step.ok()) step_ = *std::move(step);
  }

  // Whether there is such a step.
  bool valid() const { return step_.has_value(); }
  const transforms::PipelineShape& shape() const { return shape_; }
  bool asynchronous() const { return schedule_.asynchronous; }
  void Give(const transforms::RankOrders& orders) { schedule_.given = &orders; }
  transforms::RankOrders Orders() const { return schedule_.OrdersOf(shape_); }

  LoweringInput Input(const StepExtent& extent = {}) const {
    return {.step = *step_,
            .schedule = schedule_,
            .cluster = cluster_,
            .cost_model = *cost_model_,
            .options = options_,
            .rounds = extent.rounds,
            .first_microbatches = extent.first_microbatches,
            .lowered = extent.lowered};
  }

 private:
  transforms::PipelineSchedule schedule_;
  const cluster::Cluster cluster_;
  const std::unique_ptr<const cost_models::CostModel> cost_model_;
  const LoweringOptions options_;
  transforms::PipelineShape shape_;
  std::optional<transforms::PipelinedStep> step_;
};

// A program and the steps of its schedule, as text.
std::string Text(const absl::StatusOr<simulator::Program>& program,
                 const std::vector<LoweredStep>& steps) {
  if (!program.ok()) return program.status().ToString();
  std::string text = simulator::Print(*program);
  for (const LoweredStep& row : steps) {
    absl::StrAppend(&text, static_cast<int>(row.step.kind), " ", row.step.stage, " ",
                    row.step.microbatch, " ", row.begin.index(), " ", row.end.index(), "\n");
  }
  return text;
}

std::string LoweredText(LoweringInput input) {
  std::vector<LoweredStep> steps;
  input.lowered = &steps;
  return Text(Lower(input), steps);
}
std::string LoweredText(const Case& of, const StepExtent& extent) {
  return LoweredText(of.Input(extent));
}

std::string InstantiatedText(PreparedStep& prepared, StepExtent extent) {
  std::vector<LoweredStep> steps;
  extent.lowered = &steps;
  return Text(prepared.Instantiate(extent), steps);
}

class Dice {
 public:
  explicit Dice(uint32_t seed) : random_(seed) {}
  template <typename T>
  T Of(std::initializer_list<T> list) {
    return *(list.begin() + random_() % list.size());
  }

 private:
  std::mt19937 random_;
};

Case DrawCase(Dice& dice) {
  const char* const schedule = dice.Of<const char*>(
      {"1f1b", "gpipe", "interleaved", "zb-h1", "zbv", "zb-1p", "zbv-auto", "dualpipe", "chimera",
       "pipedream", "pipedream-2bw", "pipemare", "distir"});
  ParallelPlan plan = {.dp = dice.Of<int64_t>({1, 2, 3}),
                       .hp = dice.Of<int64_t>({1, 2}),
                       .pp = dice.Of<int64_t>({1, 2, 4}),
                       .microbatches = dice.Of<int64_t>({1, 2, 4, 8, 12})};
  plan.schedule = schedule;
  plan.zero = dice.Of<int64_t>({0, 1, 3});
  plan.order = dice.Of<const char*>({"hp,dp,pp", "pp,hp,dp", "dp,pp,hp"});
  const bool fuses = dice.Of({true, false});
  const LoweringOptions options = {.blocking = dice.Of({false, false, true}),
                                   .fold = dice.Of({true, true, false}),
                                   .most_unfolded_tasks = dice.Of<int64_t>({0, 300, 1 << 16}),
                                   .every_link = dice.Of({false, false, true}),
                                   .fuse_runs = fuses,
                                   .fuse_stretches = fuses};
  return Case(
      plan,
      dice.Of<const char*>(
          {"uniform:32@200Gbps", "dgx-a100:4", "dgx-h100:4", "fat-tree:32@5GB/s,radix=8"}),
      dice.Of<const char*>(
          {"layers=8,hidden=32,heads=4,seq=16,vocab=64,tied_embeddings=0",
           "layers=8,hidden=32,heads=4,seq=16,vocab=64,tied_embeddings=0,experts=4,topk=2"}),
      options);
}

// Whatever was instantiated before, it is the program that the step alone is lowered to.
TEST(PreparedStep, InstantiatesWhatIsLoweredAlone) {
  int compared = 0, shared_rounds = 0;
  for (uint32_t seed = 0; seed < CasesToWalk(150u); ++seed) {
    Dice dice(seed);
    const Case of = DrawCase(dice);
    if (!of.valid()) continue;
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::vector<StepExtent> extents = {{}};
    if (of.asynchronous()) {
      for (const int32_t rounds : {3, 1, 2, 3}) extents.push_back({.rounds = rounds});
    } else {
      const int64_t all = of.shape().microbatches;
      for (const int64_t few : {all / 2, all / 2 + 1, all, all / 4, all / 2}) {
        if (few > 0) extents.push_back({.first_microbatches = few});
      }
    }
    PreparedStep prepared(of.Input());
    ASSERT_TRUE(prepared.Prepare().ok());
    for (const StepExtent& extent : extents) {
      if (!prepared.Serves(extent.rounds)) continue;
      ASSERT_EQ(InstantiatedText(prepared, extent), LoweredText(of, extent))
          << extent.first_microbatches << " microbatches, " << extent.rounds << " rounds";
      ++compared;
      shared_rounds += extent.rounds > 1 ? 1 : 0;
    }
  }
  EXPECT_GT(compared, CasesToWalk(200));
  EXPECT_GT(shared_rounds, CasesToWalk(10));
}

// The text with the names of all labels left out.
std::string WithoutNames(const std::string& text) {
  std::string without;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const size_t begin = line.find('"');
    if (absl::StartsWith(line, "label") && begin != absl::string_view::npos) {
      absl::StrAppend(&without, line.substr(0, begin), line.substr(line.find('"', begin + 1)));
    } else {
      absl::StrAppend(&without, line);
    }
    without += "\n";
  }
  return without;
}

// Names are all that figures can do without.
TEST(PreparedStep, NeedsNoNames) {
  int compared = 0;
  for (uint32_t seed = 0; seed < CasesToWalk(60u); ++seed) {
    Dice dice(seed);
    const Case of = DrawCase(dice);
    if (!of.valid()) continue;
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    LoweringInput input = of.Input();
    const std::string named = LoweredText(input);
    input.options.names = false;
    const std::string unnamed = LoweredText(input);
    ASSERT_EQ(WithoutNames(unnamed), WithoutNames(named));
    ASSERT_LT(unnamed.size(), named.size());
    ++compared;
  }
  EXPECT_GT(compared, CasesToWalk(20));
}

constexpr const char* kModel = "layers=4,hidden=32,heads=4,seq=16,vocab=64,tied_embeddings=0";

// The same as if the schedule had them.
TEST(PreparedStep, RunsOtherOrders) {
  Case of({.dp = 2, .pp = 2, .microbatches = 4, .schedule = "zbv-auto"}, "dgx-a100:1", kModel);
  ASSERT_TRUE(of.valid());
  const transforms::RankOrders unit = of.Orders();
  PreparedStep prepared(of.Input());
  ASSERT_TRUE(prepared.Prepare().ok());
  const std::string own = InstantiatedText(prepared, {});
  const std::string other = InstantiatedText(prepared, {.orders = &unit});
  EXPECT_EQ(own, LoweredText(of, {}));
  of.Give(unit);
  EXPECT_EQ(other, LoweredText(of, {}));
  EXPECT_NE(own, other) << "the test shows nothing";
}

// One round of one microbatch has nothing to add to; where ranks are not alike, how many tasks
// there are says whether they are folded.
TEST(PreparedStep, ServesRoundsThatHaveTheSameTemplates) {
  const auto serves = [](const Case& of, int32_t prepared_for, int32_t rounds) {
    PreparedStep prepared(of.Input({.rounds = prepared_for}));
    EXPECT_TRUE(prepared.Prepare().ok());
    return prepared.Serves(rounds);
  };
  const Case alike({.dp = 2, .pp = 2, .microbatches = 4, .schedule = "pipedream-2bw"}, "dgx-a100:1",
                   kModel);
  EXPECT_TRUE(serves(alike, 1, 2));
  EXPECT_TRUE(serves(alike, 3, 1));
  const Case single({.microbatches = 1, .schedule = "pipedream-2bw"}, "dgx-a100:1", kModel);
  EXPECT_TRUE(serves(single, 1, 1));
  const Case unlike({.dp = 3, .hp = 2, .pp = 2, .microbatches = 4, .schedule = "pipedream-2bw"},
                    "dgx-a100:2", kModel);
  ASSERT_TRUE(unlike.valid());
  EXPECT_TRUE(serves(unlike, 2, 2));
  EXPECT_FALSE(serves(unlike, 2, 3));
  PreparedStep none(alike.Input());
  EXPECT_FALSE(none.Serves(1)) << "nothing is prepared";
}

constexpr char kGpt[] = "layers=4,hidden=64,heads=4,seq=32,vocab=64,tied_embeddings=0";

StepBound BoundOf(const Case& of, const transforms::RankOrders& orders) {
  PreparedStep prepared(of.Input());
  EXPECT_TRUE(prepared.Prepare().ok());
  return prepared.BoundOf(orders);
}

// By the microbatches that are in flight, which are for the schedule to say.
TEST(StepBound, HoldsWhatTheOrdersLeave) {
  const auto of = [](const char* schedule) {
    const Case of_schedule({.pp = 2, .microbatches = 12, .schedule = schedule}, "uniform:2@10GB/s",
                           kGpt);
    return BoundOf(of_schedule, of_schedule.Orders());
  };
  const StepBound all = of("gpipe"), two = of("1f1b");
  EXPECT_EQ(all.time, two.time);
  EXPECT_GT(all.peak.count(), 2 * two.peak.count());
  EXPECT_GE(two.likely_peak, two.peak);
  // What orders by durations come to is not known before.
  const Case searched({.pp = 2, .microbatches = 12, .schedule = "zbv-auto"}, "uniform:2@10GB/s",
                      kGpt);
  const StepBound open = BoundOf(searched, searched.Orders());
  EXPECT_GT(open.likely_peak.count(), open.peak.count());
  EXPECT_GT(open.peak.count(), 0);
}

// Beside what the fullest rank computes, what one microbatch takes on the other.
TEST(StepBound, KnowsTheBubble) {
  const auto of = [](int64_t pp, const char* schedule) {
    const Case pipeline({.pp = pp, .microbatches = 12, .schedule = schedule}, "uniform:2@10GB/s",
                        kGpt);
    const StepBound bound = BoundOf(pipeline, pipeline.Orders());
    return (bound.likely_time - bound.time).seconds() / bound.time.seconds();
  };
  EXPECT_EQ(of(1, "1f1b"), 0);
  EXPECT_GT(of(2, "1f1b"), 0.5 / 12);
  EXPECT_LE(of(2, "1f1b"), 1.0 / 12);
  EXPECT_LT(of(2, "interleaved"), 0.7 * of(2, "1f1b"));
}

// Gradients may go while the last backward runs: what it has beside forward is likely, but not
// sure.
TEST(StepBound, EndsBeforeTheLastGradients) {
  const auto of = [](int64_t microbatches) {
    const Case one({.microbatches = microbatches}, "uniform:1@10GB/s", kGpt);
    return BoundOf(one, one.Orders());
  };
  EXPECT_LT(of(1).peak, of(1).likely_peak);
  const StepBound two = of(2);
  EXPECT_GT(two.peak.count(), two.likely_peak.count() * 9 / 10) << "with the first gradients";
}

TEST(StepBound, SaysWhetherAStepMayFit) {
  const auto fits_within = [](int64_t limit) {
    const Case of({.pp = 2, .microbatches = 4}, "uniform:2@10GB/s", kGpt,
                  {.memory_limit = Bytes(limit)});
    return BoundOf(of, of.Orders()).may_fit;
  };
  const Case open({.pp = 2, .microbatches = 4}, "uniform:2@10GB/s", kGpt);
  const int64_t peak = BoundOf(open, open.Orders()).peak.count();
  EXPECT_TRUE(fits_within(peak));
  EXPECT_FALSE(fits_within(peak - 1));
  // With what an allocator loses: a part of all but a few buffers.
  const Case lossy({.pp = 2, .microbatches = 4}, "uniform:2@10GB/s", kGpt,
                   {.memory_overhead = {.fragmentation = 0.5}});
  const int64_t with_lost = BoundOf(lossy, lossy.Orders()).peak.count();
  EXPECT_LE(with_lost, peak + peak / 2);
  EXPECT_GT(with_lost, peak + peak * 49 / 100);
}

TEST(StepBound, KnowsHowMuchOfAStepCommunicates) {
  const Case of({.dp = 2, .hp = 2, .pp = 2, .microbatches = 4}, "uniform:8@1GB/s", kGpt);
  const simulator::Program program = Lower(of.Input()).value();
  const simulator::Report report = simulator::Summarize(program, simulator::Play(program).value());
  EXPECT_GT(report.communication_overhead, 0.1);
  EXPECT_NEAR(BoundOf(of, of.Orders()).communication, report.communication_overhead, 0.01);
}

TEST(PreparedStep, RunsInTurnUnlessPhasesRunAtOnceOrNothingDrains) {
  for (const auto& [schedule, in_turn] :
       {std::pair("1f1b", true), std::pair("interleaved", true), std::pair("zb-h1", true),
        std::pair("chimera", false), std::pair("dualpipe", false), std::pair("pipedream", false),
        std::pair("pipemare", false)}) {
    const Case of({.pp = 2, .microbatches = 4, .schedule = schedule}, "uniform:2@10GB/s", kGpt);
    ASSERT_TRUE(of.valid()) << schedule;
    PreparedStep prepared(of.Input());
    ASSERT_TRUE(prepared.Prepare().ok()) << schedule;
    EXPECT_EQ(prepared.RunsInTurn(), in_turn) << schedule;
  }
}

}  // namespace
}  // namespace prepared_step_test_cc
}  // namespace orrery::lowering
