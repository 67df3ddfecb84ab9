#include "search/candidates.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "search/bounds/least_memory.h"
#include "support/threads.h"

namespace orrery::search {

Candidates::Candidates(const SettingOf& setting_of, const PlansView& plans, const ReliefOf& relief)
    : setting_of_(setting_of), plans_(plans), relief_(relief) {}

std::vector<ParallelPlan> Candidates::PlansOf(size_t i) const {
  std::vector<ParallelPlan> plans = {plans_[i]};
  if (!relief_) return plans;
  for (ParallelPlan& other : relief_(plans.front())) plans.push_back(std::move(other));
  return plans;
}

// Each thread takes a block of candidates after another: what bounds of plans share, a thread finds
// once.
void Candidates::FindBounds(size_t threads, bool likely) {
  const size_t count = plans_.size();
  if (relief_) {
    begins_.assign(1, 0);
    for (size_t i = 0; i < count; ++i) begins_.push_back(begins_.back() + PlansOf(i).size());
  }
  facts_.resize(relief_ ? begins_.back() : count);
  constexpr size_t kBlock = 1024;
  const size_t blocks = (count + kBlock - 1) / kBlock;
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    SearchBounds bounds(setting_of_, likely);
    for (size_t block = next++; block < blocks; block = next++) {
      for (size_t i = block * kBlock; i < std::min(count, (block + 1) * kBlock); ++i) {
        const std::vector<ParallelPlan> plans = PlansOf(i);
        for (size_t one = 0; one < plans.size(); ++one) {
          facts_[Begin(i) + one] = {
              .bound = bounds.Of(plans[one]),
              .likely_s = static_cast<float>(bounds.likely_seconds()),
              .ranks = static_cast<uint32_t>(plans[one].ranks()) & 0x3fffffffu,
              .too_large = bounds.is_too_large() ? 1u : 0u,
              .tight = bounds.is_tight() ? 1u : 0u};
        }
      }
    }
  };
  const size_t useful = std::min(threads, blocks);
  RunOnThreads(work, useful > 0 ? useful - 1 : 0);
}

bool Candidates::NeverFits(size_t i) const {
  if (facts_.empty()) return false;
  for (size_t at = Begin(i); at < End(i); ++at) {
    if (!facts_[at].too_large) return false;
  }
  return true;
}

bool Candidates::IsBeaten(size_t i, const Incumbents& incumbents) const {
  if (facts_.empty() || NeverFits(i)) return false;
  for (size_t at = Begin(i); at < End(i); ++at) {
    const bool fits = !facts_[at].too_large;
    if (fits && !incumbents.Beat(facts_[at].bound, facts_[at].ranks)) return false;
  }
  return true;
}

size_t Candidates::FirstThatMayFit(size_t i) const {
  for (size_t one = 0; Begin(i) + one < End(i); ++one) {
    if (!Fact(i, one).too_large) return one;
  }
  return 0;
}

Duration Candidates::LeastTime(size_t i) const {
  if (facts_.empty()) return Duration(0);
  Duration least = Fact(i, FirstThatMayFit(i)).bound.time;
  for (size_t at = Begin(i); at < End(i); ++at) {
    if (!facts_[at].too_large) least = std::min(least, facts_[at].bound.time);
  }
  return least;
}

GoalFigures Candidates::LeastFigures(size_t i) const {
  if (facts_.empty()) return {};
  const Known& first = Fact(i, FirstThatMayFit(i));
  GoalFigures least = {first.bound.time, first.bound.memory, int64_t{first.ranks}};
  for (size_t at = Begin(i); at < End(i); ++at) {
    const Known& fact = facts_[at];
    if (fact.too_large) continue;
    least.time = std::min(least.time, fact.bound.time);
    least.memory = std::min(least.memory, fact.bound.memory);
    least.ranks = std::min(least.ranks, int64_t{fact.ranks});
  }
  return least;
}

double Candidates::LikelySize(Goal goal, size_t i) const {
  if (facts_.empty()) return 0;
  const Known& fact = Fact(i, FirstThatMayFit(i));
  const auto seconds = static_cast<double>(fact.likely_s);
  if (goal == Goal::kMemory) return static_cast<double>(fact.bound.memory.count());
  return goal == Goal::kPrice ? seconds * static_cast<double>(fact.ranks) : seconds;
}

Bytes Candidates::LeastMemoryOf(size_t i) const {
  return facts_.empty() ? Bytes(0) : Fact(i, 0).bound.memory;
}

std::vector<uint32_t> Candidates::Promising() const {
  std::vector<uint32_t> order(plans_.size());
  std::iota(order.begin(), order.end(), uint32_t{0});
  if (facts_.empty()) return order;
  std::ranges::stable_sort(order, {}, [&](uint32_t i) { return LeastTime(i); });
  return order;
}

std::vector<uint32_t> Candidates::Plainest(const std::function<int32_t(size_t)>& changes,
                                           const std::function<double(size_t)>& likely) const {
  if (facts_.empty()) return Promising();
  struct Likely {
    float size;
    uint32_t place;
  };
  // There are millions of them, and few sorts: each goes behind those of its sort.
  std::map<std::pair<bool, int32_t>, std::vector<Likely>> sorts;
  for (uint32_t i = 0; i < plans_.size(); ++i) {
    if (NeverFits(i)) continue;
    sorts[{Fact(i, 0).tight != 0, changes ? changes(i) : 0}].push_back(
        {static_cast<float>(likely(i)), i});
  }
  std::vector<uint32_t> order;
  for (auto& [sort, of_sort] : sorts) {
    std::ranges::stable_sort(of_sort, {}, &Likely::size);
    for (const Likely& one : of_sort) order.push_back(one.place);
    of_sort = std::vector<Likely>();
  }
  return order;
}

Result Candidates::TooLargeRow(const ParallelPlan& plan, size_t i, size_t one) const {
  const Setting& setting = setting_of_(plan);
  const Bytes least = LeastMemory(weights_.Of(setting), plan);
  if (CannotFit(least, setting, plan)) return CannotFitResult(setting, plan, least);
  return TooLarge(setting, plan, Fact(i, one).bound);
}

Result Candidates::Row(size_t i, Unplayed why) const {
  const ParallelPlan plan = plans_[i];
  switch (why) {
    case Unplayed::kTooLarge:
      return TooLargeRow(plan, i, 0);
    case Unplayed::kPruned: {
      const size_t one = FirstThatMayFit(i);
      Result pruned = Pruned(plan, Fact(i, one).bound);
      if (one > 0) absl::StrAppend(&pruned.pruned, " (of what would be tried in its place)");
      return pruned;
    }
    case Unplayed::kLeft:
      break;
  }
  Result left;
  left.plan = plan;
  left.left = true;
  return left;
}

}  // namespace orrery::search
