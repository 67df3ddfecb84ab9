#include "tools/report_text.h"

#include <algorithm>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace orrery::tools {
namespace {

void PrintLine(absl::string_view name, absl::string_view value) {
  std::cout << absl::StrFormat("  %-24s %s\n", name, value);
}

std::string Percent(double fraction) { return absl::StrFormat("%.2f %%", 100 * fraction); }

}  // namespace

void PrintReportLines(const simulator::Report& report, const simulator::ModelFigures& figures,
                      bool of_model) {
  const double step_s = report.step_time.seconds();
  PrintLine("step time", absl::StrFormat("%s (%.12f s)", ToString(report.step_time), step_s));
  if (of_model) {
    PrintLine("throughput", absl::StrFormat("%.2f samples/s", figures.throughput_samples_per_s));
    PrintLine("model flops utilization", Percent(figures.mfu));
  }
  PrintLine("communication overhead", Percent(report.communication_overhead));
  const double exposed = step_s > 0 ? report.exposed_communication_s / step_s : 0;
  PrintLine("exposed communication",
            absl::StrFormat("%.6f s a rank, of the step %s", report.exposed_communication_s,
                            Percent(exposed)));
  for (const simulator::CommunicationReport& row : report.communication) {
    const absl::string_view separator = row.level.empty() ? "" : ", ";
    PrintLine(absl::StrCat("  ", row.kind, separator, row.level),
              absl::StrFormat("%.6f s exposed, %.6f s hidden, %s", row.exposed_s, row.hidden_s,
                              ToString(Bytes(static_cast<int64_t>(row.bytes)))));
  }
  PrintLine("bubble", Percent(report.bubble_fraction));
  PrintLine("peak memory",
            absl::StrCat(ToString(report.peak_memory), report.fits ? ", fits" : ", DOES NOT FIT"));
  Bytes host_memory;
  for (int32_t i = 0; i < report.ranks.size(); ++i) {
    host_memory = std::max(host_memory, report.ranks[simulator::RankClassId(i)].host_memory);
  }
  if (host_memory > Bytes(0)) PrintLine("host memory, a rank", ToString(host_memory));
  PrintLine("bytes sent, reduced",
            absl::StrCat(ToString(report.bytes_sent), ", ", ToString(report.bytes_reduced)));
  PrintLine("simulated",
            absl::StrFormat("%d tasks of %d rank classes in %.3f ms", report.simulated_tasks,
                            report.ranks.size(), 1e3 * figures.wall_time_s));
}

}  // namespace orrery::tools
