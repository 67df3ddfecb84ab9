#ifndef ORRERY_TRANSFORMS_PLAN_STEP_DTYPE_H_
#define ORRERY_TRANSFORMS_PLAN_STEP_DTYPE_H_

#include <cstdint>
#include <optional>

#include "ir/type.h"

namespace orrery::transforms {

/// In which type a training step holds its parameters and activations.
enum class StepDType : uint8_t {
  kModel,  // as the model says
  kF32,
  kF16,
  kBF16,
  kF8Mixed,   // bf16, and products of linear layers read 8-bit copies (Fp8Mixed)
  kF4Mixed,   // likewise, of 4 bits (Nvfp4Mixed)
  kF8Blocks,  // likewise, of 8 bits with a scale for each 128 elements (Fp8Block)
  kF8,
};

/// The type of its tensors; nullopt: as the model says.
std::optional<ir::DType> TensorDType(StepDType dtype);

/// The type of the copies that products read; nullopt: none.
std::optional<ir::DType> CopyDType(StepDType dtype);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_PLAN_STEP_DTYPE_H_
