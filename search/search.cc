#include "search/search.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "search/bounds/least_memory.h"
#include "search/pruning.h"
#include "search/recomputations_that_help.h"
#include "search/walks/walkers.h"
#include "support/heap.h"
#include "support/status.h"
#include "support/threads.h"

namespace orrery::search {
namespace search_cc {
namespace {

using TimePoint = std::chrono::steady_clock::time_point;

constexpr int32_t kMaxThreads = 256;
// What plays leave free in pieces: another one may need it all at once.
constexpr size_t kMostFreed = size_t{128} << 20;
// Of what a search may take a part; what is not held is made again.
constexpr Bytes kRoomForParts(int64_t{64} << 20);

bool LacksMemory(const Result& result) {
  return result.infeasible.has_value() && result.infeasible->reason == InfeasibleReason::kMemory;
}

// A candidate after another, from several threads. So many fields: what it is told, what it finds,
// and who may touch which.
class Search {
 public:
  Search(const SettingOf& setting_of, const SearchOptions& options, Candidates& candidates)
      : setting_of_(setting_of),
        options_(options),
        threads_(static_cast<size_t>(std::clamp(options.threads, 1, kMaxThreads))),
        candidates_(candidates),
        incumbents_(options.top, options.goal) {}

  // Rows of candidates that are not played are made by `make`.
  absl::StatusOr<SearchRows> Run(SearchRows::Maker make) {
    const bool walks =
        !options_.next && (options_.budget.is_limited() || !options_.method->by_bounds);
    const bool asks_likely = walks && !options_.method->by_bounds;
    if (prunes()) candidates_.FindBounds(threads_, asks_likely);
    state_.assign(candidates_.size(), State::kOpen);
    end_ = candidates_.size();
    TakeKnown();
    if (walks) {
      WalkThrough();
    } else {
      if (!options_.next) order_ = candidates_.Promising();
      SetEndTime();  // without `next` there is none
      until_ = end_time_;
      const size_t useful = std::min(threads_, candidates_.size());
      RunOnThreads([&] { Work(); }, useful > 0 ? useful - 1 : 0);
      if (options_.budget.is_limited()) PassOthers();
    }
    for (size_t i = 0; i < candidates_.size(); ++i) {
      if (is_begun(i) && candidates_.IsBeaten(i, incumbents_)) Prune(i);
      if (state_[i] == State::kFailed) return errors_.at(i);
    }
    return Rows(std::move(make));
  }

 private:
  enum class State : uint8_t {
    kOpen,
    kPlayed,  // its results are in found_
    kTooLarge,
    kPruned,
    kFailed,  // its error is in errors_
  };

  bool prunes() const { return options_.top > 0; }
  bool is_begun(size_t i) const { return state_[i] != State::kOpen; }

  void TakeKnown() {
    if (options_.known == nullptr) return;
    for (const auto& [i, results] : *options_.known) {
      state_.at(i) = State::kPlayed;
      found_[i] = results;
      ++done_;
      for (const Result& result : results) {
        if (prunes()) incumbents_.Add(result);
      }
    }
  }

  // The place of the candidate to do next; the number of all: there is none.
  size_t Take() {
    if (IsStopped()) return candidates_.size();
    if (options_.next) {
      if (std::chrono::steady_clock::now() >= until_) return candidates_.size();
      const std::lock_guard<std::mutex> lock(next_mutex_);
      return options_.next().value_or(candidates_.size());
    }
    const size_t at = next_++;
    return at < end_ ? order_[at] : candidates_.size();
  }

  void Work() {
    for (size_t i = Take(); i < candidates_.size(); i = Take()) Do(i, until_);
  }

  // From any thread; what is not over then is left.
  void Do(size_t i, TimePoint until) {
    if (is_begun(i)) return;  // known
    bool is_beaten = false;
    if (prunes()) {
      const std::lock_guard<std::mutex> lock(mutex_);
      is_beaten = candidates_.IsBeaten(i, incumbents_);
    }
    is_beaten ? Prune(i) : Evaluate(i, until);
    if (!is_begun(i)) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    const bool has_results = state_[i] == State::kPlayed || options_.tells_unplayed;
    if (options_.finished && state_[i] != State::kFailed) {
      options_.finished(i, has_results ? ResultsOf(i) : std::vector<Result>());
    }
    ++done_;
    if (options_.progress) options_.progress(done_);
  }

  void WalkThrough() {
    const auto likely = [&](size_t i) { return candidates_.LikelySize(options_.goal, i); };
    const std::unique_ptr<Walk> walk = options_.method->make(
        {.promising = options_.method->by_bounds ? candidates_.Promising()
                                                 : candidates_.Plainest(options_.changes, likely),
         .neighbours = options_.neighbours,
         .family = options_.family,
         .likely = likely,
         .is_open = [&](size_t i) { return !under_way_.contains(i) && IsWorthIt(i); },
         .seed = options_.seed,
         .features = options_.features,
         .choices = options_.choices});
    for (size_t i = 0; i < candidates_.size(); ++i) {
      if (state_[i] == State::kPlayed) walk->Found(i, ScoreOf(i));
    }
    SetEndTime();
    options_.budget.seconds > 0 ? WalkByTime(*walk) : WalkInBatches(*walk);
    until_ = end_time_;
    if (options_.walked) options_.walked(*walk);
    PassOthers();
  }

  bool IsStopped() const { return options_.stop != nullptr && *options_.stop; }

  // Where time is what ends it, no two searches are alike: nobody waits for another. The first
  // ones, as many as there are threads, are played in any case.
  void WalkByTime(Walk& walk) {
    const auto spent = [&](size_t begun) {
      const double part = Spent(static_cast<int64_t>(begun));
      return IsStopped() || (begun > 0 && part >= 1) ? -1 : part;
    };
    WalkOn(walk, {.threads = threads_,
                  .mutex = mutex_,
                  .under_way = under_way_,
                  .spent = spent,
                  .play = [&](size_t i,
                              size_t nth) { Do(i, nth < threads_ ? TimePoint::max() : end_time_); },
                  .score = [&](size_t i) { return ScoreOf(i); }});
  }

  // Some candidates at a time, always as many, so that what is played next does not depend on
  // threads.
  void WalkInBatches(Walk& walk) {
    constexpr size_t kAtATime = 8;
    int64_t played = 0;
    while (!IsStopped()) {
      const double spent = Spent(played);
      if (played > 0 && spent >= 1) break;
      const auto left = static_cast<size_t>(options_.budget.candidates - played);
      const size_t most = options_.budget.candidates > 0 ? std::min(kAtATime, left) : kAtATime;
      const std::vector<size_t> batch = walk.Next(most, spent);
      if (batch.empty()) break;
      played += std::ssize(batch);
      ForEachOnThreads(batch.size(), threads_, [&](size_t at) {
        if (!IsStopped()) Do(batch[at], TimePoint::max());
      });
      for (const size_t i : batch) walk.Found(i, ScoreOf(i));
    }
  }

  // Of those that are left some need not be played.
  void PassOthers() {
    for (size_t i = 0; i < candidates_.size(); ++i) {
      if (IsStopped()) return;
      if (!is_begun(i) && !IsWorthIt(i)) Do(i, until_);
    }
  }

  void SetEndTime() {
    const double seconds = options_.budget.seconds;
    if (seconds <= 0) return;
    const auto after = [](TimePoint begin, double span) {
      return begin + std::chrono::round<TimePoint::duration>(std::chrono::duration<double>(span));
    };
    end_time_ = std::max(after(options_.begun, seconds),
                         after(std::chrono::steady_clock::now(), seconds / 4));
  }

  double Spent(int64_t played) const {
    const SearchBudget& budget = options_.budget;
    double spent = 0;
    if (budget.seconds > 0) {
      const std::chrono::duration<double> all = end_time_ - options_.begun;
      const std::chrono::duration<double> passed =
          std::chrono::steady_clock::now() - options_.begun;
      spent = passed / all;
    }
    if (budget.candidates > 0) {
      spent = std::max(spent, static_cast<double>(played) / static_cast<double>(budget.candidates));
    }
    return spent;
  }

  bool IsWorthIt(size_t i) const {
    return state_[i] == State::kOpen && !candidates_.NeverFits(i) &&
           !candidates_.IsBeaten(i, incumbents_);
  }

  // Of a candidate that was played, or of what was tried in its place, the best. Nothing of what
  // need not have been played: whether it was depends on threads.
  std::optional<WalkScore> ScoreOf(size_t i) const {
    std::optional<WalkScore> best;
    const auto found = found_.find(i);
    if (found == found_.end() || candidates_.IsBeaten(i, incumbents_)) return best;
    for (const Result& result : found->second) {
      if (!result.ran) continue;
      const Goal goal = result.fits ? options_.goal : Goal::kMemory;
      const WalkScore score = {.fits = result.fits, .size = SizeOf(goal, GoalFiguresOf(result))};
      if (!best.has_value() || score < *best) best = score;
    }
    return best;
  }

  void Prune(size_t i) {
    if (state_[i] == State::kPlayed) found_.erase(i);
    state_[i] = State::kPruned;
  }

  void Evaluate(size_t i, TimePoint until) {
    // One that has no relief, and is too large, needs no more than a row.
    if (!options_.relief && candidates_.IsTooLarge(i, 0)) {
      state_[i] = State::kTooLarge;
      return;
    }
    absl::StatusOr<std::vector<Result>> results = WithRelief(i, until);
    if (absl::IsDeadlineExceeded(results.status())) return;  // it is left
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!results.ok()) {
      state_[i] = State::kFailed;
      errors_[i] = results.status();
      // Nobody asks for those behind the first error; but others may prune the one that has it.
      if (!prunes()) end_ = std::min<size_t>(end_, i);
      return;
    }
    state_[i] = State::kPlayed;
    const std::vector<Result>& found = found_[i] = *std::move(results);
    if (!prunes()) return;
    for (const Result& result : found) incumbents_.Add(result);
  }

  // The plan's result, and those of what was tried in its place.
  absl::StatusOr<std::vector<Result>> WithRelief(size_t i, TimePoint until) {
    const std::vector<ParallelPlan> plans = candidates_.PlansOf(i);
    std::vector<Result> results;
    ORRERY_ASSIGN_OR_RETURN(results.emplace_back(), ResultOf(plans[0], {i, 0}, until));
    if (plans.size() == 1 || !LacksMemory(results.front())) return results;
    // Where weights alone are too much, nothing helps that is about activations.
    const ParallelPlan& plan = plans.front();
    if (CannotFit(setting_of_(plan), plan)) return results;
    for (size_t one = 1; one < plans.size(); ++one) {
      const ParallelPlan& other = plans[one];
      if (other == plan) continue;
      const bool recomputes = other.recompute != plan.recompute;
      if (recomputes && !recomputations_.Has(setting_of_(other), other)) continue;
      ORRERY_ASSIGN_OR_RETURN(results.emplace_back(), ResultOf(other, {i, one}, until));
      if (!LacksMemory(results.back())) break;
    }
    return results;
  }

  // Of the `one`-th of a candidate's plans.
  absl::StatusOr<Result> ResultOf(const ParallelPlan& plan, std::pair<size_t, size_t> place,
                                  TimePoint until) {
    const auto [i, one] = place;
    if (candidates_.IsTooLarge(i, one)) return candidates_.TooLargeRow(plan, i, one);
    absl::StatusOr<Result> result = EvaluateAsRow(setting_of_, plan, parts_, until);
    GiveBackFreed(kMostFreed);
    return result;
  }

  std::vector<Result> ResultsOf(size_t i) const {
    if (state_[i] == State::kPlayed) return found_.at(i);
    return {candidates_.Row(i, WhyOf(i))};
  }

  Unplayed WhyOf(size_t i) const {
    switch (state_[i]) {
      case State::kTooLarge:
        return Unplayed::kTooLarge;
      case State::kPruned:
        return Unplayed::kPruned;
      default:
        return Unplayed::kLeft;
    }
  }

  SearchRows Rows(SearchRows::Maker make) {
    SearchRows rows(std::move(make));
    rows.Reserve(candidates_.size());
    rows.RankBy(options_.goal);
    const bool tells_left = options_.budget.is_limited() && !IsStopped();
    for (size_t i = 0; i < candidates_.size(); ++i) {
      if (state_[i] == State::kPlayed) {
        rows.Add(std::move(found_.at(i).front()));
      } else if (is_begun(i) || tells_left) {
        if (!is_begun(i)) rows.NoteLeft(candidates_.LeastFigures(i));
        rows.Add(i, WhyOf(i));
      }
      if (options_.stand_for_others && !candidates_.NeverFits(i) &&
          !candidates_.IsBeaten(i, incumbents_)) {
        rows.NoteLeft(candidates_.LeastFigures(i));
      }
    }
    for (auto& [i, of_plan] : found_) {
      for (size_t one = 1; one < of_plan.size(); ++one) rows.Add(std::move(of_plan[one]));
    }
    found_.clear();
    return rows;
  }

  const SettingOf& setting_of_;
  const SearchOptions& options_;
  const size_t threads_;
  Candidates& candidates_;
  std::vector<uint32_t> order_;  // in which they are taken
  std::vector<State> state_;
  std::map<size_t, std::vector<Result>> found_;
  std::map<size_t, absl::Status> errors_;
  std::atomic<size_t> next_ = 0, end_ = 0;
  std::mutex mutex_, next_mutex_;
  absl::flat_hash_set<size_t> under_way_;
  size_t done_ = 0;
  Incumbents incumbents_;
  TimePoint end_time_ = TimePoint::max();  // of the budget
  TimePoint until_ = TimePoint::max();     // when nothing more is played
  RecomputationsThatHelp recomputations_;
  PartStore parts_{kRoomForParts};
};

}  // namespace
}  // namespace search_cc

absl::StatusOr<SearchRows> SearchThrough(const SettingOf& setting_of, const PlansView& plans,
                                         const SearchOptions& options) {
  // Rows outlive the search, and ask for what is known of its candidates.
  struct Told {
    Told(const SettingOf& of, const PlansView& all, const ReliefOf& relieves)
        : setting_of(of), plans(all), relief(relieves), candidates(setting_of, plans, relief) {}

    const SettingOf setting_of;
    const PlansView plans;
    const ReliefOf relief;
    Candidates candidates;
  };
  const auto told = std::make_shared<Told>(setting_of, plans, options.relief);
  return search_cc::Search(setting_of, options, told->candidates)
      .Run({.row = [told](size_t i, Unplayed why) { return told->candidates.Row(i, why); },
            .least_memory = [told](size_t i) { return told->candidates.LeastMemoryOf(i); }});
}

absl::StatusOr<std::vector<Result>> RunSearch(const SettingOf& setting_of,
                                              const std::vector<ParallelPlan>& plans,
                                              const SearchOptions& options) {
  ORRERY_ASSIGN_OR_RETURN(const SearchRows rows, SearchThrough(setting_of, plans, options));
  std::vector<Result> results;
  rows.ForEach([&](const Result& result) { results.push_back(result); });
  return results;
}

absl::StatusOr<std::vector<Result>> RunSearch(const Setting& setting,
                                              const std::vector<ParallelPlan>& plans,
                                              const SearchOptions& options) {
  return RunSearch([&](const ParallelPlan&) -> const Setting& { return setting; }, plans, options);
}

}  // namespace orrery::search
