#ifndef ORRERY_LOWERING_BLOCKS_EARLIER_ROWS_H_
#define ORRERY_LOWERING_BLOCKS_EARLIER_ROWS_H_

#include <cstdint>

#include "ir/function.h"
#include "lowering/blocks/block_buffers.h"

namespace orrery::lowering {

/// Keys and values of a slice of a sequence that no backward reads stay for the forwards of later
/// slices: their buffers get one more use where ExtendRows has `later` rows, and are not released.
/// In the last slice those of all slices go, after the last op that reads them. `buffers` of one
/// forward, with all uses counted; `bytes` of each type on a rank; `copies`: views are copies.
void KeepEarlierRows(const ir::Function& function, bool copies,
                     const IdTable<ir::TypeId, int64_t>& bytes, TemplateBuffers& buffers);

/// By how many bytes the sums of gradients of earlier slices' keys or values change with an
/// ExtendRowsGrad: they come with the last slice, and each slice takes its own.
int64_t ChangeOfSums(const ir::Function& function, ir::OpId op,
                     const IdTable<ir::TypeId, int64_t>& bytes);

/// What slices before this one have left for a Collect, of which this one adds `bytes`.
int64_t BytesCollectedBefore(const ir::Function& function, ir::OpId op, int64_t bytes);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_BLOCKS_EARLIER_ROWS_H_
