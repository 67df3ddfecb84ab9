#ifndef ORRERY_TRANSFORMS_STAGES_MIRRORED_STAGE_H_
#define ORRERY_TRANSFORMS_STAGES_MIRRORED_STAGE_H_

#include <cstdint>
#include <span>

#include "absl/container/inlined_vector.h"
#include "ir/function.h"
#include "transforms/stages/stage_units.h"

// Backward mirrors forward: an op of it runs where the op runs whose gradient it is. What a step
// says of that is names: BuildBackward calls the gradient of %x, or its first summand, %dx. Where
// there are none the op is one that reads, or makes, all that the other reads of forward.

namespace orrery::transforms {

/// The stages of forward ops by what they read and make.
class MirroredStages {
 public:
  /// All must outlive this. `stage` is that of all ops of the chain. Without `by_names` no name
  /// counts.
  MirroredStages(const ir::Function& function, const ForwardChain& chain,
                 const IdTable<ir::OpId, int32_t>& stage, bool by_names);

  /// The stage of the forward op whose gradient the backward op `op` belongs to, which reads the
  /// forward values `read`; of a sum of gradients, that of the op which made the value that they
  /// are of, or 0. -1: nobody knows. Of several stages that of the highest number up to `last`, or
  /// else the first.
  int32_t StageOf(ir::OpId op, std::span<const ir::ValueId> read, int32_t last) const;

  using Stages = absl::InlinedVector<int32_t, 4>;
  /// Stages of the forward ops that read or make all of `values`, ascending; one of them has the op
  /// whose gradient reads these. Empty: there is none.
  Stages StagesOf(std::span<const ir::ValueId> values) const;

 private:
  using Ops = absl::InlinedVector<ir::OpId, 4>;

  ir::ValueId BaseOf(ir::ValueId value) const;
  void FindGradients(const ForwardChain& chain);

  const ir::Function& function_;
  const IdTable<ir::OpId, int32_t>& stage_;
  IdTable<ir::ValueId, Ops> ops_;  // that read or make a value, however it is sharded
  IdTable<ir::ValueId, ir::ValueId> gradient_of_;  // of a gradient, the forward value; or invalid
};

/// The stage of the forward op that reads the shared parameter and something else that `op` reads,
/// or else makes it: that op's gradient is made there. -1 when there is none.
int32_t StageOfReader(const ir::Function& function, const ForwardChain& chain,
                      const IdTable<ir::OpId, int32_t>& stage, ir::OpId op, ir::ValueId parameter);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_STAGES_MIRRORED_STAGE_H_
