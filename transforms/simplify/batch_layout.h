#ifndef ORRERY_TRANSFORMS_SIMPLIFY_BATCH_LAYOUT_H_
#define ORRERY_TRANSFORMS_SIMPLIFY_BATCH_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/function.h"
#include "ir/type.h"

// Values that have the batch behind other dimensions, or in one with them, as views of values that
// have it first: what the pass batch-first reckons with.

namespace orrery::transforms {

/// The dimensions of a value as those of its base: dimension k runs over the dimensions groups[k]
/// of the base, the last of them fastest. Each dimension of the base stands in one group; a group
/// of none has size 1.
using DimGroups = std::vector<std::vector<size_t>>;

/// How a value is seen in `base`, dimension `batch` of which is the batch, and what there is of
/// each sample beside each other (views, heads): the first one where the value comes from samples
/// that follow each other, another one where an op has it there, as recurrent ones have it behind
/// time.
struct BatchLayout {
  ir::ValueId base;
  DimGroups groups;
  size_t batch = 0;
};

/// All dimensions of the base in the order in which the value runs over them.
std::vector<size_t> OrderOf(const DimGroups& groups);

/// Whether the value runs over `batch`, a dimension of the base, first.
bool BatchIsOutermost(const DimGroups& groups, size_t batch);

/// Whether the value runs over the dimensions of its base in their order: a view of it moves
/// nothing.
bool KeepsOrder(const DimGroups& groups);

/// The groups of the value whose dimension k is dimension perm[k] of this one.
DimGroups Permuted(const DimGroups& groups, const std::vector<int64_t>& perm);

/// A base with other dimensions, of the same elements in the same order, groups of these, which of
/// them is the batch, and how many samples that has: its size is a multiple.
struct Regrouping {
  ir::Dims base;
  DimGroups groups;
  size_t batch = 0;
  int64_t samples = 1;
};

/// Whether the batch stands in one dimension of the value with others before it, [time · batch]:
/// then samples do not follow each other, and no rank has its own in a row.
bool BatchIsInside(const Regrouping& value);

/// The same value with the dimensions `to`, which have as many elements: dimensions of the base are
/// parted where `to` has its ends, and those that are read together are one. The batch of `from`
/// is joined with none. Nothing where `to` would part its samples, or where ends do not meet.
std::optional<Regrouping> Regroup(const Regrouping& from, const ir::Dims& to);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SIMPLIFY_BATCH_LAYOUT_H_
