#ifndef ORRERY_TOOLS_STAGE_FLAGS_H_
#define ORRERY_TOOLS_STAGE_FLAGS_H_

#include <boost/program_options.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transforms/stage_choice.h"

namespace orrery::tools {

/// The flags that say where pipeline stages begin, as they were given.
struct StageFlags {
  std::string by;
  std::string split_at;
  std::string layers_per_stage;
};

/// Adds the flags to `options`, bound to `flags`.
void AddStageFlags(boost::program_options::options_description& options, StageFlags& flags);

/// What they ask for; without --stages-by, `by_default`. At most one of them may be given.
absl::StatusOr<transforms::StageChoice> MakeStageChoice(const StageFlags& flags,
                                                        transforms::StagesBy by_default);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_STAGE_FLAGS_H_
