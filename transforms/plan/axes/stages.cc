#include <re2/re2.h>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "support/enum_names.h"
#include "transforms/plan/axis_fields.h"

namespace orrery::transforms {
namespace stages_cc {
namespace {

constexpr EnumNames<StagesBy, 5> kBy({{"cost", StagesBy::kCost},
                                      {"ops", StagesBy::kOps},
                                      {"layers", StagesBy::kLayers},
                                      {"flops", StagesBy::kFlops},
                                      {"distir", StagesBy::kDistir}});

absl::Status ParseBy(absl::string_view text, ParallelPlan& plan) {
  ORRERY_ASSIGN_OR_RETURN(plan.stages_by, kBy.Parse(text));
  return absl::OkStatus();
}
std::string PrintBy(const ParallelPlan& plan) { return std::string(kBy.Of(plan.stages_by)); }

absl::Status ParseSplitAt(absl::string_view text, ParallelPlan& plan) {
  const RE2 pattern({text.data(), text.size()}, RE2::Quiet);
  if (!pattern.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "': ", pattern.error(), "; wanted a regular expression"));
  }
  plan.split_at = std::string(text);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> ParseCounts(absl::string_view text) {
  std::vector<int64_t> counts;
  for (const absl::string_view item : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    int64_t count = 0;
    if (!absl::SimpleAtoi(item, &count) || count < 1 || count > (int64_t{1} << 31)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", text, "': wanted a number of at least 1 for each stage, as in 23,24,24,25"));
    }
    counts.push_back(count);
  }
  return counts;
}
std::string PrintCounts(const ParallelPlan& plan) {
  return absl::StrJoin(plan.layers_per_stage, ",");
}

absl::Status CheckOneOf(const ParallelPlan& plan) {
  if (plan.split_at.empty() || plan.layers_per_stage.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "a pattern of first ops and layers of each stage each say where stages begin; wanted one");
}

}  // namespace
}  // namespace stages_cc

extern const AxisInfo kStagesByAxis = {
    .flag = "stages-by",
    .summary =
        "how layers are divided into pipeline stages: the slowest stage as fast as it can "
        "be, of whole layers (cost) or not (ops); equally many layers; about equally many "
        "flops where little crosses, or as DistIR has them",
    .values = "cost, ops, layers, flops or distir",
    .page =
        "how layers become pipeline stages: `cost`, `ops`, `layers`, `flops`, or `distir`: as "
        "`flops`, but layers that are all alike must divide ([pipeline "
        "stages](pipeline_stages.md))",
    .page_default = "`cost`; `flops` of `opt`; `distir` with `--preset distir`",
    .examples = {"layers", "cost", "ops", "flops", "distir"},
    .mistake = {"time", "'time': wanted cost, ops, layers, flops or distir"},
    .scope = AxisScope::kStep,
    .parse = stages_cc::ParseBy,
    .print = stages_cc::PrintBy,
    .copy = CopyField<&ParallelPlan::stages_by>,
    .applies =
        [](const ParallelPlan& plan) {
          return plan.split_at.empty() && plan.layers_per_stage.empty();
        },
    .needs = "one word on where stages begin: split-at and layers-per-stage are others",
    .detail = true,
};

extern const AxisInfo kSplitAtAxis = {
    .flag = "split-at",
    .summary = "a pipeline stage begins at each op that makes a value whose name matches",
    .values = "a regular expression, as in 'h\\.(8|16)\\.'",
    .page =
        "regular expression (RE2): a stage begins at each op that makes a value whose name it "
        "finds",
    .examples = {"h\\.(8|16)\\.", "^it's one$", "$HOME `pwd`*?", ""},
    .mistake = {"(", "'(': missing ): (; wanted a regular expression"},
    .scope = AxisScope::kStep,
    .lists = false,
    .parse = stages_cc::ParseSplitAt,
    .print = [](const ParallelPlan& plan) { return plan.split_at; },
    .copy = CopyField<&ParallelPlan::split_at>,
    .check = stages_cc::CheckOneOf,
};

extern const AxisInfo kLayersPerStageAxis = {
    .flag = "layers-per-stage",
    .summary = "whole layers of each pipeline stage",
    .values = "numbers, as in 23,24,24,25",
    .page = "whole layers of each stage: `23,24,24,25`",
    .examples = {"23,24,24,25", "1"},
    .mistake = {"2,0", "'2,0': wanted a number of at least 1 for each stage"},
    .scope = AxisScope::kStep,
    .lists = false,
    .parse = ParseField<&ParallelPlan::layers_per_stage, stages_cc::ParseCounts>,
    .print = stages_cc::PrintCounts,
    .copy = CopyField<&ParallelPlan::layers_per_stage>,
};

}  // namespace orrery::transforms
