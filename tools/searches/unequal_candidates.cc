#include "tools/searches/unequal_candidates.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "search/stage_plans.h"
#include "support/status.h"
#include "transforms/plan/axis.h"
#include "transforms/plan/plan_text.h"

namespace orrery::tools {

void AddUnequalFlag(boost::program_options::options_description& options, bool& asked) {
  options.add_options()(
      "unequal-stages", boost::program_options::bool_switch(&asked),
      "try stages with ranks of their own, too, as the planners of PipeDream and Alpa make them; "
      "always where devices are of several kinds and degrees are left open");
}

namespace unequal_candidates_cc {
namespace {

using search::ParallelPlan;

// What plans of a search are beside their degrees, and the microbatches that each such has. So
// whatever else is listed, or chosen for the model, is tried with stages of their own, too.
struct Base {
  ParallelPlan plan;
  std::vector<int64_t> microbatches;
};

bool IsPlain(const ParallelPlan& plan) {
  const transforms::PipelineSchedule& schedule = *plan.schedule;
  return schedule.placement == transforms::StagePlacement::kLoop && schedule.chunks == 1 &&
         !schedule.asynchronous && !schedule.slices_sequence && plan.cp == 1 && plan.ep == 1 &&
         plan.zero_group == 0;
}

// At most so many of them, the first among them.
template <typename T>
std::vector<T> EvenlySpread(const std::vector<T>& all, size_t most) {
  std::vector<T> some;
  const size_t every = std::max<size_t>(1, (all.size() + most - 1) / most);
  for (size_t i = 0; i < all.size(); i += every) some.push_back(all[i]);
  return some;
}

std::vector<Base> BasesOf(const search::PlanList& plans, const std::string& key) {
  std::vector<Base> bases;
  absl::flat_hash_map<ParallelPlan, size_t> known;
  for (const ParallelPlan& plan : plans) {
    if (!IsPlain(plan) || transforms::StepKey(plan) != key) continue;
    ParallelPlan base = plan;
    base.dp = base.hp = base.pp = base.microbatches = 1;
    base.chunks = 0;
    const auto [found, is_new] = known.try_emplace(base, bases.size());
    if (is_new) bases.push_back({.plan = std::move(base), .microbatches = {}});
    bases[found->second].microbatches.push_back(plan.microbatches);
  }
  for (Base& base : bases) {
    std::ranges::sort(base.microbatches);
    const auto again = std::unique(base.microbatches.begin(), base.microbatches.end());
    base.microbatches.erase(again, base.microbatches.end());
  }
  return bases;
}

}  // namespace
}  // namespace unequal_candidates_cc

// Adds plans whose stages or replicas are not alike: where they are asked for, and where devices
// are of several kinds and nobody gives degrees.
absl::Status AddUnequal(absl::string_view asked, const search::Space& space,
                        const search::Settings& settings, search::PlanList& plans) {
  constexpr size_t kMost = 32;  // questions to the planners, each of which shards all layers anew
  bool open = true;
  for (const absl::string_view axis :
       {"dp", "hp", "pp", "cp", "ep", "stage-meshes", "shares", "layers-per-stage", "split-at"}) {
    open = open && space.Values(*transforms::FindAxis(axis)).empty();
  }
  if (asked.empty() && (settings.front().cluster.kind_count() == 1 || !open)) {
    return absl::OkStatus();
  }
  if (!open) {
    return absl::InvalidArgumentError(
        absl::StrCat(asked,
                     ": planners say themselves what dp, hp, pp, stage-meshes, shares and "
                     "layers-per-stage are, and have no cp, ep and split-at; wanted none of "
                     "these"));
  }
  bool any = false;
  std::vector<search::ParallelPlan> found;
  for (const auto& [key, setting] : settings.all()) {
    const std::vector<unequal_candidates_cc::Base> bases =
        unequal_candidates_cc::BasesOf(plans, key);
    any = any || !bases.empty();
    for (const unequal_candidates_cc::Base& base :
         unequal_candidates_cc::EvenlySpread(bases, kMost)) {
      ORRERY_ASSIGN_OR_RETURN(
          std::vector<search::ParallelPlan> unequal,
          search::UnequalPlans(setting, base.plan,
                               unequal_candidates_cc::EvenlySpread(
                                   base.microbatches, std::max<size_t>(1, kMost / bases.size()))));
      for (search::ParallelPlan& plan : unequal) found.push_back(std::move(plan));
    }
  }
  if (!asked.empty() && !any) {
    return absl::InvalidArgumentError(
        absl::StrCat(asked,
                     ": all schedules have several stages a rank, parts of sequences, or "
                     "updates all the time; wanted one such as 1f1b among them"));
  }
  for (const search::ParallelPlan& plan : found) plans.Insert(plan);
  return absl::OkStatus();
}

}  // namespace orrery::tools
