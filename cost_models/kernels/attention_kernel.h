#ifndef ORRERY_COST_MODELS_KERNELS_ATTENTION_KERNEL_H_
#define ORRERY_COST_MODELS_KERNELS_ATTENTION_KERNEL_H_

#include <cstdint>

#include "cluster/device.h"
#include "cost_models/kernels/kernel_rates.h"
#include "cost_models/kernels/least_kernel.h"
#include "ir/type.h"
#include "support/units.h"

namespace orrery::cost_models {

/// One application of a fused attention, or of its gradient, on one rank: the FlashAttention of
/// Dao (2023) and its successors, which walk over the keys that a tile of queries may see.
struct FusedAttention {
  int64_t batch = 1, heads = 1, queries = 1, keys = 1;
  int64_t width = 1;   // of a head
  double visible = 1;  // share of the scores that causality leaves
  bool backward = false;
  AttentionClass kernel = AttentionClass::kCudnn;
  ir::DType dtype = ir::DType::kBF16;  // of q; products of 8 bits are as of 16
  Flops flops = {};                    // of all scores, hidden ones too
  Bytes bytes = {};                    // that must be moved
};

/// The share of the scores that a causal mask leaves, of `queries` that are the last of `keys`.
double VisibleShare(int64_t queries, int64_t keys);

/// How long the kernel takes, without its start: tiles of 128 queries over the cores, each with as
/// many keys as it sees and the rates' `fill` besides, and half of the longest tile, since cores
/// end one after the other; or what memory takes. Where a block takes a whole head, as many heads
/// as there are cores take as long as one.
Duration PriceAttention(const FusedAttention& attention, const cluster::Device& device,
                        const KernelRates& rates);

/// What it takes at least, and all parts of it together that have some of the heads or of the
/// batch: cores that all end at once.
LeastKernel LeastAttention(const FusedAttention& attention, const cluster::Device& device,
                           const KernelRates& rates);

/// What memory takes of it.
Duration AttentionMemoryTime(const FusedAttention& attention, const cluster::Device& device,
                             const KernelRates& rates);

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_KERNELS_ATTENTION_KERNEL_H_
