#include "search/spaces/enumeration.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include "support/threads.h"
#include "transforms/plan/plan_text.h"

namespace orrery::search {

using transforms::AxisInfo;
using transforms::LeftOpen;
using transforms::ParallelPlan;

namespace enumeration_cc {
namespace {

bool Has(std::span<const AxisInfo* const> axes, const AxisInfo& axis) {
  return std::ranges::find(axes, &axis) != axes.end();
}

std::vector<ParallelPlan> FullChoices(const AxisInfo& axis, const ParallelPlan& plan) {
  std::vector<ParallelPlan> plans = {plan};
  if (axis.applies != nullptr && !axis.applies(plan)) return plans;
  for (const absl::string_view text : axis.full) {
    ParallelPlan other = plan;
    if (axis.parse(text, other).ok()) plans.push_back(std::move(other));
  }
  return plans;
}

// Lists that come from several threads, one behind the other in the order of their numbers.
class InOrder {
 public:
  InOrder(PlanList all, size_t most) : all_(std::move(all)), most_(most) {}

  // From any thread: who finds nobody at it puts together what there is.
  void Add(size_t number, PlanList list) {
    std::unique_lock<std::mutex> lock(mutex_);
    waiting_.emplace(number, std::move(list));
    while (!is_taken_ && waiting_.contains(next_)) {
      const PlanList first = std::move(waiting_.extract(next_).mapped());
      is_taken_ = true;
      lock.unlock();
      try {
        all_.InsertAll(first, most_ + 1);
      } catch (...) {
        is_full_ = true;
        throw;
      }
      lock.lock();
      is_full_ = all_.size() > most_;
      is_taken_ = false;
      ++next_;
    }
  }
  // Whether nothing more is wanted.
  const std::atomic<bool>& is_full() const { return is_full_; }
  PlanList All() && { return std::move(all_); }

 private:
  PlanList all_;
  const size_t most_;
  std::mutex mutex_;
  std::map<size_t, PlanList> waiting_;
  size_t next_ = 0;
  bool is_taken_ = false;  // all_, by a thread
  std::atomic<bool> is_full_ = false;
};

}  // namespace
}  // namespace enumeration_cc

bool IsOpen(const Space& space, LeftOpen left_open) {
  return std::ranges::any_of(transforms::AllAxes(), [&](const AxisInfo* axis) {
    return axis->left_open == left_open && space.Values(*axis).empty();
  });
}

class Enumeration::Branch {
 public:
  // Ends once there is `enough`.
  Branch(const Enumeration& of, std::span<const AxisInfo* const> held,
         const std::atomic<bool>& enough)
      : of_(of), held_(held), enough_(enough), varies_(of.varies_), question_(of.question_) {}

  // Axes that the others leave open; of those before `at` the plan has its own.
  PlanList All(const ParallelPlan& plan) && {
    size_t at = 0;
    while (transforms::AllAxes()[at]->degree != nullptr) ++at;
    for (const bool cuts_sequences : {false, true}) {
      if (cuts_sequences && !question_.open_microbatches) break;
      question_.cuts_sequences = cuts_sequences;
      Others(at, plan);
    }
    return std::move(plans_);
  }

  PlanList Variants(std::span<const AxisInfo* const> varied, const ParallelPlan& plan) && {
    for (size_t at = 0; at < varies_.size(); ++at) {
      if (!enumeration_cc::Has(varied, *transforms::AllAxes()[at])) varies_[at] = 0;
    }
    Others(0, plan);
    return std::move(plans_);
  }

 private:
  void Others(size_t at, const ParallelPlan& plan) {
    if (plans_.size() > of_.most_ || enough_) return;
    while (at < varies_.size() && varies_[at] == 0) ++at;
    if (at == varies_.size()) {
      plans_.Insert(transforms::Settled(plan, of_.space_.base()));
      return;
    }
    const AxisInfo& axis = *transforms::AllAxes()[at];
    std::vector<ParallelPlan> choices = of_.Choices(question_, axis, plan);
    const bool held = enumeration_cc::Has(held_, axis);
    if (held && !choices.empty()) choices.erase(choices.begin() + 1, choices.end());
    for (const ParallelPlan& choice : choices) Others(at + 1, choice);
  }

  const Enumeration& of_;
  const std::span<const AxisInfo* const> held_;
  const std::atomic<bool>& enough_;
  std::vector<char> varies_;
  transforms::SpaceQuestion question_;
  PlanList plans_;
};

Enumeration::Enumeration(const Space& space, const SpaceSize& size, size_t most)
    : space_(space), question_{size}, open_(IsOpen(space, LeftOpen::kDividesDevices)), most_(most) {
  question_.open_microbatches = IsOpen(space, LeftOpen::kDividesBatch);
  question_.full = space.takes_all();
  question_.saves_memory = question_.full || (open_ && space.saves_memory());
  question_.shares_experts = question_.saves_memory && size.experts > 1 && space.base().ep == 1 &&
                             IsOpen(space, LeftOpen::kDividesExperts);
  ParallelPlan first = space.base();
  for (const AxisInfo* axis : transforms::AllAxes()) {
    if (!space.Values(*axis).empty()) axis->copy(space.Values(*axis).front(), first);
    const bool varies = axis->choices != nullptr || !space.Values(*axis).empty() ||
                        (question_.full && !axis->full.empty());
    varies_.push_back(varies ? 1 : 0);
  }
  first_ = std::move(first);
}

// A value that is listed first, and that of plans beside which it means nothing.
PlanList Enumeration::NewList() const {
  PlanList list;
  list.CallPlain(first_);
  list.CallPlain(space_.base());
  if (question_.full && open_) CallUsualPlain(list);
  return list;
}

// What people train with: what axes choose of themselves in a space that is not full, and what is
// tried in place of plans that do not fit. Without stages, and with some.
void Enumeration::CallUsualPlain(PlanList& list) const {
  transforms::SpaceQuestion usual = question_;
  usual.full = false;
  for (const int64_t stages : {1, 2}) {
    ParallelPlan plan = space_.base();
    plan.dp = plan.hp = 2;
    plan.pp = plan.microbatches = stages;
    for (const AxisInfo* axis : transforms::AllAxes()) {
      if (axis->degree != nullptr || !space_.Values(*axis).empty()) continue;
      std::vector<ParallelPlan> choices;
      if (axis->choices != nullptr) choices = axis->choices(usual, plan, {});
      if (axis->relieve != nullptr) choices = axis->relieve(plan);
      for (const ParallelPlan& choice : choices) list.CallPlain(choice);
    }
  }
}

std::vector<ParallelPlan> Enumeration::Choices(const transforms::SpaceQuestion& question,
                                               const AxisInfo& axis,
                                               const ParallelPlan& plan) const {
  const std::span<const ParallelPlan> given = space_.Values(axis);
  if (axis.choices != nullptr) return axis.choices(question, plan, given);
  if (given.empty()) {
    return question.full ? enumeration_cc::FullChoices(axis, plan) : std::vector{plan};
  }
  std::vector<ParallelPlan> plans;
  for (const ParallelPlan& one : given) axis.copy(one, plans.emplace_back(plan));
  return plans;
}

// The axes of the mesh, which come first.
void Enumeration::AddDegrees(size_t at, const ParallelPlan& plan,
                             std::vector<ParallelPlan>& all) const {
  const AxisInfo& axis = *transforms::AllAxes()[at];
  if (axis.degree == nullptr) {
    if (FitsDevices(plan)) all.push_back(plan);
    return;
  }
  for (const ParallelPlan& choice : Choices(question_, axis, plan)) {
    AddDegrees(at + 1, choice, all);
  }
}

bool Enumeration::FitsDevices(const ParallelPlan& plan) const {
  int64_t ranks = 1;
  for (const AxisInfo* axis : transforms::AllAxes()) {
    const int64_t degree = axis->degree != nullptr ? axis->degree(plan) : 1;
    if (degree > question_.devices / ranks) return false;
    ranks *= degree;
  }
  constexpr int64_t kLeastPart = 4;  // of the devices, that a full space uses
  if (question_.full && open_) {
    return question_.devices % ranks == 0 && question_.devices / ranks <= kLeastPart;
  }
  return !open_ || ranks == question_.devices;
}

PlanList Enumeration::AllBut(std::span<const AxisInfo* const> held, size_t threads) const {
  std::vector<ParallelPlan> degrees;
  AddDegrees(0, space_.base(), degrees);
  enumeration_cc::InOrder all(NewList(), most_);
  ForEachOnThreads(degrees.size(), threads, [&](size_t i) {
    if (!all.is_full()) all.Add(i, Branch(*this, held, all.is_full()).All(degrees[i]));
  });
  return std::move(all).All();
}

PlanList Enumeration::Variants(std::span<const AxisInfo* const> varied,
                               const ParallelPlan& plan) const {
  const std::atomic<bool> enough = false;
  return Branch(*this, {}, enough).Variants(varied, plan);
}

}  // namespace orrery::search
