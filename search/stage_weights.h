#ifndef ORRERY_SEARCH_STAGE_WEIGHTS_H_
#define ORRERY_SEARCH_STAGE_WEIGHTS_H_

#include <vector>

#include "cluster/cluster.h"
#include "cost_models/cost_model.h"
#include "ir/mesh.h"
#include "support/units.h"
#include "transforms/schedules/schedule.h"
#include "transforms/stage_choice.h"

namespace orrery::search {

/// Whether the choice asks what things cost.
bool WeighsStages(const transforms::StageChoice& choice);

/// The slowest message of `size` from a stage of the mesh to the next, on an idle network; rank r
/// is on device r. 0 for one stage.
class StageSends {
 public:
  /// `cost_model` lives longer.
  StageSends(const ir::Mesh& mesh, const cluster::Cluster& cluster,
             const cost_models::CostModel& cost_model);
  double operator()(Bytes size) const;

 private:
  const cost_models::CostModel* cost_model_;
  std::vector<cluster::PathInfo> paths_;  // all that are unlike
};

/// Limits what each rank needs: with the microbatches that the schedule has in flight on it, and
/// the versions of its weights.
void LimitMemory(const transforms::PipelineSchedule& schedule,
                 const transforms::ScheduledRanks& ranks, Bytes limit,
                 transforms::StageChoice& choice);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_STAGE_WEIGHTS_H_
