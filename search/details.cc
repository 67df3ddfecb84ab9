#include "search/details.h"

#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "support/status.h"
#include "transforms/schedules/orders.h"
#include "transforms/stages/dealt_rounds.h"

namespace orrery::search {
namespace details_cc {
namespace {

// What the figures of a device do not say of this plan; empty: nothing is assumed.
std::string AssumedOf(const Setting& setting, const ParallelPlan& plan) {
  std::string assumed = cost_models::DoubtAbout(*setting.cost_model, setting.cluster);
  const bool four_bits = plan.copies() == ir::DType::kF4;
  const bool narrow =
      plan.copies().has_value() || transforms::TensorDType(plan.dtype) == ir::DType::kF8;
  if (!narrow) return assumed;
  for (int32_t kind = 0; kind < setting.cluster.kind_count(); ++kind) {
    const cluster::Device& device = setting.cluster.kind(kind);
    const bool has_four = device.fp4 > device.fp8, has_eight = device.fp8 > device.fp16;
    if (four_bits ? has_four : has_eight) continue;
    absl::StrAppend(&assumed, assumed.empty() ? "" : "; ", device.name, " has no products of ",
                    four_bits ? "4" : "8", " bits: they take as long as those of ",
                    four_bits && has_eight ? "8" : "16");
  }
  return assumed;
}

// With two versions of a batch each, all stages read the same one (PipeDream-2BW, section 3.1).
void TakeStalest(std::vector<int32_t>& staleness) {
  std::ranges::fill(staleness, *std::ranges::max_element(staleness));
}

// Of stages whose replicas run microbatches of their own.
std::vector<simulator::StageVersions> VersionsOfDealt(const transforms::PipelineSchedule& schedule,
                                                      const Run& run) {
  const transforms::UnequalStages& unequal = run.pipelined.unequal;
  const std::vector<int64_t> replicas = transforms::ReplicasOf(unequal);
  std::map<std::pair<int32_t, int32_t>, std::vector<transforms::ScheduleStep>> of_replica;
  for (const lowering::LoweredStep& lowered : run.steps) {
    const auto stage = static_cast<size_t>(lowered.step.stage);
    const auto microbatch = static_cast<int32_t>(lowered.step.microbatch % replicas[stage]);
    of_replica[{lowered.step.stage, microbatch}].push_back(lowered.step);
  }
  transforms::RankOrders orders;
  for (auto& [replica, order] : of_replica) orders.push_back(std::move(order));
  const int64_t every =
      transforms::DealtUpdateEvery(schedule, replicas, run.pipelined.microbatches);
  std::vector<int32_t> staleness = transforms::DealtStaleness(orders, replicas, every);
  if (schedule.one_age) TakeStalest(staleness);
  std::vector<simulator::StageVersions> versions;
  for (int32_t s = 0; s < static_cast<int32_t>(replicas.size()); ++s) {
    versions.push_back({.stage = s,
                        .rank = s,
                        .staleness = staleness[static_cast<size_t>(s)],
                        .weight_versions = transforms::DealtWeightVersions(schedule, replicas, s)});
  }
  return versions;
}

}  // namespace
}  // namespace details_cc

absl::StatusOr<simulator::ReportDetails> DetailsOf(const Setting& setting, const ParallelPlan& plan,
                                                   const Run& run) {
  ORRERY_ASSIGN_OR_RETURN(const transforms::PipelineSchedule schedule, ScheduleOf(setting, plan));
  simulator::ReportDetails details =
      simulator::DetailsOf(run.program, run.trace, run.report, schedule.asynchronous);
  details.versions = VersionsOf(schedule, ShapeOf(schedule, plan), run);
  for (const transforms::SliceRange& slice : run.slices) details.slices.push_back(slice.rows);
  details.stages = SizesOf(run.pipelined);
  details.assumed = details_cc::AssumedOf(setting, plan);
  return details;
}

std::vector<simulator::StageSize> SizesOf(const transforms::PipelinedStep& step) {
  std::vector<simulator::StageSize> sizes;
  if (step.layers.size() < 2) return sizes;
  for (size_t s = 0; s < step.stages.size(); ++s) {
    simulator::StageSize& size =
        sizes.emplace_back(simulator::StageSize{.stage = static_cast<int32_t>(s),
                                                .rank = step.ranks[s],
                                                .layers = step.layers[s % step.layers.size()]});
    std::set<ir::ValueId> seen;  // by origin
    for (const transforms::StageFunction* part : step.stages[s].parts()) {
      for (const ir::Input& input : part->function.inputs()) {
        if (!ir::IsWeight(input.role)) continue;
        if (!seen.insert(transforms::OriginOf(*part, input.value)).second) continue;
        size.parameters += ir::ElementCount(part->function.type(input.value).dims);
      }
    }
  }
  return sizes;
}

std::vector<simulator::StageVersions> VersionsOf(const transforms::PipelineSchedule& schedule,
                                                 const transforms::PipelineShape& shape,
                                                 const Run& run) {
  std::vector<simulator::StageVersions> versions;
  if (!schedule.asynchronous) return versions;
  if (run.pipelined.unequal.dealt()) return details_cc::VersionsOfDealt(schedule, run);
  transforms::RankOrders orders(static_cast<size_t>(shape.ranks));
  for (const lowering::LoweredStep& lowered : run.steps) {
    const int32_t rank = transforms::RankOf(schedule.placement, shape, lowered.step.stage);
    orders[static_cast<size_t>(rank)].push_back(lowered.step);
  }
  const int32_t every =
      schedule.microbatches_an_update == nullptr ? 1 : schedule.microbatches_an_update(shape);
  std::vector<int32_t> staleness = transforms::Staleness(orders, shape.stages(), every);
  if (schedule.one_age) details_cc::TakeStalest(staleness);
  for (int32_t s = 0; s < shape.stages(); ++s) {
    versions.push_back({.stage = s,
                        .rank = transforms::RankOf(schedule.placement, shape, s),
                        .staleness = staleness[static_cast<size_t>(s)],
                        .weight_versions = schedule.weight_versions(shape, s)});
  }
  return versions;
}

}  // namespace orrery::search
