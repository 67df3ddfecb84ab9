#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cost_models/summary.h"
#include "ir/op_info.h"
#include "support/json_text.h"
#include "support/text_table.h"

// How a summary is shown.

namespace orrery::cost_models {
namespace summary_text_cc {
namespace {

constexpr absl::string_view kPhaseNames[kPhaseCount] = {"forward", "backward", "optimizer"};

// "174,604,136,448".
std::string Grouped(int64_t count) {
  std::string text = absl::StrCat(count);
  for (size_t at = text.size(); at > 3 && text[at - 4] != '-'; at -= 3) text.insert(at - 3, 1, ',');
  return text;
}

// "4.77 PFLOP" with three significant figures; "0" for none.
std::string Show(Flops flops) {
  constexpr absl::string_view kPrefixes[] = {"", "k", "M", "G", "T", "P", "E", "Z"};
  double count = flops.count();
  if (count == 0) return "0";
  size_t prefix = 0;
  while (count >= 999.5 && prefix + 1 < std::size(kPrefixes)) {
    count /= 1000;
    ++prefix;
  }
  const int digits = count < 9.995 ? 2 : count < 99.95 ? 1 : 0;
  return absl::StrFormat("%.*f %sFLOP", digits, count, kPrefixes[prefix]);
}

std::string Show(const Extent& extent) {
  return absl::StrCat(Grouped(extent.elements), " (", ToString(extent.bytes), ")");
}

TextRow PhaseRow(absl::string_view name, const Work& work) {
  return {std::string(name),
          Grouped(work.ops),
          Grouped(work.kernels),
          Show(work.model_flops),
          Show(work.flops),
          ToString(work.moved),
          absl::StrFormat("%.1f", work.intensity())};
}

std::string PhaseTable(const Summary& summary) {
  std::vector<TextRow> rows = {
      {"phase", "ops", "kernels", "model flops", "all flops", "bytes moved", "flops a byte"}};
  for (size_t i = 0; i < kPhaseCount; ++i) {
    if (summary.phases[i].ops > 0) rows.push_back(PhaseRow(kPhaseNames[i], summary.phases[i]));
  }
  rows.push_back(PhaseRow("total", summary.total()));
  return TextTable(rows, 1);
}

std::string KindTable(const Summary& summary) {
  std::vector<TextRow> rows = {{"op", "count", "kernels", "flops", "share", "bytes moved"}};
  const double all = std::max(1.0, summary.total().flops.count());
  for (const auto& [kind, work] : summary.kinds) {
    rows.push_back({std::string(ir::GetOpInfo(kind).name), Grouped(work.ops), Grouped(work.kernels),
                    Show(work.flops), absl::StrFormat("%.1f %%", 100 * work.flops.count() / all),
                    ToString(work.moved)});
  }
  return TextTable(rows, 1);
}

std::string Json(const Work& work) {
  return absl::StrCat("{\"ops\": ", work.ops, ", \"kernels\": ", work.kernels,
                      ", \"model_flops\": ", JsonNumber(work.model_flops.count()),
                      ", \"flops\": ", JsonNumber(work.flops.count()),
                      ", \"bytes_moved\": ", work.moved.count(),
                      ", \"intensity\": ", JsonNumber(work.intensity()), "}");
}

}  // namespace
}  // namespace summary_text_cc

std::string SummaryText(const Summary& summary, absl::string_view model) {
  std::vector<TextRow> sizes = {{"model", std::string(model)},
                                {"parameters", summary_text_cc::Show(summary.parameters)}};
  if (summary.buffers.elements > 0)
    sizes.push_back({"buffers", summary_text_cc::Show(summary.buffers)});
  if (summary.state.elements > 0)
    sizes.push_back({"optimizer state", summary_text_cc::Show(summary.state)});
  sizes.push_back({"saved activations", ToString(summary.saved_activations)});
  std::string text;
  for (const TextRow& row : sizes)
    absl::StrAppend(&text, absl::StrFormat("%-18s %s\n", row[0], row[1]));
  return absl::StrCat(text, "\n", summary_text_cc::PhaseTable(summary), "\n",
                      summary_text_cc::KindTable(summary));
}

std::string SummaryJson(const Summary& summary, absl::string_view model) {
  std::string text = absl::StrFormat(
      "{\n  \"model\": %s,\n  \"parameters\": %d,\n  \"parameter_bytes\": %d,\n  \"buffers\": %d,\n"
      "  \"buffer_bytes\": %d,\n  \"optimizer_state_bytes\": %d,\n"
      "  \"saved_activation_bytes\": %d,\n",
      JsonString(std::string(model)), summary.parameters.elements, summary.parameters.bytes.count(),
      summary.buffers.elements, summary.buffers.bytes.count(), summary.state.bytes.count(),
      summary.saved_activations.count());
  for (size_t i = 0; i < kPhaseCount; ++i) {
    absl::StrAppend(&text, "  \"", summary_text_cc::kPhaseNames[i],
                    "\": ", summary_text_cc::Json(summary.phases[i]), ",\n");
  }
  absl::StrAppend(&text, "  \"total\": ", summary_text_cc::Json(summary.total()),
                  ",\n  \"kinds\": {");
  const char* separator = "\n";
  for (const auto& [kind, work] : summary.kinds) {
    absl::StrAppend(&text, separator, "    \"", ir::GetOpInfo(kind).name,
                    "\": ", summary_text_cc::Json(work));
    separator = ",\n";
  }
  return absl::StrCat(text, "\n  }\n}\n");
}

}  // namespace orrery::cost_models
