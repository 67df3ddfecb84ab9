#include <cstdint>
#include <limits>

#include "cost_models/cost_model.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/optimizer_operands.h"
#include "support/check.h"

// DistIR's cost model, formula by formula (microsoft/dist-ir, dist_ir/executor/cost_model.py at
// 7cfa1b0), so that Orrery can be compared with it. It prices every op by its own constants,
// whatever the device; writes results for free; and knows no latency.

namespace orrery::cost_models {
namespace distir_cc {
namespace {

using ir::OpKind;

constexpr double kFlopsPerSecond = 1.4e13;
constexpr double kBytesPerSecond = 9e11;
constexpr double kLaunchSeconds = 1e-5;

double SizeInBytes(const ir::TensorType& type) {
  return static_cast<double>(ir::SizeOf(type).count());
}

// A kernel that does one operation on each element of `type`, which it reads `reads` times.
double ElementwiseSeconds(const ir::TensorType& type, int reads) {
  return kLaunchSeconds + reads * SizeInBytes(type) / kBytesPerSecond +
         static_cast<double>(ir::ElementCount(type.dims)) / kFlopsPerSecond;
}

// One or two products, of which each reads both its operands; writing its result is free. DistIR
// looks at the first two dimensions only, so that a product of more costs it next to nothing: that
// is not copied, all leading dimensions count as rows.
double MatMulSeconds(const OpView& op) {
  double bytes_read = 0;
  for (const ir::TensorType* operand : op.operands) bytes_read += SizeInBytes(*operand);
  const bool backward = op.kind == OpKind::kMatMulGrad;
  // dx = dy w', dw = x' dy: the gradient of the result is read twice.
  if (backward) bytes_read += SizeInBytes(*op.operands[2]);
  return (backward ? 2 : 1) * kLaunchSeconds + bytes_read / kBytesPerSecond +
         FlopsOf(op).count() / kFlopsPerSecond;
}

// DistIR's SGD charges the last weight alone. It has no momentum and no Adam: they cost the same.
double OptimizerSeconds(const OpView& op) {
  const size_t parameters = ir::ParameterCount(op.attributes);
  ORRERY_CHECK(parameters >= 1 && parameters <= op.operands.size()) << parameters << " parameters";
  return ElementwiseSeconds(*op.operands[parameters - 1], 2);
}

// An op of any other kind is elementwise over its first operand.
double ComputeSeconds(const OpView& op) {
  switch (op.kind) {
    case OpKind::kMatMul:
    case OpKind::kMatMulGrad:
      return MatMulSeconds(op);
    case OpKind::kLoss:
    case OpKind::kLossGrad:
      return ElementwiseSeconds(*op.operands[0], 1);
    case OpKind::kCollect:  // Concat
      return kLaunchSeconds;
    default:
      return ElementwiseSeconds(*op.operands[0], op.operands.size() > 1 ? 2 : 1);
  }
}

// Time to move size * numerator / denominator at the mean rate of all pairs of the group.
struct Fraction {
  int64_t numerator, denominator;
};
Duration TimeAtMeanRate(Bytes size, Fraction moved, std::span<const cluster::DeviceId> group,
                        const cluster::Topology& topology) {
  __extension__ using Wide = unsigned __int128;
  Wide sum = 0;
  for (size_t i = 1; i < group.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      sum += static_cast<Wide>(topology.Path(group[j], group[i]).rate.bytes_per_second());
    }
  }
  const auto n = static_cast<int64_t>(group.size());
  const int64_t pairs = n * (n - 1) / 2;
  if (sum <= static_cast<Wide>(std::numeric_limits<int64_t>::max())) {
    return TransferTime(size, moved.numerator * pairs, moved.denominator,
                        Bandwidth(static_cast<int64_t>(sum)));
  }
  // Only for thousands of devices: the mean in whole bytes a second is then exact enough.
  const Wide mean = sum / static_cast<Wide>(pairs);
  return TransferTime(size, moved.numerator, moved.denominator,
                      Bandwidth(static_cast<int64_t>(mean)));
}

class DistIr final : public CostModel {
 public:
  Duration Compute(const OpView& op, const cluster::Device&) const override {
    const ir::OpClass op_class = ir::GetOpInfo(op.kind).op_class;
    if (op_class == ir::OpClass::kOptimizer) return Duration::FromSeconds(OptimizerSeconds(op));
    if (op_class == ir::OpClass::kView && op.kind != OpKind::kCollect) return Duration(0);
    return Duration::FromSeconds(ComputeSeconds(op));
  }

  Duration Transfer(Bytes size, const cluster::PathInfo& path) const override {
    return TransferTime(size, path.rate);
  }

  // The all-gather is DistIR's: it takes its own part for the whole, and so is too fast by n/2.
  Duration Collective(CollectiveKind kind, Bytes size, std::span<const cluster::DeviceId> group,
                      const cluster::Topology& topology) const override {
    ORRERY_CHECK(group.size() >= 2) << "a group of " << group.size();
    const auto n = static_cast<int64_t>(group.size());
    const int64_t parts = kind == CollectiveKind::kAllGather ? n : 1;
    return TimeAtMeanRate(size, {.numerator = 2 * (n - 1), .denominator = n * parts}, group,
                          topology);
  }

  bool copies_everything() const override { return true; }
};

std::unique_ptr<const CostModel> Make() { return std::make_unique<DistIr>(); }

}  // namespace
}  // namespace distir_cc

extern const CostModelInfo kDistIrCostModel = {
    .name = "distir",
    .summary =
        "DistIR's formulas and constants, its quirks included; the cluster's devices and "
        "latencies are ignored",
    .source = "microsoft/dist-ir at 7cfa1b0; Santhanam et al., arXiv 2111.05426",
    .make = distir_cc::Make,
};

}  // namespace orrery::cost_models
