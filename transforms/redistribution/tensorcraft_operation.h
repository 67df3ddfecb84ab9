#ifndef ORRERY_TRANSFORMS_REDISTRIBUTION_TENSORCRAFT_OPERATION_H_
#define ORRERY_TRANSFORMS_REDISTRIBUTION_TENSORCRAFT_OPERATION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "ir/mesh.h"
#include "transforms/redistribution/step.h"
#include "transforms/redistribution/tensorcraft_layout.h"

// The operations with which tensorcraft (commit 80a0cd4) changes a layout.

namespace orrery::transforms::redistribution {

/// What an operation does to the layout.
enum class TensorcraftOperationKind : uint8_t {
  kSplit,        // a free axis splits `to` too
  kAllGather,    // an axis, or all of them, split nothing any more
  kPermute,      // two axes of one size swap
  kAllToAll,     // all axes of `from`, or its minor one, split `to` instead
  kChangeBlock,  // other blocks of `to`
};

/// What the library's planner would try, whether or not it is possible.
struct TensorcraftOperation {
  TensorcraftOperationKind kind = TensorcraftOperationKind::kSplit;
  int8_t from = -1;  // dimensions
  int8_t to = -1;
  bool from_minor = false;  // only the minor axis of `from` moves
  bool to_minor = false;    // axes are added at the minor side of `to`
  ir::AxisList axes;        // of a split, an all-gather (none: all) and a permutation
  int64_t block = -1;       // asked for; -1: that of `from`
};

/// As the library names it: "alltoall_mf_0_1_-1".
std::string NameOf(const TensorcraftOperation& operation);

/// Operations in the order in which the library tries them.
using TensorcraftOperations = absl::InlinedVector<TensorcraftOperation, 64>;

/// How much of what the library tries is listed.
enum class Repeats {
  kAll,   // each of its names
  kNone,  // of operations that can only give the same layout, the first
};

/// What the library's planner tries from `layout`, in its order. `blocks` are the sizes that it
/// asks for.
TensorcraftOperations ListOperations(const TensorcraftTensor& tensor,
                                     const TensorcraftLayout& layout,
                                     const std::vector<int64_t>& blocks, Repeats repeats);

/// A step, and the elements of the layout after it.
struct TensorcraftStep {
  Step step;
  int64_t elements = 0;
};

/// The step that `operation` is from `layout`; nothing where it is not possible.
std::optional<TensorcraftStep> Apply(const TensorcraftTensor& tensor,
                                     const TensorcraftLayout& layout,
                                     const TensorcraftOperation& operation);

}  // namespace orrery::transforms::redistribution

#endif  // ORRERY_TRANSFORMS_REDISTRIBUTION_TENSORCRAFT_OPERATION_H_
