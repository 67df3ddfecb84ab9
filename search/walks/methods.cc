#include "search/walks/methods.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "search/walks/registry.h"

namespace orrery::search {

std::span<const Method> AllMethods() {
  static constexpr Method kAll[] = {
#define ORRERY_WALK_METHOD(Name, file) &k##Name##Method,
#include "search/walks/methods.def"
#undef ORRERY_WALK_METHOD
  };
  return kAll;
}

std::string MethodsText() {
  const std::span<const Method> all = AllMethods();
  const auto append = [](std::string* out, Method method) { absl::StrAppend(out, method->name); };
  return absl::StrCat(absl::StrJoin(all.first(all.size() - 1), ", ", append), " or ",
                      all.back()->name);
}

absl::StatusOr<Method> ParseMethod(absl::string_view text) {
  const std::span<const Method> all = AllMethods();
  const auto found = std::ranges::find(all, text, &MethodInfo::name);
  if (found != all.end()) return *found;
  return absl::InvalidArgumentError(absl::StrCat("'", text, "': wanted ", MethodsText()));
}

absl::StatusOr<SearchBudget> ParseBudget(absl::string_view text) {
  const auto error = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text,
                     "': wanted a time, as in 60s, 10min or 2h, or a number of "
                     "candidates, as in 500"));
  };
  constexpr double kMost = 1e9;  // seconds: 30 years
  const std::pair<absl::string_view, double> units[] = {
      {"min", 60}, {"h", 3600}, {"s", 1}};  // the longest that fits first
  for (const auto& [unit, seconds] : units) {
    absl::string_view number = text;
    double value = 0;
    if (!absl::ConsumeSuffix(&number, unit)) continue;
    if (!absl::SimpleAtod(number, &value) || !(value > 0) || value * seconds > kMost) {
      return error();
    }
    return SearchBudget{.seconds = value * seconds};
  }
  int64_t candidates = 0;
  if (!absl::SimpleAtoi(text, &candidates) || candidates < 1) return error();
  return SearchBudget{.candidates = candidates};
}

std::string ToString(const SearchBudget& budget) {
  if (budget.candidates > 0) return absl::StrCat(budget.candidates);
  return absl::StrCat(budget.seconds, "s");
}

}  // namespace orrery::search
