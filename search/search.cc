#include "search/search.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <tuple>
#include <utility>

#include "support/status.h"
#include "support/threads.h"
#include "transforms/parallel.h"

namespace orrery::search {
namespace search_cc {
namespace {

constexpr size_t kMaxThreads = 256;

// The figures of one plan; an exception must not leave a thread.
absl::StatusOr<Result> EvaluateSafely(const SettingOf& setting_of, const ParallelPlan& plan) {
  try {
    return Evaluate(setting_of(plan), plan);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory; try fewer microbatches or fewer threads");
  } catch (const std::exception& error) {
    return absl::InternalError(error.what());
  }
}

// A plan that failed where others need not is a row of the search like others: it says why. What is
// wrong with the question is wrong with all of them.
absl::StatusOr<Result> EvaluateOne(const SettingOf& setting_of, const ParallelPlan& plan) {
  absl::StatusOr<Result> result = EvaluateSafely(setting_of, plan);
  if (result.ok() || absl::IsInvalidArgument(result.status())) return result;
  Result failed;
  failed.plan = plan;
  failed.infeasible = {.reason = InfeasibleReason::kUnsupported,
                       .detail = std::string(result.status().message())};
  return failed;
}

// Whether recomputing as a plan says leaves the forward of a whole step less to keep. Of attention
// that keeps no scores `selective` leaves all: such a plan needs what it is to relieve.
class RecomputationsThatHelp {
 public:
  bool Has(const Setting& setting, const ParallelPlan& plan) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto [known, is_new] =
        helps_.try_emplace({&setting, transforms::ToString(plan.recompute)}, true);
    if (is_new) {
      const int64_t with = OpsOf(setting, plan.recompute);
      known->second = with < 0 || with != OpsOf(setting, {});
    }
    return known->second;
  }

 private:
  // Of one stage; -1 where it cannot be recomputed so.
  static int64_t OpsOf(const Setting& setting, const transforms::RecomputePolicy& recompute) {
    const auto step = transforms::ParallelTransform3d(
        setting.step, {.recompute = recompute},
        {.fuses_pointwise = setting.lowering.kernels.fuses_pointwise});
    return step.ok() ? std::ssize(step->stages.front().backward.function.order()) : -1;
  }

  std::mutex mutex_;
  std::map<std::pair<const Setting*, std::string>, bool> helps_;  // looked up
};

bool LacksMemory(const Result& result) {
  return result.infeasible.has_value() && result.infeasible->reason == InfeasibleReason::kMemory;
}

// The plan's result, and those of what was tried in its place.
absl::StatusOr<std::vector<Result>> WithRelief(const SettingOf& setting_of,
                                               const ParallelPlan& plan, const ReliefOf& relief,
                                               RecomputationsThatHelp& recomputations) {
  std::vector<Result> results;
  ORRERY_ASSIGN_OR_RETURN(results.emplace_back(), EvaluateOne(setting_of, plan));
  // Where weights alone are too much, nothing helps that is about activations.
  if (!relief || !results.front().ran || !LacksMemory(results.front())) return results;
  for (const ParallelPlan& other : relief(plan)) {
    const bool recomputes = other.recompute != plan.recompute;
    if (recomputes && !recomputations.Has(setting_of(other), other)) continue;
    ORRERY_ASSIGN_OR_RETURN(results.emplace_back(), EvaluateOne(setting_of, other));
    if (!LacksMemory(results.back())) break;
  }
  return results;
}

}  // namespace
}  // namespace search_cc

absl::StatusOr<std::vector<Result>> RunSearch(const SettingOf& setting_of,
                                              const std::vector<ParallelPlan>& plans,
                                              int32_t threads,
                                              const std::function<void(size_t)>& progress,
                                              const ReliefOf& relief) {
  std::vector<std::vector<Result>> found(plans.size());
  std::vector<absl::Status> errors(plans.size());
  std::atomic<size_t> next = 0;
  std::atomic<size_t> end = plans.size();  // nobody asks for those behind the first error
  std::mutex mutex;
  size_t done = 0;
  search_cc::RecomputationsThatHelp recomputations;
  const auto work = [&] {
    for (size_t i = next++; i < end; i = next++) {
      auto result = search_cc::WithRelief(setting_of, plans[i], relief, recomputations);
      if (result.ok()) {
        found[i] = *std::move(result);
      } else {
        errors[i] = result.status();
        for (size_t seen = end; i < seen && !end.compare_exchange_weak(seen, i);) {
        }
      }
      if (!progress) continue;
      const std::lock_guard<std::mutex> lock(mutex);
      progress(++done);
    }
  };
  const auto useful = std::min<size_t>(static_cast<size_t>(std::max(1, threads)),
                                       std::min<size_t>(search_cc::kMaxThreads, plans.size()));
  RunOnThreads(work, useful > 0 ? useful - 1 : 0);
  for (const absl::Status& error : errors) {
    if (!error.ok()) return error;
  }
  std::vector<Result> results;
  for (std::vector<Result>& of_plan : found) results.push_back(std::move(of_plan.front()));
  for (std::vector<Result>& of_plan : found) {
    for (size_t i = 1; i < of_plan.size(); ++i) results.push_back(std::move(of_plan[i]));
  }
  return results;
}

absl::StatusOr<std::vector<Result>> RunSearch(const Setting& setting,
                                              const std::vector<ParallelPlan>& plans,
                                              int32_t threads,
                                              const std::function<void(size_t)>& progress,
                                              const ReliefOf& relief) {
  return RunSearch([&](const ParallelPlan&) -> const Setting& { return setting; }, plans, threads,
                   progress, relief);
}

std::vector<const Result*> Ranked(const std::vector<Result>& results) {
  std::vector<const Result*> ranked;
  for (const Result& result : results) {
    if (result.feasible()) ranked.push_back(&result);
  }
  // Of equals the one that shares out less of the model: it is less to go wrong.
  const auto key = [](const Result* result) {
    return std::tuple(result->step_time, result->plan.ranks() / result->plan.dp,
                      result->peak_memory);
  };
  std::stable_sort(ranked.begin(), ranked.end(),
                   [&](const Result* a, const Result* b) { return key(a) < key(b); });
  return ranked;
}

}  // namespace orrery::search
