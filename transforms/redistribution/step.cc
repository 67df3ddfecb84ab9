#include "transforms/redistribution/step.h"

namespace orrery::transforms::redistribution {

absl::string_view ToString(StepKind kind) {
  switch (kind) {
    case StepKind::kSlice:
      return "slice";
    case StepKind::kAllGather:
      return "all-gather";
    case StepKind::kReduceScatter:
      return "reduce-scatter";
    case StepKind::kAllReduce:
      return "all-reduce";
    case StepKind::kAllToAll:
      return "all-to-all";
    case StepKind::kPermute:
      return "permute";
    case StepKind::kReblock:
      return "reblock";
    case StepKind::kLocalCopy:
      return "local-copy";
    case StepKind::kMakePartial:
      return "make-partial";
  }
  return "";
}

bool Communicates(StepKind kind) {
  return kind != StepKind::kSlice && kind != StepKind::kLocalCopy && kind != StepKind::kMakePartial;
}

}  // namespace orrery::transforms::redistribution
