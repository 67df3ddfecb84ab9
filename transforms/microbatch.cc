#include "transforms/microbatch.h"

#include "absl/strings/str_cat.h"
#include "ir/rebuild.h"
#include "support/status.h"
#include "transforms/pass.h"

namespace orrery::transforms {

absl::StatusOr<int64_t> BatchSize(const ir::Function& function) {
  for (const ir::Input& input : function.inputs()) {
    const ir::TensorType& type = function.type(input.value);
    if (input.role == ir::InputRole::kData && !type.dims.empty()) return type.dims[0];
  }
  return absl::InvalidArgumentError(absl::StrCat(
      function.name(), ": has no data input; wanted one with the batch as dimension 0"));
}

std::vector<bool> BatchedInputs(const ir::Function& function) {
  const absl::StatusOr<int64_t> batch = BatchSize(function);
  std::vector<bool> batched;
  for (const ir::Input& input : function.inputs()) {
    const ir::TensorType& type = function.type(input.value);
    const bool data = input.role == ir::InputRole::kData && !type.dims.empty();
    batched.push_back(data && batch.ok() && type.dims[0] == *batch);
  }
  return batched;
}

absl::StatusOr<ir::Function> Microbatch(const ir::Function& function, int64_t count) {
  if (count == 1) return function;
  ORRERY_ASSIGN_OR_RETURN(const int64_t batch, BatchSize(function));
  if (batch % count != 0) {
    return InfeasibleStatus({.reason = InfeasibleReason::kDivisibility,
                             .detail = absl::StrCat("a batch of ", batch, " does not divide into ",
                                                    count, " microbatches")});
  }
  const auto divide = [&](const ir::Input& input, ir::TensorType type) {
    const bool batched = input.role == ir::InputRole::kData && !type.dims.empty();
    if (batched && type.dims[0] == batch) type.dims[0] = batch / count;
    return type;
  };
  return ir::RebuildWithInputs(function, {.input = divide, .uninferred = {}, .attributes = {}});
}

extern const PassInfo kMicrobatchPass = {
    .name = "microbatch",
    .summary = "keeps the step of one of `count` equal microbatches",
    .options = "count=1",
    .run = [](ir::Function& function, const PassOptions& options) -> absl::StatusOr<bool> {
      ORRERY_ASSIGN_OR_RETURN(const int64_t count, PositiveOption(options, "count"));
      ORRERY_ASSIGN_OR_RETURN(function, Microbatch(function, count));
      return count > 1;
    },
};

}  // namespace orrery::transforms
