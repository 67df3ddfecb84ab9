#ifndef ORRERY_LOWERING_BLOCKS_BLOCK_BUFFERS_H_
#define ORRERY_LOWERING_BLOCKS_BLOCK_BUFFERS_H_

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "ir/function.h"
#include "lowering/blocks/task_template.h"
#include "simulator/program/program.h"
#include "transforms/stages/pipeline.h"

namespace orrery::lowering {

/// Where the values of a function lie in memory.
struct TemplateBuffers {
  IdTable<ir::ValueId, ir::ValueId> buffer;          // that a value lives in: one of its own, or
                                                     // that of the value it is written over
  IdTable<ir::ValueId, int32_t> uses;                // of a buffer, by ops and by the caller
  IdTable<ir::ValueId, simulator::MemoryKind> kind;  // that a buffer holds
  /// Of the last slice of a sequence: bytes of the rows of all earlier slices that nobody reads
  /// after an op (lowering/blocks/earlier_rows.h).
  absl::flat_hash_map<ir::OpId, int64_t> earlier_rows;
};

/// The buffers of one phase of a stage. `bytes` are those of each value on a rank.
TemplateBuffers FindBuffers(const transforms::StageFunction& part, const TemplateContext& context,
                            const IdTable<ir::TypeId, int64_t>& bytes);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_BLOCKS_BLOCK_BUFFERS_H_
