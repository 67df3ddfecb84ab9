#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "search/search.h"
#include "support/csv.h"
#include "support/flag_names.h"
#include "support/number_text.h"
#include "transforms/plan/axis.h"
#include "transforms/plan/plan_text.h"

namespace orrery::search {
namespace tables_cc {
namespace {

// Why it is infeasible, in flags as the plans of a table are.
std::string Detail(const Result& result) {
  return SpellFlags(result.infeasible->detail,
                    [](absl::string_view name) { return transforms::FindAxis(name) != nullptr; });
}

// Why it has no figures, or does not fit.
std::string Reason(const Result& result) {
  if (!result.pruned.empty()) return absl::StrCat("pruned: ", result.pruned);
  if (result.left) return "left: the budget of the search ended before";
  if (!result.infeasible.has_value()) return "";
  return absl::StrCat(ToString(result.infeasible->reason), ": ", Detail(result));
}

void AddColumns(const std::vector<transforms::PlanColumn>& columns,
                std::vector<ResultCell>& cells) {
  for (const transforms::PlanColumn& column : columns) {
    ResultCell& cell = cells.emplace_back(ResultCell{.name = column.name});
    std::visit([&](const auto& value) { cell.value = value; }, column.value);
  }
}

nlohmann::ordered_json JsonOf(const ResultValue& value) {
  nlohmann::ordered_json json;
  std::visit(
      [&](const auto& of) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(of)>, std::monostate>) json = of;
      },
      value);
  return json;
}
std::string CsvText(const nlohmann::ordered_json& value) {
  if (value.is_null()) return "";
  if (value.is_string()) return CsvField(value.get<std::string>());
  if (!value.is_number_float()) return value.dump();
  return ShortestText(value.get<double>());
}

std::string Percent(double fraction) { return absl::StrFormat("%5.1f%%", 100 * fraction); }

// The cells of an axis each, side by side: numbers to the right, names to the left.
std::string AxisCells(const std::function<std::string(const transforms::AxisInfo&)>& text_of) {
  std::string text;
  for (const transforms::AxisInfo* axis : transforms::AllAxes()) {
    const int width = axis->shown.width;
    if (width == 0) continue;
    const char* const gap = text.empty() ? "" : width < 0 ? "  " : " ";
    absl::StrAppendFormat(&text, "%s%*s", gap, width, text_of(*axis));
  }
  return text;
}

// What the columns of the table leave out, where it differs from `base`: "  chunks 4  zero 3".
std::string Others(const ParallelPlan& plan, const ParallelPlan& base) {
  std::string text;
  for (const transforms::AxisInfo* axis : transforms::AllAxes()) {
    if (axis->shown.width != 0 || axis->print(plan) == axis->print(base)) continue;
    absl::StrAppend(&text, "  ", axis->names_itself ? "" : absl::StrCat(axis->flag, " "),
                    axis->print(plan));
  }
  return text;
}

// `base` with what all results have in common of what remakes the step, as of its batch.
ParallelPlan InCommon(const std::vector<const Result*>& results, ParallelPlan base) {
  for (const transforms::AxisInfo* axis : transforms::AllAxes()) {
    if (!axis->remakes_step || results.empty()) continue;
    const ParallelPlan& first = results.front()->plan;
    const bool alike = std::ranges::all_of(results, [&](const Result* result) {
      return axis->print(result->plan) == axis->print(first);
    });
    if (alike) axis->copy(first, base);
  }
  return base;
}

double Share(double seconds, const Result& r) {
  return r.step_time > Duration(0) ? seconds / r.step_time.seconds() : 0;
}

double Computing(const Result& r) {
  return std::max(0.0, 1 - Share(r.exposed_communication_s, r) - r.bubble_fraction);
}

// A column of figures. Where there is little room, those of the least rank are left out first.
struct FigureColumn {
  absl::string_view title;
  size_t width;  // with the blank before it
  int rank;
  std::string (*text)(const Result& r);
};

constexpr FigureColumn kFigures[] = {
    {"step", 13, 5, [](const Result& r) { return ToString(r.step_time); }},
    {"samples/s", 11, 3,
     [](const Result& r) { return ShortNumber(r.figures.throughput_samples_per_s); }},
    {"compute", 9, 0, [](const Result& r) { return Percent(Computing(r)); }},
    {"exposed", 9, 2, [](const Result& r) { return Percent(Share(r.exposed_communication_s, r)); }},
    {"bubble", 9, 1, [](const Result& r) { return Percent(r.bubble_fraction); }},
    {"memory", 11, 4, [](const Result& r) { return ToString(r.peak_memory); }}};

// Those that fit beside a plan of `taken` columns; step and memory always do.
std::vector<FigureColumn> FiguresThatFit(size_t taken, size_t columns) {
  std::vector<FigureColumn> figures(std::begin(kFigures), std::end(kFigures));
  for (int rank = 0; rank < 4; ++rank) {
    size_t width = taken;
    for (const FigureColumn& figure : figures) width += figure.width;
    if (width <= columns) break;
    std::erase_if(figures, [&](const FigureColumn& figure) { return figure.rank == rank; });
  }
  return figures;
}

// How wide what stands behind the figures is, as far as that is not much.
size_t OthersWidth(const ParallelPlan& base, const std::vector<const Result*>& ranked,
                   int64_t top) {
  constexpr size_t kMost = 12;
  size_t width = 0;
  for (size_t i = 0; i < ranked.size() && static_cast<int64_t>(i) < top; ++i) {
    width = std::max(width, Others(ranked[i]->plan, base).size());
  }
  return std::min(width, kMost);
}

// `base`: what is not told.
std::string Row(const ParallelPlan& base, const Result& r,
                const std::vector<FigureColumn>& figures) {
  std::string text = AxisCells([&](const auto& axis) { return axis.print(r.plan); });
  for (const FigureColumn& figure : figures) {
    absl::StrAppendFormat(&text, "%*s", static_cast<int>(figure.width), figure.text(r));
  }
  return absl::StrCat(text, Others(r.plan, base), "\n");
}

// How many are pruned or left; "3 of 55 candidates are infeasible: 2 divisibility, 1 memory", and
// an example of each.
std::string InfeasibleSummary(const SearchRows& rows, const ParallelPlan& base) {
  struct Rows {
    int64_t count = 0;
    size_t example = 0;
  };
  std::map<InfeasibleReason, Rows> reasons;
  int64_t infeasible = 0, pruned = 0, left = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    pruned += rows.IsPruned(i) ? 1 : 0;
    left += rows.IsLeft(i) ? 1 : 0;
    if (rows.IsPruned(i) || rows.IsLeft(i)) continue;
    const Result* const played = rows.Played(i);
    if (played != nullptr && !played->infeasible.has_value()) continue;
    ++infeasible;
    Rows& of_reason =
        reasons[played != nullptr ? played->infeasible->reason : InfeasibleReason::kMemory];
    if (of_reason.count++ == 0) of_reason.example = i;
  }
  std::string text;
  if (pruned > 0) {
    absl::StrAppendFormat(
        &text,
        "\n%d of %d candidates are pruned: by what they take at least, others are "
        "faster and no larger\n",
        pruned, rows.size());
  }
  if (left > 0) {
    absl::StrAppendFormat(&text, "\n%d of %d candidates are left: the budget ended before\n", left,
                          rows.size());
  }
  if (infeasible == 0) return text;
  text += absl::StrFormat("\n%d of %d candidates are infeasible:\n", infeasible, rows.size());
  for (const auto& [reason, of_reason] : reasons) {
    const Result example = rows[of_reason.example];
    absl::StrAppendFormat(&text, "%6d  %s, for example %s: %s\n", of_reason.count,
                          std::string(ToString(reason)), ToString(example.plan, base),
                          Detail(example));
  }
  return text;
}

}  // namespace
}  // namespace tables_cc

std::vector<ResultCell> CellsOf(const Setting& setting, const Result& r) {
  const auto figure = [&](double value) { return r.ran ? ResultValue(value) : ResultValue(); };
  const transforms::PlanColumns plan = transforms::ColumnsOf(r.plan);
  std::vector<ResultCell> cells = {{"model", setting.model_name},
                                   {"world_size", r.plan.ranks()},
                                   {"batch_size", setting.batch_size}};
  tables_cc::AddColumns(plan.before, cells);
  const std::vector<ResultCell> figures = {
      {"step_time_s", figure(r.step_time.seconds())},
      {"throughput_samples_per_s", figure(r.figures.throughput_samples_per_s)},
      {"tokens_per_s", figure(r.figures.tokens_per_s)},
      {"mfu", figure(r.figures.mfu)},
      {"communication_overhead", figure(r.communication_overhead)},
      {"exposed_communication_s", figure(r.exposed_communication_s)},
      {"bubble_fraction", figure(r.bubble_fraction)},
      {"peak_memory_bytes", r.ran ? ResultValue(r.peak_memory.count()) : ResultValue()},
      {"fits", r.pruned.empty() && !r.left ? ResultValue(r.feasible()) : ResultValue()},
      {"reason", tables_cc::Reason(r)}};
  cells.insert(cells.end(), figures.begin(), figures.end());
  tables_cc::AddColumns(plan.behind, cells);
  const bool priced = r.ran && setting.device_hour > 0;
  cells.push_back({"cluster", setting.cluster.name});
  cells.push_back(
      {"price_per_sample", priced ? ResultValue(PriceOfSample(setting, r)) : ResultValue()});
  if (setting.run_samples > 0) {
    const RunCost cost = CostOfRun(setting, r);
    cells.push_back({"run_days", figure(cost.days())});
    cells.push_back({"run_price", priced ? ResultValue(cost.price) : ResultValue()});
  }
  for (const ModelColumn& column : setting.model_columns) {
    ResultCell& cell = cells.emplace_back(ResultCell{.name = column.name});
    std::visit([&](const auto& value) { cell.value = value; }, column.value);
  }
  return cells;
}

std::string ResultsCsv(const Setting& setting, const SearchRows& rows) {
  std::string text;
  for (const ResultCell& cell : CellsOf(setting, Result())) {
    absl::StrAppend(&text, text.empty() ? "" : ",", cell.name);
  }
  rows.ForEach([&](const Result& result) {
    text += "\n";
    absl::StrAppend(
        &text,
        absl::StrJoin(CellsOf(setting, result), ",", [](std::string* out, const ResultCell& cell) {
          *out += tables_cc::CsvText(tables_cc::JsonOf(cell.value));
        }));
  });
  return text + "\n";
}

std::string ResultsJson(const Setting& setting, const SearchRows& rows) {
  // Row by row: what a million rows are as JSON values is more than there is.
  std::string text;
  rows.ForEach([&](const Result& result) {
    nlohmann::ordered_json row;
    for (const ResultCell& cell : CellsOf(setting, result)) {
      row[cell.name] = tables_cc::JsonOf(cell.value);
    }
    const std::string indented = nlohmann::ordered_json::array({std::move(row)}).dump(1);
    // "[\n {…}\n]" without its brackets.
    absl::StrAppend(&text, text.empty() ? "" : ",", "\n",
                    absl::string_view(indented).substr(2, indented.size() - 4));
  });
  return text.empty() ? "[]\n" : absl::StrCat("[", text, "\n]\n");
}

std::string ResultsTable(const Setting& setting, const SearchRows& rows, int64_t top,
                         size_t columns) {
  const std::vector<const Result*> ranked = Ranked(rows);
  std::string text =
      absl::StrFormat("%s, batch %d, on %s: %d candidates, %d feasible\n\n", setting.model_name,
                      setting.batch_size, setting.cluster.name, rows.size(), ranked.size());
  const std::string plan =
      tables_cc::AxisCells([](const auto& axis) { return std::string(axis.shown.title); });
  const ParallelPlan base = tables_cc::InCommon(ranked, setting.base);
  const std::vector<tables_cc::FigureColumn> figures =
      tables_cc::FiguresThatFit(plan.size() + tables_cc::OthersWidth(base, ranked, top), columns);
  if (!ranked.empty()) {
    text += plan;
    for (const tables_cc::FigureColumn& figure : figures) {
      absl::StrAppendFormat(&text, "%*s", static_cast<int>(figure.width), figure.title);
    }
    text += "\n";
  }
  for (size_t i = 0; i < ranked.size() && static_cast<int64_t>(i) < top; ++i)
    text += tables_cc::Row(base, *ranked[i], figures);
  return text + tables_cc::InfeasibleSummary(rows, setting.base);
}

}  // namespace orrery::search
