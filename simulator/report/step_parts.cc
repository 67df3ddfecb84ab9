#include "simulator/report/step_parts.h"

#include <numeric>

#include "absl/strings/string_view.h"
#include "simulator/report/bubble.h"

namespace orrery::simulator {

std::vector<StepPart> StepPartsOf(const Program& program, const Report& report,
                                  const ReportDetails& details) {
  std::vector<StepPart> parts;
  const auto add = [&](StepPartKind kind, absl::string_view name, double seconds,
                       const std::string& level = "") {
    if (seconds > 0) parts.push_back({kind, std::string(name), level, seconds});
  };
  for (size_t k = 0; k < details.kernels.size(); ++k) {
    add(StepPartKind::kKernels, ToString(static_cast<KernelKind>(k)), details.kernels[k]);
  }
  if (std::accumulate(details.kernels.begin(), details.kernels.end(), 0.0) == 0) {
    add(StepPartKind::kKernels, "computing",
        report.step_time.seconds() * (1 - report.bubble_fraction) - report.exposed_communication_s);
  }
  for (const CommunicationReport& row : report.communication) {
    add(StepPartKind::kExposed, row.kind, row.exposed_s, row.level);
  }
  const MeanBubble bubble = MeanOf(program, details.bubbles);
  add(StepPartKind::kBubble, "warm-up", bubble.warm_up_s);
  add(StepPartKind::kBubble, "steady", bubble.steady_s);
  add(StepPartKind::kBubble, "cool-down", bubble.cool_down_s);
  add(StepPartKind::kBubble, "imbalance", bubble.imbalance_s);
  return parts;
}

}  // namespace orrery::simulator
