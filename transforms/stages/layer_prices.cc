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

absl::StatusOr<LayerPrices> PriceLayers(const ir::Function& step, const ShardingPrices& prices) {
  const IdTable<ir::OpId, StepPhase> phase = FindPhases(step);
  const ForwardChain chain = FindChain(step, phase);
  std::vector<StageUnit> units = FindUnits(step, chain, UnitSize::kLayers);
  ORRERY_ASSIGN_OR_RETURN(const StagePlan plan, PlaceUnits(step, phase, chain, false, units));
  UnitCosts costs = CostsOf(step, chain, units, plan, &prices);
  LayerPrices layers{.names = {},
                     .seconds = costs.Seconds(1),
                     .weight_bytes = std::move(costs.weight_bytes),
                     .output_bytes = {},
                     .held_bytes = costs.state_bytes};
  for (size_t i = 0; i < units.size(); ++i) {
    layers.held_bytes[i] += costs.kept_bytes[i];
    layers.names.push_back(layer_prices_cc::NameOf(step, chain, units[i].begin));
    if (i > 0) layers.output_bytes.push_back(costs.boundary_bytes[i]);
  }
  layers.output_bytes.push_back(0);
  return layers;
}

}  // namespace orrery::transforms
