#include "tools/validation/validation_page.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "tools/validation/step_pairs.h"

namespace orrery::tools {
namespace validation_page_cc {
namespace {

bool HasTime(const PredictedStep& row) { return row.seconds > 0 && row.step.seconds > 0; }
bool HasMemory(const PredictedStep& row) { return row.bytes > 0 && row.step.bytes > 0; }

std::string Percent(double share) { return absl::StrFormat("%.1f %%", 100 * share); }
std::string Signed(double share) { return absl::StrFormat("%+.1f %%", 100 * share); }

// A cell: a bar would end it.
std::string Cell(const std::string& text) {
  return absl::StrReplaceAll(text, {{"|", "\\|"}, {"\n", " "}, {"\r", " "}});
}

std::string Sets(const ValidationReport& report) {
  std::string out =
      "## Sets\n\nErrors are predicted over measured, less 1; mean and worst of their absolute "
      "values, bias of "
      "them as they are.\n\n| set | split | of | rows | mean | worst | bias | Spearman |\n"
      "|---|---|---|---|---|---|---|---|\n";
  for (const SetFigures& f : FiguresOfSets(report.steps)) {
    absl::StrAppend(&out, "| `", Cell(f.source), "` | ", Cell(f.split), " | ", f.of, " | ",
                    f.errors.count, " | ", Percent(f.errors.mean), " | ", Percent(f.errors.worst),
                    " | ", Signed(f.errors.bias), " | ", absl::StrFormat("%.2f", f.errors.spearman),
                    " |\n");
  }
  return out;
}

std::string Pairs(const ValidationReport& report) {
  const std::vector<StepPair> pairs = PairsOf(report.steps);
  if (pairs.empty()) return "";
  std::string out =
      "\n## What a change does\n\nTimes over those without the change, and memory more than there, "
      "GB.\n\n"
      "| row | changed | measured | predicted | sign | memory, measured | predicted |\n"
      "|---|---|---|---|---|---|---|\n";
  for (const StepPair& pair : pairs) {
    const bool of_time = pair.measured_ratio > 0, of_memory = pair.measured_bytes.has_value();
    absl::StrAppend(&out, "| `", Cell(pair.id), "` | ", Cell(pair.what), " | ",
                    of_time ? absl::StrFormat("%.3f", pair.measured_ratio) : "", " | ",
                    absl::StrFormat("%.3f", pair.predicted_ratio), " | ",
                    !of_time            ? ""
                    : pair.right_sign() ? "right"
                                        : "wrong",
                    " | ", of_memory ? absl::StrFormat("%+.2f", *pair.measured_bytes / 1e9) : "",
                    " | ", of_memory ? absl::StrFormat("%+.2f", pair.predicted_bytes / 1e9) : "",
                    " |\n");
  }
  return out;
}

std::string Tables(const ValidationReport& report) {
  std::string lines;
  for (const PredictedTable& table : report.tables) {
    if (table.points.empty()) continue;
    const TableFigures figures = FiguresOf(table);
    absl::StrAppend(&lines, "| `", Cell(table.source), "` | ", Cell(table.name), " | ",
                    Cell(table.split), " | ", figures.errors.count, " | ", Percent(figures.median),
                    " | ", Percent(figures.errors.mean), " | ", Percent(figures.errors.worst),
                    " | ", Signed(figures.errors.bias), " |\n");
  }
  if (lines.empty()) return "";
  return absl::StrCat(
      "\n## Kernels and collectives\n\n| set | table | split | points | median | mean | worst "
      "| bias |\n|---|---|---|---|---|---|---|---|\n",
      lines);
}

std::string SizeOf(const PredictedStep& row) {
  const auto parameters = static_cast<double>(row.features.parameters);
  return parameters < 1e9     ? "1: under 1 billion"
         : parameters < 10e9  ? "2: 1 to 10 billion"
         : parameters < 50e9  ? "3: 10 to 50 billion"
         : parameters < 200e9 ? "4: 50 to 200 billion"
                              : "5: over 200 billion";
}
std::string ArchitectureOfRow(const PredictedStep& row) {
  return absl::StrCat(ArchitectureOf(row.features.device), ", ", row.features.device);
}
std::string StackOfRow(const PredictedStep& row) { return row.features.stack; }
std::string TypeOfRow(const PredictedStep& row) { return row.features.dtype; }
std::string KindOf(const PredictedStep& row) {
  return row.features.mixture ? "mixture of experts" : "dense";
}
// A row is of all kinds that it has a degree of.
template <int64_t StepFeatures::*degree, char first>
std::string Has(const PredictedStep& row) {
  return row.features.*degree > 1 ? absl::StrCat(std::string(1, first), "p > 1") : "";
}
std::string HasNone(const PredictedStep& row) {
  return row.features.devices == 1 ? "one device" : "";
}

std::string ResidualLines(absl::string_view title, std::span<const Residuals> residuals) {
  std::string out;
  for (const Residuals& group : residuals) {
    // Names of sizes begin with their order.
    const size_t colon = group.of.find(": ");
    const std::string name = colon == 1 ? group.of.substr(3) : group.of;
    absl::StrAppend(&out, "| ", title, " | ", Cell(name), " | ", group.count, " | ",
                    Signed(group.bias), " | ", Percent(group.mean), " |\n");
  }
  return out;
}

std::string AllResiduals(std::span<const PredictedStep> steps) {
  std::string out =
      "\n## Residuals of step times\n\n| by | | rows | mean error | mean absolute error "
      "|\n|---|---|---|---|---|\n";
  const auto add = [&](absl::string_view title, std::string (*group)(const PredictedStep&)) {
    absl::StrAppend(&out, ResidualLines(title, ResidualsBy(steps, group)));
  };
  add("parameters", &SizeOf);
  add("model", &KindOf);
  add("layout", &Has<&StepFeatures::tp, 't'>);
  add("layout", &Has<&StepFeatures::pp, 'p'>);
  add("layout", &Has<&StepFeatures::dp, 'd'>);
  add("layout", &Has<&StepFeatures::cp, 'c'>);
  add("layout", &Has<&StepFeatures::ep, 'e'>);
  add("layout", &HasNone);
  add("device", &ArchitectureOfRow);
  add("software", &StackOfRow);
  add("type", &TypeOfRow);
  return out;
}

std::string RowLine(const PredictedStep& row) {
  const auto of_time = [&](double seconds) { return absl::StrFormat("%.4g s", seconds); };
  const auto of_memory = [](double bytes) { return absl::StrFormat("%.1f", bytes / 1e9); };
  const bool time = HasTime(row), memory = HasMemory(row);
  return absl::StrCat(
      "| `", Cell(row.step.id), "` | ", Cell(row.step.split), " | ",
      time ? of_time(row.step.seconds) : "", " | ", time ? of_time(row.seconds) : "", " | ",
      time ? Signed(row.seconds / row.step.seconds - 1) : "", " | ",
      memory ? of_memory(row.step.bytes) : "", " | ", memory ? of_memory(row.bytes) : "", " | ",
      memory ? Signed(row.bytes / row.step.bytes - 1) : "", " |\n");
}

// Sources in the order in which they come.
std::vector<std::string> SourcesOf(std::span<const PredictedStep> steps) {
  std::vector<std::string> sources;
  for (const PredictedStep& row : steps) {
    if (std::ranges::find(sources, row.step.source) == sources.end()) {
      sources.push_back(row.step.source);
    }
  }
  return sources;
}

std::string Rows(std::span<const PredictedStep> steps) {
  std::string out = "\n## Rows\n";
  for (const std::string& source : SourcesOf(steps)) {
    std::string lines;
    for (const PredictedStep& row : steps) {
      const bool shown = row.step.source == source && (HasTime(row) || HasMemory(row));
      if (shown) absl::StrAppend(&lines, RowLine(row));
    }
    if (lines.empty()) continue;
    absl::StrAppend(
        &out, "\n### ", source,
        "\n\n| row | split | measured | predicted | error | memory, GB | predicted | error |\n"
        "|---|---|---|---|---|---|---|---|\n",
        lines);
  }
  return out;
}

std::string SkippedRows(std::span<const PredictedStep> steps) {
  std::string out = "\n## Skipped\n\n| rows | why | which |\n|---|---|---|\n";
  for (const auto& [reason, count] : SkippedOf(steps)) {
    std::string which;
    for (const PredictedStep& row : steps) {
      if (row.skipped != reason) continue;
      absl::StrAppend(&which, which.empty() ? "`" : ", `", Cell(row.step.id), "`");
    }
    absl::StrAppend(&out, "| ", count, " | ", Cell(reason), " | ", which, " |\n");
  }
  return out;
}

}  // namespace
}  // namespace validation_page_cc

std::vector<Residuals> ResidualsBy(std::span<const PredictedStep> steps,
                                   std::string (*group)(const PredictedStep&)) {
  std::map<std::string, Residuals> groups;
  for (const PredictedStep& row : steps) {
    const std::string name = validation_page_cc::HasTime(row) ? group(row) : "";
    if (name.empty()) continue;
    Residuals& residuals = groups[name];
    const double error = row.seconds / row.step.seconds - 1;
    residuals.of = name;
    ++residuals.count;
    residuals.bias += error;
    residuals.mean += std::abs(error);
  }
  std::vector<Residuals> all;
  for (auto& [name, residuals] : groups) {
    residuals.bias /= static_cast<double>(residuals.count);
    residuals.mean /= static_cast<double>(residuals.count);
    all.push_back(residuals);
  }
  return all;
}

std::string ValidationPage(const ValidationReport& report, const std::string& plot) {
  std::string out =
      "# Predicted and measured steps, row by row\n\n"
      "Made by `scripts/validation_page`, not by hand: what `validate` says today of the published "
      "rows that the repository holds\n"
      "([validation](validation.md) is about them; [measured memory](validation_memory.md) says "
      "how a row is read). Rows of split\n"
      "`calibration` may have been fitted on; which figures were, [kernels](kernels.md) and "
      "[measured memory](validation_memory.md) say.\n"
      "No row of another split was.\n\n";
  if (!plot.empty()) {
    absl::StrAppend(&out, "![Predicted against measured step times](", plot, ")\n\n");
  }
  return absl::StrCat(
      out, validation_page_cc::Sets(report), validation_page_cc::Pairs(report),
      validation_page_cc::Tables(report), validation_page_cc::AllResiduals(report.steps),
      validation_page_cc::Rows(report.steps), validation_page_cc::SkippedRows(report.steps));
}

}  // namespace orrery::tools
