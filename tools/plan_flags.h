#ifndef ORRERY_TOOLS_PLAN_FLAGS_H_
#define ORRERY_TOOLS_PLAN_FLAGS_H_

#include <boost/program_options.hpp>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "search/spaces/space.h"
#include "transforms/plan/axis.h"
#include "transforms/plan/parallel_plan.h"

// The flags of plans: one for each axis of plan_axes.def.

namespace orrery::tools {

/// The values that were given, by axis; several for a flag that may be repeated.
class PlanFlags {
 public:
  bool Has(absl::string_view flag) const;
  void Give(const transforms::AxisInfo& axis, std::string value);
  const std::vector<std::string>* Given(const transforms::AxisInfo& axis) const;

 private:
  std::map<std::string, std::vector<std::string>, std::less<>> given_;
};

/// Whose flags they are: of a step without a cluster, of one run, or lists to search through.
enum class PlanForm : uint8_t { kStep, kOne, kSpace };

/// Adds a flag for each axis of that scope to `options`. `base` is what holds where none is given:
/// for --help.
void AddPlanFlags(boost::program_options::options_description& options, PlanForm form,
                  const transforms::ParallelPlan& base, PlanFlags& flags);

/// The plan that the flags make of `base`, and what follows from them (AxisInfo::follow); an error
/// names the flag.
absl::StatusOr<transforms::ParallelPlan> ReadPlan(const PlanFlags& flags,
                                                  const transforms::ParallelPlan& base);

/// The error of a check of plans, with its flag as users write it.
absl::Status AtBoundary(const absl::Status& status);

/// CheckPlan, and an error for a flag that is given and means nothing beside the others; but not
/// for what `preset` says. Names flags as users write them.
absl::Status CheckFlags(const PlanFlags& flags, const transforms::ParallelPlan& plan,
                        const transforms::ParallelPlan& preset);

/// The space that they span around `base`.
absl::StatusOr<search::Space> ReadSpace(const PlanFlags& flags,
                                        const transforms::ParallelPlan& base);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_PLAN_FLAGS_H_
