#include "tests/lowering/played.h"

#include <random>

#include "absl/strings/str_cat.h"
#include "cluster/cluster.h"
#include "cost_models/cost_model.h"
#include "ir/models/mlp.h"
#include "lowering/lower.h"
#include "simulator/engine/play.h"
#include "support/check.h"
#include "tests/semantics/random_step.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/plan/plan_text.h"
#include "transforms/schedules/schedule.h"
#include "transforms/training/split_backward.h"
#include "transforms/training/training_step.h"

namespace orrery::lowering {
namespace played_cc {
namespace {

template <typename T>
T Must(absl::StatusOr<T> value) {
  ORRERY_CHECK(value.ok()) << value.status().ToString();
  return *std::move(value);
}

class Dice {
 public:
  explicit Dice(uint32_t seed) : random_(seed) {}
  template <typename T>
  T Pick(std::initializer_list<T> choices) {
    return choices.begin()[Below(choices.size())];
  }
  size_t Below(size_t count) { return random_() % count; }

 private:
  std::mt19937 random_;
};

ir::Function MakeStep(Dice& dice, uint32_t seed, int64_t layers, int64_t batch) {
  const std::string optimizer = dice.Pick({"none", "sgd", "momentum", "adam"});
  if (dice.Pick({true, false})) {
    return semantics::RandomStep(
        {.seed = seed, .layers = static_cast<int>(layers), .batch = batch, .width_unit = 60},
        optimizer);
  }
  ir::Function step = Must(ir::Mlp({.layers = layers, .dim = 120, .batch = batch}));
  Must(transforms::AppendOptimizer(step, optimizer));
  return step;
}

bool SplitsBackward(const transforms::RankOrders& orders) {
  for (const auto& order : orders) {
    for (const transforms::ScheduleStep& step : order) {
      if (step.kind == transforms::StepKind::kInputGradient) return true;
    }
  }
  return false;
}

// Any synchronous one that is for so many ranks and microbatches, half of the time one of the old
// ones.
void PickSchedule(uint32_t seed, Configuration& c) {
  Dice dice(seed + 1000);
  c.plan.chunks = dice.Pick<int64_t>({1, 2, 3});
  if (dice.Pick({true, false})) return;
  std::vector<const transforms::PipelineSchedule*> choices;
  for (const transforms::PipelineSchedule* schedule : transforms::AllSchedules()) {
    const transforms::PipelineShape shape = schedule->ShapeOf(
        static_cast<int32_t>(c.plan.pp), static_cast<int32_t>(c.plan.microbatches),
        static_cast<int32_t>(c.plan.chunks));
    if (!schedule->asynchronous && schedule->CheckShape(shape).ok()) choices.push_back(schedule);
  }
  const transforms::PipelineSchedule* const picked = choices[dice.Below(choices.size())];
  if (picked->slices_sequence) return;  // an MLP has no sequence
  c.plan.schedule = Must(transforms::ScheduleChoice::Parse(picked->name));
}

}  // namespace
}  // namespace played_cc

std::string ToString(const Configuration& c) {
  return absl::StrCat(ToString(c.plan), " on ", c.cluster, " by ", c.cost_model);
}

transforms::PipelineShape ShapeOf(const Configuration& c) {
  return c.plan.schedule->ShapeOf(static_cast<int32_t>(c.plan.pp),
                                  static_cast<int32_t>(c.plan.microbatches),
                                  static_cast<int32_t>(c.plan.chunks));
}

Played Play(const ir::Function& given, const Configuration& c,
            const transforms::RankOrders* orders) {
  Played played;
  transforms::PipelineSchedule schedule = *c.plan.schedule;
  schedule.given = orders;
  const transforms::PipelineShape shape = ShapeOf(c);
  ir::Function step = given;
  const bool splits = played_cc::SplitsBackward(schedule.OrdersOf(shape));
  if (splits) played_cc::Must(transforms::SplitBackward(step));
  played.step = played_cc::Must(
      transforms::ParallelTransform3d(step, transforms::ByFlops(c.plan),
                                      {.chunks = shape.chunks,
                                       .placement = schedule.placement,
                                       .split_backward = splits,
                                       .updates_each_microbatch = schedule.asynchronous,
                                       .slices = c.slices}));
  const cluster::Cluster cluster = played_cc::Must(cluster::ParseCluster(c.cluster));
  const auto cost_model = played_cc::Must(cost_models::MakeCostModel(c.cost_model));
  played.program = played_cc::Must(Lower({.step = played.step,
                                          .schedule = schedule,
                                          .cluster = cluster,
                                          .cost_model = *cost_model,
                                          .options = {.blocking = c.plan.blocking,
                                                      .fold = c.fold,
                                                      .most_unfolded_tasks = c.most_unfolded_tasks,
                                                      .memory_limit = {},
                                                      .bucket_size = c.plan.bucket_size,
                                                      .fuse_runs = c.fuse_runs},
                                          .lowered = &played.lowered}));
  played.trace = played_cc::Must(simulator::Play(played.program));
  played.report = simulator::Summarize(played.program, played.trace);
  return played;
}

RandomCase MakeRandomCase(uint32_t seed) {
  played_cc::Dice dice(seed);
  RandomCase random;
  transforms::ParallelPlan& plan = random.configuration.plan;
  plan = {.dp = dice.Pick<int64_t>({1, 2, 3, 4, 5}),
          .hp = dice.Pick<int64_t>({1, 2, 3, 4, 6}),
          .pp = dice.Pick<int64_t>({1, 2, 3, 4}),
          .microbatches = dice.Pick<int64_t>({1, 2, 3, 5, 8})};
  plan.order = dice.Pick({"hp,dp,pp", "pp,hp,dp", "dp,pp,hp", "dp,hp,pp"});
  plan.schedule = dice.Pick({"1f1b", "gpipe", "distir"});
  random.configuration.cluster =
      dice.Pick({"uniform:128@200Gbps", "dgx-a100:16", "dgx-h100:16", "dgx-v100:16",
                 "fat-tree:128@50GB/s,radix=16", "torus:4x4x8@50GB/s"});
  random.configuration.cost_model = dice.Pick({"roofline", "roofline", "distir"});
  plan.blocking = dice.Pick({true, false, false});
  played_cc::PickSchedule(seed, random.configuration);
  random.step = played_cc::MakeStep(
      dice, seed, ShapeOf(random.configuration).stages() * dice.Pick<int64_t>({1, 2}),
      plan.dp * plan.microbatches * dice.Pick<int64_t>({1, 64}));
  plan.bucket_size = dice.Pick({Bytes(0), Bytes(100'000), Bytes(25 << 20)});
  plan.recompute = played_cc::Must(transforms::ParseRecomputePolicy(
      dice.Pick({"none", "none", "full", "every:2", "selective"})));
  plan.zero = dice.Pick<int64_t>({0, 0, 1, 2, 3});
  plan.prefetch = dice.Pick<int64_t>({0, 1, 2});
  return random;
}

}  // namespace orrery::lowering
