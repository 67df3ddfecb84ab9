#ifndef ORRERY_SEARCH_SEARCH_H_
#define ORRERY_SEARCH_SEARCH_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "search/candidates.h"
#include "search/evaluate.h"
#include "search/goals/goal.h"
#include "search/search_rows.h"
#include "search/spaces/plan_list.h"
#include "search/walks/methods.h"

namespace orrery::search {

/// What is known of candidates, by their place: of each its own result, then those of its relief.
using KnownResults = std::map<size_t, std::vector<Result>>;

/// How a search goes about its candidates. It has so many fields: each is a choice of its own.
struct SearchOptions {
  int32_t threads = 1;  // at least one; where the system has fewer, those
  /// Where given, called with the number of candidates done so far, from one thread at a time.
  std::function<void(size_t)> progress = {};
  ReliefOf relief = {};
  /// So many of the best by the goal are wanted, and the Pareto front over time, memory and
  /// devices: what can be neither, by its bounds, is a row that says so (Result::pruned). 0: all
  /// are played.
  int64_t top = 0;
  /// What the best are the best in.
  Goal goal = Goal::kTime;
  /// Where given, candidates that are not done, since their results are these. They count as done.
  const KnownResults* known = nullptr;
  /// Where given, called with what was found of each candidate and its place once that is done,
  /// from one thread at a time.
  std::function<void(size_t, const std::vector<Result>&)> finished = {};
  /// Whether `finished` is called with the results of candidates that were not played, too, which
  /// takes longer than to bound them; else with none.
  bool tells_unplayed = true;
  /// Where given: once it is true, no candidate is begun.
  const std::atomic<bool>* stop = nullptr;
  /// Where given, the place of the candidate to do next, or that there is none; from one thread at
  /// a time. Else all are done, in their order.
  std::function<std::optional<size_t>()> next = {};
  /// Which are played first, and how many at most: what is not reached is a row that says so
  /// (Result::left). With `next` only the time counts. A time is counted from `begun`, but a
  /// quarter of it is there in any case, and so are the first plays without `next`; what is played
  /// when it ends is not reached.
  Method method = &kExhaustiveMethod;
  SearchBudget budget = {};
  std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
  uint32_t seed = 1;  // of a method that draws
  /// Whether a candidate stands for others that have its bounds, and are not listed: what is left
  /// are then they, too.
  bool stand_for_others = false;
  /// For methods that go from candidate to candidate, as in WalkQuestion.
  std::function<std::vector<size_t>(size_t)> neighbours = {};
  /// Likewise.
  std::function<uint64_t(size_t)> family = {};
  /// How far a candidate is from a plain one: of those that are likely to fit such methods begin
  /// with the plainest. Null: all are alike.
  std::function<int32_t(size_t)> changes = {};
  /// As in WalkQuestion.
  std::function<std::vector<double>(size_t)> features = {};
  /// Likewise.
  WalkChoices choices = {};
  /// Where given, called at the end with the walk of a method that was taken.
  std::function<void(const Walk&)> walked = {};
};

/// Evaluates all candidates. Results come in the order of the candidates, those of what
/// `options.relief` says behind them in the same order, and do not depend on the number of threads.
/// A candidate that fails for a reason of its own, out of memory or our own bug, is a result that
/// says so; an error of the question, InvalidArgument, is the first candidate's that has one. A
/// candidate is pruned together with its relief, or not at all; which are, the results tell, not
/// when they came. Of candidates that were not begun there are no results.
absl::StatusOr<std::vector<Result>> RunSearch(const SettingOf& setting_of,
                                              const std::vector<ParallelPlan>& plans,
                                              const SearchOptions& options = {});

/// The same where all are of one setting.
absl::StatusOr<std::vector<Result>> RunSearch(const Setting& setting,
                                              const std::vector<ParallelPlan>& plans,
                                              const SearchOptions& options = {});

/// The same of any number of candidates: what is not played takes a few bytes.
absl::StatusOr<SearchRows> SearchThrough(const SettingOf& setting_of, const PlansView& plans,
                                         const SearchOptions& options = {});

/// The feasible results, the best by the goal first (GoalKey); of equals those that share out less
/// of the model, then those with less memory, and then in the order of the plans.
std::vector<const Result*> Ranked(const std::vector<Result>& results, Goal goal = Goal::kTime);
/// Likewise, by the goal of the rows.
std::vector<const Result*> Ranked(const SearchRows& rows);
/// The same by time, whatever the goal.
std::vector<const Result*> FastestFirst(const SearchRows& rows);

/// What a result says in a column of its table; nothing where it has no such figure.
using ResultValue = std::variant<std::monostate, bool, int64_t, double, std::string>;

/// One column of the CSV, one key of the JSON.
struct ResultCell {
  std::string name;  // "step_time_s"
  ResultValue value = {};
};

/// The row of a result, in the order of the columns.
std::vector<ResultCell> CellsOf(const Setting& setting, const Result& result);

/// One row a result, in the order given, with the header that docs/command_line.md lists.
std::string ResultsCsv(const Setting& setting, const SearchRows& rows);

/// The same rows as a JSON list of objects with the keys of the CSV's header.
std::string ResultsJson(const Setting& setting, const SearchRows& rows);

/// Takes a text piece by piece. After an error it is not called again.
using PieceSink = std::function<absl::Status(absl::string_view piece)>;
/// How that is done.
struct PiecesOptions {
  bool is_first = true;  // of several searches in one file, with whose rows it begins
  size_t threads = 1;
};
/// Writes what ResultsCsv has, so that of millions of rows a few are held at a time; of further
/// searches without the header. The first error of `write`.
absl::Status WriteResultsCsv(const Setting& setting, const SearchRows& rows,
                             const PiecesOptions& options, const PieceSink& write);
/// What ends a JSON list that has rows.
inline constexpr absl::string_view kEndOfJson = "\n]\n";
/// Likewise of ResultsJson, whose list is left open: kEndOfJson is to follow the last search that
/// had rows.
absl::Status WriteResultsJson(const Setting& setting, const SearchRows& rows,
                              const PiecesOptions& options, const PieceSink& write);

/// For people: the `top` fastest, what each spends its time on, and how many are infeasible for
/// which reason. Where its columns take more than so many characters, those that say least are left
/// out; what a plan has beside its columns stands behind them.
std::string ResultsTable(const Setting& setting, const SearchRows& rows, int64_t top,
                         size_t columns = std::numeric_limits<size_t>::max());

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_SEARCH_H_
