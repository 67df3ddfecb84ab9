#include "cost_models/collectives/choice.h"
#include "cost_models/cost_model.h"
#include "ir/op_info.h"

// Counts arithmetic alone: what a step would take if memory were free. Kernels without arithmetic
// take their launch.

namespace orrery::cost_models {
namespace arithmetic_cc {
namespace {

class Arithmetic final : public CostModel {
 public:
  Duration Compute(const OpView& op, const cluster::Device& device) const override {
    const ir::OpInfo& info = ir::GetOpInfo(op.kind);
    if (info.op_class == ir::OpClass::kView) return Duration(0);
    return Duration::FromSeconds(FlopsOf(op).count() / device.fp32.flops_per_second()) +
           device.launch_overhead * info.kernels;
  }

  Duration Transfer(Bytes size, const cluster::PathInfo& path) const override {
    return path.latency + TransferTime(size, path.rate);
  }

  Duration Collective(CollectiveKind kind, Bytes size, std::span<const cluster::DeviceId> group,
                      const cluster::Topology& topology) const override {
    return FastestTime({.kind = kind, .size = size, .group = group}, topology);
  }
};

std::unique_ptr<const CostModel> Make() { return std::make_unique<Arithmetic>(); }

}  // namespace
}  // namespace arithmetic_cc

extern const CostModelInfo kArithmeticCostModel = {
    .name = "arithmetic",
    .summary = "flops at the device's peak, and a launch a kernel; memory is free",
    .source = "a bound from below, no measurement",
    .make = arithmetic_cc::Make,
};

}  // namespace orrery::cost_models
