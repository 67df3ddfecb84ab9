#include <algorithm>

#include "cost_models/kernels/matrix_product.h"
#include "cost_models/least_time.h"
#include "cost_models/over_links.h"
#include "ir/op_info.h"
#include "support/check.h"

// A kernel takes as long as its arithmetic at the device's peak or its bytes at the peak of its
// memory, whichever is longer, and a launch (Williams, Waterman & Patterson 2009). No kernel
// reaches a peak, so this is the lower bound that a data sheet gives.

namespace orrery::cost_models {
namespace roofline_cc {
namespace {

class Roofline final : public OverLinks, public LeastTimes {
 public:
  Duration Compute(const OpView& op, const cluster::Device& device) const override {
    const ir::OpInfo& info = ir::GetOpInfo(op.kind);
    if (info.op_class == ir::OpClass::kView) return Duration(0);
    ORRERY_CHECK(info.op_class == ir::OpClass::kCompute || info.op_class == ir::OpClass::kOptimizer)
        << info.name << " is no kernel";
    const Duration arithmetic =
        Duration::FromSeconds(FlopsOf(op).count() / PeakOf(op, info, device).flops_per_second());
    const Duration memory = TransferTime(BytesMovedBy(op), device.memory_bandwidth);
    return std::max(arithmetic, memory) + device.launch_overhead * info.kernels;
  }

  LeastTime LeastOf(const OpView& op, const cluster::Device& device) const override {
    const ir::OpInfo& info = ir::GetOpInfo(op.kind);
    if (info.op_class == ir::OpClass::kView) return {};
    const auto bandwidth = static_cast<double>(device.memory_bandwidth.bytes_per_second());
    LeastTime least{.kernels = {}, .starts_s = (device.launch_overhead * info.kernels).seconds()};
    least.kernels.push_back(
        {.arithmetic_s = FlopsOf(op).count() / PeakOf(op, info, device).flops_per_second(),
         .memory_s = static_cast<double>(BytesMovedBy(op).count()) / bandwidth});
    return least;
  }

  std::optional<Duration> Fused(Flops flops, Bytes bytes,
                                const cluster::Device& device) const override {
    const Duration arithmetic =
        Duration::FromSeconds(flops.count() / device.fp32.flops_per_second());
    return std::max(arithmetic, TransferTime(bytes, device.memory_bandwidth)) +
           device.launch_overhead;
  }

 private:
  static FlopRate PeakOf(const OpView& op, const ir::OpInfo& info, const cluster::Device& device) {
    return info.matrix_product ? MatrixPeak(op.operands[0]->dtype, device) : device.fp32;
  }
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
