#include "cost_models/kernels/kernel_rates.h"

namespace orrery::cost_models {

const AttentionRates& AttentionRatesOf(const KernelRates& rates, AttentionClass attention) {
  switch (attention) {
    case AttentionClass::kCudnn:
      return rates.attention.cudnn;
    case AttentionClass::kFlash3:
      return rates.attention.flash3;
    case AttentionClass::kFlash2:
      return rates.attention.flash2;
    case AttentionClass::kFlash1:
      return rates.attention.flash1;
    case AttentionClass::kTriton:
      return rates.attention.triton;
    case AttentionClass::kCudnn8:
      return rates.attention.cudnn8;
  }
  return rates.attention.cudnn;
}

}  // namespace orrery::cost_models
