#ifndef ORRERY_TRANSFORMS_SHARDING_FACTS_GATHERED_H_
#define ORRERY_TRANSFORMS_SHARDING_FACTS_GATHERED_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "ir/function.h"
#include "support/units.h"

// Samples that know nothing of each other need nothing of other data-parallel ranks but the sums of
// gradients. Where a sharded step puts activations of several ranks together all the same, somebody
// should know.

namespace orrery::transforms {

/// An activation, or its gradient, that ranks along an axis get from each other.
struct GatheredActivation {
  std::string value;   // as ir::PrintValue has it
  std::string reader;  // the op that wants it whole: "MatMul %logits"
  std::string why;     // what it does that needs other ranks' samples
  Bytes bytes;         // that a rank holds then
};

/// What AllGather and AllToAll ops along `axis` do to values that depend on data, before the
/// update, in the order of the ops. None where the mesh has no such axis of several ranks.
std::vector<GatheredActivation> ActivationsGathered(const ir::Function& sharded,
                                                    absl::string_view axis);

/// "%v, 8.00 KiB for MatMul %logits, where samples of a rank meet those of all ranks; with 3 more,
/// 32.0 KiB": the largest, and how many others there are. Empty where there is none.
std::string ToString(const std::vector<GatheredActivation>& gathered);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SHARDING_FACTS_GATHERED_H_
