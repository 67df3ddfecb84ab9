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
  // Made by something other than a kernel, for which no kernel of its template waits; or received.
  absl::flat_hash_set<ir::ValueId> late;
  absl::flat_hash_set<ir::ValueId> made;  // by the stage
  Users wanted;                           // by something other than a kernel, of each microbatch
  Users by_update;                        // likewise, of the last one before the update
};

/// Those of a stage.
HandedValues FindHandedValues(const Stage& stage);

/// What templates do at their ends, by stream: a bit each.
struct TemplateEnds {
  uint32_t left_running = 0;  // no kernel of some template waits for its last collective there
  uint32_t asked_early = 0;   // the first one there waits for no kernel of its template
};

/// Those of all templates of the stages.
TemplateEnds FindTemplateEnds(const std::vector<Stage>& stages);

/// Tasks of a template from `begin` up to `end`.
struct TaskSpan {
  size_t begin = 0, end = 0;
};

/// All tasks of a priced template in their order, in spans of one task and stretches (what is one:
/// fuse_stretches.h). `by_update`: whether the update may follow the template.
std::vector<TaskSpan> FindStretches(const PricedTemplate& priced, const HandedValues& handed,
                                    const TemplateEnds& ends, bool by_update);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_PLACEMENT_FIND_STRETCHES_H_
