#include "search/views/slowest_path.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "search/unequal/unequal_cuts.h"
#include "search/unequal/unequal_steps.h"
#include "search/views/changes.h"
#include "transforms/plan/plan_text.h"
#include "transforms/stages/dealt_rounds.h"

namespace orrery::search {
namespace slowest_path_cc {
namespace {

double ComputeSeconds(const simulator::Report& report, simulator::RankClassId rank) {
  const simulator::RankReport& of = report.ranks[rank];
  return (report.step_time - of.idle - of.exposed_communication).seconds();
}

// Of each rank by its number; empty where classes stand for several.
std::vector<double> SecondsByRank(const Run& run) {
  std::vector<double> seconds;
  for (int32_t r = 0; r < run.program.rank_count(); ++r) {
    const simulator::RankClassId rank(r);
    if (run.program.rank(rank).members.size() != 1) return {};
    const auto number = static_cast<size_t>(run.program.rank(rank).members.front());
    seconds.resize(std::max(seconds.size(), number + 1), 0);
    seconds[number] = ComputeSeconds(run.report, rank);
  }
  return seconds;
}

int64_t MicrobatchesOf(const Run& run, size_t stage, int32_t replica, int64_t all) {
  const auto& rows = run.pipelined.unequal.replica_of;
  return rows.empty() ? all : std::ranges::count(rows[stage], replica);
}

std::vector<PathPart> PartsOf(const Setting& setting, const ParallelPlan& plan, const Run& run) {
  if (plan.cp * plan.ep > 1 || run.pipelined.stages.size() != static_cast<size_t>(plan.pp)) {
    return {};
  }
  const absl::StatusOr<std::vector<StageRanks>> stages = RanksOfStages(plan, setting.cluster);
  const std::vector<double> seconds = SecondsByRank(run);
  if (!stages.ok() || seconds.empty()) return {};
  std::vector<PathPart> parts;
  size_t first = 0;
  for (size_t s = 0; s < stages->size(); ++s) {
    const StageRanks& ranks = (*stages)[s];
    const size_t begin = parts.size();
    for (size_t i = 0; i < ranks.devices.size(); ++i) {
      const auto replica = static_cast<size_t>(ranks.replicas[i]);
      if (parts.size() <= begin + replica) parts.resize(begin + replica + 1);
      const bool own = !run.pipelined.unequal.places.empty();
      const size_t number = own ? first + i : static_cast<size_t>(ranks.devices[i]);
      PathPart& part = parts[begin + replica];
      if (!part.device.empty() && seconds[number] <= part.seconds) continue;
      const cluster::DeviceId device(ranks.devices[i]);
      part = {
          .stage = static_cast<int32_t>(s),
          .replica = ranks.replicas[i],
          .device = setting.cluster.device_of(device).name,
          .seconds = seconds[number],
          .microbatches = MicrobatchesOf(run, s, ranks.replicas[i], plan.microbatches),
          .layers = run.pipelined.layers.size() == stages->size() ? run.pipelined.layers[s] : 0};
    }
    first += ranks.devices.size();
  }
  return parts;
}

// Seconds of a stage in a step, its slowest replica, by stage.
std::vector<double> StageSeconds(const std::vector<PathPart>& parts) {
  std::vector<double> seconds;
  for (const PathPart& part : parts) {
    seconds.resize(static_cast<size_t>(part.stage) + 1, 0);
    seconds.back() = std::max(seconds.back(), part.seconds);
  }
  return seconds;
}

double OverOthers(const std::vector<double>& each, size_t one) {
  if (each.size() < 2) return 1;
  double sum = 0;
  for (size_t i = 0; i < each.size(); ++i) sum += i == one ? 0 : each[i];
  return sum <= 0 ? 1 : each[one] * static_cast<double>(each.size() - 1) / sum;
}

// What a microbatch takes each replica of the slowest stage.
std::vector<double> ReplicaPace(const std::vector<PathPart>& parts, int32_t stage) {
  std::vector<double> pace;
  for (const PathPart& part : parts) {
    if (part.stage != stage || part.microbatches == 0) continue;
    pace.push_back(part.seconds / static_cast<double>(part.microbatches));
  }
  return pace;
}

ParallelPlan OtherShares(const ParallelPlan& plan, const std::vector<double>& pace) {
  ParallelPlan other = plan;
  if (!plan.shares.dealt()) other.microbatches *= std::ssize(pace);
  other.shares = {.kind = transforms::ReplicaShares::Kind::kGiven,
                  .counts = SharesBySpeed(pace, other.microbatches)};
  return other;
}

// Layers of each stage; none where that is not known of one.
std::vector<int64_t> LayersOf(const std::vector<PathPart>& parts) {
  std::vector<int64_t> layers;
  for (const PathPart& part : parts) {
    if (part.layers == 0) return {};
    if (part.replica == 0) layers.push_back(part.layers);
  }
  return layers;
}

// Layers by how long stages take for them now; and a layer of the slowest stage to a neighbour, for
// what a stage computes is not all that it does.
void AddOtherLayers(const ParallelPlan& plan, const std::vector<PathPart>& parts, int32_t slowest,
                    std::vector<ParallelPlan>& others) {
  const std::vector<int64_t> now = LayersOf(parts);
  const std::vector<double> seconds = StageSeconds(parts);
  if (now.empty()) return;
  const auto add = [&](std::vector<int64_t> layers) {
    others.push_back(plan);
    others.back().layers_per_stage = std::move(layers);
  };
  const auto all = static_cast<size_t>(std::accumulate(now.begin(), now.end(), int64_t{0}));
  const std::vector<double> nothing(all, 0);
  std::vector<PacedStage> stages;
  for (size_t s = 0; s < seconds.size(); ++s) {
    PacedStage& stage = stages.emplace_back();
    stage.pace.assign(all, seconds[s] / static_cast<double>(now[s]));
    stage.state_bytes = stage.kept_bytes = nothing;
  }
  auto cut = CutByPace(stages, std::max<int64_t>(2, plan.microbatches), false);
  if (cut.has_value() && *cut != now) add(*std::move(cut));
  const auto from = static_cast<size_t>(slowest);
  for (const size_t to : {from + 1, from - 1}) {
    if (to >= now.size() || now[from] < 2) continue;
    std::vector<int64_t> moved = now;
    --moved[from];
    ++moved[to];
    add(std::move(moved));
  }
}

// The flags that make another plan of this one, if it is a plan, fits and is faster: it is played.
std::string Remedy(const Setting& setting, const ParallelPlan& plan, const Run& run,
                   const ParallelPlan& other) {
  if (other == plan || setting.orders.has_value()) return "";
  if (!transforms::CheckPlan(other, setting.base).ok()) return "";
  const absl::StatusOr<Result> played = Evaluate(setting, other);
  const bool helps = played.ok() && played->feasible() && played->step_time < run.report.step_time;
  return helps ? ChangeText(plan, other) : "";
}

}  // namespace
}  // namespace slowest_path_cc

SlowestPath FindSlowestPath(const Setting& setting, const ParallelPlan& plan, const Run& run) {
  SlowestPath path{.parts = slowest_path_cc::PartsOf(setting, plan, run), .remedy = ""};
  if (path.parts.empty()) return path;
  path.slowest = static_cast<size_t>(std::ranges::max_element(path.parts, {}, &PathPart::seconds) -
                                     path.parts.begin());
  const PathPart& slowest = path.parts[path.slowest];
  const std::vector<double> pace = slowest_path_cc::ReplicaPace(path.parts, slowest.stage);
  const std::vector<double> stages = slowest_path_cc::StageSeconds(path.parts);
  path.over_replicas = slowest_path_cc::OverOthers(
      pace, std::min(static_cast<size_t>(slowest.replica), std::max<size_t>(pace.size(), 1) - 1));
  path.over_stages = slowest_path_cc::OverOthers(stages, static_cast<size_t>(slowest.stage));
  const bool same = plan.stage_meshes.empty() ||
                    std::ranges::all_of(plan.stage_meshes.stages, [&](const auto& mesh) {
                      return mesh.dp == plan.stage_meshes.stages.front().dp;
                    });
  std::vector<ParallelPlan> others;
  if (pace.size() > 1 && same && path.over_replicas >= path.over_stages) {
    others.push_back(slowest_path_cc::OtherShares(plan, pace));
  }
  if (plan.pp > 1) slowest_path_cc::AddOtherLayers(plan, path.parts, slowest.stage, others);
  for (size_t i = 0; i < others.size() && path.remedy.empty(); ++i) {
    path.remedy = slowest_path_cc::Remedy(setting, plan, run, others[i]);
  }
  return path;
}

namespace slowest_path_cc {
namespace {

// "3 5; 8": of the replicas of each stage.
std::string DealtText(const std::vector<PathPart>& parts) {
  std::string text;
  for (const PathPart& part : parts) {
    const bool first = part.replica == 0;
    absl::StrAppend(&text, text.empty() ? "" : first ? "; " : " ", part.microbatches);
  }
  return absl::StrCat(text, ", by stage and replica");
}

// Of batches that never end.
std::string InTurnText(const Run& run) {
  return absl::StrCat("in turn to ",
                      absl::StrJoin(transforms::ReplicasOf(run.pipelined.unequal), " "),
                      " replicas, by stage");
}

// Of devices that run stages of a graph: which, and who computes longest.
std::vector<std::pair<std::string, std::string>> PlacedLines(const ParallelPlan& plan,
                                                             const Run& run) {
  const std::vector<transforms::DeviceSet>& sets = plan.placement.sets;
  const std::vector<double> of_ranks = SecondsByRank(run);
  std::vector<double> seconds;  // by set
  std::vector<std::string> stages;
  size_t rank = 0;
  for (size_t set = 0; set < sets.size(); ++set) {
    seconds.push_back(0);
    for (size_t i = 0; i < sets[set].devices.size(); ++i) {
      seconds.back() = std::max(seconds.back(), of_ranks[rank++]);
    }
    std::string text = absl::StrCat(ToString(sets[set]), " runs");
    for (size_t s = 0; s < run.pipelined.ranks.size(); ++s) {
      if (run.pipelined.ranks[s] == static_cast<int32_t>(set)) absl::StrAppend(&text, " ", s);
    }
    stages.push_back(std::move(text));
  }
  const auto busiest = static_cast<size_t>(std::ranges::max_element(seconds) - seconds.begin());
  const auto idlest = static_cast<size_t>(std::ranges::min_element(seconds) - seconds.begin());
  std::string text = absl::StrFormat("%s: computes %.4g s of %.4g s", ToString(sets[busiest]),
                                     seconds[busiest], run.report.step_time.seconds());
  if (idlest != busiest) {
    absl::StrAppendFormat(&text, "; %s, which computes least, %.4g s", ToString(sets[idlest]),
                          seconds[idlest]);
  }
  return {{"placed",
           absl::StrCat(run.pipelined.stages.size(), " stages: ", absl::StrJoin(stages, "; "))},
          {"busiest", std::move(text)}};
}

}  // namespace
}  // namespace slowest_path_cc

std::vector<std::pair<std::string, std::string>> SlowestPathLines(const Setting& setting,
                                                                  const ParallelPlan& plan,
                                                                  const Run& run) {
  if (!plan.placement.empty()) return slowest_path_cc::PlacedLines(plan, run);
  if (setting.cluster.kind_count() == 1 && !plan.unequal()) return {};
  const SlowestPath path = FindSlowestPath(setting, plan, run);
  if (path.parts.empty()) {
    return {{"slowest path",
             "not told where one rank stands for several, or with cp, ep or chunks; "
             "try --no-fold"}};
  }
  const PathPart& slowest = path.parts[path.slowest];
  std::string text = absl::StrFormat("stage %d, replica %d on %s: computes %.4g s of %.4g s",
                                     slowest.stage, slowest.replica, slowest.device,
                                     slowest.seconds, run.report.step_time.seconds());
  if (path.over_replicas > 1.005) {
    absl::StrAppendFormat(&text, ", %.2f times as long for a microbatch as other replicas",
                          path.over_replicas);
  }
  if (path.over_stages > 1.005) {
    absl::StrAppendFormat(&text, ", %.2f times as long as other stages", path.over_stages);
  }
  std::vector<std::pair<std::string, std::string>> lines;
  if (run.pipelined.unequal.dealt()) {
    lines.emplace_back("microbatches", plan.schedule->asynchronous
                                           ? slowest_path_cc::InTurnText(run)
                                           : slowest_path_cc::DealtText(path.parts));
  }
  lines.emplace_back("slowest path", text);
  lines.emplace_back("evened out by",
                     path.remedy.empty() ? "nothing: no shares or layers that were tried are faster"
                                         : path.remedy);
  return lines;
}

}  // namespace orrery::search
