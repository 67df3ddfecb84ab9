#include "search/play_step.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "search/runs/skip_ahead.h"
#include "simulator/engine/play.h"
#include "simulator/program/time_alone.h"
#include "support/check.h"
#include "support/status.h"

namespace orrery::search {
namespace play_step_cc {
namespace {

// All that `of` and the options say, of one batch.
lowering::LoweringInput InputOf(const Played& of, const lowering::LoweringOptions& options) {
  return {.step = of.step,
          .schedule = of.schedule,
          .cluster = of.setting.cluster,
          .cost_model = *of.setting.cost_model,
          .options = options,
          .exchanges = &of.exchanges};
}

lowering::LoweringOptions OptionsOf(const Played& of) {
  lowering::LoweringOptions options = LoweringOf(of.setting, of.plan);
  options.fuse_runs = options.fuse_stretches =
      !options.every_link;  // who asks for links wants to see kernels, too
  options.names = of.names;
  if (options.blocking && options.names) options.fuse_runs = false;  // a trace, op by op
  return options;
}

absl::Status PlayProgram(bool every_link, Run& run) {
  if (every_link) run.link_use.emplace(run.program);
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
  return absl::OkStatus();
}

absl::StatusOr<Run> PlayOnce(const Played& of, int32_t rounds,
                             const lowering::LoweringOptions& options) {
  ORRERY_ASSIGN_OR_RETURN(Run run, PlayAlone(of, rounds, options));
  run.report = simulator::Summarize(run.program, run.trace);
  simulator::AddFragmentation(run.program, options.memory_overhead.fragmentation, run.report);
  return run;
}

// Which of these numbers of microbatches would have shown that period: what came before it, two of
// it, and what ranks see of the end.
size_t SufficesFor(const Period& period, int64_t ranks, const std::vector<int64_t>& numbers) {
  const int64_t least = period.settled + 2 * period.microbatches + ranks;
  return static_cast<size_t>(std::ranges::lower_bound(numbers, least) - numbers.begin());
}

// A run of kernels has what it needs most from its start to its end, kernels have each their own:
// with something arriving beside them, peaks differ. Whoever looks at kernels gets the same figures
// as who does not; when a peak is reached, and by what, it is told more closely.
absl::Status TakePeaksOfRuns(const Played& of, lowering::LoweringOptions options, Run& run) {
  options.every_link = false;
  options.fuse_runs = options.fuse_stretches = true;
  ORRERY_ASSIGN_OR_RETURN(const Run plain, PlayOnce(of, run.rounds, options));
  ORRERY_CHECK(plain.report.ranks.size() == run.report.ranks.size()) << "folded otherwise";
  for (int32_t r = 0; r < run.program.rank_count(); ++r) {
    const simulator::RankClassId rank(r);
    const simulator::MemoryUse& peak = plain.report.ranks[rank].memory;
    run.report.ranks[rank].memory.total = peak.total;
    run.report.ranks[rank].memory.by_kind = peak.by_kind;
    run.report.ranks[rank].fits = plain.report.ranks[rank].fits;
  }
  run.report.communication = plain.report.communication;  // in stretches it is counted otherwise
  run.report.peak_memory = plain.report.peak_memory;
  run.report.fits = plain.report.fits;
  return absl::OkStatus();
}

}  // namespace
}  // namespace play_step_cc

absl::StatusOr<Run> PlayAlone(const Played& of, int32_t rounds,
                              const lowering::LoweringOptions& options) {
  Run run;
  run.rounds = rounds;
  lowering::LoweringInput input = play_step_cc::InputOf(of, options);
  input.rounds = rounds;
  input.lowered = &run.steps;
  ORRERY_ASSIGN_OR_RETURN(run.program, lowering::Lower(input));
  ORRERY_RETURN_IF_ERROR(play_step_cc::PlayProgram(options.every_link, run));
  return run;
}

bool HasOrders(const Run& run, const transforms::ScheduledRanks& ranks) {
  std::vector<size_t> next(ranks.orders.size(), 0);
  for (const lowering::LoweredStep& lowered : run.steps) {
    const transforms::ScheduleStep& step = lowered.step;
    const auto rank =
        static_cast<size_t>(transforms::RankOf(ranks.placement, ranks.shape, step.stage));
    if (next[rank] == ranks.orders[rank].size()) return false;
    const transforms::ScheduleStep& other = ranks.orders[rank][next[rank]++];
    if (step.kind != other.kind || step.stage != other.stage ||
        step.microbatch != other.microbatch || step.with_next != other.with_next) {
      return false;
    }
  }
  return true;
}

StepPlayer::StepPlayer(const Played& of) : of_(of), options_(play_step_cc::OptionsOf(of)) {}

absl::Status StepPlayer::PrepareFor(int32_t rounds) {
  if (prepared_.has_value() && prepared_->Serves(rounds)) return absl::OkStatus();
  lowering::LoweringInput input = play_step_cc::InputOf(of_, options_);
  input.rounds = rounds;
  return prepared_.emplace(input).Prepare();
}

std::optional<lowering::StepBound> StepPlayer::BoundOf(const transforms::RankOrders& orders) {
  if (!PrepareFor(1).ok() || !prepared_->RunsInTurn()) return std::nullopt;
  if (options_.fold && !options_.every_link) {
    return prepared_->folded() ? std::optional(prepared_->BoundOf(orders)) : std::nullopt;
  }
  lowering::LoweringOptions options = options_;
  options.fold = options.fuse_runs = options.fuse_stretches = true;
  options.every_link = false;
  lowering::PreparedStep other(play_step_cc::InputOf(of_, options));
  if (!other.Prepare().ok() || !other.folded()) return std::nullopt;
  return other.BoundOf(orders);
}

absl::StatusOr<Run> StepPlayer::PlayExtent(lowering::StepExtent extent, Telling telling) {
  Run run;
  run.rounds = extent.rounds;
  extent.lowered = &run.steps;
  ORRERY_RETURN_IF_ERROR(PrepareFor(extent.rounds));
  ORRERY_ASSIGN_OR_RETURN(run.program, prepared_->Instantiate(extent));
  ORRERY_RETURN_IF_ERROR(play_step_cc::PlayProgram(options_.every_link, run));
  const bool brief = telling == Telling::kBriefly;
  if (brief) run.brief_of = of_.plan;
  run.report = brief ? simulator::SummarizeBriefly(run.program, run.trace)
                     : simulator::Summarize(run.program, run.trace);
  return run;
}

// What an allocator loses.
void StepPlayer::AddLost(Run& run) const {
  simulator::AddFragmentation(run.program, options_.memory_overhead.fragmentation, run.report);
}

absl::StatusOr<Run> StepPlayer::PlayRounds(int32_t rounds, const transforms::RankOrders* orders) {
  const Telling telling = of_.brief ? Telling::kBriefly : Telling::kWhole;
  ORRERY_ASSIGN_OR_RETURN(Run run, PlayExtent({.rounds = rounds, .orders = orders}, telling));
  AddLost(run);
  if (!options_.every_link) return run;
  transforms::PipelineSchedule schedule = of_.schedule;
  if (orders != nullptr) schedule.given = orders;
  ORRERY_RETURN_IF_ERROR(play_step_cc::TakePeaksOfRuns(
      {of_.setting, of_.plan, of_.step, schedule, of_.exchanges, of_.names}, options_, run));
  return run;
}

absl::StatusOr<Run> StepPlayer::PlayFolded(int32_t rounds) const {
  lowering::LoweringOptions options = options_;
  options.most_unfolded_tasks = 0;
  ORRERY_ASSIGN_OR_RETURN(Run run, play_step_cc::PlayOnce(of_, rounds, options));
  if (options.every_link) ORRERY_RETURN_IF_ERROR(play_step_cc::TakePeaksOfRuns(of_, options, run));
  return run;
}

// Whether the schedule's orders of so many microbatches have a steady state at all.
bool StepPlayer::MayRepeatIn(int64_t microbatches) const {
  const int64_t ranks = of_.plan.pp;
  const int64_t chunks = std::max<int64_t>(1, std::ssize(of_.step.ranks) / ranks);
  const transforms::PipelineShape shape =
      of_.schedule.ShapeOf(static_cast<int32_t>(ranks), static_cast<int32_t>(microbatches),
                           static_cast<int32_t>(chunks));
  return of_.schedule.CheckShape(shape).ok() && MayRepeat(of_.schedule.OrdersOf(shape));
}

// The run of so many microbatches, and its period, where it has one.
std::optional<StepPlayer::Periodic> StepPlayer::PlayFew(int64_t few) {
  if (!MayRepeatIn(few)) return std::nullopt;
  absl::StatusOr<Run> run = PlayExtent({.first_microbatches = few}, Telling::kBriefly);
  if (!run.ok()) return std::nullopt;
  std::optional<Period> period = FindPeriod(*run, of_.plan.pp);
  if (!period.has_value()) return std::nullopt;
  return Periodic{*std::move(run), *std::move(period), few};
}

// A few more microbatches, so that whole periods are left out of the rest: as few as may be, or so
// many rounds of all ranks.
std::optional<StepPlayer::Periodic> StepPlayer::PlayWholePeriods(const Periodic& found) {
  const int64_t all = of_.step.microbatches, period = found.period.microbatches;
  const int64_t ranks = of_.plan.pp;
  for (const int64_t by : {int64_t{1}, ranks}) {
    int64_t few = found.microbatches;
    while ((all - few) % period != 0 && few < all) few += by;
    if (3 * few > 2 * all) continue;
    std::optional<Periodic> longer = PlayFew(few);
    if (longer.has_value() && (all - few) % longer->period.microbatches == 0) return longer;
  }
  return std::nullopt;
}

std::optional<Run> StepPlayer::PlaySkipping(size_t& first) {
  const int64_t all = of_.step.microbatches;
  const std::vector<int64_t> numbers = FewerMicrobatches(all, of_.plan.pp);
  for (size_t i = std::min(first, numbers.size()); i < numbers.size(); ++i) {
    const int64_t few = numbers[i];
    std::optional<Periodic> found = PlayFew(few);
    first = i;
    if (!found.has_value()) continue;
    if ((all - few) % found->period.microbatches != 0) found = PlayWholePeriods(*found);
    if (!found.has_value()) continue;
    Run& run = found->run;
    const int64_t times = (all - found->microbatches) / found->period.microbatches;
    run.skipped = {.period = std::move(found->period), .times = times};
    if (!AddPeriods(*run.skipped, run)) continue;
    first = std::min(i, play_step_cc::SufficesFor(run.skipped->period, of_.plan.pp, numbers));
    AddLost(run);
    return std::move(run);
  }
  return std::nullopt;
}

bool StepPlayer::Complete(Run& run) {
  simulator::Report whole = simulator::Summarize(run.program, run.trace);
  if (run.skipped.has_value()) {
    const auto& [period, times] = *run.skipped;
    const int64_t longer = of_.step.microbatches - (times - 1) * period.microbatches;
    const absl::StatusOr<Run> other = PlayExtent({.first_microbatches = longer}, Telling::kWhole);
    if (!other.ok()) return false;
    auto report = WithPeriods(run.program, whole, other->report, period, times);
    if (!report.has_value()) return false;
    whole = *std::move(report);
  }
  const simulator::Report brief = std::exchange(run.report, std::move(whole));
  AddLost(run);
  run.brief_of.reset();
  return run.report.step_time == brief.step_time && run.report.peak_memory == brief.peak_memory &&
         run.report.fits == brief.fits &&
         run.report.communication_overhead == brief.communication_overhead;
}

}  // namespace orrery::search
