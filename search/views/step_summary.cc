#include "search/views/step_summary.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "simulator/report/critical_path.h"
#include "transforms/plan/plan_text.h"

namespace orrery::search {

using simulator::KernelKind;
using simulator::RankClassId;

namespace step_summary_cc {
namespace {

// Sums by name, in the order in which the names come.
class Sums {
 public:
  void Add(const std::string& name, double seconds) {
    const auto [place, is_new] = places_.try_emplace(name, parts_.size());
    if (is_new) parts_.push_back({name, 0});
    parts_[place->second].seconds += seconds;
  }
  std::vector<StepPart> Finish() && {
    std::erase_if(parts_, [](const StepPart& part) { return part.seconds == 0; });
    return std::move(parts_);
  }

 private:
  std::map<std::string, size_t> places_;
  std::vector<StepPart> parts_;
};

void LongestFirst(std::vector<StepPart>& parts) {
  std::ranges::stable_sort(parts, std::greater<>(), &StepPart::seconds);
}

// "forward" and the like of kernels; of communication its kind.
std::string PathName(const simulator::TaskLabel& label) {
  if (label.kind == simulator::TaskKind::kCompute) {
    return absl::StrCat(std::string(ToString(label.phase)), " kernels");
  }
  return std::string(label.communication.empty() ? ToString(label.kind) : label.communication);
}

// "a 50.1 %, b 12.0 %", of so many seconds; at most so many, what is below a thousandth left out.
std::string SharesText(std::vector<StepPart> parts, double of, size_t most) {
  LongestFirst(parts);
  std::vector<std::string> texts;
  for (const StepPart& part : parts) {
    if (texts.size() == most || part.seconds < 1e-3 * of) break;
    texts.push_back(absl::StrFormat("%s %.1f %%", part.name, 100 * part.seconds / of));
  }
  return absl::StrJoin(texts, ", ");
}

std::string TimeText(double seconds) { return ToString(Duration::FromSeconds(seconds)); }

// "--zero 1   98.1 ms  -2.0 %, 1.2 GiB less a rank"
std::string ChangeLine(const ParallelPlan& plan, const Run& run, const Result& result) {
  const double change = result.step_time.seconds() / run.report.step_time.seconds() - 1;
  const Bytes was = run.report.peak_memory, is = result.peak_memory;
  std::string memory;
  if (is != was) {
    memory = absl::StrCat(", ", ToString(is > was ? is - was : was - is),
                          is > was ? " more" : " less", " a rank");
  }
  std::string devices;
  if (result.plan.ranks() != plan.ranks()) {
    devices = absl::StrCat(", ", result.plan.ranks(), " devices");
  }
  return absl::StrFormat("  %-36s %10s  %+.1f %%%s%s\n", ChangeText(plan, result.plan),
                         ToString(result.step_time), 100 * change, memory, devices);
}

// Where the time of a result goes.
std::string ThenText(const Result& result) {
  const double step = result.step_time.seconds();
  const double bubble = result.bubble_fraction * step;
  return SharesText({{"kernels", step - bubble - result.exposed_communication_s},
                     {"exposed communication", result.exposed_communication_s},
                     {"bubble", bubble}},
                    step, 3);
}

std::string ChangesText(const ParallelPlan& plan, const Run& run, const TriedChanges& tried) {
  const std::string of =
      absl::StrCat(tried.tried, " single changes of the plan",
                   tried.left > 0 ? absl::StrCat(" (", tried.left, " more not reached)") : "");
  if (tried.best.empty()) return absl::StrCat("none of ", of, " fits\n");
  const bool helps = tried.best.front().step_time < run.report.step_time || !run.report.fits;
  std::string text = absl::StrCat(helps ? "what helps most, of " : "nothing is faster among ", of,
                                  helps ? ":\n" : "; the nearest:\n");
  for (const Result& result : tried.best) text += ChangeLine(plan, run, result);
  if (helps) {
    absl::StrAppend(&text, "  with the first:          ", ThenText(tried.best.front()), "\n");
  }
  return text;
}

}  // namespace
}  // namespace step_summary_cc

std::vector<StepPart> PartsOf(const Run& run, const simulator::ReportDetails& details) {
  step_summary_cc::Sums sums;
  const simulator::Report& report = run.report;
  const double step = report.step_time.seconds(), bubble = report.bubble_fraction * step;
  double kernels = step - bubble - report.exposed_communication_s;
  constexpr std::pair<KernelKind, const char*> kKinds[] = {{KernelKind::kProduct, "products"},
                                                           {KernelKind::kAttention, "attention"},
                                                           {KernelKind::kUpdate, "updates"},
                                                           {KernelKind::kOther, "other kernels"}};
  for (const auto& [kind, name] : kKinds) {
    const double seconds = details.kernels[static_cast<size_t>(kind)];
    sums.Add(name, seconds);
    kernels -= seconds;
  }
  // Of a steady state nobody tells kernels apart; else this is what rounding leaves.
  if (kernels > 1e-9 * step) sums.Add("kernels", kernels);
  for (const simulator::CommunicationReport& row : report.communication) {
    sums.Add(absl::StrCat("exposed ", row.kind), row.exposed_s);
  }
  sums.Add("bubble", bubble);
  return std::move(sums).Finish();
}

std::vector<StepPart> PathParts(const Run& run) {
  step_summary_cc::Sums sums;
  for (const simulator::PathTask& row : simulator::CriticalPath(run.program, run.trace)) {
    const Duration took = run.trace.finish_of(row.task) - run.trace.start_of(row.task);
    sums.Add(step_summary_cc::PathName(run.program.label(run.program.label_of(row.task))),
             took.seconds());
    sums.Add("waiting", row.waited.seconds());
  }
  std::vector<StepPart> parts = std::move(sums).Finish();
  step_summary_cc::LongestFirst(parts);
  return parts;
}

std::vector<StepPart> LimitsOf(const Setting& setting, const Run& run) {
  const simulator::Report& report = run.report;
  const double step = report.step_time.seconds();
  std::vector<StepPart> limits;
  double longest = -1;
  int32_t busiest = 0;
  for (int32_t i = 0; i < run.program.rank_count(); ++i) {
    const simulator::RankReport& rank = report.ranks[RankClassId(i)];
    const double kernels = (report.step_time - rank.idle - rank.exposed_communication).seconds();
    if (kernels <= longest) continue;
    longest = kernels;
    busiest = run.program.rank(RankClassId(i)).members.front();
  }
  if (longest > 0) limits.push_back({absl::StrCat("kernels of rank ", busiest), longest});
  if (run.figures.hfu > 0) {
    limits.push_back({absl::StrCat("its flops at the peak of ", setting.cluster.device.name),
                      run.figures.hfu * step});
  }
  double used = 0;
  std::string link;
  for (int32_t i = 0; run.link_use.has_value() && i < run.program.resource_count(); ++i) {
    const simulator::ResourceId id(i);
    const double share = run.link_use->Summarize(id, run.trace.makespan).utilization;
    if (share <= used) continue;
    used = share;
    link = run.program.resource(id).kind;
  }
  if (used > 0)
    limits.push_back({absl::StrCat("bytes of the busiest ", link, " link"), used * step});
  step_summary_cc::LongestFirst(limits);
  return limits;
}

std::string SummaryText(const Setting& setting, const ParallelPlan& plan, const Run& run,
                        const simulator::ReportDetails& details, const TriedChanges& tried) {
  const double step = run.report.step_time.seconds();
  const double played = run.trace.makespan.seconds();
  std::string text = absl::StrCat("where the time goes        ",
                                  step_summary_cc::SharesText(PartsOf(run, details), step, 8), "\n",
                                  "critical path              ",
                                  step_summary_cc::SharesText(PathParts(run), played, 6), "\n");
  std::vector<std::string> limits;
  for (const StepPart& limit : LimitsOf(setting, run)) {
    limits.push_back(absl::StrCat(step_summary_cc::TimeText(limit.seconds), " ", limit.name));
  }
  absl::StrAppend(&text, "alone would take           ", absl::StrJoin(limits, ", "), "\n",
                  step_summary_cc::ChangesText(plan, run, tried));
  return text;
}

}  // namespace orrery::search
