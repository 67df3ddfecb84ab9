#include "transforms/redistribution/step.h"

namespace orrery::transforms::redistribution {

absl::string_view ToString(MoveKind kind) {
  switch (kind) {
    case MoveKind::kSlice:
      return "slice";
    case MoveKind::kAllGather:
      return "all-gather";
    case MoveKind::kReduceScatter:
      return "reduce-scatter";
    case MoveKind::kAllReduce:
      return "all-reduce";
    case MoveKind::kAllToAll:
      return "all-to-all";
    case MoveKind::kPermute:
      return "permute";
    case MoveKind::kReblock:
      return "reblock";
    case MoveKind::kLocalCopy:
      return "local-copy";
    case MoveKind::kMakePartial:
      return "make-partial";
  }
  return "";
}

bool Communicates(MoveKind kind) {
  return kind != MoveKind::kSlice && kind != MoveKind::kLocalCopy && kind != MoveKind::kMakePartial;
}

}  // namespace orrery::transforms::redistribution
