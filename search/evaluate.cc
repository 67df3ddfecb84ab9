#include "search/evaluate.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lowering/sharding_prices.h"
#include "search/memory_fit.h"
#include "search/model_flops.h"
#include "search/slices.h"
#include "search/stage_weights.h"
#include "search/steady_state.h"
#include "simulator/play.h"
#include "simulator/time_alone.h"
#include "support/check.h"
#include "transforms/parallel.h"
#include "transforms/schedules/orders.h"
#include "transforms/schedules/schedule.h"
#include "transforms/split_backward.h"

namespace orrery::search {
namespace {

using cluster::DeviceId;

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Size of an element in the type in which most of the model computes.
int64_t ElementSize(const ir::Function& step) {
  for (const ir::Input& input : step.inputs()) {
    if (input.role != ir::InputRole::kParameter) continue;
    return ir::SizeOf(step.type(input.value).dtype);
  }
  return 4;
}

// Peak flops/s of the first `ranks` devices together, in that type, or that of 8-bit products.
double PeakRate(const Setting& setting, int64_t ranks) {
  const int64_t size = setting.fp8_mixed ? 1 : ElementSize(setting.step);
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

simulator::ModelFigures FiguresOf(const Setting& setting, const Run& run) {
  const simulator::Report& report = run.report;
  const double step_s = report.step_time.seconds();
  if (step_s <= 0) return {};
  const double peak = PeakRate(setting, std::max<int64_t>(1, report.rank_count));
  const double samples = static_cast<double>(setting.batch_size) / step_s;
  const double model_flops =
      setting.model_flops.count() - FlopsBeyondSlices(setting.step, run.slices).count();
  return {.throughput_samples_per_s = samples,
          .tokens_per_s = samples * static_cast<double>(setting.tokens_a_sample),
          .mfu = model_flops / step_s / peak,
          .hfu = report.flops.count() / step_s / peak,
          .wall_time_s = 0};
}

absl::StatusOr<Run> PlayRounds(const Setting& setting, const transforms::PipelinedStep& step,
                               const transforms::PipelineSchedule& schedule, int32_t rounds) {
  Run run;
  run.rounds = rounds;
  lowering::LoweringOptions options = setting.lowering;
  options.fuse_runs = !options.every_link;  // who asks for links wants to see kernels, too
  ORRERY_ASSIGN_OR_RETURN(run.program, lowering::Lower({.step = step,
                                                        .schedule = schedule,
                                                        .cluster = setting.cluster,
                                                        .cost_model = *setting.cost_model,
                                                        .options = options,
                                                        .rounds = rounds,
                                                        .placed = &run.steps}));
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
  simulator::AddFragmentation(run.program, setting.lowering.memory_overhead.fragmentation,
                              run.report);
  return run;
}

// Whether `a` is the better run: one that fits, then the faster one.
bool IsBetter(const Run& a, const Run& b) {
  if (a.report.fits != b.report.fits) return a.report.fits;
  return a.report.step_time < b.report.step_time;
}

// One way to spread a candidate.
struct Way {
  bool by_cost = true;
  transforms::ContextAttention attention = transforms::ContextAttention::kAuto;
  Bytes limit = Bytes(0);  // of memory; 0: none
};

// Plays one candidate, in as many ways as it takes to find the best.
class CandidatePlayer {
 public:
  CandidatePlayer(const Setting& setting, const Candidate& candidate)
      : setting_(setting),
        candidate_(candidate),
        degrees_{.dp = candidate.dp,
                 .hp = candidate.hp,
                 .pp = candidate.pp,
                 .microbatches = candidate.microbatches,
                 .order = setting.order,
                 .cp = candidate.cp,
                 .ep = candidate.ep} {}

  absl::StatusOr<Run> Best() {
    const auto start = std::chrono::steady_clock::now();
    ORRERY_RETURN_IF_ERROR(Prepare());
    ORRERY_ASSIGN_OR_RETURN(Run best, WithinMemory(attention_));
    for (const transforms::ContextAttention way : FurtherAttentions()) {
      ORRERY_RETURN_IF_ERROR(Improve(WithinMemory(way), best));
    }
    if (HasPattern()) ORRERY_RETURN_IF_ERROR(Improve(Once({.by_cost = false}), best));
    best.figures = FiguresOf(setting_, best);
    best.figures.wall_time_s = SecondsSince(start);
    return best;
  }

 private:
  absl::Status Prepare() {
    ORRERY_ASSIGN_OR_RETURN(schedule_, ScheduleOf(setting_, candidate_));
    ORRERY_ASSIGN_OR_RETURN(
        recompute_, Annotated(transforms::ParseRecomputePolicy(candidate_.recompute), "recompute"));
    ORRERY_ASSIGN_OR_RETURN(
        offload_, Annotated(transforms::ParseOffloadPolicy(candidate_.offload), "offload"));
    offload_.prefetch = setting_.offload_prefetch;
    ORRERY_ASSIGN_OR_RETURN(mesh_, transforms::MakeMesh(degrees_));
    shape_ = ShapeOf(schedule_, candidate_);
    ORRERY_RETURN_IF_ERROR(schedule_.CheckShape(shape_));
    if (candidate_.chunks != 0 && candidate_.chunks != shape_.chunks) {
      return absl::InvalidArgumentError(
          absl::StrCat(ToString(candidate_), ": wanted --chunks ", shape_.chunks, ", or none"));
    }
    ORRERY_RETURN_IF_ERROR(CheckSize());
    ORRERY_RETURN_IF_ERROR(SplitBackward());
    if (degrees_.ranks() > setting_.cluster.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat(setting_.cluster.name, " has ", setting_.cluster.size(), " devices; ",
                       ToString(candidate_), " wants ", degrees_.ranks()));
    }
    attention_ = setting_.sharding.context_attention;
    if (!setting_.shard_by_cost && !WeighsStages()) return absl::OkStatus();
    prices_.emplace(mesh_, setting_.cluster, *setting_.cost_model,
                    lowering::ShardingPricesOptions{.algorithms = setting_.lowering.algorithms});
    limit_ = setting_.lowering.device_memory ? setting_.cluster.device.memory
                                             : setting_.lowering.memory_limit;
    return absl::OkStatus();
  }

  // Before there are orders for them.
  absl::Status CheckSize() const {
    const int64_t ops = std::ssize(setting_.step.order());
    if (shape_.stages() <= ops) return CheckSliceCount(schedule_, shape_.microbatches, ops);
    return InfeasibleStatus({.reason = InfeasibleReason::kDivisibility,
                             .detail = absl::StrCat(ops, " ops do not cut into ", shape_.stages(),
                                                    " stages; try fewer of --chunks or --pp")});
  }

  // Schedules that part backwards need ops that do not make both gradients.
  absl::Status SplitBackward() {
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

  bool WeighsStages() const { return candidate_.pp > 1 && search::WeighsStages(setting_.stages); }

  transforms::StageChoice Stages(const Way& way) const {
    transforms::StageChoice choice = setting_.stages;
    if (!WeighsStages()) return choice;
    choice.prices = &*prices_;
    choice.send_seconds = StageSends(mesh_, setting_.cluster, *setting_.cost_model);
    if (!schedule_.asynchronous) choice.schedule = &ranks_;
    if (way.limit > Bytes(0)) LimitMemory(schedule_, ranks_, way.limit, choice);
    return choice;
  }

  // Takes the other run where it is better.
  static absl::Status Improve(absl::StatusOr<Run> other, Run& best) {
    if (!other.ok()) {
      return AsInfeasible(other.status()).has_value() ? absl::OkStatus() : other.status();
    }
    if (IsBetter(*other, best)) best = *std::move(other);
    return absl::OkStatus();
  }

  // What travels behind attention, no price tells before all axes are spread.
  std::vector<transforms::ContextAttention> FurtherAttentions() const {
    using transforms::ContextAttention;
    const bool open =
        setting_.shard_by_cost && candidate_.cp > 1 && attention_ == ContextAttention::kAuto;
    if (!open) return {};
    return {ContextAttention::kAllToAll, ContextAttention::kAllGather, ContextAttention::kRing};
  }

  // Whether Megatron's pattern is another choice: prices know of no overlap, so that it can be the
  // better one.
  bool HasPattern() const {
    return setting_.shard_by_cost && candidate_.hp > 1 && candidate_.cp * candidate_.ep == 1 &&
           setting_.sharding.pins.empty() && !setting_.sharding.sequence_parallel;
  }

  // The fastest first. What the choice of a sharding counts is not what is needed in the end: where
  // that does not fit, again with less, and less.
  absl::StatusOr<Run> WithinMemory(transforms::ContextAttention attention) {
    constexpr int kTired = 2;
    ORRERY_ASSIGN_OR_RETURN(Run best, Once({.attention = attention}));
    const bool spread = setting_.shard_by_cost && candidate_.hp * candidate_.cp * candidate_.ep > 1;
    const bool chosen = spread || WeighsStages();
    const int most_tries = spread ? 5 : 2;
    auto limit = static_cast<double>(limit_.count());
    // What the first stage holds at once is for the schedule to say.
    if (chosen && limit > 0 && !best.report.fits && candidate_.pp > 1) {
      in_flight_ =
          (transforms::PeakLive(ranks_.orders.front()) + shape_.chunks - 1) / shape_.chunks;
    }
    Bytes peak;
    int in_vain = 0;  // tries
    for (int i = 0; i < most_tries && chosen && limit > 0 && !best.report.fits; ++i) {
      const absl::StatusOr<Run> run =
          Once({.attention = attention, .limit = Bytes(static_cast<int64_t>(limit))});
      if (!run.ok()) break;
      if (run->report.peak_memory == peak && ++in_vain == kTired) break;
      peak = run->report.peak_memory;
      limit *= 0.95 * static_cast<double>(limit_.count()) / static_cast<double>(peak.count());
      const bool less = peak < best.report.peak_memory;
      if (run->report.fits || less) best = *run;
    }
    return best;
  }

  absl::StatusOr<Run> Once(const Way& way) {
    const bool by_cost = way.by_cost && setting_.shard_by_cost;
    transforms::SpreadOptions options{.prices = by_cost ? &*prices_ : nullptr,
                                      .sharding = setting_.sharding,
                                      .stages = {.equal_stages = setting_.equal_stages,
                                                 .split_backward = splits_,
                                                 .chunks = shape_.chunks,
                                                 .placement = schedule_.placement,
                                                 .choice = Stages(way)},
                                      .in_flight = in_flight_,
                                      .updates_each_microbatch = schedule_.asynchronous,
                                      .recompute = recompute_,
                                      .fp8_mixed = setting_.fp8_mixed,
                                      .offload = offload_};
    if (candidate_.zero != 0) options.zero = setting_.zero;
    options.zero.stage = candidate_.zero;
    options.sharding.context_attention = way.attention;
    options.sharding.memory_limit = way.limit;
    ORRERY_ASSIGN_OR_RETURN(options.slices, SlicesOf({setting_, schedule_, degrees_, options}));
    ORRERY_ASSIGN_OR_RETURN(const transforms::PipelinedStep step,
                            transforms::ParallelTransform3d(step_of_one(), degrees_, options));
    const int32_t rounds = RoundsFor(schedule_, shape_);
    ORRERY_ASSIGN_OR_RETURN(Run run, PlayRounds(setting_, step, schedule_, rounds));
    run.slices = options.slices;
    if (!schedule_.asynchronous) return run;
    const simulator::Report shorter = std::move(run.report);
    const int32_t batches = RoundsOfACycle(schedule_, shape_);
    ORRERY_ASSIGN_OR_RETURN(run, PlayRounds(setting_, step, schedule_, rounds + batches));
    run.report = Difference(run.program, std::move(run.report), shorter, batches);
    return run;
  }

  const ir::Function& step_of_one() const {
    return split_step_.has_value() ? *split_step_ : setting_.step;
  }

  const Setting& setting_;
  const Candidate& candidate_;
  const transforms::ParallelDegrees degrees_;
  transforms::PipelineSchedule schedule_;
  transforms::PipelineShape shape_;
  transforms::ScheduledRanks ranks_;
  bool splits_ = false;                     // backwards
  std::optional<ir::Function> split_step_;  // then
  transforms::RecomputePolicy recompute_;
  transforms::OffloadPolicy offload_;
  ir::Mesh mesh_;
  std::optional<lowering::ClusterShardingPrices> prices_;  // of what is chosen by cost
  transforms::ContextAttention attention_ = transforms::ContextAttention::kAuto;
  Bytes limit_;
  int64_t in_flight_ = 0;
};

}  // namespace

absl::StatusOr<transforms::PipelineSchedule> ScheduleOf(const Setting& setting,
                                                        const Candidate& candidate) {
  if (!setting.orders.has_value()) {
    ORRERY_ASSIGN_OR_RETURN(const transforms::PipelineSchedule* schedule,
                            transforms::FindSchedule(candidate.schedule));
    return *schedule;
  }
  const transforms::PipelineShape& shape = setting.orders->shape;
  if (shape.ranks != candidate.pp || shape.microbatches != candidate.microbatches) {
    return absl::InvalidArgumentError(absl::StrCat(
        ToString(candidate, setting.orders_file), ": the orders are of ", shape.ranks,
        " ranks and ", shape.microbatches, " microbatches; wanted --pp and --micro-batches alike"));
  }
  transforms::PipelineSchedule schedule = **transforms::FindSchedule("1f1b");
  schedule.placement = setting.orders->placement;
  schedule.chunks = shape.chunks;
  schedule.given = &setting.orders->orders;
  return schedule;
}

transforms::PipelineShape ShapeOf(const transforms::PipelineSchedule& schedule,
                                  const Candidate& candidate) {
  const auto number = [](int64_t n) {
    return static_cast<int32_t>(std::min<int64_t>(n, std::numeric_limits<int32_t>::max()));
  };
  return schedule.ShapeOf(number(candidate.pp), number(candidate.microbatches),
                          number(candidate.chunks));
}

absl::StatusOr<Run> Play(const Setting& setting, const Candidate& candidate) {
  return CandidatePlayer(setting, candidate).Best();
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
  if (!result.fits) {
    result.infeasible = {.reason = InfeasibleReason::kMemory, .detail = MisfitText(*run)};
  }
  return result;
}

}  // namespace orrery::search
