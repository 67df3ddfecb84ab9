#include "transforms/redistribution/step.h"

#include "transforms/redistribution/move_set.h"

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

bool ReducedTogether(ir::Reduction a, ir::Reduction b) {
  const auto adds = [](ir::Reduction reduction) {
    return reduction == ir::Reduction::kSum || reduction == ir::Reduction::kAverage;
  };
  return a == b || (adds(a) && adds(b));
}

StepVolume VolumeOfCollective(MoveKind kind, int64_t ranks, int64_t before, int64_t after) {
  if (!Communicates(kind)) return {};
  switch (kind) {
    case MoveKind::kAllGather:
      return {.elements = static_cast<double>(after), .ranks = ranks};
    case MoveKind::kAllToAll:
    case MoveKind::kReblock:
      return {.elements = static_cast<double>(before) * static_cast<double>(ranks), .ranks = ranks};
    default:
      return {.elements = static_cast<double>(before), .ranks = ranks};
  }
}

}  // namespace orrery::transforms::redistribution
