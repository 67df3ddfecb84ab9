#include "transforms/plan/axis.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "transforms/plan/plan_text.h"

namespace orrery::transforms {

#define ORRERY_PLAN_AXIS(Name, field, type, value, file) extern const AxisInfo k##Name##Axis;
#include "transforms/plan/plan_axes.def"
#undef ORRERY_PLAN_AXIS

namespace axis_cc {
namespace {

constexpr std::array kAxes = {
#define ORRERY_PLAN_AXIS(Name, field, type, value, file) &k##Name##Axis,
#include "transforms/plan/plan_axes.def"
#undef ORRERY_PLAN_AXIS
};

using SameValue = bool (*)(const ParallelPlan& a, const ParallelPlan& b);
constexpr std::array<SameValue, kAxes.size()> kSameValues = {
#define ORRERY_PLAN_AXIS(Name, field, type, value, file) \
  [](const ParallelPlan& a, const ParallelPlan& b) { return a.field == b.field; },
#include "transforms/plan/plan_axes.def"
#undef ORRERY_PLAN_AXIS
};

}  // namespace
}  // namespace axis_cc

std::string AxisInfo::Column() const {
  return column.empty() ? absl::StrReplaceAll(flag, {{"-", "_"}}) : std::string(column);
}

std::span<const AxisInfo* const> AllAxes() { return axis_cc::kAxes; }

bool HaveSameValue(size_t axis, const ParallelPlan& a, const ParallelPlan& b) {
  return axis_cc::kSameValues.at(axis)(a, b);
}

const AxisInfo* FindAxis(absl::string_view flag) {
  for (const AxisInfo* axis : AllAxes()) {
    if (axis->flag == flag || (!axis->alias.empty() && axis->alias == flag)) return axis;
  }
  return nullptr;
}

Suggestion Suggest(const AxisInfo& axis, const ParallelPlan& from, const ParallelPlan& plan) {
  Suggestion suggestion{.plan = plan, .change = AxisText(axis, plan)};
  for (const AxisInfo* other : AllAxes()) {
    if (other == &axis || other->print(from) == other->print(plan)) continue;
    absl::StrAppend(&suggestion.change, " ", AxisText(*other, plan));
  }
  return suggestion;
}

}  // namespace orrery::transforms
