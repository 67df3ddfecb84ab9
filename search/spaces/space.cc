#include "search/spaces/space.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "search/spaces/enumeration.h"
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
  const bool open = IsOpen(space, transforms::LeftOpen::kDividesDevices);
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

namespace space_cc {
namespace {

absl::Status TooMany(size_t most) {
  return absl::InvalidArgumentError(
      absl::StrCat("over ", most,
                   " plans are in the space, at most so many are searched; try listing fewer "
                   "values, as in `pp` 1,8,16 or `offload` none"));
}

absl::Status NoDegrees(const Space& space, const SpaceSize& size) {
  const bool open = IsOpen(space, LeftOpen::kDividesDevices);
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

// An axis of which a space has several values, and bounds read none.
struct Detail {
  const AxisInfo* axis;
  size_t values = 2;  // about
};

std::vector<Detail> Details(const Space& space) {
  std::vector<Detail> details;
  for (const transforms::AxisInfo* axis : transforms::AllAxes()) {
    const size_t listed = space.Values(*axis).size();
    const bool chooses = space.takes_all() && (axis->choices != nullptr || !axis->full.empty());
    if (!axis->detail || listed == 1 || (listed == 0 && !chooses)) continue;
    const size_t chosen = std::max<size_t>(2, 1 + axis->full.size());
    details.push_back({axis, listed > 0 ? listed : chosen});
  }
  return details;
}

size_t ProductOf(std::span<const Detail> details) {
  size_t product = 1;
  for (const Detail& detail : details) product = std::min(product * detail.values, kMostPlans);
  return product;
}

// Of those that are held, as many as there is room for beside `plans` are let go, the first first.
void LetGo(size_t plans, size_t most, std::vector<Detail>& held) {
  size_t room = most / plans;
  std::erase_if(held, [&](const Detail& detail) {
    if (detail.values > room) return false;
    room /= detail.values;
    return true;
  });
}

}  // namespace
}  // namespace space_cc

absl::StatusOr<PlanList> Enumerate(const Space& space, const SpaceSize& size, size_t threads) {
  PlanList plans = Enumeration(space, size, kMostPlans).All(threads);
  if (plans.size() > kMostPlans) return space_cc::TooMany(kMostPlans);
  if (plans.empty()) return space_cc::NoDegrees(space, size);
  plans.ShrinkToFit();
  return plans;
}

absl::StatusOr<Listing> ListPlans(const Space& space, const SpaceSize& size, size_t most,
                                  size_t threads) {
  using space_cc::Detail;
  constexpr size_t kFew = 2;  // of plans for one: a list of all may be short enough
  const std::vector<Detail> details = space_cc::Details(space);
  Listing listing;
  const auto list = [&](std::span<const Detail> held) {
    listing = {};  // two of them take too much room
    for (const Detail& detail : held) listing.held.push_back(detail.axis);
    listing.plans = Enumeration(space, size, most).AllBut(listing.held, threads);
  };
  std::vector<Detail> held = details;
  if (space_cc::ProductOf(details) <= kFew) held.clear();
  list(held);
  if (listing.plans.empty()) return space_cc::NoDegrees(space, size);
  if (listing.plans.size() <= most) {
    space_cc::LetGo(listing.plans.size(), most, held);
    if (held.size() < listing.held.size()) list(held);
  }
  // Numbers of values are guesses where an axis chooses them.
  if (listing.plans.size() > most && held.size() < details.size()) list(details);
  if (listing.plans.size() > most) return space_cc::TooMany(most);
  listing.plans.ShrinkToFit();
  return listing;
}

std::vector<transforms::ParallelPlan> VariantsOf(const Space& space, const SpaceSize& size,
                                                 std::span<const transforms::AxisInfo* const> held,
                                                 const transforms::ParallelPlan& plan,
                                                 size_t most) {
  const PlanList all = Enumeration(space, size, most).Variants(held, plan);
  std::vector<transforms::ParallelPlan> variants;
  for (const transforms::ParallelPlan& variant : all) {
    if (!(variant == plan)) variants.push_back(variant);
  }
  return variants;
}

}  // namespace orrery::search
