#ifndef ORRERY_TRANSFORMS_SHARDING_SHARDING_PIN_H_
#define ORRERY_TRANSFORMS_SHARDING_SHARDING_PIN_H_

#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/function.h"
#include "ir/mesh.h"

// What users say of shardings that are chosen by cost.

namespace orrery::transforms {

/// What a user wants an axis to do to all values whose names match.
struct ShardingPin {
  /// Instead of a dimension: the axis splits none.
  static constexpr int kWhole = -1;
  /// The axis may split the batch of all values.
  static constexpr int kBatch = -2;

  std::string pattern;  // RE2; matches anywhere in a name
  int dim = kWhole;     // that is split
  std::string axis = "hp";

  friend bool operator==(const ShardingPin&, const ShardingPin&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const ShardingPin& pin) {
    return H::combine(std::move(h), pin.pattern, pin.dim, pin.axis);
  }
};

/// "mlp.up.weight$=hp@1" (dimension 1 is split by axis hp), "…=hp@whole", or "batch=hp" (hp may
/// split the batch, as dp does) as a pin. An error says what was wanted; the axis need not be on
/// any mesh.
absl::StatusOr<ShardingPin> ParseShardingPin(absl::string_view text);
std::string ToString(const ShardingPin& pin);

/// What of pins their mesh tells: Infeasible (kUnsupported) where a pin's axis has one rank; an
/// error for an axis that is not chosen by cost.
absl::Status CheckPins(const ir::Function& step, const ir::Mesh& mesh,
                       std::span<const ShardingPin> pins);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SHARDING_SHARDING_PIN_H_
