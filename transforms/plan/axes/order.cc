#include "transforms/plan/axis_fields.h"

namespace orrery::transforms {
namespace order_cc {
namespace {

// A full space has stages next to each other, too, where both they and replicas are several: else
// it is the same.
std::vector<ParallelPlan> Choices(const SpaceQuestion& question, const ParallelPlan& plan,
                                  std::span<const ParallelPlan> given) {
  if (!given.empty()) return WithGiven<&ParallelPlan::order>(plan, given);
  if (!question.full || plan.dp == 1 || plan.pp == 1) return {plan};
  return AndEach<&ParallelPlan::order>(plan, std::vector<MeshOrder>{"hp,pp,dp"});
}

}  // namespace
}  // namespace order_cc

extern const AxisInfo kOrderAxis = {
    .flag = "order",
    .summary =
        "mesh axes, neighbouring ranks first; cp and ep come after hp where they are left "
        "out",
    .values = "hp,dp,pp in any order, with cp and ep where they are used",
    .page =
        "mesh axes, the one with neighbouring ranks first; `cp` and `ep`, where they are used and "
        "not named, come after `hp`",
    .page_default = "`hp,cp,ep,dp,pp`",
    .examples = {"pp,hp,dp", "hp,dp,pp", "ep,dp,pp,cp,hp"},
    .mistake = {"dp,dp,pp", "order 'dp,dp,pp'; wanted dp, hp and pp once each"},
    .scope = AxisScope::kStep,
    .lists = false,
    .parse = ParseField<&ParallelPlan::order, MeshOrder::Parse>,
    .print = [](const ParallelPlan& plan) { return plan.order.ToString(); },
    .copy = CopyField<&ParallelPlan::order>,
    .choices = order_cc::Choices,
    .detail = true,
};

}  // namespace orrery::transforms
