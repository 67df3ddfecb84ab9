#include "search/unequal/unequal_steps.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/batch.h"
#include "ir/tensor_parts.h"
#include "support/check.h"
#include "support/status.h"
#include "transforms/parallel.h"
#include "transforms/plan/plan_text.h"
#include "transforms/stages/dealt_orders.h"
#include "transforms/stages/dealt_rounds.h"
#include "transforms/stages/join_stages.h"

namespace orrery::search {
namespace unequal_steps_cc {
namespace {

ParallelPlan WithDegrees(ParallelPlan plan, int64_t dp, int64_t hp, int64_t pp) {
  plan.stage_meshes = {};
  plan.shares = {};
  plan.dp = dp;
  plan.hp = hp;
  plan.pp = pp;
  return plan;
}

// The ranks of a mesh by their coordinate along "pp".
std::vector<std::vector<int32_t>> RanksByPosition(const ir::Mesh& mesh) {
  const ir::AxisIndex pp = mesh.Find("pp").value();
  std::vector<std::vector<int32_t>> ranks(static_cast<size_t>(mesh.size(pp)));
  for (int64_t rank = 0; rank < mesh.size(); ++rank) {
    const int64_t position = ir::PartOf(mesh, rank, ir::AxisList(pp));
    ranks[static_cast<size_t>(position)].push_back(static_cast<int32_t>(rank));
  }
  return ranks;
}

absl::StatusOr<StageRanks> MakeRanks(const ParallelPlan& plan, std::vector<int32_t> devices) {
  StageRanks stage{.dp = plan.dp, .hp = plan.hp, .devices = std::move(devices)};
  ORRERY_ASSIGN_OR_RETURN(stage.mesh, transforms::MakeMesh(plan));
  const ir::AxisList dp(stage.mesh.Find("dp").value());
  for (int64_t rank = 0; rank < stage.mesh.size(); ++rank) {
    stage.replicas.push_back(static_cast<int32_t>(ir::PartOf(stage.mesh, rank, dp)));
  }
  return stage;
}

absl::Status Unsupported(std::string detail) {
  return InfeasibleStatus({.reason = InfeasibleReason::kUnsupported, .detail = std::move(detail)});
}

}  // namespace
}  // namespace unequal_steps_cc

absl::StatusOr<std::vector<StageRanks>> RanksOfStages(const ParallelPlan& plan,
                                                      const cluster::Cluster& cluster) {
  using unequal_steps_cc::WithDegrees;
  std::vector<StageRanks> stages;
  for (const transforms::DeviceSet& set : plan.placement.sets) {
    ORRERY_ASSIGN_OR_RETURN(
        stages.emplace_back(),
        unequal_steps_cc::MakeRanks(WithDegrees(plan, set.dp, set.hp, 1), set.devices));
  }
  if (plan.stage_meshes.empty() && plan.placement.empty()) {
    ORRERY_ASSIGN_OR_RETURN(const ir::Mesh mesh,
                            transforms::MakeMesh(WithDegrees(plan, plan.dp, plan.hp, plan.pp)));
    const ParallelPlan of_one = WithDegrees(plan, plan.dp, plan.hp, 1);
    for (std::vector<int32_t>& ranks : unequal_steps_cc::RanksByPosition(mesh)) {
      ORRERY_ASSIGN_OR_RETURN(stages.emplace_back(),
                              unequal_steps_cc::MakeRanks(of_one, std::move(ranks)));
    }
  }
  for (const transforms::StageMesh& mesh : plan.stage_meshes.stages) {
    std::vector<int32_t> devices;
    for (int64_t rank = 0; rank < mesh.ranks(); ++rank) {
      devices.push_back(static_cast<int32_t>(mesh.first + rank));
    }
    ORRERY_ASSIGN_OR_RETURN(
        stages.emplace_back(),
        unequal_steps_cc::MakeRanks(WithDegrees(plan, mesh.dp, mesh.hp, 1), std::move(devices)));
  }
  for (size_t s = 0; s < stages.size(); ++s) {
    const int32_t last = std::ranges::max(stages[s].devices);
    if (last < cluster.size()) continue;
    const std::string wants = plan.placement.empty() ? absl::StrCat("stage ", s) : "`placement`";
    return absl::InvalidArgumentError(absl::StrCat(cluster.name, " has ", cluster.size(),
                                                   " devices; ", wants, " wants device ", last));
  }
  return stages;
}

absl::Status UnequalSteps::Prepare() {
  ORRERY_RETURN_IF_ERROR(transforms::CheckPlan(plan_, setting_.base));
  ORRERY_ASSIGN_OR_RETURN(stages_, RanksOfStages(plan_, setting_.cluster));
  if (schedule_.placement != transforms::StagePlacement::kLoop ||
      ShapeOf(schedule_, plan_).chunks != 1) {
    return unequal_steps_cc::Unsupported(
        absl::StrCat("`schedule` ", schedule_.name,
                     " has several stages a rank; wanted one of one, such as 1f1b, where stages or "
                     "replicas are not alike"));
  }
  if (plan_.shares.dealt()) ORRERY_RETURN_IF_ERROR(CheckDealt());
  if (plan_.shares.dealt() && schedule_.given != nullptr) {
    return unequal_steps_cc::Unsupported(
        "`schedule-file` has orders of all microbatches, and replicas run some of them; wanted a "
        "schedule by its name where microbatches are dealt");
  }
  if (plan_.zero_group != 0) {
    return unequal_steps_cc::Unsupported(
        "`zero-group`: wanted none where stages or replicas are not alike");
  }
  if (!plan_.stage_meshes.empty() && plan_.order.Full().back() != "pp") {
    return unequal_steps_cc::Unsupported(
        "`order`: stages of `stage-meshes` follow each other; wanted one that has pp last");
  }
  const bool known = plan_.stages_by == transforms::StagesBy::kCost ||
                     plan_.stages_by == transforms::StagesBy::kLayers;
  if (plan_.placement.empty() && plan_.layers_per_stage.empty() && !known && plan_.pp > 1) {
    return unequal_steps_cc::Unsupported(
        "`stages-by`: wanted cost or layers where stages or replicas are not alike");
  }
  if (!plan_.shares.dealt()) return absl::OkStatus();
  if (setting_.batch_size % plan_.microbatches == 0) return absl::OkStatus();
  return InfeasibleStatus(
      {.reason = InfeasibleReason::kDivisibility,
       .detail = absl::StrCat("a batch of ", setting_.batch_size, " samples does not divide into ",
                              plan_.microbatches, " microbatches")});
}

absl::Status UnequalSteps::CheckDealt() const {
  ORRERY_RETURN_IF_ERROR(transforms::CheckDealtOnAndOn(schedule_));
  if (!on_and_on()) return absl::OkStatus();
  if (plan_.shares.kind != transforms::ReplicaShares::Kind::kEven) {
    return unequal_steps_cc::Unsupported(absl::StrCat(
        "`shares` ", transforms::ToString(plan_.shares), ": with `schedule` ", schedule_.name,
        " an update is one of a microbatch of each replica; wanted round-robin, or a "
        "synchronous schedule, such as 1f1b"));
  }
  constexpr int64_t kMost = int64_t{1} << 16;
  const int64_t round = transforms::MicrobatchesInRounds(Replicas());
  if (round <= kMost) return absl::OkStatus();
  return unequal_steps_cc::Unsupported(
      absl::StrCat(absl::StrJoin(Replicas(), ", "), " replicas of stages are in step again after ",
                   round, " microbatches or more; at most ", kMost,
                   " are played; try numbers of replicas that divide each other"));
}

// So many samples as the replicas of a stage have in as many microbatches as each has, about.
absl::StatusOr<UnequalSteps::Source> UnequalSteps::SourceOf(const ir::Function& step,
                                                            const StageRanks& stage) {
  if (!plan_.shares.dealt()) return Source{.step = &step, .microbatches = plan_.microbatches};
  int64_t each = (plan_.microbatches + stage.dp - 1) / stage.dp;
  // An update may be of more than a batch has: of several, which add up gradients.
  if (on_and_on() && schedule_.microbatches_an_update != nullptr) each = std::max<int64_t>(2, each);
  const int64_t samples = setting_.batch_size / plan_.microbatches * stage.dp * each;
  if (samples == setting_.batch_size) return Source{.step = &step, .microbatches = each};
  const auto found = resized_.find(samples);
  if (found != resized_.end()) return Source{.step = &found->second, .microbatches = each};
  ORRERY_ASSIGN_OR_RETURN(ir::Function resized,
                          ir::ChangeBatch(step, samples, ir::LossBatch::kScales));
  return Source{.step = &resized_.emplace(samples, std::move(resized)).first->second,
                .microbatches = each};
}

// Stages that have one key are sharded alike: so many ranks of one kind, at like places of nodes.
std::string UnequalSteps::KeyOf(size_t stage, int32_t kind) const {
  const StageRanks& ranks = stages_[stage];
  const int32_t first = ranks.devices.front();
  const int32_t in_node = std::max(1, setting_.cluster.topology.shape().devices_per_node);
  std::string key = absl::StrCat(ranks.dp, "x", ranks.hp, " of ", kind, " at ", first % in_node);
  for (const int32_t device : ranks.devices) absl::StrAppend(&key, ",", device - first);
  return key;
}

const lowering::ClusterShardingPrices& UnequalSteps::PricesOf(size_t stage, int32_t kind,
                                                              int64_t positions) {
  auto& prices = prices_[absl::StrCat(KeyOf(stage, kind), " of ", positions)];
  if (prices != nullptr) return *prices;
  const StageRanks& ranks = stages_[stage];
  const ir::Mesh mesh =
      transforms::MakeMesh(unequal_steps_cc::WithDegrees(plan_, ranks.dp, ranks.hp, positions))
          .value();
  std::vector<int32_t> devices(static_cast<size_t>(mesh.size()));
  for (const auto& of_position : unequal_steps_cc::RanksByPosition(mesh)) {
    for (size_t i = 0; i < of_position.size(); ++i) {
      devices[static_cast<size_t>(of_position[i])] = ranks.devices[i];
    }
  }
  prices = std::make_unique<lowering::ClusterShardingPrices>(
      mesh, setting_.cluster, *setting_.cost_model,
      lowering::ShardingPricesOptions{
          .devices = std::move(devices), .algorithms = plan_.algorithm, .kind = kind});
  return *prices;
}

ParallelPlan UnequalSteps::PlanOf(const ParallelPlan& plan, size_t stage,
                                  int64_t microbatches) const {
  ParallelPlan of_stage =
      unequal_steps_cc::WithDegrees(plan, stages_[stage].dp, stages_[stage].hp, plan.pp);
  of_stage.microbatches = microbatches;
  return of_stage;
}

transforms::PlanContext UnequalSteps::ContextOf(const transforms::PlanContext& context,
                                                size_t stage, int32_t kind, int64_t positions) {
  transforms::PlanContext of_stage = context;
  of_stage.prices = plan_.by_products() ? nullptr : &PricesOf(stage, kind, positions);
  of_stage.alternative.wants = {};
  of_stage.alternative.memo = nullptr;
  of_stage.stages = {};
  of_stage.parts.root =
      absl::StrCat(context.parts.root, " stage ", KeyOf(stage, kind),
                   plan_.shares.dealt() ? absl::StrCat(" dealt ", plan_.microbatches) : "");
  return of_stage;
}

transforms::PlanContext UnequalSteps::PlainContext() const {
  return {.fuses_pointwise = setting_.lowering.kernels.fuses_pointwise,
          .recomputes_whole = setting_.lowering.kernels.recomputes_whole,
          .scatters_sends = setting_.lowering.kernels.scatters_sends,
          .batch_lost = setting_.notes.batch_lost};
}

std::vector<UnequalSteps::Way> UnequalSteps::WaysOf(const std::vector<PacedStage>& stages) const {
  using Kind = transforms::ReplicaShares::Kind;
  const auto all = static_cast<int64_t>(stages.front().pace.size());
  std::vector<std::vector<int64_t>> cuts;
  // Of a pipeline that never drains the slowest stage is all that counts.
  constexpr int64_t kForever = int64_t{1} << 20;
  const int64_t microbatches = on_and_on() ? kForever : plan_.microbatches;
  const auto add = [&](std::optional<std::vector<int64_t>> cut) {
    if (cut.has_value() && std::ranges::find(cuts, *cut) == cuts.end()) cuts.push_back(*cut);
  };
  if (!plan_.layers_per_stage.empty()) {
    add(plan_.layers_per_stage);
  } else {
    if (plan_.split_at.empty() && plan_.stages_by == transforms::StagesBy::kCost) {
      constexpr size_t kMostBeside = 4;
      add(CutByPace(stages, microbatches, /*limits=*/true));
      const auto fastest = CutByPace(stages, microbatches, /*limits=*/false);
      add(fastest);
      // Whatever the limits, so that more memory is not worse.
      for (auto& cut : CutsBeside(stages, *fastest, microbatches, kMostBeside)) add(cut);
      // Prices add up what runs beside each other there, sums of gradients and compute.
      constexpr size_t kFew = 24;
      if (on_and_on()) {
        for (auto& cut : AllCuts(all, stages.size(), kFew)) add(cut);
      }
    }
    add(CutEqually(all, plan_.pp));
  }
  std::vector<Way> ways;
  for (const std::vector<int64_t>& cut : cuts) {
    if (!plan_.shares.dealt()) {
      ways.push_back({.layers = cut, .replica_of = {}});
      continue;
    }
    Way even{.layers = cut, .replica_of = transforms::DealInTurn(Replicas(), MicrobatchesDealt())};
    if (plan_.shares.kind != Kind::kEven) {
      const std::vector<int64_t> shares =
          plan_.shares.kind == Kind::kGiven
              ? plan_.shares.counts
              : SharesBySpeed(PathSeconds(stages, cut), plan_.microbatches);
      ways.push_back({.layers = cut, .replica_of = {}});
      ways.back().replica_of.assign(stages_.size(), transforms::DealInShares(shares));
    }
    if (plan_.shares.kind != Kind::kGiven) ways.push_back(std::move(even));
  }
  return ways;
}

absl::StatusOr<transforms::PipelinedStep> UnequalSteps::MakeWay(
    const ir::Function& step, const ParallelPlan& plan, const transforms::PlanContext& context,
    const Way& way) {
  std::map<std::string, transforms::PipelinedStep> made;
  std::vector<const transforms::PipelinedStep*> steps;
  transforms::UnequalStages unequal{
      .places = {}, .replica_of = way.replica_of, .placed = !plan_.placement.empty()};
  for (size_t s = 0; s < stages_.size(); ++s) {
    const int32_t kind = setting_.cluster.kind_of(cluster::DeviceId(stages_[s].devices.front()));
    const auto [found, is_new] = made.try_emplace(KeyOf(s, kind));
    if (is_new) {
      ORRERY_ASSIGN_OR_RETURN(const Source source, SourceOf(step, stages_[s]));
      ParallelPlan of_stage = PlanOf(plan, s, source.microbatches);
      of_stage.layers_per_stage = plan.pp > 1 ? way.layers : std::vector<int64_t>();
      ORRERY_ASSIGN_OR_RETURN(std::vector<transforms::PipelinedStep> one,
                              transforms::ParallelTransformWays(
                                  *source.step, of_stage, ContextOf(context, s, kind, plan.pp)));
      found->second = std::move(one.front());
    }
    steps.push_back(&found->second);
    unequal.places.push_back({.mesh = stages_[s].mesh, .devices = stages_[s].devices});
  }
  ORRERY_ASSIGN_OR_RETURN(transforms::PipelinedStep joined,
                          transforms::JoinStages(steps, std::move(unequal)));
  joined.microbatches = plan_.microbatches;
  return joined;
}

// Those of a batch; of batches that never end so many more that they come in whole rounds.
int64_t UnequalSteps::MicrobatchesDealt() const {
  const int64_t round = on_and_on() ? transforms::MicrobatchesInRounds(Replicas()) : 1;
  return (plan_.microbatches + round - 1) / round * round;
}

absl::StatusOr<std::vector<transforms::PipelinedStep>> UnequalSteps::Make(
    const ir::Function& step, const ParallelPlan& plan, const transforms::PlanContext& context) {
  std::vector<transforms::PipelinedStep> steps;
  if (!plan_.placement.empty()) {
    ORRERY_ASSIGN_OR_RETURN(steps.emplace_back(), MakeWay(step, plan, context, {}));
    return steps;
  }
  ORRERY_ASSIGN_OR_RETURN(const std::vector<PacedStage> stages, PaceStages(step, plan, context));
  if (static_cast<int64_t>(stages.front().pace.size()) < plan_.pp) {
    return InfeasibleStatus({.reason = InfeasibleReason::kDivisibility,
                             .detail = absl::StrCat("the model has ", stages.front().pace.size(),
                                                    " layers for ", plan_.pp, " stages")});
  }
  for (const Way& way : WaysOf(stages)) {
    absl::StatusOr<transforms::PipelinedStep> made = MakeWay(step, plan, context, way);
    if (made.ok()) {
      steps.push_back(*std::move(made));
    } else if (steps.empty() || !AsInfeasible(made.status()).has_value()) {
      return made.status();
    }
  }
  return steps;
}

}  // namespace orrery::search
