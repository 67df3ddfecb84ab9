#ifndef ORRERY_TOOLS_SEARCHES_PLAN_JOB_H_
#define ORRERY_TOOLS_SEARCHES_PLAN_JOB_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "search/planners/expert.h"
#include "search/settings/settings.h"
#include "search/spaces/choice_list.h"
#include "search/spaces/plan_list.h"
#include "search/spaces/space.h"
#include "search/walks/methods.h"
#include "tools/searches/plan_views.h"

// A search for a plan as `plan` does it: the expert's first, then by a method.

namespace orrery::tools {

/// Methods beside those of search::AllMethods.
inline constexpr absl::string_view kExpertMethod = "expert", kExactMethod = "exact";

/// What is searched, by what. All that it names lives longer.
struct PlanJob {
  const search::Space& space;
  const search::Settings& settings;
  const search::PlanList& plans;
  /// The same plans with what is chosen beside axes, where methods are to walk through these.
  const search::ChoiceList* choices = nullptr;
  std::string method;
  search::SearchBudget budget = {};  // of the method, once the expert's plan is known
  uint32_t seed = 1;
  int32_t threads = 1;
};

/// What came of it.
struct PlanOutcome {
  std::optional<search::ExpertChoice> expert;
  std::optional<search::Result> best;  // never slower than the expert's
  int64_t played = 0;                  // plans, with what was tried in their place
  size_t candidates = 0;               // plans that there were
  double seconds = 0;
  std::vector<Milestone> course = {};
  std::string log = {};        // of the method
  std::string certainty = {};  // how far the best may be from what was not played
  std::string misfit = {};     // where there is no best, why
  bool others_left = false;    // then: whether some were not played
};

/// InvalidArgument, which lists them, unless the method is one of these.
absl::Status CheckPlanMethod(absl::string_view method);

/// Searches. On a signal the best so far is what came of it.
absl::StatusOr<PlanOutcome> FindPlan(const PlanJob& job);

/// The axes in which a plan differs from another, "--hp 2 in place of 8".
std::vector<std::string> Differences(const search::ParallelPlan& plan,
                                     const search::ParallelPlan& other);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_SEARCHES_PLAN_JOB_H_
