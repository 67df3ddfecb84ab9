#include <algorithm>

#include "transforms/plan/axis_fields.h"
#include "transforms/plan/divisors.h"

// The degrees of the mesh's axes.

namespace orrery::transforms {
namespace degrees_cc {
namespace {

template <auto kField>
int64_t Degree(const ParallelPlan& plan) {
  return plan.*kField;
}

// All that divide the devices, where it is left open.
template <auto kField>
std::vector<ParallelPlan> DivisorsOrGiven(const SpaceQuestion& question, const ParallelPlan& plan,
                                          std::span<const ParallelPlan> given) {
  if (!given.empty()) return WithGiven<kField>(plan, given);
  return WithEach<kField>(plan, Divisors(question.devices));
}

// Where a search chooses among what people train with: what divides the experts and the samples of
// a replica. All-to-alls of tokens stand in the way of compute as hp's reductions do, so that ranks
// that share out experts and products are in one node together; along ep alone they may leave it.
std::vector<ParallelPlan> ExpertChoices(const SpaceQuestion& question, const ParallelPlan& plan,
                                        std::span<const ParallelPlan> given) {
  if (!given.empty()) return WithGiven<&ParallelPlan::ep>(plan, given);
  if (!question.shares_experts) return {plan};
  const bool in_node = plan.hp > 1 && question.devices_a_node > 1;
  std::vector<int64_t> degrees = Divisors(question.experts);
  std::erase_if(degrees, [&](int64_t ep) {
    return ep > 1 && (question.batch_size % (plan.dp * ep) != 0 ||
                      (in_node && plan.hp * ep > question.devices_a_node));
  });
  return WithEach<&ParallelPlan::ep>(plan, degrees);
}

// A full space shares out sequences, too, where there are any: ranks that have fewer positions than
// these would wait for each other's keys and values for longer than they compute.
std::vector<ParallelPlan> ContextChoices(const SpaceQuestion& question, const ParallelPlan& plan,
                                         std::span<const ParallelPlan> given) {
  if (!given.empty()) return WithGiven<&ParallelPlan::cp>(plan, given);
  if (!question.full || question.sequence == 0 || plan.cp != 1) return {plan};
  std::vector<int64_t> degrees = Divisors(question.devices);
  constexpr int64_t kLeast = 512;
  std::erase_if(degrees, [&](int64_t cp) {
    return question.sequence % cp != 0 || (cp > 1 && question.sequence / cp < kLeast);
  });
  return WithEach<&ParallelPlan::cp>(plan, degrees);
}

// More ranks of one axis: on devices that are free, else from those of the data-parallel axis.
// Each has fewer activations, or not.
template <auto kField, bool kFewerActivations>
void SuggestMore(const AxisInfo& axis, const SuggestionQuestion& question, const ParallelPlan& plan,
                 std::vector<Suggestion>& suggestions) {
  if (plan.unequal()) return;  // other degrees go with other shares, or none
  for (const int64_t factor : {2, 4, 8}) {
    const double part = 1.0 / static_cast<double>(factor);
    double activations = kFewerActivations ? part : 1;
    ParallelPlan next = plan;
    next.*kField *= factor;
    if (next.ranks() > question.devices) {
      if (plan.dp % factor != 0) continue;
      next.dp /= factor;
      activations *= static_cast<double>(factor);  // a replica has a larger share of the batch
    }
    Suggestion& more = suggestions.emplace_back(Suggest(axis, plan, next));
    more.shares = {
        .parameters = part, .gradients = part, .optimizer = part, .activations = activations};
    more.rank = 300 + static_cast<int>(factor) * 10 + (kFewerActivations ? 1 : 0);
  }
}

}  // namespace
}  // namespace degrees_cc

extern const AxisInfo kDpAxis = {
    .flag = "dp",
    .summary = "data-parallel degree",
    .values = "a number",
    .page = "degree of data parallelism",
    .examples = {"2", "4", "2147483648", "1"},
    .mistake = {"", "'': wanted a number"},
    .scope = AxisScope::kStep,
    .is_number = true,
    .least = 1,
    .parse = ParseNumber<&ParallelPlan::dp>,
    .print = PrintNumber<&ParallelPlan::dp>,
    .copy = CopyField<&ParallelPlan::dp>,
    .always_printed = true,
    .choices = degrees_cc::DivisorsOrGiven<&ParallelPlan::dp>,
    .degree = degrees_cc::Degree<&ParallelPlan::dp>,
    .left_open = LeftOpen::kDividesDevices,
    .shown = {"dp", 5},
    .column_position = 1,
    .cell = NumberCell<&ParallelPlan::dp>,
};

extern const AxisInfo kHpAxis = {
    .flag = "hp",
    .alias = "tp",
    .summary = "horizontal (tensor) parallel degree",
    .values = "a number",
    .page = "degree of horizontal (tensor) parallelism; `--tp` is the same",
    .examples = {"2", "3", "8", "1"},
    .mistake = {"2x", "'2x': wanted a number"},
    .scope = AxisScope::kStep,
    .is_number = true,
    .least = 1,
    .parse = ParseNumber<&ParallelPlan::hp>,
    .print = PrintNumber<&ParallelPlan::hp>,
    .copy = CopyField<&ParallelPlan::hp>,
    .always_printed = true,
    .choices = degrees_cc::DivisorsOrGiven<&ParallelPlan::hp>,
    .degree = degrees_cc::Degree<&ParallelPlan::hp>,
    .left_open = LeftOpen::kDividesDevices,
    .shown = {"hp", 5},
    .column_position = 2,
    .cell = NumberCell<&ParallelPlan::hp>,
    .suggest = degrees_cc::SuggestMore<&ParallelPlan::hp, true>,
};

extern const AxisInfo kPpAxis = {
    .flag = "pp",
    .summary = "pipeline stages, of one rank or chunk each",
    .values = "a number",
    .page = "degree of pipeline parallelism: stages, of one rank or chunk each",
    .examples = {"2", "4", "16", "1"},
    .mistake = {"two", "'two': wanted a number"},
    .scope = AxisScope::kStep,
    .is_number = true,
    .least = 1,
    .parse = ParseNumber<&ParallelPlan::pp>,
    .print = PrintNumber<&ParallelPlan::pp>,
    .follow =
        [](ParallelPlan& plan) {
          const auto stages = static_cast<int64_t>(plan.stage_meshes.stages.size());
          if (stages > 0) plan.pp = stages;
          if (!plan.placement.empty()) plan.pp = std::ssize(plan.placement.sets);
        },
    .copy = CopyField<&ParallelPlan::pp>,
    .always_printed = true,
    .choices = degrees_cc::DivisorsOrGiven<&ParallelPlan::pp>,
    .degree = degrees_cc::Degree<&ParallelPlan::pp>,
    .left_open = LeftOpen::kDividesDevices,
    .shown = {"pp", 5},
    .column_position = 3,
    .cell = NumberCell<&ParallelPlan::pp>,
    // As many microbatches more are in flight as each stage has layers less.
    .suggest = degrees_cc::SuggestMore<&ParallelPlan::pp, false>,
};

extern const AxisInfo kCpAxis = {
    .flag = "cp",
    .summary = "context-parallel degree: ranks that share each sequence",
    .values = "a number",
    .page = "context parallelism: ranks that share each sequence, dimension 1 of the data",
    .examples = {"2", "8", "1"},
    .mistake = {"1,2", "'1,2': wanted a number"},
    .is_number = true,
    .least = 1,
    .parse = ParseNumber<&ParallelPlan::cp>,
    .print = PrintNumber<&ParallelPlan::cp>,
    .copy = CopyField<&ParallelPlan::cp>,
    .choices = degrees_cc::ContextChoices,
    .degree = degrees_cc::Degree<&ParallelPlan::cp>,
    .cell = NumberCell<&ParallelPlan::cp>,
};

extern const AxisInfo kEpAxis = {
    .flag = "ep",
    .summary = "expert-parallel degree: ranks that share the batch, and the experts of a mixture",
    .values = "a number",
    .page =
        "expert parallelism: ranks that split the batch beside `dp`, and share the experts of a "
        "mixture among them",
    .examples = {"2", "3", "1"},
    .mistake = {"1.5", "'1.5': wanted a number"},
    .is_number = true,
    .least = 1,
    .parse = ParseNumber<&ParallelPlan::ep>,
    .print = PrintNumber<&ParallelPlan::ep>,
    .copy = CopyField<&ParallelPlan::ep>,
    .choices = degrees_cc::ExpertChoices,
    .degree = degrees_cc::Degree<&ParallelPlan::ep>,
    .left_open = LeftOpen::kDividesExperts,
    .cell = NumberCell<&ParallelPlan::ep>,
};

}  // namespace orrery::transforms
