#include "search/search.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

namespace orrery::search {

absl::StatusOr<std::vector<Result>> RunSearch(const Setting& setting,
                                              const std::vector<Candidate>& candidates,
                                              int32_t threads,
                                              const std::function<void(size_t)>& progress) {
  std::vector<Result> results(candidates.size());
  std::vector<absl::Status> errors(candidates.size());
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  size_t done = 0;
  const auto work = [&] {
    for (size_t i = next++; i < candidates.size(); i = next++) {
      absl::StatusOr<Result> result = Evaluate(setting, candidates[i]);
      if (result.ok()) {
        results[i] = *std::move(result);
      } else {
        errors[i] = result.status();
      }
      if (!progress) continue;
      const std::lock_guard<std::mutex> lock(mutex);
      progress(++done);
    }
  };
  std::vector<std::thread> workers;
  for (int32_t t = 1; t < threads; ++t) workers.emplace_back(work);
  work();
  for (std::thread& worker : workers) worker.join();
  for (const absl::Status& error : errors) {
    if (!error.ok()) return error;
  }
  return results;
}

std::vector<const Result*> Ranked(const std::vector<Result>& results) {
  std::vector<const Result*> ranked;
  for (const Result& result : results) {
    if (result.feasible()) ranked.push_back(&result);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const Result* a, const Result* b) { return a->step_time < b->step_time; });
  return ranked;
}

}  // namespace orrery::search
