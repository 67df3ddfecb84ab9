#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tools/reports/run_sections.h"

// What links and devices do.

namespace orrery::tools {
namespace run_hardware_cc {
namespace {

using simulator::ResourceId;
using simulator::ResourceUse;

constexpr size_t kMostLinks = 20;  // of the table
constexpr size_t kMostLines = 4;   // of the chart
constexpr int32_t kBuckets = 200;  // of the time of a line
constexpr size_t kMostKernels = 400;

struct BusyLink {
  ResourceId id;
  ResourceUse use;
};

// Those that carried anything, the busiest first.
std::vector<BusyLink> BusyLinks(const PlayedPlan& played) {
  std::vector<BusyLink> links;
  const search::Run& run = played.run;
  if (!run.link_use.has_value()) return links;
  for (int32_t i = 0; i < run.program.resource_count(); ++i) {
    const ResourceUse use = run.link_use->Summarize(ResourceId(i), run.trace.makespan - Time(0));
    if (use.bytes > 0) links.push_back({ResourceId(i), use});
  }
  std::ranges::stable_sort(links, std::greater<>(),
                           [](const BusyLink& link) { return link.use.utilization; });
  return links;
}

std::string LinkName(const simulator::Resource& resource, ResourceId id) {
  return resource.name.empty() ? ToString(id) : resource.name;
}

TableView LinksTable(const PlayedPlan& played, const std::vector<BusyLink>& links) {
  const double step_s = played.run.trace.makespan.seconds();
  TableView table{.title = "The busiest links",
                  .columns = {{"link"},
                              {"level"},
                              {"carried", "bytes"},
                              {"of what it could", "share"},
                              {"busy", "share"},
                              {"full", "share"}}};
  for (size_t i = 0; i < std::min(links.size(), kMostLinks); ++i) {
    const simulator::Resource& resource = played.run.program.resource(links[i].id);
    const ResourceUse& use = links[i].use;
    const auto of_step = [&](Duration time) { return step_s > 0 ? time.seconds() / step_s : 0; };
    table.rows.push_back({LinkName(resource, links[i].id), resource.kind, use.bytes,
                          use.utilization, of_step(use.busy), of_step(use.full)});
  }
  return table;
}

// The mean use of a link in each bucket of the time, as a share of what it can.
Series UseOverTime(const PlayedPlan& played, const BusyLink& link) {
  const simulator::Resource& resource = played.run.program.resource(link.id);
  const double end = played.run.trace.makespan.seconds(), width = end / kBuckets;
  std::vector<double> bytes(kBuckets, 0);
  const auto intervals = played.run.link_use->intervals(link.id);
  for (size_t i = 0; i < intervals.size() && width > 0; ++i) {
    const double from = intervals[i].from.seconds();
    const double to = i + 1 < intervals.size() ? intervals[i + 1].from.seconds() : end;
    for (auto b = static_cast<int32_t>(from / width); b < kBuckets && b * width < to; ++b) {
      const double begin = std::max(from, b * width);
      const double until = b == kBuckets - 1 ? to : std::min(to, (b + 1) * width);
      if (until <= begin) continue;
      bytes[static_cast<size_t>(b)] += (until - begin) * intervals[i].bytes_per_second;
    }
  }
  Series series{.name = LinkName(resource, link.id)};
  if (!absl::StrContains(series.name, resource.kind)) {
    absl::StrAppend(&series.name, " (", resource.kind, ")");
  }
  for (int32_t b = 0; b < kBuckets; ++b) {
    const double could = width * static_cast<double>(resource.capacity.bytes_per_second());
    series.points.emplace_back(b * width, could > 0 ? bytes[static_cast<size_t>(b)] / could : 0);
  }
  return series;
}

// The busiest of each level.
ChartView LinksChart(const PlayedPlan& played, const std::vector<BusyLink>& links) {
  ChartView chart{.title = "The busiest link of each level over time",
                  .style = ChartStyle::kSteps,
                  .x = {"time", "s"},
                  .y = {"of what it can", "share"},
                  .panels = {Panel()},
                  .name = "links"};
  std::vector<std::string> seen;
  for (const BusyLink& link : links) {
    const std::string& level = played.run.program.resource(link.id).kind;
    if (std::ranges::find(seen, level) != seen.end() || seen.size() == kMostLines) continue;
    seen.push_back(level);
    chart.panels.front().series.push_back(UseOverTime(played, link));
  }
  return chart;
}

// A kernel of some label: how long it takes, all of them together and one.
struct KernelTime {
  Duration all;
  int64_t count = 0;
};

std::vector<KernelTime> KernelTimes(const PlayedPlan& played) {
  const simulator::Program& program = played.run.program;
  std::vector<KernelTime> times(static_cast<size_t>(program.label_count()));
  for (int32_t t = 0; t < program.task_count(); ++t) {
    const simulator::TaskId task(t);
    KernelTime& time = times[static_cast<size_t>(program.label_of(task).index())];
    time.all += played.run.trace.finish_of(task) - played.run.trace.start_of(task);
    ++time.count;
  }
  return times;
}

struct KernelPoint {
  double intensity = 0, rate = 0, seconds = 0;
  std::string text, kind;
};

// One a label, those that take longest.
std::vector<KernelPoint> KernelPoints(const PlayedPlan& played) {
  const simulator::Program& program = played.run.program;
  const std::vector<KernelTime> times = KernelTimes(played);
  std::vector<KernelPoint> points;
  for (int32_t l = 0; l < program.label_count(); ++l) {
    const simulator::TaskLabel label = program.label(simulator::LabelId(l));
    const KernelTime& time = times[static_cast<size_t>(l)];
    if (label.kind != simulator::TaskKind::kCompute || time.count == 0) continue;
    const double seconds = time.all.seconds() / static_cast<double>(time.count);
    const auto bytes = static_cast<double>(label.bytes.count());
    if (label.flops.count() <= 0 || bytes <= 0 || seconds <= 0) continue;
    const auto most = std::ranges::max_element(label.kernels) - label.kernels.begin();
    points.push_back(
        {.intensity = label.flops.count() / bytes,
         .rate = label.flops.count() / seconds,
         .seconds = time.all.seconds(),
         .text = absl::StrCat(label.name, ", ", ToString(label.phase), ", stage ", label.stage),
         .kind = std::string(ToString(static_cast<simulator::KernelKind>(most)))});
  }
  std::ranges::stable_sort(points, std::greater<>(), &KernelPoint::seconds);
  if (points.size() > kMostKernels) points.resize(kMostKernels);
  return points;
}

// What the device can do at most: by its memory, and by its units.
Series Roof(const std::string& name, double peak, double bandwidth, double least, double most) {
  const double ridge = peak / bandwidth;
  Series series{.name = name, .style = ChartStyle::kLine};
  series.points.emplace_back(least, least * bandwidth);
  if (ridge > least && ridge < most) series.points.emplace_back(ridge, peak);
  series.points.emplace_back(most, std::min(peak, most * bandwidth));
  return series;
}

}  // namespace
}  // namespace run_hardware_cc

Section LinksSection(const PlayedPlan& played) {
  Section section{.id = "links", .title = "Links"};
  const auto links = run_hardware_cc::BusyLinks(played);
  if (links.empty()) return section;
  section.text = {
      "What a library leaves of a link unused, as it reaches 95 % of its rate, counts as carried: "
      "it "
      "is more than the volume."};
  AddRounds(played, section);
  section.views = {run_hardware_cc::LinksTable(played, links),
                   run_hardware_cc::LinksChart(played, links)};
  return section;
}

Section RooflineSection(const PlayedPlan& played) {
  Section section{.id = "roofline", .title = "Kernels"};
  const auto points = run_hardware_cc::KernelPoints(played);
  if (points.empty()) return section;
  ChartView chart{.title = "Kernels beside what the device can do",
                  .style = ChartStyle::kPoints,
                  .x = {"intensity", "flop/byte", true},
                  .y = {"rate", "flop/s", true},
                  .panels = {Panel()},
                  .name = "roofline"};
  std::map<std::string, Series> by_kind;
  double least = points.front().intensity, most = least;
  for (const auto& point : points) {
    least = std::min(least, point.intensity);
    most = std::max(most, point.intensity);
    Series& series = by_kind[point.kind];
    series.points.emplace_back(point.intensity, point.rate);
    series.texts.push_back(point.text);
  }
  for (auto& [kind, series] : by_kind) {
    series.name = kind;
    chart.panels.front().series.push_back(std::move(series));
  }
  const cluster::Device& device = played.setting.cluster.kind(0);
  const auto bandwidth = static_cast<double>(device.memory_bandwidth.bytes_per_second());
  const auto roof = [&](const std::string& name, FlopRate peak) {
    const double rate = peak.flops_per_second();
    if (rate <= 0 || bandwidth <= 0) return;
    chart.panels.front().series.push_back(
        run_hardware_cc::Roof(name, rate, bandwidth, least, most));
  };
  roof(absl::StrCat(device.name, ", 16 bits"), device.fp16);
  roof(absl::StrCat(device.name, ", 32 bits"), device.fp32);
  section.text = {
      "Each point is a kernel, or a run of kernels that are played as one; lines are what "
      "the data sheet of the device promises."};
  section.views.emplace_back(std::move(chart));
  return section;
}

}  // namespace orrery::tools
