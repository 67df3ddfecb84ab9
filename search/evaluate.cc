#include "search/evaluate.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "simulator/longest_path.h"
#include "transforms/parallel.h"
#include "transforms/schedules/schedule.h"

namespace orrery::search {
namespace {

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Rounds that an asynchronous pipeline is played for: enough to fill it before the round that is
// measured, and one more to drain it.
int32_t RoundsFor(const transforms::PipelineSchedule& schedule, const Candidate& candidate) {
  if (!schedule.asynchronous) return 1;
  const int64_t to_fill = (2 * candidate.pp + candidate.microbatches - 1) / candidate.microbatches;
  return static_cast<int32_t>(3 + to_fill);
}

// When the first stage has finished its last update of each round.
std::vector<Time> RoundEnds(const Run& run, int32_t microbatches) {
  std::vector<Time> ends(static_cast<size_t>(run.rounds));
  for (int32_t t = 0; t < run.program.task_count(); ++t) {
    const simulator::TaskId task(t);
    const simulator::TaskLabel& label = run.program.label(run.program.label_of(task));
    if (label.stage != 0 || label.kind == simulator::TaskKind::kSend) continue;
    const int32_t microbatch = std::max(0, run.program.microbatch_of(task));
    Time& end = ends[static_cast<size_t>(microbatch / microbatches)];
    end = std::max(end, run.trace.finish[static_cast<size_t>(t)]);
  }
  return ends;
}

// An asynchronous pipeline never drains, so its step is the distance between two rounds' ends while
// it is full, and what it does in a step is its share of what it did in all rounds.
void MeasureSteadyState(Run& run, int32_t microbatches) {
  const std::vector<Time> ends = RoundEnds(run, microbatches);
  simulator::Report& report = run.report;
  const double whole_s = report.step_time.seconds();
  report.step_time = ends[ends.size() - 2] - ends[ends.size() - 3];
  const double step_s = report.step_time.seconds();
  const double working_s = (1 - report.bubble_fraction) * whole_s / run.rounds;
  report.bubble_fraction = std::max(0.0, 1 - working_s / step_s);
  report.exposed_communication_s /= run.rounds;
  report.bytes_sent = Bytes(report.bytes_sent.count() / run.rounds);
  report.bytes_reduced = Bytes(report.bytes_reduced.count() / run.rounds);
  report.flops = Flops(report.flops.count() / run.rounds);
}

// Peak flops of the device in the type in which most of the model computes.
FlopRate PeakRate(const Setting& setting) {
  for (const ir::Input& input : setting.step.inputs()) {
    if (input.role != ir::InputRole::kParameter) continue;
    const int64_t size = ir::SizeOf(setting.step.type(input.value).dtype);
    const cluster::Device& device = setting.cluster.device;
    return size >= 4 ? device.fp32 : size == 2 ? device.fp16 : device.fp8;
  }
  return setting.cluster.device.fp32;
}

simulator::ModelFigures FiguresOf(const Setting& setting, const simulator::Report& report) {
  const double step_s = report.step_time.seconds();
  if (step_s <= 0) return {};
  const double peak = PeakRate(setting).flops_per_second() *
                      static_cast<double>(std::max<int64_t>(1, report.rank_count));
  const double samples = static_cast<double>(setting.batch_size) / step_s;
  return {.throughput_samples_per_s = samples,
          .tokens_per_s = samples * static_cast<double>(setting.tokens_a_sample),
          .mfu = setting.step_flops.count() / step_s / peak,
          .hfu = report.flops.count() / step_s / peak,
          .wall_time_s = 0};
}

// What does not fit, by how much: "needs 45.2 GiB on rank 0; the device has 40.0 GiB".
Infeasible TooLarge(const Run& run, Bytes limit) {
  int32_t rank = 0;
  for (int32_t r = 0; r < run.program.rank_count(); ++r) {
    const simulator::RankClassId id(r);
    if (run.report.ranks[id].memory.total == run.report.peak_memory) {
      rank = run.program.rank(id).members.front();
      break;
    }
  }
  return {.reason = InfeasibleReason::kMemory,
          .detail = absl::StrCat("needs ", ToString(run.report.peak_memory), " on rank ", rank,
                                 "; the limit is ", ToString(limit))};
}

}  // namespace

Flops CountFlops(const ir::Function& step) {
  Flops total;
  std::vector<const ir::TensorType*> operands, results;
  for (const ir::OpId op : step.order()) {
    operands.clear();
    results.clear();
    for (const ir::ValueId operand : step.operands(op)) operands.push_back(&step.type(operand));
    for (int32_t i = 0; i < step.result_count(op); ++i) {
      results.push_back(&step.type(step.result(op, i)));
    }
    total += cost_models::FlopsOf({.kind = step.kind(op),
                                   .attributes = step.attributes(op),
                                   .operands = operands,
                                   .results = results});
  }
  return total;
}

absl::StatusOr<Run> Play(const Setting& setting, const Candidate& candidate) {
  const auto start = std::chrono::steady_clock::now();
  ORRERY_ASSIGN_OR_RETURN(const transforms::PipelineSchedule* schedule,
                          transforms::FindSchedule(candidate.schedule));
  ORRERY_ASSIGN_OR_RETURN(
      const transforms::PipelinedStep step,
      transforms::ParallelTransform3d(setting.step, {.dp = candidate.dp,
                                                     .hp = candidate.hp,
                                                     .pp = candidate.pp,
                                                     .microbatches = candidate.microbatches,
                                                     .order = setting.order}));
  Run run;
  run.rounds = RoundsFor(*schedule, candidate);
  ORRERY_ASSIGN_OR_RETURN(run.program, lowering::Lower({.step = step,
                                                        .schedule = *schedule,
                                                        .cluster = setting.cluster,
                                                        .cost_model = *setting.cost_model,
                                                        .options = setting.lowering,
                                                        .rounds = run.rounds}));
  simulator::RunLongestPath(run.program, run.trace);
  run.report = simulator::Summarize(run.program, run.trace);
  if (schedule->asynchronous) {
    MeasureSteadyState(run, static_cast<int32_t>(candidate.microbatches));
  }
  run.figures = FiguresOf(setting, run.report);
  run.figures.wall_time_s = SecondsSince(start);
  return run;
}

absl::StatusOr<Result> Evaluate(const Setting& setting, const Candidate& candidate) {
  Result result;
  result.candidate = candidate;
  const absl::StatusOr<Run> run = Play(setting, candidate);
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
  if (!result.fits) result.infeasible = TooLarge(*run, setting.lowering.memory_limit);
  return result;
}

}  // namespace orrery::search
