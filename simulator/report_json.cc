#include "simulator/report_json.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "support/check.h"

namespace orrery::simulator {
namespace {

std::string Number(double value) {
  ORRERY_CHECK(std::isfinite(value)) << "JSON has no " << value;
  return absl::StrFormat("%.17g", value);
}

std::string Quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Global ranks with the class that each is of, by rank.
std::vector<std::pair<int32_t, RankClassId>> ClassesByRank(const Program& program) {
  std::vector<std::pair<int32_t, RankClassId>> ranks;
  for (int32_t i = 0; i < program.rank_count(); ++i) {
    for (const int32_t member : program.rank(RankClassId(i)).members) {
      ranks.emplace_back(member, RankClassId(i));
    }
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

// What follows "rank" in the entry of a device: the same text for all members of a class.
std::string DeviceFigures(const RankReport& rank) {
  std::string out =
      absl::StrCat(", \"finish_s\": ", Number(rank.finish.seconds()),
                   ", \"busy_s\": ", Number(rank.busy.seconds()),
                   ", \"communication_s\": ", Number(rank.communication.seconds()),
                   ", \"peak_memory_bytes\": ", rank.memory.total.count(), ", \"memory\": {");
  for (int i = 0; i < kMemoryKindCount; ++i) {
    const MemoryKind kind = static_cast<MemoryKind>(i);
    absl::StrAppend(&out, i > 0 ? ", " : "", "\"", ToString(kind),
                    "\": ", rank.memory.of(kind).count());
  }
  if (rank.host_memory > Bytes(0)) {
    absl::StrAppend(&out, "}, \"host_memory_bytes\": ", rank.host_memory.count());
    return absl::StrCat(out, "}");
  }
  return absl::StrCat(out, "}}");
}

std::string Devices(const Program& program, const Report& report) {
  IdTable<RankClassId, std::string> figures;
  for (int32_t i = 0; i < program.rank_count(); ++i) {
    figures.push_back(DeviceFigures(report.ranks[RankClassId(i)]));
  }
  std::string out;
  for (const auto& [rank, id] : ClassesByRank(program)) {
    absl::StrAppend(&out, out.empty() ? "\n" : ",\n", "    {\"rank\": ", rank, figures[id]);
  }
  return out.empty() ? "[]" : absl::StrCat("[", out, "\n  ]");
}

std::string Communication(const Report& report) {
  std::string out;
  for (const CommunicationReport& row : report.communication) {
    absl::StrAppend(&out, out.empty() ? "\n" : ",\n", "    {\"kind\": ", Quoted(row.kind),
                    ", \"level\": ", Quoted(row.level), ", \"bytes\": ", Number(row.bytes),
                    ", \"total_s\": ", Number(row.total_s),
                    ", \"exposed_s\": ", Number(row.exposed_s),
                    ", \"hidden_s\": ", Number(row.hidden_s), "}");
  }
  return out.empty() ? "[]" : absl::StrCat("[", out, "\n  ]");
}

}  // namespace

std::string ReportJson(const Program& program, const Report& report, const ModelFigures& figures) {
  ORRERY_CHECK(report.ranks.size() == program.rank_count()) << "the report is of another program";
  const std::vector<std::pair<absl::string_view, std::string>> fields = {
      {"step_time_s", Number(report.step_time.seconds())},
      {"throughput_samples_per_s", Number(figures.throughput_samples_per_s)},
      {"tokens_per_s", Number(figures.tokens_per_s)},
      {"mfu", Number(figures.mfu)},
      {"hfu", Number(figures.hfu)},
      {"communication_overhead", Number(report.communication_overhead)},
      {"exposed_communication_s", Number(report.exposed_communication_s)},
      {"communication", Communication(report)},
      {"bubble_fraction", Number(report.bubble_fraction)},
      {"peak_memory_bytes", absl::StrCat(report.peak_memory.count())},
      {"fits", report.fits ? "true" : "false"},
      {"devices", Devices(program, report)},
      {"bytes_sent", absl::StrCat(report.bytes_sent.count())},
      {"bytes_reduced", absl::StrCat(report.bytes_reduced.count())},
      {"simulated_tasks", absl::StrCat(report.simulated_tasks)},
      {"wall_time_s", Number(figures.wall_time_s)}};
  std::string out;
  for (const auto& [name, value] : fields) {
    absl::StrAppend(&out, out.empty() ? "{\n" : ",\n", "  \"", name, "\": ", value);
  }
  return absl::StrCat(out, "\n}\n");
}

}  // namespace orrery::simulator
