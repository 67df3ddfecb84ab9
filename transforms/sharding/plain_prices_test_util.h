#ifndef ORRERY_TRANSFORMS_SHARDING_PLAIN_PRICES_TEST_UTIL_H_
#define ORRERY_TRANSFORMS_SHARDING_PLAIN_PRICES_TEST_UTIL_H_

#include "ir/op_info.h"
#include "transforms/sharding/auto_shard.h"

namespace orrery::transforms {

/// Prices by rates alone, in seconds: of an op its operations and the bytes that it reads and
/// writes, of a collective a latency and the bytes that a rank sends.
class PlainPrices final : public ShardingPrices {
 public:
  struct Rates {
    double flops = 1e12, bytes = 1e12, link = 1e11, latency = 1e-9;
  };
  PlainPrices(const ir::Mesh& mesh, const Rates& rates) : mesh_(mesh), rates_(rates) {}

  double OpSeconds(const LocalOp& op) const override {
    const ir::OpInfo& info = ir::GetOpInfo(op.kind);
    ir::TypeList results;
    double bytes = 0;
    for (const ir::TensorType* type : op.results) {
      results.push_back(*type);
      bytes += static_cast<double>(ir::SizeOf(*type).count());
    }
    for (const ir::TensorType* type : op.operands) {
      bytes += static_cast<double>(ir::SizeOf(*type).count());
    }
    const ir::OpTypes types{op.attributes, op.operands, nothing_};
    const double flops = info.flops == nullptr ? 0 : info.flops(types, results);
    return flops / rates_.flops + bytes / rates_.bytes;
  }

  double StepSeconds(redistribution::MoveKind kind, const ir::AxisList& axes,
                     Bytes size) const override {
    const auto ranks = static_cast<double>(mesh_.size(axes));
    const double share = static_cast<double>(size.count()) * (ranks - 1) / ranks;
    const bool twice = kind == redistribution::MoveKind::kAllReduce;
    const bool direct = kind == redistribution::MoveKind::kAllToAll;
    return rates_.latency + (twice ? 2 : 1) * share / rates_.link / (direct ? ranks : 1);
  }

 private:
  const ir::Mesh mesh_, nothing_;
  const Rates rates_;
};

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SHARDING_PLAIN_PRICES_TEST_UTIL_H_
