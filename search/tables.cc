#include <algorithm>
#include <functional>
#include <map>
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

// One column of the CSV and one key of the JSON.
struct Cell {
  std::string name;
  nlohmann::ordered_json value;
};

void AddColumns(const std::vector<transforms::PlanColumn>& columns, std::vector<Cell>& cells) {
  for (const transforms::PlanColumn& column : columns) {
    Cell& cell = cells.emplace_back(Cell{.name = column.name, .value = nullptr});
    std::visit([&](const auto& value) { cell.value = value; }, column.value);
  }
}

std::vector<Cell> Cells(const Setting& setting, const Result& r) {
  using Json = nlohmann::ordered_json;
  const auto figure = [&](double value) { return r.ran ? Json(value) : Json(); };
  const transforms::PlanColumns plan = transforms::ColumnsOf(r.plan);
  std::vector<Cell> cells = {{"model", setting.model_name},
                             {"world_size", r.plan.ranks()},
                             {"batch_size", setting.batch_size}};
  AddColumns(plan.before, cells);
  const std::vector<Cell> figures = {
      {"step_time_s", figure(r.step_time.seconds())},
      {"throughput_samples_per_s", figure(r.figures.throughput_samples_per_s)},
      {"tokens_per_s", figure(r.figures.tokens_per_s)},
      {"mfu", figure(r.figures.mfu)},
      {"communication_overhead", figure(r.communication_overhead)},
      {"exposed_communication_s", figure(r.exposed_communication_s)},
      {"bubble_fraction", figure(r.bubble_fraction)},
      {"peak_memory_bytes", r.ran ? Json(r.peak_memory.count()) : Json()},
      {"fits", r.feasible()},
      {"reason", r.infeasible.has_value()
                     ? absl::StrCat(ToString(r.infeasible->reason), ": ", Detail(r))
                     : ""}};
  cells.insert(cells.end(), figures.begin(), figures.end());
  AddColumns(plan.behind, cells);
  return cells;
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

// `base`: what is not told.
std::string Row(const ParallelPlan& base, const Result& r) {
  const double step_s = r.step_time.seconds();
  const double exposed = step_s > 0 ? r.exposed_communication_s / step_s : 0;
  const double computing = std::max(0.0, 1 - exposed - r.bubble_fraction);
  const std::string plan = AxisCells([&](const auto& axis) { return axis.print(r.plan); });
  return absl::StrFormat("%s %12s %14.2f %8s %8s %8s %10s%s\n", plan, ToString(r.step_time),
                         r.figures.throughput_samples_per_s, Percent(computing), Percent(exposed),
                         Percent(r.bubble_fraction), ToString(r.peak_memory), Others(r.plan, base));
}

// "3 of 55 candidates are infeasible: 2 divisibility, 1 memory", and an example of each.
std::string InfeasibleSummary(const std::vector<Result>& results, const ParallelPlan& base) {
  std::map<InfeasibleReason, std::pair<int, const Result*>> reasons;
  int infeasible = 0;
  for (const Result& r : results) {
    if (!r.infeasible.has_value()) continue;
    ++infeasible;
    auto& [count, example] = reasons[r.infeasible->reason];
    if (count++ == 0) example = &r;
  }
  if (infeasible == 0) return "";
  std::string text =
      absl::StrFormat("\n%d of %d candidates are infeasible:\n", infeasible, results.size());
  for (const auto& [reason, row] : reasons) {
    absl::StrAppendFormat(&text, "%6d  %s, for example %s: %s\n", row.first,
                          std::string(ToString(reason)), ToString(row.second->plan, base),
                          Detail(*row.second));
  }
  return text;
}

}  // namespace
}  // namespace tables_cc

std::string ResultsCsv(const Setting& setting, const std::vector<Result>& results) {
  std::string text;
  for (const tables_cc::Cell& cell : tables_cc::Cells(setting, Result())) {
    absl::StrAppend(&text, text.empty() ? "" : ",", cell.name);
  }
  for (const Result& result : results) {
    text += "\n";
    absl::StrAppend(&text, absl::StrJoin(tables_cc::Cells(setting, result), ",",
                                         [](std::string* out, const tables_cc::Cell& cell) {
                                           *out += tables_cc::CsvText(cell.value);
                                         }));
  }
  return text + "\n";
}

std::string ResultsJson(const Setting& setting, const std::vector<Result>& results) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Result& result : results) {
    nlohmann::ordered_json row;
    for (tables_cc::Cell& cell : tables_cc::Cells(setting, result))
      row[cell.name] = std::move(cell.value);
    rows.push_back(std::move(row));
  }
  return rows.dump(1) + "\n";
}

std::string ResultsTable(const Setting& setting, const std::vector<Result>& results, int64_t top) {
  const std::vector<const Result*> ranked = Ranked(results);
  std::string text =
      absl::StrFormat("%s, batch %d, on %s: %d candidates, %d feasible\n\n", setting.model_name,
                      setting.batch_size, setting.cluster.name, results.size(), ranked.size());
  if (!ranked.empty()) {
    const std::string plan =
        tables_cc::AxisCells([](const auto& axis) { return std::string(axis.shown.title); });
    absl::StrAppendFormat(&text, "%s %12s %14s %8s %8s %8s %10s\n", plan, "step", "samples/s",
                          "compute", "exposed", "bubble", "memory");
  }
  const ParallelPlan base = tables_cc::InCommon(ranked, setting.base);
  for (size_t i = 0; i < ranked.size() && static_cast<int64_t>(i) < top; ++i)
    text += tables_cc::Row(base, *ranked[i]);
  return text + tables_cc::InfeasibleSummary(results, setting.base);
}

}  // namespace orrery::search
