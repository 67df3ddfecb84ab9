#ifndef ORRERY_TOOLS_PLANNING_PLANNING_FLAGS_H_
#define ORRERY_TOOLS_PLANNING_PLANNING_FLAGS_H_

#include <boost/program_options.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "search/goals/goal.h"
#include "search/settings/setting.h"
#include "search/spaces/space.h"
#include "tools/emitters/emitter.h"
#include "tools/flags.h"

// What grid_search is asked beside which candidates there are: what is wanted, how long the run is,
// on how many devices, and for whom the answer is written down.

namespace orrery::tools {

/// The flags as they were given.
struct PlanningFlags {
  std::string price = {};              // of a device-hour, as ParsePrices reads it
  std::string goal = {};               // as search::ParseGoal reads it; empty: throughput
  std::string tokens = {};             // of the whole run
  std::string samples = {};            // likewise
  std::string gpus = {};               // as ParseSizes reads it
  bool fits_on = false;                // the fewest devices that hold it
  std::vector<std::string> emit = {};  // "megatron", "deepspeed=FILE"
};

/// Adds them to `options`, bound to `flags`.
void AddPlanningFlags(boost::program_options::options_description& options, PlanningFlags& flags);

/// What is wrong with them by themselves or beside each other, such as a goal without its price.
absl::Status CheckPlanning(const PlanningFlags& flags);

/// --list-emitters, for programs that have --emit.
Listing EmitterListing();

/// The goal; of flags that CheckPlanning accepts.
search::Goal GoalOf(const PlanningFlags& flags);

/// "15T", "300B", "1.5e12", "90M", "64k", "1000": a number of at least 1.
absl::StatusOr<double> ParseAmount(absl::string_view text);

/// "64,128,256"; "64..1024": the first and its doubles, to the last; "64..1024:64": in steps.
/// Numbers of at least 1, ascending, at most 64 of them.
absl::StatusOr<std::vector<int64_t>> ParseSizes(absl::string_view text);

/// Samples of the whole run of the setting's model, so many that they have all tokens; 0: nobody
/// says. InvalidArgument where tokens are counted of a model whose samples have none.
absl::StatusOr<int64_t> RunSamples(const PlanningFlags& flags, const search::Setting& setting);

/// Has a space that is open, and of which the least memory is wanted, try recomputation anyway:
/// by itself it is tried only where a plan does not fit.
absl::Status WidenFor(search::Goal goal, search::Space& space);

/// What days of a run are of: a line behind them.
std::string RunNote(absl::string_view stack);

/// A system to emit for, and the file that gets it; empty: standard output.
struct EmitTarget {
  const Emitter* emitter = nullptr;
  std::string file;
};

/// Those of --emit, one a flag.
absl::StatusOr<std::vector<EmitTarget>> EmitTargets(const PlanningFlags& flags);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_PLANNING_PLANNING_FLAGS_H_
