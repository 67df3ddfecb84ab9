#include <algorithm>
#include <tuple>

#include "search/search.h"

namespace orrery::search {

std::vector<const Result*> Ranked(const SearchRows& rows) {
  return Ranked(rows.played(), rows.goal());
}

std::vector<const Result*> FastestFirst(const SearchRows& rows) {
  return Ranked(rows.played(), Goal::kTime);
}

std::vector<const Result*> Ranked(const std::vector<Result>& results, Goal goal) {
  std::vector<const Result*> ranked;
  for (const Result& result : results) {
    if (result.feasible()) ranked.push_back(&result);
  }
  // Of equals the one that shares out less of the model: it is less to go wrong.
  const auto key = [goal](const Result* result) {
    return std::tuple(KeyOf(goal, GoalFiguresOf(*result)), result->plan.ranks() / result->plan.dp,
                      result->peak_memory);
  };
  std::stable_sort(ranked.begin(), ranked.end(),
                   [&](const Result* a, const Result* b) { return key(a) < key(b); });
  return ranked;
}

}  // namespace orrery::search
