#include "search/cuts/stage_weights.h"

#include "transforms/schedules/orders.h"

namespace orrery::search {

using transforms::PipelineSchedule;
using transforms::StagesBy;

bool WeighsStages(const transforms::ParallelPlan& plan) {
  const bool given = !plan.split_at.empty() || !plan.layers_per_stage.empty();
  return !given && (plan.stages_by == StagesBy::kCost || plan.stages_by == StagesBy::kOps);
}

StageSends::StageSends(const ir::Mesh& mesh, const cluster::Cluster& cluster,
                       const cost_models::CostModel& cost_model)
    : cluster_(&cluster), cost_model_(&cost_model) {
  if (const auto pp = mesh.Find("pp"); pp.has_value()) stride_ = mesh.stride(*pp);
}

double StageSends::operator()(Bytes size, int32_t from, int32_t to) const {
  const auto device = [&](int32_t rank) {
    return cluster::DeviceId(static_cast<int32_t>(rank * stride_));
  };
  return cost_model_->Transfer(size, cluster_->topology.Path(device(from), device(to))).seconds();
}

void WeighMemory(const PipelineSchedule& schedule, const transforms::ScheduledRanks& ranks,
                 transforms::StageContext& context) {
  for (const auto& order : ranks.orders) {
    context.in_flight.push_back(static_cast<double>(transforms::PeakLive(order)) /
                                ranks.shape.chunks);
  }
  if (schedule.weight_versions == nullptr) return;
  for (int32_t stage = 0; stage < ranks.shape.ranks; ++stage) {
    context.weight_versions.push_back(schedule.weight_versions(ranks.shape, stage));
  }
}

}  // namespace orrery::search
