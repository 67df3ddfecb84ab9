#ifndef ORRERY_SEARCH_CUTS_STAGE_WEIGHTS_H_
#define ORRERY_SEARCH_CUTS_STAGE_WEIGHTS_H_

#include <cstdint>

#include "cluster/cluster.h"
#include "cost_models/cost_model.h"
#include "ir/mesh.h"
#include "support/units.h"
#include "transforms/plan/parallel_plan.h"
#include "transforms/plan/plan_context.h"
#include "transforms/schedules/schedule.h"

namespace orrery::search {

/// Whether the plan has stages begin where it costs least.
bool WeighsStages(const transforms::ParallelPlan& plan);

/// Seconds of a message between two ranks of a pipeline on an idle network; rank r of the mesh is
/// on device r.
class StageSends {
 public:
  /// All but the mesh live longer.
  StageSends(const ir::Mesh& mesh, const cluster::Cluster& cluster,
             const cost_models::CostModel& cost_model);
  /// `from`, `to`: coordinates along "pp".
  double operator()(Bytes size, int32_t from, int32_t to) const;

 private:
  const cluster::Cluster* cluster_;
  const cost_models::CostModel* cost_model_;
  int64_t stride_ = 1;
};

/// Tells what each rank needs: with the microbatches that the schedule has in flight on it, and the
/// versions of its weights.
void WeighMemory(const transforms::PipelineSchedule& schedule,
                 const transforms::ScheduledRanks& ranks, transforms::StageContext& context);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_CUTS_STAGE_WEIGHTS_H_
