#include <numeric>

#include "transforms/plan/axis_fields.h"

// Stages with ranks of their own, and replicas with microbatches of their own.

namespace orrery::transforms {
namespace stage_meshes_axis_cc {
namespace {

absl::Status Contradicts(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(what, " beside ranks of each stage"));
}

absl::Status CheckMeshes(const ParallelPlan& plan) {
  if (plan.stage_meshes.empty()) return absl::OkStatus();
  const auto stages = static_cast<int64_t>(plan.stage_meshes.stages.size());
  if (plan.pp != stages) {
    return absl::InvalidArgumentError(absl::StrCat(ToString(plan.stage_meshes), " has ", stages,
                                                   " stages; `pp` is ", plan.pp,
                                                   "; wanted the same, or no `pp`"));
  }
  if (plan.dp != 1 || plan.hp != 1 || plan.cp != 1 || plan.ep != 1) {
    return Contradicts("degrees dp, hp, cp and ep of all stages; wanted none");
  }
  if (plan.chunks > 1) return Contradicts("several chunks a rank; wanted one");
  if (plan.schedule->slices_sequence) return Contradicts("slices of the sequence; wanted none");
  if (!plan.split_at.empty()) {
    return Contradicts("a pattern of first ops; wanted layers-per-stage, or none");
  }
  return absl::OkStatus();
}

absl::Status CheckShares(const ParallelPlan& plan) {
  if (!plan.shares.dealt()) return absl::OkStatus();
  if (plan.chunks > 1 || plan.cp != 1 || plan.ep != 1 || plan.schedule->slices_sequence) {
    return absl::InvalidArgumentError(
        "microbatches dealt to replicas; wanted one chunk a rank, cp 1, ep 1 and no slices");
  }
  const int64_t replicas = plan.stage_meshes.empty() ? plan.dp : plan.stage_meshes.most_dp();
  if (plan.microbatches < replicas) {
    return absl::InvalidArgumentError(
        absl::StrCat(plan.microbatches, " microbatches for ", replicas,
                     " replicas; wanted one for each at least: with shares `micro-batches` counts "
                     "those of the whole batch"));
  }
  if (plan.shares.kind == ReplicaShares::Kind::kEven) return absl::OkStatus();
  for (const StageMesh& stage : plan.stage_meshes.stages) {
    if (stage.dp == replicas) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("stages of ", stage.dp, " and of ", replicas,
                     " replicas; wanted round-robin, or as many replicas of each"));
  }
  const auto& counts = plan.shares.counts;
  if (counts.empty()) return absl::OkStatus();
  if (static_cast<int64_t>(counts.size()) != replicas) {
    return absl::InvalidArgumentError(
        absl::StrCat(counts.size(), " shares for ", replicas, " replicas; wanted one each"));
  }
  const int64_t sum = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  if (sum == plan.microbatches) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      ToString(plan.shares), " adds up to ", sum, " microbatches; wanted the ", plan.microbatches,
      " of `micro-batches`, which counts those of the whole batch"));
}

// Planners say which are worth a try, not the axis.
template <auto kField>
std::vector<ParallelPlan> Given(const SpaceQuestion&, const ParallelPlan& plan,
                                std::span<const ParallelPlan> given) {
  return given.empty() ? std::vector{plan} : WithGiven<kField>(plan, given);
}

}  // namespace
}  // namespace stage_meshes_axis_cc

extern const AxisInfo kStageMeshesAxis = {
    .flag = "stage-meshes",
    .summary = "dp and hp of each pipeline stage, where stages have ranks of their own",
    .values = "dp x hp of each, and its first device, as in 4x2,8x1@16",
    .page =
        "[stages with ranks of their own](unequal_plans.md): dp and hp of each, on devices that "
        "follow each other, `4x2,8x1`; `8x1@16`: from device 16 on",
    .examples = {"4x2,8x1@16", "1x1", "2x1,1x2,4x1", ""},
    .mistake = {"2x2,1x1@3", "device 3 is of stages 0 and 1; wanted each of one"},
    .lists = false,
    .parse = ParseField<&ParallelPlan::stage_meshes, ParseStageMeshes>,
    .print = [](const ParallelPlan& plan) { return ToString(plan.stage_meshes); },
    .copy = CopyField<&ParallelPlan::stage_meshes>,
    .check = stage_meshes_axis_cc::CheckMeshes,
    .choices = stage_meshes_axis_cc::Given<&ParallelPlan::stage_meshes>,
};

extern const AxisInfo kSharesAxis = {
    .flag = "shares",
    .summary =
        "whether data-parallel replicas share each microbatch, or run whole ones: in turn, in "
        "proportion to their speed, or so many each",
    .values = "split, round-robin, speed, or numbers, as in 3,5",
    .page =
        "`split`: data-parallel replicas share each microbatch; `round-robin`, `speed` or numbers, "
        "`3,5`: each runs [whole ones](unequal_plans.md#microbatches-that-are-dealt), and "
        "`--micro-batches` counts those of the batch",
    .examples = {"round-robin", "speed", "3,5", "split", "1"},
    .mistake = {"3,0", "'3,0': wanted split, round-robin, speed, or the microbatches of each"},
    .lists = false,
    .parse = ParseField<&ParallelPlan::shares, ParseReplicaShares>,
    .print = [](const ParallelPlan& plan) { return ToString(plan.shares); },
    .copy = CopyField<&ParallelPlan::shares>,
    .applies =
        [](const ParallelPlan& plan) { return plan.dp > 1 || plan.stage_meshes.most_dp() > 1; },
    .needs = "dp of at least 2",
    .check = stage_meshes_axis_cc::CheckShares,
    .choices = stage_meshes_axis_cc::Given<&ParallelPlan::shares>,
};

}  // namespace orrery::transforms
