#ifndef ORRERY_TRANSFORMS_SHARDING_FACTS_AXIS_USE_H_
#define ORRERY_TRANSFORMS_SHARDING_FACTS_AXIS_USE_H_

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "ir/function.h"

// What an axis of the mesh does to a sharded step, in words: which part of which layers its ranks
// hold, and how often they must talk.

namespace orrery::transforms {

/// What an axis does to the layers of one kind.
struct AxisUse {
  std::string layer;             // "attention", "mlp", "embedding", "logits", …
  std::set<std::string> splits;  // "heads", "columns", "rows", "vocabulary", "sequence", …
  std::map<std::string, int> collectives;  // "AllReduce" → how many ops of one microbatch
};

/// What the axis named `axis` does to each kind of layer that it splits or in which its ranks
/// communicate, in the order in which the kinds come. Of the functions of a sharded step: its
/// stages, or the whole. Empty where their mesh has no such axis of several ranks.
std::vector<AxisUse> UsesOfAxis(std::span<const ir::Function* const> functions,
                                absl::string_view axis);

/// "attention: heads, 48 all-reduces; mlp: columns, rows, 48 all-reduces; embedding: vocabulary".
std::string ToString(const std::vector<AxisUse>& uses);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SHARDING_FACTS_AXIS_USE_H_
