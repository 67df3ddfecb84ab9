#include "search/plan_player.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "search/slices.h"
#include "search/stage_weights.h"
#include "search/steady_state.h"
#include "simulator/engine/play.h"
#include "simulator/program/time_alone.h"
#include "support/status.h"
#include "transforms/parallel.h"
#include "transforms/plan/plan_text.h"
#include "transforms/training/split_backward.h"

namespace orrery::search {
namespace plan_player_cc {
namespace {

// A step that is lowered and played.
struct Played {
  const Setting& setting;
  const ParallelPlan& plan;
  const transforms::PipelinedStep& step;
  const transforms::PipelineSchedule& schedule;
};

absl::StatusOr<Run> PlayRounds(const Played& of, int32_t rounds, bool always_fold = false) {
  Run run;
  run.rounds = rounds;
  lowering::LoweringOptions options = LoweringOf(of.setting, of.plan);
  if (always_fold) options.most_unfolded_tasks = 0;
  options.fuse_runs = !options.every_link;  // who asks for links wants to see kernels, too
  ORRERY_ASSIGN_OR_RETURN(run.program, lowering::Lower({.step = of.step,
                                                        .schedule = of.schedule,
                                                        .cluster = of.setting.cluster,
                                                        .cost_model = *of.setting.cost_model,
                                                        .options = options,
                                                        .rounds = rounds,
                                                        .lowered = &run.steps}));
  if (options.every_link) run.link_use.emplace(run.program);
  absl::StatusOr<simulator::Trace> trace =
      simulator::Play(run.program, run.link_use.has_value() ? &*run.link_use : nullptr);
  if (absl::IsOutOfRange(trace.status())) {
    return InfeasibleStatus(
        {.reason = InfeasibleReason::kUnsupported,
         .detail = absl::StrCat("the step takes longer than ", ToString(simulator::kEndOfTime),
                                ", beyond which nothing is simulated; try a smaller batch")});
  }
  ORRERY_RETURN_IF_ERROR(trace.status());
  run.trace = *std::move(trace);
  run.report = simulator::Summarize(run.program, run.trace);
  simulator::AddFragmentation(run.program, options.memory_overhead.fragmentation, run.report);
  return run;
}

}  // namespace
}  // namespace plan_player_cc

absl::Status PlanPlayer::Prepare() {
  ORRERY_ASSIGN_OR_RETURN(schedule_, ScheduleOf(setting_, plan_));
  ORRERY_ASSIGN_OR_RETURN(mesh_, transforms::MakeMesh(plan_));
  shape_ = ShapeOf(schedule_, plan_);
  ORRERY_RETURN_IF_ERROR(schedule_.CheckShape(shape_));
  if (plan_.chunks != 0 && plan_.chunks != shape_.chunks) {
    return absl::InvalidArgumentError(absl::StrCat(
        ToString(plan_, setting_.base), ": wanted `chunks` ", shape_.chunks, ", or none"));
  }
  // Before there are orders for them.
  const int64_t ops = std::ssize(setting_.step.order());
  ORRERY_RETURN_IF_ERROR(transforms::CheckStageCount(shape_, ops));
  ORRERY_RETURN_IF_ERROR(CheckSliceCount(schedule_, shape_.microbatches, ops));
  ORRERY_RETURN_IF_ERROR(SplitBackward());
  if (plan_.ranks() > setting_.cluster.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(setting_.cluster.name, " has ", setting_.cluster.size(), " devices; ",
                     ToString(plan_, setting_.base), " wants ", plan_.ranks()));
  }
  if (!plan_.shards_by_cost() && !weighs_stages()) return absl::OkStatus();
  prices_.emplace(mesh_, setting_.cluster, *setting_.cost_model,
                  lowering::ShardingPricesOptions{.algorithms = plan_.algorithm});
  limit_ = setting_.lowering.device_memory ? setting_.cluster.device.memory
                                           : setting_.lowering.memory_limit;
  return absl::OkStatus();
}

bool PlanPlayer::weighs_stages() const { return plan_.pp > 1 && WeighsStages(plan_); }

// Schedules that part backwards need ops that do not make both gradients.
absl::Status PlanPlayer::SplitBackward() {
  constexpr int64_t kTooMany = int64_t{1} << 26;  // for Lower
  if (int64_t{shape_.stages()} * shape_.microbatches > kTooMany) return absl::OkStatus();
  ranks_ = {
      .orders = schedule_.OrdersOf(shape_), .placement = schedule_.placement, .shape = shape_};
  for (const auto& order : ranks_.orders) {
    for (const transforms::ScheduleStep& step : order) {
      splits_ = splits_ || step.kind == transforms::StepKind::kInputGradient;
    }
  }
  if (!splits_) return absl::OkStatus();
  split_step_ = setting_.step;
  return transforms::SplitBackward(*split_step_).status();
}

transforms::StageContext PlanPlayer::StagesOf(const Way& way) const {
  transforms::StageContext context;
  if (!weighs_stages()) return context;
  context.prices = &*prices_;
  context.send_seconds = StageSends(mesh_, setting_.cluster, *setting_.cost_model);
  if (!schedule_.asynchronous) context.schedule = &ranks_;
  if (way.limit > Bytes(0)) LimitMemory(schedule_, ranks_, way.limit, context);
  return context;
}

absl::StatusOr<Run> PlanPlayer::Play(const Way& way) {
  ParallelPlan plan = plan_;
  plan.context_attention = way.attention;
  const bool by_cost = way.by_cost && plan_.shards_by_cost();
  transforms::PlanContext context{.prices = by_cost ? &*prices_ : nullptr,
                                  .memory_limit = way.limit,
                                  .in_flight = way.in_flight,
                                  .chunks = shape_.chunks,
                                  .placement = schedule_.placement,
                                  .split_backward = splits_,
                                  .updates_each_microbatch = schedule_.asynchronous,
                                  .stages = StagesOf(way),
                                  .batch_lost = setting_.notes.batch_lost};
  ORRERY_ASSIGN_OR_RETURN(context.slices, SlicesOf({setting_, schedule_, plan, context}));
  ORRERY_ASSIGN_OR_RETURN(transforms::PipelinedStep pipelined,
                          transforms::ParallelTransform3d(step(), plan, context));
  const plan_player_cc::Played played{setting_, plan, pipelined, schedule_};
  const int32_t rounds = RoundsFor(schedule_, shape_);
  ORRERY_ASSIGN_OR_RETURN(Run run, plan_player_cc::PlayRounds(played, rounds));
  run.slices = context.slices;
  if (!schedule_.asynchronous) {
    run.pipelined = std::move(pipelined);
    return run;
  }
  simulator::Report shorter = std::move(run.report);
  const int32_t batches = RoundsOfAPeriod(schedule_, shape_);
  ORRERY_ASSIGN_OR_RETURN(run, plan_player_cc::PlayRounds(played, rounds + batches));
  if (run.program.rank_count() < shorter.ranks.size()) {  // too many tasks to simulate each rank
    ORRERY_ASSIGN_OR_RETURN(Run folded,
                            plan_player_cc::PlayRounds(played, rounds, /*always_fold=*/true));
    shorter = std::move(folded.report);
  }
  run.report = Difference(run.program, std::move(run.report), shorter, batches);
  run.pipelined = std::move(pipelined);
  return run;
}

}  // namespace orrery::search
