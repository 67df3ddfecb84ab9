#include "transforms/plan/axis_fields.h"

namespace orrery::transforms {

extern const AxisInfo kOrderAxis = {
    .flag = "order",
    .summary =
        "mesh axes, neighbouring ranks first; cp and ep come after hp where they are left "
        "out",
    .values = "hp,dp,pp in any order, with cp and ep where they are used",
    .scope = AxisScope::kStep,
    .lists = false,
    .parse = ParseField<&ParallelPlan::order, MeshOrder::Parse>,
    .print = [](const ParallelPlan& plan) { return plan.order.ToString(); },
    .copy = CopyField<&ParallelPlan::order>,
};

}  // namespace orrery::transforms
