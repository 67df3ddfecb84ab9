#ifndef ORRERY_TOOLS_SEARCHES_SEARCH_JOB_H_
#define ORRERY_TOOLS_SEARCHES_SEARCH_JOB_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "search/journal/question.h"
#include "search/search.h"
#include "tools/team/team.h"

// A search as grid_search does it: whole, in part, gone on with, put together from parts, or by a
// team of processes. Whoever does it, results are the same.

namespace orrery::tools {

/// How it is done, as flags say.
struct JobFlags {
  int32_t threads = 0;                  // 0: one a core
  std::string part = {};                // "2/3"; empty: whole
  std::string resume = {};              // a journal; empty: none
  std::vector<std::string> merge = {};  // journals of all parts; none: the search is done
  std::string method = {};              // as search::ParseMethod reads it; empty: by the budget
  std::string budget = {};              // as search::ParseBudget reads it; empty: none
  int64_t seed = 1;                     // of a method that draws
};

/// So many threads: as many as this process may use, where nobody says so.
int32_t Threads(const JobFlags& flags);

/// What is wrong with the flags by themselves.
absl::Status CheckJob(const JobFlags& flags);

/// What is to be searched. So many fields: all that a search is asked.
struct SearchJob {
  search::SettingOf setting_of;
  search::PlanList plans;
  /// Axes as search::Listing has them. Where there are any, plans stand for others, their variants,
  /// which are not listed; those of the best are played, too, behind all others.
  std::vector<const transforms::AxisInfo*> held = {};
  std::function<std::vector<search::ParallelPlan>(const search::ParallelPlan&)> variants = {};
  search::ReliefOf relief;
  search::Question question;                // empty where nobody needs it (NeedsQuestion)
  int64_t top = 0;                          // as in search::SearchOptions
  search::Goal goal = search::Goal::kTime;  // likewise
  Team* team = nullptr;                     // null: this process is alone
  /// From which a budget of time is counted.
  std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
};

/// Whether such a search plays some of its candidates, so that not all need be listed: by itself
/// where there are many, or with a budget. Not where a journal or other processes have to agree on
/// which they are.
bool PlaysSome(const JobFlags& flags, int64_t top, const Team* team);

/// Whether the question has to be told from others.
bool NeedsQuestion(const JobFlags& flags, const Team* team);

/// What there is at the end.
struct JobOutcome {
  search::SearchRows results;  // good as long as the job
  size_t candidates = 0;       // of the search, or of the part
  bool stopped = false;        // by a signal: results are of those that were done
  bool is_part = false;        // of a search
  bool is_told = true;         // else another process of the team tells it
  size_t missing = 0;          // candidates that are not done
  absl::Status journal = {};   // of what could not be written to it
};

/// Does it. Warns on standard error of what a journal has lost.
absl::StatusOr<JobOutcome> RunJob(const JobFlags& flags, const SearchJob& job);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_SEARCHES_SEARCH_JOB_H_
