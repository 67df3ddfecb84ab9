#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cost_models/cost_model.h"
#include "support/file.h"
#include "support/status.h"
#include "support/threads.h"
#include "tools/flags.h"
#include "tools/reports/page.h"
#include "tools/reports/plot_files.h"
#include "tools/terminal/interrupt.h"
#include "tools/validation/fit.h"
#include "tools/validation/fitted_figures.h"
#include "tools/validation/nearest_steps.h"
#include "tools/validation/rows/measured_steps.h"
#include "tools/validation/validation_page.h"
#include "tools/validation/validation_report.h"
#include "tools/validation/validation_views.h"

// Predicts published measurements.

namespace orrery::tools {
namespace {

namespace po = boost::program_options;

// So many fields: a flag each.
struct Flags {
  std::vector<std::string> data;
  std::string csv, json, page, residuals, report;
  std::vector<std::string> plot;
  std::string command;  // for the report
  std::string with, fit_out;
  bool fit = false;
  int32_t threads = 0;
  std::string cost_model = std::string(kDefaultCostModel);
};

// The files that it writes, under whatever flag.
std::vector<std::string> FilesOf(const Flags& flags) {
  std::vector<std::string> files = {flags.csv, flags.json, flags.page, flags.residuals,
                                    flags.report};
  for (const std::string& plot : flags.plot) files.push_back(PlotPathOf(plot));
  return files;
}

// A report among the files to read would be read the next time.
absl::Status CheckReport(const std::string& report, const std::string& data) {
  if (report.empty()) return absl::OkStatus();
  const std::filesystem::path path(report);
  const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
  std::error_code error;
  bool read = path.extension() == ".json" && std::filesystem::is_directory(data, error) &&
              AreOneFile(folder, data);
  for (const std::string& file : StepFiles(data)) read = read || AreOneFile(file, report);
  if (!read) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(report, ": is among the files that --data reads; wanted another folder"));
}

absl::Status CheckReports(const Flags& flags) {
  for (const std::string& data : flags.data) {
    for (const std::string& report : FilesOf(flags)) {
      ORRERY_RETURN_IF_ERROR(CheckReport(report, data));
    }
  }
  return ReadPlots(flags.plot, ValidationPlotViews()).status();
}

// Where the plot is, as seen from the page: the first of several.
std::string PlotFromPage(const Flags& flags) {
  if (flags.plot.empty()) return "";
  const std::filesystem::path page(flags.page), plot(PlotPathOf(flags.plot.front()));
  return plot.lexically_proximate(page.parent_path()).generic_string();
}

absl::Status Write(const Flags& flags, const ValidationReport& report) {
  if (!flags.csv.empty()) ORRERY_RETURN_IF_ERROR(WriteFile(flags.csv, ReportCsv(report)));
  if (!flags.json.empty()) ORRERY_RETURN_IF_ERROR(WriteFile(flags.json, ReportJson(report)));
  if (!flags.page.empty()) {
    ORRERY_RETURN_IF_ERROR(WriteFile(flags.page, ValidationPage(report, PlotFromPage(flags))));
  }
  ORRERY_ASSIGN_OR_RETURN(const std::vector<PlotFile> plots,
                          ReadPlots(flags.plot, ValidationPlotViews()));
  ORRERY_RETURN_IF_ERROR(
      WritePlots(plots, [&](size_t view) { return ValidationPlot(report.steps, view); }));
  if (!flags.report.empty()) {
    ORRERY_RETURN_IF_ERROR(WritePage({.title = "Predicted and measured",
                                      .program = "validate",
                                      .command = flags.command,
                                      .sections = ValidationViews(report)},
                                     flags.report));
  }
  if (flags.residuals.empty()) return absl::OkStatus();
  return WriteFile(flags.residuals, ResidualsText(report.steps));
}

// Files of a fit, and rows as they are predicted with it.
absl::Status FitAndReport(const Flags& flags, const FitOptions& options) {
  std::vector<MeasuredStep> steps;
  for (const std::string& data : flags.data) {
    ORRERY_ASSIGN_OR_RETURN(std::vector<MeasuredStep> more, ReadMeasuredSteps(data));
    std::ranges::move(more, std::back_inserter(steps));
  }
  ORRERY_ASSIGN_OR_RETURN(const FitReport report, Fit(steps, options));
  if (!flags.fit_out.empty()) {
    for (const auto& [name, text] : FitFiles(report)) {
      ORRERY_RETURN_IF_ERROR(WriteFile(absl::StrCat(flags.fit_out, "/", name), text));
    }
  }
  std::cout << FitText(report);
  return absl::OkStatus();
}

absl::Status CheckFit(const Flags& flags) {
  if (!flags.fit_out.empty() && !flags.fit) {
    return absl::InvalidArgumentError("--fit-out: wanted with --fit alone");
  }
  for (const std::string& report : FilesOf(flags)) {
    if (!flags.fit || report.empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("'", report, "': wanted without --fit; --fit-out has the rows, and --with ",
                     "predicts all of them"));
  }
  return absl::OkStatus();
}

absl::Status Validate(const Flags& flags) {
  ORRERY_RETURN_IF_ERROR(CheckFit(flags));
  ORRERY_RETURN_IF_ERROR(CheckReports(flags));
  if (!flags.cost_model.empty()) {
    ORRERY_RETURN_IF_ERROR(
        Annotate(cost_models::MakeCostModel(flags.cost_model).status(), "--cost-model"));
  }
  if (flags.threads < 0) {
    return absl::InvalidArgumentError("--threads: wanted a number of at least 0");
  }
  FitOptions options = {.cost_model = flags.cost_model,
                        .threads = flags.threads > 0 ? flags.threads : OwnProcessors()};
  if (!flags.with.empty()) {
    ORRERY_ASSIGN_OR_RETURN(options.start, ReadFigures(flags.with));
  }
  if (flags.fit) return FitAndReport(flags, options);
  const StopOnSignals signals;
  ORRERY_ASSIGN_OR_RETURN(
      const ValidationReport report,
      PredictAll(flags.data, options.cost_model, options.start, options.threads));
  if (CaughtSignal() != 0) {
    // No files, which would be taken for those of all rows.
    std::cout << ReportText(report);
    return absl::CancelledError(absl::StrCat(
        "stopped after ", report.steps.size(), " of ", report.steps.size() + report.missing,
        " rows; figures are of these, and no file is written"));
  }
  ORRERY_RETURN_IF_ERROR(Write(flags, report));
  std::cout << ReportText(report);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Flags flags;
  ProgramSpec spec{
      .usage = "validate --data DIR_OR_FILE [flags]",
      .about =
          "Predicts measured training steps, kernels and collectives, and says how far off it is.",
      .example = "build/bin/validate --data tests/data/validation",
      .options = po::options_description("Flags")};
  spec.options.add_options()(
      "data", po::value(&flags.data)->required()->composing(),
      "file of published rows, or a folder of such files (docs/validation_memory.md); may be given "
      "more than once")("csv", po::value(&flags.csv), "write one line a row to this file")(
      "json", po::value(&flags.json), "write figures and rows to this file")(
      "page", po::value(&flags.page),
      "write a page in Markdown to this file: figures, residuals by kind, and every row")(
      "report", po::value(&flags.report),
      "write a page with every row, errors and predicted against measured to this file (.html)")(
      "plot", po::value(&flags.plot)->composing(), PlotHelp(ValidationPlotViews()).c_str())(
      "residuals", po::value(&flags.residuals),
      "write what error bars of `simulate` are made of to this file (scripts/validation_page)")(
      "cost-model", po::value(&flags.cost_model)->default_value(flags.cost_model),
      "as in simulate");
  spec.options.add_options()("fit", po::bool_switch(&flags.fit),
                             "fit figures of devices, libraries and stacks on the rows for "
                             "calibration (docs/fitting.md)")(
      "fit-out", po::value(&flags.fit_out), "write the figures that were fitted to this folder")(
      "threads", po::value(&flags.threads),
      "threads to predict with [one a core]; what comes out does not depend on them")(
      "with", po::value(&flags.with),
      "predict, or begin to fit, with the figures of such a folder");
  flags.command = CommandText(argc, argv);
  return RunProgram(argc, argv, spec, [&] { return Validate(flags); });
}

}  // namespace
}  // namespace orrery::tools

int main(int argc, char** argv) { return orrery::tools::Main(argc, argv); }
