#ifndef ORRERY_TOOLS_SEARCHES_SPACE_FLAGS_H_
#define ORRERY_TOOLS_SEARCHES_SPACE_FLAGS_H_

#include <boost/program_options.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "search/spaces/space.h"
#include "tools/flags.h"

// What programs that search share: which plans of which model there are.

namespace orrery::tools {

/// So many fields: a flag each.
struct SpaceFlags {
  ModelFlags model;
  PlanFlags axes;
  std::string space = "default";
  std::string stack = "ideal";
  bool cuda_graphs = false;
  bool no_skip = false;
  std::string max_staleness;  // a number of updates; "": any
};

/// Adds the flags beside those of the model and of the axes.
void AddSpaceFlags(boost::program_options::options_description& options, SpaceFlags& flags);

/// The plans to choose from.
absl::StatusOr<search::Space> SpaceOf(const SpaceFlags& flags);

/// The setting of `model`, which need not be that of the flags, for the plans whose step is that of
/// `plan`.
absl::StatusOr<search::Setting> SettingOf(const SpaceFlags& flags, const ModelFlags& model,
                                          const search::ParallelPlan& plan);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_SEARCHES_SPACE_FLAGS_H_
