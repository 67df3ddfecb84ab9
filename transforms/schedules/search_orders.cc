#include "transforms/schedules/search_orders.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "support/check.h"
#include "transforms/schedules/building_block.h"
#include "transforms/schedules/list_scheduler.h"
#include "transforms/schedules/order_judge.h"
#include "transforms/schedules/orders.h"

namespace orrery::transforms {
namespace search_orders_cc {
namespace {

// Three times as many shorten the orders of 16 ranks and fewer by less than 1 in 1000.
constexpr int64_t kStepsPlayed = 60'000;
// As many tries at least, of a pipeline with fewer microbatches when it has to be: what is gained
// and lost at its two ends does not depend on how many there are in between.
constexpr int64_t kTries = 36;

// With which durations a try reckons: those of the shape; the same with an I a tenth longer and a W
// a tenth shorter, which breaks ties; or others: a transformer's where all last the same, and where
// not, all alike but for that tenth, as they are for a block.
enum class Reckoning : uint8_t { kExact, kLeaning, kOther };

// How one try turns a block into orders.
struct TryRules {
  Reckoning reckoning = Reckoning::kExact;
  bool keeps_backwards = false;
  bool keeps_forwards = false;
  bool spares_room = false;
  bool waits = false;
};
// Each is the best for some shape; in the order of how often.
constexpr std::array kTryRules = {
    TryRules{.reckoning = Reckoning::kLeaning, .spares_room = true},
    TryRules{.keeps_backwards = true, .spares_room = true},
    TryRules{.reckoning = Reckoning::kLeaning, .spares_room = true, .waits = true},
    TryRules{},
    TryRules{.reckoning = Reckoning::kLeaning, .waits = true},
    TryRules{.reckoning = Reckoning::kLeaning,
             .keeps_backwards = true,
             .spares_room = true,
             .waits = true},
    TryRules{.keeps_backwards = true, .keeps_forwards = true},
    TryRules{.reckoning = Reckoning::kLeaning, .keeps_forwards = true},
    TryRules{.reckoning = Reckoning::kOther, .spares_room = true},
    TryRules{.reckoning = Reckoning::kOther, .spares_room = true, .waits = true},
    TryRules{.reckoning = Reckoning::kOther, .waits = true},
    TryRules{.reckoning = Reckoning::kOther, .keeps_backwards = true, .spares_room = true},
};

// A block and rules, with what came of them.
struct Try {
  std::vector<int32_t> gaps;
  int32_t interval = 1;
  TryRules rules = {};
  OrderScore score = {.makespan = std::numeric_limits<int64_t>::max()};
};

class Searcher {
 public:
  Searcher(const BlockPipeline& pipeline, const StepDurations& durations)
      : pipeline_(pipeline),
        durations_(durations),
        scheduler_(pipeline_),
        judge_(pipeline_, durations) {}

  void Start(std::span<const BlockGaps> starts);
  // Tries what is asked for; keeps it when it is better than the best so far. False when the block
  // does not keep within the limits.
  bool Consider(Try candidate);

  const Try& best() const { return best_; }
  const std::vector<PlayedStep>& steps() const { return steps_; }

 private:
  std::vector<int32_t> AllGaps(const BlockGaps& gaps) const;
  ListRules RulesOf(const TryRules& rules) const;
  bool IsOver() const { return !steps_.empty() && played_ >= kStepsPlayed; }
  bool IsPerfect() const { return best_.score.idle_inside == 0 && judge_.IsShortest(best_.score); }

  const BlockPipeline pipeline_;
  const StepDurations durations_;
  ListScheduler scheduler_;
  OrderJudge judge_;
  int64_t played_ = 0;
  Try best_;
  std::vector<PlayedStep> steps_;  // of the best
};

std::vector<int32_t> Searcher::AllGaps(const BlockGaps& gaps) const {
  std::vector<int32_t> all;
  const size_t ranks = pipeline_.ranks;
  const size_t last = pipeline_.stages() - 1;
  for (size_t stage = 0; stage < last; ++stage) {
    const bool turns = stage + 1 == ranks;
    all.push_back(turns ? gaps.turns[0] : gaps.forward[stage / ranks]);
  }
  all.push_back(gaps.turns[1]);
  for (size_t stage = last; stage > 0; --stage) {
    all.push_back(stage == ranks ? gaps.turns[2] : gaps.backward[stage / ranks]);
  }
  all[0] += gaps.more_at_first;
  if (last > 1) all[last - 2] += gaps.more_near_last;
  return all;
}

ListRules Searcher::RulesOf(const TryRules& rules) const {
  ListRules list = {.durations = durations_,
                    .keeps_backwards = rules.keeps_backwards,
                    .keeps_forwards = rules.keeps_forwards,
                    .spares_room = rules.spares_room,
                    .waits = rules.waits};
  if (rules.reckoning == Reckoning::kExact) return list;
  StepDurations& leaning = list.durations;
  if (rules.reckoning == Reckoning::kOther) {
    if (judge_.AllLastTheSame()) {
      leaning = kTransformerDurations;
      return list;
    }
    leaning.forward = (durations_.forward + durations_.Of(StepKind::kBackward)) / 3;
    leaning.input_gradient = leaning.weight_gradient = leaning.forward;
    leaning.send = 0;
  }
  // Where tenths would be lost, all is counted in tenths.
  constexpr int64_t kFine = 1'000'000;
  const bool is_fine = leaning.input_gradient > kFine && leaning.weight_gradient > kFine;
  const int64_t scale = is_fine ? 1 : 10;
  leaning.forward *= scale;
  leaning.send *= scale;
  leaning.input_gradient = leaning.input_gradient * scale / 10 * 11;
  leaning.weight_gradient = leaning.weight_gradient * scale / 10 * 9;
  return list;
}

bool Searcher::Consider(Try candidate) {
  const BuildingBlock block = PlaceBlock(pipeline_, candidate.gaps, candidate.interval);
  const bool plays = scheduler_.Play(block, RulesOf(candidate.rules));
  // It takes an eighth of the time, or less, to see that a block does not keep within the limits.
  played_ += static_cast<int64_t>(pipeline_.ranks * pipeline_.StepsOfRank()) / (plays ? 1 : 8);
  if (!plays) return false;
  candidate.score = judge_.Score(scheduler_.steps(), best_.score);
  if (candidate.score < best_.score) {
    best_ = std::move(candidate);
    steps_ = scheduler_.steps();
  }
  return true;
}

// Tries all starts with all rules. When the limits are too low for a microbatch at each of the
// shortest intervals, there are fewer microbatches at a time.
void Searcher::Start(std::span<const BlockGaps> starts) {
  for (int32_t interval = pipeline_.ShortestInterval(); steps_.empty(); ++interval) {
    for (const TryRules& rules : kTryRules) {
      for (const BlockGaps& start : starts) {
        if (IsOver() || (IsPerfect() && !judge_.AllLastTheSame())) return;
        Consider({.gaps = AllGaps(start), .interval = interval, .rules = rules});
      }
    }
  }
}

RankOrders ToOrders(const std::vector<PlayedStep>& steps, size_t ranks) {
  RankOrders orders(ranks);
  for (const PlayedStep& step : steps) {
    orders[step.rank].push_back({.kind = step.kind,
                                 .stage = static_cast<int32_t>(step.stage),
                                 .microbatch = static_cast<int32_t>(step.microbatch)});
  }
  return orders;
}

}  // namespace
}  // namespace search_orders_cc

RankOrders SearchOrders(const PipelineShape& shape, const OrderSearch& search) {
  BlockPipeline pipeline = {.ranks = static_cast<size_t>(shape.ranks),
                            .microbatches = static_cast<size_t>(shape.microbatches),
                            .chunks = search.placement == StagePlacement::kV ? 2U : 1U,
                            .splits_backward = search.splits_backward,
                            .live_limits = search.live_limits};
  for (const int64_t limit : search.live_limits) {
    ORRERY_CHECK(limit >= static_cast<int64_t>(pipeline.chunks)) << "at most " << limit << " live";
  }
  search_orders_cc::Searcher whole(pipeline, shape.durations);
  const int64_t steps_of_one =
      static_cast<int64_t>(pipeline.ranks * pipeline.StepsOfRank()) / shape.microbatches;
  const size_t enough = std::max(
      static_cast<size_t>(search_orders_cc::kStepsPlayed / search_orders_cc::kTries / steps_of_one),
      3 * pipeline.ranks / 2 + 4);
  if (enough >= pipeline.microbatches) {
    whole.Start(search.starts);
  } else {
    pipeline.microbatches = enough;
    search_orders_cc::Searcher part(pipeline, shape.durations);
    part.Start(search.starts);
    // A block of which more is live of more microbatches does not fit.
    if (!whole.Consider(part.best())) whole.Start(search.starts);
  }
  RankOrders orders = search_orders_cc::ToOrders(whole.steps(), pipeline.ranks);
  AssignSlots(orders, search.placement, shape);
  return orders;
}

std::vector<int64_t> LimitsOfV(const PipelineShape& shape, int64_t limit) {
  std::vector<int64_t> limits;
  for (int64_t rank = 0; rank < shape.ranks; ++rank) {
    limits.push_back(
        std::min({limit, shape.microbatches + 1 + rank, 2 * int64_t{shape.microbatches}}));
  }
  return limits;
}

}  // namespace orrery::transforms
