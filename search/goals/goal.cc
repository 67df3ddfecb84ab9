#include "search/goals/goal.h"

#include "absl/strings/str_cat.h"

namespace orrery::search {
namespace goal_cc {
namespace {

// Exact: picoseconds of a year on a million devices are more than 64 bits have.
absl::uint128 DeviceTime(const GoalFigures& figures) {
  return absl::uint128(static_cast<uint64_t>(figures.time.picoseconds())) *
         absl::uint128(static_cast<uint64_t>(figures.ranks));
}

}  // namespace
}  // namespace goal_cc

absl::StatusOr<Goal> ParseGoal(absl::string_view text) {
  for (const Goal goal : {Goal::kTime, Goal::kThroughput, Goal::kMemory, Goal::kPrice}) {
    if (text == ToString(goal)) return goal;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "': wanted throughput, time, memory or price"));
}

std::string ToString(Goal goal) {
  switch (goal) {
    case Goal::kTime:
      return "time";
    case Goal::kThroughput:
      return "throughput";
    case Goal::kMemory:
      return "memory";
    case Goal::kPrice:
      return "price";
  }
  return "";
}

GoalKey KeyOf(Goal goal, const GoalFigures& figures) {
  const int64_t time = figures.time.picoseconds(), memory = figures.memory.count();
  switch (goal) {
    case Goal::kMemory:
      return {absl::uint128(static_cast<uint64_t>(memory)), time, 0};
    case Goal::kPrice:
      return {goal_cc::DeviceTime(figures), time, memory};
    case Goal::kTime:
    case Goal::kThroughput:
      break;
  }
  return {absl::uint128(static_cast<uint64_t>(time)), 0, 0};
}

double SizeOf(Goal goal, const GoalFigures& figures) {
  switch (goal) {
    case Goal::kMemory:
      return static_cast<double>(figures.memory.count());
    case Goal::kPrice:
      return figures.time.seconds() * static_cast<double>(figures.ranks);
    case Goal::kTime:
    case Goal::kThroughput:
      break;
  }
  return figures.time.seconds();
}

}  // namespace orrery::search
