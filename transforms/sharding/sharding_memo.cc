#include "transforms/sharding/sharding_memo.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "transforms/sharding/axis_frame.h"

namespace orrery::transforms {
namespace sharding_memo_cc {
namespace {

bool AsksTheSame(const AutoShardOptions& a, const AutoShardOptions& b) {
  const bool memory_counts = a.memory_price > 0 || a.memory_limit > Bytes(0);
  return (!memory_counts || a.gathers == b.gathers) && a.context_attention == b.context_attention &&
         a.uneven == b.uneven && a.pattern == b.pattern && a.memory_price == b.memory_price &&
         a.link_price == b.link_price && a.in_flight == b.in_flight &&
         a.memory_limit == b.memory_limit;
}

}  // namespace
}  // namespace sharding_memo_cc

uint64_t NumberOf(const ir::Function& function) {
  absl::flat_hash_map<ir::AttributesId, size_t> attributes;  // looked up
  size_t number = 0;
  for (const ir::OpId op : function.order()) {
    const ir::AttributesId id = function.attributes_id(op);
    const auto [found, is_new] = attributes.try_emplace(id, 0);
    if (is_new) found->second = absl::HashOf(ToString(function.attribute_set(id)));
    number = absl::HashOf(number, function.kind(op), found->second);
    for (const ir::ValueId operand : function.operands(op)) number = absl::HashOf(number, operand);
    for (int32_t i = 0; i < function.result_count(op); ++i) {
      const ir::ValueId result = function.result(op, i);
      number = absl::HashOf(number, result, function.type(result));
    }
  }
  return number;
}

void SumKept(const AutoShardOptions& options, AutoShardReport& report) {
  const KeptFactors factors = FactorsOf(options.held, options.in_flight);
  report.memory = report.kept->whole.Sum(factors);
  report.in_parts = report.kept->in_parts.Sum(factors);
}

const ShardingAnswer* ShardingMemo::Find(const AutoShardOptions& options) const {
  for (const Known& known : answers_) {
    if (!sharding_memo_cc::AsksTheSame(known.options, options)) continue;
    ++found_;
    return &known.answer;
  }
  return nullptr;
}

void ShardingMemo::Add(const AutoShardOptions& options, ShardingAnswer answer) {
  solved_ += answer.report.solved;
  answers_.push_back({.options = options, .answer = std::move(answer)});
}

AxisFrames& ShardingMemo::frames() {
  if (frames_ == nullptr) frames_ = std::make_shared<AxisFrames>();
  return *frames_;
}

}  // namespace orrery::transforms
