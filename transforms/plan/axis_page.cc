#include "transforms/plan/axis_page.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace orrery::transforms {
namespace axis_page_cc {
namespace {

std::string Default(const AxisInfo& axis) {
  if (!axis.page_default.empty()) return std::string(axis.page_default);
  const std::string text = axis.print(ParallelPlan());
  if (text.empty()) return "none";
  if (axis.form == AxisForm::kSwitch && text == "1") return "on";
  if (axis.form == AxisForm::kSwitch && text == "0") return "off";
  return axis.is_number ? text : absl::StrCat("`", text, "`");
}

absl::string_view OfSearch(const AxisInfo& axis) {
  if (axis.scope == AxisScope::kOneRun) return "no";
  if (axis.left_open == LeftOpen::kDividesExperts) {
    return "a list; left open, with experts: all that divide";
  }
  if (axis.left_open != LeftOpen::kPlan) return "a list; left open: all that divide";
  return axis.lists ? "a list" : "one";
}

}  // namespace
}  // namespace axis_page_cc

std::string AxisRow(const AxisInfo& axis) {
  const std::string value =
      axis.page.empty() ? absl::StrCat(axis.summary, ": ", axis.values) : std::string(axis.page);
  return absl::StrCat("| `--", axis.flag, "` | ", absl::StrReplaceAll(value, {{"|", "\\|"}}), " | ",
                      axis_page_cc::Default(axis), " | ", axis_page_cc::OfSearch(axis), " | ",
                      axis.scope == AxisScope::kStep ? "yes" : "no", " | `", axis.Column(),
                      "` |\n");
}

std::string AxisTable() {
  std::string table =
      "| flag | value | default | in a search | of `opt` | column |\n|---|---|---|---|---|---|\n";
  for (const AxisInfo* axis : AllAxes()) table += AxisRow(*axis);
  return table;
}

}  // namespace orrery::transforms
