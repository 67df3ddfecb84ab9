#include "search/settings/setting.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "cost_models/collectives/steps.h"
#include "ir/model_facts.h"
#include "transforms/plan/plan_text.h"

namespace orrery::search {

absl::StatusOr<transforms::PipelineSchedule> ScheduleOf(const Setting& setting,
                                                        const ParallelPlan& plan) {
  if (!setting.orders.has_value()) return *plan.schedule;
  const transforms::PipelineShape& shape = setting.orders->shape;
  if (shape.ranks != plan.pp || shape.microbatches != plan.microbatches) {
    return absl::InvalidArgumentError(absl::StrCat(
        ToString(plan, setting.base), ": the orders are of ", shape.ranks, " ranks and ",
        shape.microbatches, " microbatches; wanted `pp` and `micro-batches` alike"));
  }
  transforms::PipelineSchedule schedule = *transforms::ScheduleChoice();
  schedule.placement = setting.orders->placement;
  schedule.chunks = shape.chunks;
  schedule.given = &setting.orders->orders;
  return schedule;
}

transforms::SpaceSize SpaceSizeOf(const Setting& setting) {
  return {.devices = setting.cluster.size(),
          .batch_size = setting.batch_size,
          .sequence = ir::SequenceLength(setting.step),
          .experts = ir::CommonExperts(setting.step),
          .devices_a_node = cost_models::DevicesANode(setting.cluster.topology)};
}

transforms::PipelineShape ShapeOf(const transforms::PipelineSchedule& schedule,
                                  const ParallelPlan& plan) {
  const auto number = [](int64_t n) {
    return static_cast<int32_t>(std::min<int64_t>(n, std::numeric_limits<int32_t>::max()));
  };
  return schedule.ShapeOf(number(plan.pp), number(plan.microbatches), number(plan.chunks));
}

namespace setting_cc {
namespace {

// That of the plan, or where it says nothing else than usual that of the software, in 16 bits.
Bytes BucketSizeOf(const ParallelPlan& plan, const lowering::StackKernels& kernels) {
  if (kernels.bucket_parameters == 0 || plan.bucket_size != ParallelPlan().bucket_size) {
    return plan.bucket_size;
  }
  return kernels.BucketSize(plan.most_dp() * plan.ep * plan.cp);
}

}  // namespace
}  // namespace setting_cc

lowering::LoweringOptions LoweringOf(const Setting& setting, const ParallelPlan& plan) {
  lowering::LoweringOptions options = setting.lowering;
  options.blocking = plan.blocking;
  options.bucket_size = setting_cc::BucketSizeOf(plan, setting.lowering.kernels);
  options.algorithms = plan.algorithm;
  options.compression = plan.compression;
  return options;
}

}  // namespace orrery::search
