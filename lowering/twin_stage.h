#ifndef ORRERY_LOWERING_TWIN_STAGE_H_
#define ORRERY_LOWERING_TWIN_STAGE_H_

#include <optional>

#include "lowering/stage.h"
#include "simulator/program.h"
#include "transforms/pipeline.h"

namespace orrery::lowering {

/// A stage of one of two pipelines that has been made, and the one that does the same in the other
/// (transforms::AddSecondPipeline).
struct Twins {
  const transforms::PipelineStage& parts;  // of the one that has been made
  const Stage& made;
  const transforms::PipelineStage& other_parts;
  int32_t other = 0;  // its number
};

/// The blocks of the other stage, as LowerBlock and FuseRuns would make them: they differ from
/// those of the first one by where values come from and go to. Nothing where the parts do not
/// match op by op. Labels go to `program`. The devices must be of the same kinds.
std::optional<Stage> CopyOfTwin(const Twins& twins, simulator::Program& program);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_TWIN_STAGE_H_
