#include "simulator/report/report_json.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "support/check.h"
#include "support/json_text.h"

namespace orrery::simulator {
namespace report_json_cc {
namespace {

// Behind which figures of the report those stand that it cannot tell by itself.
constexpr absl::string_view kBeforeModelFigures = "step_time_s";
constexpr absl::string_view kBeforeDevices = "fits";

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

std::string BubbleText(const MeanBubble& bubble) {
  return absl::StrCat("{\"warm_up_s\": ", JsonNumber(bubble.warm_up_s),
                      ", \"steady_s\": ", JsonNumber(bubble.steady_s),
                      ", \"cool_down_s\": ", JsonNumber(bubble.cool_down_s),
                      ", \"imbalance_s\": ", JsonNumber(bubble.imbalance_s), "}");
}

// What the details add to the entry of a device.
std::string DeviceDetails(const Program& program, const MemoryUse& peak, const Bubble& bubble) {
  return absl::StrCat(", \"peak_time_s\": ", JsonNumber(peak.time.seconds()),
                      ", \"peak_task\": ", JsonString(PeakTaskText(program, peak)),
                      ", \"bubble\": ",
                      BubbleText({.warm_up_s = bubble.warm_up.seconds(),
                                  .steady_s = bubble.steady.seconds(),
                                  .cool_down_s = bubble.cool_down.seconds(),
                                  .imbalance_s = bubble.imbalance.seconds()}));
}

// One line of numbers: `text_of` each use.
template <typename TextOf>
std::string Row(const std::vector<MemoryUse>& uses, TextOf text_of) {
  return absl::StrJoin(uses, ", ", [&](std::string* out, const MemoryUse& use) {
    absl::StrAppend(out, text_of(use));
  });
}

// A list of one line a row.
template <typename Row, typename TextOf>
std::string Rows(const std::vector<Row>& rows, const TextOf& text_of) {
  std::string out;
  for (const Row& row : rows) {
    absl::StrAppend(&out, out.empty() ? "\n" : ",\n", "    {", text_of(row), "}");
  }
  return out.empty() ? "[]" : absl::StrCat("[", out, "\n  ]");
}

// What ranks hold over time; those that hold the same are one entry, folded or not.
std::string MemoryOverTime(const Program& program, const ReportDetails& details) {
  IdTable<RankClassId, std::string> points_of;
  for (const std::vector<MemoryUse>& uses : details.memory.rows()) {
    points_of.push_back(absl::StrCat(
        "\"time_s\": [",
        Row(uses, [](const MemoryUse& use) { return JsonNumber(use.time.seconds()); }),
        "], \"bytes\": [", Row(uses, [](const MemoryUse& use) { return use.total.count(); }), "]"));
  }
  std::vector<std::pair<std::string, std::vector<int32_t>>> entries;
  for (const auto& [rank, id] : ClassesByRank(program)) {
    const std::string& points = points_of[id];
    const auto same = std::find_if(entries.begin(), entries.end(),
                                   [&](const auto& entry) { return entry.first == points; });
    if (same == entries.end()) {
      entries.push_back({points, {rank}});
    } else {
      same->second.push_back(rank);
    }
  }
  return Rows(entries, [](const auto& entry) {
    return absl::StrCat("\"ranks\": [", absl::StrJoin(entry.second, ", "), "], ", entry.first);
  });
}

std::string Versions(const ReportDetails& details) {
  return Rows(details.versions, [](const StageVersions& row) {
    return absl::StrCat("\"stage\": ", row.stage, ", \"pipeline_rank\": ", row.rank,
                        ", \"staleness\": ", row.staleness,
                        ", \"weight_versions\": ", row.weight_versions);
  });
}

std::string Kernels(const ReportDetails& details) {
  std::string out;
  for (size_t k = 0; k < details.kernels.size(); ++k) {
    absl::StrAppend(&out, k > 0 ? ", " : "", "\"", ToString(static_cast<KernelKind>(k)),
                    "_s\": ", JsonNumber(details.kernels[k]));
  }
  return absl::StrCat("{", out, "}");
}

std::string KernelSources(const ReportDetails& details) {
  std::string out;
  for (const auto& [name, source] : kTimeSourceNames) {
    absl::StrAppend(&out, out.empty() ? "" : ", ", "\"", name,
                    "\": ", JsonNumber(details.sources[static_cast<size_t>(source)]));
  }
  return absl::StrCat("{", out, "}");
}

std::string Stages(const ReportDetails& details) {
  return Rows(details.stages, [](const StageSize& row) {
    return absl::StrCat("\"stage\": ", row.stage, ", \"pipeline_rank\": ", row.rank,
                        ", \"layers\": ", row.layers, ", \"parameters\": ", row.parameters);
  });
}

// What follows "rank" in the entry of a device: the same text for all members of a class.
std::string DeviceFigures(const RankReport& rank) {
  std::string out =
      absl::StrCat(", \"finish_s\": ", JsonNumber(rank.finish.seconds()),
                   ", \"busy_s\": ", JsonNumber(rank.busy.seconds()),
                   ", \"communication_s\": ", JsonNumber(rank.communication.seconds()),
                   ", \"peak_memory_bytes\": ", rank.memory.total.count(), ", \"memory\": {");
  for (int i = 0; i < kMemoryKindCount; ++i) {
    const MemoryKind kind = static_cast<MemoryKind>(i);
    absl::StrAppend(&out, i > 0 ? ", " : "", "\"", ToString(kind),
                    "\": ", rank.memory.of(kind).count());
  }
  absl::StrAppend(&out, "}");
  if (rank.host_memory > Bytes(0)) {
    absl::StrAppend(&out, ", \"host_memory_bytes\": ", rank.host_memory.count());
  }
  return out;
}

std::string Devices(const Program& program, const Report& report, const ReportDetails* details) {
  IdTable<RankClassId, std::string> figures;
  for (int32_t i = 0; i < program.rank_count(); ++i) {
    const RankClassId id(i);
    const RankReport& rank = report.ranks[id];
    figures.push_back(absl::StrCat(
        DeviceFigures(rank),
        details == nullptr ? "" : DeviceDetails(program, rank.memory, details->bubbles[id]), "}"));
  }
  std::string out;
  for (const auto& [rank, id] : ClassesByRank(program)) {
    absl::StrAppend(&out, out.empty() ? "\n" : ",\n", "    {\"rank\": ", rank, figures[id]);
  }
  return out.empty() ? "[]" : absl::StrCat("[", out, "\n  ]");
}

std::string Nearest(const ErrorBar& bar) {
  std::string out;
  for (const NearStep& step : bar.nearest) {
    absl::StrAppend(&out, out.empty() ? "\n" : ",\n", "    {\"id\": ", JsonString(step.id),
                    ", \"distance\": ", JsonNumber(step.distance),
                    ", \"error\": ", JsonNumber(step.error), "}");
  }
  return out.empty() ? "[]" : absl::StrCat("[", out, "\n  ]");
}

}  // namespace
}  // namespace report_json_cc

std::string ReportJson(const Program& program, const Report& report, const ModelFigures& figures,
                       const ReportDetails* details) {
  ORRERY_CHECK(report.ranks.size() == program.rank_count()) << "the report is of another program";
  std::vector<std::pair<absl::string_view, std::string>> fields;
  for (const ReportFigure& figure : AllReportFigures()) {
    fields.emplace_back(figure.name, figure.json(report));
    if (figure.name == report_json_cc::kBeforeModelFigures) {
      fields.insert(fields.end(),
                    {{"throughput_samples_per_s", JsonNumber(figures.throughput_samples_per_s)},
                     {"tokens_per_s", JsonNumber(figures.tokens_per_s)},
                     {"mfu", JsonNumber(figures.mfu)},
                     {"hfu", JsonNumber(figures.hfu)}});
    } else if (figure.name == report_json_cc::kBeforeDevices) {
      fields.emplace_back("devices", report_json_cc::Devices(program, report, details));
    }
  }
  fields.emplace_back("wall_time_s", JsonNumber(figures.wall_time_s));
  if (details != nullptr) {
    fields.emplace_back("bubble", report_json_cc::BubbleText(MeanOf(program, details->bubbles)));
    fields.emplace_back("kernels", report_json_cc::Kernels(*details));
    if (!AreNone(details->sources)) {
      fields.emplace_back("kernel_shares", report_json_cc::KernelSources(*details));
    }
    fields.emplace_back("memory_timeline", report_json_cc::MemoryOverTime(program, *details));
    fields.emplace_back("weight_versions", report_json_cc::Versions(*details));
    fields.emplace_back("slices", absl::StrCat("[", absl::StrJoin(details->slices, ", "), "]"));
    fields.emplace_back("stages", report_json_cc::Stages(*details));
    fields.emplace_back("assumed", JsonString(details->assumed));
    if (details->error_bar.has_value()) {
      const ErrorBar& bar = *details->error_bar;
      const auto end = [&](double s) { return bar.none.empty() ? JsonNumber(s) : "null"; };
      fields.emplace_back("step_time_low_s", end(bar.low_s));
      fields.emplace_back("step_time_high_s", end(bar.high_s));
      fields.emplace_back("nearest_measured", report_json_cc::Nearest(bar));
    }
    fields.insert(fields.end(), details->further.begin(), details->further.end());
  }
  std::string out;
  for (const auto& [name, value] : fields) {
    absl::StrAppend(&out, out.empty() ? "{\n" : ",\n", "  \"", name, "\": ", value);
  }
  return absl::StrCat(out, "\n}\n");
}

}  // namespace orrery::simulator
