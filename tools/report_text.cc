#include "tools/report_text.h"

#include <algorithm>
#include <iostream>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "support/number_text.h"
#include "support/units.h"
#include "tools/terminal/terminal.h"

namespace orrery::tools {
namespace report_text_cc {
namespace {

void PrintLine(absl::string_view name, absl::string_view value) {
  std::cout << WrapLines(absl::StrFormat("  %-24s %s\n", name, value), 27, OutputTerminal());
}

std::string Seconds(double seconds) {
  return seconds == 0 ? "0 s" : ToString(Duration::FromSeconds(seconds));
}

std::string Percent(double fraction) { return absl::StrFormat("%.2f %%", 100 * fraction); }

// A model of costs need not know the device: distir has constants of its own. Kernels of attention
// leave out what a causal mask hides, and flops, as published formulas do, count it.
constexpr absl::string_view kBeyondPeak =
    ": more than the device can do; the cost model does not keep to its peak, or keys that a "
    "causal mask hides count";

// ": warm-up 1.00 %, …" of the step; empty where there is no bubble.
std::string BubbleParts(const simulator::MeanBubble& bubble, double step_s) {
  std::string text;
  const auto add = [&](absl::string_view name, double part_s) {
    if (part_s <= 0) return;
    absl::StrAppend(&text, text.empty() ? ": " : ", ", name, " ", Percent(part_s / step_s));
  };
  add("warm-up", bubble.warm_up_s);
  add("steady", bubble.steady_s);
  add("cool-down", bubble.cool_down_s);
  add("imbalance", bubble.imbalance_s);
  return text;
}

// Of the rank that needs most: what its memory is made of when it does, and what runs then.
void PrintMemory(const simulator::Program& program, const simulator::Report& report) {
  const auto& ranks = report.ranks.rows();
  const auto most = std::max_element(ranks.begin(), ranks.end(), [](const auto& a, const auto& b) {
    return a.memory.total < b.memory.total;
  });
  std::string where, parts;
  if (most != ranks.end()) {
    const simulator::RankClassId id(static_cast<int32_t>(most - ranks.begin()));
    where = absl::StrCat(" on rank ", program.rank(id).members.front());
    parts = simulator::CompositionText(most->memory);
  }
  PrintLine("peak memory", absl::StrCat(ToString(report.peak_memory), where,
                                        report.fits ? ", fits" : ", DOES NOT FIT",
                                        parts.empty() ? "" : ": ", parts));
  if (most == ranks.end() || !most->memory.task.valid()) return;
  PrintLine("  reached", absl::StrCat("at ", ToString(most->memory.time), " by ",
                                      PeakTaskText(program, most->memory)));
}

// Two lines of a number a stage.
void PrintStages(const simulator::ReportDetails& details) {
  if (details.stages.empty()) return;
  std::string layers, parameters;
  for (const simulator::StageSize& row : details.stages) {
    absl::StrAppend(&layers, row.stage == 0 ? "" : " ", row.layers);
    absl::StrAppend(&parameters, row.stage == 0 ? "" : ", ",
                    ShortNumber(static_cast<double>(row.parameters)));
  }
  PrintLine("layers", absl::StrCat(layers, ", by stage"));
  PrintLine("parameters", absl::StrCat(parameters, ", by stage"));
}

// Of the step: with exposed communication and the bubble all of it.
void PrintKernels(const simulator::KernelSeconds& kernels, double step_s) {
  std::string text;
  for (size_t k = 0; k < kernels.size(); ++k) {
    if (kernels[k] <= 0 || step_s <= 0) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ",
                    ToString(static_cast<simulator::KernelKind>(k)), " ",
                    Percent(kernels[k] / step_s));
  }
  if (!text.empty()) PrintLine("kernels", text);
}

// Of the time of kernels, where any of it was measured.
void PrintSources(const SourceShares& sources) {
  if (AreNone(sources)) return;
  std::string text;
  for (const auto& [name, source] : kTimeSourceNames) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", name, " ",
                    Percent(sources[static_cast<size_t>(source)]));
  }
  PrintLine("  of their time", text);
}

// How far off the step time may be, behind it.
void PrintErrorBar(const std::optional<simulator::ErrorBar>& bar) {
  if (!bar.has_value()) return;
  if (!bar->none.empty()) {
    PrintLine("error bar", absl::StrCat("no measured step is near: ", bar->none));
    return;
  }
  PrintLine(
      "error bar",
      absl::StrFormat(
          "%s to %s (%.1f %%), which %.0f %% of the %d nearest measured steps keep "
          "to%s; nearest %s",
          ToString(Duration::FromSeconds(bar->low_s)), ToString(Duration::FromSeconds(bar->high_s)),
          100 * bar->spread, 100 * bar->share, bar->nearest.size(),
          bar->other_software ? ", all by other software" : "", bar->nearest.front().id));
}

// One number a stage.
void PrintVersions(const simulator::ReportDetails& details) {
  if (details.versions.empty()) return;
  std::string staleness, versions;
  for (const simulator::StageVersions& row : details.versions) {
    absl::StrAppend(&staleness, row.stage == 0 ? "" : " ", row.staleness);
    absl::StrAppend(&versions, row.stage == 0 ? "" : " ", row.weight_versions);
  }
  PrintLine("gradients", absl::StrCat(staleness, " updates late, by stage"));
  PrintLine("versions of the weights", absl::StrCat(versions, ", by stage"));
}

}  // namespace
}  // namespace report_text_cc

void PrintReportLines(const simulator::Program& program, const simulator::Report& report,
                      const simulator::ReportDetails& details,
                      const simulator::ModelFigures& figures, bool of_model) {
  const double step_s = report.step_time.seconds();
  report_text_cc::PrintLine("step time",
                            absl::StrFormat("%s (%.12f s)", ToString(report.step_time), step_s));
  report_text_cc::PrintErrorBar(details.error_bar);
  if (of_model) {
    report_text_cc::PrintLine(
        "throughput", absl::StrCat(ShortNumber(figures.throughput_samples_per_s), " samples/s"));
    const bool more = figures.hfu > 1.001 * figures.mfu;
    report_text_cc::PrintLine(
        "model flops utilization",
        absl::StrCat(report_text_cc::Percent(figures.mfu), more ? "; of hardware flops " : "",
                     more ? report_text_cc::Percent(figures.hfu) : "",
                     std::max(figures.mfu, figures.hfu) > 1 ? report_text_cc::kBeyondPeak : ""));
  }
  report_text_cc::PrintKernels(details.kernels, step_s);
  report_text_cc::PrintSources(details.sources);
  if (!details.assumed.empty()) report_text_cc::PrintLine("assumed", details.assumed);
  report_text_cc::PrintLine("communication overhead",
                            report_text_cc::Percent(report.communication_overhead));
  const double exposed = step_s > 0 ? report.exposed_communication_s / step_s : 0;
  report_text_cc::PrintLine(
      "exposed communication",
      absl::StrCat(report_text_cc::Seconds(report.exposed_communication_s), " a rank, of the step ",
                   report_text_cc::Percent(exposed)));
  for (const simulator::CommunicationReport& row : report.communication) {
    const absl::string_view separator = row.level.empty() ? "" : ", ";
    report_text_cc::PrintLine(absl::StrCat("  ", row.kind, separator, row.level),
                              absl::StrCat(report_text_cc::Seconds(row.exposed_s), " exposed, ",
                                           report_text_cc::Seconds(row.hidden_s), " hidden, ",
                                           ToString(Bytes(static_cast<int64_t>(row.bytes)))));
  }
  report_text_cc::PrintLine("bubble", absl::StrCat(report_text_cc::Percent(report.bubble_fraction),
                                                   report_text_cc::BubbleParts(
                                                       MeanOf(program, details.bubbles), step_s)));
  report_text_cc::PrintMemory(program, report);
  Bytes host_memory;
  for (int32_t i = 0; i < report.ranks.size(); ++i) {
    host_memory = std::max(host_memory, report.ranks[simulator::RankClassId(i)].host_memory);
  }
  if (host_memory > Bytes(0))
    report_text_cc::PrintLine("host memory, a rank", ToString(host_memory));
  report_text_cc::PrintStages(details);
  report_text_cc::PrintVersions(details);
  report_text_cc::PrintLine("bytes sent, reduced", absl::StrCat(ToString(report.bytes_sent), ", ",
                                                                ToString(report.bytes_reduced)));
  report_text_cc::PrintLine(
      "simulated",
      absl::StrFormat("%d tasks of %d rank classes in %s", report.simulated_tasks,
                      report.ranks.size(), report_text_cc::Seconds(figures.wall_time_s)));
}

}  // namespace orrery::tools
