#ifndef ORRERY_COST_MODELS_KERNELS_ATTENTION_KERNEL_H_
#define ORRERY_COST_MODELS_KERNELS_ATTENTION_KERNEL_H_

#include <cstdint>

#include "cluster/device.h"
#include "cost_models/cost_model.h"
#include "cost_models/kernels/kernel_rates.h"
#include "support/units.h"

namespace orrery::cost_models {

/// One application of a fused attention, or of its gradient, on one rank: the FlashAttention of
/// Dao (2023) and its successors, which walk over the keys that a tile of queries may see.
struct FusedAttention {
  int64_t batch = 1, heads = 1, queries = 1, keys = 1;
  int64_t width = 1;   // of a head
  double visible = 1;  // share of the scores that causality leaves
  bool backward = false;
  Flops flops = {};  // of all scores, hidden ones too
  Bytes bytes = {};  // that must be moved
};

/// That of an op of the kind Attention or AttentionGrad with flash=1. `visible` follows from the
/// rows of the whole: of a rank of several along the sequence on average, as ranks share out what
/// is hidden (Llama 3, section 3.3.2).
FusedAttention FusedAttentionOf(const OpView& op);

/// Whether the op is one.
bool IsFusedAttention(const OpView& op);

/// How long the kernel takes, without its start: tiles of 128 queries over the cores, each with as
/// many keys as it sees and the rates' `fill` besides; or what memory takes.
Duration PriceAttention(const FusedAttention& attention, const cluster::Device& device,
                        const KernelRates& rates);

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_KERNELS_ATTENTION_KERNEL_H_
