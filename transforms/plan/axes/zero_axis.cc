#include <algorithm>
#include <set>

#include "absl/strings/str_split.h"
#include "transforms/memory/zero.h"
#include "transforms/plan/axis_fields.h"

namespace orrery::transforms {
namespace zero_axis_cc {
namespace {

absl::Status ParseStage(absl::string_view text, ParallelPlan& plan) {
  int64_t stage = 0;
  if (!absl::SimpleAtoi(text, &stage) || stage < 0 || stage > ZeroOptions::kLastStage) {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "': wanted a stage from 0 to 3"));
  }
  plan.zero = stage;
  return absl::OkStatus();
}

// Each once, and none left out.
absl::StatusOr<std::vector<std::string>> SplitStages(absl::string_view list) {
  std::vector<std::string> stages = absl::StrSplit(list, ',');
  const bool repeats = std::set<std::string>(stages.begin(), stages.end()).size() < stages.size();
  if (!repeats && std::ranges::find(stages, "") == stages.end()) return stages;
  return absl::InvalidArgumentError(
      absl::StrCat("'", list, "': wanted stages from 0 to 3, each once, as in 0,1,3"));
}

// Where a plan has no data parallelism, all stages are one: the first counts. A search that chooses
// degrees chooses among what people train with, too; beside pipelines that is no stage that gathers
// weights for each microbatch, and where it shares out experts none that keeps all state, of which
// there is a copy of all other weights on each rank along ep.
std::vector<ParallelPlan> Choices(const SpaceQuestion& question, const ParallelPlan& plan,
                                  std::span<const ParallelPlan> given) {
  const bool shares = plan.dp * plan.cp * plan.ep > 1;
  if (given.empty()) {
    std::vector<ParallelPlan> plans = {plan};
    if (!question.saves_memory || !shares || plan.zero != 0) return plans;
    if (question.full) return AndEach<&ParallelPlan::zero>(plan, std::vector<int64_t>{1, 2, 3});
    if (question.shares_experts && plan.ep > 1) plans.clear();
    for (const int64_t stage : {1, 3}) {
      if (stage == 3 && plan.pp > 1) continue;
      plans.push_back(plan);
      plans.back().zero = stage;
    }
    return plans;
  }
  return WithGiven<&ParallelPlan::zero>(plan, shares ? given : given.first(1));
}

bool ShardsParameters(const ParallelPlan& plan) { return plan.zero > 0; }

// A full space shards in one node, too, which holds several ranks along dp: copies are between
// nodes (hybrid sharding, MiCS).
std::vector<ParallelPlan> GroupChoices(const SpaceQuestion& question, const ParallelPlan& plan,
                                       std::span<const ParallelPlan> given) {
  if (!given.empty()) return WithGiven<&ParallelPlan::zero_group>(plan, given);
  if (!question.full || !ShardsParameters(plan)) return {plan};
  const int64_t in_node = question.devices_a_node / (plan.hp * plan.cp * plan.ep);
  if (in_node < 2 || in_node >= plan.dp || plan.dp % in_node != 0) return {plan};
  return AndEach<&ParallelPlan::zero_group>(plan, std::vector<int64_t>{in_node});
}

void Suggestions(const AxisInfo& axis, const SuggestionQuestion&, const ParallelPlan& plan,
                 std::vector<Suggestion>& suggestions) {
  const int64_t ranks = plan.dp * plan.cp * plan.ep;
  if (ranks == 1 || plan.compression) return;
  const double part = 1.0 / static_cast<double>(ranks);
  for (const int64_t stage : {1, 2, 3}) {
    if (plan.zero >= stage) continue;
    ParallelPlan next = plan;
    next.zero = stage;
    Suggestion& more = suggestions.emplace_back(Suggest(axis, plan, next));
    more.shares = {
        .parameters = stage > 2 ? part : 1, .gradients = stage > 1 ? part : 1, .optimizer = part};
    more.rank = 200 + static_cast<int>(stage);
    more.pairing = stage != 2 ? Pairing::kAnother : Pairing::kAlone;
  }
}

}  // namespace
}  // namespace zero_axis_cc

extern const AxisInfo kZeroStageAxis = {
    .flag = "zero",
    .summary =
        "stage of ZeRO: data-parallel ranks shard the optimizer's state (1), gradients "
        "too (2), parameters too (3)",
    .values = "0, 1, 2 or 3",
    .page =
        "stage of ZeRO: data-parallel ranks shard the optimizer's state (1), gradients too (2), "
        "parameters too (3): [ZeRO](zero.md). Without data parallelism a search has only the first "
        "of a list",
    .examples = {"1", "2", "3", "0"},
    .mistake = {"4", "'4': wanted a stage from 0 to 3"},
    .scope = AxisScope::kStep,
    .is_number = true,
    .parse = zero_axis_cc::ParseStage,
    .print = PrintNumber<&ParallelPlan::zero>,
    .copy = CopyField<&ParallelPlan::zero>,
    .split = zero_axis_cc::SplitStages,
    .choices = zero_axis_cc::Choices,
    .column_position = 8,
    .cell = NumberCell<&ParallelPlan::zero>,
    .suggest = zero_axis_cc::Suggestions,
};

extern const AxisInfo kZeroGroupAxis = {
    .flag = "zero-group",
    .summary =
        "neighbouring dp ranks that shard together, other groups hold copies; "
        "0: all",
    .values = "a number",
    .page =
        "neighbouring `dp` ranks that shard what `--zero` says; other groups hold copies "
        "([ZeRO](zero.md))",
    .page_default = "0: all",
    .examples = {"2", "16", "0"},
    .mistake = {"all", "'all': wanted a number"},
    .scope = AxisScope::kStep,
    .is_number = true,
    .parse = ParseNumber<&ParallelPlan::zero_group, 0>,
    .print = PrintNumber<&ParallelPlan::zero_group>,
    .copy = CopyField<&ParallelPlan::zero_group>,
    .applies = zero_axis_cc::ShardsParameters,
    .needs = "ZeRO's stage 1, 2 or 3 beside it",
    .choices = zero_axis_cc::GroupChoices,
    .cell = NumberCell<&ParallelPlan::zero_group>,
};

extern const AxisInfo kPrefetchAxis = {
    .flag = "prefetch",
    .summary = "layers whose weights ZeRO's stage 3 gathers ahead of the one that computes",
    .values = "a number",
    .page = "layers whose weights `--zero 3` gathers ahead of the one that computes",
    .examples = {"3", "0", "1"},
    .mistake = {"-", "'-': wanted a number"},
    .scope = AxisScope::kStep,
    .is_number = true,
    .parse = ParseNumber<&ParallelPlan::prefetch, 0>,
    .print = PrintNumber<&ParallelPlan::prefetch>,
    .copy = CopyField<&ParallelPlan::prefetch>,
    .cell = NumberCell<&ParallelPlan::prefetch>,
    .detail = true,
};

}  // namespace orrery::transforms
