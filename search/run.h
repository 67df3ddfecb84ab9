#ifndef ORRERY_SEARCH_RUN_H_
#define ORRERY_SEARCH_RUN_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "lowering/lower.h"
#include "simulator/network/link_use.h"
#include "simulator/program/program.h"
#include "simulator/program/trace.h"
#include "simulator/report/report.h"
#include "simulator/report/report_json.h"
#include "transforms/stages/pipeline.h"

namespace orrery::search {

/// A plan that has been played: everything that a report or a trace is made from.
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
};

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_RUN_H_
