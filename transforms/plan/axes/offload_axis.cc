#include "transforms/plan/axis_fields.h"

namespace orrery::transforms {
namespace offload_axis_cc {
namespace {

std::string Print(const ParallelPlan& plan) { return ToString(plan.offload); }

void Suggestions(const AxisInfo& axis, const SuggestionQuestion&, const ParallelPlan& plan,
                 std::vector<Suggestion>& suggestions) {
  if (!(plan.offload == OffloadPolicy{})) return;
  const auto add = [&](const OffloadPolicy& policy, const MemoryShares& shares, int rank) {
    ParallelPlan next = plan;
    next.offload = policy;
    Suggestion& more = suggestions.emplace_back(Suggest(axis, plan, next));
    more.shares = shares;
    more.rank = rank;
  };
  add({.optimizer = true}, {.optimizer = 0}, 500);
  add({.activations = true}, {.activations = 0.2}, 501);
}

}  // namespace
}  // namespace offload_axis_cc

extern const AxisInfo kOffloadAxis = {
    .flag = "offload",
    .summary = "what is kept in the memory of the host",
    .values =
        "none, optimizer (its states, and the update runs there), activations (all but the "
        "last layer's), activations:REGEX (with such names) or optimizer+activations",
    .page =
        "what is kept [in the memory of the host](offload.md): `none`, `optimizer`, `activations`, "
        "`activations:REGEX`, `optimizer+activations` (in a list, too, with a plus)",
    .examples = {"optimizer", "none", "activations", "activations:a[0-9]+", "optimizer+activations",
                 "optimizer+activations:x,y|z+"},
    .mistake = {"all", "'all': wanted none, optimizer, activations"},
    .scope = AxisScope::kStep,
    .parse = ParseField<&ParallelPlan::offload, ParseOffloadPolicy>,
    .print = offload_axis_cc::Print,
    .copy = CopyField<&ParallelPlan::offload>,
    .split = ParseOffloadList,
    .full = {"optimizer", "activations", "optimizer+activations"},
    .names_itself = true,
    .suggest = offload_axis_cc::Suggestions,
};

extern const AxisInfo kOffloadPrefetchAxis = {
    .flag = "offload-prefetch",
    .summary =
        "layers whose activations are copied back from the host ahead of the one that "
        "computes",
    .values = "a number",
    .page =
        "layers whose activations `--offload` copies back ahead of the one that computes "
        "([offload](offload.md))",
    .examples = {"2", "0", "1"},
    .mistake = {"x", "'x': wanted a number"},
    .scope = AxisScope::kStep,
    .is_number = true,
    .parse = ParseNumber<&ParallelPlan::offload_prefetch, 0>,
    .print = PrintNumber<&ParallelPlan::offload_prefetch>,
    .copy = CopyField<&ParallelPlan::offload_prefetch>,
    .cell = NumberCell<&ParallelPlan::offload_prefetch>,
    .detail = true,
};

}  // namespace orrery::transforms
