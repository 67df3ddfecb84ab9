#ifndef ORRERY_COST_MODELS_MEASURED_CURVES_H_
#define ORRERY_COST_MODELS_MEASURED_CURVES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cost_models/collectives/collective_kind.h"
#include "support/units.h"

// Sweeps of collectives as nccl-tests print them, and lines through them. A library has several
// protocols, of which it takes the fastest: quick to start (small α, large β) or quick to run. So
// the time is the least of up to three lines α + β × size, and never below a floor.

namespace orrery::cost_models {

/// A size of a sweep, as CollectiveKind says what size is, and the time that it took.
struct MeasuredPoint {
  Bytes size = {};
  double seconds = 0;
};

/// One sweep: a row of the file.
struct MeasuredCurve {
  std::string id = {};
  std::string split = {};  // "calibration", "holdout": as the file says
  CollectiveKind kind = CollectiveKind::kAllReduce;
  int32_t devices = 2;
  int32_t nodes = 1;
  std::string device = {}, in_node = {}, between_nodes = {};  // as the file calls them
  std::string library = {};  // a collective profile, where it is not the device's usual one
  std::vector<MeasuredPoint> points = {};  // by size
};

/// What a file has: sweeps, and the ids of rows that are none (no kind of ours, no sizes).
struct MeasuredCurves {
  std::vector<MeasuredCurve> curves = {};
  std::vector<std::string> others = {};
};

/// Reads JSON: {"rows": [{"id", "collective": "all_reduce", "hw": {"gpus", "nodes"}, "points":
/// [{"bytes", "time_us" or "busbw_GBs"}]}]}. Other fields, and rows of kinds that are not ours, are
/// ignored. Errors name `name`, the row, what was found and what was wanted.
absl::StatusOr<MeasuredCurves> ParseMeasuredCurves(absl::string_view text, const std::string& name);

/// A line of a fit.
struct AlphaBeta {
  double alpha_s = 0;
  double beta_s_a_byte = 0;
};

/// The lines through a sweep, and how far they are from its points, relative to them.
struct CurveFit {
  double floor_s = 0;
  std::vector<AlphaBeta> lines = {};  // the quickest to start first
  double mean_error = 0;
  double worst_error = 0;

  /// The time of a collective of that size: the least of its lines, but no less than the floor.
  double Seconds(double bytes) const;
};

/// Least squares of the relative error on up to three ranges of size (a break lies between two
/// points, at most 24 positions are tried); of one, two or three lines those whose least is nearest
/// to the points on average, an additional line only where it is nearer by a tenth. The floor is
/// the least time measured. Requires points.
CurveFit FitCurve(const MeasuredCurve& curve);

/// The table that says how well each sweep is met: points, errors, lines.
std::string PrintFits(const MeasuredCurves& curves);

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_MEASURED_CURVES_H_
