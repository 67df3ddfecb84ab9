#include "tools/searches/plan_job.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "search/memory_fit.h"
#include "search/search.h"
#include "search/views/front.h"
#include "support/status.h"
#include "tools/searches/unequal_candidates.h"
#include "tools/terminal/interrupt.h"
#include "tools/terminal/progress.h"
#include "transforms/plan/axis.h"
#include "transforms/plan/plan_text.h"

namespace orrery::tools {
namespace plan_job_cc {
namespace {

using search::ParallelPlan;
using search::Result;

constexpr size_t kMostOfExpert = 200;  // plans that the expert tries

class PlanFinder {
 public:
  explicit PlanFinder(const PlanJob& job) : job_(job), setting_of_(job.settings.AsFunction()) {
    if (search::MayRelieve(job.space)) {
      relief_ = [&job](const ParallelPlan& plan) { return search::Relief(job.space, plan); };
    }
    outcome_.candidates = job.choices != nullptr ? job.choices->size() : job.plans.size();
  }

  absl::StatusOr<PlanOutcome> Run() && {
    ORRERY_RETURN_IF_ERROR(PlayExpert());
    if (job_.method == kExactMethod) {
      ORRERY_RETURN_IF_ERROR(PlanExactly());
    } else if (job_.method != kExpertMethod) {
      ORRERY_RETURN_IF_ERROR(Walk());
    }
    outcome_.seconds = Seconds();
    return std::move(outcome_);
  }

 private:
  double Seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
  }

  void Count(const std::vector<Result>& results) {
    for (const Result& result : results) {
      if (!result.ran) continue;
      ++outcome_.played;
      Improve(result);
    }
  }

  void Improve(const Result& result) {
    std::optional<Result>& best = outcome_.best;
    if (!result.feasible() || (best.has_value() && best->step_time <= result.step_time)) return;
    best = result;
    outcome_.course.push_back({Seconds(), outcome_.played, result.step_time});
  }

  absl::Status PlayExpert() {
    const Waiting waiting("playing the expert's plan");
    ORRERY_ASSIGN_OR_RETURN(
        outcome_.expert,
        search::PlayExpert(setting_of_, job_.plans,
                           {.relief = relief_, .stop = &signals_.stop(), .budget = job_.budget},
                           kMostOfExpert));
    if (!outcome_.expert.has_value()) return absl::OkStatus();
    outcome_.played = outcome_.expert->played;
    Improve(outcome_.expert->result());
    return absl::OkStatus();
  }

  // What all searches have in common.
  search::SearchOptions Options() {
    return {.threads = job_.threads,
            .relief = relief_,
            .top = 1,
            .finished = [this](size_t, const std::vector<Result>& results) { Count(results); },
            .tells_unplayed = false,
            .stop = &signals_.stop(),
            .budget = job_.budget,
            .seed = job_.seed};
  }

  // Alpa's and PipeDream's planners.
  absl::Status PlanExactly() {
    search::PlanList plans;
    for (const ParallelPlan& plan : job_.plans) plans.Insert(plan);
    {
      const Waiting waiting("planning");
      ORRERY_RETURN_IF_ERROR(AddUnequal("--method exact", job_.space, job_.settings, plans));
    }
    std::vector<ParallelPlan> exact;
    for (size_t i = job_.plans.size(); i < plans.size(); ++i) exact.push_back(plans[i]);
    outcome_.candidates += exact.size();
    outcome_.log = absl::StrCat(exact.size(), " plans of Alpa's and PipeDream's planners");
    return search::SearchThrough(setting_of_, exact, Options()).status();
  }

  // Of the first that was played and is infeasible; "": there is none.
  std::string WhyInfeasible(const search::SearchRows& rows) const {
    for (const Result& result : rows.played()) {
      if (!result.infeasible.has_value()) continue;
      return absl::StrCat("for example ",
                          transforms::ToString(result.plan, setting_of_(result.plan).base), ": ",
                          result.infeasible->detail, "\n");
    }
    return "";
  }

  absl::Status Walk() {
    return job_.choices == nullptr ? WalkThrough(job_.plans, {})
                                   : WalkThrough(*job_.choices, ChoicesOf(*job_.choices));
  }

  static search::WalkChoices ChoicesOf(const search::ChoiceList& list) {
    search::WalkChoices choices = {
        .things = {},
        .labels = list.label_limit(),
        .with = [&](size_t i, const std::vector<int>& labels) { return list.With(i, labels); }};
    for (size_t thing = 0; thing < list.things(); ++thing) {
      choices.things.push_back(list.FeaturesOfThing(thing));
    }
    return choices;
  }

  template <typename List>
  absl::Status WalkThrough(const List& list, search::WalkChoices choices) {
    search::KnownResults known;
    if (outcome_.expert.has_value()) {
      known[list.PlaceOf(outcome_.expert->place)] = outcome_.expert->results;
    }
    ORRERY_ASSIGN_OR_RETURN(const search::Method method, search::ParseMethod(job_.method));
    search::SearchOptions options = Options();
    options.known = &known;
    options.method = method;
    options.neighbours = [&](size_t i) { return list.Neighbours(i); };
    options.family = [&](size_t i) { return list.FamilyOf(i); };
    options.changes = [&](size_t i) { return list.ChangesOf(i); };
    options.features = [&](size_t i) { return list.FeaturesOf(i); };
    options.choices = std::move(choices);
    options.walked = [&](const search::Walk& walk) { outcome_.log = walk.Log(); };
    const search::PlansView plans(list.size(), [&](size_t i) { return list[i]; });
    ORRERY_ASSIGN_OR_RETURN(const search::SearchRows rows,
                            search::SearchThrough(setting_of_, plans, options));
    outcome_.certainty = search::GapText(rows);
    // Of plans that are equally fast the one that a search ranks first.
    const std::vector<const Result*> ranked = search::Ranked(rows);
    if (!ranked.empty()) outcome_.best = *ranked.front();
    if (!outcome_.best.has_value()) {
      outcome_.misfit = search::ClosestMisfit(setting_of_, rows);
      if (outcome_.misfit.empty()) outcome_.misfit = WhyInfeasible(rows);
      outcome_.others_left = rows.least_left().has_value();
    }
    return absl::OkStatus();
  }

  const PlanJob& job_;
  const search::SettingOf setting_of_;
  search::ReliefOf relief_;
  const StopOnSignals signals_;
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  PlanOutcome outcome_;
};

}  // namespace
}  // namespace plan_job_cc

absl::Status CheckPlanMethod(absl::string_view method) {
  if (method == kExpertMethod || method == kExactMethod) return absl::OkStatus();
  if (search::ParseMethod(method).ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--method '", method, "': wanted ", kExpertMethod,
                                                 ", ", kExactMethod, ", ", search::MethodsText()));
}

absl::StatusOr<PlanOutcome> FindPlan(const PlanJob& job) {
  return plan_job_cc::PlanFinder(job).Run();
}

std::vector<std::string> Differences(const search::ParallelPlan& plan,
                                     const search::ParallelPlan& other) {
  std::vector<std::string> differences;
  for (const transforms::AxisInfo* axis : transforms::AllAxes()) {
    // Several of one flag are a line each.
    const auto print = [&](const search::ParallelPlan& of) {
      return absl::StrReplaceAll(axis->print(of), {{"\n", " and "}});
    };
    const std::string value = print(plan), before = print(other);
    // Degrees of a placement are those of its sets of devices.
    const bool is_told = axis->degree != nullptr && plan.placement != other.placement;
    if (value == before || is_told) continue;
    differences.push_back(absl::StrCat("--", axis->flag, " ", value.empty() ? "none" : value,
                                       " in place of ", before.empty() ? "none" : before));
  }
  return differences;
}

}  // namespace orrery::tools
