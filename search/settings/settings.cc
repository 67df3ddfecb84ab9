#include "search/settings/settings.h"

#include <span>
#include <utility>
#include <vector>

#include "support/check.h"
#include "support/status.h"
#include "transforms/plan/axis.h"
#include "transforms/plan/plan_text.h"

namespace orrery::search {

absl::StatusOr<Settings> Settings::Make(const Space& space, const Maker& make) {
  std::vector<ParallelPlan> plans = {space.base()};
  for (const transforms::AxisInfo* axis : transforms::AllAxes()) {
    const std::span<const ParallelPlan> values = space.Values(*axis);
    if (!axis->remakes_step || values.empty()) continue;
    std::vector<ParallelPlan> combined;
    for (const ParallelPlan& plan : plans) {
      for (const ParallelPlan& value : values) axis->copy(value, combined.emplace_back(plan));
    }
    plans = std::move(combined);
  }
  Settings settings;
  settings.first_ = transforms::StepKey(plans.front());
  for (const ParallelPlan& plan : plans) {
    ORRERY_ASSIGN_OR_RETURN(Setting setting, make(plan));
    setting.made_for = plan;
    settings.settings_.emplace(transforms::StepKey(plan), std::move(setting));
  }
  return settings;
}

Setting& Settings::Of(const ParallelPlan& plan) {
  return const_cast<Setting&>(std::as_const(*this).Of(plan));
}

const Setting& Settings::Of(const ParallelPlan& plan) const {
  const auto found = settings_.find(transforms::StepKey(plan));
  ORRERY_CHECK(found != settings_.end()) << "plan of another space: " << transforms::ToString(plan);
  return found->second;
}

SettingOf Settings::AsFunction() const {
  return [this](const ParallelPlan& plan) -> const Setting& { return Of(plan); };
}

}  // namespace orrery::search
