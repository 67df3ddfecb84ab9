#include "transforms/microbatch.h"

#include "absl/strings/str_cat.h"
#include "ir/batch.h"
#include "support/status.h"
#include "transforms/pass.h"

namespace orrery::transforms {

absl::StatusOr<int64_t> BatchSize(const ir::Function& function) {
  if (const int64_t batch = ir::BatchOf(function); batch != 0) return batch;
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
  return ir::ChangeBatch(function, batch / count, ir::LossBatch::kStays);
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
