#include "transforms/plan/axis_fields.h"

namespace orrery::transforms {
namespace recompute_axis_cc {
namespace {

std::string Print(const ParallelPlan& plan) { return ToString(plan.recompute); }

void Suggestions(const AxisInfo& axis, const SuggestionQuestion&, const ParallelPlan& plan,
                 std::vector<Suggestion>& suggestions) {
  const RecomputePolicy full = ParseRecomputePolicy("full").value();
  const RecomputePolicy selective = ParseRecomputePolicy("selective").value();
  const auto add = [&](const RecomputePolicy& policy, double part, int rank) {
    if (plan.recompute == policy || plan.recompute == full) return;
    ParallelPlan next = plan;
    next.recompute = policy;
    Suggestion& more = suggestions.emplace_back(Suggest(axis, plan, next));
    more.shares = {.activations = part};
    more.rank = rank;
    more.pairs = true;
  };
  add(selective, 0.6, 100);
  add(full, 0.1, 400);
}

}  // namespace
}  // namespace recompute_axis_cc

extern const AxisInfo kRecomputeAxis = {
    .flag = "recompute",
    .summary = "what backward computes again in place of what forward would keep",
    .values =
        "none, selective (attention's scores), full (all but the input of each layer), "
        "every:K (of K layers) or match:REGEX (values with such names)",
    .scope = AxisScope::kStep,
    .parse = ParseField<&ParallelPlan::recompute, ParseRecomputePolicy>,
    .print = recompute_axis_cc::Print,
    .copy = CopyField<&ParallelPlan::recompute>,
    .split = ParseRecomputeList,
    .column_place = 7,
    .suggest = recompute_axis_cc::Suggestions,
};

}  // namespace orrery::transforms
