#ifndef ORRERY_TRANSFORMS_SHARDING_SHARD_PLAN_H_
#define ORRERY_TRANSFORMS_SHARDING_SHARD_PLAN_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "ir/function.h"
#include "support/id_table.h"

namespace orrery::transforms {

/// What axis "hp" does to each value.
struct TensorSplits {
  IdTable<ir::ValueId, int8_t> dims;   // the dimension that it splits; -1: none
  IdTable<ir::ValueId, char> partial;  // whether an op leaves it a sum over the axis
  /// Whether that is for others to say: of `dims` it is only what could be. Where PatternScope is
  /// kColumnsAndRows, of none.
  IdTable<ir::ValueId, char> open;
  /// What a product and its adapter add up to. Where the sum is wanted in a layout, both may be
  /// brought into it before. Where PatternScope is kColumnsAndRows, of none.
  IdTable<ir::ValueId, char> adapted;
};

/// What belongs to the pattern.
enum class PatternScope : uint8_t {
  /// Products by weights, and all columns of them.
  kColumnsAndRows,
  /// Tables, too, of which ranks have some rows (vocabulary-parallel embeddings); and columns that
  /// nobody takes as they are split stay open: of keys and values of fewer heads than ranks, of
  /// routers.
  kLayers,
};

/// Megatron's pattern, decided in one walk over the ops of a function that is not sharded over "hp"
/// yet; over others it may be. Only the entries of inputs are binding: the rest follows from them.
/// A product of which a dimension does not divide into `parts` stays whole; infeasible
/// (kDivisibility) when nothing at all can be split.
absl::StatusOr<TensorSplits> PlanTensorSplits(const ir::Function& function, int64_t parts,
                                              PatternScope scope = PatternScope::kColumnsAndRows);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SHARDING_SHARD_PLAN_H_
