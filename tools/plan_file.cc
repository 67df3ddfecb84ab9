#include "tools/plan_file.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "support/file.h"
#include "support/status.h"
#include "transforms/plan/axis.h"
#include "transforms/plan/plan_text.h"

namespace orrery::tools {

std::string PlanFileText(const transforms::ParallelPlan& plan, const std::string& about) {
  std::string text;
  for (const absl::string_view line : absl::StrSplit(about, '\n', absl::SkipEmpty())) {
    absl::StrAppend(&text, "# ", line, "\n");
  }
  return absl::StrCat(text, absl::StrReplaceAll(transforms::ToString(plan), {{" --", "\n--"}}),
                      "\n");
}

absl::StatusOr<std::vector<FlagText>> ParsePlanFile(const std::string& text) {
  std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  std::erase_if(lines, [](absl::string_view line) {
    line = absl::StripAsciiWhitespace(line);
    return line.empty() || line.front() == '#';
  });
  if (lines.empty()) {
    return absl::InvalidArgumentError("no plan; wanted its flags, as in --dp 4 --pp 2");
  }
  ORRERY_ASSIGN_OR_RETURN(const std::vector<transforms::AxisValue> values,
                          transforms::ParseValues(absl::StrJoin(lines, "\n")));
  transforms::ParallelPlan plan;
  std::vector<FlagText> flags;
  for (const auto& [axis, value] : values) {
    ORRERY_RETURN_IF_ERROR(transforms::SetAxis(*axis, value, plan));
    const bool again = std::ranges::find(flags, axis->flag, &FlagText::flag) != flags.end();
    if (again && axis->form != transforms::AxisForm::kMany) {
      return absl::InvalidArgumentError(
          absl::StrCat("--", axis->flag, " is there twice; wanted it once"));
    }
    flags.push_back({std::string(axis->flag), value});
  }
  return flags;
}

absl::StatusOr<std::vector<FlagText>> FlagsOfPlanFile(const std::vector<FlagText>& given) {
  const auto named = std::ranges::find(given, "plan-file", &FlagText::flag);
  if (named == given.end()) return std::vector<FlagText>();
  if (named->text.empty()) {
    return absl::InvalidArgumentError("--plan-file '': wanted the name of a file");
  }
  ORRERY_ASSIGN_OR_RETURN(const std::string text, ReadFile(named->text));
  ORRERY_ASSIGN_OR_RETURN(std::vector<FlagText> flags, Annotated(ParsePlanFile(text), named->text));
  std::erase_if(flags, [&](const FlagText& flag) {
    return std::ranges::any_of(given, [&](const FlagText& other) {
      const transforms::AxisInfo* const axis = transforms::FindAxis(other.flag);
      return axis != nullptr && axis->flag == flag.flag;
    });
  });
  return flags;
}

}  // namespace orrery::tools
