#ifndef ORRERY_TOOLS_REPORTS_SCALING_VIEW_H_
#define ORRERY_TOOLS_REPORTS_SCALING_VIEW_H_

#include <array>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "search/search.h"
#include "tools/reports/view.h"

// Throughput over devices, or over the one degree that a study changes: a line a search.

namespace orrery::tools {

/// The degrees that devices come from: dp, hp, pp, cp, ep.
inline constexpr size_t kDegreeCount = 5;

/// The fastest candidate of a search on so many devices.
struct ScalingPoint {
  int64_t devices = 1;
  std::array<int64_t, kDegreeCount> degrees = {};
  double throughput = 0;  // samples/s
  std::string plan = {};
};

/// What a search says of scaling.
struct ScalingLine {
  std::string model, cluster;
  int64_t batch_size = 1;
  std::vector<search::ModelColumn> model_columns = {};
  std::vector<ScalingPoint> points = {};                     // by devices
  std::array<std::set<int64_t>, kDegreeCount> degrees = {};  // those of all that fit
};

ScalingLine ScalingLineOf(const search::Setting& setting, const search::SearchRows& rows);

/// What tells each of several searches from the others, "dim 1024, batch 512": the keys of the
/// model, or the model where these are alike, batch size and cluster, as far as they differ. Of one
/// search the model.
std::vector<std::string> NamesOf(std::span<const ScalingLine> lines);

/// A line a search. x is the one degree in which candidates differ, or devices where they differ in
/// several. Searches of one point each that differ in the size of their cluster are one line.
ChartView ScalingChart(std::span<const ScalingLine> lines);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_REPORTS_SCALING_VIEW_H_
