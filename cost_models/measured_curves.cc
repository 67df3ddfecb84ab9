#include "cost_models/measured_curves.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "cluster/topology.h"
#include "support/status.h"

namespace orrery::cost_models {
namespace measured_curves_cc {
namespace {

using nlohmann::json;

constexpr double kMostBytes = 1e15;
constexpr double kRounded = 1 - 1e-9;  // a limit, read from microseconds, is within it
// No collective takes a nanosecond: so squares of times stay numbers, and rates, too.
constexpr double kLeastSeconds = 1e-9, kMostSeconds = 1e5;

std::string TextOf(const json& row, const char* key) {
  const auto field = row.find(key);
  if (field == row.end() || !field->is_string()) return "";
  return absl::CEscape(field->get<std::string>().substr(0, 80));
}

std::optional<double> NumberOf(const json& row, const char* key) {
  const auto field = row.find(key);
  if (field == row.end() || !field->is_number()) return std::nullopt;
  return field->get<double>();
}

std::optional<CollectiveKind> KindOf(const json& row) {
  const std::string name = absl::StrReplaceAll(TextOf(row, "collective"), {{"_", "-"}});
  for (const CollectiveKindInfo& kind : AllCollectiveKinds()) {
    if (kind.name == name) return kind.kind;
  }
  return std::nullopt;
}

absl::StatusOr<int32_t> CountOf(const json& hardware, const char* key, int32_t most) {
  const std::optional<double> number = NumberOf(hardware, key);
  if (number.has_value() && *number >= 1 && *number <= most && *number == std::floor(*number)) {
    return static_cast<int32_t>(*number);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "hw.", key, ": ", number.has_value() ? absl::StrCat("got ", *number) : "is no number",
      "; wanted 1 to ", most));
}

absl::Status OutOf(absl::string_view field, double got, double least, double most) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": got ", got, "; wanted ", least, " to ", most));
}

// Nothing for a point without a size or a time, such as one of a latency only.
absl::StatusOr<std::optional<MeasuredPoint>> PointOf(const json& point,
                                                     const MeasuredCurve& curve) {
  const std::optional<double> bytes = NumberOf(point, "bytes");
  const std::optional<double> microseconds = NumberOf(point, "time_us");
  const std::optional<double> bus = NumberOf(point, "busbw_GBs");
  if (!bytes.has_value() || (!microseconds.has_value() && !bus.has_value())) return std::nullopt;
  if (!(*bytes >= 1 && *bytes <= kMostBytes)) return OutOf("bytes", *bytes, 1, kMostBytes);
  double seconds = 0;
  if (microseconds.has_value()) {
    seconds = *microseconds * 1e-6;
  } else {
    const Share share = GetCollectiveKind(curve.kind).bus_share(curve.devices);
    const double passes =
        *bytes * static_cast<double>(share.numerator) / static_cast<double>(share.denominator);
    if (passes <= 0) return std::nullopt;  // a barrier moves nothing, at any bandwidth
    const double least = passes * 1e-9 / kMostSeconds, most = passes * 1e-9 / kLeastSeconds;
    if (!(*bus >= least && *bus <= most)) return OutOf("busbw_GBs", *bus, least, most);
    seconds = passes / (*bus * 1e9);
  }
  if (!(seconds >= kLeastSeconds * kRounded && seconds <= kMostSeconds / kRounded)) {
    return OutOf("time_us", seconds * 1e6, kLeastSeconds * 1e6, kMostSeconds * 1e6);
  }
  return MeasuredPoint{Bytes(static_cast<int64_t>(*bytes)), seconds};
}

// Nothing where the row is no sweep.
absl::StatusOr<std::optional<MeasuredCurve>> CurveOf(const json& row) {
  const std::optional<CollectiveKind> kind = KindOf(row);
  const auto points = row.find("points");
  if (!kind.has_value() || points == row.end() || !points->is_array()) return std::nullopt;
  const bool has_sizes = std::ranges::any_of(*points, [](const json& point) {
    return point.is_object() && point.contains("bytes") &&
           (point.contains("time_us") || point.contains("busbw_GBs"));
  });
  if (!has_sizes) return std::nullopt;
  const auto hardware = row.find("hw");
  if (hardware == row.end() || !hardware->is_object()) {
    return absl::InvalidArgumentError("got no hw; wanted such as {\"gpus\": 16, \"nodes\": 2}");
  }
  MeasuredCurve curve = {.id = TextOf(row, "id"), .split = TextOf(row, "split"), .kind = *kind};
  ORRERY_ASSIGN_OR_RETURN(curve.devices, CountOf(*hardware, "gpus", cluster::kMaxDevices));
  if (hardware->contains("nodes") && !hardware->at("nodes").is_null()) {
    ORRERY_ASSIGN_OR_RETURN(curve.nodes, CountOf(*hardware, "nodes", curve.devices));
  }
  if (curve.devices < 2) return absl::InvalidArgumentError("hw.gpus: got 1; wanted at least 2");
  curve.device = TextOf(*hardware, "gpu");
  curve.in_node = TextOf(*hardware, "intra");
  curve.between_nodes = TextOf(*hardware, "inter");
  curve.library = TextOf(*hardware, "library");
  for (const json& entry : *points) {
    if (!entry.is_object()) continue;
    ORRERY_ASSIGN_OR_RETURN(const std::optional<MeasuredPoint> point, PointOf(entry, curve));
    if (point.has_value()) curve.points.push_back(*point);
  }
  if (curve.points.empty()) return std::nullopt;
  std::ranges::stable_sort(curve.points, {}, [](const MeasuredPoint& p) { return p.size; });
  return curve;
}

double SizeOf(const MeasuredPoint& point) { return static_cast<double>(point.size.count()); }

// Weighted by 1/t², so that what is least is the relative error. Neither number is below 0.
AlphaBeta FitLine(std::span<const MeasuredPoint> points) {
  double w = 0, wx = 0, wxx = 0, wt = 0, wxt = 0;
  for (const MeasuredPoint& point : points) {
    const double weight = 1 / (point.seconds * point.seconds), x = SizeOf(point);
    w += weight, wx += weight * x, wxx += weight * x * x;
    wt += weight * point.seconds, wxt += weight * x * point.seconds;
  }
  const double determinant = w * wxx - wx * wx;
  if (determinant > 1e-9 * w * wxx) {
    const AlphaBeta line = {(wxx * wt - wx * wxt) / determinant, (w * wxt - wx * wt) / determinant};
    if (line.alpha_s >= 0 && line.beta_s_a_byte >= 0) return line;
    if (line.beta_s_a_byte < 0) return {wt / w, 0};
  }
  return {0, wxt / wxx};
}

CurveFit FitRanges(const MeasuredCurve& curve, std::span<const size_t> breaks, double floor) {
  CurveFit fit = {.floor_s = floor};
  size_t begin = 0;
  const std::span<const MeasuredPoint> points = curve.points;
  for (const size_t end : breaks) {
    fit.lines.push_back(FitLine(points.subspan(begin, end - begin)));
    begin = end;
  }
  fit.lines.push_back(FitLine(points.subspan(begin)));
  for (const MeasuredPoint& point : points) {
    const double error = std::abs(fit.Seconds(SizeOf(point)) / point.seconds - 1);
    fit.mean_error += error / static_cast<double>(points.size());
    fit.worst_error = std::max(fit.worst_error, error);
  }
  return fit;
}

// Positions for breaks, at equal distances in the logarithm of the size; a line has two points.
std::vector<size_t> PositionsOf(const MeasuredCurve& curve) {
  constexpr int kMost = 24;
  std::vector<size_t> positions;
  const double least = std::log(SizeOf(curve.points.front()));
  const double most = std::log(SizeOf(curve.points.back()));
  for (int i = 1; i <= kMost; ++i) {
    const double size = std::exp(least + (most - least) * i / (kMost + 1));
    const auto after = std::ranges::upper_bound(curve.points, size, {}, SizeOf);
    const auto position = static_cast<size_t>(after - curve.points.begin());
    if (position < 2 || position + 2 > curve.points.size()) continue;
    if (positions.empty() || positions.back() != position) positions.push_back(position);
  }
  return positions;
}

}  // namespace
}  // namespace measured_curves_cc

double CurveFit::Seconds(double bytes) const {
  double least = std::numeric_limits<double>::infinity();
  for (const AlphaBeta& line : lines) {
    least = std::min(least, line.alpha_s + line.beta_s_a_byte * bytes);
  }
  return std::max(floor_s, least);
}

CurveFit FitCurve(const MeasuredCurve& curve) {
  double floor = std::numeric_limits<double>::infinity();
  for (const MeasuredPoint& point : curve.points) floor = std::min(floor, point.seconds);
  // Of several lines: nearer by a tenth, or not worth it.
  constexpr double kWorthIt = 0.9, kGoodEnough = 1e-6;
  CurveFit best = measured_curves_cc::FitRanges(curve, {}, floor);
  if (best.mean_error < kGoodEnough) return best;
  const std::vector<size_t> positions = measured_curves_cc::PositionsOf(curve);
  CurveFit two = best, three = best;
  for (size_t i = 0; i < positions.size(); ++i) {
    const size_t first[] = {positions[i]};
    CurveFit fit = measured_curves_cc::FitRanges(curve, first, floor);
    if (fit.mean_error < two.mean_error) two = std::move(fit);
    for (size_t j = i + 1; j < positions.size(); ++j) {
      if (positions[j] < positions[i] + 2) continue;
      const size_t both[] = {positions[i], positions[j]};
      fit = measured_curves_cc::FitRanges(curve, both, floor);
      if (fit.mean_error < three.mean_error) three = std::move(fit);
    }
  }
  if (two.mean_error < kWorthIt * best.mean_error) best = std::move(two);
  if (three.mean_error < kWorthIt * best.mean_error) best = std::move(three);
  return best;
}

absl::StatusOr<MeasuredCurves> ParseMeasuredCurves(absl::string_view text,
                                                   const std::string& name) {
  const nlohmann::json file =
      nlohmann::json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (file.is_discarded() || !file.is_object() || !file.contains("rows") ||
      !file.at("rows").is_array()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name,
                     ": is no file of sweeps; wanted JSON such as {\"rows\": [{\"collective\": "
                     "\"all_reduce\", \"hw\": {\"gpus\": 8, \"nodes\": 1}, \"points\": "
                     "[{\"bytes\": 1048576, \"time_us\": 27.4}]}]}"));
  }
  MeasuredCurves read;
  int index = 0;
  for (const nlohmann::json& row : file.at("rows")) {
    const std::string where = absl::StrCat(name, ": row ", index++);
    if (!row.is_object()) {
      return absl::InvalidArgumentError(absl::StrCat(where, ": is no object; wanted a sweep"));
    }
    auto curve = measured_curves_cc::CurveOf(row);
    const std::string id = measured_curves_cc::TextOf(row, "id");
    if (!curve.ok()) {
      return Annotate(curve.status(),
                      absl::StrCat(where, id.empty() ? "" : " (", id, id.empty() ? "" : ")"));
    }
    if (curve->has_value()) {
      read.curves.push_back(**std::move(curve));
    } else {
      read.others.push_back(id.empty() ? absl::StrCat("row ", index - 1) : id);
    }
  }
  if (!read.curves.empty()) return read;
  return absl::InvalidArgumentError(
      absl::StrCat(name,
                   ": got no sweep; wanted a row with points of bytes and time_us or "
                   "busbw_GBs, and a collective such as all_reduce or all_gather"));
}

std::string PrintFits(const MeasuredCurves& curves) {
  std::string out = "row,kind,devices,nodes,points,mean_error,worst_error,floor_us,lines\n";
  for (const MeasuredCurve& curve : curves.curves) {
    const CurveFit fit = FitCurve(curve);
    absl::StrAppend(&out, curve.id, ",", GetCollectiveKind(curve.kind).name, ",", curve.devices,
                    ",", curve.nodes, ",", curve.points.size(), ",",
                    absl::StrFormat("%.1f%%,%.1f%%,%.2f,", fit.mean_error * 100,
                                    fit.worst_error * 100, fit.floor_s * 1e6));
    for (size_t i = 0; i < fit.lines.size(); ++i) {
      const AlphaBeta& line = fit.lines[i];
      absl::StrAppendFormat(&out, "%s%.2f us + %.3f ns/KiB", i == 0 ? "" : "; ", line.alpha_s * 1e6,
                            line.beta_s_a_byte * 1024e9);
    }
    absl::StrAppend(&out, "\n");
  }
  for (const std::string& other : curves.others) absl::StrAppend(&out, other, ",no sweep\n");
  return out;
}

}  // namespace orrery::cost_models
