#include "search/views/changes.h"

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "search/search.h"
#include "search/spaces/space.h"
#include "support/status.h"
#include "support/threads.h"
#include "transforms/plan/axis.h"
#include "transforms/plan/plan_text.h"

namespace orrery::search {
namespace changes_cc {
namespace {

using transforms::AxisInfo;

// Whether other values are of the same step, and not a plan's own.
bool Varies(const AxisInfo& axis) {
  return !axis.remakes_step && axis.lists && axis.form != transforms::AxisForm::kMany &&
         axis.scope != transforms::AxisScope::kOneRun;
}

// The plans of a full space that differ from `plan` in these axes alone; empty where there are
// none, or too many to look at one by one.
PlanList PlansBeside(const SpaceSize& size, const ParallelPlan& plan,
                     std::span<const AxisInfo* const> open) {
  constexpr size_t kMostPlans = 10'000;
  Space space(plan);
  space.TakeAll();
  for (const AxisInfo* axis : transforms::AllAxes()) {
    if (std::ranges::find(open, axis) != open.end()) continue;
    const std::string value = axis->print(plan);
    if (!value.empty() && !space.List(*axis, value).ok()) return {};
  }
  absl::StatusOr<Listing> listing = ListPlans(space, size, kMostPlans);
  return listing.ok() ? std::move(listing->plans) : PlanList();
}

// Collects plans that differ from one.
class Collector {
 public:
  Collector(const Setting& setting, const ParallelPlan& plan)
      : size_(SpaceSizeOf(setting)), base_(setting.base), plan_(plan) {
    list_.Insert(plan);
  }

  // All values of one axis.
  void AddAxis(const AxisInfo& axis) {
    for (const ParallelPlan& other : PlansBeside(size_, plan_, std::array{&axis}))
      list_.Insert(other);
    // Where a record says what a search tries, that is all.
    if (axis.choices != nullptr || !axis.full.empty() || axis.degree != nullptr) return;
    for (const absl::string_view text : axis.examples) {
      ParallelPlan other = plan_;
      if (axis.parse(text, other).ok() && transforms::CheckAxis(axis, other).ok()) {
        list_.Insert(transforms::Settled(other, base_));
      }
    }
  }

  // Plans that differ in two degrees, whose number of microbatches goes along.
  void AddPair(const AxisInfo& first, const AxisInfo& second, const AxisInfo& microbatches) {
    PlanList beside;
    beside.Insert(plan_);
    for (const ParallelPlan& other :
         PlansBeside(size_, plan_, std::array{&first, &second, &microbatches})) {
      beside.Insert(other);
    }
    for (const size_t place : beside.Neighbours(0)) list_.Insert(beside[place]);
  }

  std::vector<ParallelPlan> Others() const {
    std::vector<ParallelPlan> others = list_.All();
    others.erase(others.begin());
    // Of stages with ranks of their own, other degrees make no plan.
    std::erase_if(others, [&](const ParallelPlan& other) {
      return other.unequal() && !transforms::CheckPlan(other, base_).ok();
    });
    return others;
  }

 private:
  SpaceSize size_;
  const ParallelPlan& base_;
  const ParallelPlan& plan_;
  PlanList list_;  // the plan first
};

// The axes in which two plans differ, but for those that go along with others.
std::string ChangedAxes(const ParallelPlan& from, const ParallelPlan& to) {
  std::string along, others;
  for (const AxisInfo* axis : transforms::AllAxes()) {
    if (axis->print(from) == axis->print(to)) continue;
    const bool goes_along = axis->flag == "micro-batches" || axis->flag == "chunks";
    absl::StrAppend(goes_along ? &along : &others, axis->flag, " ");
  }
  return others.empty() ? along : others;
}

absl::StatusOr<std::optional<Duration>> WithoutLaunches(Setting& setting,
                                                        const ParallelPlan& plan) {
  lowering::StackKernels& kernels = setting.lowering.kernels;
  if (kernels.launch == Duration(0) || kernels.graphs) return std::nullopt;
  const Duration launch = std::exchange(kernels.launch, Duration(0));
  const absl::StatusOr<Run> run = Play(setting, plan);
  kernels.launch = launch;
  if (!run.ok()) return run.status();
  return run->report.step_time;
}

}  // namespace
}  // namespace changes_cc

std::vector<ParallelPlan> SingleChanges(const Setting& setting, const ParallelPlan& plan) {
  changes_cc::Collector collector(setting, plan);
  const transforms::AxisInfo* const microbatches = transforms::FindAxis("micro-batches");
  const std::span<const transforms::AxisInfo* const> axes = transforms::AllAxes();
  for (size_t i = 0; i < axes.size(); ++i) {
    if (!changes_cc::Varies(*axes[i])) continue;
    collector.AddAxis(*axes[i]);
    for (size_t j = 0; axes[i]->degree != nullptr && j < i; ++j) {
      collector.AddPair(*axes[j], *axes[i], *microbatches);
    }
  }
  return collector.Others();
}

absl::StatusOr<TriedChanges> TryChanges(Setting& setting, const ParallelPlan& plan, const Run& run,
                                        int64_t most, int64_t work) {
  const std::vector<ParallelPlan> changes = SingleChanges(setting, plan);
  // Figures are all that is wanted: runs of kernels at once, and steady states stepped over.
  constexpr int64_t kFewest = 8;
  constexpr int64_t kSame = 24;  // without effect, or of axes of which a better value is found
  // Not a clock: the same plan has the same answer on a busy machine.
  const int64_t played = std::max(kFewest, work / std::max<int64_t>(1, run.work));
  const bool every_link = std::exchange(setting.lowering.every_link, false);
  absl::StatusOr<std::vector<Result>> results = RunSearch(
      setting, changes,
      {.threads = OwnProcessors(), .top = most + kSame, .budget = {.candidates = played}});
  setting.lowering.every_link = every_link;
  if (!results.ok()) return results.status();
  TriedChanges tried;
  for (const Result& result : *results) ++(result.left ? tried.left : tried.tried);
  std::set<std::string> seen;
  ORRERY_ASSIGN_OR_RETURN(tried.without_launches, changes_cc::WithoutLaunches(setting, plan));
  for (const Result* result : Ranked(*results)) {
    const bool is_same =
        result->step_time == run.report.step_time && result->peak_memory == run.report.peak_memory;
    if (is_same || std::ssize(tried.best) == most) continue;
    if (seen.insert(changes_cc::ChangedAxes(plan, result->plan)).second) {
      tried.best.push_back(*result);
    }
  }
  return tried;
}

std::string ChangeText(const ParallelPlan& from, const ParallelPlan& to) {
  std::vector<std::string> flags;
  for (const transforms::AxisInfo* axis : transforms::AllAxes()) {
    if (axis->print(from) != axis->print(to)) flags.push_back(transforms::AxisText(*axis, to));
  }
  std::erase(flags, "");
  return absl::StrJoin(flags, " ");
}

}  // namespace orrery::search
