#include "search/evaluate.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <string>

#include "absl/strings/str_cat.h"
#include "search/attempts.h"
#include "search/bounds/least_memory.h"
#include "search/details.h"
#include "search/memory_fit.h"
#include "search/settings/model_flops.h"
#include "transforms/plan/plan_text.h"

namespace orrery::search {
namespace evaluate_cc {
namespace {

using cluster::DeviceId;

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Peak flops/s of the devices of a run together, in the type in which most products are
// computed, or that of products of copies.
double PeakRate(const Setting& setting, const ParallelPlan& plan, const Run& run) {
  const int64_t ranks = std::max<int64_t>(1, run.report.rank_count);
  const ir::DType dtype = plan.copies().value_or(ProductType(setting.step));
  const int64_t size = ir::SizeOf(dtype);
  const cluster::Cluster& cluster = setting.cluster;
  const auto peak = [&](const cluster::Device& device) {
    if (dtype == ir::DType::kF4) return device.fp4.flops_per_second();
    const FlopRate rate = size >= 4 ? device.fp32 : size == 2 ? device.fp16 : device.fp8;
    return rate.flops_per_second();
  };
  if (cluster.kind_count() == 1) return peak(cluster.device) * static_cast<double>(ranks);
  double sum = 0;
  for (const transforms::StagePlace& place : run.pipelined.unequal.places) {
    for (const int32_t device : place.devices) sum += peak(cluster.device_of(DeviceId(device)));
  }
  if (sum > 0) return sum;
  for (int32_t rank = 0; rank < ranks; ++rank) sum += peak(cluster.device_of(DeviceId(rank)));
  return sum;
}

simulator::ModelFigures FiguresOf(const Setting& setting, const ParallelPlan& plan,
                                  const Run& run) {
  const simulator::Report& report = run.report;
  const double step_s = report.step_time.seconds();
  if (step_s <= 0) return {};
  const double peak = PeakRate(setting, plan, run);
  const double samples = static_cast<double>(setting.batch_size) / step_s;
  const double model_flops =
      setting.model_flops.count() - FlopsBeyondSlices(setting.step, run.slices).count();
  return {.throughput_samples_per_s = samples,
          .tokens_per_s = samples * static_cast<double>(setting.tokens_a_sample),
          .mfu = model_flops / step_s / peak,
          .hfu = report.flops.count() / step_s / peak,
          .wall_time_s = 0};
}

constexpr double kSecondsAnHour = 3600;

// Infeasible where gradients of an asynchronous schedule come later than the setting allows.
absl::Status CheckStaleness(const Setting& setting, const ParallelPlan& plan, const Run& run) {
  if (!setting.most_staleness.has_value()) return absl::OkStatus();
  ORRERY_ASSIGN_OR_RETURN(const transforms::PipelineSchedule schedule, ScheduleOf(setting, plan));
  for (const simulator::StageVersions& of : VersionsOf(schedule, ShapeOf(schedule, plan), run)) {
    if (of.staleness <= *setting.most_staleness) continue;
    return InfeasibleStatus(
        {.reason = InfeasibleReason::kSchedule,
         .detail = absl::StrCat("with ", schedule.name, " gradients of stage ", of.stage, " are ",
                                of.staleness, of.staleness == 1 ? " update" : " updates",
                                " late; the limit is ", *setting.most_staleness)});
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace evaluate_cc

absl::StatusOr<Run> Play(const Setting& setting, const ParallelPlan& plan) {
  PlayBudget unlimited;
  return Play(setting, plan, unlimited);
}

namespace evaluate_cc {
namespace {

// How a plan is played.
struct Playing {
  bool figures_alone = false;
  PartStore* parts = nullptr;
};

absl::StatusOr<Run> PlayWays(const Setting& setting, const ParallelPlan& plan, PlayBudget& budget,
                             const Playing& how) {
  if (const std::string key = StepKey(plan), made = StepKey(setting.made_for); key != made) {
    return absl::InvalidArgumentError(absl::StrCat(
        ToString(plan, setting.base), ": the setting's step is of ", made,
        "; wanted a setting of the plan's own values, as search::Settings makes them"));
  }
  const auto start = std::chrono::steady_clock::now();
  const PlayBudget given = budget;
  // Stages of their own are sharded by themselves, for each way and each cut.
  constexpr Bytes kRoomForStages(int64_t{64} << 20);
  PartStore of_stages(kRoomForStages);
  PartStore* const parts = how.parts == nullptr && plan.unequal() ? &of_stages : how.parts;
  for (const bool skips : {true, false}) {
    budget = given;
    PlanPlayer player(setting, plan, budget);
    if (how.figures_alone) player.WantFiguresAlone();
    if (!skips) player.PlayAll();
    player.ShareParts(parts);
    ORRERY_RETURN_IF_ERROR(player.Prepare());
    ORRERY_ASSIGN_OR_RETURN(Run best, BestRun(player));
    if (!player.Complete(best)) continue;
    ORRERY_RETURN_IF_ERROR(CheckStaleness(setting, plan, best));
    best.figures = FiguresOf(setting, plan, best);
    best.work = player.work();
    best.figures.wall_time_s = SecondsSince(start);
    return best;
  }
  return absl::InternalError("a run in which nothing is skipped has a report that is not its own");
}

}  // namespace
}  // namespace evaluate_cc

absl::StatusOr<Run> Play(const Setting& setting, const ParallelPlan& plan, PlayBudget& budget) {
  return evaluate_cc::PlayWays(setting, plan, budget, {});
}

absl::StatusOr<Run> PlayForFigures(const Setting& setting, const ParallelPlan& plan,
                                   PlayBudget& budget, PartStore* parts) {
  return evaluate_cc::PlayWays(setting, plan, budget, {.figures_alone = true, .parts = parts});
}

absl::StatusOr<Duration> StepTimeOf(const Setting& setting, const ParallelPlan& plan,
                                    const transforms::PipelinedStep& step) {
  PlanPlayer player(setting, plan);
  ORRERY_RETURN_IF_ERROR(player.Prepare());
  return player.StepTimeOf(step);
}

GoalFigures GoalFiguresOf(const Result& result) {
  return {result.step_time, result.peak_memory, result.plan.ranks()};
}

double PriceOfSample(const Setting& setting, const Result& result) {
  if (!result.ran) return 0;
  return setting.device_hour * static_cast<double>(result.plan.ranks()) *
         result.step_time.seconds() / evaluate_cc::kSecondsAnHour /
         static_cast<double>(setting.batch_size);
}

Result CannotFitResult(const Setting& setting, const ParallelPlan& plan, Bytes least) {
  Result result;
  result.plan = plan;
  result.peak_memory = least;
  result.infeasible = {
      .reason = InfeasibleReason::kMemory,
      .detail =
          absl::StrCat("parameters and optimizer state alone need ", ToString(result.peak_memory),
                       " a rank at least; the limit is ", ToString(MemoryLimit(setting, plan)))};
  return result;
}

absl::StatusOr<Result> Evaluate(const Setting& setting, const ParallelPlan& plan, PartStore* parts,
                                PlayBudget budget) {
  const Bytes least = LeastMemory(setting, plan);
  if (CannotFit(least, setting, plan)) return CannotFitResult(setting, plan, least);
  Result result;
  result.plan = plan;
  const absl::StatusOr<Run> run = PlayForFigures(setting, plan, budget, parts);
  if (!run.ok()) {
    result.infeasible = AsInfeasible(run.status());
    if (result.infeasible.has_value()) return result;
    return run.status();
  }
  result.ran = true;
  result.step_time = run->report.step_time;
  result.figures = run->figures;
  result.communication_overhead = run->report.communication_overhead;
  result.exposed_communication_s = run->report.exposed_communication_s;
  result.bubble_fraction = run->report.bubble_fraction;
  result.peak_memory = run->report.peak_memory;
  result.simulated_tasks = run->report.simulated_tasks;
  result.fits = run->report.fits;
  result.gathered = transforms::ToString(run->pipelined.gathered);
  if (!result.fits) {
    result.infeasible = {.reason = InfeasibleReason::kMemory, .detail = MisfitText(*run)};
  }
  return result;
}

namespace evaluate_cc {
namespace {

// An exception must not leave a thread.
absl::StatusOr<Result> EvaluateSafely(const SettingOf& setting_of, const ParallelPlan& plan,
                                      PartStore& parts,
                                      std::chrono::steady_clock::time_point until) {
  try {
    return Evaluate(setting_of(plan), plan, &parts, {.until = until});
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory; try fewer microbatches or fewer threads");
  } catch (const std::exception& error) {
    return absl::InternalError(error.what());
  }
}

}  // namespace
}  // namespace evaluate_cc

absl::StatusOr<Result> EvaluateAsRow(const SettingOf& setting_of, const ParallelPlan& plan,
                                     PartStore& parts,
                                     std::chrono::steady_clock::time_point until) {
  absl::StatusOr<Result> result = evaluate_cc::EvaluateSafely(setting_of, plan, parts, until);
  if (result.ok() || absl::IsInvalidArgument(result.status()) ||
      absl::IsDeadlineExceeded(result.status())) {
    return result;
  }
  Result failed;
  failed.plan = plan;
  failed.infeasible = {.reason = InfeasibleReason::kUnsupported,
                       .detail = std::string(result.status().message())};
  return failed;
}

RunCost CostOfRun(const Setting& setting, const Result& result) {
  RunCost cost;
  if (setting.run_samples < 1 || !result.ran) return cost;
  cost.steps = (setting.run_samples - 1) / setting.batch_size + 1;
  cost.seconds = static_cast<double>(cost.steps) * result.step_time.seconds();
  cost.device_hours =
      cost.seconds * static_cast<double>(result.plan.ranks()) / evaluate_cc::kSecondsAnHour;
  cost.price = cost.device_hours * setting.device_hour;
  return cost;
}

}  // namespace orrery::search
