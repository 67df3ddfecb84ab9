#include "search/views/step_summary.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "simulator/report/critical_path.h"
#include "simulator/report/step_parts.h"
#include "transforms/plan/plan_text.h"

namespace orrery::search {

using simulator::RankClassId;

namespace step_summary_cc {
namespace {

void LongestFirst(std::vector<NamedTime>& parts) {
  std::ranges::stable_sort(parts, std::greater<>(), &NamedTime::seconds);
}

// "a 50.1 %, b 12.0 %", of so many seconds; at most so many, what is below a thousandth left out.
std::string SharesText(std::vector<NamedTime> parts, double of, size_t most) {
  LongestFirst(parts);
  std::vector<std::string> texts;
  for (const NamedTime& part : parts) {
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
  for (const Result& result : tried.best) {
    // What takes longer is no help, unless nothing helps.
    if (helps && run.report.fits && result.step_time > run.report.step_time) break;
    text += ChangeLine(plan, run, result);
  }
  if (helps) {
    absl::StrAppend(&text, "  with the first:          ", ThenText(tried.best.front()), "\n");
  }
  return text;
}

// What the device waits for the host to launch, which is time of kernels elsewhere.
std::string LaunchesText(const Run& run, const TriedChanges& tried) {
  constexpr double kLittle = 0.01;
  if (!tried.without_launches.has_value()) return "";
  const double step = run.report.step_time.seconds();
  const double waits = step - tried.without_launches->seconds();
  if (waits < kLittle * step) return "";
  return absl::StrFormat(
      "waits for its host         %s, %.1f %% of the step, as it launches kernels more slowly than "
      "they run: %s without; try --cuda-graphs\n",
      TimeText(waits), 100 * waits / step, TimeText(tried.without_launches->seconds()));
}

}  // namespace
}  // namespace step_summary_cc

std::vector<NamedTime> PartsOf(const Run& run, const simulator::ReportDetails& details) {
  std::vector<NamedTime> parts;
  const auto add = [&](const std::string& name, double seconds) {
    auto part = std::ranges::find(parts, name, &NamedTime::name);
    if (part == parts.end()) part = parts.insert(part, {name, 0});
    part->seconds += seconds;
  };
  using simulator::StepPartKind;
  for (const simulator::StepPart& part : StepPartsOf(run.program, run.report, details)) {
    add(part.kind == StepPartKind::kBubble    ? "bubble"
        : part.kind == StepPartKind::kExposed ? absl::StrCat("exposed ", part.name)
        : part.name == "others"               ? "other kernels"
                                              : part.name,
        part.seconds);
  }
  return parts;
}

std::vector<NamedTime> PathParts(const Run& run) {
  std::vector<NamedTime> parts;
  for (const simulator::PathPart& part : PathPartsOf(run.program, run.trace)) {
    parts.push_back({part.kind, part.time.seconds()});
  }
  return parts;
}

std::vector<NamedTime> LimitsOf(const Setting& setting, const Run& run) {
  const simulator::Report& report = run.report;
  const double step = report.step_time.seconds();
  std::vector<NamedTime> limits;
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
  for (const NamedTime& limit : LimitsOf(setting, run)) {
    limits.push_back(absl::StrCat(step_summary_cc::TimeText(limit.seconds), " ", limit.name));
  }
  absl::StrAppend(&text, "alone would take           ", absl::StrJoin(limits, ", "), "\n",
                  step_summary_cc::LaunchesText(run, tried),
                  step_summary_cc::ChangesText(plan, run, tried));
  return text;
}

}  // namespace orrery::search
