#ifndef ORRERY_TRANSFORMS_SHARDING_SHARD_H_
#define ORRERY_TRANSFORMS_SHARDING_SHARD_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/function.h"

namespace orrery::transforms {

/// A dimension that is to be split over more ranks than it divides over.
struct UnevenSplit {
  absl::string_view axis;
  int64_t ranks = 1;
  size_t dim = 0;
  std::string value;  // as ir::PrintValue has it
  int64_t size = 0;   // of the dimension
};

/// Infeasible (kDivisibility).
absl::Status UnevenSplitStatus(const UnevenSplit& split);

/// Shards a training step over `mesh`: data inputs are split along their batch by axis "dp";
/// parameters by axis "hp", as Megatron does (Shoeybi et al. 2019): a matrix product whose data
/// operand is whole splits its weight by columns, one whose data operand is split along the inner
/// dimension splits it by rows, and what the weight is added to or scaled with follows. The split
/// of everything else is inferred from the sharding rules of the ops. Values that come out partial
/// are reduced by an AllReduce where something needs them whole: gradients of parameters before the
/// optimizer, or before they are returned. Operands whose splits do not fit are cut by AllSlice
/// where they are whole, and put together by AllGather where they are split otherwise.
///
/// The result computes the same on the same global shapes. Infeasible (kDivisibility) where a
/// dimension that is to be split does not divide.
absl::StatusOr<ir::Function> Shard(const ir::Function& function, const ir::Mesh& mesh);

/// The same for a function whose inputs do not tell what is batched, such as the step of a
/// microbatch: `batched[i]` says whether input i has the batch as its dimension 0.
absl::StatusOr<ir::Function> Shard(const ir::Function& function, const ir::Mesh& mesh,
                                   const std::vector<bool>& batched);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SHARDING_SHARD_H_
