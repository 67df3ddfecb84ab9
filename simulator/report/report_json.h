#ifndef ORRERY_SIMULATOR_REPORT_REPORT_JSON_H_
#define ORRERY_SIMULATOR_REPORT_REPORT_JSON_H_

#include <string>

#include "simulator/program/program.h"
#include "simulator/report/report.h"
#include "simulator/report/report_details.h"

namespace orrery::simulator {

/// The figures of a report that only who knows the model and the hardware can tell.
struct ModelFigures {
  double throughput_samples_per_s = 0;
  double tokens_per_s = 0;
  double mfu = 0;          // model flops over peak flops; without what is recomputed
  double hfu = 0;          // hardware flops over peak flops; with it
  double wall_time_s = 0;  // that the simulation itself took
};

/// The report as one JSON object, two spaces a level, a newline at its end. One entry of `devices`
/// a global rank, by rank; what the members of a class share is repeated. Doubles have 17
/// significant digits, and read back as the same number. With `details`, also the parts of the
/// bubble, what ran at each rank's peak, the memory of each class over time, of an asynchronous
/// schedule the versions of the weights, of slices of a sequence how many positions each has, what
/// prices only assume, and how far the step time may be off.
std::string ReportJson(const Program& program, const Report& report, const ModelFigures& figures,
                       const ReportDetails* details = nullptr);

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_REPORT_REPORT_JSON_H_
