#include "transforms/auto_shard.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "support/check.h"
#include "support/status.h"
#include "transforms/axis_layout.h"
#include "transforms/emit_sharded.h"
#include "transforms/op_strategies.h"
#include "transforms/shard.h"
#include "transforms/sharding_graph.h"

namespace orrery::transforms {
namespace {

using ir::Function;

// The same mesh, on which `axis` has nothing to split.
ir::Mesh WithoutAxis(const ir::Mesh& mesh, ir::AxisIndex axis) {
  std::vector<ir::Axis> axes = mesh.axes();
  axes[axis].size = 1;
  return ir::Mesh(std::move(axes));
}

double Now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

}  // namespace

absl::StatusOr<Function> AutoShard(const Function& step, const ir::Mesh& mesh,
                                   const std::vector<bool>& batched, const ShardingPrices& prices,
                                   const AutoShardOptions& options, AutoShardReport* report) {
  const auto axis = mesh.Find("hp");
  if (!axis.has_value() || mesh.size(*axis) == 1) {
    if (options.pins.empty()) return Shard(step, mesh, batched);
    return absl::InvalidArgumentError(
        absl::StrCat(step.name(), ": values are pinned to hp, and ", ir::ToString(mesh),
                     " has no such axis of several ranks; wanted hp of at least 2"));
  }
  const double start = Now();
  ORRERY_ASSIGN_OR_RETURN(const Function base, Shard(step, WithoutAxis(mesh, *axis), batched));
  ORRERY_ASSIGN_OR_RETURN(PinnedLayouts pins,
                          Annotated(PinLayouts(base, mesh, *axis, options.pins), step.name()));
  OpStrategies strategies(base, mesh, *axis, prices);
  LayoutWays ways(base, mesh, *axis, prices);
  ShardingGraph graph(base, strategies, ways, std::move(pins));
  ORRERY_RETURN_IF_ERROR(Annotate(graph.Build(mesh, *axis, prices), step.name()));
  const double built = Now();
  ORRERY_ASSIGN_OR_RETURN(StrategyChoice choice, SolveStrategies(graph.graph(), options.solve));
  if (choice.none.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat(step.name(), ": no sharding: ", choice.none->reason));
  }
  if (report != nullptr) {
    *report = {.nodes = std::ssize(graph.graph().nodes),
               .edges = std::ssize(graph.graph().edges),
               .labels = choice.labels,
               .seconds = choice.cost,
               .optimal = choice.optimal(),
               .build_time = built - start,
               .solve_time = Now() - built};
  }
  graph.Choose(std::move(choice.assignment));
  return Annotated(EmitSharded(base, mesh, *axis, graph, ways), step.name());
}

double SerialSeconds(const Function& function, const ShardingPrices& prices) {
  double seconds = 0;
  std::vector<const ir::TensorType*> operands, results;
  for (const ir::OpId op : function.order()) {
    operands.clear();
    results.clear();
    for (const ir::ValueId operand : function.operands(op)) {
      operands.push_back(&function.type(operand));
    }
    for (int32_t i = 0; i < function.result_count(op); ++i) {
      results.push_back(&function.type(function.result(op, i)));
    }
    seconds += SecondsOf(function.kind(op), function.attributes(op), operands, results,
                         function.mesh(), prices);
  }
  return seconds;
}

}  // namespace orrery::transforms
