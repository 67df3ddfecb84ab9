#ifndef ORRERY_SEARCH_UNEQUAL_UNEQUAL_STEPS_H_
#define ORRERY_SEARCH_UNEQUAL_UNEQUAL_STEPS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lowering/network/sharding_prices.h"
#include "search/settings/setting.h"
#include "search/unequal/unequal_cuts.h"
#include "transforms/plan/plan_context.h"
#include "transforms/stages/layer_prices.h"
#include "transforms/stages/pipeline.h"

// Plans whose stages, or whose replicas, are not alike: docs/unequal_plans.md.

namespace orrery::search {

/// The ranks of a stage.
struct StageRanks {
  int64_t dp = 1;
  int64_t hp = 1;
  ir::Mesh mesh = {};                  // of size 1 along "pp"
  std::vector<int32_t> devices = {};   // of its ranks
  std::vector<int32_t> replicas = {};  // of its ranks, their coordinate along "dp"

  friend bool operator==(const StageRanks&, const StageRanks&) = default;
};

/// The ranks of each stage of an unequal plan, as its axes say. InvalidArgument for a plan that the
/// cluster has too few devices for.
absl::StatusOr<std::vector<StageRanks>> RanksOfStages(const ParallelPlan& plan,
                                                      const cluster::Cluster& cluster);

/// Makes the steps of an unequal plan, in all ways to cut and deal it that are worth playing. So
/// many fields for what all ways to shard it share.
class UnequalSteps {
 public:
  /// All live longer. `plan` has stages with ranks of their own, or shares.
  UnequalSteps(const Setting& setting, const ParallelPlan& plan,
               const transforms::PipelineSchedule& schedule)
      : setting_(setting), plan_(plan), schedule_(schedule) {}

  /// To come first. InvalidArgument for a plan that makes no sense on this cluster or with this
  /// schedule.
  absl::Status Prepare();

  /// The steps that `step` becomes as the plan says, sharded as `plan` and `context` say, both of
  /// one way of PlanPlayer: where layers_per_stage leaves it open, layers dealt to stages by speed
  /// and memory, cuts beside that one, and equally many; where shares are by speed, these, and
  /// equal ones. Infeasible where the first is.
  absl::StatusOr<std::vector<transforms::PipelinedStep>> Make(
      const ir::Function& step, const ParallelPlan& plan, const transforms::PlanContext& context);

  /// What each layer would cost each stage, sharded likewise: by prices, no sends between stages.
  absl::StatusOr<std::vector<PacedStage>> PaceStages(const ir::Function& step,
                                                     const ParallelPlan& plan,
                                                     const transforms::PlanContext& context);
  /// A context of such a plan where nothing is chosen: shardings by cost.
  transforms::PlanContext PlainContext() const;

 private:
  struct Way {
    std::vector<int64_t> layers;                   // of each stage; empty: one stage
    std::vector<std::vector<int32_t>> replica_of;  // by stage and microbatch; empty: not dealt
  };

  // A step of as many samples as a stage has in its microbatches, and how many microbatches.
  struct Source {
    const ir::Function* step = nullptr;
    int64_t microbatches = 1;
  };
  absl::StatusOr<Source> SourceOf(const ir::Function& step, const StageRanks& stage);
  const lowering::ClusterShardingPrices& PricesOf(size_t stage, int32_t kind, int64_t positions);
  std::string KeyOf(size_t stage, int32_t kind) const;
  ParallelPlan PlanOf(const ParallelPlan& plan, size_t stage, int64_t microbatches) const;
  transforms::PlanContext ContextOf(const transforms::PlanContext& context, size_t stage,
                                    int32_t kind, int64_t positions);
  absl::StatusOr<transforms::LayerPrices> LayersOf(const ir::Function& step,
                                                   const ParallelPlan& plan,
                                                   const transforms::PlanContext& context,
                                                   size_t stage, int32_t kind);
  absl::Status CheckDealt() const;
  // Whether microbatches that are dealt never drain.
  bool on_and_on() const { return plan_.shares.dealt() && schedule_.asynchronous; }
  std::vector<int64_t> Replicas() const;
  double Versions(size_t stage) const;
  int64_t MicrobatchesDealt() const;
  std::vector<int64_t> UnderWay() const;
  Bytes LimitOf(size_t stage) const;
  std::vector<Way> WaysOf(const std::vector<PacedStage>& stages) const;
  absl::StatusOr<transforms::PipelinedStep> MakeWay(const ir::Function& step,
                                                    const ParallelPlan& plan,
                                                    const transforms::PlanContext& context,
                                                    const Way& way);

  const Setting& setting_;
  const ParallelPlan& plan_;
  const transforms::PipelineSchedule& schedule_;
  std::vector<StageRanks> stages_;
  std::map<std::string, std::unique_ptr<lowering::ClusterShardingPrices>> prices_;
  std::map<int64_t, ir::Function> resized_;  // by samples
};

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_UNEQUAL_UNEQUAL_STEPS_H_
