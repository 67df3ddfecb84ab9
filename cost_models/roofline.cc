#include <algorithm>

#include "cost_models/collectives/choice.h"
#include "cost_models/cost_model.h"
#include "ir/op_info.h"
#include "support/check.h"

// A kernel takes as long as its arithmetic at the device's peak or its bytes at the peak of its
// memory, whichever is longer, and a launch (Williams, Waterman & Patterson 2009). No kernel
// reaches a peak, so this is the lower bound that a data sheet gives.

namespace orrery::cost_models {
namespace roofline_cc {
namespace {

// The matrix units work on narrow floats only: TF32 is not taken for f32. Data sheets here have no
// peak of f64 and of integers: those count as f32, which flatters them.
FlopRate MatrixPeak(ir::DType dtype, const cluster::Device& device) {
  switch (dtype) {
    case ir::DType::kF8:
      return device.fp8;
    case ir::DType::kF16:
    case ir::DType::kBF16:
      return device.fp16;
    default:
      return device.fp32;
  }
}

class Roofline final : public CostModel {
 public:
  Duration Compute(const OpView& op, const cluster::Device& device) const override {
    const ir::OpInfo& info = ir::GetOpInfo(op.kind);
    if (info.op_class == ir::OpClass::kView) return Duration(0);
    ORRERY_CHECK(info.op_class == ir::OpClass::kCompute || info.op_class == ir::OpClass::kOptimizer)
        << info.name << " is no kernel";
    const FlopRate peak =
        info.matrix_product ? MatrixPeak(op.operands[0]->dtype, device) : device.fp32;
    const Duration arithmetic =
        Duration::FromSeconds(FlopsOf(op).count() / peak.flops_per_second());
    const Duration memory = TransferTime(BytesMovedBy(op), device.memory_bandwidth);
    return std::max(arithmetic, memory) + device.launch_overhead * info.kernels;
  }

  std::optional<Duration> Fused(Flops flops, Bytes bytes,
                                const cluster::Device& device) const override {
    const Duration arithmetic =
        Duration::FromSeconds(flops.count() / device.fp32.flops_per_second());
    return std::max(arithmetic, TransferTime(bytes, device.memory_bandwidth)) +
           device.launch_overhead;
  }

  Duration Transfer(Bytes size, const cluster::PathInfo& path) const override {
    return path.latency + TransferTime(size, path.rate);
  }

  Duration Collective(CollectiveKind kind, Bytes size, std::span<const cluster::DeviceId> group,
                      const cluster::Topology& topology) const override {
    return FastestTime({.kind = kind, .size = size, .group = group}, topology);
  }

  bool shares_links() const override { return true; }
};

std::unique_ptr<const CostModel> Make() { return std::make_unique<Roofline>(); }

}  // namespace
}  // namespace roofline_cc

extern const CostModelInfo kRooflineCostModel = {
    .name = "roofline",
    .summary = "the longer of arithmetic and memory at the device's peaks, and a launch a kernel",
    .source = "Williams, Waterman & Patterson 2009",
    .make = roofline_cc::Make,
};

}  // namespace orrery::cost_models
