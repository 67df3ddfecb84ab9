#include "tools/reports/search_views.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "search/pruning.h"
#include "transforms/plan/axis.h"
#include "transforms/plan/plan_text.h"

namespace orrery::tools {
namespace search_views_cc {
namespace {

using search::Result;

// How a page calls a column, and in which unit it is.
struct ColumnInfo {
  const char *name, *title, *unit;
};
constexpr ColumnInfo kColumns[] = {{"world_size", "devices", ""},
                                   {"num_microbatches", "microbatches", ""},
                                   {"step_time_s", "step", "s"},
                                   {"throughput_samples_per_s", "throughput", "samples/s"},
                                   {"tokens_per_s", "tokens", "tokens/s"},
                                   {"mfu", "MFU", "share"},
                                   {"communication_overhead", "communication", "share"},
                                   {"exposed_communication_s", "exposed", "s"},
                                   {"bubble_fraction", "bubble", "share"},
                                   {"peak_memory_bytes", "memory", "bytes"},
                                   {"price_per_sample", "price a sample", "currency"},
                                   {"run_days", "days of the run", "days"},
                                   {"run_price", "price of the run", "currency"}};

CandidateColumn ColumnOf(const std::string& name) {
  CandidateColumn column{.name = name, .title = absl::StrReplaceAll(name, {{"_", " "}})};
  for (const ColumnInfo& info : kColumns) {
    if (name != info.name) continue;
    column.title = info.title;
    column.unit = info.unit;
  }
  return column;
}

// The columns of plans.
std::set<std::string> AxisNames() {
  const transforms::PlanColumns columns = transforms::ColumnsOf({});
  std::set<std::string> names;
  for (const auto* part : {&columns.before, &columns.behind}) {
    for (const transforms::PlanColumn& column : *part) names.insert(column.name);
  }
  return names;
}

// Puts rows into columns.
class Columns {
 public:
  void Add(const std::vector<search::ResultCell>& row) {
    if (columns_.empty()) Begin(row);
    for (size_t c = 0; c < row.size(); ++c) {
      CandidateColumn& column = columns_[c];
      const auto [found, is_new] =
          places_[c].try_emplace(row[c].value, static_cast<uint32_t>(column.words.size()));
      if (is_new) column.words.push_back(row[c].value);
      column.places.push_back(found->second);
    }
  }
  std::vector<CandidateColumn> Finish() && { return std::move(columns_); }

 private:
  void Begin(const std::vector<search::ResultCell>& row) {
    const std::set<std::string> axes = AxisNames();
    for (const search::ResultCell& cell : row) {
      columns_.push_back(ColumnOf(cell.name));
      columns_.back().is_axis = axes.contains(cell.name);
    }
    places_.resize(row.size());
  }

  std::vector<CandidateColumn> columns_;
  std::vector<std::unordered_map<Cell, uint32_t>> places_;  // by column: of words
};

// Whose row is which.
using RowsOfResults = std::unordered_map<const Result*, int64_t>;

// The best of those that have the same key, by keys.
template <typename KeyOf>
auto BestBy(const std::vector<const Result*>& ranked, const KeyOf& key_of) {
  std::map<decltype(key_of(*ranked.front())), const Result*> best;
  for (const Result* result : ranked) best.try_emplace(key_of(*result), result);
  return best;
}

double Throughput(const Result& result) { return result.figures.throughput_samples_per_s; }

// Numbers by their size, other texts behind them.
bool ValueComesBefore(const std::string& a, const std::string& b) {
  int64_t x = 0, y = 0;
  const bool a_number = absl::SimpleAtoi(a, &x), b_number = absl::SimpleAtoi(b, &y);
  if (a_number && b_number) return x < y;
  return a_number != b_number ? a_number : a < b;
}

}  // namespace
}  // namespace search_views_cc

SearchDocument SearchTable(const search::Setting& setting, const search::SearchRows& rows,
                           size_t most) {
  SearchDocument document{.title = absl::StrCat(setting.model_name, ", batch ", setting.batch_size,
                                                ", on ", setting.cluster.name),
                          .all_rows = rows.size()};
  const std::vector<const search::Result*> ranked = Ranked(rows);
  std::vector<const search::Result*> front = ParetoFront(rows.played());
  std::ranges::stable_sort(front, {}, &search::Result::step_time);
  search_views_cc::Columns columns;
  search_views_cc::RowsOfResults row_of;
  if (rows.size() > most) {
    for (size_t i = 0; i < std::min(ranked.size(), most); ++i) {
      row_of.emplace(ranked[i], static_cast<int64_t>(i));
      columns.Add(CellsOf(setting, *ranked[i]));
    }
  }
  size_t count = row_of.size();
  for (size_t i = 0; i < rows.size() && count < most; ++i) {
    const search::Result* const played = rows.Played(i);
    if (played != nullptr && row_of.contains(played)) continue;
    if (played != nullptr) row_of.emplace(played, static_cast<int64_t>(count));
    columns.Add(CellsOf(setting, played != nullptr ? *played : rows[i]));
    ++count;
  }
  const auto add = [&](const std::vector<const search::Result*>& results,
                       std::vector<int64_t>& list) {
    for (const search::Result* result : results) {
      const auto found = row_of.find(result);
      if (found != row_of.end()) list.push_back(found->second);
    }
  };
  add(ranked, document.ranked);
  add(front, document.front);
  document.columns = std::move(columns).Finish();
  document.row_count = count;
  return document;
}

Section DegreesSection(const search::Setting& setting, const search::SearchRows& rows) {
  Section section{.id = "degrees", .title = "Throughput over degrees"};
  const std::vector<const search::Result*> ranked = FastestFirst(rows);
  if (ranked.empty()) return section;
  ChartView chart{.title = absl::StrCat("Throughput of ", setting.model_name, ", batch ",
                                        setting.batch_size, ", on ", setting.cluster.name),
                  .x = {"horizontal (tensor) parallel degree", "", true},
                  .y = {"throughput", "samples/s", true},
                  .name = "degrees"};
  const auto best = search_views_cc::BestBy(ranked, [](const search::Result& result) {
    return std::tuple(result.plan.dp, result.plan.microbatches, result.plan.hp);
  });
  for (const auto& [key, result] : best) {
    const auto [dp, microbatches, hp] = key;
    const std::string title = absl::StrCat("dp ", dp);
    if (chart.panels.empty() || chart.panels.back().title != title) {
      chart.panels.push_back({.title = title});
    }
    std::vector<Series>& lines = chart.panels.back().series;
    const std::string line =
        absl::StrCat(microbatches, microbatches == 1 ? " microbatch" : " microbatches");
    if (lines.empty() || lines.back().name != line) lines.push_back({.name = line});
    lines.back().points.emplace_back(hp, search_views_cc::Throughput(*result));
    lines.back().texts.push_back(transforms::ToString(result->plan, setting.base));
  }
  section.text = {
      "Each point is the best of all candidates with these degrees; the pipeline has the "
      "rest of the devices."};
  section.views.emplace_back(std::move(chart));
  return section;
}

Section FrontSection(const search::Setting& setting, const search::SearchRows& rows) {
  Section section{.id = "front", .title = "Pareto front"};
  std::vector<const search::Result*> front = ParetoFront(rows.played());
  if (front.empty()) return section;
  std::ranges::stable_sort(front, {}, &search::Result::step_time);
  const bool priced = setting.device_hour > 0;
  TableView table{.title = "No other candidate is better in time, memory and devices",
                  .columns = {{"step", "s"}, {"memory", "bytes"}, {"devices"}}};
  if (priced) table.columns.push_back({"price a sample", "currency"});
  table.columns.push_back({"plan"});
  for (const search::Result* result : front) {
    std::vector<Cell>& row = table.rows.emplace_back(std::vector<Cell>{
        result->step_time.seconds(), result->peak_memory.count(), result->plan.ranks()});
    if (priced) row.push_back(PriceOfSample(setting, *result));
    row.push_back(transforms::ToString(result->plan, setting.base));
  }
  if (rows.least_left().has_value()) section.text = {"Of what was played."};
  section.views.emplace_back(std::move(table));
  return section;
}

Section WorthSection(const search::Setting&, const search::SearchRows& rows) {
  Section section{.id = "worth", .title = "What each axis is worth"};
  const std::vector<const search::Result*> ranked = FastestFirst(rows);
  if (ranked.empty()) return section;
  TableView table{.title = "The best with each value",
                  .columns = {{"axis"},
                              {"value"},
                              {"candidates that fit"},
                              {"best step", "s"},
                              {"of the best throughput", "share"},
                              {"its memory", "bytes"}}};
  const double most = search_views_cc::Throughput(*ranked.front());
  for (const transforms::AxisInfo* axis : transforms::AllAxes()) {
    const auto by_value = search_views_cc::BestBy(
        ranked, [&](const search::Result& result) { return axis->print(result.plan); });
    if (by_value.size() < 2) continue;
    std::map<std::string, int64_t> counts;
    for (const search::Result* result : ranked) ++counts[axis->print(result->plan)];
    std::vector<std::string> values;
    for (const auto& [value, result] : by_value) values.push_back(value);
    std::ranges::sort(values, search_views_cc::ValueComesBefore);
    for (const std::string& value : values) {
      const search::Result& result = *by_value.at(value);
      table.rows.push_back(
          {std::string(axis->flag), value, counts[value], result.step_time.seconds(),
           most > 0 ? search_views_cc::Throughput(result) / most : 0, result.peak_memory.count()});
    }
  }
  if (table.rows.empty()) return section;
  section.text = {"Of each value the fastest candidate that has it, whatever it has besides."};
  section.views.emplace_back(std::move(table));
  return section;
}

Section CountsSection(const search::Setting&, const search::SearchRows& rows) {
  std::map<std::string, int64_t> counts;
  for (size_t i = 0; i < rows.size(); ++i) {
    const search::Result* const played = rows.Played(i);
    std::string what = "do not fit, by a bound of their memory";
    if (rows.IsPruned(i)) {
      what = "pruned: others are faster and no larger";
    } else if (rows.IsLeft(i)) {
      what = "left: the budget ended before";
    } else if (played != nullptr) {
      what = !played->infeasible.has_value()
                 ? "fit"
                 : absl::StrCat("infeasible: ", ToString(played->infeasible->reason));
    }
    ++counts[what];
  }
  TableView table{.title = "Candidates", .columns = {{"what came of them"}, {"candidates"}}};
  for (const auto& [what, count] : counts) table.rows.push_back({what, count});
  std::ranges::stable_sort(table.rows, std::greater<>(),
                           [](const std::vector<Cell>& row) { return std::get<int64_t>(row[1]); });
  return {.id = "counts", .title = "Candidates by outcome", .views = {std::move(table)}};
}

}  // namespace orrery::tools
