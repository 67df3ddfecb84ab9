#include "tools/validation/predicted_tables.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "cost_models/measured_curves.h"
#include "support/file.h"
#include "support/numbers/median.h"
#include "support/status.h"
#include "support/text_table.h"
#include "tools/measurements.h"
#include "tools/validation/expert_layer.h"
#include "tools/validation/kernel_points.h"
#include "tools/validation/rows/measured_steps.h"
#include "tools/validation/stack_file.h"

namespace orrery::tools {
namespace predicted_tables_cc {
namespace {

using Json = nlohmann::json;
using cost_models::MeasuredCurve;

std::string TextOf(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// A list of texts; empty where it is none.
std::vector<std::string> TextsOf(const Json& object, const char* key) {
  std::vector<std::string> texts;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) return texts;
  for (const Json& text : *found) texts.push_back(text.is_string() ? text.get<std::string>() : "");
  return texts;
}

// Fields of a table, by name, and the points under them.
struct Columns {
  std::vector<std::string> names;

  bool Has(absl::string_view name) const { return std::ranges::find(names, name) != names.end(); }
};

// What one kind of kernels is priced by; null: there is no such call.
using Predictor = absl::StatusOr<double> (*)(const KernelPoints&, const PointFigures&);

Predictor PredictorOf(const Columns& columns) {
  const bool product = columns.Has("m") && columns.Has("n") && columns.Has("k");
  if (product && columns.Has("groups"))
    return columns.Has("stage") ? PredictGroupedProduct : nullptr;
  if (product) return PredictProduct;
  if (columns.Has("seq") && columns.Has("heads")) return PredictAttention;
  if (columns.Has("tokens") && columns.Has("experts") && columns.Has("distribution")) {
    return PredictExpertLayer;
  }
  return nullptr;
}

// A point of a table; nothing where it is no list of as many numbers.
PointFigures FiguresOfPoint(const Columns& columns, const Json& point) {
  PointFigures figures;
  if (!point.is_array() || point.size() != columns.names.size()) return {};
  for (size_t i = 0; i < point.size(); ++i) {
    if (!point[i].is_number()) return {};
    figures[columns.names[i]] = point[i].get<double>();
  }
  return figures;
}

std::string WhatOf(const Columns& columns, const PointFigures& figures) {
  std::string what;
  for (const std::string& name : columns.names) {
    if (name == "us") continue;
    absl::StrAppend(&what, what.empty() ? "" : ",", name, "=", figures.at(name));
  }
  return what;
}

// No kernel takes less than a nanosecond, or a day.
bool IsTime(double seconds) { return seconds >= 1e-9 && seconds <= 1e5; }

void Add(PredictedTable& table, std::string what, double measured,
         const absl::StatusOr<double>& predicted) {
  if (!predicted.ok() || !IsTime(measured)) {
    ++table.skipped[predicted.ok() ? "no time was measured"
                                   : std::string(predicted.status().message())];
    return;
  }
  table.points.push_back({std::move(what), measured, *predicted});
}

// All points of a table for one reason.
void SkipAll(PredictedTable& table, const Json& points, absl::string_view reason) {
  table.skipped[std::string(reason)] += static_cast<int64_t>(points.size());
}

absl::StatusOr<KernelPoints> KernelsOf(const Json& table, const Columns& columns) {
  KernelPoints kernels;
  ORRERY_ASSIGN_OR_RETURN(kernels.device, DeviceOfName(TextOf(table, "gpu")));
  ORRERY_ASSIGN_OR_RETURN(kernels.dtype, TypeOfName(TextOf(table, "dtype")));
  kernels.training = columns.Has("layout") || columns.Has("stage") || columns.Has("backward");
  if (kernels.dtype == ir::DType::kF8) {
    kernels.attention = cost_models::AttentionClass::kCudnn8;
  }
  if (columns.Has("groups")) {  // of TransformerEngine, as Megatron's core has them
    ORRERY_ASSIGN_OR_RETURN(const SoftwareStack stack, FindStack("megatron-core"));
    kernels.experts = ExpertProductsOf(stack);
    kernels.experts.present = true;
  }
  kernels.distributions = TextsOf(table, "distributions");
  kernels.quantizes = ir::SizeOf(kernels.dtype) == 1 &&
                      absl::StrContains(TextOf(table, "framework"), "TensorRT-LLM");
  return kernels;
}

void PredictKernels(const Json& table, const Columns& columns, const Json& points,
                    PredictedTable& predicted) {
  const Predictor predictor = PredictorOf(columns);
  if (predictor == nullptr) {
    SkipAll(predicted, points,
            absl::StrCat("no single kernel has ", absl::StrJoin(columns.names, ", ")));
    return;
  }
  const absl::StatusOr<KernelPoints> kernels = KernelsOf(table, columns);
  if (!kernels.ok()) return SkipAll(predicted, points, kernels.status().message());
  for (const Json& point : points) {
    const PointFigures figures = FiguresOfPoint(columns, point);
    if (figures.empty()) {
      ++predicted.skipped["a point is no list of the table's fields"];
      continue;
    }
    Add(predicted, WhatOf(columns, figures), figures.at("us") * 1e-6, predictor(*kernels, figures));
  }
}

void PredictSweep(const MeasuredCurve& curve, PredictedTable& table) {
  const absl::StatusOr<std::vector<double>> seconds = PredictCurve(curve);
  if (!seconds.ok()) {
    table.skipped[std::string(seconds.status().message())] += std::ssize(curve.points);
    return;
  }
  for (size_t i = 0; i < seconds->size(); ++i) {
    Add(table, absl::StrCat("gpus=", curve.devices, ",bytes=", curve.points[i].size.count()),
        curve.points[i].seconds, (*seconds)[i]);
  }
}

std::optional<cost_models::CollectiveKind> KindOf(const Json& table) {
  std::string name = absl::StrReplaceAll(TextOf(table, "op"), {{"_", "-"}});
  if (name == "alltoall") name = "all-to-all";
  for (const cost_models::CollectiveKindInfo& kind : cost_models::AllCollectiveKinds()) {
    if (kind.name == name) return kind.kind;
  }
  return std::nullopt;
}

// A table of collectives inside a node: a sweep for each number of devices.
void PredictCollectives(const Json& table, const Columns& columns, const Json& points,
                        PredictedTable& predicted) {
  const std::optional<cost_models::CollectiveKind> kind = KindOf(table);
  if (!kind.has_value()) {
    return SkipAll(predicted, points, absl::StrCat("no collective '", TextOf(table, "op"), "'"));
  }
  std::map<int32_t, MeasuredCurve> curves;
  for (const Json& point : points) {
    const PointFigures figures = FiguresOfPoint(columns, point);
    const double gpus = figures.empty() ? 0 : figures.at("gpus");
    const double bytes = figures.empty() ? 0 : figures.at("bytes");
    const double seconds = figures.empty() ? 0 : figures.at("us") * 1e-6;
    if (gpus < 2 || gpus > 1024 || bytes < 1 || bytes > 1e15 || !IsTime(seconds)) {
      ++predicted.skipped["a point is no sweep's"];
      continue;
    }
    MeasuredCurve& curve = curves[static_cast<int32_t>(gpus)];
    curve.kind = *kind;
    curve.devices = static_cast<int32_t>(gpus);
    curve.device = predicted.name;
    curve.points.push_back({Bytes(static_cast<int64_t>(bytes)), seconds});
  }
  for (auto& [gpus, curve] : curves) {
    curve.device = TextOf(table, "gpu");
    PredictSweep(curve, predicted);
  }
}

// What of a file is said of all its tables.
struct OfAllTables {
  std::string source, split;
};

PredictedTable PredictTable(const Json& table, const OfAllTables& all) {
  PredictedTable predicted = {.source = all.source, .split = all.split, .name = ""};
  if (!TextOf(table, "split").empty()) predicted.split = TextOf(table, "split");
  Columns columns;
  const auto fields = table.find("fields"), points = table.find("points");
  if (fields == table.end() || !fields->is_array() || points == table.end() ||
      !points->is_array()) {
    predicted.skipped["a table without \"fields\" and \"points\""] = 1;
    return predicted;
  }
  for (const Json& field : *fields) {
    columns.names.push_back(field.is_string() ? field.get<std::string>() : "");
  }
  const std::string library = TextOf(table, "nccl");
  predicted.name = TextOf(table, "gpu");
  for (const std::string& word :
       {TextOf(table, "dtype"), library.empty() ? library : absl::StrCat("NCCL ", library),
        TextOf(table, "op")}) {
    if (!word.empty()) absl::StrAppend(&predicted.name, " ", word);
  }
  if (!columns.Has("us")) {
    SkipAll(predicted, *points, "a table without times, \"us\"");
  } else if (columns.Has("gpus") && columns.Has("bytes")) {
    PredictCollectives(table, columns, *points, predicted);
  } else {
    PredictKernels(table, columns, *points, predicted);
  }
  return predicted;
}

// Seconds of a row that is one kernel, from its time or its rate.
double SecondsOf(const Json& row, const PointFigures& figures) {
  const auto measured = row.find("measured");
  if (measured == row.end() || !measured->is_object()) return 0;
  const auto time = measured->find("time_ms"), rate = measured->find("tflops");
  if (time != measured->end() && time->is_number()) return time->get<double>() * 1e-3;
  const bool product = figures.contains("m") && figures.contains("n") && figures.contains("k");
  if (rate == measured->end() || !rate->is_number() || !product) return 0;
  return 2 * figures.at("m") * figures.at("n") * figures.at("k") / (rate->get<double>() * 1e12);
}

// A row with an "op": {"op", "gpu", "shape": {"m": 4096, ...}, "precision", "measured": {...}}.
void PredictRow(const Json& row, PredictedTable& table) {
  Columns columns;
  PointFigures figures;
  const auto shape = row.find("shape");
  if (shape != row.end() && shape->is_object()) {
    for (const auto& [name, value] : shape->items()) {
      if (!value.is_number() && !value.is_boolean()) continue;
      columns.names.push_back(name);
      figures[name] = value.is_boolean() ? (value.get<bool>() ? 1 : 0) : value.get<double>();
    }
  }
  const Predictor predictor = PredictorOf(columns);
  absl::StatusOr<KernelPoints> kernels =
      KernelsOf({{"gpu", TextOf(row, "gpu")}, {"dtype", TextOf(row, "precision")}}, columns);
  if (!kernels.ok() || predictor == nullptr) {
    ++table.skipped[predictor == nullptr ? absl::StrCat("no kernel '", TextOf(row, "op"), "'")
                                         : std::string(kernels.status().message())];
    return;
  }
  if (absl::StrContains(TextOf(row, "op"), "FA3")) {
    kernels->attention = cost_models::AttentionClass::kFlash3;
  }
  Add(table, WhatOf(columns, figures), SecondsOf(row, figures), predictor(*kernels, figures));
}

// Rows of one kernel each, those of a device, type and kind together.
void PredictRows(const Json& rows, const OfAllTables& all, std::vector<PredictedTable>& tables) {
  const size_t first = tables.size();
  for (const Json& row : rows) {
    if (!row.is_object() || !row.contains("op")) continue;
    const PredictedTable of = {
        .source = all.source,
        .split = TextOf(row, "split"),
        .name = absl::StrCat(TextOf(row, "gpu"), " ", TextOf(row, "precision"), " ",
                             TextOf(row, "op"))};
    const auto alike = std::find_if(
        tables.begin() + static_cast<int64_t>(first), tables.end(),
        [&](const PredictedTable& t) { return t.name == of.name && t.split == of.split; });
    PredictRow(row, alike == tables.end() ? tables.emplace_back(of) : *alike);
  }
}

// `rows` are sweeps of collectives, or are not.
void PredictSweeps(absl::string_view text, const std::string& name, int64_t rows,
                   const OfAllTables& all, std::vector<PredictedTable>& tables) {
  const auto curves = cost_models::ParseMeasuredCurves(text, name);
  PredictedTable others = {.source = all.source, .split = "", .name = "sweeps"};
  if (!curves.ok()) {
    others.skipped[std::string(curves.status().message())] = 1;
  } else {
    for (const MeasuredCurve& curve : curves->curves) {
      PredictedTable& table = tables.emplace_back(
          PredictedTable{.source = all.source, .split = curve.split, .name = curve.id});
      PredictSweep(curve, table);
    }
    const int64_t left = rows - std::ssize(curves->curves);
    if (left > 0) others.skipped["no sweep of sizes of a collective"] = left;
  }
  if (!others.skipped.empty()) tables.push_back(std::move(others));
}

}  // namespace
}  // namespace predicted_tables_cc

TableFigures FiguresOf(const PredictedTable& table) {
  std::vector<Pair> pairs;
  std::vector<double> errors;
  for (const PredictedPoint& point : table.points) {
    pairs.push_back({point.measured, point.predicted});
    errors.push_back(std::abs(point.predicted / point.measured - 1));
  }
  return {.errors = FiguresOf(pairs), .median = MedianOf(std::move(errors))};
}

absl::StatusOr<std::vector<PredictedTable>> PredictTables(absl::string_view text,
                                                          const std::string& name) {
  using predicted_tables_cc::Json;
  const Json file = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (file.is_discarded()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": is not JSON; wanted {\"tables\": [...]}"));
  }
  std::vector<PredictedTable> predicted;
  if (!file.is_object()) return predicted;
  const std::string split = predicted_tables_cc::TextOf(file, "split");
  const predicted_tables_cc::OfAllTables all = {
      .source = std::filesystem::path(name).stem().string(),
      .split = absl::StrContains(split, " ") ? "" : split};
  const auto tables = file.find("tables"), rows = file.find("rows");
  if (tables != file.end() && tables->is_array()) {
    for (const Json& table : *tables) {
      if (table.is_object()) predicted.push_back(predicted_tables_cc::PredictTable(table, all));
    }
  }
  if (rows == file.end() || !rows->is_array()) return predicted;
  predicted_tables_cc::PredictRows(*rows, all, predicted);
  const int64_t sweeps = std::ranges::count_if(
      *rows, [](const Json& row) { return row.is_object() && row.contains("collective"); });
  if (sweeps > 0) predicted_tables_cc::PredictSweeps(text, name, sweeps, all, predicted);
  return predicted;
}

absl::StatusOr<std::vector<PredictedTable>> PredictAllTables(const std::string& path) {
  const std::vector<std::string> files = StepFiles(path);
  std::vector<PredictedTable> all;
  for (const std::string& file : files) {
    ORRERY_ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
    absl::StatusOr<std::vector<PredictedTable>> more = PredictTables(text, file);
    if (!more.ok() && files.size() > 1) continue;  // a folder may hold other files, too
    ORRERY_RETURN_IF_ERROR(more.status());
    std::move(more->begin(), more->end(), std::back_inserter(all));
  }
  return all;
}

std::string TableText(std::span<const PredictedTable> tables) {
  std::vector<TextRow> rows = {
      {"source", "table", "split", "points", "median", "mean", "worst", "bias"}};
  std::map<std::string, int64_t> skipped;
  for (const PredictedTable& table : tables) {
    for (const auto& [reason, count] : table.skipped) skipped[reason] += count;
    if (table.points.empty()) continue;
    const TableFigures figures = FiguresOf(table);
    const auto percent = [](double share) { return absl::StrFormat("%.2f%%", 100 * share); };
    rows.push_back({table.source, table.name, table.split, absl::StrCat(figures.errors.count),
                    percent(figures.median), percent(figures.errors.mean),
                    percent(figures.errors.worst),
                    absl::StrFormat("%+.2f%%", 100 * figures.errors.bias)});
  }
  std::string out = rows.size() > 1 ? absl::StrCat("\n", TextTable(rows, 3)) : "";
  if (!skipped.empty()) absl::StrAppend(&out, "\nskipped points of tables:\n");
  for (const auto& [reason, count] : skipped)
    absl::StrAppendFormat(&out, "%6d  %s\n", count, reason);
  return out;
}

}  // namespace orrery::tools
