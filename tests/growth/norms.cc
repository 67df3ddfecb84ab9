#include "ir/op_info.h"
#include "transforms/memory/recompute_policy.h"

// Normalizations are rematerialized: they cost little, and keep as much as the products between
// them.

namespace orrery::transforms {
namespace norms_cc {
namespace {

void Mark(const ForwardValues& forward, const RecomputePolicy&, IdTable<ir::ValueId, char>& again) {
  const ir::Function& function = forward.function;
  for (const ir::OpId op : function.order()) {
    const absl::string_view name = function.info(op).name;
    const bool normalizes = name == "LayerNorm" || name == "RmsNorm";
    for (int32_t i = 0; i < function.result_count(op); ++i) {
      const ir::ValueId result = function.result(op, i);
      again[result] = normalizes || forward.saved[result] == 0 ? 1 : 0;
    }
  }
}

}  // namespace
}  // namespace norms_cc

extern constinit const RecomputeRecord kNormsRecompute = {
    .name = "norms",
    .values = "norms (results of normalizations)",
    .wanted = "norms",
    .example = "norms",
    .mark = norms_cc::Mark,
};

}  // namespace orrery::transforms
