#ifndef ORRERY_SEARCH_RUNS_RUN_H_
#define ORRERY_SEARCH_RUNS_RUN_H_

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "lowering/lower.h"
#include "simulator/network/link_use.h"
#include "simulator/program/program.h"
#include "simulator/program/trace.h"
#include "simulator/report/report.h"
#include "simulator/report/report_json.h"
#include "support/id_table.h"
#include "support/units.h"
#include "transforms/plan/parallel_plan.h"
#include "transforms/stages/pipeline.h"

namespace orrery::search {

/// A steady state that was found in a run.
struct Period {
  int64_t microbatches = 1;  // in which it comes back
  Duration time;             // that they take
  /// What each rank holds more after it, by MemoryKind: what all microbatches leave, as losses.
  IdTable<simulator::RankClassId, std::array<Bytes, simulator::kMemoryKindCount>> growth = {};
  simulator::TaskId begin = {}, end = {};  // the tasks of the last: begin … end - 1
  int64_t settled = 0;                     // the microbatch from which on all comes back
};

/// What of a step was not played, as it only goes on: `times` periods more.
struct Skipped {
  Period period;
  int64_t times = 0;
};

/// A plan that has been played: everything that a report or a trace is made from. So many fields:
/// what was played, what came of it, and what of it was left out.
struct Run {
  simulator::Program program;
  simulator::Trace trace;
  std::optional<simulator::LinkUse> link_use;  // when Setting::lowering asks for every link
  simulator::Report report;
  simulator::ModelFigures figures;
  /// Whether all ways were played of which this is the best: a budget can end before.
  bool all_ways = true;
  int64_t work = 0;  // that all plays took of which this is the best, as PlayBudget counts it
  /// Batches that were played. More than one for asynchronous schedules, which never drain: the
  /// report is then of one batch in the steady state, the program and its trace of all.
  int32_t rounds = 1;
  std::vector<transforms::SliceRange> slices = {};  // of the sequence, where microbatches are some
  std::vector<lowering::LoweredStep> steps;         // of the schedule, with their tasks
  transforms::PipelinedStep pipelined = {};         // that was lowered
  /// Where the report is brief as yet (simulator::SummarizeBriefly): of which plan the step is, and
  /// what was skipped.
  std::optional<transforms::ParallelPlan> brief_of = {};
  std::optional<Skipped> skipped = {};
};

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_RUNS_RUN_H_
