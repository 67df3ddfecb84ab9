#ifndef ORRERY_SEARCH_SEARCH_H_
#define ORRERY_SEARCH_SEARCH_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "search/evaluate.h"

namespace orrery::search {

/// What to try in place of a plan that does not fit, one after another until one does. What would
/// recompute, and leaves forward nothing less to keep, is passed over.
using ReliefOf = std::function<std::vector<ParallelPlan>(const ParallelPlan& plan)>;

/// Evaluates all candidates on `threads` threads (at least one). Results come in the order of the
/// candidates, those of what `relief` says behind them in the same order, and do not depend on the
/// number of threads: where the system has fewer, on those. A candidate that fails for a reason of
/// its own, out of memory or our own bug, is a result that says so; an error of the question,
/// InvalidArgument, is the first candidate's that has one. `progress`, where given, is called with
/// the number of candidates done so far, from one thread at a time.
absl::StatusOr<std::vector<Result>> RunSearch(const SettingOf& setting_of,
                                              const std::vector<ParallelPlan>& plans,
                                              int32_t threads,
                                              const std::function<void(size_t)>& progress = {},
                                              const ReliefOf& relief = {});

/// The same where all are of one setting.
absl::StatusOr<std::vector<Result>> RunSearch(const Setting& setting,
                                              const std::vector<ParallelPlan>& plans,
                                              int32_t threads,
                                              const std::function<void(size_t)>& progress = {},
                                              const ReliefOf& relief = {});

/// The feasible results, fastest first; of equally fast ones those with less memory, and then in
/// the order of the plans.
std::vector<const Result*> Ranked(const std::vector<Result>& results);

/// One row a result, in the order given, with the header that docs/command_line.md lists.
std::string ResultsCsv(const Setting& setting, const std::vector<Result>& results);

/// The same rows as a JSON list of objects with the keys of the CSV's header.
std::string ResultsJson(const Setting& setting, const std::vector<Result>& results);

/// For people: the `top` fastest, what each spends its time on, and how many are infeasible for
/// which reason.
std::string ResultsTable(const Setting& setting, const std::vector<Result>& results, int64_t top);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_SEARCH_H_
