#include "transforms/sharding/auto_shard.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "ir/op_kind.h"
#include "support/check.h"
#include "support/status.h"
#include "transforms/sharding/axis_layout.h"
#include "transforms/sharding/emit_sharded.h"
#include "transforms/sharding/op_strategies.h"
#include "transforms/sharding/pattern_pins.h"
#include "transforms/sharding/shard.h"
#include "transforms/sharding/shard_plan.h"
#include "transforms/sharding/sharding_choices.h"
#include "transforms/sharding/sharding_graph.h"
#include "transforms/sharding/sharding_memo.h"
#include "transforms/sharding/sharding_memory.h"
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
              const AutoShardOptions& options, AutoShardReport& report)
      : mesh_(mesh), batched_(batched), prices_(prices), options_(options), report_(report) {}

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

 private:
  // The mesh, on which `axes` have nothing to split yet.
  ir::Mesh Without(const std::vector<ir::AxisIndex>& axes) const {
    std::vector<ir::Axis> all = mesh_.axes();
    for (const ir::AxisIndex axis : axes) all[axis].size = 1;
    return ir::Mesh(std::move(all));
  }

  absl::StatusOr<Function> ShardOver(ir::AxisIndex axis, const Function& base,
                                     const ir::Mesh& mesh) {
    const double start = Now();
    const bool uneven = options_.uneven == UnevenShards::kSplit && mesh.axes()[axis].name == "hp";
    const AxisProblem problem = {base, mesh, axis, prices_, SplitsBatch(options_.pins), uneven};
    ORRERY_ASSIGN_OR_RETURN(const Wanted wanted, WantedOf(problem));
    OpStrategies strategies(problem, options_.context_attention);
    LayoutWays ways(problem);
    const IdTable<ir::OpId, StepPhase> phase = FindPhases(base);
    const ShardingNodes nodes(problem, strategies, phase);
    Solved best;
    for (const Variant& variant : wanted.variants) {
      ORRERY_ASSIGN_OR_RETURN(Solved solved,
                              SolveVariant({problem, phase, nodes}, variant, wanted, ways));
      if (!strategies.attends_as_wanted()) return AttentionStatus();
      const bool better = best.choices == nullptr ||
                          (!solved.choice.none.has_value() && Weighed(solved) <= Weighed(best));
      if (better) best = std::move(solved);
    }
    if (best.choice.none.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat(base.name(), ": no sharding: ", best.choice.none->reason));
    }
    Report(best, Now() - start);
    const ChosenShardings chosen(*best.choices, std::move(best.choice.assignment));
    return Annotated(EmitSharded(problem, chosen, ways), base.name());
  }

  // The same problem with other pins.
  struct Variant {
    PinnedLayouts pins;
    bool opens_whole = false;  // as in ChoiceRules
  };
  // What an axis is to be used for; of variants the cheapest, of equal ones the last.
  struct Wanted {
    std::vector<Variant> variants;
    std::optional<TensorSplits> splits;
    IdTable<ir::ValueId, char> never_whole;
    bool weights_stay = false;
    bool tokens_stay = false;
  };
  struct Solved {
    std::unique_ptr<ShardingChoices> choices;
    std::unique_ptr<ShardingMemory> memory;
    StrategyChoice choice;
    ShardingGraph graph;
    double solve_time = 0;
  };

  // Seconds, with what memory counts.
  double Weighed(const Solved& solved) const {
    const double price = options_.memory_price;
    return solved.choice.cost + (price > 0 ? price * MemoryOf(solved.graph, solved.choice) : 0);
  }

  absl::StatusOr<Wanted> WantedOf(const AxisProblem& problem) const {
    const ir::Function& base = problem.function;
    const std::string& name = problem.mesh.axes()[problem.axis].name;
    ORRERY_ASSIGN_OR_RETURN(PinnedLayouts pins,
                            PinLayouts(base, problem.mesh, problem.axis, options_.pins));
    ORRERY_RETURN_IF_ERROR(PinData(problem, batched_, pins));
    for (const ir::Output& output : base.outputs()) {
      AxisLayout& pin = pins[output.value];
      const bool result = !output.of.valid() && pin == kReducedLayout;
      if (options_.whole_results && result) pin = kWholeLayout;
    }
    Wanted wanted;
    if (name == "ep") wanted.never_whole = PinExperts(problem, pins);
    wanted.weights_stay = options_.pattern.has_value();
    wanted.tokens_stay = options_.pattern.has_value() && name == "ep";
    if (!options_.pattern.has_value() || name != "hp") {
      // Experts are what ep is for; within a limit of memory, it may split other weights, too.
      const bool experts_alone = name == "ep" && options_.memory_limit == Bytes(0);
      if (options_.pattern.has_value() || experts_alone) {
        PinWhole(problem, wanted.never_whole, pins);
      }
      wanted.variants.push_back({.pins = std::move(pins)});
      return wanted;
    }
    ORRERY_ASSIGN_OR_RETURN(wanted.splits, PlanTensorSplits(base, problem.mesh.size(problem.axis),
                                                            PatternScope::kLayers));
    PinWeights(problem, *wanted.splits, pins);
    Variant along{.pins = pins, .opens_whole = true};
    const bool can = *options_.pattern != SequenceParallel::kOff &&
                     PinSequence(problem, *wanted.splits, along.pins);
    if (!can || *options_.pattern == SequenceParallel::kAuto) {
      wanted.variants.push_back({.pins = std::move(pins)});
    }
    if (can) wanted.variants.push_back(std::move(along));
    return wanted;
  }

  // What all variants share.
  struct Shared {
    const AxisProblem& problem;
    const IdTable<ir::OpId, StepPhase>& phase;
    const ShardingNodes& nodes;
  };

  absl::StatusOr<Solved> SolveVariant(const Shared& shared, const Variant& variant,
                                      const Wanted& wanted, LayoutWays& ways) {
    const AxisProblem& problem = shared.problem;
    Solved solved;
    solved.choices = std::make_unique<ShardingChoices>(problem, shared.nodes, ways, variant.pins);
    const ChoiceRules rules = {
        .weights_stay = wanted.weights_stay,
        .tokens_stay = wanted.tokens_stay,
        .pattern = wanted.splits.has_value() ? &*wanted.splits : nullptr,
        .opens_whole = variant.opens_whole,
        .never_whole = wanted.never_whole.empty() ? nullptr : &wanted.never_whole};
    ORRERY_RETURN_IF_ERROR(Annotate(solved.choices->Make(rules), problem.function.name()));
    solved.memory =
        std::make_unique<ShardingMemory>(problem, shared.phase, options_, *solved.choices);
    ORRERY_ASSIGN_OR_RETURN(
        solved.graph,
        Annotated(PriceChoices({problem, options_, *solved.memory}, *solved.choices, ways),
                  problem.function.name()));
    const double built = Now();
    const int64_t to_come = mesh_.size() / problem.mesh.size();
    ORRERY_ASSIGN_OR_RETURN(solved.choice,
                            Solve(solved.graph, static_cast<double>(options_.memory_limit.count()) *
                                                    static_cast<double>(to_come)));
    solved.solve_time = Now() - built;
    return solved;
  }

  static absl::Status AttentionStatus() {
    return InfeasibleStatus(
        {.reason = InfeasibleReason::kUnsupported,
         .detail = "no attention can do what `context-attention` wants; a ring wants flash=1 and "
                   "no mask, an all-to-all heads that divide"});
  }

  // The cheapest choice; within the limit of memory, the cheapest of those that a price of memory
  // singles out (Everett 1963): the higher the price, the less of it is taken.
  absl::StatusOr<StrategyChoice> Solve(const ShardingGraph& graph, double limit) {
    const double weight = options_.memory_price;
    ORRERY_ASSIGN_OR_RETURN(StrategyChoice best,
                            SolveInLayers(weight > 0 ? WithMemory(graph, weight) : graph.graph));
    if (weight > 0 && !best.none.has_value()) {
      best.cost = CostOf(graph.graph, best.assignment);
      best.bound = 0;
    }
    if (limit == 0 || best.none.has_value() || MemoryOf(graph, best) <= limit) return best;
    double least = 0;
    for (const std::vector<double>& node : graph.memory) least += *std::ranges::min_element(node);
    const auto priced = [&](double price) { return SolveInLayers(WithMemory(graph, price)); };
    constexpr int kSteps = 16;
    constexpr double kCloseEnough = 1.1, kDear = 1e12;
    double low = 0, high = 0;  // seconds a byte: too little, and enough
    double price = std::max(best.cost, 1e-12) / MemoryOf(graph, best) / 64;
    const bool hopeless = least > limit;
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

  // Each byte costs so many seconds.
  static StrategyGraph WithMemory(const ShardingGraph& graph, double price) {
    StrategyGraph with = graph.graph;
    for (size_t n = 0; n < with.nodes.size(); ++n) {
      for (size_t c = 0; c < with.nodes[n].cost.size(); ++c) {
        with.nodes[n].cost[c] += price * graph.memory[n][c];
      }
    }
    for (const strategies::StrategyEdge& copies : graph.copies) {
      strategies::StrategyEdge& edge = with.edges.emplace_back(copies);
      for (double& cost : edge.cost) cost *= price;
    }
    return with;
  }

  // Equal layers are solved once. Prices of memory can make them differ, and are prices for what
  // layers share, so they are sought anew each time: a tenth of what it takes to do without.
  absl::StatusOr<StrategyChoice> SolveInLayers(const StrategyGraph& graph) const {
    strategies::SolveOptions options = options_.solve;
    report_.solved += std::ssize(graph.nodes);
    if (options.repeats.empty()) options.repeats = strategies::FindRepeats(graph);
    return strategies::SolveStrategies(graph, options);
  }

  static double MemoryOf(const ShardingGraph& graph, const StrategyChoice& choice) {
    double memory = 0;
    for (size_t n = 0; n < choice.assignment.size(); ++n) {
      memory += graph.memory[n][static_cast<size_t>(choice.assignment[n])];
    }
    const auto of = [&](int32_t node) {
      return static_cast<size_t>(choice.assignment[static_cast<size_t>(node)]);
    };
    for (const strategies::StrategyEdge& edge : graph.copies) {
      const size_t takers = graph.memory[static_cast<size_t>(edge.to)].size();
      memory += edge.cost[of(edge.from) * takers + of(edge.to)];
    }
    return memory;
  }

  void Report(const Solved& solved, double seconds) const {
    report_.nodes += std::ssize(solved.graph.graph.nodes);
    report_.edges += std::ssize(solved.graph.graph.edges);
    report_.labels += solved.choice.labels;
    report_.composed += solved.choice.composed;
    report_.seconds = solved.choice.cost;
    report_.kept =
        std::make_shared<const KeptMemory>(solved.memory->OfAll(solved.choice.assignment));
    SumKept(options_, report_);
    report_.optimal = report_.optimal && solved.choice.optimal();
    report_.build_time += seconds - solved.solve_time;
    report_.solve_time += solved.solve_time;
  }

  const ir::Mesh& mesh_;
  const std::vector<bool>& batched_;
  const ShardingPrices& prices_;
  const AutoShardOptions& options_;
  AutoShardReport& report_;
};

// With losses of one kernel or in parts, whichever is the better. So many parameters: those of
// AutoShard.
class LossSharder {
 public:
  LossSharder(const ir::Mesh& mesh, const std::vector<bool>& batched, const ShardingPrices& prices,
              const AutoShardOptions& options, AutoShardReport& report)
      : mesh_(mesh), batched_(batched), prices_(prices), options_(options), report_(report) {}

  absl::StatusOr<Function> Shard(const Function& step) {
    const auto hp = mesh_.Find("hp");
    const int64_t parts = hp.has_value() ? mesh_.size(*hp) : 1;
    if (parts == 1) return ShardOnce(step);
    // A loss in parts lets logits stay split over their classes.
    Function in_parts = step;
    ORRERY_ASSIGN_OR_RETURN(const bool splits, SplitLosses(in_parts, parts));
    if (!splits) return ShardOnce(step);
    ORRERY_ASSIGN_OR_RETURN(Function with_parts, ShardOnce(in_parts));
    const bool uses = UsesParts(with_parts, *hp);
    const AutoShardReport of_parts = report_;
    if (uses && !MayBeBetterWhole(with_parts)) return with_parts;
    report_ = {.solved = of_parts.solved,
               .build_time = of_parts.build_time,
               .solve_time = of_parts.solve_time};
    ORRERY_ASSIGN_OR_RETURN(Function whole, ShardOnce(step));
    if (!uses || Weighed(report_) < Weighed(of_parts)) return whole;
    const AutoShardReport of_both = std::exchange(report_, of_parts);
    report_.solved = of_both.solved;
    report_.build_time = of_both.build_time;
    report_.solve_time = of_both.solve_time;
    return with_parts;
  }

 private:
  absl::StatusOr<Function> ShardOnce(const Function& step) {
    return AutoSharder(mesh_, batched_, prices_, options_, report_).ShardAll(step);
  }

  static bool UsesParts(const Function& function, ir::AxisIndex axis) {
    return std::ranges::any_of(function.order(), [&](ir::OpId op) {
      if (function.kind(op) != ir::OpKind::kCrossEntropyParts) return false;
      const ir::TensorType& logits = function.type(function.operands(op)[0]);
      return logits.sharding.at(logits.dims.size() - 1).contains(axis);
    });
  }

  // Parts take one kernel more. Where that is next to nothing, nobody needs to look whether the
  // logits had better be whole: it would take as long again.
  bool MayBeBetterWhole(const Function& function) const {
    constexpr double kNextToNothing = 1e-3;
    if (options_.pattern.has_value()) return false;
    double seconds = 0;
    for (const ir::OpId op : function.order()) {
      const bool more = function.kind(op) == ir::OpKind::kCrossEntropyOfParts;
      if (more) seconds += SerialSeconds(function, op, prices_);
    }
    return seconds > kNextToNothing * report_.seconds;
  }

  // Seconds, with what memory counts.
  double Weighed(const AutoShardReport& report) const {
    const double memory = options_.gathers ? report.in_parts : report.memory;
    return report.seconds + options_.memory_price * memory;
  }

  const ir::Mesh& mesh_;
  const std::vector<bool>& batched_;
  const ShardingPrices& prices_;
  const AutoShardOptions& options_;
  AutoShardReport& report_;
};

}  // namespace
}  // namespace auto_shard_cc

absl::StatusOr<ir::Function> AutoShard(const ir::Function& step, const ir::Mesh& mesh,
                                       const std::vector<bool>& batched,
                                       const ShardingPrices& prices,
                                       const AutoShardOptions& options, AutoShardReport* report) {
  ORRERY_RETURN_IF_ERROR(CheckPins(step, mesh, options.pins));
  AutoShardReport ignored;
  AutoShardReport& told = report != nullptr ? *report : ignored;
  told = {};
  told.kept = std::make_shared<const KeptMemory>();  // of axes by cost: none yet
  const LinkPrices weighed(prices, options.link_price);
  ORRERY_ASSIGN_OR_RETURN(
      ir::Function sharded,
      auto_shard_cc::LossSharder(mesh, batched, weighed, options, told).Shard(step));
  told.choice = NumberOf(sharded);
  return sharded;
}

}  // namespace orrery::transforms
