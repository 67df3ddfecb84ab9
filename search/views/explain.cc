#include "search/views/explain.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "support/check.h"
#include "support/status.h"
#include "transforms/plan/mesh.h"

namespace orrery::search {
namespace explain_cc {
namespace {

using simulator::Program;
using simulator::ResourceId;
using simulator::TaskId;

// What `resource` carries, by kind of communication.
std::vector<CarriedShare> Carried(const Program& program, ResourceId resource) {
  std::map<std::string, double> bytes;
  double all = 0;
  for (int32_t t = 0; t < program.task_count(); ++t) {
    const simulator::FlowId id = program.flow_of(TaskId(t));
    if (!id.valid()) continue;
    const simulator::Flow flow = program.flow(id);
    for (const simulator::Load& load : flow.loads) {
      if (load.resource != resource) continue;
      const double carried = load.load * static_cast<double>(flow.size.count());
      bytes[std::string(program.label(program.label_of(TaskId(t))).communication)] += carried;
      all += carried;
    }
  }
  std::vector<CarriedShare> shares;
  for (const auto& [communication, carried] : bytes) {
    shares.push_back({communication, carried / all});
  }
  std::stable_sort(shares.begin(), shares.end(),
                   [](const CarriedShare& a, const CarriedShare& b) { return a.share > b.share; });
  return shares;
}

std::vector<LevelUse> UseOfLevels(const Run& run) {
  std::map<std::string, std::pair<ResourceId, simulator::ResourceUse>> busiest;  // by level
  for (int32_t i = 0; i < run.program.resource_count(); ++i) {
    const ResourceId id(i);
    const simulator::ResourceUse use = run.link_use->Summarize(id, run.trace.makespan);
    if (use.bytes == 0) continue;
    auto& [best, best_use] = busiest[run.program.resource(id).kind];
    if (best.valid() && use.utilization <= best_use.utilization) continue;
    best = id;
    best_use = use;
  }
  std::vector<LevelUse> levels;
  const double run_s = run.trace.makespan.seconds();
  for (const auto& [level, row] : busiest) {
    levels.push_back({.level = level,
                      .link = run.program.resource(row.first).name,
                      .use = row.second,
                      .full = run_s > 0 ? row.second.full.seconds() / run_s : 0,
                      .carried = Carried(run.program, row.first)});
  }
  std::stable_sort(levels.begin(), levels.end(), [](const LevelUse& a, const LevelUse& b) {
    return a.use.utilization > b.use.utilization;
  });
  return levels;
}

// Plays the candidate and adds what came of it. What is not possible relieves nothing.
absl::Status Try(const Setting& setting, const ParallelPlan& plan, std::string change,
                 std::vector<LinkRelief>& reliefs) {
  const absl::StatusOr<Run> run = Play(setting, plan);
  if (run.ok()) reliefs.push_back({std::move(change), run->report.step_time});
  return run.ok() || AsInfeasible(run.status()).has_value() ? absl::OkStatus() : run.status();
}

// All orders of the axes that are more than one rank long, each once: the others come first, where
// they change nothing.
std::vector<std::string> OtherOrders(const ParallelPlan& plan) {
  std::vector<std::string> alone, more;
  for (const std::string& axis : plan.order.Full()) {
    const int64_t degree = transforms::DegreeOf(plan, axis);
    if (!transforms::Vanishes(axis, degree)) (degree > 1 ? more : alone).push_back(axis);
  }
  const std::vector<std::string> as_it_is = more;
  std::vector<std::string> others;
  std::sort(more.begin(), more.end());
  do {
    if (more == as_it_is) continue;
    std::vector<std::string> all = alone;
    all.insert(all.end(), more.begin(), more.end());
    others.push_back(absl::StrJoin(all, ","));
  } while (std::next_permutation(more.begin(), more.end()));
  return others;
}

std::string Percent(double fraction) { return absl::StrFormat("%.1f %%", 100 * fraction); }

}  // namespace
}  // namespace explain_cc

absl::StatusOr<Explanation> Explain(Setting& setting, const ParallelPlan& plan, const Run& run) {
  ORRERY_CHECK(run.link_use.has_value()) << "a run without its links";
  Explanation explanation{.levels = explain_cc::UseOfLevels(run), .reliefs = {}};
  const cluster::Topology topology = setting.cluster.topology;
  absl::Status status;
  for (const LevelUse& level : explanation.levels) {
    if (!status.ok()) break;
    setting.cluster.topology = topology.WithFasterLinks(level.level, 2);
    status = explain_cc::Try(setting, plan, absl::StrCat(level.level, " links of twice the rate"),
                             explanation.reliefs);
  }
  setting.cluster.topology = topology;
  for (const std::string& other : explain_cc::OtherOrders(plan)) {
    if (!status.ok()) break;
    ParallelPlan reordered = plan;
    ORRERY_ASSIGN_OR_RETURN(reordered.order, transforms::MeshOrder::Parse(other));
    status =
        explain_cc::Try(setting, reordered, absl::StrCat("--order ", other), explanation.reliefs);
  }
  if (!status.ok()) return status;
  std::stable_sort(
      explanation.reliefs.begin(), explanation.reliefs.end(),
      [](const LinkRelief& a, const LinkRelief& b) { return a.step_time < b.step_time; });
  return explanation;
}

std::string ExplanationText(const Explanation& explanation, Duration step_time) {
  if (explanation.levels.empty()) return "nothing travels between devices\n";
  std::string text = "busiest links, by level:\n";
  for (const LevelUse& level : explanation.levels) {
    absl::StrAppendFormat(&text, "  %-10s %s used, full for %s of the step: %s\n", level.level,
                          explain_cc::Percent(level.use.utilization),
                          explain_cc::Percent(level.full), level.link);
    std::vector<std::string> shares;
    for (const CarriedShare& carried : level.carried) {
      shares.push_back(
          absl::StrCat(carried.communication, " ", explain_cc::Percent(carried.share)));
    }
    absl::StrAppendFormat(&text, "  %-10s carries %s\n", "", absl::StrJoin(shares, ", "));
  }
  absl::StrAppend(&text, "what would relieve them (step time now ", ToString(step_time), "):\n");
  for (const LinkRelief& relief : explanation.reliefs) {
    const double change = relief.step_time.seconds() / step_time.seconds() - 1;
    absl::StrAppendFormat(&text, "  %-32s %10s  %+.1f %%\n", relief.change,
                          ToString(relief.step_time), 100 * change);
  }
  return text;
}

}  // namespace orrery::search
