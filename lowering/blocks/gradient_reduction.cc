#include "lowering/blocks/gradient_reduction.h"

#include <cmath>

namespace orrery::lowering {

void ReduceAsSoftwareDoes(const StackKernels& kernels, TemplateTask& task) {
  if (task.collective == cost_models::CollectiveKind::kAllGather) return;
  task.follows = kernels.reduces_after_backward && task.stream == simulator::StreamKind::kData;
  const auto size = static_cast<double>(ir::SizeOf(task.dtype));
  const double sent = size + kernels.choice.extra.reduction;
  if (size != 2 || sent == size) return;
  task.bytes = Bytes(std::llround(static_cast<double>(task.bytes.count()) / size * sent));
  if (sent == 4) task.dtype = ir::DType::kF32;
}

}  // namespace orrery::lowering
