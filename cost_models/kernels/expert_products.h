#ifndef ORRERY_COST_MODELS_KERNELS_EXPERT_PRODUCTS_H_
#define ORRERY_COST_MODELS_KERNELS_EXPERT_PRODUCTS_H_

#include "cluster/device.h"
#include "cost_models/kernels/kernel_choice.h"
#include "cost_models/kernels/matrix_product.h"
#include "ir/op_info.h"

// Products of experts as software carries them out. One kernel for all of them shares its waves
// among experts. A kernel each, as TransformerEngine's GroupedLinear has it (multi_stream_cublas_
// gemm: a call of cuBLAS for each expert, on four streams in turn), has a tile and splits of k that
// are chosen for one expert, and a start of its own; what its last wave leaves idle the next
// kernels take.

namespace orrery::cost_models {

/// How long `shape.batch` such products take, without the start of the first kernel, at `clock`
/// times the clock of a burst: that of training, unless it is said. No faster than the host calls
/// them, if they are a kernel each.
Duration PriceExpertProducts(const ir::ProductShape& shape, ProductTypes types,
                             const ExpertProducts& experts, const cluster::Device& device,
                             double clock);
Duration PriceExpertProducts(const ir::ProductShape& shape, ProductTypes types,
                             const ExpertProducts& experts, const cluster::Device& device);

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_KERNELS_EXPERT_PRODUCTS_H_
