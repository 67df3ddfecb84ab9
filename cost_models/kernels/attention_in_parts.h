#ifndef ORRERY_COST_MODELS_KERNELS_ATTENTION_IN_PARTS_H_
#define ORRERY_COST_MODELS_KERNELS_ATTENTION_IN_PARTS_H_

#include <cstdint>

#include "cluster/device.h"
#include "cost_models/kernels/kernel_rates.h"
#include "cost_models/kernels/least_kernel.h"
#include "ir/type.h"
#include "support/units.h"

namespace orrery::cost_models {

/// Attention as products of matrices and kernels that go over the scores, on one rank, as Megatron
/// has it: scale, mask and softmax are one kernel where heads and queries come in fours, else five;
/// dropout is another.
struct AttentionInParts {
  int64_t batch = 1, heads = 1, queries = 1, keys = 1;
  int64_t width = 1, value_width = 1;  // of a head
  double visible = 1;                  // share of the scores that causality leaves
  bool dropout = false;
  bool backward = false;
  ir::DType dtype = ir::DType::kBF16;
};

/// How long its kernels take, without their starts. Forward: the scores, their softmax, dropout and
/// the values. Backward: of the values and of what was dropped, dropout, softmax, of queries and of
/// keys. Softmax leaves out what is hidden when it reads, and writes all.
Duration PriceAttentionInParts(const AttentionInParts& attention, const cluster::Device& device,
                               const KernelRates& rates);

/// What its kernels take at least, and those of all parts of it together that have some of the
/// heads or of the batch, whether these fuse the softmax or not.
LeastTime LeastAttentionInParts(const AttentionInParts& attention, const cluster::Device& device,
                                const KernelRates& rates);
/// How many kernels it has at least.
int LeastKernelsOf(const AttentionInParts& attention);

/// How many kernels these are.
int KernelsOf(const AttentionInParts& attention);

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_KERNELS_ATTENTION_IN_PARTS_H_
