#include "search/plan_player.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lowering/network/exchange_store.h"
#include "search/cuts/cut_choice.h"
#include "search/cuts/stage_weights.h"
#include "search/play_step.h"
#include "search/runs/steady_state.h"
#include "search/slices.h"
#include "support/status.h"
#include "transforms/parallel.h"
#include "transforms/plan/plan_text.h"
#include "transforms/stages/cost_division.h"
#include "transforms/stages/dealt_rounds.h"
#include "transforms/step_work.h"
#include "transforms/training/split_backward.h"

namespace orrery::search {
PlanPlayer::PlanPlayer(const Setting& setting, const ParallelPlan& plan)
    : setting_(setting),
      plan_(plan),
      exchanges_(std::make_shared<lowering::ExchangeStore>(setting.cluster.topology)) {}

PlanPlayer::PlanPlayer(const Setting& setting, const ParallelPlan& plan, PlayBudget& budget)
    : PlanPlayer(setting, plan) {
  budget_ = &budget;
}

absl::Status PlanPlayer::Prepare() {
  if (plan_.blocking && plan_.compression) {
    return InfeasibleStatus({.reason = InfeasibleReason::kUnsupported,
                             .detail = "compressed gradients are exchanged beside backward; wanted "
                                       "no --blocking, or --compress none"});
  }
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
  if (plan_.unequal()) {
    ORRERY_RETURN_IF_ERROR(unequal_.emplace(setting_, plan_, schedule_).Prepare());
  }
  if (plan_.by_products() && !weighs_stages()) return absl::OkStatus();
  prices_.emplace(mesh_, setting_.cluster, *setting_.cost_model,
                  lowering::ShardingPricesOptions{.algorithms = plan_.algorithm});
  if (weighs_stages()) WeighStages();
  return absl::OkStatus();
}

bool PlanPlayer::weighs_stages() const {
  return plan_.pp > 1 && !plan_.unequal() && WeighsStages(plan_);
}

// Schedules that part backwards need ops that do not make both gradients.
absl::Status PlanPlayer::SplitBackward() {
  constexpr int64_t kTooMany = int64_t{1}
                               << 25;  // for Lower, with a forward and a backward of each
  if (int64_t{shape_.stages()} * shape_.microbatches > kTooMany) return absl::OkStatus();
  ranks_ = {
      .orders = schedule_.OrdersOf(shape_), .placement = schedule_.placement, .shape = shape_};
  for (const auto& order : ranks_.orders) {
    for (const transforms::ScheduleStep& step : order) {
      splits_ = splits_ || step.kind == transforms::StepKind::kInputGradient;
    }
  }
  if (!splits_) return absl::OkStatus();
  const auto make = [&]() -> transforms::FunctionPart {
    ir::Function split = setting_.step;
    const absl::Status status = transforms::SplitBackward(split).status();
    if (!status.ok()) return {status};
    return {std::make_shared<const ir::Function>(std::move(split))};
  };
  if (parts_ == nullptr) {
    ORRERY_ASSIGN_OR_RETURN(split_step_, make().function);
    return absl::OkStatus();
  }
  const auto part =
      parts_->FindOrMake<transforms::FunctionPart>("split-backward", PartsRoot(), make);
  ORRERY_ASSIGN_OR_RETURN(split_step_, part->function);
  return absl::OkStatus();
}

// A setting stays where it is while plans of it are evaluated.
std::string PlanPlayer::PartsRoot() const {
  return absl::StrCat("setting ", absl::Hex(reinterpret_cast<uintptr_t>(&setting_)),
                      splits_ ? " split" : "");
}

void PlanPlayer::WeighStages() {
  stages_.prices = &*prices_;
  stages_.send_seconds = StageSends(mesh_, setting_.cluster, *setting_.cost_model);
  WeighMemory(schedule_, ranks_, stages_);
  if (schedule_.asynchronous) return;
  stages_.schedule = &ranks_;
  if (StepCount(ranks_) > transforms::kMostStepsToTime) return;
  const int32_t pipelines = transforms::Pipelines(schedule_.placement);
  stages_.timer = &timer_.emplace(ranks_, shape_.stages() / pipelines);
}

transforms::StageContext PlanPlayer::StagesOf(const Way& way) const {
  transforms::StageContext context = stages_;
  context.memory_share = way.stage_share;
  return context;
}

absl::StatusOr<Run> PlanPlayer::Play(const Way& way, WayFacts* facts,
                                     std::optional<ToBeat> to_beat) {
  if (facts != nullptr) *facts = {};
  to_beat_ = to_beat;
  if (budget_ != nullptr && budget_->left <= 0) {
    return absl::ResourceExhaustedError("nothing is left of the budget");
  }
  return PlayCounted(way, facts);
}

absl::StatusOr<Run> PlanPlayer::PlayOnly(const Way& way) {
  only_way_ = true;
  return Play(way);
}

absl::StatusOr<Run> PlanPlayer::PlayLeftOut(const Way& way) {
  to_beat_.reset();
  return PlayCounted(way, nullptr);
}

absl::StatusOr<Run> PlanPlayer::PlayCounted(const Way& way, WayFacts* facts) {
  ORRERY_RETURN_IF_ERROR(CheckTime());
  const int64_t solved = shardings_.solved(), tasks = tasks_;
  absl::StatusOr<Run> run = PlayOnce(way, facts);
  Count(shardings_.solved() - solved, tasks_ - tasks);
  return run;
}

absl::Status PlanPlayer::CheckTime() const {
  if (budget_ == nullptr || std::chrono::steady_clock::now() < budget_->until) {
    return absl::OkStatus();
  }
  return absl::DeadlineExceededError("the time is over");
}

// Weights as measured on llama3-70b on 2,048 devices: a node of a sharding problem takes 12 us, an
// op 1 us in all other passes, a task 0.1 us.
void PlanPlayer::Count(int64_t solved, int64_t tasks) {
  constexpr int64_t kOfNode = 120, kOfOp = 10;
  const int64_t work = kOfNode * solved + kOfOp * std::ssize(step().order()) + tasks;
  work_ += work;
  if (budget_ != nullptr) budget_->left -= work;
}

absl::StatusOr<Duration> PlanPlayer::StepTimeOf(const transforms::PipelinedStep& step) {
  const bool open = schedule_.weighs_durations && schedule_.given == nullptr;
  if (open || schedule_.asynchronous) {
    WayFacts facts;
    StepPlayer player(PlayedOf(plan_, step));
    ORRERY_ASSIGN_OR_RETURN(const Run run, PlayOrders(player, step, 0, facts));
    return run.report.step_time;
  }
  lowering::LoweringOptions options = LoweringOf(setting_, plan_);
  options.every_link = false;
  options.fuse_runs = options.fuse_stretches = true;
  ORRERY_ASSIGN_OR_RETURN(const Run run, PlayAlone({setting_, plan_, step, schedule_, *exchanges_},
                                                   RoundsFor(schedule_, shape_), options));
  return run.trace.makespan;
}

absl::StatusOr<Run> PlanPlayer::PlayOnce(const Way& way, WayFacts* facts) {
  ParallelPlan plan = plan_;
  const bool open = plan.sequence_parallel == transforms::SequenceParallel::kAuto;
  const bool gathers =
      open ? way.gathers : plan.sequence_parallel == transforms::SequenceParallel::kOn;
  if (open) plan.sequence_parallel = way.sequence;
  plan.context_attention = way.attention;
  transforms::PlanContext context{.prices = plan_.by_products() ? nullptr : &*prices_,
                                  .by_pattern = !way.by_cost,
                                  .in_flight = way.in_flight,
                                  .alternative = {.memory_price = way.memory_price,
                                                  .link_price = way.link_price,
                                                  .gathers = gathers},
                                  .chunks = shape_.chunks,
                                  .placement = schedule_.placement,
                                  .split_backward = splits_,
                                  .updates_each_microbatch = schedule_.asynchronous,
                                  .stages = StagesOf(way),
                                  .fuses_pointwise = setting_.lowering.kernels.fuses_pointwise,
                                  .recomputes_whole = setting_.lowering.kernels.recomputes_whole,
                                  .scatters_sends = setting_.lowering.kernels.scatters_sends,
                                  .batch_lost = setting_.notes.batch_lost,
                                  .parts = {.store = parts_, .root = PartsRoot()}};
  ORRERY_ASSIGN_OR_RETURN(auto slices, SlicesToPlay({setting_, schedule_, plan, context}));
  if (slices.size() > 1) to_beat_.reset();  // they are played one beside the other
  WayFacts* known = nullptr;
  uint64_t choice = 0;
  asked_.clear();
  if (facts != nullptr) {
    if (slices.size() == 1 && slices.front().empty()) {  // the whole sequence
      context.stages.wants = [&](const std::vector<size_t>& begins) {
        return WantsCut({choice, gathers, begins}, way, *facts);
      };
    }
    context.alternative.wants = [&](const transforms::AutoShardReport& report) {
      choice = report.choice;
      const double memory = gathers ? report.in_parts : report.memory;
      const auto [found, is_new] =
          played_.try_emplace({report.choice, gathers, way.stage_share}, WayFacts{report, memory});
      known = &found->second;
      *facts = *known;
      return is_new;
    };
  }
  std::optional<Run> best;
  for (std::vector<transforms::SliceRange>& list : slices) {
    context.slices = std::move(list);
    if (context.slices.empty()) context.alternative.memo = &shardings_;  // of one step
    absl::StatusOr<Run> run = PlayCuts(plan, context, facts);
    context.alternative.wants = {};  // of all lists
    if (!run.ok()) {
      if (known != nullptr) *known = *facts;
      if (best.has_value() && AsInfeasible(run.status()).has_value()) continue;
      return run;
    }
    if (!best.has_value() || IsBetter(run->report, best->report)) best = *std::move(run);
  }
  if (known != nullptr) *known = *facts;
  return *std::move(best);
}

// What is known of it counts all the same.
bool PlanPlayer::WantsCut(CutKey cut, const Way& way, WayFacts& facts) {
  const auto known = cuts_.find(cut);
  if (way.stage_share.has_value() && known != cuts_.end()) {
    facts.Add(known->second);
    return false;
  }
  asked_.push_back(std::move(cut));
  return true;
}

absl::StatusOr<Run> PlanPlayer::PlayCuts(const ParallelPlan& plan,
                                         const transforms::PlanContext& context, WayFacts* facts) {
  ORRERY_ASSIGN_OR_RETURN(std::vector<transforms::PipelinedStep> steps,
                          unequal_.has_value()
                              ? unequal_->Make(step(), plan, context)
                              : transforms::ParallelTransformWays(step(), plan, context));
  if (asked_.size() != steps.size()) asked_.clear();  // some were infeasible
  std::deque<StepPlayer> players;
  for (const transforms::PipelinedStep& cut : steps) players.emplace_back(PlayedOf(plan, cut));
  const CutBounds bounds = BoundsOf(players, facts);
  if (to_beat_.has_value() && !bounds.MayBeat(*to_beat_)) {
    return absl::AbortedError("it does not fit, or another way is as fast, for sure");
  }
  // Of those that are not played nothing is taken: one that fits is.
  constexpr Bytes kMost(std::numeric_limits<int64_t>::max());
  std::vector<PlayedCut> cuts(steps.size(), PlayedCut{.fits = false, .time = {}, .peak = kMost});
  std::vector<std::optional<Run>> runs(steps.size());
  bool has_run = false, enough = to_beat_.has_value() && to_beat_->time.has_value();
  for (const size_t i : bounds.Order()) {
    if (has_run && enough && !bounds.MayFit(i)) continue;
    WayFacts of_cut;
    absl::StatusOr<Run> run = PlayOrders(players[i], steps[i], i, of_cut);
    if (!run.ok()) {
      if (has_run && AsInfeasible(run.status()).has_value()) continue;
      return run;
    }
    if (!bounds.known()) Tell(i, of_cut, facts);
    run->slices = context.slices;
    run->pipelined = std::move(steps[i]);
    const simulator::Report& report = run->report;
    cuts[i] = {.fits = report.fits, .time = report.step_time, .peak = report.peak_memory};
    has_run = true;
    enough = enough || report.fits;
    runs[i] = *std::move(run);
  }
  return *std::move(runs[TakenCut(cuts)]);
}

// What is known of the cuts of a way is told at once. Where that is nothing of the first way, what
// is told of all ways is what plays say: so that they can be compared.
CutBounds PlanPlayer::BoundsOf(std::deque<StepPlayer>& players, WayFacts* facts) {
  CutBounds bounds(players.size());
  const bool asked = facts != nullptr || to_beat_.has_value();
  if (!asked || !tells_ahead_.value_or(true)) return bounds;
  for (size_t i = 0; i < players.size(); ++i) bounds.Set(i, players[i].BoundOf(ranks_.orders));
  if (!tells_ahead_.has_value()) tells_ahead_ = bounds.known();
  if (!bounds.known()) return CutBounds(players.size());
  for (size_t i = 0; i < players.size(); ++i) {
    WayFacts of_cut;
    of_cut.Add(bounds.of(i));
    Tell(i, of_cut, facts);
  }
  return bounds;
}

void PlanPlayer::Tell(size_t cut, const WayFacts& of_cut, WayFacts* facts) {
  if (facts == nullptr) return;
  facts->Add(of_cut);
  if (cut < asked_.size()) cuts_.insert_or_assign(asked_[cut], of_cut);
}

Played PlanPlayer::PlayedOf(const ParallelPlan& plan, const transforms::PipelinedStep& step) const {
  return {.setting = setting_,
          .plan = plan,
          .step = step,
          .schedule = schedule_,
          .exchanges = *exchanges_,
          .names = !figures_alone_,
          .brief = TellsBriefly() && !only_way_};
}

// Orders that are made for the stages as they are, on average, may be the worse ones where stages
// are not alike, or gradients are reduced meanwhile.
absl::StatusOr<Run> PlanPlayer::PlayOrders(StepPlayer& player,
                                           const transforms::PipelinedStep& step, size_t cut,
                                           WayFacts& facts) {
  ORRERY_RETURN_IF_ERROR(CheckTime());
  ORRERY_ASSIGN_OR_RETURN(Run run, PlayStep(player, step, cut));
  facts.Add(run.report);
  const bool open = schedule_.weighs_durations && schedule_.given == nullptr &&
                    !schedule_.asynchronous && !step.unequal.dealt();
  if (!open || HasOrders(run, ranks_)) return run;
  ORRERY_ASSIGN_OR_RETURN(Run other, player.PlayRounds(/*rounds=*/1, &ranks_.orders));
  tasks_ += other.report.simulated_tasks;
  facts.Add(other.report);
  return IsBetter(other.report, run.report) ? std::move(other) : std::move(run);
}

// Asynchronous schedules are told of by differences of whole reports.
bool PlanPlayer::TellsBriefly() const {
  return figures_alone_ && !setting_.lowering.every_link && !schedule_.asynchronous;
}

bool PlanPlayer::Complete(Run& run) {
  if (!run.brief_of.has_value()) return true;
  const ParallelPlan plan = *run.brief_of;
  const int64_t tasks = run.report.simulated_tasks;
  StepPlayer player({setting_, plan, run.pipelined, schedule_, *exchanges_, !figures_alone_});
  const bool is_so = player.Complete(run);
  Count(0, run.report.simulated_tasks - tasks);
  return is_so;
}

// Orders that are searched for, or written down, need not go on as they begin.
bool PlanPlayer::MaySkip(const transforms::PipelinedStep& step) const {
  return TellsBriefly() && skips_ && !setting_.plays_all && step.slices.empty() &&
         step.unequal.places.empty() && schedule_.given == nullptr && !schedule_.weighs_durations;
}

absl::StatusOr<Run> PlanPlayer::PlayStep(StepPlayer& player, const transforms::PipelinedStep& step,
                                         size_t cut) {
  if (MaySkip(step)) {
    if (std::optional<Run> skipped = player.PlaySkipping(sufficed_[cut])) {
      tasks_ += skipped->report.simulated_tasks;
      return *std::move(skipped);
    }
  }
  const std::vector<int64_t> replicas = transforms::ReplicasOf(step.unequal);
  const int32_t rounds = RoundsFor(schedule_, shape_, replicas);
  ORRERY_ASSIGN_OR_RETURN(Run run, player.PlayRounds(rounds));
  tasks_ += run.report.simulated_tasks;
  if (!schedule_.asynchronous) return run;
  simulator::Report shorter = std::move(run.report);
  const int32_t batches = RoundsOfAPeriod(schedule_, shape_, replicas);
  ORRERY_ASSIGN_OR_RETURN(run, player.PlayRounds(rounds + batches));
  if (run.program.rank_count() < shorter.ranks.size()) {  // too many tasks to simulate each rank
    ORRERY_ASSIGN_OR_RETURN(Run folded, player.PlayFolded(rounds));
    shorter = std::move(folded.report);
  }
  run.report = Difference(run.program, std::move(run.report), shorter, batches);
  return run;
}

}  // namespace orrery::search
