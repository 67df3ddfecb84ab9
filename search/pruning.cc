#include "search/pruning.h"

#include <algorithm>
#include <exception>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "search/bounds/least_memory.h"

namespace orrery::search {

std::vector<const Result*> ParetoFront(const std::vector<Result>& results) {
  const auto covers = [](const Result& a, const Result& b) {
    return a.step_time <= b.step_time && a.peak_memory <= b.peak_memory &&
           a.plan.ranks() <= b.plan.ranks();
  };
  std::vector<const Result*> front;
  for (const Result& result : results) {
    if (!result.feasible()) continue;
    if (std::ranges::any_of(front, [&](const Result* other) { return covers(*other, result); })) {
      continue;
    }
    std::erase_if(front, [&](const Result* other) { return covers(result, *other); });
    front.push_back(&result);
  }
  return front;
}

void Incumbents::Add(const Result& result) {
  if (!result.feasible()) return;
  best_.insert(KeyOf(goal_, GoalFiguresOf(result)));
  if (best_.size() > top_) best_.erase(std::prev(best_.end()));
  const Point point = {result.step_time, result.peak_memory, result.plan.ranks()};
  const auto covers = [](const Point& a, const Point& b) {
    return a.time <= b.time && a.memory <= b.memory && a.ranks <= b.ranks;
  };
  if (std::ranges::any_of(front_, [&](const Point& other) { return covers(other, point); })) return;
  std::erase_if(front_, [&](const Point& other) { return covers(point, other); });
  front_.push_back(point);
}

bool Incumbents::Beat(const PlanBound& bound, int64_t ranks) const {
  // No key of the plan is less than that of its bounds, since keys grow with figures. So the last
  // of the best, where it is less than that, is less than the plan's, and so are those before it:
  // ties of keys are not beaten, and are told apart by what Ranked has behind them.
  const GoalKey least = KeyOf(goal_, {bound.time, bound.memory, ranks});
  if (best_.size() < top_ || !(*best_.rbegin() < least)) return false;
  return std::ranges::any_of(front_, [&](const Point& point) {
    return point.time < bound.time && point.memory <= bound.memory && point.ranks <= ranks;
  });
}

// A bound that is a smaller part of what there is leaves room for the peak. Counted on llama3-70b's
// default space on 64 H100, of 396 plans that bounds let through: without stages, whose bound is
// near to the peak where it counts activations, all of those below 0.9 fit, and none above; of
// stages, which have peaks of up to three times the bound, of those below 0.5 nearly all, and few
// above.
static constexpr double kLooseOfNear = 0.9, kLoose = 0.5;

// What fails here fails where the plan is played, and is told there.
PlanBound SearchBounds::Of(const ParallelPlan& plan) {
  is_too_large_ = is_tight_ = false;
  likely_s_ = 0;
  try {
    const Setting& setting = setting_of_(plan);
    OfSetting& of = settings_.try_emplace(&setting, setting).first->second;
    const PlanBound bound = of.bounds.Of(plan);
    // Where nothing is told of the plan there is no bound.
    const Bytes limit = bound.memory == Bytes(0) ? Bytes(0) : MemoryLimit(setting, plan);
    is_too_large_ = limit > Bytes(0) && bound.memory > limit;
    const bool near = plan.pp == 1 && CountsKept(setting, plan);
    const double loose = near ? kLooseOfNear : kLoose;
    is_tight_ = limit > Bytes(0) && static_cast<double>(bound.memory.count()) >
                                        loose * static_cast<double>(limit.count());
    if (likely_ && !is_too_large_) {
      if (!of.likely.has_value()) of.likely.emplace(setting);
      likely_s_ = of.likely->SecondsOf(plan, bound.time);
    }
    return bound;
  } catch (const std::exception&) {
    return {};
  }
}

Result TooLarge(const Setting& setting, const ParallelPlan& plan, const PlanBound& bound) {
  Result result;
  result.plan = plan;
  result.peak_memory = bound.memory;
  result.infeasible = {
      .reason = InfeasibleReason::kMemory,
      .detail = absl::StrCat(
          "parameters, optimizer state and what forward keeps or the update reads need ",
          ToString(bound.memory), " a rank at least; the limit is ",
          ToString(MemoryLimit(setting, plan)))};
  return result;
}

Result Pruned(const ParallelPlan& plan, const PlanBound& bound) {
  Result result;
  result.plan = plan;
  result.peak_memory = bound.memory;
  result.pruned =
      absl::StrCat("a step takes ", ToString(bound.time), " at least, and a rank needs ",
                   ToString(bound.memory), " at least: others are better in both");
  return result;
}

}  // namespace orrery::search
