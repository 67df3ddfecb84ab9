#ifndef ORRERY_TOOLS_VALIDATION_FIT_PARAMETERS_H_
#define ORRERY_TOOLS_VALIDATION_FIT_PARAMETERS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/validation/fitted_figures.h"
#include "tools/validation/robust_fit.h"
#include "tools/validation/rows/measured_steps.h"

// What `validate --fit` fits: figures of devices, libraries and stacks, none of a model or a run.

namespace orrery::tools {

/// What a figure is of.
enum class FitOwner : uint8_t { kDevice, kCollectives, kStack };

/// A figure that may be fitted. So many fields: a line of the report each.
struct FitParameter {
  FitOwner owner = FitOwner::kDevice;
  std::string name = {};    // of the device, library or stack
  std::string figure = {};  // as its file calls it; of a library, of all its protocols
  absl::string_view unit = {};
  double start = 0;
  double least = 0, most = 1;
  /// How far off one expects the start to be: a factor of 1 + scale, or `scale` where the start
  /// is 0 or it `adds`.
  double scale = 0.25;
  bool adds = false;

  /// The figure after a move of a fit (tools/validation/robust_fit.h), and back.
  double After(double move) const;
  double MoveTo(double value) const;
  UnknownRange range() const;
};

/// What of a row decides which figures it may tell about.
struct RowUse {
  std::string device, collectives, stack;
  std::string attention = {};  // class of its fused kernels, as cluster files call it; or none
  bool eight_bits = false, four_bits = false, between_nodes = false;
};

/// Of a row that can be predicted; else why it cannot.
absl::StatusOr<RowUse> RowUseOf(const MeasuredStep& step, const FittedFigures& figures);

/// `figures`, and those that are built in of every device, library and stack of the rows that it
/// lacks.
absl::StatusOr<FittedFigures> WithOwners(std::span<const RowUse> rows,
                                         const FittedFigures& figures);

/// All that rows of such use may tell about, each once: by owner, then by name. `all` has what
/// WithOwners gives.
std::vector<FitParameter> ParametersOf(std::span<const RowUse> rows, const FittedFigures& all);

/// Whether a row of that use may tell about it.
bool Tells(const RowUse& row, const FitParameter& parameter);

/// `figures`, which has all their owners, with each parameter that moves at what this makes of it.
FittedFigures After(const FittedFigures& figures, std::span<const FitParameter> parameters,
                    std::span<const double> moves);

/// "device h100-80gb sustained".
std::string ToString(const FitParameter& parameter);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_VALIDATION_FIT_PARAMETERS_H_
