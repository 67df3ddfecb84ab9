#ifndef ORRERY_LOWERING_PLACEMENT_BOUNDARY_SENDS_H_
#define ORRERY_LOWERING_PLACEMENT_BOUNDARY_SENDS_H_

#include <cstdint>

#include "ir/type.h"
#include "lowering/blocks/task_template.h"
#include "lowering/network/geometry.h"
#include "lowering/network/pricing.h"
#include "transforms/stages/pipeline.h"

namespace orrery::lowering {

/// A value that crosses a boundary between stages that have ranks of their own.
struct BoundarySend {
  int32_t from = 0;  // stage
  int32_t to = 0;
  const ir::TensorType& type;      // where it is sent
  const ir::TensorType& received;  // where it arrives
};

/// The type as which a stage receives the value of that origin; null: it does not.
const ir::TensorType* FindReceived(const transforms::PipelineStage& stage, ir::ValueId origin);

/// The messages that it takes (MoveAcross), announced to `pricing`; without a label. Where both
/// stages have it alike, each rank sends to that of its own number. `once`: of what all ranks of a
/// stage run, as an update, also where microbatches are dealt.
SendMessages MessagesOf(const BoundarySend& send, bool once, const Geometry& geometry,
                        Pricing& pricing);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_PLACEMENT_BOUNDARY_SENDS_H_
