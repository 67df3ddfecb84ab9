#include "transforms/training/microbatch.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ir/batch.h"
#include "support/status.h"
#include "transforms/pass/pass.h"

namespace orrery::transforms {
namespace microbatch_cc {
namespace {

// The graph could not be followed when it was read: a shape in it says the whole batch.
absl::Status BakesBatch(const absl::Status& status, int64_t batch, int64_t count) {
  const absl::string_view why = status.message();
  if (absl::StrContains(why, "; try ")) return status;
  return absl::Status(
      status.code(),
      absl::StrCat(why, ": the batch of ", batch, " is baked in; ", count,
                   " microbatches need each sample computed by itself, from dimension 0 of the "
                   "inputs; try an export with a dynamic batch, or one microbatch"));
}

}  // namespace
}  // namespace microbatch_cc

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

absl::Status CheckMicrobatches(const ir::Function& function, int64_t count) {
  if (count == 1) return absl::OkStatus();
  ORRERY_ASSIGN_OR_RETURN(const int64_t batch, BatchSize(function));
  if (batch % count == 0) return absl::OkStatus();
  return InfeasibleStatus({.reason = InfeasibleReason::kDivisibility,
                           .detail = absl::StrCat("a batch of ", batch, " does not divide into ",
                                                  count, " microbatches")});
}

absl::StatusOr<ir::Function> Microbatch(const ir::Function& function, int64_t count) {
  if (count == 1) return function;
  ORRERY_RETURN_IF_ERROR(CheckMicrobatches(function, count));
  const int64_t batch = ir::BatchOf(function);
  absl::StatusOr<ir::Function> changed =
      ir::ChangeBatch(function, batch / count, ir::LossBatch::kStays);
  if (!changed.ok()) return microbatch_cc::BakesBatch(changed.status(), batch, count);
  return changed;
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
