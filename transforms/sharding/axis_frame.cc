#include "transforms/sharding/axis_frame.h"

#include <algorithm>
#include <string>

#include "support/status.h"
#include "transforms/sharding/pattern_pins.h"
#include "transforms/sharding/shard_plan.h"
#include "transforms/strategies/find_repeats.h"

namespace orrery::transforms {

using strategies::StrategyChoice;
using strategies::StrategyGraph;

namespace axis_frame_cc {
namespace {

bool SplitsBatch(const std::vector<ShardingPin>& pins) {
  return std::ranges::any_of(pins,
                             [](const ShardingPin& pin) { return pin.dim == ShardingPin::kBatch; });
}

}  // namespace
}  // namespace axis_frame_cc

PricedChoices::PricedChoices(std::unique_ptr<ShardingChoices> choices,
                             std::unique_ptr<ShardingMemory> memory, StrategyGraph seconds)
    : choices_(std::move(choices)),
      memory_(std::move(memory)),
      seconds_(std::move(seconds)),
      repeats_(strategies::FindRepeats(seconds_)) {
  strategies::ShortGraph graph(seconds_.nodes.size(), repeats_);
  if (!graph.is_shorter()) return;
  std::optional<StrategyGraph> shorter = graph.Of(seconds_);
  if (!shorter.has_value()) return;
  shorter_.emplace(Shorter{std::move(graph), *std::move(shorter), {}});
}

const StrategyGraph& PricedChoices::bytes(KeptGathered gathered) {
  const auto place = static_cast<size_t>(gathered);
  if (!bytes_.at(place).has_value()) {
    bytes_.at(place) = WeighChoices(*choices_, gathered, *memory_);
    if (shorter_.has_value()) shorter_->bytes.at(place) = shorter_->graph.Of(*bytes_.at(place));
  }
  return *bytes_.at(place);
}

// The short problem; nothing where layers that take as long do not keep as much.
std::optional<StrategyGraph> PricedChoices::ShorterAt(double price, KeptGathered gathered) {
  if (!shorter_.has_value()) return std::nullopt;
  if (price == 0) return shorter_->seconds;
  bytes(gathered);
  const auto& kept = shorter_->bytes.at(static_cast<size_t>(gathered));
  if (!kept.has_value()) return std::nullopt;
  return WithMemory(shorter_->seconds, *kept, price);
}

absl::StatusOr<StrategyChoice> PricedChoices::Solve(double price, KeptGathered gathered,
                                                    const strategies::SolveOptions& options) {
  const bool seeks_layers = options.repeats.empty();
  absl::StatusOr<StrategyChoice> choice = absl::NotFoundError("no short problem");
  if (seeks_layers) choice = SolveShorter(price, gathered, options);
  if (!choice.ok() || choice->none.has_value()) choice = SolveWhole(price, gathered, options);
  if (!choice.ok() || choice->none.has_value()) return choice;
  // Without what bytes cost; nothing is proven of that.
  const double gap = choice->cost - choice->bound;
  choice->cost = CostOf(seconds_, choice->assignment);
  choice->bound = price > 0 ? 0 : choice->cost - gap;
  return choice;
}

absl::StatusOr<StrategyChoice> PricedChoices::SolveShorter(double price, KeptGathered gathered,
                                                           strategies::SolveOptions options) {
  const std::optional<StrategyGraph> graph = ShorterAt(price, gathered);
  if (!graph.has_value()) return absl::NotFoundError("no short problem");
  options.repeats = shorter_->graph.repeats();
  ORRERY_ASSIGN_OR_RETURN(StrategyChoice choice, strategies::SolveStrategies(*graph, options));
  if (choice.none.has_value()) return choice;
  choice.assignment = shorter_->graph.Expand(choice);
  choice.further.clear();
  return choice;
}

// Where layers differ by what is kept, they are sought anew: a tenth of what it takes to do
// without.
absl::StatusOr<StrategyChoice> PricedChoices::SolveWhole(double price, KeptGathered gathered,
                                                         strategies::SolveOptions options) {
  if (price == 0) {
    if (options.repeats.empty()) options.repeats = repeats_;
    return strategies::SolveStrategies(seconds_, options);
  }
  const StrategyGraph priced = WithMemory(seconds_, bytes(gathered), price);
  if (options.repeats.empty()) options.repeats = strategies::FindRepeats(priced);
  return strategies::SolveStrategies(priced, options);
}

AxisFrame::AxisFrame(std::pair<ir::Function, ir::Mesh> base, ir::AxisIndex axis,
                     const ShardingPrices& prices, std::vector<bool> batched,
                     const AutoShardOptions& options)
    : base_(std::move(base.first)),
      mesh_(std::move(base.second)),
      prices_(prices, options.link_price),
      batched_(std::move(batched)),
      problem_{.function = base_,
               .mesh = mesh_,
               .axis = axis,
               .prices = prices_,
               .splits_batch = axis_frame_cc::SplitsBatch(options.pins),
               .uneven = options.uneven == UnevenShards::kSplit && mesh_.axes()[axis].name == "hp"},
      strategies_(problem_, options.context_attention),
      ways_(problem_),
      phase_(FindPhases(base_)),
      nodes_(problem_, strategies_, phase_) {}

absl::StatusOr<std::vector<PricedChoices>*> AxisFrame::WaysToUse(const AutoShardOptions& options) {
  const Question question = {.pattern = options.pattern,
                             .limited = options.memory_limit > Bytes(0),
                             .factors = FactorsOf(options.held, options.in_flight)};
  for (Answered& known : answered_) {
    if (known.question == question) return &known.ways;
  }
  ORRERY_ASSIGN_OR_RETURN(Wanted wanted, WantedOf(options));
  Answered answered{.question = question, .ways = {}};
  std::vector<Variant> variants = std::move(wanted.variants);
  for (Variant& variant : variants) {
    ORRERY_ASSIGN_OR_RETURN(PricedChoices priced, Price(std::move(variant), wanted, options));
    answered.ways.push_back(std::move(priced));
  }
  return &answered_.emplace_back(std::move(answered)).ways;
}

absl::StatusOr<AxisFrame::Wanted> AxisFrame::WantedOf(const AutoShardOptions& options) const {
  const std::string& name = mesh_.axes()[problem_.axis].name;
  ORRERY_ASSIGN_OR_RETURN(PinnedLayouts pins,
                          PinLayouts(base_, mesh_, problem_.axis, options.pins));
  ORRERY_RETURN_IF_ERROR(PinData(problem_, batched_, pins));
  for (const ir::Output& output : base_.outputs()) {
    AxisLayout& pin = pins[output.value];
    const bool result = !output.of.valid() && pin == kReducedLayout;
    if (options.whole_results && result) pin = kWholeLayout;
  }
  Wanted wanted;
  if (name == "ep") wanted.never_whole = PinExperts(problem_, pins);
  wanted.weights_stay = options.pattern.has_value();
  wanted.tokens_stay = options.pattern.has_value() && name == "ep";
  if (!options.pattern.has_value() || name != "hp") {
    // Experts are what ep is for; within a limit of memory, it may split other weights, too.
    const bool experts_alone = name == "ep" && options.memory_limit == Bytes(0);
    if (options.pattern.has_value() || experts_alone) {
      PinWhole(problem_, wanted.never_whole, pins);
    }
    wanted.variants.push_back({.pins = std::move(pins)});
    return wanted;
  }
  ORRERY_ASSIGN_OR_RETURN(
      wanted.splits, PlanTensorSplits(base_, mesh_.size(problem_.axis), PatternScope::kLayers));
  PinWeights(problem_, *wanted.splits, pins);
  Variant along{.pins = pins, .opens_whole = true};
  const bool can = *options.pattern != SequenceParallel::kOff &&
                   PinSequence(problem_, *wanted.splits, along.pins);
  if (!can || *options.pattern == SequenceParallel::kAuto) {
    wanted.variants.push_back({.pins = std::move(pins)});
  }
  if (can) wanted.variants.push_back(std::move(along));
  return wanted;
}

absl::StatusOr<PricedChoices> AxisFrame::Price(Variant variant, const Wanted& wanted,
                                               const AutoShardOptions& options) {
  auto choices =
      std::make_unique<ShardingChoices>(problem_, nodes_, ways_, std::move(variant.pins));
  const ChoiceRules rules = {
      .weights_stay = wanted.weights_stay,
      .tokens_stay = wanted.tokens_stay,
      .pattern = wanted.splits.has_value() ? &*wanted.splits : nullptr,
      .opens_whole = variant.opens_whole,
      .never_whole = wanted.never_whole.empty() ? nullptr : &wanted.never_whole};
  ORRERY_RETURN_IF_ERROR(Annotate(choices->Make(rules), base_.name()));
  auto memory = std::make_unique<ShardingMemory>(problem_, phase_, options, *choices);
  ORRERY_ASSIGN_OR_RETURN(
      StrategyGraph seconds,
      Annotated(PriceChoices({problem_, options.microbatches, *memory}, *choices, ways_),
                base_.name()));
  return PricedChoices(std::move(choices), std::move(memory), std::move(seconds));
}

AxisFrame* AxisFrames::Find(const Key& key) const {
  for (const auto& [known, frame] : frames_) {
    if (known == key) return frame.get();
  }
  return nullptr;
}

AxisFrame& AxisFrames::Add(const Key& key, std::unique_ptr<AxisFrame> frame) {
  constexpr size_t kMost = 2;
  frames_.emplace_back(key, std::move(frame));
  if (frames_.size() > kMost) frames_.pop_front();
  return *frames_.back().second;
}

}  // namespace orrery::transforms
