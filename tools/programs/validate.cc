#include <filesystem>
#include <iostream>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "cost_models/cost_model.h"
#include "support/file.h"
#include "support/status.h"
#include "tools/flags.h"
#include "tools/validation/measured_steps.h"
#include "tools/validation/validation_report.h"

// Predicts published measurements.

namespace orrery::tools {
namespace {

namespace po = boost::program_options;

struct Flags {
  std::string data;
  std::string csv;
  std::string json;
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

absl::Status Validate(const Flags& flags) {
  ORRERY_RETURN_IF_ERROR(CheckReport(flags.csv, flags.data));
  ORRERY_RETURN_IF_ERROR(CheckReport(flags.json, flags.data));
  if (!flags.cost_model.empty()) {
    ORRERY_RETURN_IF_ERROR(
        Annotate(cost_models::MakeCostModel(flags.cost_model).status(), "--cost-model"));
  }
  ORRERY_ASSIGN_OR_RETURN(const ValidationReport report, PredictAll(flags.data, flags.cost_model));
  if (!flags.csv.empty()) ORRERY_RETURN_IF_ERROR(WriteFile(flags.csv, ReportCsv(report)));
  if (!flags.json.empty()) ORRERY_RETURN_IF_ERROR(WriteFile(flags.json, ReportJson(report)));
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
      "data", po::value(&flags.data)->required(),
      "file of published rows, or a folder of such files (docs/validation_memory.md)")(
      "csv", po::value(&flags.csv), "write one line a row to this file")(
      "json", po::value(&flags.json), "write figures and rows to this file")(
      "cost-model", po::value(&flags.cost_model)->default_value(flags.cost_model),
      "as in simulate");
  return RunProgram(argc, argv, spec, [&] { return Validate(flags); });
}

}  // namespace
}  // namespace orrery::tools

int main(int argc, char** argv) { return orrery::tools::Main(argc, argv); }
