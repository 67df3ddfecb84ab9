#include "tools/redistribution/redistribution.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cluster/names/device_list.h"
#include "cluster/quantity.h"
#include "cost_models/collectives/choice.h"
#include "lowering/network/cluster_move_set.h"
#include "support/flag_names.h"
#include "support/status.h"
#include "transforms/redistribution/dtensor.h"
#include "transforms/redistribution/given_steps.h"
#include "transforms/redistribution/naive.h"
#include "transforms/redistribution/tensorcraft.h"
#include "transforms/redistribution/ties.h"

namespace orrery::tools {

using redistribution::PackedLayout;
using redistribution::RedistributionPlan;

namespace redistribution_cc {
namespace {

absl::StatusOr<RedistributionPlan> Found(std::optional<RedistributionPlan> plan,
                                         absl::string_view planner) {
  if (plan.has_value()) return *std::move(plan);
  return absl::NotFoundError(
      absl::StrCat("the ", planner, " planner has no steps that lead to the target"));
}

// The same steps with all that they cost.
RedistributionPlan Repriced(const redistribution::MoveSet& moves, const PackedLayout& from,
                            const RedistributionPlan& plan) {
  std::vector<redistribution::Move> taken;
  PackedLayout at = moves.Normal(from);
  for (const redistribution::PlannedStep& step : plan.steps) {
    taken.push_back(
        {.step = step.step, .cost = moves.CostOf(at, step.step).total(), .peak = step.peak});
    at = step.step.after;
  }
  RedistributionPlan priced = redistribution::Priced(moves, moves.Normal(from), taken);
  priced.expanded = plan.expanded;
  priced.exact = plan.exact;
  return priced;
}

// The same steps, each of which in which ranks exchange something waits so long.
void AddWaits(double wait, RedistributionPlan& plan) {
  for (redistribution::PlannedStep& step : plan.steps) {
    if (!redistribution::Communicates(step.step.kind)) continue;
    step.cost += wait;
    plan.cost += wait;
  }
}

// The device of each of `ranks` ranks; none where rank r is on device r.
absl::StatusOr<std::vector<int32_t>> DevicesOf(const std::string& text, int64_t ranks,
                                               const cluster::Cluster& cluster) {
  std::vector<int32_t> devices;
  if (text.empty()) return devices;
  ORRERY_ASSIGN_OR_RETURN(const std::vector<cluster::DeviceId> list,
                          cluster::ParseDevices(text, cluster.size()));
  if (std::ssize(list) != ranks) {
    return absl::InvalidArgumentError(absl::StrCat("got ", list.size(), " devices for a mesh of ",
                                                   ranks, " ranks; wanted one each"));
  }
  if (list.size() > 1) ORRERY_RETURN_IF_ERROR(cost_models::CheckGroup(list, cluster.topology));
  for (const cluster::DeviceId device : list) devices.push_back(device.index());
  return devices;
}

}  // namespace
}  // namespace redistribution_cc

absl::Status Redistributor::UseTensorcraft(absl::string_view options) {
  ORRERY_ASSIGN_OR_RETURN(const redistribution::TensorcraftOptions parsed,
                          redistribution::ParseTensorcraftOptions(options));
  ORRERY_ASSIGN_OR_RETURN(move_set_, redistribution::TensorcraftMoveSet::Create(problem_, parsed));
  return absl::OkStatus();
}

absl::Status Redistributor::UseDtensor(absl::string_view options) {
  ORRERY_ASSIGN_OR_RETURN(const redistribution::DtensorOptions parsed,
                          redistribution::ParseDtensorOptions(options));
  ORRERY_ASSIGN_OR_RETURN(move_set_, redistribution::MakeDtensor(problem_, parsed));
  merges_ = parsed.merge || parsed.consistency != redistribution::ReplicaConsistency::kAny;
  unit_ = "us";
  return absl::OkStatus();
}

absl::Status Redistributor::UseCluster(absl::string_view spec, absl::string_view cost_model,
                                       const std::string& devices) {
  ORRERY_ASSIGN_OR_RETURN(cluster::Cluster cluster, cluster::ParseCluster(spec));
  if (problem_.mesh.size() > cluster.size()) {
    return absl::InvalidArgumentError(absl::StrCat("cluster ", spec, " has ", cluster.size(),
                                                   " devices; wanted at least the ",
                                                   problem_.mesh.size(), " ranks of the mesh"));
  }
  lowering::ClusterMoveSetOptions options;
  ORRERY_ASSIGN_OR_RETURN(
      options.devices,
      Annotated(redistribution_cc::DevicesOf(devices, problem_.mesh.size(), cluster), "--devices"));
  cluster_ = std::make_unique<const cluster::Cluster>(std::move(cluster));
  ORRERY_ASSIGN_OR_RETURN(cost_model_, cost_models::MakeCostModel(cost_model));
  move_set_ =
      std::make_unique<lowering::ClusterMoveSet>(problem_, *cluster_, *cost_model_, options);
  unit_ = "us";
  return absl::OkStatus();
}

absl::StatusOr<Redistributor> Redistributor::Create(const redistribution::Problem& problem,
                                                    absl::string_view cost,
                                                    absl::string_view cost_model,
                                                    const std::string& devices) {
  Redistributor made;
  made.problem_ = problem;
  made.cost_ = std::string(cost);
  const std::pair<absl::string_view, absl::string_view> halves =
      absl::StrSplit(cost, absl::MaxSplits(':', 1));
  absl::Status status = absl::InvalidArgumentError(
      absl::StrCat("got '", cost,
                   "'; wanted tensorcraft[:OPTIONS], dtensor[:OPTIONS] or cluster:SPEC, as in "
                   "cluster:dgx-h100:2"));
  if (halves.first == "tensorcraft") status = made.UseTensorcraft(halves.second);
  if (halves.first == "dtensor") status = made.UseDtensor(halves.second);
  if (halves.first == "cluster") status = made.UseCluster(halves.second, cost_model, devices);
  if (halves.first != "cluster" && !devices.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--devices: got --cost ", cost, ", where all ranks are alike; wanted --cost cluster:SPEC"));
  }
  if (absl::StartsWith(status.message(), "--devices")) return status;
  if (!status.ok()) return Annotate(status, "--cost");
  return made;
}

absl::StatusOr<double> Redistributor::ReadCost(absl::string_view text) const {
  if (unit_.empty()) {
    double number = 0;
    if (absl::SimpleAtod(text, &number) && std::isfinite(number) && number >= 0) return number;
    return absl::InvalidArgumentError(absl::StrCat(
        "got '", text, "'; wanted a number that is not negative: --cost ", cost_, " has no unit"));
  }
  ORRERY_ASSIGN_OR_RETURN(const Duration duration, cluster::ParseDuration(text));
  return static_cast<double>(duration.picoseconds()) / 1e6;
}

absl::Status Redistributor::WaitForStragglers(absl::string_view wait) {
  ORRERY_ASSIGN_OR_RETURN(const double cost, ReadCost(wait));
  synchronized_ = std::make_unique<const redistribution::Synchronized>(*move_set_, cost);
  return absl::OkStatus();
}

absl::Status Redistributor::UseGroups(absl::string_view groups, absl::string_view price) {
  ORRERY_ASSIGN_OR_RETURN(
      redistribution::Groups parsed,
      Annotated(redistribution::Groups::Parse(groups, problem_.mesh), "--groups"));
  for (const ir::AxisList& group : parsed.all()) {
    if (merges_ || group.axes().size() == 1) continue;
    return absl::InvalidArgumentError(absl::StrCat("--groups: got ", problem_.mesh.Names(group),
                                                   ", of several axes, and steps of --cost ", cost_,
                                                   " are over one; wanted --cost dtensor:merge"));
  }
  groups_ = std::make_unique<const redistribution::Groups>(std::move(parsed));
  if (price.empty()) {
    grouped_ = std::make_unique<const redistribution::GroupedMoves>(ungrouped(), *groups_);
    return absl::OkStatus();
  }
  ORRERY_ASSIGN_OR_RETURN(group_price_, Annotated(ReadCost(price), "--group-price"));
  return absl::OkStatus();
}

absl::Status Redistributor::BreakTiesBy(absl::string_view part) {
  ORRERY_ASSIGN_OR_RETURN(const redistribution::CostPart field, redistribution::FindCostPart(part));
  if (group_price_.has_value()) {
    return absl::InvalidArgumentError(
        "which groups to create is chosen by all that plans cost; wanted no --group-price beside "
        "it");
  }
  tie_broken_ = std::make_unique<const redistribution::TieBroken>(move_set(), field);
  return absl::OkStatus();
}

absl::Status Redistributor::ChargeForGroups(RedistributionPlan& plan) const {
  const PackedLayout from = move_set_->Normal(PackedLayout(problem_.from));
  if (group_price_.has_value()) {
    redistribution::ChargeForGroups(*groups_, *group_price_, from, plan);
  }
  if (grouped_ == nullptr) return absl::OkStatus();
  PackedLayout at = from;
  for (const redistribution::PlannedStep& planned : plan.steps) {
    const std::string refusal = groups_->Refusal(at, planned.step);
    if (!refusal.empty()) {
      return absl::NotFoundError(absl::StrCat(move_set_->NameOf(at, planned.step), ": ", refusal));
    }
    at = planned.step.after;
  }
  return absl::OkStatus();
}

absl::StatusOr<RedistributionPlan> Redistributor::OptimalPlan(int64_t limit) const {
  const PackedLayout from(problem_.from), to(problem_.to);
  std::optional<RedistributionPlan> plan;
  if (group_price_.has_value()) {
    plan = redistribution::CheapestWithGroups(move_set(), *groups_, *group_price_, problem_,
                                              {.peak = limit});
  } else {
    plan = redistribution::CheapestPlan(tie_broken_ != nullptr ? *tie_broken_ : move_set(), from,
                                        to, limit);
  }
  if (plan.has_value() && tie_broken_ != nullptr) {
    return redistribution_cc::Repriced(move_set(), from, *plan);
  }
  if (plan.has_value()) return *std::move(plan);
  if (limit == redistribution::kNoLimit) {
    return absl::NotFoundError(absl::StrCat(
        "no steps lead to the target",
        groups_ == nullptr ? ""
                           : absl::StrCat(" within the groups ", groups_->Text(),
                                          "; wanted more of them, or a `group-price`")));
  }
  return absl::NotFoundError(absl::StrCat(
      "no steps within ", limit, " elements a rank; source and target take ",
      move_set_->Elements(from), " and ", move_set_->Elements(to), ", wanted a limit above that"));
}

absl::StatusOr<RedistributionPlan> Redistributor::NaivePlan() const {
  const auto* tensorcraft =
      dynamic_cast<const redistribution::TensorcraftMoveSet*>(move_set_.get());
  if (tensorcraft == nullptr) {
    return redistribution_cc::Found(redistribution::NaivePlan(ungrouped(), problem_), "naive");
  }
  RedistributionPlan plan = tensorcraft->Naive();
  if (synchronized_ != nullptr) redistribution_cc::AddWaits(synchronized_->wait(), plan);
  return plan;
}

absl::StatusOr<RedistributionPlan> Redistributor::GreedyPlan() const {
  const PackedLayout from(problem_.from);
  const absl::string_view options =
      absl::StartsWith(cost_, "dtensor:") ? absl::string_view(cost_).substr(8) : "";
  ORRERY_ASSIGN_OR_RETURN(const redistribution::DtensorOptions parsed,
                          redistribution::ParseDtensorOptions(options));
  ORRERY_ASSIGN_OR_RETURN(RedistributionPlan plan,
                          redistribution::DtensorGreedyPlan(problem_, parsed));
  if (absl::StartsWith(cost_, "dtensor")) {
    if (synchronized_ != nullptr) redistribution_cc::AddWaits(synchronized_->wait(), plan);
    return plan;
  }
  std::vector<PackedLayout> layouts;
  for (const redistribution::PlannedStep& step : plan.steps) layouts.push_back(step.step.after);
  return redistribution_cc::Found(redistribution::Follow(ungrouped(), from, layouts), "greedy");
}

absl::StatusOr<RedistributionPlan> Redistributor::Plan(absl::string_view planner,
                                                       int64_t limit) const {
  if (planner == "optimal") return OptimalPlan(limit);
  if (planner != "naive" && planner != "greedy") {
    return absl::InvalidArgumentError(
        absl::StrCat("--planner '", planner, "': wanted optimal, naive or greedy"));
  }
  ORRERY_ASSIGN_OR_RETURN(RedistributionPlan plan, planner == "naive" ? NaivePlan() : GreedyPlan());
  ORRERY_RETURN_IF_ERROR(ChargeForGroups(plan));
  return plan;
}

absl::StatusOr<redistribution::RedistributionPlan> Redistributor::Given(
    const WrittenProblem& written, absl::string_view steps, int64_t limit) const {
  ORRERY_ASSIGN_OR_RETURN(
      redistribution::RedistributionPlan plan,
      redistribution::GivenPlan(
          move_set(), problem_, steps,
          [&](const redistribution::PackedLayout& layout) { return written.Text(layout); }));
  ORRERY_RETURN_IF_ERROR(ChargeForGroups(plan));
  if (plan.peak > limit) {
    return absl::FailedPreconditionError(absl::StrCat("a rank holds up to ", plan.peak,
                                                      " elements; wanted at most ", limit,
                                                      ", the memory limit"));
  }
  const auto best = Plan("optimal", limit);
  plan.exact = best.ok() && best->exact && plan.cost <= best->cost;
  return plan;
}

absl::StatusOr<int64_t> ParseElementLimit(absl::string_view text, const Redistributor& question) {
  if (text.empty()) return redistribution::kNoLimit;
  if (text == "endpoints") {
    return std::max(
        question.move_set().Elements(redistribution::PackedLayout(question.problem().from)),
        question.move_set().Elements(redistribution::PackedLayout(question.problem().to)));
  }
  int64_t elements = 0;
  if (absl::SimpleAtoi(text, &elements) && elements >= 0) return elements;
  ORRERY_ASSIGN_OR_RETURN(const Bytes bytes,
                          Annotated(ParseBytes(std::string(text)), "--memory-limit"));
  return bytes.count() / question.problem().itemsize;
}

std::string PlannerNote(const absl::Status& status) {
  return SpellFlags(status.message(), [](absl::string_view name) {
    return name == "cluster" || name == "cost" || name == "memory-limit" || name == "planner" ||
           name == "groups" || name == "group-price";
  });
}

}  // namespace orrery::tools
