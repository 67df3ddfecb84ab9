#ifndef ORRERY_SIMULATOR_REPORT_REPORT_DETAILS_H_
#define ORRERY_SIMULATOR_REPORT_REPORT_DETAILS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simulator/report/bubble.h"
#include "simulator/report/memory.h"
#include "simulator/report/report.h"
#include "support/id_table.h"

// What a report says of one configuration and a search does not ask for: it costs passes over the
// program that the figures do not need.

namespace orrery::simulator {

/// One stage of an asynchronous pipeline.
struct StageVersions {
  int32_t stage = 0;
  int32_t rank = 0;             // of the pipeline, that holds it
  int32_t staleness = 0;        // updates between a forward and the update that its backward makes
  int32_t weight_versions = 1;  // that the rank keeps
};

/// Seconds that kernels of each kind take a rank, mean over all ranks, by KernelKind. With exposed
/// communication and the bubble they add up to the step.
using KernelSeconds = std::array<double, kKernelKindCount>;

/// How much of the model one stage is.
struct StageSize {
  int32_t stage = 0;
  int32_t rank = 0;        // of the pipeline, that holds it
  int64_t layers = 0;      // that begin in it
  int64_t parameters = 0;  // numbers, on all ranks of the stage together
};

/// A measured step like the one that is reported.
struct NearStep {
  std::string id;       // of its row
  double distance = 0;  // in doublings of sizes
  double error = 0;     // of its prediction, over what was measured, less 1
};

/// How far the step time may be off, as predictions of measured steps like it were.
struct ErrorBar {
  double share = 0;   // of the nearest that were no further off than the bar
  double spread = 0;  // of the step time, either way
  double low_s = 0, high_s = 0;
  std::vector<NearStep> nearest = {};
  bool other_software = false;  // of all of them
  std::string none = {};        // why there is no bar: too few were measured near
};

/// What a report says more of a run when one asks: idle time and memory of each rank class,
/// versions of weights, slices.
struct ReportDetails {
  IdTable<RankClassId, Bubble> bubbles;
  IdTable<RankClassId, std::vector<MemoryUse>> memory;  // thinned
  std::vector<StageVersions> versions;                  // of asynchronous schedules
  std::vector<int64_t> slices = {};        // positions of each, where microbatches are such
  std::vector<StageSize> stages = {};      // where there are several
  KernelSeconds kernels = {};              // of a steady state: none
  SourceShares sources = {};               // of these; all 0: no cost model of a table
  std::string assumed = {};                // what prices of the device only assume; empty: nothing
  std::optional<ErrorBar> error_bar = {};  // only where who asks knows of measured steps
  /// What else files have, behind all: names, and what they hold as JSON.
  std::vector<std::pair<std::string, std::string>> further = {};
};

/// The details of a run, with at most `points` moments of each rank's memory. `steady`: that of an
/// asynchronous schedule, whose `report` is of the steady state and whose trace is not.
ReportDetails DetailsOf(const Program& program, const Trace& trace, const Report& report,
                        bool steady, size_t points = 512);

/// What memory is made of, the largest kind first: "optimizer 20.1 GiB, activations 18.0 GiB".
std::string CompositionText(const MemoryUse& use);

/// What ran when a rank needed most: "MatMul h.3, backward of microbatch 2 on stage 1"; "resident"
/// where nothing did.
std::string PeakTaskText(const Program& program, const MemoryUse& peak);

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_REPORT_REPORT_DETAILS_H_
