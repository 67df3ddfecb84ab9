#include "lowering/blocks/expert_exchange.h"

#include <algorithm>
#include <cmath>

#include "ir/op_info.h"
#include "ir/op_kind.h"

namespace orrery::lowering {
namespace expert_exchange_cc {
namespace {

using ir::OpId;
using ir::OpKind;
using ir::ValueId;

bool MovesTokens(OpKind kind) {
  return kind == OpKind::kDispatch || kind == OpKind::kCombine || kind == OpKind::kCombineGrad;
}

// The op that reads the value, the first of several; invalid: none does.
OpId ReaderOf(const ir::Function& function, ValueId value) {
  for (const OpId op : function.order()) {
    const auto operands = function.operands(op);
    if (std::ranges::find(operands, value) != operands.end()) return op;
  }
  return {};
}

// Copies in other types, and other shapes of the same.
bool Passes(OpKind kind) { return kind == OpKind::kCast || kind == OpKind::kReshape; }

// The op that makes, or reads, the rows of tokens.
OpId MakerOfRows(const ir::Function& function, ValueId rows) {
  OpId maker = function.producer(rows);
  while (maker.valid() && Passes(function.kind(maker))) {
    maker = function.producer(function.operands(maker)[0]);
  }
  return maker;
}

OpId ReaderOfRows(const ir::Function& function, ValueId rows) {
  OpId reader = ReaderOf(function, rows);
  while (reader.valid() && Passes(function.kind(reader))) {
    reader = ReaderOf(function, function.result(reader));
  }
  return reader;
}

// Rows of the exchange over positions [batch, positions, width] of the op that moves tokens.
double RowsAToken(const ir::Function& function, OpId op, ValueId rows) {
  const ValueId tokens = function.kind(op) == OpKind::kDispatch  ? function.operands(op)[0]
                         : function.kind(op) == OpKind::kCombine ? function.result(op)
                                                                 : function.operands(op)[3];
  const int64_t positions = ir::ElementCount(function.type(tokens).dims);
  if (positions < 1) return 0;
  return static_cast<double>(ir::ElementCount(function.type(rows).dims)) /
         static_cast<double>(positions);
}

}  // namespace
}  // namespace expert_exchange_cc

double RowsOfTokens(const ir::Function& function, ir::OpId op) {
  if (function.kind(op) != ir::OpKind::kAllToAll) return 0;
  const ir::ValueId rows = function.result(op);
  for (const ir::OpId other : {expert_exchange_cc::MakerOfRows(function, function.operands(op)[0]),
                               expert_exchange_cc::ReaderOfRows(function, rows)}) {
    if (!other.valid() || !expert_exchange_cc::MovesTokens(function.kind(other))) continue;
    return expert_exchange_cc::RowsAToken(function, other, rows);
  }
  return 0;
}

double DistinctShare(double rows, int64_t places) {
  if (rows <= 1 || places < 1) return 1;
  const auto count = static_cast<double>(places);
  return std::min(1.0, count * (1 - std::pow(1 - 1 / count, rows)) / rows);
}

void SendTokensOnce(const ir::Function& function, ir::OpId op, const TemplateContext& context,
                    TemplateTask& task) {
  if (!context.kernels.sends_tokens_once || !context.places) return;
  const double rows = RowsOfTokens(function, op);
  if (rows <= 1) return;
  const double share = DistinctShare(rows, context.places(task.group));
  task.bytes = Bytes(std::llround(static_cast<double>(task.bytes.count()) * share));
}

void OverlapExchanges(const ir::Function& function, TaskTemplate& task_template) {
  for (size_t t = 0; t < task_template.tasks.size(); ++t) {
    const TemplateTask& task = task_template.tasks[t];
    const bool moves = task.collective == cost_models::CollectiveKind::kAllToAll &&
                       task.stream == simulator::StreamKind::kExperts && task.first_op >= 0;
    if (!moves) continue;
    const ir::OpId op = function.order()[static_cast<size_t>(task.first_op)];
    if (RowsOfTokens(function, op) <= 0) continue;
    const std::span<const TemplateDependency> awaited = task_template.DependenciesOf(task);
    if (awaited.size() != 1) continue;
    const TemplateDependency instead = awaited.front();
    for (TemplateDependency& dependency : task_template.dependencies) {
      const bool waits = !dependency.external && dependency.index == static_cast<int32_t>(t);
      if (waits) dependency = instead;
    }
  }
}

}  // namespace orrery::lowering
