#include "lowering/blocks/collective_stream.h"

namespace orrery::lowering {

using simulator::StreamKind;

StreamKind StreamOfCollective(absl::string_view axes, const TemplateContext& context) {
  if (context.blocking) return StreamKind::kCompute;
  if (axes == "hp") {
    return context.kernels.waits_for_tensor_parallel ? StreamKind::kCompute
                                                     : StreamKind::kHorizontal;
  }
  if (context.phase == simulator::Phase::kUpdate) return StreamKind::kData;
  return axes == "cp"   ? StreamKind::kContext
         : axes == "ep" ? StreamKind::kExperts
                        : StreamKind::kData;
}

}  // namespace orrery::lowering
