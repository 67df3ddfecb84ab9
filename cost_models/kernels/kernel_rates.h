#ifndef ORRERY_COST_MODELS_KERNELS_KERNEL_RATES_H_
#define ORRERY_COST_MODELS_KERNELS_KERNEL_RATES_H_

#include "cluster/kernel_rates.h"
#include "cost_models/kernels/kernel_choice.h"
#include "ir/type.h"

// A device's rates by what an op is: cluster/kernel_rates.h has the figures, each device its own.

namespace orrery::cost_models {

using cluster::AttentionRates;
using cluster::KernelRates;
using cluster::ProductRates;

/// Those of products whose operands have that type.
inline const ProductRates& ProductRatesOf(const KernelRates& rates, ir::DType dtype) {
  if (dtype == ir::DType::kF4) return rates.eighth;
  if (dtype == ir::DType::kF8Block) return rates.blocks;
  return ir::SizeOf(dtype) == 1 ? rates.quarter : rates.half;
}

/// The clock of training over that of a burst, in such products.
inline double ClockOf(const KernelRates& rates, ir::DType dtype) {
  if (dtype == ir::DType::kF4) return rates.sustained_eighth;
  return ir::SizeOf(dtype) == 1 ? rates.sustained_quarter : rates.sustained;
}

/// Those of one class of attention.
const AttentionRates& AttentionRatesOf(const KernelRates& rates, AttentionClass attention);

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_KERNELS_KERNEL_RATES_H_
