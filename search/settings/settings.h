#ifndef ORRERY_SEARCH_SETTINGS_SETTINGS_H_
#define ORRERY_SEARCH_SETTINGS_SETTINGS_H_

#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "search/settings/setting.h"
#include "search/spaces/space.h"

// A search over more than one training step: plans that differ in an axis which remakes the step
// (transforms::AxisInfo::remakes_step) are of different settings.

namespace orrery::search {

/// The settings of a search, one for each training step that plans of a space ask for.
class Settings {
 public:
  /// Makes the setting of plans that have the axes which remake the step in common with this one.
  using Maker = std::function<absl::StatusOr<Setting>(const ParallelPlan& plan)>;

  /// Those of all combinations of values that `space` lists of such axes; the first error of
  /// `make`.
  static absl::StatusOr<Settings> Make(const Space& space, const Maker& make);

  /// That of the first values listed: for what all have in common.
  const Setting& front() const { return settings_.at(first_); }
  /// That of the plan, which is of the space. Good as long as these.
  const Setting& Of(const ParallelPlan& plan) const;
  Setting& Of(const ParallelPlan& plan);
  /// `Of`, for RunSearch.
  SettingOf AsFunction() const;

  size_t size() const { return settings_.size(); }
  /// All of them, by what their plans have in common.
  const std::map<std::string, Setting>& all() const { return settings_; }

 private:
  std::string first_;
  std::map<std::string, Setting> settings_;  // by StepKey
};

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_SETTINGS_SETTINGS_H_
