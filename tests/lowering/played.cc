#include "tests/lowering/played.h"

#include <random>

#include "absl/strings/str_cat.h"
#include "cluster/cluster.h"
#include "cost_models/cost_model.h"
#include "ir/models/mlp.h"
#include "lowering/lower.h"
#include "simulator/play.h"
#include "support/check.h"
#include "tests/semantics/random_step.h"
#include "transforms/schedules/schedule.h"
#include "transforms/split_backward.h"
#include "transforms/training_step.h"

namespace orrery::lowering {
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
  c.chunks = dice.Pick<int32_t>({1, 2, 3});
  if (dice.Pick({true, false})) return;
  std::vector<const transforms::PipelineSchedule*> choices;
  for (const transforms::PipelineSchedule* schedule : transforms::AllSchedules()) {
    const transforms::PipelineShape shape = schedule->ShapeOf(
        static_cast<int32_t>(c.degrees.pp), static_cast<int32_t>(c.degrees.microbatches), c.chunks);
    if (!schedule->asynchronous && schedule->CheckShape(shape).ok()) choices.push_back(schedule);
  }
  const transforms::PipelineSchedule* const picked = choices[dice.Below(choices.size())];
  if (!picked->slices_sequence) c.schedule = std::string(picked->name);  // an MLP has no sequence
}

}  // namespace

std::string ToString(const Configuration& c) {
  return absl::StrCat("dp=", c.degrees.dp, " hp=", c.degrees.hp, " pp=", c.degrees.pp,
                      " K=", c.degrees.microbatches, " order=", c.degrees.order, " ", c.schedule,
                      " of ", c.chunks, " chunks", " on ", c.cluster, " by ", c.cost_model,
                      c.blocking ? " blocking" : "", " buckets of ", ToString(c.bucket_size),
                      " recompute ", c.recompute, " zero=", c.zero.stage, " group=", c.zero.group,
                      " prefetch=", c.zero.prefetch);
}

transforms::PipelineShape ShapeOf(const Configuration& c) {
  const transforms::PipelineSchedule& schedule = *Must(transforms::FindSchedule(c.schedule));
  return schedule.ShapeOf(static_cast<int32_t>(c.degrees.pp),
                          static_cast<int32_t>(c.degrees.microbatches), c.chunks);
}

Played Play(const ir::Function& given, const Configuration& c,
            const transforms::RankOrders* orders) {
  Played played;
  transforms::PipelineSchedule schedule = *Must(transforms::FindSchedule(c.schedule));
  schedule.given = orders;
  const transforms::PipelineShape shape = ShapeOf(c);
  ir::Function step = given;
  const bool splits = SplitsBackward(schedule.OrdersOf(shape));
  if (splits) Must(transforms::SplitBackward(step));
  played.step = Must(transforms::ParallelTransform3d(
      step, c.degrees,
      {.stages = {.split_backward = splits,
                  .chunks = shape.chunks,
                  .placement = schedule.placement,
                  .choice = {.split_at = c.split_at}},
       .slices = c.slices,
       .updates_each_microbatch = schedule.asynchronous,
       .recompute = Must(transforms::ParseRecomputePolicy(c.recompute)),
       .zero = c.zero,
       .fp8_mixed = c.fp8_mixed}));
  const cluster::Cluster cluster = Must(cluster::ParseCluster(c.cluster));
  const auto cost_model = Must(cost_models::MakeCostModel(c.cost_model));
  played.program = Must(Lower({.step = played.step,
                               .schedule = schedule,
                               .cluster = cluster,
                               .cost_model = *cost_model,
                               .options = {.blocking = c.blocking,
                                           .fold = c.fold,
                                           .most_unfolded_tasks = c.most_unfolded_tasks,
                                           .memory_limit = {},
                                           .bucket_size = c.bucket_size,
                                           .fuse_runs = c.fuse_runs},
                               .placed = &played.placed}));
  played.trace = Must(simulator::Play(played.program));
  played.report = simulator::Summarize(played.program, played.trace);
  return played;
}

RandomCase MakeRandomCase(uint32_t seed) {
  Dice dice(seed);
  const transforms::ParallelDegrees degrees = {
      .dp = dice.Pick<int64_t>({1, 2, 3, 4, 5}),
      .hp = dice.Pick<int64_t>({1, 2, 3, 4, 6}),
      .pp = dice.Pick<int64_t>({1, 2, 3, 4}),
      .microbatches = dice.Pick<int64_t>({1, 2, 3, 5, 8}),
      .order = dice.Pick({"hp,dp,pp", "pp,hp,dp", "dp,pp,hp", "dp,hp,pp"}),
      .devices = {}};
  RandomCase random;
  random.configuration = {
      .degrees = degrees,
      .schedule = dice.Pick({"1f1b", "gpipe", "distir"}),
      .cluster = dice.Pick({"uniform:128@200Gbps", "dgx-a100:16", "dgx-h100:16", "dgx-v100:16",
                            "fat-tree:128@50GB/s,radix=16", "torus:4x4x8@50GB/s"}),
      .cost_model = dice.Pick({"roofline", "roofline", "distir"}),
      .blocking = dice.Pick({true, false, false})};
  PickSchedule(seed, random.configuration);
  random.step =
      MakeStep(dice, seed, ShapeOf(random.configuration).stages() * dice.Pick<int64_t>({1, 2}),
               degrees.dp * degrees.microbatches * dice.Pick<int64_t>({1, 64}));
  random.configuration.bucket_size = dice.Pick({Bytes(0), Bytes(100'000), Bytes(25 << 20)});
  random.configuration.recompute = dice.Pick({"none", "none", "full", "every:2", "selective"});
  random.configuration.zero = {.stage = dice.Pick<int64_t>({0, 0, 1, 2, 3}),
                               .prefetch = dice.Pick<int64_t>({0, 1, 2})};
  return random;
}

}  // namespace orrery::lowering
