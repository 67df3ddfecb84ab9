#include <algorithm>

#include "transforms/plan/axis_fields.h"

namespace orrery::transforms {
namespace recompute_axis_cc {
namespace {

std::string Print(const ParallelPlan& plan) { return ToString(plan.recompute); }

void Suggestions(const AxisInfo& axis, const SuggestionQuestion&, const ParallelPlan& plan,
                 std::vector<Suggestion>& suggestions) {
  // What the plan does already; others that leave as much are no help.
  double share = 1;
  for (const RecomputeRecord* record : AllRecomputePolicies()) {
    if (record->suggested.text == ToString(plan.recompute)) share = record->suggested.share;
  }
  for (const RecomputeRecord* record : AllRecomputePolicies()) {
    if (record->suggested.text.empty() || record->suggested.share >= share) continue;
    ParallelPlan next = plan;
    next.recompute = ParseRecomputePolicy(record->suggested.text).value();
    Suggestion& more = suggestions.emplace_back(Suggest(axis, plan, next));
    more.shares = {.activations = record->suggested.share};
    more.rank = record->suggested.rank;
    more.pairing = Pairing::kAnother;
  }
}

// Those that leave more first: they cost less time.
std::vector<ParallelPlan> Relief(const ParallelPlan& plan) {
  std::vector<const RecomputeRecord*> records;
  for (const RecomputeRecord* record : AllRecomputePolicies()) {
    if (!record->suggested.text.empty()) records.push_back(record);
  }
  std::ranges::stable_sort(records, [](const auto* a, const auto* b) {
    return a->suggested.share > b->suggested.share;
  });
  std::vector<ParallelPlan> plans;
  for (const RecomputeRecord* record : records) {
    plans.push_back(plan);
    plans.back().recompute = ParseRecomputePolicy(record->suggested.text).value();
  }
  return plans;
}

// Made of the records, which come with the program.
absl::string_view Values() {
  static const std::string& values = *new std::string(RecomputeValues());
  return values;
}

}  // namespace
}  // namespace recompute_axis_cc

extern const AxisInfo kRecomputeAxis = {
    .flag = "recompute",
    .summary = "what backward rematerializes in place of what forward would keep",
    .values = recompute_axis_cc::Values(),
    .page =
        "what backward rematerializes instead of what forward would keep: `none`, `selective`, "
        "`full`, `every:K`, `modules:NAME,…`, `match:REGEX`: [recomputation](recomputation.md). In "
        "a list, a comma that no policy follows belongs to a `modules:` or `match:REGEX`",
    .examples = {"selective", "none", "full", "every:2", "modules:core_attn,mlp", "match:gelu|norm",
                 "match:it's a \\d{1,2}$"},
    .mistake = {"some", "'some': wanted none, selective, full, every:K with K of at least 1, "},
    .scope = AxisScope::kStep,
    .parse = ParseField<&ParallelPlan::recompute, ParseRecomputePolicy>,
    .print = recompute_axis_cc::Print,
    .copy = CopyField<&ParallelPlan::recompute>,
    .split = ParseRecomputeList,
    .full = {"selective", "full"},
    .relieve = recompute_axis_cc::Relief,
    .names_itself = true,
    .column_position = 7,
    .suggest = recompute_axis_cc::Suggestions,
};

}  // namespace orrery::transforms
