#ifndef ORRERY_SEARCH_SEARCH_ROWS_H_
#define ORRERY_SEARCH_SEARCH_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "search/evaluate.h"
#include "search/goals/goal.h"

namespace orrery::search {

/// What is known of a candidate that was not played.
enum class Unplayed : uint8_t {
  kTooLarge,  // it cannot fit: by a bound of its memory
  kPruned,    // others beat its bounds
  kLeft,      // the budget of the search ended before
};

/// The results of a search in their order. What was not played takes a few bytes, and is made into
/// a result when somebody asks for it: of a million candidates most are so.
class SearchRows {
 public:
  /// What is told of candidates that were not played.
  struct Maker {
    /// The result of the candidate at that place, which was not played for that reason.
    std::function<Result(size_t candidate, Unplayed why)> row = {};
    /// What a rank of it needs at least.
    std::function<Bytes(size_t candidate)> least_memory = {};
  };

  SearchRows() = default;
  /// Results that are all here.
  SearchRows(std::vector<Result> results);  // NOLINT(google-explicit-constructor): reads as them
  SearchRows(std::initializer_list<Result> results) : SearchRows(std::vector<Result>(results)) {}

  /// For rows that are not played, of which `make` tells.
  explicit SearchRows(Maker make) : make_(std::move(make)) {}
  /// Room for so many rows.
  void Reserve(size_t rows) { rows_.reserve(rows); }
  /// Adds the result of a candidate that was played.
  void Add(Result result);
  /// Adds the row of a candidate that was not played, for that reason.
  void Add(size_t candidate, Unplayed why);
  /// One that is left takes so much at least; what nobody knows is 0.
  void NoteLeft(const GoalFigures& least);
  /// By which goal the best are told (Ranked): of a search that was asked for it.
  void RankBy(Goal goal) { goal_ = goal; }
  /// That goal; without RankBy time.
  Goal goal() const { return goal_; }

  size_t size() const { return rows_.size(); }
  bool empty() const { return rows_.empty(); }
  /// The result at that place; of one that was not played, made anew.
  Result operator[](size_t i) const;
  /// The result where it is here; null: it was not played.
  const Result* Played(size_t i) const;
  /// The peak memory of a result, or from below of one that was not played, without making it.
  Bytes MemoryOf(size_t i) const;
  /// Whether it was pruned, or was not reached.
  bool IsPruned(size_t i) const;
  /// Likewise.
  bool IsLeft(size_t i) const;
  /// How long what is left takes at least; nothing: none is left.
  std::optional<Duration> least_left() const { return least_left_; }
  /// What it takes at least of what the goal is about, as SizeOf has it.
  double least_size_left() const { return least_size_left_; }
  /// All that are here, in their order.
  const std::vector<Result>& played() const { return played_; }
  /// Calls `see` with each in turn.
  void ForEach(const std::function<void(const Result&)>& see) const;
  /// With those from place `begin` on that stand before `end`, as far as there are any. From any
  /// thread, as long as nothing is added.
  void ForEach(size_t begin, size_t end, const std::function<void(const Result&)>& see) const;

 private:
  // A place in `played_`, or of a candidate.
  struct Row {
    uint32_t place = 0;
    bool is_played = true;
    Unplayed why = Unplayed::kTooLarge;
  };

  std::vector<Result> played_;
  std::vector<Row> rows_;
  Maker make_;
  Goal goal_ = Goal::kTime;
  std::optional<Duration> least_left_;
  double least_size_left_ = 0;
};

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_SEARCH_ROWS_H_
