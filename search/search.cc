#include "search/search.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>
#include <thread>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "support/status.h"
#include "transforms/plan/plan_text.h"

namespace orrery::search {
namespace search_cc {
namespace {

constexpr size_t kMaxThreads = 256;

// An exception must not leave a thread.
absl::StatusOr<Result> EvaluateSafely(const Setting& setting, const ParallelPlan& plan) {
  try {
    return Evaluate(setting, plan);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(absl::StrCat("out of memory in ",
                                                     ToString(plan, setting.base),
                                                     "; try fewer microbatches or fewer threads"));
  }
}

bool LacksMemory(const Result& result) {
  return result.infeasible.has_value() && result.infeasible->reason == InfeasibleReason::kMemory;
}

// The plan's result, and those of what was tried in its place.
absl::StatusOr<std::vector<Result>> WithRelief(const Setting& setting, const ParallelPlan& plan,
                                               const ReliefOf& relief) {
  std::vector<Result> results;
  ORRERY_ASSIGN_OR_RETURN(results.emplace_back(), EvaluateSafely(setting, plan));
  // Where weights alone are too much, nothing helps that is about activations.
  if (!relief || !results.front().ran || !LacksMemory(results.front())) return results;
  for (const ParallelPlan& other : relief(plan)) {
    ORRERY_ASSIGN_OR_RETURN(results.emplace_back(), EvaluateSafely(setting, other));
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
  std::mutex mutex;
  size_t done = 0;
  const auto work = [&] {
    for (size_t i = next++; i < plans.size(); i = next++) {
      auto result = search_cc::WithRelief(setting_of(plans[i]), plans[i], relief);
      if (result.ok()) {
        found[i] = *std::move(result);
      } else {
        errors[i] = result.status();
      }
      if (!progress) continue;
      const std::lock_guard<std::mutex> lock(mutex);
      progress(++done);
    }
  };
  std::vector<std::thread> workers;
  const auto useful = std::min<size_t>(static_cast<size_t>(std::max(1, threads)),
                                       std::min<size_t>(search_cc::kMaxThreads, plans.size()));
  for (size_t t = 1; t < useful; ++t) workers.emplace_back(work);
  work();
  for (std::thread& worker : workers) worker.join();
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
