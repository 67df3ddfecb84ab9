#ifndef ORRERY_SEARCH_SETTINGS_MODEL_FLOPS_H_
#define ORRERY_SEARCH_SETTINGS_MODEL_FLOPS_H_

#include <span>

#include "ir/function.h"
#include "support/units.h"
#include "transforms/stages/pipeline.h"

namespace orrery::search {

/// Floating-point operations of the step's matrix products (cost_models::ModelFlopsOf), which are
/// what mfu counts.
Flops CountModelFlops(const ir::Function& step);

/// The type in which most of these are computed, whatever parameters there are and how they are
/// held; fp32 where there are none.
ir::DType ProductType(const ir::Function& step);

/// What slices of the sequence leave out of these: attention's products with keys that come after
/// the slice. Nothing without slices.
Flops FlopsBeyondSlices(const ir::Function& step, std::span<const transforms::SliceRange> slices);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_SETTINGS_MODEL_FLOPS_H_
