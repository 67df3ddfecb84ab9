#ifndef ORRERY_IR_SHARDING_ORACLE_TEST_UTIL_H_
#define ORRERY_IR_SHARDING_ORACLE_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "ir/op_info.h"
#include "ir/optimizer_operands.h"
#include "ir/tensor.h"
#include "ir/tensor_parts.h"

// Sharding tensors over ranks and putting them together, for the oracle of sharding rules.

namespace orrery::ir::oracle {

using Types = std::vector<TensorType>;
using Tensors = std::vector<Tensor>;

inline constexpr double kTolerance = 1e-9;

inline bool UsesAxesOnce(const Sharding& sharding, const Mesh& mesh) {
  for (AxisIndex axis = 0; axis < static_cast<AxisIndex>(mesh.axes().size()); ++axis) {
    int uses = sharding.partial.contains(axis) ? 1 : 0;
    for (const AxisList& list : sharding.split) uses += list.contains(axis) ? 1 : 0;
    if (uses > 1) return false;
  }
  return true;
}

inline bool Divides(const TensorType& type, const Mesh& mesh) {
  for (size_t d = 0; d < type.dims.size(); ++d) {
    if (type.dims[d] % mesh.size(type.sharding.at(d)) != 0) return false;
  }
  return true;
}

/// `whole` as that many random summands that add up to it.
inline Tensors Summands(const Tensor& whole, int64_t count, std::mt19937& random) {
  Tensors summands(static_cast<size_t>(count), whole);
  for (size_t s = 1; s < summands.size(); ++s) {
    for (size_t i = 0; i < whole.floats().size(); ++i) {
      const double part = static_cast<double>(random() % 19) / 4 - 2;
      summands[s].floats()[i] = part;
      summands[0].floats()[i] -= part;
    }
    for (size_t i = 0; i < whole.ints().size(); ++i) {
      const int64_t part = static_cast<int64_t>(random() % 19) - 9;
      summands[s].ints()[i] = part;
      summands[0].ints()[i] -= part;
    }
  }
  return summands;
}

/// What each rank holds of `whole`.
inline Tensors ShardsOf(const Tensor& whole, const TensorType& type, const Mesh& mesh,
                        std::mt19937& random) {
  const Tensors summands = Summands(whole, mesh.size(type.sharding.partial), random);
  TensorType split = type;
  split.sharding.partial = AxisList();
  Tensors held;
  for (const int64_t rank : AllRanks(mesh)) {
    const auto s = static_cast<size_t>(PartOf(mesh, rank, type.sharding.partial));
    held.push_back(Scatter(summands[s], split, mesh, rank));
  }
  return held;
}

/// Over how many ranks the op itself leaves a partial sum.
inline int64_t PartialOver(const Types& operands, const TypeList& results, const Mesh& mesh) {
  int64_t over = 1;
  for (AxisIndex axis = 0; axis < static_cast<AxisIndex>(mesh.axes().size()); ++axis) {
    bool before = false, after = false;
    for (const TensorType& type : operands) before |= type.sharding.partial.contains(axis);
    for (const TensorType& type : results) after |= type.sharding.partial.contains(axis);
    if (after && !before) over *= mesh.size(axis);
  }
  return over;
}

inline bool Near(const Tensor& ours, const Tensor& expected) {
  double largest = 1;
  for (const double value : expected.floats()) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  return ours.dtype() == expected.dtype() &&
         Distance(ours, expected) <= (expected.is_float() ? kTolerance * largest : 0);
}

/// Whether it is an op of whole matrices, or of whole parameters, and ranks have parts of its own.
inline bool LacksMatrices(const OpInfo& info, const Types& operands) {
  const Sharding& sharding = operands[0].sharding;
  if (info.name == "Adafactor" || info.name == "AdafactorVectors") return !sharding.split.empty();
  if (!info.of_matrices) return false;
  const size_t rank = operands[0].dims.size();
  return !sharding.at(rank - 1).empty() || !sharding.at(rank - 2).empty();
}

/// Operands of the shape of `sharded` as that, and what an optimizer has beside a parameter, the
/// first of them, as far as it has its dimensions.
inline Types ShardedAlike(const OpInfo& info, Types types, const TensorType& sharded) {
  const bool beside = info.op_class == OpClass::kOptimizer;
  for (TensorType& type : types) {
    if (beside || type.dims == sharded.dims) type.sharding = SplitBeside(sharded, type.dims);
  }
  return types;
}

/// Expects that evaluating says so.
inline void ExpectRefused(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
}

}  // namespace orrery::ir::oracle

#endif  // ORRERY_IR_SHARDING_ORACLE_TEST_UTIL_H_
