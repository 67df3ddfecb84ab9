#include "tools/reports/run_views.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "simulator/report/step_parts.h"
#include "tools/reports/run_sections.h"
#include "transforms/plan/plan_text.h"
#include "transforms/sharding/facts/axis_use.h"

namespace orrery::tools {
namespace run_views_cc {
namespace {

using simulator::RankClassId;
using simulator::RankReport;

constexpr int32_t kMostRanks = 64;  // of a chart with a bar each

std::vector<Figure> FiguresOf(const PlayedPlan& played) {
  const simulator::Report& report = played.run.report;
  const simulator::ModelFigures& model = played.run.figures;
  return {
      {"step_time_s", "step time", "s", report.step_time.seconds()},
      {"throughput_samples_per_s", "throughput", "samples/s", model.throughput_samples_per_s},
      {"tokens_per_s", "tokens", "tokens/s", model.tokens_per_s},
      {"mfu", "model flops utilization", "share", model.mfu},
      {"hfu", "hardware flops utilization", "share", model.hfu},
      {"communication_overhead", "communication overhead", "share", report.communication_overhead},
      {"exposed_communication_s", "exposed communication", "s", report.exposed_communication_s},
      {"bubble_fraction", "bubble", "share", report.bubble_fraction},
      {"peak_memory_bytes", "peak memory", "bytes", report.peak_memory.count()},
      {"fits", "fits", "", report.fits}};
}

// A bar each: some ranks, evenly chosen.
std::vector<RankClassId> RanksShown(const simulator::Program& program) {
  std::vector<RankClassId> ranks;
  for (const int32_t rank : Evenly(program.rank_count(), kMostRanks)) ranks.emplace_back(rank);
  return ranks;
}

std::vector<std::string> NamesOf(const simulator::Program& program,
                                 const std::vector<RankClassId>& ranks) {
  std::vector<std::string> names;
  for (const RankClassId rank : ranks) names.push_back(RankName(program, rank));
  return names;
}

// Adds `value_of` each rank as bars on top of those before; nothing where all are 0.
template <typename ValueOf>
void AddBars(const std::string& name, const std::vector<RankClassId>& ranks,
             const ValueOf& value_of, ChartView& chart) {
  Series series{.name = name};
  bool any = false;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const double value = value_of(ranks[i]);
    any = any || value != 0;
    series.points.emplace_back(static_cast<double>(i), value);
  }
  if (any) chart.panels.front().series.push_back(std::move(series));
}

// Where the step of each rank goes.
ChartView BreakdownOfRanks(const PlayedPlan& played) {
  const simulator::Program& program = played.run.program;
  const simulator::Report& report = played.run.report;
  const std::vector<RankClassId> ranks = RanksShown(program);
  ChartView chart{.title = "The step of each rank",
                  .style = ChartStyle::kStackedBars,
                  .x = {"rank"},
                  .y = {"time", "s"},
                  .categories = NamesOf(program, ranks),
                  .panels = {Panel()},
                  .name = "breakdown"};
  AddBars(
      "computing", ranks,
      [&](RankClassId id) {
        const RankReport& rank = report.ranks[id];
        return (report.step_time - rank.exposed_communication - rank.idle).seconds();
      },
      chart);
  AddBars(
      "exposed communication", ranks,
      [&](RankClassId id) { return report.ranks[id].exposed_communication.seconds(); }, chart);
  const auto add_bubble = [&](const char* name, Duration simulator::Bubble::*part) {
    AddBars(
        name, ranks, [&](RankClassId id) { return (played.details.bubbles[id].*part).seconds(); },
        chart);
  };
  if (played.details.bubbles.size() != program.rank_count()) return chart;
  add_bubble("bubble: warm-up", &simulator::Bubble::warm_up);
  add_bubble("bubble: steady", &simulator::Bubble::steady);
  add_bubble("bubble: cool-down", &simulator::Bubble::cool_down);
  add_bubble("bubble: imbalance", &simulator::Bubble::imbalance);
  return chart;
}

// The same as a mean over all ranks, with kernels and communication by kind.
TableView BreakdownTable(const PlayedPlan& played) {
  const simulator::Report& report = played.run.report;
  const double step_s = report.step_time.seconds();
  TableView table{.title = "The step, mean over all ranks",
                  .columns = {{"what"}, {"time", "s"}, {"of the step", "share"}}};
  constexpr absl::string_view kKinds[] = {"kernels", "exposed", "bubble"};  // by StepPartKind
  for (const simulator::StepPart& part : StepPartsOf(played.run.program, report, played.details)) {
    table.rows.push_back({absl::StrCat(kKinds[static_cast<size_t>(part.kind)], ": ", part.name,
                                       part.level.empty() ? "" : ", ", part.level),
                          part.seconds, step_s > 0 ? part.seconds / step_s : 0});
  }
  return table;
}

RankClassId FullestRank(const simulator::Report& report) {
  const auto& ranks = report.ranks.rows();
  const auto most =
      std::ranges::max_element(ranks, {}, [](const RankReport& rank) { return rank.memory.total; });
  return RankClassId(static_cast<int32_t>(most - ranks.begin()));
}

ChartView MemoryOverTime(const PlayedPlan& played, RankClassId rank) {
  const std::vector<simulator::MemoryUse>& uses = played.details.memory[rank];
  ChartView chart{.title = absl::StrCat("Memory of ", RankName(played.run.program, rank)),
                  .style = ChartStyle::kArea,
                  .x = {"time", "s"},
                  .y = {"memory", "bytes"},
                  .panels = {Panel()},
                  .name = "memory"};
  for (int32_t k = 0; k < simulator::kMemoryKindCount; ++k) {
    const auto kind = static_cast<simulator::MemoryKind>(k);
    Series series{.name = std::string(ToString(kind))};
    bool any = false;
    for (const simulator::MemoryUse& use : uses) {
      any = any || use.of(kind) > Bytes(0);
      series.points.emplace_back(use.time.seconds(), static_cast<double>(use.of(kind).count()));
    }
    if (any) chart.panels.front().series.push_back(std::move(series));
  }
  return chart;
}

ChartView PeakOfRanks(const PlayedPlan& played) {
  const simulator::Program& program = played.run.program;
  const std::vector<RankClassId> ranks = RanksShown(program);
  ChartView chart{.title = "The peak of each rank",
                  .style = ChartStyle::kStackedBars,
                  .x = {"rank"},
                  .y = {"memory", "bytes"},
                  .categories = NamesOf(program, ranks),
                  .panels = {Panel()},
                  .name = "memory-ranks"};
  for (int32_t k = 0; k < simulator::kMemoryKindCount; ++k) {
    const auto kind = static_cast<simulator::MemoryKind>(k);
    AddBars(
        std::string(ToString(kind)), ranks,
        [&](RankClassId id) {
          return static_cast<double>(played.run.report.ranks[id].memory.of(kind).count());
        },
        chart);
  }
  return chart;
}

TableView StagesTable(const PlayedPlan& played) {
  const simulator::ReportDetails& details = played.details;
  TableView table{.title = "Stages",
                  .columns = {{"stage"}, {"pipeline rank"}, {"layers"}, {"parameters"}}};
  if (!details.versions.empty()) {
    table.columns.insert(table.columns.end(), {{"staleness"}, {"weight versions"}});
  }
  for (size_t i = 0; i < details.stages.size(); ++i) {
    const simulator::StageSize& stage = details.stages[i];
    std::vector<Cell>& row = table.rows.emplace_back(std::vector<Cell>{
        int64_t{stage.stage}, int64_t{stage.rank}, stage.layers, stage.parameters});
    if (details.versions.empty()) continue;
    const bool known = i < details.versions.size();
    row.push_back(known ? Cell(int64_t{details.versions[i].staleness}) : Cell());
    row.push_back(known ? Cell(int64_t{details.versions[i].weight_versions}) : Cell());
  }
  return table;
}

std::string ErrorBarText(const simulator::ErrorBar& bar) {
  if (!bar.none.empty()) return absl::StrCat("No measured step is near: ", bar.none, ".");
  return absl::StrFormat(
      "Measured steps like it: %.0f %% of the %d nearest lie within %.1f %% of their predictions: "
      "%s to %s%s.",
      100 * bar.share, bar.nearest.size(), 100 * bar.spread,
      ToString(Duration::FromSeconds(bar.low_s)), ToString(Duration::FromSeconds(bar.high_s)),
      bar.other_software ? ", all by other software" : "");
}

TableView NearestTable(const simulator::ErrorBar& bar) {
  TableView table{.title = "The nearest measured steps",
                  .columns = {{"measurement"}, {"distance, doublings"}, {"error", "share"}}};
  for (const simulator::NearStep& step : bar.nearest) {
    table.rows.push_back({step.id, step.distance, step.error});
  }
  return table;
}

}  // namespace
}  // namespace run_views_cc

Section BreakdownSection(const PlayedPlan& played) {
  return {.id = "breakdown",
          .title = "Where the time goes",
          .views = {run_views_cc::BreakdownTable(played), run_views_cc::BreakdownOfRanks(played)}};
}

Section MemorySection(const PlayedPlan& played) {
  const simulator::Report& report = played.run.report;
  if (report.ranks.empty()) return {};
  const simulator::RankClassId fullest = run_views_cc::FullestRank(report);
  const simulator::RankClass& rank = played.run.program.rank(fullest);
  const simulator::MemoryUse& peak = report.ranks[fullest].memory;
  Section section{.id = "memory", .title = "Memory"};
  section.text.push_back(absl::StrCat(
      RankName(played.run.program, fullest), " needs most: ", ToString(report.peak_memory),
      rank.capacity > Bytes(0) ? absl::StrCat(" of ", ToString(rank.capacity)) : "",
      report.fits ? ", which fits" : ", which does not fit", ", at ", ToString(peak.time), " by ",
      PeakTaskText(played.run.program, peak), "."));
  if (played.details.memory.size() == report.ranks.size()) {
    Bytes most;
    for (const simulator::MemoryUse& use : played.details.memory[fullest]) {
      most = std::max(most, use.total);
    }
    if (most != peak.total) {
      section.text.push_back(absl::StrCat(
          "Over time it is told kernel by kernel, and without what an allocator loses: ",
          ToString(most), " at most."));
    }
    AddRounds(played, section);
    section.views.emplace_back(run_views_cc::MemoryOverTime(played, fullest));
  }
  section.views.emplace_back(run_views_cc::PeakOfRanks(played));
  return section;
}

Section CommunicationSection(const PlayedPlan& played) {
  Section section{.id = "communication", .title = "Communication"};
  TableView table{.title = "By kind and level of the network, a rank",
                  .columns = {{"kind"},
                              {"level"},
                              {"volume", "bytes"},
                              {"time", "s"},
                              {"exposed", "s"},
                              {"hidden", "s"}}};
  ChartView chart{.title = "Communication of a rank, mean over all",
                  .style = ChartStyle::kStackedBars,
                  .y = {"time", "s"},
                  .panels = {{.series = {{.name = "exposed"}, {.name = "hidden"}}}},
                  .name = "communication"};
  std::vector<Series>& bars = chart.panels.front().series;
  for (const simulator::CommunicationReport& row : played.run.report.communication) {
    table.rows.push_back(
        {row.kind, row.level, row.bytes, row.total_s, row.exposed_s, row.hidden_s});
    const auto place = static_cast<double>(chart.categories.size());
    chart.categories.push_back(absl::StrCat(row.kind, row.level.empty() ? "" : ", ", row.level));
    bars[0].points.emplace_back(place, row.exposed_s);
    bars[1].points.emplace_back(place, row.hidden_s);
  }
  if (!table.rows.empty()) section.views = {std::move(table), std::move(chart)};
  return section;
}

Section StagesSection(const PlayedPlan& played) {
  Section section{.id = "stages", .title = "Stages and shards"};
  const std::string split = HpSplitText(played.run, played.plan.most_hp());
  if (!split.empty()) section.text.push_back(absl::StrCat("hp splits ", split, "."));
  const std::string padded = transforms::ToString(played.run.pipelined.padded);
  if (!padded.empty()) section.text.push_back(absl::StrCat("Padded: ", padded, "."));
  if (const std::string gathered = ToString(played.run.pipelined.gathered); !gathered.empty()) {
    section.text.push_back(absl::StrCat("Data parallelism gathers activations: ", gathered, "."));
  }
  if (!played.details.stages.empty()) {
    section.views.emplace_back(run_views_cc::StagesTable(played));
  }
  return section;
}

Section BasisSection(const PlayedPlan& played) {
  const simulator::ReportDetails& details = played.details;
  Section section{.id = "basis", .title = "What stands behind the figures"};
  if (details.error_bar.has_value()) {
    section.text.push_back(run_views_cc::ErrorBarText(*details.error_bar));
  }
  if (!details.assumed.empty()) {
    section.text.push_back(absl::StrCat("Assumed: ", details.assumed, "."));
  }
  if (!AreNone(details.sources)) {
    TableView table{.title = "Time of kernels, by where it is from",
                    .columns = {{"source"}, {"of the time", "share"}}};
    for (const auto& [name, source] : kTimeSourceNames) {
      table.rows.push_back({std::string(name), details.sources[static_cast<size_t>(source)]});
    }
    section.views.emplace_back(std::move(table));
  }
  if (details.error_bar.has_value() && !details.error_bar->nearest.empty()) {
    section.views.emplace_back(run_views_cc::NearestTable(*details.error_bar));
  }
  return section;
}

std::string HpSplitText(const search::Run& run, int64_t hp) {
  std::vector<const ir::Function*> functions;
  for (const auto& stage : run.pipelined.stages) {
    for (const transforms::StageFunction* part : stage.parts()) {
      functions.push_back(&part->function);
    }
  }
  const std::string split = ToString(transforms::UsesOfAxis(functions, "hp"));
  return split.empty() && hp > 1 ? absl::StrCat("nothing: all ", hp, " ranks do the same") : split;
}

RunDocument RunViews(const PlayedPlan& played, const std::string& name) {
  constexpr MakeSection kSections[] = {TimelineSection, BreakdownSection,     CriticalPathSection,
                                       MemorySection,   CommunicationSection, LinksSection,
                                       RooflineSection, StagesSection,        BasisSection};
  RunDocument document{.name = name,
                       .flags = transforms::ToString(played.plan, played.setting.base),
                       .figures = run_views_cc::FiguresOf(played)};
  for (const MakeSection make : kSections) {
    Section section = make(played);
    if (section.views.empty() && section.text.empty()) continue;
    document.sections.push_back(std::move(section));
  }
  return document;
}

}  // namespace orrery::tools
