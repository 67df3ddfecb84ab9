#ifndef ORRERY_TOOLS_REPORTS_PLOT_FILES_H_
#define ORRERY_TOOLS_REPORTS_PLOT_FILES_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/plots/gnuplot.h"
#include "tools/reports/view.h"

// What --plot draws: FILE gets the usual view of a program, VIEW=FILE the one of that name.

namespace orrery::tools {

/// A figure that a program can draw.
struct PlotView {
  absl::string_view name;     // "memory": lower case, digits, hyphens
  absl::string_view summary;  // "memory over time", for --help
};

/// One --plot, read.
struct PlotFile {
  size_t view = 0;  // its place among the views of the program
  std::string path;
};

/// The file of a --plot: "memory=out/memory.svg" and "out/memory.svg" are "out/memory.svg".
std::string PlotPathOf(const std::string& text);

/// Reads all --plot of a command line; those that name no view get the one at `usual`.
/// InvalidArgument names the one that is wrong: a view that the program has not, or another ending
/// than .svg and .pdf; FailedPrecondition: there is no gnuplot.
absl::StatusOr<std::vector<PlotFile>> ReadPlots(const std::vector<std::string>& texts,
                                                std::span<const PlotView> views, size_t usual = 0);

/// What --help says of --plot.
std::string PlotHelp(std::span<const PlotView> views);

/// The chart or timeline of the sections that has the name. NotFound where there is none.
absl::StatusOr<Plot> PictureOf(const std::vector<Section>& sections, absl::string_view name);

/// Draws each file as `plot_of` says of its view; errors name the file.
absl::Status WritePlots(std::span<const PlotFile> files,
                        absl::FunctionRef<absl::StatusOr<Plot>(size_t view)> plot_of);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_REPORTS_PLOT_FILES_H_
