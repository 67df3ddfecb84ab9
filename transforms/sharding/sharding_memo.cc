#include "transforms/sharding/sharding_memo.h"

namespace orrery::transforms {
namespace sharding_memo_cc {
namespace {

bool AsksTheSame(const AutoShardOptions& a, const AutoShardOptions& b) {
  const bool memory_counts = a.memory_price > 0 || a.memory_limit > Bytes(0);
  return (!memory_counts || a.gathers == b.gathers) && a.context_attention == b.context_attention &&
         a.pattern == b.pattern && a.memory_price == b.memory_price && a.in_flight == b.in_flight &&
         a.memory_limit == b.memory_limit;
}

}  // namespace
}  // namespace sharding_memo_cc

const ShardingMemo::Answer* ShardingMemo::Find(const AutoShardOptions& options) const {
  for (const Answer& answer : answers_) {
    if (!sharding_memo_cc::AsksTheSame(answer.options, options)) continue;
    ++found_;
    return &answer;
  }
  return nullptr;
}

void ShardingMemo::Add(const AutoShardOptions& options, const ir::Function& sharded,
                       const AutoShardReport& report) {
  solved_ += report.solved;
  answers_.push_back({.options = options, .sharded = sharded, .report = report});
}

}  // namespace orrery::transforms
