#include "transforms/stages/layer_prices.h"

#include <utility>

#include "support/status.h"
#include "transforms/stages/stage_costs.h"

namespace orrery::transforms {
namespace layer_prices_cc {
namespace {

std::string NameOf(const ir::Function& step, const ForwardChain& chain, size_t position) {
  for (; position < chain.ops.size(); ++position) {
    const absl::string_view name = step.value_name(step.result(chain.ops[position]));
    if (!name.empty()) return std::string(name);
  }
  return "";
}

}  // namespace
}  // namespace layer_prices_cc

absl::StatusOr<LayerPrices> PriceLayers(const ir::Function& step, const ShardingPrices& prices,
                                        int64_t microbatches) {
  const IdTable<ir::OpId, StepPhase> phase = FindPhases(step);
  const ForwardChain chain = FindChain(step, phase);
  std::vector<StageUnit> units = FindUnits(step, chain, UnitSize::kLayers);
  ORRERY_ASSIGN_OR_RETURN(const StagePlan plan, PlaceUnits(step, phase, chain, false, units));
  UnitCosts costs = CostsOf(step, chain, units, plan, &prices);
  LayerPrices layers{.names = {},
                     .seconds = costs.Seconds(microbatches),
                     .weight_bytes = std::move(costs.weight_bytes),
                     .output_bytes = {},
                     .held_bytes = costs.state_bytes,
                     .kept_bytes = costs.kept_bytes,
                     .state_bytes = costs.state_bytes,
                     .whole = {}};
  for (size_t i = 0; i < units.size(); ++i) {
    layers.held_bytes[i] += costs.kept_bytes[i];
    layers.whole.push_back(units[i].layer ? 1 : 0);
    layers.names.push_back(layer_prices_cc::NameOf(step, chain, units[i].begin));
    if (i > 0) layers.output_bytes.push_back(costs.boundary_bytes[i]);
  }
  layers.output_bytes.push_back(0);
  return layers;
}

LayerPrices JoinedToLayers(const LayerPrices& prices) {
  LayerPrices joined;
  bool any = false;
  for (size_t i = 0; i < prices.seconds.size(); ++i) {
    const bool begins = prices.whole[i] != 0 && any;
    any = any || prices.whole[i] != 0;
    if (joined.seconds.empty() || begins) {
      joined.names.push_back(prices.names[i]);
      joined.whole.push_back(1);
      joined.output_bytes.push_back(0);
      for (auto* sums : {&joined.seconds, &joined.weight_bytes, &joined.held_bytes,
                         &joined.kept_bytes, &joined.state_bytes}) {
        sums->push_back(0);
      }
    }
    joined.seconds.back() += prices.seconds[i];
    joined.weight_bytes.back() += prices.weight_bytes[i];
    joined.held_bytes.back() += prices.held_bytes[i];
    joined.kept_bytes.back() += prices.kept_bytes[i];
    joined.state_bytes.back() += prices.state_bytes[i];
    joined.output_bytes.back() = prices.output_bytes[i];
  }
  return joined;
}

}  // namespace orrery::transforms
