#include "tools/reports/plot_files.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "support/printable.h"
#include "support/status.h"
#include "support/word_list.h"
#include "tools/reports/plot_views.h"

namespace orrery::tools {
namespace plot_files_cc {
namespace {

// The name of a view before the file; empty where there is none. Names of files that begin like
// one, "a=b.svg", are "./a=b.svg".
absl::string_view ViewIn(absl::string_view text) {
  const absl::string_view name = text.substr(0, text.find('='));
  const bool is_name = name.size() < text.size() && std::ranges::all_of(name, [](char c) {
                         return absl::ascii_islower(static_cast<unsigned char>(c)) ||
                                absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '-';
                       });
  return is_name ? name : "";
}

absl::StatusOr<PlotFile> Read(const std::string& text, std::span<const PlotView> views,
                              size_t usual) {
  PlotFile file = {.view = usual, .path = PlotPathOf(text)};
  if (file.path.size() < text.size()) {
    const absl::string_view name = ViewIn(text);
    const auto found = std::ranges::find(views, name, &PlotView::name);
    if (found == views.end()) {
      std::vector<absl::string_view> names;
      for (const PlotView& view : views) names.push_back(view.name);
      return absl::InvalidArgumentError(absl::StrCat(
          "--plot ", Show(text), ": there is no view ", Show(name), "; wanted ",
          ListWords(names, " or "), " before the =, or ./ before a file of that name"));
    }
    file.view = static_cast<size_t>(found - views.begin());
  }
  ORRERY_RETURN_IF_ERROR(Annotate(CheckPlot(file.path), "--plot"));
  return file;
}

}  // namespace
}  // namespace plot_files_cc

std::string PlotPathOf(const std::string& text) {
  const absl::string_view view = plot_files_cc::ViewIn(text);
  return view.empty() ? text : text.substr(view.size() + 1);
}

absl::StatusOr<std::vector<PlotFile>> ReadPlots(const std::vector<std::string>& texts,
                                                std::span<const PlotView> views, size_t usual) {
  std::vector<PlotFile> files;
  for (const std::string& text : texts) {
    ORRERY_ASSIGN_OR_RETURN(files.emplace_back(), plot_files_cc::Read(text, views, usual));
  }
  return files;
}

std::string PlotHelp(std::span<const PlotView> views) {
  const PlotView& first = views.front();
  std::string text = absl::StrCat("draw ", first.summary,
                                  " to this file (.svg or .pdf); may be repeated; needs gnuplot");
  if (views.size() == 1) return text;
  absl::StrAppend(&text, ". VIEW=FILE draws another view: ");
  for (size_t i = 0; i < views.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", views[i].name, " (", views[i].summary, ")");
  }
  return text;
}

absl::StatusOr<Plot> PictureOf(const std::vector<Section>& sections, absl::string_view name) {
  for (const Section& section : sections) {
    for (const View& view : section.views) {
      const auto* chart = std::get_if<ChartView>(&view);
      if (chart != nullptr && chart->name == name) return PlotOf(*chart);
      const auto* timeline = std::get_if<TimelineView>(&view);
      if (timeline != nullptr && timeline->name == name) return PlotOf(*timeline);
    }
  }
  return absl::NotFoundError(absl::StrCat("there is nothing to draw as ", name));
}

absl::Status WritePlots(std::span<const PlotFile> files,
                        absl::FunctionRef<absl::StatusOr<Plot>(size_t view)> plot_of) {
  for (const PlotFile& file : files) {
    const absl::StatusOr<Plot> plot = plot_of(file.view);
    ORRERY_RETURN_IF_ERROR(Annotate(plot.status(), file.path));
    ORRERY_RETURN_IF_ERROR(WritePlot(file.path, *plot));
  }
  return absl::OkStatus();
}

}  // namespace orrery::tools
