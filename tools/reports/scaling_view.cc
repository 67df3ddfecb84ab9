#include "tools/reports/scaling_view.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "support/number_text.h"
#include "transforms/plan/plan_text.h"

namespace orrery::tools {
namespace scaling_view_cc {
namespace {

constexpr const char* kDegrees[kDegreeCount] = {
    "data-parallel degree", "horizontal (tensor) parallel degree", "pipeline-parallel degree",
    "context-parallel degree", "expert-parallel degree"};

std::array<int64_t, kDegreeCount> DegreesOf(const search::ParallelPlan& plan) {
  return {plan.dp, plan.hp, plan.pp, plan.cp, plan.ep};
}

std::string TextOf(const search::ModelColumn& column) {
  if (const auto* whole = std::get_if<int64_t>(&column.value)) return absl::StrCat(*whole);
  if (const auto* number = std::get_if<double>(&column.value)) return ShortestText(*number);
  const auto* text = std::get_if<std::string>(&column.value);
  return text == nullptr ? "" : *text;
}

// What a line may be told by, in this order: keys, whole models, batch sizes, clusters.
std::vector<std::string> PartsOf(const ScalingLine& line) {
  std::vector<std::string> parts;
  for (const search::ModelColumn& column : line.model_columns) {
    const std::string text = TextOf(column);
    parts.push_back(text.empty() ? "" : absl::StrCat(column.name, " ", text));
  }
  parts.push_back(line.model);
  parts.push_back(absl::StrCat("batch ", line.batch_size));
  parts.push_back(line.cluster);
  return parts;
}

std::string FamilyOf(const std::string& model) { return model.substr(0, model.find(':')); }

// "dgx-a100:4" without the size: "dgx-a100".
std::string KindOfCluster(const std::string& cluster) {
  std::string kind = cluster;
  const size_t begin = kind.find(':');
  if (begin == std::string::npos) return kind;
  size_t end = begin + 1;
  while (end < kind.size() && absl::ascii_isdigit(static_cast<unsigned char>(kind[end]))) ++end;
  kind.erase(begin + 1, end - begin - 1);
  return begin + 1 == kind.size() ? kind.substr(0, begin) : kind;
}

// Puts searches together whose clusters differ in nothing but their size, where each has one point.
std::vector<ScalingLine> Joined(std::span<const ScalingLine> lines) {
  std::vector<ScalingLine> joined(lines.begin(), lines.end());
  const bool single =
      std::ranges::all_of(lines, [](const auto& line) { return line.points.size() <= 1; });
  if (!single || lines.size() < 2) return joined;
  joined.clear();
  for (const ScalingLine& line : lines) {
    const auto same = std::ranges::find_if(joined, [&](const ScalingLine& other) {
      return other.model == line.model && other.batch_size == line.batch_size &&
             other.cluster == KindOfCluster(line.cluster);
    });
    if (same == joined.end()) {
      joined.push_back(line);
      joined.back().cluster = KindOfCluster(line.cluster);
      continue;
    }
    same->points.insert(same->points.end(), line.points.begin(), line.points.end());
    for (size_t d = 0; d < kDegreeCount; ++d) {
      same->degrees[d].insert(line.degrees[d].begin(), line.degrees[d].end());
    }
  }
  for (ScalingLine& line : joined) std::ranges::sort(line.points, {}, &ScalingPoint::devices);
  return joined;
}

// The one degree in which candidates differ; kDegreeCount: there are several, or none.
size_t DegreeThatVaries(std::span<const ScalingLine> lines) {
  size_t found = kDegreeCount, count = 0;
  for (size_t d = 0; d < kDegreeCount; ++d) {
    std::set<int64_t> values;
    for (const ScalingLine& line : lines) {
      values.insert(line.degrees[d].begin(), line.degrees[d].end());
    }
    if (values.size() < 2) continue;
    found = d;
    ++count;
  }
  return count == 1 ? found : kDegreeCount;
}

// What all lines have in common.
std::string TitleOf(std::span<const ScalingLine> lines) {
  const auto alike = [&](auto part_of) {
    return std::ranges::all_of(
        lines, [&](const auto& line) { return part_of(line) == part_of(lines.front()); });
  };
  const ScalingLine& first = lines.front();
  std::string title = "Throughput";
  if (alike([](const ScalingLine& line) { return line.model; })) {
    absl::StrAppend(&title, " of ", first.model);
  } else if (alike([](const ScalingLine& line) { return FamilyOf(line.model); })) {
    absl::StrAppend(&title, " of ", FamilyOf(first.model));
    for (size_t c = 0; c < first.model_columns.size(); ++c) {
      const std::string text = PartsOf(first)[c];
      if (text.empty() || !alike([&](const ScalingLine& line) { return PartsOf(line)[c]; })) {
        continue;
      }
      absl::StrAppend(&title, ", ", text);
    }
  }
  if (alike([](const ScalingLine& line) { return line.batch_size; })) {
    absl::StrAppend(&title, ", batch ", first.batch_size);
  }
  const bool one_cluster = alike([](const ScalingLine& line) { return line.cluster; });
  return one_cluster ? absl::StrCat(title, ", on ", first.cluster) : title;
}

}  // namespace
}  // namespace scaling_view_cc

ScalingLine ScalingLineOf(const search::Setting& setting, const search::SearchRows& rows) {
  ScalingLine line{.model = setting.model_name,
                   .cluster = setting.cluster.name,
                   .batch_size = setting.batch_size,
                   .model_columns = setting.model_columns};
  std::map<int64_t, const search::Result*> best;
  for (const search::Result* result : FastestFirst(rows)) {
    best.try_emplace(result->plan.ranks(), result);
    const auto degrees = scaling_view_cc::DegreesOf(result->plan);
    for (size_t d = 0; d < kDegreeCount; ++d) line.degrees[d].insert(degrees[d]);
  }
  for (const auto& [devices, result] : best) {
    line.points.push_back({.devices = devices,
                           .degrees = scaling_view_cc::DegreesOf(result->plan),
                           .throughput = result->figures.throughput_samples_per_s,
                           .plan = transforms::ToString(result->plan, setting.base)});
  }
  return line;
}

std::vector<std::string> NamesOf(std::span<const ScalingLine> lines) {
  if (lines.size() == 1) return {lines.front().model};
  std::vector<std::vector<std::string>> told(lines.size());
  const size_t keys = lines.empty() ? 0 : lines.front().model_columns.size();
  bool keys_tell = false;
  for (size_t part = 0; part < keys + 3; ++part) {
    std::vector<std::string> texts;
    for (const ScalingLine& line : lines) {
      texts.push_back(scaling_view_cc::PartsOf(line)[part]);
    }
    const bool alike =
        std::ranges::all_of(texts, [&](const auto& text) { return text == texts.front(); });
    if (alike || (part == keys && keys_tell)) continue;
    keys_tell = keys_tell || part < keys;
    for (size_t i = 0; i < lines.size(); ++i) {
      if (!texts[i].empty()) told[i].push_back(std::move(texts[i]));
    }
  }
  std::vector<std::string> names;
  for (const auto& parts : told) names.push_back(absl::StrJoin(parts, ", "));
  return names;
}

ChartView ScalingChart(std::span<const ScalingLine> all) {
  ChartView chart{.title = "Throughput",
                  .x = {"devices", "", true},
                  .y = {"throughput", "samples/s", true},
                  .panels = {Panel()},
                  .name = "scaling"};
  const std::vector<ScalingLine> lines = scaling_view_cc::Joined(all);
  if (lines.empty()) return chart;
  chart.title = scaling_view_cc::TitleOf(lines);
  const size_t degree = scaling_view_cc::DegreeThatVaries(lines);
  if (degree < kDegreeCount) chart.x.name = scaling_view_cc::kDegrees[degree];
  const std::vector<std::string> names = NamesOf(lines);
  for (size_t i = 0; i < lines.size(); ++i) {
    Series series{.name = names[i]};
    for (const ScalingPoint& point : lines[i].points) {
      const int64_t x = degree < kDegreeCount ? point.degrees[degree] : point.devices;
      series.points.emplace_back(x, point.throughput);
      series.texts.push_back(point.plan);
    }
    chart.panels.front().series.push_back(std::move(series));
  }
  return chart;
}

}  // namespace orrery::tools
