#include "search/evaluate.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/last_of_kind.h"
#include "lowering/sharding_prices.h"
#include "simulator/play.h"
#include "simulator/time_alone.h"
#include "support/check.h"
#include "transforms/parallel.h"
#include "transforms/schedules/schedule.h"

namespace orrery::search {
namespace {

using cluster::DeviceId;

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Batches that an asynchronous pipeline is played for: enough to fill it, and one.
int32_t RoundsFor(const transforms::PipelineSchedule& schedule, const Candidate& candidate) {
  if (!schedule.asynchronous) return 1;
  const int64_t to_fill = (2 * candidate.pp + candidate.microbatches - 1) / candidate.microbatches;
  return static_cast<int32_t>(1 + to_fill);
}

// Batches after which an asynchronous pipeline that is full is where it was: a stage goes through
// its versions of the weights in pp microbatches, and not each need take as long as the next.
int32_t RoundsOfACycle(const Candidate& candidate) {
  return static_cast<int32_t>(candidate.pp / std::gcd(candidate.pp, candidate.microbatches));
}

void Divide(int32_t batches, simulator::Report& step) {
  const auto part = [&](Duration of) { return Duration(of.picoseconds() / batches); };
  step.step_time = part(step.step_time + Duration(batches - 1));
  step.bytes_sent = Bytes(step.bytes_sent.count() / batches);
  step.bytes_reduced = Bytes(step.bytes_reduced.count() / batches);
  step.flops = Flops(step.flops.count() / batches);
  for (simulator::RankReport& rank : step.ranks.rows()) {
    for (Duration* of :
         {&rank.finish, &rank.busy, &rank.communication, &rank.exposed_communication, &rank.idle}) {
      *of = part(*of);
    }
  }
  step.shares.Divide(batches);
}

// The report of one of the `batches` by which two runs of a full pipeline differ: filling and
// draining are in both. Memory is that of the longer run.
simulator::Report Difference(const Run& longer, const simulator::Report& shorter, int32_t batches) {
  simulator::Report step = longer.report;
  step.step_time -= shorter.step_time;
  Duration busiest = step.step_time;
  step.bytes_sent -= shorter.bytes_sent;
  step.bytes_reduced -= shorter.bytes_reduced;
  step.flops = Flops(step.flops.count() - shorter.flops.count());
  for (size_t r = 0; r < step.ranks.rows().size(); ++r) {
    simulator::RankReport& rank = step.ranks.rows()[r];
    const simulator::RankReport& before = shorter.ranks.rows()[r];
    rank.finish -= before.finish;
    rank.busy -= before.busy;
    rank.communication -= before.communication;
    rank.exposed_communication -= before.exposed_communication;
    rank.idle -= before.idle;
    busiest = std::max(busiest, step.step_time - rank.idle);
  }
  // Where the pipeline has not quite settled, no rank goes on before it is done all the same.
  for (simulator::RankReport& rank : step.ranks.rows()) {
    rank.idle += busiest - step.step_time;
    rank.finish = std::min(rank.finish, busiest);
  }
  step.step_time = busiest;
  step.shares.Subtract(shorter.shares);
  Divide(batches, step);
  simulator::SetRatios(longer.program, step);
  return step;
}

// Size of an element in the type in which most of the model computes.
int64_t ElementSize(const ir::Function& step) {
  for (const ir::Input& input : step.inputs()) {
    if (input.role != ir::InputRole::kParameter) continue;
    return ir::SizeOf(step.type(input.value).dtype);
  }
  return 4;
}

// Peak flops/s of the first `ranks` devices together, in that type.
double PeakRate(const Setting& setting, int64_t ranks) {
  const int64_t size = ElementSize(setting.step);
  const cluster::Cluster& cluster = setting.cluster;
  const auto peak = [&](const cluster::Device& device) {
    const FlopRate rate = size >= 4 ? device.fp32 : size == 2 ? device.fp16 : device.fp8;
    return rate.flops_per_second();
  };
  if (cluster.kind_count() == 1) return peak(cluster.device) * static_cast<double>(ranks);
  double sum = 0;
  for (int32_t rank = 0; rank < ranks; ++rank) sum += peak(cluster.device_of(DeviceId(rank)));
  return sum;
}

simulator::ModelFigures FiguresOf(const Setting& setting, const simulator::Report& report) {
  const double step_s = report.step_time.seconds();
  if (step_s <= 0) return {};
  const double peak = PeakRate(setting, std::max<int64_t>(1, report.rank_count));
  const double samples = static_cast<double>(setting.batch_size) / step_s;
  return {.throughput_samples_per_s = samples,
          .tokens_per_s = samples * static_cast<double>(setting.tokens_a_sample),
          .mfu = setting.model_flops.count() / step_s / peak,
          .hfu = report.flops.count() / step_s / peak,
          .wall_time_s = 0};
}

absl::StatusOr<Run> PlayRounds(const Setting& setting, const transforms::PipelinedStep& step,
                               const transforms::PipelineSchedule& schedule, int32_t rounds) {
  Run run;
  run.rounds = rounds;
  ORRERY_ASSIGN_OR_RETURN(run.program, lowering::Lower({.step = step,
                                                        .schedule = schedule,
                                                        .cluster = setting.cluster,
                                                        .cost_model = *setting.cost_model,
                                                        .options = setting.lowering,
                                                        .rounds = rounds}));
  if (setting.lowering.every_link) run.link_use.emplace(run.program);
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
  return run;
}

// What does not fit, by how much: "needs 45.2 GiB on rank 0; the limit is 40.0 GiB". Of the rank
// that needs most.
Infeasible TooLarge(const Run& run) {
  const simulator::RankClass* rank = nullptr;
  Bytes needed;
  for (int32_t r = 0; r < run.program.rank_count(); ++r) {
    const simulator::RankReport& report = run.report.ranks[simulator::RankClassId(r)];
    if (report.fits || report.memory.total <= needed) continue;
    rank = &run.program.rank(simulator::RankClassId(r));
    needed = report.memory.total;
  }
  ORRERY_CHECK(rank != nullptr) << "every rank fits";
  return {.reason = InfeasibleReason::kMemory,
          .detail = absl::StrCat("needs ", ToString(needed), " on rank ", rank->members.front(),
                                 "; the limit is ", ToString(rank->capacity))};
}

}  // namespace

Flops CountModelFlops(const ir::Function& step) {
  Flops total;
  ir::LastOfKind<Flops> known;
  std::vector<const ir::TensorType*> operands, results;
  for (const ir::OpId op : step.order()) {
    if (const Flops* const flops = known.Find(step, op); flops != nullptr) {
      total += *flops;
      continue;
    }
    operands.clear();
    results.clear();
    for (const ir::ValueId operand : step.operands(op)) operands.push_back(&step.type(operand));
    for (int32_t i = 0; i < step.result_count(op); ++i) {
      results.push_back(&step.type(step.result(op, i)));
    }
    total += known.Put(step, op,
                       cost_models::ModelFlopsOf({.kind = step.kind(op),
                                                  .attributes = step.attributes(op),
                                                  .operands = operands,
                                                  .results = results}));
  }
  return total;
}

namespace {

absl::StatusOr<transforms::PipelinedStep> Spread(const Setting& setting,
                                                 const transforms::ParallelDegrees& degrees,
                                                 const ir::Mesh& mesh,
                                                 transforms::ContextAttention attention) {
  const lowering::ClusterShardingPrices prices(mesh, setting.cluster, *setting.cost_model,
                                               {.algorithms = setting.lowering.algorithms});
  transforms::SpreadOptions options{.prices = setting.shard_by_cost ? &prices : nullptr,
                                    .sharding = setting.sharding,
                                    .equal_stages = setting.equal_stages};
  options.sharding.context_attention = attention;
  options.sharding.memory_limit = setting.lowering.device_memory ? setting.cluster.device.memory
                                                                 : setting.lowering.memory_limit;
  return transforms::ParallelTransform3d(setting.step, degrees, options);
}

absl::StatusOr<Run> PlayWith(const Setting& setting, const Candidate& candidate,
                             transforms::ContextAttention attention) {
  const auto start = std::chrono::steady_clock::now();
  ORRERY_ASSIGN_OR_RETURN(const transforms::PipelineSchedule* schedule,
                          transforms::FindSchedule(candidate.schedule));
  const transforms::ParallelDegrees degrees{.dp = candidate.dp,
                                            .hp = candidate.hp,
                                            .pp = candidate.pp,
                                            .microbatches = candidate.microbatches,
                                            .order = setting.order,
                                            .cp = candidate.cp,
                                            .ep = candidate.ep};
  ORRERY_ASSIGN_OR_RETURN(const ir::Mesh mesh, transforms::MakeMesh(degrees));
  if (degrees.ranks() > setting.cluster.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(setting.cluster.name, " has ", setting.cluster.size(), " devices; ",
                     ToString(candidate), " wants ", degrees.ranks()));
  }
  ORRERY_ASSIGN_OR_RETURN(const transforms::PipelinedStep step,
                          Spread(setting, degrees, mesh, attention));
  ORRERY_ASSIGN_OR_RETURN(Run run,
                          PlayRounds(setting, step, *schedule, RoundsFor(*schedule, candidate)));
  if (schedule->asynchronous) {
    const simulator::Report shorter = std::move(run.report);
    const int32_t batches = RoundsOfACycle(candidate);
    ORRERY_ASSIGN_OR_RETURN(run, PlayRounds(setting, step, *schedule, run.rounds + batches));
    run.report = Difference(run, shorter, batches);
  }
  run.figures = FiguresOf(setting, run.report);
  run.figures.wall_time_s = SecondsSince(start);
  return run;
}

// Whether `a` is the better run: one that fits, then the faster one.
bool IsBetter(const Run& a, const Run& b) {
  if (a.report.fits != b.report.fits) return a.report.fits;
  return a.report.step_time < b.report.step_time;
}

}  // namespace

absl::StatusOr<Run> Play(const Setting& setting, const Candidate& candidate) {
  using transforms::ContextAttention;
  const ContextAttention attention = setting.sharding.context_attention;
  absl::StatusOr<Run> best = PlayWith(setting, candidate, attention);
  const bool open = attention == ContextAttention::kAuto && candidate.cp > 1;
  if (!best.ok() || !open) return best;
  // What travels behind attention, no price tells before all axes are spread.
  double wall_time_s = best->figures.wall_time_s;
  for (const ContextAttention way :
       {ContextAttention::kAllToAll, ContextAttention::kAllGather, ContextAttention::kRing}) {
    absl::StatusOr<Run> run = PlayWith(setting, candidate, way);
    if (!run.ok()) continue;
    wall_time_s += run->figures.wall_time_s;
    if (IsBetter(*run, *best)) best = std::move(run);
  }
  best->figures.wall_time_s = wall_time_s;
  return best;
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
  if (!result.fits) result.infeasible = TooLarge(*run);
  return result;
}

}  // namespace orrery::search
