#ifndef ORRERY_TOOLS_SEARCHES_UNEQUAL_CANDIDATES_H_
#define ORRERY_TOOLS_SEARCHES_UNEQUAL_CANDIDATES_H_

#include <boost/program_options.hpp>

#include "absl/status/status.h"
#include "search/settings/settings.h"
#include "search/spaces/plan_list.h"
#include "search/spaces/space.h"

namespace orrery::tools {

/// Adds the flag `unequal-stages`.
void AddUnequalFlag(boost::program_options::options_description& options, bool& asked);

/// Adds plans whose stages or replicas are not alike to those of a search (search::UnequalPlans):
/// where they are asked for, by a flag as its user writes it (else empty), and where devices are of
/// several kinds and nobody gives degrees. InvalidArgument, which begins with that flag, where they
/// are asked for beside degrees.
absl::Status AddUnequal(absl::string_view asked, const search::Space& space,
                        const search::Settings& settings, search::PlanList& plans);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_SEARCHES_UNEQUAL_CANDIDATES_H_
