#include "search/spaces/space.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "support/status.h"
#include "transforms/plan/plan_text.h"

namespace orrery::search {
namespace space_cc {
namespace {

using transforms::AxisInfo;
using transforms::LeftOpen;
using transforms::ParallelPlan;

absl::StatusOr<std::vector<std::string>> SplitList(const AxisInfo& axis, absl::string_view list) {
  if (!axis.lists) return std::vector<std::string>{std::string(list)};
  if (axis.split != nullptr) return axis.split(list);
  return std::vector<std::string>(absl::StrSplit(list, ',', absl::SkipEmpty()));
}

absl::Status SetListed(const AxisInfo& axis, absl::string_view text, ParallelPlan& plan) {
  int64_t value = 0;
  ORRERY_RETURN_IF_ERROR(axis.parse(text, plan));
  const bool number = axis.is_number && absl::SimpleAtoi(text, &value);
  if (!number || (value >= axis.least && value <= (int64_t{1} << 31))) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "': wanted numbers of at least ", axis.least, ", as in 1,2,4"));
}

bool IsOpen(const Space& space, LeftOpen left_open) {
  return std::ranges::any_of(transforms::AllAxes(), [&](const AxisInfo* axis) {
    return axis->left_open == left_open && space.Values(*axis).empty();
  });
}

constexpr size_t kMostPlans = 10'000'000;  // about a gigabyte, with what a search knows of each

class Enumeration {
 public:
  Enumeration(const Space& space, const SpaceSize& size)
      : space_(space), question_{size}, open_(IsOpen(space, LeftOpen::kDividesDevices)) {
    question_.open_microbatches = IsOpen(space, LeftOpen::kDividesBatch);
    question_.full = space.takes_all();
    question_.saves_memory = question_.full || (open_ && space.saves_memory());
    question_.shares_experts = question_.saves_memory && size.experts > 1 && space.base().ep == 1 &&
                               IsOpen(space, LeftOpen::kDividesExperts);
  }

  bool open() const { return open_; }

  PlanList All() && {
    Degrees(0, space_.base());
    return std::move(plans_);
  }

 private:
  std::vector<ParallelPlan> Choices(const AxisInfo& axis, const ParallelPlan& plan) const {
    const std::span<const ParallelPlan> given = space_.Values(axis);
    if (axis.choices != nullptr) return axis.choices(question_, plan, given);
    if (given.empty()) return question_.full ? FullChoices(axis, plan) : std::vector{plan};
    std::vector<ParallelPlan> plans;
    for (const ParallelPlan& one : given) axis.copy(one, plans.emplace_back(plan));
    return plans;
  }

  static std::vector<ParallelPlan> FullChoices(const AxisInfo& axis, const ParallelPlan& plan) {
    std::vector<ParallelPlan> plans = {plan};
    if (axis.applies != nullptr && !axis.applies(plan)) return plans;
    for (const absl::string_view text : axis.full) {
      ParallelPlan other = plan;
      if (axis.parse(text, other).ok()) plans.push_back(std::move(other));
    }
    return plans;
  }

  // The axes of the mesh, which come first.
  void Degrees(size_t at, const ParallelPlan& plan) {
    const AxisInfo& axis = *transforms::AllAxes()[at];
    if (axis.degree == nullptr) {
      if (FitsDevices(plan)) Rest(at, plan);
      return;
    }
    for (const ParallelPlan& choice : Choices(axis, plan)) Degrees(at + 1, choice);
  }

  bool FitsDevices(const ParallelPlan& plan) const {
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

  void Rest(size_t at, const ParallelPlan& plan) {
    for (const bool cuts_sequences : {false, true}) {
      if (cuts_sequences && !question_.open_microbatches) break;
      question_.cuts_sequences = cuts_sequences;
      Others(at, plan);
    }
  }

  void Others(size_t at, const ParallelPlan& plan) {
    if (plans_.size() > kMostPlans) return;
    if (at == transforms::AllAxes().size()) {
      plans_.Insert(transforms::Settled(plan, space_.base()));
      return;
    }
    for (const ParallelPlan& choice : Choices(*transforms::AllAxes()[at], plan)) {
      Others(at + 1, choice);
    }
  }

  const Space& space_;
  transforms::SpaceQuestion question_;
  const bool open_;  // whether degrees are
  PlanList plans_;
};

// The error of an axis of which no value listed can stand in any of the plans.
absl::Status CheckAxisListed(const AxisInfo& axis, std::span<const ParallelPlan> values,
                             const PlansView& plans) {
  absl::Status error;
  for (size_t i = 0; i < plans.size(); ++i) {
    const ParallelPlan plan = plans[i];
    for (const ParallelPlan& value : values) {
      ParallelPlan with = plan;
      axis.copy(value, with);
      const absl::Status checked = transforms::CheckAxis(axis, with);
      if (checked.ok()) return checked;
      if (error.ok()) error = checked;
    }
  }
  return error;
}

}  // namespace
}  // namespace space_cc

absl::Status Space::List(const transforms::AxisInfo& axis, absl::string_view values) {
  ORRERY_ASSIGN_OR_RETURN(const std::vector<std::string> texts, space_cc::SplitList(axis, values));
  std::vector<transforms::ParallelPlan>& listed = listed_[&axis];
  for (const std::string& text : texts) {
    transforms::ParallelPlan plan = base_;
    if (axis.form == transforms::AxisForm::kMany && !listed.empty()) {
      plan = std::exchange(listed, {}).back();  // values add up to one
    }
    ORRERY_RETURN_IF_ERROR(space_cc::SetListed(axis, text, plan));
    const bool is_new = std::ranges::none_of(listed, [&](const transforms::ParallelPlan& other) {
      return axis.print(other) == axis.print(plan);
    });
    if (is_new) listed.push_back(std::move(plan));
    constexpr size_t kMostValues = 10'000;
    if (listed.size() > kMostValues) {
      return absl::InvalidArgumentError(
          absl::StrCat("over ", kMostValues, " values: wanted fewer"));
    }
  }
  if (!listed.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("'': wanted ", axis.values));
}

std::span<const transforms::ParallelPlan> Space::Values(const transforms::AxisInfo& axis) const {
  const auto found = listed_.find(&axis);
  if (found == listed_.end()) return {};
  return found->second;
}

bool MayRelieve(const Space& space) {
  const bool open = space_cc::IsOpen(space, transforms::LeftOpen::kDividesDevices);
  return open && space.saves_memory() && !space.takes_all();
}

std::vector<transforms::ParallelPlan> Relief(const Space& space,
                                             const transforms::ParallelPlan& plan) {
  if (!MayRelieve(space)) return {};
  for (const transforms::AxisInfo* axis : transforms::AllAxes()) {
    if (axis->relieve != nullptr && space.Values(*axis).empty()) return axis->relieve(plan);
  }
  return {};
}

absl::Status CheckListed(const Space& space, const PlansView& plans) {
  for (const transforms::AxisInfo* axis : transforms::AllAxes()) {
    const std::span<const transforms::ParallelPlan> values = space.Values(*axis);
    if (values.empty() || SetBy(space.base(), *axis, values.front())) continue;
    ORRERY_RETURN_IF_ERROR(space_cc::CheckAxisListed(*axis, values, plans));
  }
  return absl::OkStatus();
}

absl::StatusOr<PlanList> Enumerate(const Space& space, const SpaceSize& size) {
  space_cc::Enumeration enumeration(space, size);
  const bool open = enumeration.open();
  PlanList plans = std::move(enumeration).All();
  if (plans.size() > space_cc::kMostPlans) {
    return absl::InvalidArgumentError(
        absl::StrCat("over ", space_cc::kMostPlans,
                     " plans are in the space, at most so many are "
                     "searched; try listing fewer values, as in `pp` 1,8,16 or `offload` none"));
  }
  plans.ShrinkToFit();
  if (!plans.empty()) return plans;
  std::vector<std::string> degrees, open_axes;
  for (const transforms::AxisInfo* axis : transforms::AllAxes()) {
    if (axis->degree != nullptr) degrees.emplace_back(axis->flag);
    if (axis->left_open == transforms::LeftOpen::kDividesDevices) {
      open_axes.push_back(absl::StrCat("`", axis->flag, "`"));
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no degrees ", absl::StrJoin(degrees, ", "), " in the lists make ",
                   open ? "" : "at most ", size.devices, " devices; try leaving one of ",
                   absl::StrJoin(open_axes, ", "), " out, or smaller `cp` and `ep`"));
}

}  // namespace orrery::search
