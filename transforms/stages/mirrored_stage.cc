#include "transforms/stages/mirrored_stage.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"

namespace orrery::transforms {
namespace mirrored_stage_cc {
namespace {

using ir::Function;
using ir::OpId;
using ir::ValueId;

bool Reads(const Function& function, OpId op, ValueId value) {
  const auto operands = function.operands(op);
  return std::ranges::find(operands, value) != operands.end();
}

}  // namespace
}  // namespace mirrored_stage_cc

MirroredStages::MirroredStages(const ir::Function& function, const ForwardChain& chain,
                               const IdTable<ir::OpId, int32_t>& stage, bool by_names)
    : function_(function),
      stage_(stage),
      ops_(function.value_limit()),
      gradient_of_(function.value_limit()) {
  for (const ir::OpId op : chain.ops) {
    if (Reshards(function, op)) continue;
    for (const ir::ValueId operand : function.operands(op)) ops_[BaseOf(operand)].push_back(op);
    for (int32_t i = 0; i < function.result_count(op); ++i) {
      ops_[function.result(op, i)].push_back(op);
    }
  }
  if (by_names) FindGradients(chain);
}

void MirroredStages::FindGradients(const ForwardChain& chain) {
  absl::flat_hash_map<absl::string_view, ir::ValueId> named;
  IdTable<ir::OpId, size_t> place(function_.op_limit(), 0);  // in the chain, from 1; 0: elsewhere
  size_t places = 0;
  for (const ir::OpId op : chain.ops) {
    place[op] = ++places;
    for (int32_t i = 0; i < function_.result_count(op); ++i) {
      const absl::string_view name = function_.value_name(function_.result(op, i));
      if (!name.empty()) named.emplace(name, function_.result(op, i));
    }
  }
  for (const ir::OpId op : function_.order()) {
    if (place[op] != 0 && !function_.info(op).seeds_backward) continue;
    for (int32_t i = 0; i < function_.result_count(op); ++i) {
      absl::string_view name = function_.value_name(function_.result(op, i));
      if (!absl::ConsumePrefix(&name, "d")) continue;
      const auto found = named.find(name);
      if (found != named.end()) gradient_of_[function_.result(op, i)] = found->second;
    }
    const bool sums = function_.kind(op) == ir::OpKind::kAdd;
    if (!sums && !Reshards(function_, op)) continue;
    // Of two values the earlier one: an addition of forward has handed on the other's gradient.
    for (const ir::ValueId operand : function_.operands(op)) {
      ir::ValueId& of = gradient_of_[function_.result(op)];
      const ir::ValueId other = gradient_of_[operand];
      const auto at = [&](ir::ValueId value) { return place[function_.producer(value)]; };
      if (!of.valid() || (other.valid() && at(other) < at(of))) of = other;
    }
  }
}

int32_t MirroredStages::StageOf(ir::OpId op, std::span<const ir::ValueId> read,
                                int32_t last) const {
  const auto stage_of = [&](ir::ValueId value) { return stage_[function_.producer(value)]; };
  if (read.empty() && function_.kind(op) == ir::OpKind::kAdd) {
    const ir::ValueId of = gradient_of_[function_.result(op)];
    return of.valid() ? stage_of(of) : 0;
  }
  const Stages stages = StagesOf(read);
  if (!stages.empty() && stages.front() == stages.back()) return stages.front();
  for (const ir::ValueId operand : function_.operands(op)) {
    if (!gradient_of_[operand].valid()) continue;
    const int32_t stage = stage_of(gradient_of_[operand]);
    if (stages.empty() || std::ranges::binary_search(stages, stage)) return stage;
  }
  if (stages.empty()) return -1;
  const auto behind = std::ranges::upper_bound(stages, last);
  return *(behind == stages.begin() ? behind : behind - 1);
}

ir::ValueId MirroredStages::BaseOf(ir::ValueId value) const {
  for (;;) {
    const ir::OpId op = function_.producer(value);
    if (!op.valid() || !Reshards(function_, op)) return value;
    value = function_.operands(op)[0];
  }
}

MirroredStages::Stages MirroredStages::StagesOf(std::span<const ir::ValueId> values) const {
  Stages stages;
  if (values.empty()) return stages;
  for (const ir::OpId op : ops_[BaseOf(values.front())]) {
    const bool has_all = std::ranges::all_of(values, [&](ir::ValueId value) {
      const Ops& ops = ops_[BaseOf(value)];
      return std::ranges::find(ops, op) != ops.end();
    });
    if (has_all) stages.push_back(stage_[op]);
  }
  std::ranges::sort(stages);
  return stages;
}

int32_t StageOfReader(const ir::Function& function, const ForwardChain& chain,
                      const IdTable<ir::OpId, int32_t>& stage, ir::OpId op, ir::ValueId parameter) {
  int32_t maker = -1;
  for (const ir::OpId reader : chain.ops) {
    if (!mirrored_stage_cc::Reads(function, reader, parameter)) continue;
    for (const ir::ValueId value : function.operands(op)) {
      if (value != parameter && mirrored_stage_cc::Reads(function, reader, value)) {
        return stage[reader];
      }
      if (function.producer(value) == reader) maker = stage[reader];
    }
  }
  return maker;
}

}  // namespace orrery::transforms
