#include "transforms/redistribution/search.h"

#include <algorithm>
#include <queue>
#include <tuple>

#include "absl/container/flat_hash_map.h"

namespace orrery::transforms::redistribution {
namespace search_cc {
namespace {

// A layout reached in one way.
struct Label {
  Step step;  // that led here; the layout is the one after it
  double cost = 0;
  double tie = 0;
  double step_cost = 0;
  int64_t peak = 0;
  int64_t step_peak = 0;
  int32_t steps = 0;
  int32_t from = -1;  // label
};

struct Open {
  double bound = 0;
  double tie = 0;
  int32_t steps = 0;
  int32_t label = 0;
  // std::priority_queue has the largest on top.
  friend bool operator<(const Open& a, const Open& b) {
    return std::tie(a.bound, a.tie, a.steps, a.label) > std::tie(b.bound, b.tie, b.steps, b.label);
  }
};

enum class Moves { kRegular, kWithLastResorts };

class Search {
 public:
  Search(const MoveSet& move_set, const PackedLayout& to, const SearchLimits& limits, Moves allowed)
      : move_set_(move_set), to_(move_set.Normal(to)), limits_(limits), allowed_(allowed) {}

  std::optional<RedistributionPlan> Run(const PackedLayout& from) {
    Start(move_set_.Normal(from));
    while (!open_.empty()) {
      const Open next = open_.top();
      open_.pop();
      const PackedLayout layout = label(next.label).step.after;
      if (best_.find(layout)->second != next.label) continue;  // a cheaper way was found since
      if (layout == to_) return PlanTo(next.label);
      if (std::ssize(labels_) >= limits_.labels && expanded_ > 0) return GiveUp();
      ++expanded_;
      moves_.clear();
      move_set_.Expand(layout, moves_);
      if (allowed_ == Moves::kWithLastResorts) move_set_.LastResort(layout, moves_);
      for (const Move& move : moves_) Take(next.label, move);
    }
    return std::nullopt;
  }

 private:
  const Label& label(int32_t number) const { return labels_[static_cast<size_t>(number)]; }

  double LowerBound(const PackedLayout& layout) const {
    return allowed_ == Moves::kRegular ? move_set_.LowerBound(layout) : 0;
  }

  void Start(const PackedLayout& from) {
    Label start;
    start.step.after = from;
    start.peak = move_set_.Elements(from);
    best_.emplace(from, 0);
    open_.push({.bound = LowerBound(from), .tie = 0, .steps = 0, .label = 0});
    labels_.push_back(start);
  }

  void Take(int32_t from, const Move& move) {
    if (move.peak > limits_.peak) return;
    const Label& before = label(from);
    const double cost = before.cost + move.cost, tie = before.tie + move.tie;
    const int32_t steps = before.steps + 1;
    const auto number = static_cast<int32_t>(labels_.size());
    const auto [best, added] = best_.try_emplace(move.step.after, number);
    if (!added) {
      const Label& other = label(best->second);
      if (std::tie(other.cost, other.tie, other.steps) <= std::tie(cost, tie, steps)) return;
      best->second = number;
    }
    open_.push(
        {.bound = cost + LowerBound(move.step.after), .tie = tie, .steps = steps, .label = number});
    labels_.push_back({.step = move.step,
                       .cost = cost,
                       .tie = tie,
                       .step_cost = move.cost,
                       .peak = std::max(before.peak, move.peak),
                       .step_peak = move.peak,
                       .steps = steps,
                       .from = from});
  }

  // What has reached the target so far may not be the cheapest.
  std::optional<RedistributionPlan> GiveUp() const {
    const auto reached = best_.find(to_);
    if (reached == best_.end()) return std::nullopt;
    RedistributionPlan plan = PlanTo(reached->second);
    plan.exact = false;
    return plan;
  }

  RedistributionPlan PlanTo(int32_t number) const {
    RedistributionPlan plan{
        .steps = {}, .cost = label(number).cost, .peak = label(number).peak, .expanded = expanded_};
    for (; label(number).from >= 0; number = label(number).from) {
      const Label& last = label(number);
      plan.steps.push_back({.step = last.step, .cost = last.step_cost, .peak = last.step_peak});
    }
    std::ranges::reverse(plan.steps);
    return plan;
  }

  const MoveSet& move_set_;
  const PackedLayout to_;
  const SearchLimits limits_;
  const Moves allowed_;
  std::vector<Label> labels_;
  absl::flat_hash_map<PackedLayout, int32_t> best_;  // the label of the least cost of each layout
  std::priority_queue<Open> open_;
  std::vector<Move> moves_;
  int64_t expanded_ = 0;
};

}  // namespace
}  // namespace search_cc

std::optional<RedistributionPlan> CheapestPlan(const MoveSet& move_set, const PackedLayout& from,
                                               const PackedLayout& to, const SearchLimits& limits) {
  const auto search = [&](search_cc::Moves allowed, const SearchLimits& within) {
    return search_cc::Search(move_set, to, within, allowed).Run(from);
  };
  auto plan = search(search_cc::Moves::kRegular, limits);
  if (plan.has_value() && limits.peak == kNoLimit) return plan;
  if (plan.has_value()) {
    // Who has less room than this plan wants may take a last resort that costs less. So may who has
    // more: else the plan of the narrower limit were the cheaper one.
    SearchLimits least = limits;
    least.peak = std::min(limits.peak, std::max(move_set.Elements(from), move_set.Elements(to)));
    if (search(search_cc::Moves::kRegular, least).has_value()) return plan;
  }
  auto last = search(search_cc::Moves::kWithLastResorts, limits);
  return plan.has_value() && last.has_value() && plan->cost <= last->cost ? plan : last;
}

std::vector<RedistributionPlan> ParetoPlans(const MoveSet& move_set, const PackedLayout& from,
                                            const PackedLayout& to) {
  // The cheapest plan under each limit below the peak of the one before: as many searches as there
  // are plans, and one more.
  std::vector<RedistributionPlan> plans;
  for (int64_t limit = kNoLimit;;) {
    auto plan = CheapestPlan(move_set, from, to, limit);
    if (!plan.has_value()) return plans;
    const int64_t peak = plan->peak;
    // Equal, or, for a last resort, which is not taken for its price, cheaper.
    while (!plans.empty() && plans.back().cost >= plan->cost) plans.pop_back();
    plans.push_back(*std::move(plan));
    if (peak <= std::max(move_set.Elements(from), move_set.Elements(to))) return plans;
    limit = peak - 1;
  }
}

RedistributionPlan Priced(const MoveSet& move_set, const PackedLayout& from,
                          const std::vector<Move>& moves) {
  RedistributionPlan plan;
  plan.peak = move_set.Elements(from);
  for (const Move& move : moves) {
    plan.steps.push_back({.step = move.step, .cost = move.cost, .peak = move.peak});
    plan.cost += move.cost;
    plan.peak = std::max(plan.peak, move.peak);
  }
  return plan;
}

}  // namespace orrery::transforms::redistribution
