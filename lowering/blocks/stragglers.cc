#include "lowering/blocks/stragglers.h"

#include <cmath>

namespace orrery::lowering {

void WaitForTheSlowest(const ir::Mesh& mesh, double straggling, std::span<TemplateTask> tasks) {
  if (straggling <= 0) return;
  int64_t ranks = 1;
  for (const ir::Axis& axis : mesh.axes()) {
    if (axis.name != "hp" && axis.name != "pp") ranks *= axis.size;
  }
  if (ranks < 2) return;
  const double longer = 1 + straggling * std::log2(static_cast<double>(ranks));
  for (TemplateTask& task : tasks) {
    if (IsKernel(task)) task.duration = Duration::FromSeconds(task.duration.seconds() * longer);
  }
}

}  // namespace orrery::lowering
