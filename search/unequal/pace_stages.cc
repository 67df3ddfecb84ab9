#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "search/unequal/unequal_steps.h"
#include "support/check.h"
#include "support/status.h"
#include "transforms/parallel.h"
#include "transforms/schedules/orders.h"
#include "transforms/stages/dealt_orders.h"
#include "transforms/stages/dealt_rounds.h"
#include "transforms/step_work.h"

// What layers cost each stage, and how many microbatches and versions of its weights it has.

namespace orrery::search {

absl::StatusOr<transforms::LayerPrices> UnequalSteps::LayersOf(
    const ir::Function& step, const ParallelPlan& plan, const transforms::PlanContext& context,
    size_t stage, int32_t kind) {
  ORRERY_ASSIGN_OR_RETURN(const Source source, SourceOf(step, stages_[stage]));
  ParallelPlan of_stage = PlanOf(plan, stage, source.microbatches);
  of_stage.pp = 1;
  of_stage.layers_per_stage.clear();
  std::optional<ir::Function> sharded;
  const auto take = [&](const transforms::StepStage& work_stage, const transforms::StepWork& work) {
    if (work_stage.name == "cut") sharded = work.last();
  };
  ORRERY_RETURN_IF_ERROR(transforms::ParallelTransform3d(*source.step, of_stage,
                                                         ContextOf(context, stage, kind, 1), take)
                             .status());
  ORRERY_CHECK(sharded.has_value()) << "a step that was not cut";
  ORRERY_ASSIGN_OR_RETURN(
      const transforms::LayerPrices layers,
      transforms::PriceLayers(
          *sharded, PricesOf(stage, kind, 1),
          on_and_on() && schedule_.microbatches_an_update == nullptr ? 1 : source.microbatches));
  return transforms::JoinedToLayers(layers);
}

Bytes UnequalSteps::LimitOf(size_t stage) const {
  Bytes limit = setting_.lowering.memory_limit;
  if (!setting_.lowering.device_memory) return limit;
  for (const int32_t device : stages_[stage].devices) {
    const Bytes memory = setting_.cluster.device_of(cluster::DeviceId(device)).memory;
    limit = limit == Bytes(0) ? memory : std::min(limit, memory);
  }
  return limit;
}

std::vector<int64_t> UnequalSteps::Replicas() const {
  std::vector<int64_t> replicas;
  for (const StageRanks& stage : stages_) replicas.push_back(stage.dp);
  return replicas;
}

// Of the weights, that a rank keeps.
double UnequalSteps::Versions(size_t stage) const {
  const auto s = static_cast<int32_t>(stage);
  if (plan_.shares.dealt()) return transforms::DealtWeightVersions(schedule_, Replicas(), s);
  return schedule_.weight_versions(ShapeOf(schedule_, plan_), s);
}

// Microbatches that a replica of each stage has under way at most.
std::vector<int64_t> UnequalSteps::UnderWay() const {
  std::vector<int64_t> under_way;
  if (!plan_.shares.dealt()) {
    for (const auto& order : schedule_.OrdersOf(ShapeOf(schedule_, plan_))) {
      under_way.push_back(transforms::PeakLive(order));
    }
    return under_way;
  }
  under_way = Replicas();
  if (schedule_.name != "gpipe") under_way = transforms::UnderWay(under_way);
  if (on_and_on()) return under_way;
  for (size_t s = 0; s < stages_.size(); ++s) {
    const int64_t own = (plan_.microbatches + stages_[s].dp - 1) / stages_[s].dp;
    under_way[s] = schedule_.name == "gpipe" ? own : std::min(under_way[s], own);
  }
  return under_way;
}

absl::StatusOr<std::vector<PacedStage>> UnequalSteps::PaceStages(
    const ir::Function& step, const ParallelPlan& plan, const transforms::PlanContext& context) {
  std::map<std::string, transforms::LayerPrices> known;
  const std::vector<int64_t> under_way = UnderWay();
  size_t count = 0;  // of layers
  std::vector<PacedStage> paced(stages_.size());
  for (size_t s = 0; s < stages_.size(); ++s) {
    PacedStage& stage = paced[s];
    stage.in_flight = static_cast<double>(under_way[s]);
    stage.limit = static_cast<double>(LimitOf(s).count());
    stage.replica_seconds.resize(static_cast<size_t>(stages_[s].dp));
    for (size_t rank = 0; rank < stages_[s].devices.size(); ++rank) {
      const int32_t kind = setting_.cluster.kind_of(cluster::DeviceId(stages_[s].devices[rank]));
      const std::string key = KeyOf(s, kind);
      if (!known.contains(key)) {
        ORRERY_ASSIGN_OR_RETURN(known[key], LayersOf(step, plan, context, s, kind));
      }
      const transforms::LayerPrices& layers = known[key];
      if (count == 0) count = layers.seconds.size();
      if (layers.seconds.size() != count) {
        return transforms::Unsupported(
            absl::StrCat("sharded for stage ", s, " the model has ", layers.seconds.size(),
                         " layers, for stage 0 ", count,
                         ": cuts would not be the same; try `sharding` megatron, or other hp"));
      }
      auto& seconds = stage.replica_seconds[static_cast<size_t>(stages_[s].replicas[rank])];
      seconds.resize(layers.seconds.size(), 0);
      for (size_t l = 0; l < seconds.size(); ++l) {
        seconds[l] = std::max(seconds[l], layers.seconds[l]);
      }
      stage.state_bytes = layers.state_bytes;
      stage.kept_bytes = layers.kept_bytes;
      const double more_versions = Versions(s) - 1;
      for (size_t l = 0; l < layers.weight_bytes.size(); ++l) {
        stage.state_bytes[l] += more_versions * layers.weight_bytes[l];
      }
    }
    for (size_t l = 0; l < stage.state_bytes.size(); ++l) {
      double slowest = 0, rate = 0;
      for (const auto& of : stage.replica_seconds) slowest = std::max(slowest, of[l]);
      for (const auto& of : stage.replica_seconds) rate += 1 / of[l];
      const double in_turn = slowest / static_cast<double>(stages_[s].dp);
      stage.pace.push_back(on_and_on() ? in_turn : plan_.shares.dealt() ? 1 / rate : slowest);
    }
  }
  return paced;
}

}  // namespace orrery::search
