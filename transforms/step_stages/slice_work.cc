#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/model_facts.h"
#include "support/status.h"
#include "transforms/slices/add_slices.h"
#include "transforms/slices/slice_sequence.h"
#include "transforms/slices/slices.h"
#include "transforms/step_work.h"

// Microbatches that are slices of the sequence: one is cut first, and all unfold last.

namespace orrery::transforms {
namespace slice_work_cc {
namespace {

absl::Status CheckSlice(const StepWork& work) {
  if (!work.sliced()) return absl::OkStatus();
  const PlanContext& context = work.context;
  if (std::ssize(context.slices) != work.plan.microbatches) {
    return absl::InvalidArgumentError(absl::StrCat("got ", context.slices.size(), " slices for ",
                                                   work.plan.microbatches,
                                                   " microbatches; wanted one each"));
  }
  if (context.decided_on.rows == 0) {
    ORRERY_RETURN_IF_ERROR(CheckSlices(context.slices, ir::SequenceLength(work.whole)));
  }
  const char* const what = work.plan.cp > 1                ? "context parallelism, which splits it"
                           : work.plan.offload.activations ? "activations on the host"
                                                           : nullptr;
  if (what == nullptr) return absl::OkStatus();
  return Unsupported(absl::StrCat("slices of the sequence with ", what,
                                  "; try a schedule of parts of the batch, such as 1f1b"));
}

absl::Status CheckCount(const StepWork& work) {
  return CheckSliceCount(std::ssize(work.context.slices), std::ssize(work.whole.order()));
}

// Which outputs have the rows of the slice.
absl::Status Slice(StepWork& work) {
  ORRERY_ASSIGN_OR_RETURN(
      ir::Function one, AsFeasible(SliceSequence(work.whole, DecidedOn(work.whole, work.context))));
  work.one = std::make_shared<const ir::Function>(std::move(one));
  for (size_t i = 0; i < work.whole.outputs().size(); ++i) {
    work.batched.push_back(work.whole.type(work.whole.outputs()[i].value).dims !=
                           work.one->type(work.one->outputs()[i].value).dims);
  }
  return absl::OkStatus();
}

absl::Status UnfoldSlices(StepWork& work) {
  ORRERY_RETURN_IF_ERROR(AddSlices(work.whole, work.context.slices, *work.step));
  work.step->slice = DecidedOn(work.whole, work.context);
  return absl::OkStatus();
}

bool IsSliced(const StepWork& work) { return work.sliced(); }

}  // namespace
}  // namespace slice_work_cc

extern const StepStage kSliceStepStage = {
    .name = "slice",
    .summary = "the step of one slice of the sequence, where microbatches are slices",
    .applies = slice_work_cc::IsSliced,
    .check = slice_work_cc::CheckSlice,
    .divides = slice_work_cc::CheckCount,
    .run = slice_work_cc::Slice,
};

extern const StepStage kUnfoldSlicesStepStage = {
    .name = "unfold-slices",
    .summary = "the functions of each slice, from those of the one that all was decided on",
    .applies = slice_work_cc::IsSliced,
    .run = slice_work_cc::UnfoldSlices,
};

}  // namespace orrery::transforms
