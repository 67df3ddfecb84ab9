#include "transforms/slices/slices.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/batch.h"
#include "ir/model_facts.h"
#include "support/status.h"
#include "transforms/pass/pass.h"
#include "transforms/slices/slice_sequence.h"

namespace orrery::transforms {

using ir::Function;

std::vector<std::string> SequenceInputs(const Function& function) {
  const int64_t length = ir::SequenceLength(function);
  std::vector<std::string> names;
  for (const ir::Input& input : function.inputs()) {
    const ir::Dims& dims = function.type(input.value).dims;
    const bool rows = ir::HasBatch(function, input) && dims.size() > 1 && dims[1] == length;
    if (rows) names.emplace_back(function.value_name(input.value));
  }
  return names;
}

absl::StatusOr<std::vector<SliceRange>> EqualSlices(const Function& function, int64_t count) {
  if (count < 1) {
    return absl::InvalidArgumentError(absl::StrCat(count, " slices; wanted at least 1"));
  }
  const int64_t length = ir::SequenceLength(function);
  if (length == 0) {
    return InfeasibleStatus(
        {.reason = InfeasibleReason::kUnsupported,
         .detail = absl::StrCat(function.name(),
                                " has no data input of samples and positions, as "
                                "its dimensions 0 and 1; slices of a sequence want one; try a "
                                "schedule of parts of the batch, such as 1f1b")});
  }
  if (length % count != 0) {
    // Rather what no other number mends.
    const absl::Status why = SliceSequence(function, {.begin = 0, .rows = 1}).status();
    if (AsInfeasible(why).has_value()) return why;
    return InfeasibleStatus(
        {.reason = InfeasibleReason::kDivisibility,
         .detail = absl::StrCat("a sequence of ", length, " does not divide into ", count,
                                " slices of equal length; try another number")});
  }
  std::vector<SliceRange> slices;
  for (int64_t i = 0; i < count; ++i) {
    slices.push_back({.begin = i * (length / count), .rows = length / count});
  }
  return slices;
}

absl::Status CheckSlices(const std::vector<SliceRange>& slices, int64_t length) {
  int64_t end = 0;
  for (const SliceRange& slice : slices) {
    if (slice.begin != end || slice.rows < 1 || slice.rows > length - end) {
      return absl::InvalidArgumentError(absl::StrCat("a slice of ", slice.rows, " positions from ",
                                                     slice.begin, " on, of ", length,
                                                     "; wanted one or more that begin at ", end));
    }
    end += slice.rows;
  }
  if (end == length) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("slices end at position ", end, "; wanted all ", length));
}

extern const PassInfo kSliceSequencePass = {
    .name = "slice-sequence",
    .summary = "keeps the step of slice number `slice` of `slices` equal ones of the sequence",
    .options = "slices=1,slice=1",
    .run = [](Function& function, const PassOptions& options) -> absl::StatusOr<bool> {
      ORRERY_ASSIGN_OR_RETURN(const int64_t count, PositiveOption(options, "slices"));
      ORRERY_ASSIGN_OR_RETURN(const int64_t slice, PositiveOption(options, "slice"));
      if (slice > count) {
        return absl::InvalidArgumentError(
            absl::StrCat("slice=", slice, " of slices=", count, "; wanted one of them"));
      }
      if (count == 1) return false;
      ORRERY_ASSIGN_OR_RETURN(const std::vector<SliceRange> slices, EqualSlices(function, count));
      ORRERY_ASSIGN_OR_RETURN(function,
                              SliceSequence(function, slices[static_cast<size_t>(slice - 1)]));
      return true;
    },
};

}  // namespace orrery::transforms
