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
#include "transforms/sharding/axis_frame.h"
#include "transforms/sharding/axis_layout.h"
#include "transforms/sharding/emit_sharded.h"
#include "transforms/sharding/shard.h"
#include "transforms/sharding/sharding_choices.h"
#include "transforms/sharding/sharding_graph.h"
#include "transforms/sharding/sharding_memo.h"
#include "transforms/strategies/strategy_graph.h"
#include "transforms/training/split_loss.h"

namespace orrery::transforms {
namespace auto_shard_cc {
namespace {

using ir::Function;
using strategies::StrategyChoice;

// The axes by cost, in the order in which they split a dimension: outermost first.
constexpr absl::string_view kAxesByCost[] = {"ep", "cp", "hp"};

double Now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

using StepMaker = std::function<absl::StatusOr<Function>()>;

// So many parameters: those of AutoShard.
class AutoSharder {
 public:
  AutoSharder(const ir::Mesh& mesh, const std::vector<bool>& batched, const ShardingPrices& prices,
              const AutoShardOptions& options, AutoShardReport& report)
      : mesh_(mesh), batched_(batched), prices_(prices), options_(options), report_(report) {
    for (const absl::string_view name : kAxesByCost) {
      const auto axis = mesh_.Find(name);
      if (axis.has_value() && mesh_.size(*axis) > 1) axes_.push_back(*axis);
    }
  }

  // `make` makes the step, which has its loss in parts or not.
  absl::StatusOr<Function> ShardAll(const StepMaker& make, bool loss_in_parts) {
    if (axes_.empty()) return ShardByBatch(make);
    std::unique_ptr<AxisFrame> own;
    ORRERY_ASSIGN_OR_RETURN(AxisFrame * frame, First(make, loss_in_parts, own));
    for (size_t next = 1;; ++next) {
      ORRERY_ASSIGN_OR_RETURN(Function sharded, ShardOver(*frame));
      if (next == axes_.size()) return sharded;
      own = Frame(std::move(sharded), next);
      frame = own.get();
    }
  }

 private:
  absl::StatusOr<Function> ShardByBatch(const StepMaker& make) const {
    ORRERY_ASSIGN_OR_RETURN(const Function step, make());
    return Shard(step, WithoutFrom(0), batched_);
  }

  // The mesh, on which the axes from that one on have nothing to split yet.
  ir::Mesh WithoutFrom(size_t first) const {
    std::vector<ir::Axis> all = mesh_.axes();
    for (size_t i = first; i < axes_.size(); ++i) all[axes_[i]].size = 1;
    return ir::Mesh(std::move(all));
  }

  std::unique_ptr<AxisFrame> Frame(Function base, size_t at) const {
    return std::make_unique<AxisFrame>(std::pair(std::move(base), WithoutFrom(at + 1)), axes_[at],
                                       prices_, batched_, options_);
  }

  // That of the first axis depends on no choice, so that it is kept for other questions, if any
  // are to come; else it is `own`.
  absl::StatusOr<AxisFrame*> First(const StepMaker& make, bool loss_in_parts,
                                   std::unique_ptr<AxisFrame>& own) const {
    const AxisFrames::Key key = {.loss_in_parts = loss_in_parts,
                                 .axis = axes_[0],
                                 .link_price = options_.link_price,
                                 .attention = options_.context_attention,
                                 .uneven = options_.uneven};
    AxisFrames* const frames = options_.frames;
    AxisFrame* const known = frames != nullptr ? frames->Find(key) : nullptr;
    if (known != nullptr) return known;
    ORRERY_ASSIGN_OR_RETURN(Function base, ShardByBatch(make));
    own = Frame(std::move(base), 0);
    return frames != nullptr ? &frames->Add(key, std::move(own)) : own.get();
  }

  absl::StatusOr<Function> ShardOver(AxisFrame& frame) {
    const double start = Now();
    const AxisProblem& problem = frame.problem();
    ORRERY_ASSIGN_OR_RETURN(std::vector<PricedChoices>* const ways, frame.WaysToUse(options_));
    if (!frame.attends_as_wanted()) return AttentionStatus();
    const int64_t to_come = mesh_.size() / problem.mesh.size();
    const double limit =
        static_cast<double>(options_.memory_limit.count()) * static_cast<double>(to_come);
    const double built = Now();
    PricedChoices* best = nullptr;
    StrategyChoice choice;
    for (PricedChoices& way : *ways) {
      ORRERY_ASSIGN_OR_RETURN(StrategyChoice found, Solve(way, limit));
      const bool better = best == nullptr || (!found.none.has_value() &&
                                              Weighed(way, found) <= Weighed(*best, choice));
      if (!better) continue;
      best = &way;
      choice = std::move(found);
    }
    const double solved = Now();
    if (choice.none.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat(problem.function.name(), ": no sharding: ", choice.none->reason));
    }
    Report(*best, choice);
    report_.build_time += built - start;
    report_.solve_time += solved - built;
    const ChosenShardings chosen(best->choices(), std::move(choice.assignment));
    return Annotated(EmitSharded(problem, chosen, frame.ways()), problem.function.name());
  }

  // Seconds, with what memory counts.
  double Weighed(PricedChoices& way, const StrategyChoice& choice) const {
    const double price = options_.memory_price;
    return choice.cost + (price > 0 ? price * BytesOf(way, choice) : 0);
  }

  static absl::Status AttentionStatus() {
    return InfeasibleStatus(
        {.reason = InfeasibleReason::kUnsupported,
         .detail = "no attention can do what `context-attention` wants; a ring wants flash=1 and "
                   "no mask, an all-to-all heads that divide"});
  }

  // The cheapest choice; within the limit of memory, the cheapest of those that a price of memory
  // singles out (Everett 1963): the higher the price, the less of it is taken.
  absl::StatusOr<StrategyChoice> Solve(PricedChoices& way, double limit) {
    ORRERY_ASSIGN_OR_RETURN(StrategyChoice best, SolveAt(options_.memory_price, way));
    if (limit == 0 || best.none.has_value() || BytesOf(way, best) <= limit) return best;
    double least = 0;
    for (const strategies::StrategyNode& node : way.bytes(GatheredOf(options_)).nodes) {
      least += *std::ranges::min_element(node.cost);
    }
    constexpr int kSteps = 16;
    constexpr double kCloseEnough = 1.1, kDear = 1e12;
    double low = 0, high = 0;  // seconds a byte: too little, and enough
    double price = std::max(best.cost, 1e-12) / BytesOf(way, best) / 64;
    if (least > limit) return SolveAt(price * kDear, way);
    for (int step = 0; step < kSteps && (high == 0 || high > low * kCloseEnough); ++step) {
      ORRERY_ASSIGN_OR_RETURN(StrategyChoice choice, SolveAt(price, way));
      const bool fits = BytesOf(way, choice) <= limit;
      if (fits || high == 0) best = std::move(choice);
      (fits ? high : low) = price;
      price = high == 0 ? price * 8 : (low + high) / 2;
    }
    best.bound = 0;
    return best;
  }

  absl::StatusOr<StrategyChoice> SolveAt(double price, PricedChoices& way) const {
    report_.solved += std::ssize(way.seconds().nodes);
    return way.Solve(price, GatheredOf(options_), options_.solve);
  }

  double BytesOf(PricedChoices& way, const StrategyChoice& choice) const {
    return CostOf(way.bytes(GatheredOf(options_)), choice.assignment);
  }

  void Report(PricedChoices& way, const StrategyChoice& choice) const {
    report_.nodes += std::ssize(way.seconds().nodes);
    report_.edges += std::ssize(way.seconds().edges);
    report_.labels += choice.labels;
    report_.composed += choice.composed;
    report_.seconds = choice.cost;
    report_.kept = std::make_shared<const KeptMemory>(way.KeptBy(choice.assignment));
    SumKept(options_, report_);
    report_.optimal = report_.optimal && choice.optimal();
  }

  const ir::Mesh& mesh_;
  const std::vector<bool>& batched_;
  const ShardingPrices& prices_;
  const AutoShardOptions& options_;
  AutoShardReport& report_;
  std::vector<ir::AxisIndex> axes_;  // by cost, in their order
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
    if (parts == 1 || !HasLossToSplit(step, parts)) return ShardWhole(step);
    // A loss in parts lets logits stay split over their classes.
    const StepMaker in_parts = [&]() -> absl::StatusOr<Function> {
      Function split = step;
      ORRERY_RETURN_IF_ERROR(SplitLosses(split, parts).status());
      return split;
    };
    ORRERY_ASSIGN_OR_RETURN(Function with_parts, ShardOnce(in_parts, true));
    const bool uses = UsesParts(with_parts, *hp);
    const AutoShardReport of_parts = report_;
    if (uses && !MayBeBetterWhole(with_parts)) return with_parts;
    report_ = {.solved = of_parts.solved,
               .build_time = of_parts.build_time,
               .solve_time = of_parts.solve_time};
    ORRERY_ASSIGN_OR_RETURN(Function whole, ShardWhole(step));
    if (!uses || Weighed(report_) < Weighed(of_parts)) return whole;
    const AutoShardReport of_both = std::exchange(report_, of_parts);
    report_.solved = of_both.solved;
    report_.build_time = of_both.build_time;
    report_.solve_time = of_both.solve_time;
    return with_parts;
  }

 private:
  absl::StatusOr<Function> ShardOnce(const StepMaker& make, bool loss_in_parts) {
    return AutoSharder(mesh_, batched_, prices_, options_, report_).ShardAll(make, loss_in_parts);
  }
  absl::StatusOr<Function> ShardWhole(const Function& step) {
    return ShardOnce([&] { return step; }, false);
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
    const LinkPrices prices(prices_, options_.link_price);
    double seconds = 0;
    for (const ir::OpId op : function.order()) {
      const bool more = function.kind(op) == ir::OpKind::kCrossEntropyOfParts;
      if (more) seconds += SerialSeconds(function, op, prices);
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
  ORRERY_ASSIGN_OR_RETURN(
      ir::Function sharded,
      auto_shard_cc::LossSharder(mesh, batched, prices, options, told).Shard(step));
  told.choice = NumberOf(sharded);
  return sharded;
}

}  // namespace orrery::transforms
