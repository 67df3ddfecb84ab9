#ifndef ORRERY_LOWERING_PLACEMENT_STAGE_COPY_H_
#define ORRERY_LOWERING_PLACEMENT_STAGE_COPY_H_

#include <optional>
#include <utility>
#include <vector>

#include "lowering/placement/stage.h"
#include "simulator/program/program.h"
#include "support/id_table.h"
#include "transforms/stages/pipeline.h"

namespace orrery::lowering {

/// A stage that has been made, and another one that may do the same: with as many layers, or of the
/// other of two pipelines.
struct StagePair {
  const transforms::PipelineStage& parts;  // of the one that has been made
  const Stage& made;
  const transforms::PipelineStage& other_parts;
  int32_t other = 0;  // its number
};

/// The values of the step that two stages have in each other's place: each has one other.
class OriginPairs {
 public:
  /// Whether `other` may stand for `origin` beside all pairs since Clear; then they are one.
  bool Fits(ir::ValueId origin, ir::ValueId other);
  /// The other of one that has been paired; nothing's is nothing.
  ir::ValueId Of(ir::ValueId origin) const { return origin.valid() ? there_[origin] : origin; }
  /// Costs what has been paired: the tables stay.
  void Clear();

 private:
  IdTable<ir::ValueId, ir::ValueId> there_, back_;
  std::vector<std::pair<ir::ValueId, ir::ValueId>> pairs_;
};

/// Makes stages from others that do the same.
class StageCopier {
 public:
  /// Labels go to `program`, which must outlive this.
  explicit StageCopier(simulator::Program& program) : program_(program) {}

  /// The templates of the other stage, as LowerPhase and FuseRuns would make them: they differ from
  /// those of the first one by names, and by where values come from and go to. Nothing where the
  /// parts do not match op by op: attributes, too, but for those of sends and receives. The devices
  /// must be of the same kinds, and microbatches alike, no slices of a sequence.
  std::optional<Stage> Copy(const StagePair& pair);

 private:
  simulator::Program& program_;
  OriginPairs origins_;
};

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_PLACEMENT_STAGE_COPY_H_
