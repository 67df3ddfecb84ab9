#include "search/stage_plans.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "search/unequal/unequal_steps.h"
#include "support/parts/part_store.h"
#include "support/status.h"
#include "transforms/plan/divisors.h"
#include "transforms/plan/plan_text.h"
#include "transforms/strategies/inter_op.h"

namespace orrery::search {
namespace stage_plans_cc {
namespace {

using transforms::StageMesh;
using transforms::strategies::InterOpPlan;
using transforms::strategies::InterOpProblem;

constexpr double kNever = std::numeric_limits<double>::infinity();

// A plan of stages on these meshes, one behind the other, with so many layers each; what of `base`
// means nothing there is as usual.
ParallelPlan PlanOfMeshes(const Setting& setting, const ParallelPlan& base,
                          std::vector<StageMesh> meshes, std::vector<int64_t> layers) {
  ParallelPlan plan = base;
  int64_t first = 0;
  for (StageMesh& mesh : meshes) {
    mesh.first = first;
    first += mesh.ranks();
  }
  plan.dp = plan.hp = 1;
  plan.pp = std::ssize(meshes);
  if (plan.order.Full().back() != "pp") plan.order = {};  // stages follow each other
  plan.stage_meshes.stages = std::move(meshes);
  plan.shares = {};
  if (plan.most_dp() * plan.cp * plan.ep == 1) plan.zero = setting.base.zero;  // nothing to share
  plan.layers_per_stage = plan.pp > 1 ? std::move(layers) : std::vector<int64_t>();
  return transforms::Settled(plan, setting.base);
}

// A submesh that a stage can have, and what layers take on it in its best shape.
struct Submesh {
  int64_t devices = 1;
  int32_t kind = 0;
  std::vector<char> fits;          // by first device
  std::vector<StageMesh> shapes;   // dp and hp
  std::vector<PacedStage> layers;  // of each shape
};

// Layers in groups, at most so many.
constexpr int64_t kMostGroups = 32;

struct Groups {
  std::vector<int64_t> begins;  // and the end

  explicit Groups(int64_t layers) {
    const int64_t groups = std::min(layers, kMostGroups);
    for (int64_t g = 0; g <= groups; ++g) begins.push_back(layers * g / groups);
  }
  int64_t count() const { return std::ssize(begins) - 1; }
};

double SumOf(const std::vector<double>& each, int64_t begin, int64_t end) {
  double sum = 0;
  for (int64_t l = begin; l < end; ++l) sum += each[static_cast<size_t>(l)];
  return sum;
}

// Where a submesh of devices of the kind may begin.
std::vector<char> FitsOf(const cluster::Cluster& cluster, int64_t devices, int32_t kind) {
  const int32_t in_node = std::max(1, cluster.topology.shape().devices_per_node);
  std::vector<char> fits(static_cast<size_t>(cluster.size()), 0);
  for (int32_t first = 0; first + devices <= cluster.size(); ++first) {
    const int64_t last = first + devices - 1;
    const bool one_node = first / in_node == last / in_node;
    const bool whole_nodes = first % in_node == 0 && devices % in_node == 0;
    bool fit = one_node || whole_nodes;
    for (int64_t d = first; d <= last && fit; ++d) {
      fit = cluster.kind_of(cluster::DeviceId(static_cast<int32_t>(d))) == kind;
    }
    fits[static_cast<size_t>(first)] = fit ? 1 : 0;
  }
  return fits;
}

// Powers of two within a node, and whole nodes.
std::vector<int64_t> SubmeshSizes(const cluster::Cluster& cluster) {
  const int64_t in_node =
      std::min<int64_t>(cluster.size(), std::max(1, cluster.topology.shape().devices_per_node));
  std::vector<int64_t> sizes;
  for (int64_t size = 1; size < in_node; size *= 2) sizes.push_back(size);
  for (int64_t size = in_node; size <= cluster.size(); size += in_node) sizes.push_back(size);
  return sizes;
}

class AlpaPlanner {
 public:
  AlpaPlanner(const Setting& setting, const ParallelPlan& base)
      : setting_(setting), base_(base), microbatches_(base.microbatches) {}

  absl::Status Prepare() {
    for (const int64_t size : SubmeshSizes(setting_.cluster)) {
      for (int32_t kind = 0; kind < setting_.cluster.kind_count(); ++kind) {
        Submesh submesh{.devices = size,
                        .kind = kind,
                        .fits = FitsOf(setting_.cluster, size, kind),
                        .shapes = {},
                        .layers = {}};
        const auto first = std::ranges::find(submesh.fits, 1);
        if (first == submesh.fits.end()) continue;
        ORRERY_RETURN_IF_ERROR(PriceShapes(first - submesh.fits.begin(), submesh));
        if (!submesh.shapes.empty()) submeshes_.push_back(std::move(submesh));
      }
    }
    if (!submeshes_.empty()) return absl::OkStatus();
    return why_not_.ok() ? absl::InternalError("no submesh of one device") : why_not_;
  }

  // The optimum over submeshes of that size alone; 0: of all.
  absl::StatusOr<std::optional<StagePlan>> Plan(int64_t size) {
    groups_.emplace(std::ssize(submeshes_.front().layers.front().pace));
    used_.clear();
    for (const Submesh& submesh : submeshes_) {
      if (size == 0 || submesh.devices == size) used_.push_back(&submesh);
    }
    if (used_.empty()) return std::nullopt;
    ORRERY_ASSIGN_OR_RETURN(const std::optional<InterOpPlan> plan,
                            transforms::strategies::PlanInterOp(Problem()));
    if (!plan.has_value()) return std::nullopt;
    return PlanOf(*plan);
  }

 private:
  absl::Status PriceShapes(int64_t first, Submesh& submesh) {
    for (const int64_t hp : transforms::Divisors(submesh.devices)) {
      const int32_t in_node = setting_.cluster.topology.shape().devices_per_node;
      if (in_node > 1 && hp > in_node) continue;
      const StageMesh shape{.dp = submesh.devices / hp, .hp = hp, .first = first};
      ParallelPlan plan = PlanOfMeshes(setting_, base_, {shape}, {});
      plan.stage_meshes.stages.front().first = first;
      UnequalSteps steps(setting_, plan, *plan.schedule);
      ORRERY_RETURN_IF_ERROR(steps.Prepare());
      absl::StatusOr<std::vector<PacedStage>> paced =
          steps.PaceStages(setting_.step, plan, steps.PlainContext());
      if (!paced.ok()) {
        if (!AsInfeasible(paced.status()).has_value()) return paced.status();
        why_not_ = paced.status();
        continue;
      }
      if (layers_ == 0) layers_ = paced->front().pace.size();
      if (paced->front().pace.size() != layers_) continue;  // sharded so that several are one
      submesh.shapes.push_back(shape);
      submesh.layers.push_back(std::move(paced->front()));
    }
    return absl::OkStatus();
  }

  // The shape that is fastest with these groups of layers and holds them, with at most how many
  // stages behind it.
  struct Choice {
    double seconds = kNever;
    size_t shape = 0;
    int32_t successors = -1;
  };
  Choice ChoiceOf(const Submesh& submesh, int64_t first, int64_t last) const {
    const int64_t begin = groups_->begins[static_cast<size_t>(first)];
    const int64_t end = groups_->begins[static_cast<size_t>(last) + 1];
    Choice best;
    for (size_t s = 0; s < submesh.shapes.size(); ++s) {
      const PacedStage& layers = submesh.layers[s];
      const double seconds = SumOf(layers.pace, begin, end);
      const double left = layers.limit - SumOf(layers.state_bytes, begin, end);
      const double kept = SumOf(layers.kept_bytes, begin, end);
      double in_flight =
          layers.limit > 0 ? (kept > 0 ? std::floor(left / kept) : kMostStages) : kMostStages;
      if (layers.limit > 0 && left < 0) in_flight = 0;
      in_flight = std::min(in_flight, kMostStages);
      if (in_flight < 1 || seconds >= best.seconds) continue;
      best = {.seconds = seconds, .shape = s, .successors = static_cast<int32_t>(in_flight) - 1};
    }
    return best;
  }

  InterOpProblem Problem() const {
    const auto groups = static_cast<size_t>(groups_->count());
    InterOpProblem problem{.layers = static_cast<int32_t>(groups),
                           .devices = setting_.cluster.size(),
                           .microbatches = microbatches_,
                           .submesh_sizes = {},
                           .stage_cost = {},
                           .most_successors = {}};
    for (const Submesh* submesh : used_) {
      problem.submesh_sizes.push_back(static_cast<int32_t>(submesh->devices));
      problem.fits.push_back(submesh->fits);
    }
    const std::vector<double> never(used_.size(), kNever);
    problem.stage_cost.assign(groups, std::vector<std::vector<double>>(groups, never));
    problem.most_successors.assign(
        groups, std::vector<std::vector<int32_t>>(groups, std::vector<int32_t>(used_.size(), -1)));
    bool binds = false;
    for (size_t first = 0; first < groups; ++first) {
      for (size_t last = first; last < groups; ++last) {
        for (size_t m = 0; m < used_.size(); ++m) {
          const Choice choice =
              ChoiceOf(*used_[m], static_cast<int64_t>(first), static_cast<int64_t>(last));
          problem.stage_cost[first][last][m] = choice.seconds;
          // More microbatches than there are are never in flight.
          const bool all =
              choice.successors + 1 >= std::min<int64_t>(microbatches_, problem.layers);
          problem.most_successors[first][last][m] = all ? problem.layers : choice.successors;
          binds = binds || (choice.seconds != kNever && !all);
        }
      }
    }
    if (!binds) problem.most_successors.clear();
    return problem;
  }

  StagePlan PlanOf(const InterOpPlan& plan) const {
    std::vector<StageMesh> meshes;
    std::vector<int64_t> layers;
    for (const auto& stage : plan.stages) {
      const Submesh& submesh = *used_[static_cast<size_t>(stage.submesh)];
      meshes.push_back(submesh.shapes[ChoiceOf(submesh, stage.begin, stage.end - 1).shape]);
      layers.push_back(groups_->begins[static_cast<size_t>(stage.end)] -
                       groups_->begins[static_cast<size_t>(stage.begin)]);
    }
    return {.plan = PlanOfMeshes(setting_, base_, std::move(meshes), std::move(layers)),
            .source = "",
            .seconds = plan.cost};
  }

  static constexpr double kMostStages = 1 << 20;
  size_t layers_ = 0;  // of the model, as the first submesh has it
  const Setting& setting_;
  const ParallelPlan& base_;
  const int64_t microbatches_;
  absl::Status why_not_;
  std::vector<Submesh> submeshes_;
  std::optional<Groups> groups_;
  std::vector<const Submesh*> used_;
};

}  // namespace
}  // namespace stage_plans_cc

ParallelPlan PlanOfStages(const Setting& setting, const PipeDreamStages& stages,
                          const ParallelPlan& base) {
  std::vector<transforms::StageMesh> meshes;
  std::vector<int64_t> layers;
  for (const transforms::strategies::PipeDreamStage& stage : stages.plan.stages) {
    meshes.push_back({.dp = stage.replicas});
    layers.push_back(stage.end - stage.begin);
  }
  ParallelPlan plan =
      stage_plans_cc::PlanOfMeshes(setting, base, std::move(meshes), std::move(layers));
  if (plan.most_dp() > 1) plan.shares.kind = transforms::ReplicaShares::Kind::kEven;
  return plan;
}

absl::StatusOr<std::vector<StagePlan>> AlpaPlans(const Setting& setting, const ParallelPlan& base) {
  stage_plans_cc::AlpaPlanner planner(setting, base);
  ORRERY_RETURN_IF_ERROR(planner.Prepare());
  std::vector<StagePlan> plans;
  const auto add = [&](std::optional<StagePlan> plan, std::string source) {
    if (!plan.has_value()) return;
    const auto same = [&](const StagePlan& other) { return other.plan == plan->plan; };
    if (std::ranges::any_of(plans, same)) return;
    plan->source = std::move(source);
    plans.push_back(*std::move(plan));
  };
  ORRERY_ASSIGN_OR_RETURN(std::optional<StagePlan> optimum, planner.Plan(0));
  add(std::move(optimum), "optimum");
  for (const int64_t size : stage_plans_cc::SubmeshSizes(setting.cluster)) {
    ORRERY_ASSIGN_OR_RETURN(std::optional<StagePlan> equal, planner.Plan(size));
    add(std::move(equal), absl::StrCat("submeshes of ", size));
  }
  if (!plans.empty()) return plans;
  return InfeasibleStatus({.reason = InfeasibleReason::kMemory,
                           .detail = absl::StrCat("no stages on submeshes of ",
                                                  setting.cluster.name, " hold the model")});
}

namespace stage_plans_cc {
namespace {

// Plans like `base` whose stages are alike, with all ways to part the devices of the cluster.
std::vector<ParallelPlan> AlikeOnAllDevices(const Setting& setting, const ParallelPlan& base) {
  std::vector<ParallelPlan> plans;
  const int64_t devices = setting.cluster.size();
  for (const int64_t pp : transforms::Divisors(devices)) {
    for (const int64_t hp : transforms::Divisors(devices / pp)) {
      ParallelPlan plan = base;
      plan.stage_meshes = {};
      plan.shares = {};
      plan.layers_per_stage.clear();
      plan.pp = pp;
      plan.hp = hp;
      plan.dp = devices / pp / hp;
      plans.push_back(std::move(plan));
    }
  }
  return plans;
}

}  // namespace
}  // namespace stage_plans_cc

std::vector<StagePlan> UniformPlans(const Setting& setting, const ParallelPlan& base) {
  std::vector<StagePlan> plans;
  for (const ParallelPlan& plan : stage_plans_cc::AlikeOnAllDevices(setting, base)) {
    if (setting.batch_size % (plan.dp * plan.microbatches) != 0) continue;
    plans.push_back({.plan = transforms::Settled(plan, setting.base), .source = "stages alike"});
  }
  return plans;
}

std::vector<StagePlan> SharedPlans(const Setting& setting, const ParallelPlan& base) {
  std::vector<StagePlan> plans;
  for (ParallelPlan& plan : stage_plans_cc::AlikeOnAllDevices(setting, base)) {
    plan.microbatches = base.microbatches * plan.dp;
    plan.shares = {.kind = transforms::ReplicaShares::Kind::kSpeed};
    if (plan.dp < 2 || setting.batch_size % plan.microbatches != 0) continue;
    plans.push_back({.plan = transforms::Settled(plan, setting.base), .source = "shares by speed"});
  }
  return plans;
}

absl::StatusOr<std::vector<ParallelPlan>> UnequalPlans(const Setting& setting,
                                                       const ParallelPlan& like,
                                                       const std::vector<int64_t>& microbatches) {
  std::vector<ParallelPlan> plans;
  for (const int64_t number : microbatches) {
    ParallelPlan base = like;
    base.microbatches = number;
    if (setting.batch_size % base.microbatches != 0) continue;
    std::vector<StagePlan> found;
    absl::StatusOr<std::vector<StagePlan>> alpa = AlpaPlans(setting, base);
    if (!alpa.ok() && !AsInfeasible(alpa.status()).has_value()) return alpa.status();
    if (alpa.ok()) found = *std::move(alpa);
    if (setting.cluster.kind_count() > 1) {
      for (StagePlan& plan : SharedPlans(setting, base)) found.push_back(std::move(plan));
    } else if (setting.cluster.size() > 1) {
      const absl::StatusOr<PipeDreamStages> stages = PlanPipeDream(setting, base.microbatches);
      if (stages.ok())
        found.push_back({.plan = PlanOfStages(setting, *stages, base), .source = "pipedream"});
    }
    for (StagePlan& plan : found) {
      if (!transforms::CheckPlan(plan.plan, setting.base).ok()) continue;
      if (std::ranges::find(plans, plan.plan) == plans.end()) plans.push_back(std::move(plan.plan));
    }
  }
  return plans;
}

absl::StatusOr<PlayedPlans> PlayPlans(const Setting& setting, std::vector<StagePlan> plans) {
  PlayedPlans played{.plans = std::move(plans), .results = {}};
  PartStore parts(Bytes(int64_t{64} << 20));
  for (const StagePlan& plan : played.plans) {
    ORRERY_ASSIGN_OR_RETURN(played.results.emplace_back(), Evaluate(setting, plan.plan, &parts));
  }
  const auto better = [](const Result& a, const Result& b) {
    if (a.ran != b.ran) return a.ran;
    if (a.fits != b.fits) return a.fits;
    return a.fits ? a.step_time < b.step_time : a.peak_memory < b.peak_memory;
  };
  played.best = static_cast<size_t>(std::ranges::min_element(played.results, better) -
                                    played.results.begin());
  if (played.results[played.best].ran) return played;
  return InfeasibleStatus(*played.results[played.best].infeasible);
}

std::string PlansText(const Setting& setting, const PlayedPlans& played) {
  std::vector<size_t> order;
  for (size_t i = 0; i < played.plans.size(); ++i) order.push_back(i);
  std::ranges::stable_sort(order, [&](size_t a, size_t b) {
    const Result &x = played.results[a], &y = played.results[b];
    if (x.feasible() != y.feasible()) return x.feasible();
    return x.feasible() && x.step_time < y.step_time;
  });
  std::string text = absl::StrCat("Alpa's plans: ", played.plans.size(), " on ",
                                  setting.cluster.size(), " devices, played\n\n");
  for (const size_t i : order) {
    const Result& result = played.results[i];
    std::string time(result.ran ? "does not fit" : ToString(result.infeasible->reason));
    if (result.feasible()) time = absl::StrFormat("%.6g s", result.step_time.seconds());
    absl::StrAppendFormat(&text, "  %-14s %-16s %s\n", time, played.plans[i].source,
                          transforms::ToString(played.plans[i].plan, setting.base));
  }
  return text;
}

}  // namespace orrery::search
