#include "search/stage_weights.h"

#include <algorithm>

#include "transforms/schedules/orders.h"

namespace orrery::search {

using transforms::PipelineSchedule;
using transforms::StageChoice;
using transforms::StagesBy;

bool WeighsStages(const StageChoice& choice) {
  const bool given = !choice.split_at.empty() || !choice.layers_per_stage.empty();
  return !given && (choice.by == StagesBy::kCost || choice.by == StagesBy::kOps);
}

StageSends::StageSends(const ir::Mesh& mesh, const cluster::Cluster& cluster,
                       const cost_models::CostModel& cost_model)
    : cost_model_(&cost_model) {
  const auto pp = mesh.Find("pp");
  if (!pp.has_value()) return;
  const int64_t stride = mesh.stride(*pp);
  for (int64_t stage = 0; stage + 1 < mesh.size(*pp); ++stage) {
    const auto device = [&](int64_t s) {
      return cluster::DeviceId(static_cast<int32_t>(s * stride));
    };
    const cluster::PathInfo path = cluster.topology.Path(device(stage), device(stage + 1));
    if (std::ranges::find(paths_, path) == paths_.end()) paths_.push_back(path);
  }
}

double StageSends::operator()(Bytes size) const {
  double slowest = 0;
  for (const cluster::PathInfo& path : paths_) {
    slowest = std::max(slowest, cost_model_->Transfer(size, path).seconds());
  }
  return slowest;
}

void LimitMemory(const PipelineSchedule& schedule, const transforms::ScheduledRanks& ranks,
                 Bytes limit, StageChoice& choice) {
  const bool two_way = schedule.placement == transforms::StagePlacement::kTwoWay;
  // A rank then has the stages of both pipelines, of which only one is divided.
  choice.memory_limit = two_way ? Bytes(limit.count() / 2) : limit;
  for (const auto& order : ranks.orders) {
    choice.in_flight.push_back(static_cast<double>(transforms::PeakLive(order)) /
                               ranks.shape.chunks);
  }
  if (schedule.weight_versions == nullptr) return;
  for (int32_t stage = 0; stage < ranks.shape.ranks; ++stage) {
    choice.weight_versions.push_back(schedule.weight_versions(ranks.shape, stage));
  }
}

}  // namespace orrery::search
