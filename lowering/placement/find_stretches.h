#ifndef ORRERY_LOWERING_PLACEMENT_FIND_STRETCHES_H_
#define ORRERY_LOWERING_PLACEMENT_FIND_STRETCHES_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "lowering/placement/stage.h"

namespace orrery::lowering {

/// What is known of the values that templates of a stage hand each other.
struct HandedValues {
  /// Who waits for a value, by stream: a bit each (Streams in find_stretches.cc).
  using Users = absl::flat_hash_map<ir::ValueId, uint32_t>;
  absl::flat_hash_set<ir::ValueId> late;  // made by something other than a kernel, or received
  Users wanted;                           // by something other than a kernel, of each microbatch
  Users by_update;                        // likewise, of the last one before the update
};

/// Those of a stage.
HandedValues FindHandedValues(const Stage& stage);

/// Tasks of a template from `begin` up to `end`.
struct TaskSpan {
  size_t begin = 0, end = 0;
};

/// All tasks of a priced template in their order, in spans of one task and stretches (what is one:
/// fuse_stretches.h). `by_update`: whether the update may follow the template.
std::vector<TaskSpan> FindStretches(const PricedTemplate& priced, const HandedValues& handed,
                                    bool by_update);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_PLACEMENT_FIND_STRETCHES_H_
