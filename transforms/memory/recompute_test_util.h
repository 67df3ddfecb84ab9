#ifndef ORRERY_TRANSFORMS_MEMORY_RECOMPUTE_TEST_UTIL_H_
#define ORRERY_TRANSFORMS_MEMORY_RECOMPUTE_TEST_UTIL_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "transforms/memory/recompute.h"
#include "transforms/stages/stage_parts_test_util.h"

namespace orrery::transforms {

/// Recomputes a stage of a forward, a backward and, if there is one, an update.
inline std::string Recomputed(const std::string& text, absl::string_view policy,
                              bool whole = false) {
  StageParts parts(text);
  PipelinedStep step;
  step.stages.emplace_back();
  step.stages[0].forward = parts.parts()[0];
  step.stages[0].backward = parts.parts()[1];
  if (parts.parts().size() > 2) step.stages[0].update = parts.parts()[2];
  const absl::Status status =
      Recompute(step, {.policy = ParseRecomputePolicy(policy).value(), .whole = whole});
  if (!status.ok()) return std::string(status.message());
  parts.parts()[0] = step.stages[0].forward;
  parts.parts()[1] = step.stages[0].backward;
  return absl::StrCat(parts.Text(0), parts.Text(1));
}

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_MEMORY_RECOMPUTE_TEST_UTIL_H_
