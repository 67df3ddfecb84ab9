#include "transforms/redistribution/search.h"

#include <algorithm>
#include <queue>
#include <tuple>

#include "absl/container/flat_hash_map.h"

namespace orrery::transforms {
namespace {

// A layout reached in one way.
struct Label {
  PackedLayout layout;
  double cost = 0;
  int64_t peak = 0;
  int32_t steps = 0;
  int32_t from = -1;  // label
  Move move;          // that led here
};

struct Open {
  double bound = 0;
  int32_t steps = 0;
  int32_t label = 0;
  // std::priority_queue has the largest on top.
  friend bool operator<(const Open& a, const Open& b) {
    return std::tie(a.bound, a.steps, a.label) > std::tie(b.bound, b.steps, b.label);
  }
};

class Search {
 public:
  Search(const Dialect& dialect, const PackedLayout& to, int64_t limit)
      : dialect_(dialect), to_(dialect.Normal(to)), limit_(limit) {}

  std::optional<RedistributionPlan> Run(const PackedLayout& from) {
    const PackedLayout start = dialect_.Normal(from);
    Add({.layout = start, .peak = dialect_.Elements(start), .move = {}});
    while (!open_.empty()) {
      const Open next = open_.top();
      open_.pop();
      const PackedLayout layout = labels_[static_cast<size_t>(next.label)].layout;
      if (best_.find(layout)->second != next.label) continue;  // a cheaper way was found since
      if (layout == to_) return PlanTo(next.label);
      ++expanded_;
      moves_.clear();
      dialect_.Expand(layout, moves_);
      for (const Move& move : moves_) Take(next.label, move);
    }
    return std::nullopt;
  }

 private:
  void Take(int32_t from, const Move& move) {
    if (move.peak > limit_) return;
    const Label& before = labels_[static_cast<size_t>(from)];
    Add({.layout = move.step.after,
         .cost = before.cost + move.cost,
         .peak = std::max(before.peak, move.peak),
         .steps = before.steps + 1,
         .from = from,
         .move = move});
  }

  void Add(Label label) {
    const auto number = static_cast<int32_t>(labels_.size());
    const auto [best, added] = best_.try_emplace(label.layout, number);
    if (!added) {
      const Label& other = labels_[static_cast<size_t>(best->second)];
      if (std::tie(other.cost, other.steps) <= std::tie(label.cost, label.steps)) return;
      best->second = number;
    }
    open_.push({label.cost + dialect_.Bound(label.layout), label.steps, number});
    labels_.push_back(std::move(label));
  }

  RedistributionPlan PlanTo(int32_t label) const {
    RedistributionPlan plan{.steps = {},
                            .cost = labels_[static_cast<size_t>(label)].cost,
                            .peak = labels_[static_cast<size_t>(label)].peak,
                            .expanded = expanded_};
    for (; labels_[static_cast<size_t>(label)].from >= 0;
         label = labels_[static_cast<size_t>(label)].from) {
      const Move& move = labels_[static_cast<size_t>(label)].move;
      plan.steps.push_back({.step = move.step, .cost = move.cost, .peak = move.peak});
    }
    std::ranges::reverse(plan.steps);
    return plan;
  }

  const Dialect& dialect_;
  const PackedLayout to_;
  const int64_t limit_;
  std::vector<Label> labels_;
  absl::flat_hash_map<PackedLayout, int32_t> best_;  // the label of the least cost of each layout
  std::priority_queue<Open> open_;
  std::vector<Move> moves_;
  int64_t expanded_ = 0;
};

}  // namespace

std::optional<RedistributionPlan> CheapestPlan(const Dialect& dialect, const PackedLayout& from,
                                               const PackedLayout& to, int64_t limit) {
  return Search(dialect, to, limit).Run(from);
}

std::vector<RedistributionPlan> ParetoPlans(const Dialect& dialect, const PackedLayout& from,
                                            const PackedLayout& to) {
  // The cheapest plan under each limit below the peak of the one before: as many searches as there
  // are plans, and one more.
  std::vector<RedistributionPlan> plans;
  for (int64_t limit = kNoLimit;;) {
    auto plan = CheapestPlan(dialect, from, to, limit);
    if (!plan.has_value()) return plans;
    const int64_t peak = plan->peak;
    if (!plans.empty() && plans.back().cost == plan->cost) plans.pop_back();
    plans.push_back(*std::move(plan));
    if (peak <= std::max(dialect.Elements(from), dialect.Elements(to))) return plans;
    limit = peak - 1;
  }
}

RedistributionPlan Priced(const Dialect& dialect, const PackedLayout& from,
                          const std::vector<Move>& moves) {
  RedistributionPlan plan;
  plan.peak = dialect.Elements(from);
  for (const Move& move : moves) {
    plan.steps.push_back({.step = move.step, .cost = move.cost, .peak = move.peak});
    plan.cost += move.cost;
    plan.peak = std::max(plan.peak, move.peak);
  }
  return plan;
}

}  // namespace orrery::transforms
