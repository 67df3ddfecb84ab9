#include <memory>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "support/status.h"
#include "transforms/step_work.h"
#include "transforms/training/pad_dimensions.h"

// What hp does not divide is padded, so that all of its ranks hold the same.

namespace orrery::transforms {

extern const StepStage kPadStepStage;

namespace pad_work_cc {
namespace {

bool Applies(const StepWork& work) { return Pads(work.plan.uneven) && work.plan.hp > 1; }

Padding PaddingOf(const StepWork& work) {
  return {.ranks = work.plan.hp, .share = work.plan.uneven == UnevenShards::kPad8 ? 8 : 1};
}

std::string Reads(const StepWork& work) {
  const Padding padding = PaddingOf(work);
  return absl::StrCat(padding.ranks, " ", padding.share);
}

// What PadDimensions answered, or why it did not. Without a function nothing was padded.
struct PaddedPart {
  absl::Status status = absl::OkStatus();
  std::shared_ptr<const ir::Function> function = nullptr;
  std::vector<PaddedDimension> padded = {};

  Bytes held() const { return Bytes(function != nullptr ? function->held_bytes() : 0); }
  uint64_t number() const {
    if (function == nullptr) return NumberOf(status);
    return absl::HashOf(NumberOfAll(*function), ToString(padded));
  }
};

PaddedPart Make(const StepWork& work) {
  absl::StatusOr<PaddedFunction> made = PadDimensions(work.part(), PaddingOf(work));
  if (!made.ok()) return {.status = AsFeasible(made.status())};
  if (made->padded.empty()) return {};
  return {.function = std::make_shared<const ir::Function>(std::move(made->function)),
          .padded = std::move(made->padded)};
}

// Where there was nothing to pad, what follows is that of a plan that pads nothing.
absl::Status Pad(StepWork& work) {
  const auto make = [&] { return Make(work); };
  PartStore* const store = work.context.parts.store;
  const PaddedPart part =
      work.key.empty() ? make() : *store->FindOrMake<PaddedPart>("padded", work.key, make);
  ORRERY_RETURN_IF_ERROR(part.status);
  if (part.function != nullptr) {
    work.one = part.function;
    work.padded = part.padded;
  } else if (!work.key.empty()) {
    work.key.resize(work.key.size() -
                    absl::StrCat("/", kPadStepStage.name, " ", Reads(work)).size());
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace pad_work_cc

extern const StepStage kPadStepStage = {
    .name = "pad",
    .summary = "what hp does not divide is padded, where the plan wants it",
    .applies = pad_work_cc::Applies,
    .run = pad_work_cc::Pad,
    .reads = pad_work_cc::Reads,
};

}  // namespace orrery::transforms
