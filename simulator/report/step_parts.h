#ifndef ORRERY_SIMULATOR_REPORT_STEP_PARTS_H_
#define ORRERY_SIMULATOR_REPORT_STEP_PARTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/program/program.h"
#include "simulator/report/report.h"
#include "simulator/report/report_details.h"

namespace orrery::simulator {

/// What a part of a step is: kernels, communication that nothing hides, or neither.
enum class StepPartKind : uint8_t { kKernels, kExposed, kBubble };

/// A part of a step, a mean over all ranks.
struct StepPart {
  StepPartKind kind = StepPartKind::kKernels;
  std::string name = {};   // "products", "all-reduce dp", "warm-up"
  std::string level = {};  // of the network, of communication whose level is known
  double seconds = 0;
};

/// Where the time of a step goes: kernels by kind, exposed communication by kind and level, the
/// bubble by its causes. They add up to the step, but for a nanosecond a kind of kernel. In a
/// steady state, whose kernels nobody has told apart, these are one part, "computing". What is 0 is
/// left out.
std::vector<StepPart> StepPartsOf(const Program& program, const Report& report,
                                  const ReportDetails& details);

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_REPORT_STEP_PARTS_H_
