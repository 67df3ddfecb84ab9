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
#include "transforms/split_loss.h"

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

struct Task {
  const ir::Mesh& mesh;
  const std::vector<bool>& batched;
  const ShardingPrices& prices;
  const AutoShardOptions& options;
};

// The step with its ops as they are.
absl::StatusOr<Function> Solve(const Function& step, const Task& task, ir::AxisIndex axis,
                               AutoShardReport& report) {
  const double start = Now();
  ORRERY_ASSIGN_OR_RETURN(const Function base,
                          Shard(step, WithoutAxis(task.mesh, axis), task.batched));
  ORRERY_ASSIGN_OR_RETURN(
      PinnedLayouts pins,
      Annotated(PinLayouts(base, task.mesh, axis, task.options.pins), step.name()));
  OpStrategies strategies(base, task.mesh, axis, task.prices);
  LayoutWays ways(base, task.mesh, axis, task.prices);
  ShardingGraph graph(base, strategies, ways, std::move(pins));
  ORRERY_RETURN_IF_ERROR(Annotate(graph.Build(task.mesh, axis, task.prices), step.name()));
  const double built = Now();
  ORRERY_ASSIGN_OR_RETURN(StrategyChoice choice,
                          SolveStrategies(graph.graph(), task.options.solve));
  if (choice.none.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat(step.name(), ": no sharding: ", choice.none->reason));
  }
  report = {.nodes = std::ssize(graph.graph().nodes),
            .edges = std::ssize(graph.graph().edges),
            .labels = choice.labels,
            .seconds = choice.cost,
            .optimal = choice.optimal(),
            .build_time = built - start,
            .solve_time = Now() - built};
  graph.Choose(std::move(choice.assignment));
  return Annotated(EmitSharded(base, task.mesh, axis, graph, ways), step.name());
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
  const Task task = {.mesh = mesh, .batched = batched, .prices = prices, .options = options};
  AutoShardReport one, parted;
  ORRERY_ASSIGN_OR_RETURN(Function result, Solve(step, task, *axis, one));
  // A loss in parts lets logits stay split over their classes; one kernel for all of it is faster
  // where they are not. Which it is to be is known when both are solved.
  Function in_parts = step;
  ORRERY_ASSIGN_OR_RETURN(const bool splits, SplitLosses(in_parts, mesh.size(*axis)));
  if (splits) {
    ORRERY_ASSIGN_OR_RETURN(Function other, Solve(in_parts, task, *axis, parted));
    const double build_time = one.build_time + parted.build_time;
    const double solve_time = one.solve_time + parted.solve_time;
    if (parted.seconds < one.seconds) {
      one = parted;
      result = std::move(other);
    }
    one.build_time = build_time;
    one.solve_time = solve_time;
  }
  if (report != nullptr) *report = one;
  return result;
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
