#ifndef ORRERY_LOWERING_BLOCKS_COLLECTIVE_STREAM_H_
#define ORRERY_LOWERING_BLOCKS_COLLECTIVE_STREAM_H_

#include "absl/strings/string_view.h"
#include "lowering/blocks/task_template.h"

namespace orrery::lowering {

/// The stream of a collective over `axes` ("hp", "dp,cp"). A communicator an axis. What makes
/// gradients whole over other axes than hp, alone or together, runs beside the backward of all of
/// them. That of kernels where nothing overlaps, or the software waits for tensor-parallel ranks.
simulator::StreamKind StreamOfCollective(absl::string_view axes, const TemplateContext& context);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_BLOCKS_COLLECTIVE_STREAM_H_
