#include "support/enum_names.h"
#include "transforms/plan/axis_fields.h"

namespace orrery::transforms {
namespace negatives_cc {
namespace {

constexpr EnumNames<ContrastiveNegatives, 2> kNegatives(
    {{"gathered", ContrastiveNegatives::kGathered}, {"local", ContrastiveNegatives::kLocal}});

absl::Status Parse(absl::string_view text, ParallelPlan& plan) {
  ORRERY_ASSIGN_OR_RETURN(plan.negatives, kNegatives.Parse(text));
  return absl::OkStatus();
}
std::string Print(const ParallelPlan& plan) { return std::string(kNegatives.Of(plan.negatives)); }

}  // namespace
}  // namespace negatives_cc

extern const AxisInfo kNegativesAxis = {
    .flag = "negatives",
    .summary =
        "which samples a contrastive loss holds each sample of a microbatch against: those "
        "of all data-parallel ranks, or of its own",
    .values = "gathered or local",
    .page =
        "which samples a contrastive loss (CLIP's logits, each image against each text) holds "
        "those of a microbatch against: `gathered`, those of all `dp` and `ep` ranks, as "
        "open_clip does; `local`, those of its own rank, which gathers nothing and is another "
        "loss ([exporting](exporting.md#contrastive-losses))",
    .examples = {"local", "gathered"},
    .mistake = {"none", "'none': wanted gathered or local"},
    .scope = AxisScope::kStep,
    .parse = negatives_cc::Parse,
    .print = negatives_cc::Print,
    .copy = CopyField<&ParallelPlan::negatives>,
};

}  // namespace orrery::transforms
