#ifndef ORRERY_TRANSFORMS_REDISTRIBUTION_STEP_H_
#define ORRERY_TRANSFORMS_REDISTRIBUTION_STEP_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "ir/mesh.h"
#include "ir/type.h"
#include "transforms/redistribution/packed_layout.h"

namespace orrery::transforms::redistribution {

/// What all ranks do together in one step of a redistribution: one collective over a set of mesh
/// axes, or something that each does by itself.
enum class MoveKind : uint8_t {
  kSlice,          // each rank keeps its part of what it holds: nothing moves
  kAllGather,      // axes that split `from` no longer do
  kReduceScatter,  // partial axes split `to`
  kAllReduce,      // partial axes replicate
  kAllToAll,       // axes that split `from` split `to`
  kPermute,        // ranks trade whole parts, each with one other
  kReblock,        // a general all-to-all within the group that the axes of `from` span: other
                   // blocks, or another order of axes
  kLocalCopy,      // the same part in another order in memory
  kMakePartial,    // replicas become summands: each is scaled, or set to zeros
};

/// "all-gather".
absl::string_view ToString(MoveKind kind);

/// A move of one tensor from its layout to `after`, over some mesh axes.
struct Step {
  MoveKind kind = MoveKind::kSlice;
  ir::AxisList axes;  // that it works over; those of a permutation are the ones that swap
  int8_t from = -1;   // tensor dimensions; -1 where there is none
  int8_t to = -1;
  PackedLayout after;

  friend bool operator==(const Step&, const Step&) = default;
};

/// Whether the ranks exchange anything.
bool Communicates(MoveKind kind);

/// Whether one collective reduces what is partial by both: they are one, or sum and average, as an
/// average is a sum that each rank divides by the number of ranks along its axes.
bool ReducedTogether(ir::Reduction a, ir::Reduction b);

}  // namespace orrery::transforms::redistribution

#endif  // ORRERY_TRANSFORMS_REDISTRIBUTION_STEP_H_
