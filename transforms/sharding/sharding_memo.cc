#include "transforms/sharding/sharding_memo.h"

namespace orrery::transforms {

const ir::Function* ShardingMemo::Find(const AutoShardOptions& options) const {
  for (const Answer& answer : answers_) {
    if (answer.attention != options.context_attention || answer.in_flight != options.in_flight) {
      continue;
    }
    const bool below = answer.least && options.memory_limit > Bytes(0);
    if (options.memory_limit != answer.limit && !(below && options.memory_limit < answer.limit)) {
      continue;
    }
    ++found_;
    return &answer.sharded;
  }
  return nullptr;
}

void ShardingMemo::Add(const AutoShardOptions& options, const ir::Function& sharded,
                       const AutoShardReport& report) {
  solved_ += report.solved;
  answers_.push_back({.attention = options.context_attention,
                      .in_flight = options.in_flight,
                      .limit = options.memory_limit,
                      .least = report.least_memory,
                      .sharded = sharded});
}

}  // namespace orrery::transforms
