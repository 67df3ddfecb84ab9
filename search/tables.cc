#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "search/search.h"
#include "support/check.h"
#include "support/csv.h"
#include "support/flag_names.h"
#include "support/number_text.h"
#include "support/status.h"
#include "support/threads.h"
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

// Called with the name and the value of a cell.
using CellSight = absl::FunctionRef<void(absl::string_view name, ResultValue value)>;

template <typename... Of>
ResultValue ValueOf(std::variant<Of...> value) {
  return std::visit([](auto& of) { return ResultValue(std::move(of)); }, value);
}

void SeePlan(const ParallelPlan& plan, transforms::ColumnPlace place, CellSight see) {
  transforms::ForEachColumn(plan, place, [&](absl::string_view name, transforms::AxisCell cell) {
    see(name, ValueOf(std::move(cell)));
  });
}

void SeeFigures(const Result& r, CellSight see) {
  const auto figure = [&](double value) { return r.ran ? ResultValue(value) : ResultValue(); };
  see("step_time_s", figure(r.step_time.seconds()));
  see("throughput_samples_per_s", figure(r.figures.throughput_samples_per_s));
  see("tokens_per_s", figure(r.figures.tokens_per_s));
  see("mfu", figure(r.figures.mfu));
  see("communication_overhead", figure(r.communication_overhead));
  see("exposed_communication_s", figure(r.exposed_communication_s));
  see("bubble_fraction", figure(r.bubble_fraction));
  see("peak_memory_bytes", r.ran ? ResultValue(r.peak_memory.count()) : ResultValue());
  see("fits", r.pruned.empty() && !r.left ? ResultValue(r.feasible()) : ResultValue());
  see("reason", Reason(r));
}

void SeeCosts(const Setting& setting, const Result& r, CellSight see) {
  const bool priced = r.ran && setting.device_hour > 0;
  see("price_per_sample", priced ? ResultValue(PriceOfSample(setting, r)) : ResultValue());
  if (setting.run_samples <= 0) return;
  const RunCost cost = CostOfRun(setting, r);
  see("run_days", r.ran ? ResultValue(cost.days()) : ResultValue());
  see("run_price", priced ? ResultValue(cost.price) : ResultValue());
}

// Each cell of a row, in the order of the columns.
void SeeCells(const Setting& setting, const Result& r, CellSight see) {
  see("model", setting.model_name);
  see("world_size", r.plan.ranks());
  see("batch_size", setting.batch_size);
  SeePlan(r.plan, transforms::ColumnPlace::kBefore, see);
  SeeFigures(r, see);
  SeePlan(r.plan, transforms::ColumnPlace::kBehind, see);
  see("cluster", setting.cluster.name);
  SeeCosts(setting, r, see);
  for (const ModelColumn& column : setting.model_columns) see(column.name, ValueOf(column.value));
}

std::string JsonOf(const ResultValue& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) return absl::StrCat(*number);
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? "true" : "false";
  if (const auto* real = std::get_if<double>(&value)) return nlohmann::json(*real).dump();
  if (const auto* text = std::get_if<std::string>(&value)) return nlohmann::json(*text).dump();
  return "null";
}

// With a blank for each level, as nlohmann::json::dump(1) has it.
void AppendJsonRow(const Setting& setting, const Result& result, std::string& text) {
  bool first = true;
  text += "\n {";
  SeeCells(setting, result, [&](absl::string_view name, const ResultValue& value) {
    absl::StrAppend(&text, std::exchange(first, false) ? "" : ",", "\n  \"", name,
                    "\": ", JsonOf(value));
  });
  text += "\n }";
}

void AppendCsv(const ResultValue& value, std::string& text) {
  if (const auto* number = std::get_if<int64_t>(&value)) absl::StrAppend(&text, *number);
  if (const auto* truth = std::get_if<bool>(&value)) text += *truth ? "true" : "false";
  if (const auto* real = std::get_if<double>(&value)) text += ShortestText(*real);
  if (const auto* name = std::get_if<std::string>(&value)) text += CsvField(*name);
}

std::string CsvHeader(const Setting& setting) {
  std::string text;
  SeeCells(setting, Result(), [&](absl::string_view name, const ResultValue&) {
    absl::StrAppend(&text, text.empty() ? "" : ",", name);
  });
  return text + "\n";
}

void AppendCsvRow(const Setting& setting, const Result& result, std::string& text) {
  bool first = true;
  SeeCells(setting, result, [&](absl::string_view, const ResultValue& value) {
    if (!std::exchange(first, false)) text += ',';
    AppendCsv(value, text);
  });
  text += '\n';
}

// Appends what stands for the result, which is that of row `row`.
using AppendRow = std::function<void(size_t row, const Result& result, std::string& text)>;

// Threads make a piece each, which are written in their order.
absl::Status WritePieces(const SearchRows& rows, size_t threads, const PieceSink& write,
                         const AppendRow& append) {
  constexpr size_t kRowsOfAPiece = 4096, kMostThreads = 64;
  std::vector<std::string> pieces(std::clamp<size_t>(threads, 1, kMostThreads));
  for (size_t begin = 0; begin < rows.size(); begin += pieces.size() * kRowsOfAPiece) {
    ForEachOnThreads(pieces.size(), pieces.size(), [&](size_t number) {
      pieces[number].clear();
      size_t row = begin + number * kRowsOfAPiece;
      rows.ForEach(row, row + kRowsOfAPiece,
                   [&](const Result& result) { append(row++, result, pieces[number]); });
    });
    for (const std::string& piece : pieces) {
      if (!piece.empty()) ORRERY_RETURN_IF_ERROR(write(piece));
    }
  }
  return absl::OkStatus();
}

// All pieces as one text.
std::string Joined(const std::function<absl::Status(const PieceSink& write)>& write_all) {
  std::string text;
  const absl::Status written = write_all([&](absl::string_view piece) {
    absl::StrAppend(&text, piece);
    return absl::OkStatus();
  });
  ORRERY_CHECK(written.ok()) << written;
  return text;
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
  std::vector<ResultCell> cells;
  tables_cc::SeeCells(setting, r, [&](absl::string_view name, ResultValue value) {
    cells.push_back({.name = std::string(name), .value = std::move(value)});
  });
  return cells;
}

absl::Status WriteResultsCsv(const Setting& setting, const SearchRows& rows,
                             const PiecesOptions& options, const PieceSink& write) {
  if (options.is_first) ORRERY_RETURN_IF_ERROR(write(tables_cc::CsvHeader(setting)));
  return tables_cc::WritePieces(rows, options.threads, write,
                                [&](size_t /*row*/, const Result& result, std::string& text) {
                                  tables_cc::AppendCsvRow(setting, result, text);
                                });
}

absl::Status WriteResultsJson(const Setting& setting, const SearchRows& rows,
                              const PiecesOptions& options, const PieceSink& write) {
  return tables_cc::WritePieces(rows, options.threads, write,
                                [&](size_t row, const Result& result, std::string& text) {
                                  text += row > 0 || !options.is_first ? "," : "[";
                                  tables_cc::AppendJsonRow(setting, result, text);
                                });
}

std::string ResultsCsv(const Setting& setting, const SearchRows& rows) {
  return tables_cc::Joined(
      [&](const PieceSink& write) { return WriteResultsCsv(setting, rows, {}, write); });
}

std::string ResultsJson(const Setting& setting, const SearchRows& rows) {
  const std::string text = tables_cc::Joined(
      [&](const PieceSink& write) { return WriteResultsJson(setting, rows, {}, write); });
  return text.empty() ? "[]\n" : absl::StrCat(text, kEndOfJson);
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
