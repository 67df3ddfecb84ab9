#include "transforms/sharding/auto_shard.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "ir/model_facts.h"
#include "ir/op_kind.h"
#include "support/check.h"
#include "support/status.h"
#include "transforms/sharding/axis_layout.h"
#include "transforms/sharding/emit_sharded.h"
#include "transforms/sharding/op_strategies.h"
#include "transforms/sharding/shard.h"
#include "transforms/sharding/shard_plan.h"
#include "transforms/sharding/sharding_choices.h"
#include "transforms/sharding/sharding_graph.h"
#include "transforms/sharding/sharding_nodes.h"
#include "transforms/strategies/find_repeats.h"
#include "transforms/training/split_loss.h"
#include "transforms/training/step_phases.h"

namespace orrery::transforms {
namespace auto_shard_cc {
namespace {

using ir::Function;
using strategies::StrategyChoice;
using strategies::StrategyGraph;

// The axes by cost, in the order in which they split a dimension: outermost first.
constexpr absl::string_view kAxesByCost[] = {"ep", "cp", "hp"};

double Now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

bool SplitsBatch(const std::vector<ShardingPin>& pins) {
  return std::ranges::any_of(pins,
                             [](const ShardingPin& pin) { return pin.dim == ShardingPin::kBatch; });
}

// So many parameters: those of AutoShard.
class AutoSharder {
 public:
  AutoSharder(const ir::Mesh& mesh, const std::vector<bool>& batched, const ShardingPrices& prices,
              const AutoShardOptions& options, AutoShardReport* report)
      : mesh_(mesh), batched_(batched), prices_(prices), options_(options), report_(report) {}

  absl::StatusOr<Function> Run(const Function& step) {
    ORRERY_RETURN_IF_ERROR(CheckPins(step, mesh_, options_.pins));
    const auto hp = mesh_.Find("hp");
    const int64_t parts = hp.has_value() ? mesh_.size(*hp) : 1;
    if (parts == 1) return ShardAll(step);
    // A loss in parts lets logits stay split over their classes. Where they are not, one kernel for
    // all of it is faster.
    Function in_parts = step;
    ORRERY_ASSIGN_OR_RETURN(const bool splits, SplitLosses(in_parts, parts));
    if (!splits) return ShardAll(step);
    ORRERY_ASSIGN_OR_RETURN(Function sharded, ShardAll(in_parts));
    if (UsesParts(sharded, *hp)) return sharded;
    if (report_ != nullptr) {
      *report_ = {.solved = report_->solved,
                  .build_time = report_->build_time,
                  .solve_time = report_->solve_time};
    }
    return ShardAll(step);
  }

 private:
  static bool UsesParts(const Function& function, ir::AxisIndex axis) {
    return std::ranges::any_of(function.order(), [&](ir::OpId op) {
      if (function.kind(op) != ir::OpKind::kCrossEntropyParts) return false;
      const ir::TensorType& logits = function.type(function.operands(op)[0]);
      return logits.sharding.at(logits.dims.size() - 1).contains(axis);
    });
  }

  absl::StatusOr<Function> ShardAll(const Function& step) {
    std::vector<ir::AxisIndex> axes;
    for (const absl::string_view name : kAxesByCost) {
      const auto axis = mesh_.Find(name);
      if (axis.has_value() && mesh_.size(*axis) > 1) axes.push_back(*axis);
    }
    ORRERY_ASSIGN_OR_RETURN(Function sharded, Shard(step, Without(axes), batched_));
    while (!axes.empty()) {
      const ir::AxisIndex axis = axes.front();
      axes.erase(axes.begin());
      ORRERY_ASSIGN_OR_RETURN(sharded, ShardOver(axis, sharded, Without(axes)));
    }
    return sharded;
  }

  // The mesh, on which `axes` have nothing to split yet.
  ir::Mesh Without(const std::vector<ir::AxisIndex>& axes) const {
    std::vector<ir::Axis> all = mesh_.axes();
    for (const ir::AxisIndex axis : axes) all[axis].size = 1;
    return ir::Mesh(std::move(all));
  }

  absl::StatusOr<Function> ShardOver(ir::AxisIndex axis, const Function& base,
                                     const ir::Mesh& mesh) {
    const double start = Now();
    ORRERY_ASSIGN_OR_RETURN(PinnedLayouts pins, PinLayouts(base, mesh, axis, options_.pins));
    ORRERY_RETURN_IF_ERROR(PinData(axis, base, mesh, pins));
    for (const ir::Output& output : base.outputs()) {
      AxisLayout& pin = pins[output.value];
      const bool result = !output.of.valid() && pin == kReducedLayout;
      if (options_.whole_results && result) pin = kWholeLayout;
    }
    if (options_.sequence_parallel && mesh.axes()[axis].name == "hp") {
      ORRERY_RETURN_IF_ERROR(PinSequence(axis, base, mesh, pins));
    }
    const AxisProblem problem = {base, mesh, axis, prices_, SplitsBatch(options_.pins)};
    const IdTable<ir::OpId, StepPhase> phase = FindPhases(base);
    OpStrategies strategies(problem, options_.context_attention);
    LayoutWays ways(problem);
    const ShardingNodes nodes(problem, strategies, phase);
    ShardingChoices choices(problem, nodes, ways, std::move(pins));
    const bool weights_stay = options_.sequence_parallel && mesh.axes()[axis].name == "hp";
    ORRERY_RETURN_IF_ERROR(Annotate(choices.Make(weights_stay), base.name()));
    ORRERY_ASSIGN_OR_RETURN(
        const ShardingGraph graph,
        Annotated(PriceChoices({problem, phase, options_}, choices, ways), base.name()));
    if (!strategies.attends_as_wanted()) {
      return InfeasibleStatus(
          {.reason = InfeasibleReason::kUnsupported,
           .detail = "no attention can do what `context-attention` wants; a ring wants flash=1 and "
                     "no mask, an all-to-all heads that divide"});
    }
    const double built = Now();
    const int64_t to_come = mesh_.size() / mesh.size();
    ORRERY_ASSIGN_OR_RETURN(StrategyChoice choice,
                            Solve(graph, static_cast<double>(options_.memory_limit.count()) *
                                             static_cast<double>(to_come)));
    if (choice.none.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat(base.name(), ": no sharding: ", choice.none->reason));
    }
    Report(graph, choice, built - start, Now() - built);
    const ChosenShardings chosen(choices, std::move(choice.assignment));
    return Annotated(EmitSharded(problem, chosen, ways), base.name());
  }

  // The cheapest choice; within the limit of memory, the cheapest of those that a price of memory
  // singles out (Everett 1963): the higher the price, the less of it is taken.
  absl::StatusOr<StrategyChoice> Solve(const ShardingGraph& graph, double limit) {
    ORRERY_ASSIGN_OR_RETURN(StrategyChoice best, SolveInLayers(graph.graph));
    if (limit == 0 || best.none.has_value() || MemoryOf(graph, best) <= limit) {
      least_memory_ = false;
      return best;
    }
    double least = 0;
    for (const std::vector<double>& node : graph.memory) least += *std::ranges::min_element(node);
    const auto priced = [&](double price) {
      StrategyGraph with = graph.graph;
      for (size_t n = 0; n < with.nodes.size(); ++n) {
        for (size_t c = 0; c < with.nodes[n].cost.size(); ++c) {
          with.nodes[n].cost[c] += price * graph.memory[n][c];
        }
      }
      return SolveInLayers(with);
    };
    constexpr int kSteps = 16;
    constexpr double kCloseEnough = 1.1, kDear = 1e12;
    double low = 0, high = 0;  // seconds a byte: too little, and enough
    double price = std::max(best.cost, 1e-12) / MemoryOf(graph, best) / 64;
    const bool hopeless = least > limit;
    least_memory_ = least_memory_ && hopeless;
    if (hopeless) {
      ORRERY_ASSIGN_OR_RETURN(best, priced(price * kDear));
    }
    for (int step = 0; !hopeless && step < kSteps && (high == 0 || high > low * kCloseEnough);
         ++step) {
      ORRERY_ASSIGN_OR_RETURN(StrategyChoice choice, priced(price));
      const bool fits = MemoryOf(graph, choice) <= limit;
      if (fits || high == 0) best = std::move(choice);
      (fits ? high : low) = price;
      price = high == 0 ? price * 8 : (low + high) / 2;
    }
    best.cost = CostOf(graph.graph, best.assignment);
    best.bound = 0;
    return best;
  }

  // Equal layers are solved once. Prices of memory can make them differ, and are prices for what
  // layers share, so they are sought anew each time: a tenth of what it takes to do without.
  absl::StatusOr<StrategyChoice> SolveInLayers(const StrategyGraph& graph) const {
    strategies::SolveOptions options = options_.solve;
    if (report_ != nullptr) report_->solved += std::ssize(graph.nodes);
    if (options.repeats.empty()) options.repeats = strategies::FindRepeats(graph);
    return strategies::SolveStrategies(graph, options);
  }

  static double MemoryOf(const ShardingGraph& graph, const StrategyChoice& choice) {
    double memory = 0;
    for (size_t n = 0; n < choice.assignment.size(); ++n) {
      memory += graph.memory[n][static_cast<size_t>(choice.assignment[n])];
    }
    return memory;
  }

  // Data inputs that the axis splits by its nature.
  absl::Status PinData(ir::AxisIndex axis, const Function& base, const ir::Mesh& mesh,
                       PinnedLayouts& pins) const {
    const std::string& name = mesh.axes()[axis].name;
    if (name == "hp") return absl::OkStatus();
    const size_t dim = name == "ep" ? 0 : 1;
    const int64_t positions = ir::SequenceLength(base);
    bool any = false;
    for (size_t i = 0; i < base.inputs().size(); ++i) {
      const ir::Input& input = base.inputs()[i];
      const ir::TensorType& type = base.type(input.value);
      if (!batched_[i] || type.dims.size() <= dim) continue;
      if (dim == 1 && type.dims[1] != positions) continue;
      any = true;
      if (pins[input.value] != kNoLayout) continue;
      if (!CanSplit(type, dim, axis, mesh)) {
        return InfeasibleStatus(
            {.reason = InfeasibleReason::kDivisibility,
             .detail = absl::StrCat(name, "=", mesh.size(axis), ": dimension ", dim, " of ",
                                    ir::PrintValue(base, input.value), ", which is ",
                                    ir::ToString(type, mesh), ", does not divide")});
      }
      pins[input.value] = static_cast<AxisLayout>(dim);
    }
    if (any) return absl::OkStatus();
    return InfeasibleStatus(
        {.reason = InfeasibleReason::kUnsupported,
         .detail = absl::StrCat(name, "=", mesh.size(axis), ": no data input has a dimension ", dim,
                                " to split; wanted a batch of sequences")});
  }

  absl::Status PinSequence(ir::AxisIndex axis, const Function& base, const ir::Mesh& mesh,
                           PinnedLayouts& pins) const {
    ORRERY_ASSIGN_OR_RETURN(const TensorSplits splits, PlanTensorSplits(base, mesh.size(axis)));
    const IdTable<ir::OpId, StepPhase> phase = FindPhases(base);
    for (const ir::Input& input : base.inputs()) {
      AxisLayout& pin = pins[input.value];
      const bool parameter = input.role == ir::InputRole::kParameter;
      if (parameter && pin == kNoLayout) pin = splits.dims[input.value];
    }
    for (const ir::OpId op : base.order()) {
      for (int32_t i = 0; i < base.result_count(op); ++i) {
        const ir::ValueId value = base.result(op, i);
        const ir::TensorType& type = base.type(value);
        const bool summed = phase[op] == StepPhase::kForward && splits.partial[value] != 0;
        if (!summed || pins[value] != kNoLayout || type.dims.size() < 3) continue;
        if (CanSplit(type, 1, axis, mesh)) pins[value] = 1;
      }
    }
    PinStream(axis, base, mesh, pins);
    return absl::OkStatus();
  }

  // The residual stream, to which those sums are added, is split where it begins, too.
  static void PinStream(ir::AxisIndex axis, const Function& base, const ir::Mesh& mesh,
                        PinnedLayouts& pins) {
    IdTable<ir::ValueId, char> split(base.value_limit(), 0);
    for (const ir::OpId op : base.order()) {
      const auto operands = base.operands(op);
      const bool adds = base.kind(op) == ir::OpKind::kAdd && operands.size() == 2;
      const bool any =
          std::ranges::any_of(operands, [&](ir::ValueId operand) { return split[operand] != 0; });
      if (base.result_count(op) == 0) continue;
      const ir::ValueId result = base.result(op);
      split[result] = pins[result] == 1 || (any && base.kind(op) == ir::OpKind::kDropout) ? 1 : 0;
      for (size_t i = 0; adds && any && i < 2; ++i) {
        const ir::TensorType& type = base.type(operands[i]);
        const bool stream = pins[operands[i]] == kNoLayout && split[operands[i]] == 0 &&
                            base.producer(operands[i]).valid() &&
                            type.dims == base.type(result).dims;
        if (stream && CanSplit(type, 1, axis, mesh)) pins[operands[i]] = 1;
      }
    }
  }

  void Report(const ShardingGraph& graph, const StrategyChoice& choice, double build,
              double solve) const {
    if (report_ == nullptr) return;
    report_->nodes += std::ssize(graph.graph.nodes);
    report_->edges += std::ssize(graph.graph.edges);
    report_->labels += choice.labels;
    report_->composed += choice.composed;
    report_->seconds = choice.cost;
    report_->memory = MemoryOf(graph, choice);
    report_->optimal = report_->optimal && choice.optimal();
    report_->least_memory = least_memory_;
    report_->build_time += build;
    report_->solve_time += solve;
  }

  const ir::Mesh& mesh_;
  const std::vector<bool>& batched_;
  const ShardingPrices& prices_;
  const AutoShardOptions& options_;
  AutoShardReport* const report_;
  bool least_memory_ = true;  // as in AutoShardReport, of all axes until now
};

}  // namespace
}  // namespace auto_shard_cc

absl::StatusOr<ShardingPin> ParseShardingPin(absl::string_view text) {
  const auto error = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text,
                     "': wanted REGEX=AXIS@DIMENSION with one of the axes hp, cp and ep, as in "
                     "'mlp.up.weight$=hp@1', or @whole; or batch=hp"));
  };
  if (text == "batch=hp" || text == "batch=tp") {
    return ShardingPin{.pattern = "batch", .dim = ShardingPin::kBatch};
  }
  const size_t equals = text.rfind('='), at = text.rfind('@');
  if (equals == absl::string_view::npos || at == absl::string_view::npos || at < equals) {
    return error();
  }
  ShardingPin pin{.pattern = std::string(text.substr(0, equals)),
                  .dim = ShardingPin::kWhole,
                  .axis = std::string(text.substr(equals + 1, at - equals - 1))};
  if (pin.axis == "tp") pin.axis = "hp";
  const absl::string_view dim = text.substr(at + 1);
  if (pin.pattern.empty()) return error();
  if (std::ranges::find(auto_shard_cc::kAxesByCost, pin.axis) ==
      std::end(auto_shard_cc::kAxesByCost))
    return error();
  if (dim != "whole" && (!absl::SimpleAtoi(dim, &pin.dim) || pin.dim < 0)) return error();
  return pin;
}

std::string ToString(const ShardingPin& pin) {
  if (pin.dim == ShardingPin::kBatch) return absl::StrCat(pin.pattern, "=", pin.axis);
  const std::string dim = pin.dim == ShardingPin::kWhole ? "whole" : absl::StrCat(pin.dim);
  return absl::StrCat(pin.pattern, "=", pin.axis, "@", dim);
}

absl::Status CheckPins(const ir::Function& step, const ir::Mesh& mesh,
                       std::span<const ShardingPin> pins) {
  for (const ShardingPin& pin : pins) {
    if (pin.dim == ShardingPin::kBatch) continue;  // a leave: without hp nobody takes it
    if (std::ranges::find(auto_shard_cc::kAxesByCost, pin.axis) ==
        std::end(auto_shard_cc::kAxesByCost)) {
      return absl::InvalidArgumentError(absl::StrCat(step.name(), ": values are pinned to ",
                                                     pin.axis, "; wanted one of hp, cp and ep"));
    }
    const auto axis = mesh.Find(pin.axis);
    if (axis.has_value() && mesh.size(*axis) > 1) continue;
    return InfeasibleStatus(
        {.reason = InfeasibleReason::kUnsupported,
         .detail = absl::StrCat("values are pinned to ", pin.axis, ", and ", ir::ToString(mesh),
                                " has no such axis of several ranks; wanted ", pin.axis,
                                " of at least 2")});
  }
  return absl::OkStatus();
}

absl::StatusOr<ir::Function> AutoShard(const ir::Function& step, const ir::Mesh& mesh,
                                       const std::vector<bool>& batched,
                                       const ShardingPrices& prices,
                                       const AutoShardOptions& options, AutoShardReport* report) {
  if (report != nullptr) *report = {};
  return auto_shard_cc::AutoSharder(mesh, batched, prices, options, report).Run(step);
}

double SerialSeconds(const ir::Function& function, const ShardingPrices& prices) {
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
    seconds += SecondsOf({.kind = function.kind(op),
                          .attributes = function.attributes(op),
                          .operands = operands,
                          .results = results},
                         function.mesh(), prices);
  }
  return seconds;
}

}  // namespace orrery::transforms
