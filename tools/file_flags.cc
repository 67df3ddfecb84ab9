#include "tools/file_flags.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "tools/reports/plot_files.h"

namespace orrery::tools {
namespace file_flags_cc {
namespace {

constexpr absl::string_view kEmit = "emit";

constexpr std::pair<absl::string_view, FileUse> kFlags[] = {{"cases", FileUse::kReads},
                                                            {"cluster", FileUse::kReads},
                                                            {"cost-model", FileUse::kReads},
                                                            {"csv", FileUse::kWrites},
                                                            {"data", FileUse::kReads},
                                                            {"device", FileUse::kReads},
                                                            {kEmit, FileUse::kWrites},
                                                            {"fit-out", FileUse::kReads},
                                                            {"from", FileUse::kReads},
                                                            {"input", FileUse::kReads},
                                                            {"json", FileUse::kWrites},
                                                            {"measurements", FileUse::kReads},
                                                            {"memory-snapshot", FileUse::kWrites},
                                                            {"merge", FileUse::kReads},
                                                            {"model", FileUse::kReads},
                                                            {"out", FileUse::kWrites},
                                                            {"page", FileUse::kWrites},
                                                            {"plan-file", FileUse::kReads},
                                                            {"plan-text", FileUse::kWrites},
                                                            {"plot", FileUse::kWrites},
                                                            {"program", FileUse::kReads},
                                                            {"report", FileUse::kWrites},
                                                            {"residuals", FileUse::kWrites},
                                                            {"resume", FileUse::kReads},
                                                            {"roofline", FileUse::kWrites},
                                                            {"schedule-file", FileUse::kReads},
                                                            {"stack", FileUse::kReads},
                                                            {"trace", FileUse::kWrites},
                                                            {"with", FileUse::kReads}};

}  // namespace
}  // namespace file_flags_cc

FileUse FileUseOf(absl::string_view flag) {
  const auto* const row =
      std::ranges::find(file_flags_cc::kFlags, flag, [](const auto& pair) { return pair.first; });
  return row == std::end(file_flags_cc::kFlags) ? FileUse::kNone : row->second;
}

std::string WrittenFile(absl::string_view flag, const std::string& text) {
  if (flag == "plot") return PlotPathOf(text);
  if (flag != file_flags_cc::kEmit) return text;
  const size_t equals = text.find('=');
  return equals == std::string::npos ? "" : text.substr(equals + 1);
}

bool MayWriteNothing(absl::string_view flag) { return flag == file_flags_cc::kEmit; }

}  // namespace orrery::tools
