#include "lowering/blocks/launch_floor.h"

#include <algorithm>
#include <utility>

#include "support/check.h"

namespace orrery::lowering {

void KeepToLaunches(std::span<const double> launches, const OtherLaunches& others, Duration launch,
                    std::span<TemplateTask> tasks) {
  ORRERY_CHECK(launches.size() == tasks.size()) << "launches of other kernels";
  const auto a_launch = static_cast<double>(launch.picoseconds());
  double host = others.count * a_launch, missing = 0;
  auto device = static_cast<double>(others.duration.picoseconds());
  for (size_t i = 0; i < tasks.size(); ++i) {
    const double on_host = launches[i] * a_launch;
    const auto on_device = static_cast<double>(tasks[i].duration.picoseconds());
    host += on_host;
    device += on_device;
    missing += std::max(0.0, on_host - on_device);
  }
  if (host <= device || missing <= 0) return;
  // More than what is missing only where other kernels have launches, too.
  const double share = (host - device) / missing;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const double short_by =
        launches[i] * a_launch - static_cast<double>(tasks[i].duration.picoseconds());
    if (short_by > 0) tasks[i].duration += Duration(static_cast<int64_t>(short_by * share));
  }
}

void WaitForLaunches(std::span<const double> launches, const OtherLaunches& others, Duration launch,
                     std::span<TemplateTask> tasks) {
  ORRERY_CHECK(launches.size() == tasks.size()) << "launches of other kernels";
  double rest = others.count;
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (launches[i] <= 0) continue;
    const double count = launches[i] + std::exchange(rest, 0);
    const auto picoseconds = static_cast<double>(launch.picoseconds());
    tasks[i].duration += Duration(static_cast<int64_t>(count * picoseconds));
  }
}

void WaitForTheHost(const TemplateContext& context, std::span<const double> launches,
                    const OtherLaunches& others, std::span<TemplateTask> tasks) {
  const bool updates = context.phase == simulator::Phase::kUpdate;
  const Duration launch = context.kernels.launch;
  if (launch > Duration(0) && !updates) {
    const auto keep = context.kernels.waits_for_kernels ? WaitForLaunches : KeepToLaunches;
    keep(launches, others, launch, tasks);
  }
  auto first = std::ranges::find_if(tasks, IsKernel);
  if (updates && first == tasks.end()) {
    const auto on_host = [](const TemplateTask& task) {
      return task.stream == simulator::StreamKind::kHostCompute;
    };
    first = std::ranges::find_if(tasks, on_host);
  }
  if (first == tasks.end()) return;
  if (context.phase == simulator::Phase::kForward) first->duration += context.kernels.prepare;
  if (updates) first->duration += context.kernels.step;
}

}  // namespace orrery::lowering
