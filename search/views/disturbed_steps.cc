#include "search/views/disturbed_steps.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lowering/network/exchange_store.h"
#include "search/play_step.h"
#include "simulator/engine/play.h"
#include "support/number_text.h"
#include "support/status.h"
#include "transforms/schedules/orders.h"

namespace orrery::search {
namespace disturbed_steps_cc {
namespace {

using simulator::Disturbances;
using simulator::DisturbedProgram;
using simulator::RankClassId;

// What is played, step by step: a question, or one with a source less.
struct Case {
  Disturbances disturbances;
  std::vector<DegradedLinks> links;
};

// The orders that the run was played in.
transforms::RankOrders OrdersOf(const Run& run, const transforms::PipelineSchedule& schedule,
                                const transforms::PipelineShape& shape) {
  transforms::RankOrders orders(static_cast<size_t>(shape.ranks));
  for (const lowering::LoweredStep& lowered : run.steps) {
    const int32_t rank = transforms::RankOf(schedule.placement, shape, lowered.step.stage);
    orders[static_cast<size_t>(rank)].push_back(lowered.step);
  }
  return orders;
}

// Lowers one step again and again: with other links, with ranks folded or not. So many parameters:
// all that a step is lowered from.
class Lowerer {
 public:
  Lowerer(Setting& setting, const ParallelPlan& plan, const Run& run,
          transforms::PipelineSchedule schedule, const Disturbances& all)
      : setting_(setting), plan_(plan), run_(run), schedule_(schedule), options_() {
    options_ = LoweringOf(setting, plan);
    options_.every_link = false;
    options_.fuse_runs = !options_.blocking;  // there times are drawn for each kernel
    options_.stragglers = !all.of_ranks();
    if (schedule_.weighs_durations && schedule_.given == nullptr) {
      orders_ = OrdersOf(run, schedule_, ShapeOf(schedule_, plan));
      schedule_.given = &orders_;
    }
  }

  // Of ranks that are folded where that is exact or has to be.
  absl::StatusOr<Run> Lower(const Case& of) {
    ORRERY_ASSIGN_OR_RETURN(Run folded, LowerOnce(of, options_.fold));
    if (!options_.fold) return folded;
    if (DisturbedProgram(folded.program, folded.trace, of.disturbances).exact()) return folded;
    const int64_t ranks = plan_.ranks();
    const int64_t tasks = folded.program.task_count() / folded.program.rank_count() * ranks;
    const int64_t factor = simulator::NeedsEvents(folded.program) ? 1 : kUnfoldedTasksFactor;
    if (tasks / factor > options_.most_unfolded_tasks) return folded;
    return LowerOnce(of, /*fold=*/false);
  }

 private:
  absl::StatusOr<Run> LowerOnce(const Case& of, bool fold) {
    const cluster::Topology topology = setting_.cluster.topology;
    for (const DegradedLinks& slow : of.links) {
      setting_.cluster.topology = setting_.cluster.topology.WithSlowerLinks(slow.links, slow.share);
    }
    lowering::ExchangeStore exchanges(setting_.cluster.topology);
    lowering::LoweringOptions options = options_;
    options.fold = fold;
    absl::StatusOr<Run> lowered = PlayAlone({.setting = setting_,
                                             .plan = plan_,
                                             .step = run_.pipelined,
                                             .schedule = schedule_,
                                             .exchanges = exchanges,
                                             .names = false},
                                            /*rounds=*/1, options);
    setting_.cluster.topology = topology;
    return lowered;
  }

  Setting& setting_;
  const ParallelPlan& plan_;
  const Run& run_;
  transforms::PipelineSchedule schedule_;
  transforms::RankOrders orders_;
  lowering::LoweringOptions options_;
};

// The question with each source taken away, and what that is called.
std::vector<std::pair<std::string, Case>> Removals(const StepsQuestion& question) {
  std::vector<std::pair<std::string, Case>> removals;
  const auto without = [&](std::string source) -> Case& {
    return removals.emplace_back(std::move(source), Case{question.disturbances, question.links})
        .second;
  };
  const Disturbances& all = question.disturbances;
  if (all.kernel.has_value()) without("kernel").disturbances.kernel.reset();
  if (all.step.has_value()) without("step").disturbances.step.reset();
  if (all.rank.has_value()) without("rank").disturbances.rank.reset();
  if (all.device.has_value()) without("device").disturbances.device.reset();
  if (all.pauses.has_value()) without("gc").disturbances.pauses.reset();
  for (size_t i = 0; i < all.slow.size(); ++i) {
    std::vector<simulator::SlowRank>& slow =
        without(absl::StrCat("slow rank=", all.slow[i].rank)).disturbances.slow;
    slow.erase(slow.begin() + static_cast<std::ptrdiff_t>(i));
  }
  for (size_t i = 0; i < question.links.size(); ++i) {
    std::vector<DegradedLinks>& links =
        without(absl::StrCat("link=", question.links[i].name)).links;
    links.erase(links.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return removals;
}

StepsFolding FoldingOf(const DisturbedProgram& disturbed, int64_t ranks) {
  const simulator::Program& program = disturbed.program();
  if (program.rank_count() == ranks) return StepsFolding::kEachRank;
  if (disturbed.exact()) return StepsFolding::kExact;
  const bool roughly = simulator::NeedsEvents(program) || !program.rank(RankClassId(0)).alike;
  return roughly ? StepsFolding::kRoughly : StepsFolding::kFromBothSides;
}

// Sums of waits into means, beside those of the undisturbed step.
class WaitTable {
 public:
  WaitTable(const DisturbedProgram& disturbed, const std::vector<simulator::Wait>& waits,
            int32_t steps)
      : program_(disturbed.program()) {
    for (int32_t r = 0; r < program_.rank_count(); ++r) {
      for (const int32_t member : program_.rank(RankClassId(r)).members) class_of_[member] = r;
    }
    std::map<std::pair<int32_t, int32_t>, double> undisturbed, disturbed_s;  // by classes
    const auto key = [&](const simulator::Wait& wait) {
      return std::pair(wait.waiting.index(), class_of_[wait.late]);
    };
    for (const simulator::Wait& wait : simulator::UndisturbedWaits(disturbed)) {
      undisturbed[key(wait)] += wait.time.seconds() * steps;
    }
    for (const simulator::Wait& wait : waits) disturbed_s[key(wait)] += wait.time.seconds();
    for (int32_t r = 0; r < program_.rank_count(); ++r) {
      const std::vector<int32_t>& members = program_.rank(RankClassId(r)).members;
      rows_.push_back({.rank = members.front(), .ranks = std::ssize(members)});
    }
    for (const auto& [classes, time] : undisturbed) {
      Row(classes.first).undisturbed_s += time / Count(classes.first, steps);
    }
    // What is more than in the undisturbed step, dealt out as it is waited for.
    for (const simulator::Wait& wait : waits) {
      RankWaits& row = Row(wait.waiting.index());
      const double count = Count(wait.waiting.index(), steps);
      row.waits_s += wait.time.seconds() / count;
      const double all = disturbed_s[key(wait)];
      const double more = wait.time.seconds() * std::max(0.0, 1 - undisturbed[key(wait)] / all);
      late_[wait.late] += more;
      if (more / count <= row.for_it_s) continue;
      row.mostly_for = wait.late;
      row.for_it_s = more / count;
    }
  }

  std::vector<RankWaits> TakeRows() { return std::move(rows_); }

  std::vector<LateRank> Latest() const {
    constexpr size_t kMost = 16;
    double all = 0;
    std::vector<LateRank> latest;
    for (const auto& [rank, time] : late_) {
      all += time;
      if (time > 0) latest.push_back({.rank = rank, .share = time});
    }
    std::ranges::stable_sort(latest, std::greater(), &LateRank::share);
    if (latest.size() > kMost) latest.resize(kMost);
    for (LateRank& late : latest) late.share /= all;
    return latest;
  }

 private:
  RankWaits& Row(int32_t rank_class) { return rows_[static_cast<size_t>(rank_class)]; }
  double Count(int32_t rank_class, int32_t steps) {
    return static_cast<double>(Row(rank_class).ranks) * steps;
  }

  const simulator::Program& program_;
  std::map<int32_t, int32_t> class_of_;  // by global rank
  std::map<int32_t, double> late_;       // likewise
  std::vector<RankWaits> rows_;
};

// Without what disturbs it, and with the links as they should be.
absl::StatusOr<Duration> UndisturbedTime(Lowerer& lowerer, const Run& lowered,
                                         const StepsQuestion& question) {
  if (question.links.empty()) return lowered.trace.makespan;
  ORRERY_ASSIGN_OR_RETURN(const Run whole, lowerer.Lower({.disturbances = {}, .links = {}}));
  return whole.trace.makespan;
}

}  // namespace
}  // namespace disturbed_steps_cc

absl::StatusOr<StepsAnswer> PlayDisturbed(Setting& setting, const ParallelPlan& plan,
                                          const Run& run, const StepsQuestion& question) {
  using disturbed_steps_cc::Case;
  ORRERY_ASSIGN_OR_RETURN(const transforms::PipelineSchedule schedule, ScheduleOf(setting, plan));
  if (schedule.asynchronous) {
    return absl::InvalidArgumentError(
        absl::StrCat("`schedule` ", schedule.name,
                     ": its steps have no end of their own, at which ranks would wait for each "
                     "other; wanted a synchronous one for `steps`, such as 1f1b"));
  }
  disturbed_steps_cc::Lowerer lowerer(setting, plan, run, schedule, question.disturbances);
  const Case whole{question.disturbances, question.links};
  ORRERY_ASSIGN_OR_RETURN(const Run lowered, lowerer.Lower(whole));
  const simulator::DisturbedProgram disturbed(lowered.program, lowered.trace,
                                              question.disturbances);
  StepsAnswer answer{.folding = disturbed_steps_cc::FoldingOf(disturbed, plan.ranks()),
                     .own_stragglers = question.disturbances.of_ranks(),
                     .tasks = lowered.program.task_count()};
  ORRERY_ASSIGN_OR_RETURN(answer.undisturbed,
                          disturbed_steps_cc::UndisturbedTime(lowerer, lowered, question));
  simulator::SeriesOptions options{
      .steps = question.steps, .threads = question.threads, .waits = true, .bounds = true};
  ORRERY_ASSIGN_OR_RETURN(simulator::StepSeries series, simulator::PlaySeries(disturbed, options));
  answer.figures = simulator::FiguresOf(series.times);
  answer.times = std::move(series.times);
  if (!series.at_least.empty()) answer.at_least = simulator::FiguresOf(series.at_least);
  disturbed_steps_cc::WaitTable waits(disturbed, series.waits, question.steps);
  answer.late = waits.Latest();
  answer.waits = waits.TakeRows();
  options.waits = options.bounds = false;
  for (auto& [source, without] : disturbed_steps_cc::Removals(question)) {
    std::optional<Run> again;
    if (without.links.size() != question.links.size()) {
      ORRERY_ASSIGN_OR_RETURN(again, lowerer.Lower(without));
    }
    const Run& played = again.has_value() ? *again : lowered;
    ORRERY_ASSIGN_OR_RETURN(
        const simulator::StepSeries others,
        simulator::PlaySeries({played.program, played.trace, without.disturbances}, options));
    answer.without.push_back({source, simulator::FiguresOf(others.times)});
  }
  return answer;
}

}  // namespace orrery::search
