#include "support/enum_names.h"
#include "transforms/plan/axis_fields.h"

namespace orrery::transforms {
namespace dtype_axis_cc {
namespace {

constexpr EnumNames<StepDType, 8> kNames({{"model", StepDType::kModel},
                                          {"fp32", StepDType::kF32},
                                          {"fp16", StepDType::kF16},
                                          {"bf16", StepDType::kBF16},
                                          {"fp8-mixed", StepDType::kF8Mixed},
                                          {"fp8-block", StepDType::kF8Blocks},
                                          {"nvfp4-mixed", StepDType::kF4Mixed},
                                          {"fp8", StepDType::kF8}});

absl::StatusOr<StepDType> Parse(absl::string_view text) { return kNames.Parse(text); }

std::string Print(const ParallelPlan& plan) { return std::string(kNames.Of(plan.dtype)); }

}  // namespace
}  // namespace dtype_axis_cc

extern const AxisInfo kDTypeAxis = {
    .flag = "dtype",
    .summary =
        "of parameters and activations; model: as it says; fp8-mixed, fp8-block, nvfp4-mixed: "
        "bf16, and products of linear layers read copies of 8 or 4 bits",
    .values = "model, fp32, fp16, bf16, fp8-mixed, fp8-block, nvfp4-mixed or fp8",
    .page =
        "`model`: as it says; `fp32`, `fp16`, `bf16`, `fp8`: of parameters and activations; "
        "`fp8-mixed`, `fp8-block`, `nvfp4-mixed`: those are `bf16`, and products of linear layers "
        "read copies of 8 or 4 bits ([mixed precision](mixed_precision.md))",
    .examples = {"bf16", "model", "fp32", "fp16", "fp8-mixed", "fp8-block", "nvfp4-mixed", "fp8"},
    .mistake = {"fp12",
                "'fp12': wanted model, fp32, fp16, bf16, fp8-mixed, fp8-block, nvfp4-mixed or "
                "fp8"},
    .scope = AxisScope::kStep,
    .parse = ParseField<&ParallelPlan::dtype, dtype_axis_cc::Parse>,
    .print = dtype_axis_cc::Print,
    .copy = CopyField<&ParallelPlan::dtype>,
    .remakes_step = true,
};

std::optional<ir::DType> TensorDType(StepDType dtype) {
  switch (dtype) {
    case StepDType::kModel:
      return std::nullopt;
    case StepDType::kF32:
      return ir::DType::kF32;
    case StepDType::kF16:
      return ir::DType::kF16;
    case StepDType::kBF16:
    case StepDType::kF8Mixed:
    case StepDType::kF8Blocks:
    case StepDType::kF4Mixed:
      return ir::DType::kBF16;
    case StepDType::kF8:
      return ir::DType::kF8;
  }
  return std::nullopt;
}

std::optional<ir::DType> CopyDType(StepDType dtype) {
  if (dtype == StepDType::kF8Mixed) return ir::DType::kF8;
  if (dtype == StepDType::kF8Blocks) return ir::DType::kF8Block;
  if (dtype == StepDType::kF4Mixed) return ir::DType::kF4;
  return std::nullopt;
}

}  // namespace orrery::transforms
