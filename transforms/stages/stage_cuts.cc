#include "transforms/stages/stage_cuts.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/op_info.h"

namespace orrery::transforms {
namespace stage_cuts_cc {
namespace {

using ir::Function;
using ir::OpId;
using ir::ValueId;

// The value whose memory `value` is a view of.
ValueId BaseOf(const Function& function, ValueId value) {
  for (;;) {
    const OpId op = function.producer(value);
    if (!op.valid() || !function.info(op).strided_view || function.operands(op).empty()) {
      return value;
    }
    value = function.operands(op)[0];
  }
}

// A position before which an even share of the work is done, as nearly as cut points allow.
struct Window {
  size_t begin, end;  // positions
  double target;      // flops
};

size_t NarrowestNear(const Window& window, const std::vector<double>& done,
                     const std::vector<double>& crossing) {
  double narrowest = std::numeric_limits<double>::infinity();
  for (size_t at = window.begin; at < window.end; ++at)
    narrowest = std::min(narrowest, crossing[at]);
  size_t best = window.begin;
  double distance = std::numeric_limits<double>::infinity();
  for (size_t at = window.begin; at < window.end; ++at) {
    const double off = std::abs(done[at] - window.target);
    if (crossing[at] > 1.25 * narrowest || off >= distance) continue;
    best = at;
    distance = off;
  }
  return best;
}

}  // namespace
}  // namespace stage_cuts_cc

std::vector<double> CrossingBytes(const ir::Function& function, std::span<const ir::OpId> ops,
                                  const IdTable<ir::ValueId, char>& chain) {
  IdTable<ir::ValueId, int32_t> made(function.value_limit(), -1), used(function.value_limit(), -1);
  for (size_t at = 0; at < ops.size(); ++at) {
    for (const ir::ValueId operand : function.operands(ops[at])) {
      used[stage_cuts_cc::BaseOf(function, operand)] = static_cast<int32_t>(at);
    }
    for (int32_t i = 0; i < function.result_count(ops[at]); ++i) {
      made[function.result(ops[at], i)] = static_cast<int32_t>(at);
    }
  }
  std::vector<double> change(ops.size() + 1, 0);
  for (int32_t v = 0; v < function.value_limit(); ++v) {
    const ir::ValueId value(v);
    if (made[value] < 0 || used[value] <= made[value] || chain[value] == 0) continue;
    const auto bytes = static_cast<double>(
        ir::SizeOf(ir::LocalType(function.type(value), function.mesh())).count());
    change[static_cast<size_t>(made[value]) + 1] += bytes;
    change[static_cast<size_t>(used[value]) + 1] -= bytes;
  }
  for (size_t at = 1; at < change.size(); ++at) change[at] += change[at - 1];
  return change;
}

double FlopsOf(const ir::Function& function, ir::OpId op) {
  const ir::OpInfo& info = function.info(op);
  if (info.flops == nullptr) return 0;
  absl::InlinedVector<const ir::TensorType*, 4> operands;
  ir::TypeList results;
  for (const ir::ValueId operand : function.operands(op))
    operands.push_back(&function.type(operand));
  for (int32_t i = 0; i < function.result_count(op); ++i) {
    results.push_back(function.type(function.result(op, i)));
  }
  return info.flops({function.attributes(op), operands, function.mesh()}, results);
}

std::vector<size_t> FindCuts(const ir::Function& function, std::span<const ir::OpId> ops,
                             const IdTable<ir::ValueId, char>& chain, int64_t stages) {
  const std::vector<double> crossing = CrossingBytes(function, ops, chain);
  std::vector<double> done(ops.size() + 1, 0);  // before each position
  for (size_t at = 0; at < ops.size(); ++at) done[at + 1] = done[at] + FlopsOf(function, ops[at]);
  std::vector<size_t> cuts;
  const double share = done.back() / static_cast<double>(stages);
  for (int64_t k = 1; k < stages; ++k) {
    const double target = share * static_cast<double>(k);
    const size_t first = cuts.empty() ? 1 : cuts.back() + 1;
    const auto at = [&](double flops) {
      return static_cast<size_t>(std::lower_bound(done.begin(), done.end(), flops) - done.begin());
    };
    const stage_cuts_cc::Window window{.begin = std::max(first, at(target - share / 2)),
                                       .end = std::min(ops.size(), at(target + share / 2) + 1),
                                       .target = target};
    if (window.begin >= window.end) break;
    cuts.push_back(stage_cuts_cc::NarrowestNear(window, done, crossing));
  }
  return cuts;
}

}  // namespace orrery::transforms
