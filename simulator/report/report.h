#ifndef ORRERY_SIMULATOR_REPORT_REPORT_H_
#define ORRERY_SIMULATOR_REPORT_REPORT_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "simulator/program/program.h"
#include "simulator/program/trace.h"
#include "simulator/report/communication.h"
#include "simulator/report/memory.h"
#include "support/id_table.h"
#include "support/units.h"

// What a simulation says about a step, in figures that people compare. A rendezvous counts once for
// each stream that it occupies, and a rank class once for each of its members, so that a folded
// program reports what the unfolded one would.

namespace orrery::simulator {

/// Where one rank spends the step. Times are those of one member of the class.
struct RankReport {
  Time finish;             // when its last task finished
  Duration busy;           // sum of the durations of its tasks, on all streams
  Duration communication;  // of that, collectives and sends
  /// Time when communication runs on the rank and its compute stream computes nothing. All of it,
  /// when communication sits on the compute stream itself.
  Duration exposed_communication;
  Duration idle;      // the step less computing and exposed communication: the bubble
  MemoryUse memory;   // at the peak
  Bytes host_memory;  // the most that it holds in the memory of its host at a time
  bool fits = true;   // whether that is within the device's capacity
};

/// The times of a rank: all that grows with a longer step.
inline constexpr std::array<Duration RankReport::*, 5> kRankTimes = {
    &RankReport::finish, &RankReport::busy, &RankReport::communication,
    &RankReport::exposed_communication, &RankReport::idle};

/// The figures of one simulated step.
/// So many fields: each is a column, or a key of the JSON.
struct Report {
  Duration step_time;
  double communication_overhead = 0;   // communication over all durations, over all ranks
  double exposed_communication_s = 0;  // mean over all ranks
  double bubble_fraction = 0;          // idle share of all ranks' time
  Bytes peak_memory;                   // of the rank that needs most
  bool fits = true;                    // whether every rank's peak is within its capacity
  Bytes bytes_sent;                    // by sends, each counted once
  /// Tensors of collectives, each counted once; of an all-gather and a reduce-scatter half, since
  /// the two together are an all-reduce.
  Bytes bytes_reduced;
  Flops flops;                                     // of all ranks
  std::vector<CommunicationReport> communication;  // by kind and level
  CommunicationShares shares;                      // the same, of each rank class
  int64_t rank_count = 0;                          // global ranks: the members of all classes
  int64_t simulated_tasks = 0;                     // after folding
  IdTable<RankClassId, RankReport> ranks;          // by class
};

/// A figure of the report as a file has it.
struct ReportFigure {
  absl::string_view name;  // with its unit: "step_time_s"
  /// The figure as JSON, without its name.
  std::string (*json)(const Report& report) = nullptr;
};

/// The figures that ReportJson writes, in that order; a new one goes to the end.
std::span<const ReportFigure> AllReportFigures();

/// Sets what is a ratio or a mean over all ranks (rank_count, communication_overhead,
/// exposed_communication_s, bubble_fraction, communication) from step_time, the rows of the ranks
/// and the shares.
void SetRatios(const Program& program, Report& report);

/// Adds to every rank's peak what an allocator loses (LostOf), as `other`.
void AddFragmentation(const Program& program, double fragmentation, Report& report);

/// The report of `trace`, a run of `program`, which must verify.
Report Summarize(const Program& program, const Trace& trace);

/// The same without what takes a second look at all tasks: exposed communication, idle time, bubble
/// and memory of hosts are 0.
Report SummarizeBriefly(const Program& program, const Trace& trace);

/// Tasks that go on in the same way, so many times more than they are in a trace.
struct Repetition {
  TaskId begin, end;  // all of `begin` … `end` - 1
  Duration time;      // that they take each time
  int64_t times = 0;
};
/// Adds to the step time of a brief report, and to what its ranks are busy with, what these take,
/// and sees again which peaks of memory, which stay, fit. What is sent, reduced and computed, and
/// communication by kind, stay as well.
void Repeat(const Program& program, const Trace& trace, const Repetition& repetition,
            Report& report);

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_REPORT_REPORT_H_
