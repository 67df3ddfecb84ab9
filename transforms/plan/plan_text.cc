#include "transforms/plan/plan_text.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "support/status.h"

namespace orrery::transforms {
namespace plan_text_cc {
namespace {

// Of values that add up, each is a line of the axis's text.
std::vector<std::string> ValuesOf(const AxisInfo& axis, const std::string& text) {
  if (axis.form != AxisForm::kMany) return {text};
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
}

absl::StatusOr<std::vector<std::string>> SplitWords(absl::string_view text) {
  std::vector<std::string> words;
  bool in_word = false, in_quotes = false;
  size_t quote = 0;  // that came last
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (!in_quotes && absl::ascii_isspace(static_cast<unsigned char>(c))) {
      in_word = false;
      continue;
    }
    if (!in_word) words.emplace_back();
    in_word = true;
    if (c == '\'') {
      in_quotes = !in_quotes;
      quote = i;
    } else if (c == '\\' && !in_quotes && i + 1 < text.size()) {
      words.back().push_back(text[++i]);
    } else {
      words.back().push_back(c);
    }
  }
  if (!in_quotes) return words;
  constexpr size_t kShown = 40;
  const absl::string_view line = text.substr(quote).substr(0, text.substr(quote).find('\n'));
  return absl::InvalidArgumentError(absl::StrCat(
      line.substr(0, kShown), line.size() > kShown ? "…" : "", ": wanted a quote that ends"));
}

std::string CellText(const AxisCell& cell) {
  if (const auto* number = std::get_if<int64_t>(&cell)) return absl::StrCat(*number);
  return std::get<std::string>(cell);
}

AxisCell CellOf(const AxisInfo& axis, const ParallelPlan& plan) {
  return axis.cell != nullptr ? axis.cell(plan) : AxisCell(axis.print(plan));
}

// All axes by their columns. Tables of millions of rows ask for them a row.
struct TableColumns {
  std::vector<std::pair<const AxisInfo*, std::string>> before, behind;
};
TableColumns AllColumns() {
  TableColumns columns;
  for (const AxisInfo* axis : AllAxes()) {
    (axis->column_position > 0 ? columns.before : columns.behind)
        .emplace_back(axis, axis->Column());
  }
  std::ranges::sort(columns.before, {}, [](const auto& of) { return of.first->column_position; });
  return columns;
}

}  // namespace
}  // namespace plan_text_cc

std::string ShellQuoted(absl::string_view text) {
  const bool plain = !text.empty() && std::ranges::all_of(text, [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("-_+=:,./@%", c);
  });
  if (plain) return std::string(text);
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string AxisText(const AxisInfo& axis, const ParallelPlan& plan) {
  const std::string text = axis.print(plan);
  if (axis.form == AxisForm::kSwitch) {
    return absl::StrCat("--", axis.flag, text == "1" ? "" : absl::StrCat("=", text));
  }
  std::vector<std::string> flags;
  for (const std::string& value : plan_text_cc::ValuesOf(axis, text)) {
    flags.push_back(absl::StrCat("--", axis.flag, " ", ShellQuoted(value)));
  }
  return absl::StrJoin(flags, " ");
}

std::string ToString(const ParallelPlan& plan, const ParallelPlan& base) {
  std::vector<std::string> flags;
  for (const AxisInfo* axis : AllAxes()) {
    if (axis->hidden != nullptr && axis->hidden(plan)) continue;
    if (!axis->always_printed && axis->print(plan) == axis->print(base)) continue;
    std::string text = AxisText(*axis, plan);
    if (!text.empty()) flags.push_back(std::move(text));
  }
  return absl::StrJoin(flags, " ");
}

absl::Status SetAxis(const AxisInfo& axis, absl::string_view text, ParallelPlan& plan) {
  return Annotate(axis.parse(text, plan), axis.flag);
}

absl::StatusOr<std::vector<AxisValue>> ParseValues(absl::string_view text) {
  ORRERY_ASSIGN_OR_RETURN(const std::vector<std::string> words, plan_text_cc::SplitWords(text));
  std::vector<AxisValue> values;
  for (size_t i = 0; i < words.size(); ++i) {
    absl::string_view flag = words[i];
    const bool is_flag = absl::ConsumePrefix(&flag, "--");
    const size_t equals = flag.find('=');
    const AxisInfo* axis = is_flag ? FindAxis(flag.substr(0, equals)) : nullptr;
    if (axis == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", words[i], "': wanted the flag of an axis, as in --dp 4"));
    }
    std::string value = "1";
    if (axis->form != AxisForm::kSwitch || equals != absl::string_view::npos) {
      if (equals == absl::string_view::npos && i + 1 == words.size()) {
        return absl::InvalidArgumentError(absl::StrCat(words[i], ": wanted ", axis->values));
      }
      value = equals == absl::string_view::npos ? words[++i] : std::string(flag.substr(equals + 1));
    }
    values.push_back({axis, std::move(value)});
  }
  return values;
}

absl::StatusOr<ParallelPlan> ParsePlan(absl::string_view text, const ParallelPlan& base) {
  ORRERY_ASSIGN_OR_RETURN(const std::vector<AxisValue> values, ParseValues(text));
  ParallelPlan plan = base;
  for (const auto& [axis, value] : values) ORRERY_RETURN_IF_ERROR(SetAxis(*axis, value, plan));
  return plan;
}

PlanColumns ColumnsOf(const ParallelPlan& plan) {
  PlanColumns columns;
  const auto take = [&](ColumnPlace place, std::vector<PlanColumn>& into) {
    ForEachColumn(plan, place, [&](absl::string_view name, AxisCell cell) {
      into.push_back({std::string(name), std::move(cell)});
    });
  };
  take(ColumnPlace::kBefore, columns.before);
  take(ColumnPlace::kBehind, columns.behind);
  return columns;
}

void ForEachColumn(const ParallelPlan& plan, ColumnPlace place,
                   absl::FunctionRef<void(absl::string_view name, AxisCell cell)> see) {
  static const plan_text_cc::TableColumns columns = plan_text_cc::AllColumns();
  for (const auto& [axis, name] : place == ColumnPlace::kBefore ? columns.before : columns.behind) {
    see(name, plan_text_cc::CellOf(*axis, plan));
  }
}

absl::StatusOr<ParallelPlan> PlanOfColumns(const std::map<std::string, std::string>& columns) {
  ParallelPlan plan;
  size_t taken = 0;
  for (const AxisInfo* axis : AllAxes()) {
    const auto found = columns.find(axis->Column());
    if (found == columns.end()) continue;
    ++taken;
    if (plan_text_cc::CellText(plan_text_cc::CellOf(*axis, plan)) == found->second) continue;
    for (const std::string& value : plan_text_cc::ValuesOf(*axis, found->second)) {
      ORRERY_RETURN_IF_ERROR(SetAxis(*axis, value, plan));
    }
  }
  if (taken == columns.size()) return plan;
  const auto unknown = std::ranges::find_if_not(columns, [](const auto& column) {
    return std::ranges::any_of(
        AllAxes(), [&](const AxisInfo* axis) { return axis->Column() == column.first; });
  });
  return absl::InvalidArgumentError(absl::StrCat(
      "column '", unknown->first, "': no axis of a plan has it; got '", unknown->second, "'"));
}

std::string StepKey(const ParallelPlan& plan) {
  std::string key;
  for (const AxisInfo* axis : AllAxes()) {
    if (axis->remakes_step) absl::StrAppend(&key, key.empty() ? "" : " ", AxisText(*axis, plan));
  }
  return key;
}

bool SetBy(const ParallelPlan& preset, const AxisInfo& axis, const ParallelPlan& plan) {
  const std::string text = axis.print(preset);
  return text != axis.print(ParallelPlan()) && text == axis.print(plan);
}

absl::Status CheckAxis(const AxisInfo& axis, const ParallelPlan& plan) {
  if (axis.check != nullptr) ORRERY_RETURN_IF_ERROR(Annotate(axis.check(plan), axis.flag));
  if (axis.applies == nullptr || axis.applies(plan)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(axis.flag, " ", axis.print(plan), ": wanted ", axis.needs));
}

absl::Status CheckPlan(const ParallelPlan& plan, const ParallelPlan& base) {
  for (const AxisInfo* axis : AllAxes()) {
    if (axis->check != nullptr) ORRERY_RETURN_IF_ERROR(Annotate(axis->check(plan), axis->flag));
    if (axis->print(plan) == axis->print(base)) continue;
    ORRERY_RETURN_IF_ERROR(CheckAxis(*axis, plan));
  }
  return absl::OkStatus();
}

ParallelPlan Settled(const ParallelPlan& plan, const ParallelPlan& base) {
  ParallelPlan settled = plan;
  // Later axes first: they qualify those before. Each round but the last takes an axis back to the
  // base for good.
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = AllAxes().size(); i-- > 0;) {
      const AxisInfo& axis = *AllAxes()[i];
      if (axis.check == nullptr && axis.applies == nullptr) continue;
      if (CheckAxis(axis, settled).ok() || axis.print(settled) == axis.print(base)) continue;
      axis.copy(base, settled);
      changed = true;
    }
  }
  return settled;
}

}  // namespace orrery::transforms
