#ifndef ORRERY_IMPORTER_BATCH_PICK_ROWS_H_
#define ORRERY_IMPORTER_BATCH_PICK_ROWS_H_

#include "ir/function.h"

namespace orrery::importer {

/// Rows that each sample picks of its own, one or several. x[arange(batch), ids] is exported as a
/// Gather of rows of all samples, flattened, by ids + arange(batch) · rows, which may be flattened,
/// too, as masked positions are: it becomes the GatherND that says that no sample sees another's
/// rows, so that the batch can be followed through it. What picks the row of each sample for
/// itself, x[arange(batch)], as a diagonal is exported, is x. All else stays.
ir::Function PickRowsBySample(const ir::Function& function);

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_BATCH_PICK_ROWS_H_
