#ifndef ORRERY_TOOLS_REPORTS_SEARCH_PLOTS_H_
#define ORRERY_TOOLS_REPORTS_SEARCH_PLOTS_H_

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "search/search.h"
#include "tools/reports/plot_files.h"
#include "tools/reports/scaling_view.h"

// The pictures of searches that --plot of `grid_search` draws.

namespace orrery::tools {

/// All of them: first the one that is drawn of one search where none is named.
std::span<const PlotView> SearchPlotViews();

/// Reads all --plot. `several`: of more than one search, of which another one is drawn where none
/// is named. InvalidArgument also where a view of one search is asked of several.
absl::StatusOr<std::vector<PlotFile>> ReadSearchPlots(const std::vector<std::string>& texts,
                                                      bool several);

/// Draws searches.
class SearchPlots {
 public:
  explicit SearchPlots(std::vector<PlotFile> files) : files_(std::move(files)) {}

  bool empty() const { return files_.empty(); }
  /// Keeps what pictures show of a search.
  void Add(const search::Setting& setting, const search::SearchRows& rows);
  /// Writes the files.
  absl::Status Write() const;
  /// That candidates without figures are in no picture; empty where there are none.
  std::string Warning() const;

 private:
  ChartView FrontChart() const;

  std::vector<PlotFile> files_;
  std::vector<Section> sections_;  // of views of one search
  std::vector<ScalingLine> lines_;
  std::vector<Series> fronts_;  // by search, as lines
  std::vector<Series> others_;
  size_t unplayed_ = 0;
};

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_REPORTS_SEARCH_PLOTS_H_
