#include <algorithm>
#include <filesystem>
#include <iostream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cost_models/cost_model.h"
#include "support/file.h"
#include "support/status.h"
#include "tools/flags.h"
#include "tools/validation/fit.h"
#include "tools/validation/fitted_figures.h"
#include "tools/validation/measured_steps.h"
#include "tools/validation/step_errors.h"

// Predicts published measurements.

namespace orrery::tools {
namespace {

namespace po = boost::program_options;

struct Flags {
  std::string data;
  std::string csv;
  std::string json;
  std::string with, fit_out;
  bool fit = false;
  std::string cost_model = std::string(kDefaultCostModel);
};

// A report among the files to read would be read the next time.
absl::Status CheckReport(const std::string& report, const std::string& data) {
  std::error_code error;
  if (report.empty() || !std::filesystem::is_directory(data, error)) return absl::OkStatus();
  const std::filesystem::path path(report);
  const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
  bool read = path.extension() == ".json" && AreOneFile(folder, data);
  for (const std::string& file : StepFiles(data)) read = read || AreOneFile(file, report);
  if (!read) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(report, ": is among the files that --data reads; wanted another folder"));
}

// Files of a fit, and rows as they are predicted with it.
absl::Status FitAndReport(const Flags& flags, const std::vector<MeasuredStep>& steps,
                          const FitOptions& options) {
  ORRERY_ASSIGN_OR_RETURN(const FitReport report, Fit(steps, options));
  if (!flags.fit_out.empty()) {
    for (const auto& [name, text] : FitFiles(report)) {
      ORRERY_RETURN_IF_ERROR(WriteFile(absl::StrCat(flags.fit_out, "/", name), text));
    }
  }
  std::cout << FitText(report);
  return absl::OkStatus();
}

absl::Status Validate(const Flags& flags) {
  if (!flags.fit_out.empty() && !flags.fit) {
    return absl::InvalidArgumentError("--fit-out: wanted with --fit alone");
  }
  if (flags.fit && (!flags.csv.empty() || !flags.json.empty())) {
    return absl::InvalidArgumentError(
        "--csv, --json: wanted without --fit; --fit-out has the rows, and --with predicts");
  }
  ORRERY_RETURN_IF_ERROR(CheckReport(flags.csv, flags.data));
  ORRERY_RETURN_IF_ERROR(CheckReport(flags.json, flags.data));
  if (!flags.cost_model.empty()) {
    ORRERY_RETURN_IF_ERROR(
        Annotate(cost_models::MakeCostModel(flags.cost_model).status(), "--cost-model"));
  }
  ORRERY_ASSIGN_OR_RETURN(const std::vector<MeasuredStep> steps, ReadMeasuredSteps(flags.data));
  FitOptions options = {
      .cost_model = flags.cost_model,
      .threads = static_cast<int32_t>(std::max(1U, std::thread::hardware_concurrency()))};
  if (!flags.with.empty()) {
    ORRERY_ASSIGN_OR_RETURN(options.start, ReadFigures(flags.with));
  }
  if (flags.fit) return FitAndReport(flags, steps, options);
  const std::vector<PredictedStep> predicted =
      PredictAll(steps, options.cost_model, options.start, options.threads);
  if (!flags.csv.empty()) ORRERY_RETURN_IF_ERROR(WriteFile(flags.csv, ErrorCsv(predicted)));
  if (!flags.json.empty()) ORRERY_RETURN_IF_ERROR(WriteFile(flags.json, ErrorJson(predicted)));
  std::cout << ErrorTable(predicted);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Flags flags;
  ProgramSpec spec{.usage = "validate --data DIR_OR_FILE [flags]",
                   .about = "Predicts measured training steps, and says how far off it is.",
                   .example = "build/bin/validate --data tests/data/validation",
                   .options = po::options_description("Flags")};
  spec.options.add_options()(
      "data", po::value(&flags.data)->required(),
      "file of published rows, or a folder of such files (docs/validation_memory.md)")(
      "csv", po::value(&flags.csv), "write one line a row to this file")(
      "json", po::value(&flags.json), "write figures and rows to this file")(
      "cost-model", po::value(&flags.cost_model)->default_value(flags.cost_model),
      "as in simulate");
  spec.options.add_options()("fit", po::bool_switch(&flags.fit),
                             "fit figures of devices, libraries and stacks on the rows for "
                             "calibration (docs/fitting.md)")(
      "fit-out", po::value(&flags.fit_out), "write the figures that were fitted to this folder")(
      "with", po::value(&flags.with),
      "predict, or begin to fit, with the figures of such a folder");
  return RunProgram(argc, argv, spec, [&] { return Validate(flags); });
}

}  // namespace
}  // namespace orrery::tools

int main(int argc, char** argv) { return orrery::tools::Main(argc, argv); }
