#ifndef ORRERY_TOOLS_PLOTS_GNUPLOT_H_
#define ORRERY_TOOLS_PLOTS_GNUPLOT_H_

#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// Plots that the program gnuplot draws, as SVG or PDF. It reads a script and tables of data on its
// standard input and answers on its standard output: no shell, and no file but the plot.

namespace orrery::tools {

/// What a row of a table has in a column: a number, or a label, which may be any text.
using PlotCell = std::variant<double, std::string>;

/// Rows that commands of a script read as $name: column 1 is the first cell. A number that is not
/// finite leaves its point out.
struct PlotTable {
  std::string name;  // a letter, then letters and digits
  std::vector<std::vector<PlotCell>> rows;
};

/// What is drawn: commands of gnuplot, which neither choose a terminal nor a file, and the tables
/// that they read. Text stands as it is: nothing in it is raised or lowered.
struct Plot {
  std::string commands;
  std::vector<PlotTable> tables = {};
  int width = 900, height = 600;  // pixels; a PDF is of 100 a inch
};

/// How files end that WritePlot makes, as "vector": SVG or PDF.
enum class PlotFormat { kSvg, kPdf };

/// How gnuplot is run.
struct GnuplotOptions {
  int timeout_s = 60;   // then it is ended, and the plot is an error
  std::string folders;  // where it is looked for, as PATH spells it; empty: PATH
};

/// `text` as a script writes it, in quotes: whatever it holds, it ends where it ends. What is not
/// printable becomes a space.
std::string PlotText(absl::string_view text);

/// By the ending of `path`: ".svg" or ".pdf"; others are an error that names it.
absl::StatusOr<PlotFormat> PlotFormatOf(const std::string& path);

/// What is wrong with drawing to `path` that can be told before there is anything to draw: its
/// ending, or that there is no gnuplot.
absl::Status CheckPlot(const std::string& path, const GnuplotOptions& options = {});

/// The bytes of the plot: the same for the same plot and version of gnuplot. Errors: there is no
/// gnuplot, it took too long, or the first line that it complains of.
absl::StatusOr<std::string> DrawPlot(const Plot& plot, PlotFormat format,
                                     const GnuplotOptions& options = {});

/// Draws to `path`, which is there whole or not at all.
absl::Status WritePlot(const std::string& path, const Plot& plot,
                       const GnuplotOptions& options = {});

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_PLOTS_GNUPLOT_H_
