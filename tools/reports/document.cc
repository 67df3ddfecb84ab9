#include "tools/reports/document.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "tools/reports/version.h"

namespace orrery::tools {
namespace document_cc {
namespace {

using Json = nlohmann::ordered_json;

Json NumberJson(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json CellJson(const Cell& cell) {
  return std::visit(
      [](const auto& value) -> Json {
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, std::monostate>) {
          return Json();
        } else if constexpr (std::is_same_v<Value, double>) {
          return NumberJson(value);
        } else {
          return Json(value);
        }
      },
      cell);
}

Json CellsJson(const std::vector<Cell>& cells) {
  Json list = Json::array();
  for (const Cell& cell : cells) list.push_back(CellJson(cell));
  return list;
}

const char* StyleName(ChartStyle style) {
  switch (style) {
    case ChartStyle::kLine:
      return "line";
    case ChartStyle::kPoints:
      return "points";
    case ChartStyle::kBars:
      return "bars";
    case ChartStyle::kStackedBars:
      return "stacked-bars";
    case ChartStyle::kArea:
      return "area";
    case ChartStyle::kSteps:
      return "steps";
  }
  return "line";
}

Json QuantityJson(const Quantity& quantity) {
  return {{"name", quantity.name}, {"unit", quantity.unit}, {"log", quantity.log}};
}

Json SeriesJson(const Series& series) {
  Json points = Json::array();
  for (const auto& [x, y] : series.points) points.push_back({NumberJson(x), NumberJson(y)});
  Json json = {{"name", series.name}, {"points", std::move(points)}};
  if (!series.texts.empty()) json["texts"] = series.texts;
  if (series.style.has_value()) json["style"] = StyleName(*series.style);
  return json;
}

Json ViewJson(const TableView& view) {
  Json columns = Json::array(), rows = Json::array();
  for (const Quantity& column : view.columns) {
    columns.push_back({{"name", column.name}, {"unit", column.unit}});
  }
  for (const std::vector<Cell>& row : view.rows) rows.push_back(CellsJson(row));
  return {{"kind", "table"}, {"title", view.title}, {"columns", columns}, {"rows", rows}};
}

Json ViewJson(const ChartView& view) {
  Json panels = Json::array();
  for (const Panel& panel : view.panels) {
    Json series = Json::array();
    for (const Series& one : panel.series) series.push_back(SeriesJson(one));
    panels.push_back({{"title", panel.title}, {"series", std::move(series)}});
  }
  Json json = {
      {"kind", "chart"},           {"title", view.title},       {"style", StyleName(view.style)},
      {"x", QuantityJson(view.x)}, {"y", QuantityJson(view.y)}, {"panels", std::move(panels)}};
  if (!view.categories.empty()) json["categories"] = view.categories;
  return json;
}

Json ViewJson(const TimelineView& view) {
  Json slices = Json::array();
  for (const Slice& slice : view.slices) {
    slices.push_back({slice.row, slice.kind, slice.start_s, slice.end_s, slice.label});
  }
  return {{"kind", "timeline"},    {"title", view.title},   {"unit", view.unit},
          {"rows", view.rows},     {"kinds", view.kinds},   {"slices", std::move(slices)},
          {"labels", view.labels}, {"begin", view.begin_s}, {"end", view.end_s}};
}

Json SectionsJson(const std::vector<Section>& sections) {
  Json list = Json::array();
  for (const Section& section : sections) {
    Json views = Json::array();
    for (const View& view : section.views) {
      views.push_back(std::visit([](const auto& of) { return ViewJson(of); }, view));
    }
    list.push_back({{"id", section.id},
                    {"title", section.title},
                    {"text", section.text},
                    {"views", std::move(views)}});
  }
  return list;
}

Json RunJson(const RunDocument& run) {
  Json figures = Json::array();
  for (const Figure& figure : run.figures) {
    figures.push_back({{"name", figure.name},
                       {"value", CellJson(figure.value)},
                       {"unit", figure.unit},
                       {"title", figure.title}});
  }
  Json json = {{"name", run.name}, {"flags", run.flags}};
  if (run.row >= 0) json["row"] = run.row;
  json["figures"] = std::move(figures);
  json["sections"] = SectionsJson(run.sections);
  return json;
}

Json RunsJson(const std::vector<RunDocument>& runs) {
  Json list = Json::array();
  for (const RunDocument& run : runs) list.push_back(RunJson(run));
  return list;
}

// The values of a column in whichever form is short.
void AddValues(const CandidateColumn& column, Json& json) {
  if (column.words.size() == 1) {
    json["same"] = CellJson(column.words.front());
  } else if (2 * column.words.size() <= column.places.size()) {
    json["dictionary"] = CellsJson(column.words);
    json["indices"] = column.places;
  } else {
    Json values = Json::array();
    for (const uint32_t place : column.places) values.push_back(CellJson(column.words[place]));
    json["values"] = std::move(values);
  }
}

Json SearchJson(const SearchDocument& search) {
  Json columns = Json::array();
  for (const CandidateColumn& column : search.columns) {
    Json json = {{"name", column.name},
                 {"title", column.title},
                 {"unit", column.unit},
                 {"axis", column.is_axis}};
    AddValues(column, json);
    columns.push_back(std::move(json));
  }
  return {{"title", search.title},         {"columns", std::move(columns)},
          {"row_count", search.row_count}, {"all_rows", search.all_rows},
          {"ranked", search.ranked},       {"front", search.front},
          {"runs", RunsJson(search.runs)}};
}

}  // namespace
}  // namespace document_cc

std::string DocumentJson(const Document& document) {
  using document_cc::Json;
  Json searches = Json::array();
  for (const SearchDocument& search : document.searches) {
    searches.push_back(document_cc::SearchJson(search));
  }
  const Json json = {{"schema", 1},
                     {"title", document.title},
                     {"program", document.program},
                     {"version", std::string(Version())},
                     {"command", document.command},
                     {"notes", document.notes},
                     {"sections", document_cc::SectionsJson(document.sections)},
                     {"searches", std::move(searches)},
                     {"runs", document_cc::RunsJson(document.runs)}};
  return json.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

}  // namespace orrery::tools
