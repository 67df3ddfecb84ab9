#ifndef ORRERY_SEARCH_EVALUATE_H_
#define ORRERY_SEARCH_EVALUATE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/cluster.h"
#include "cost_models/cost_model.h"
#include "ir/function.h"
#include "lowering/lower.h"
#include "search/candidate.h"
#include "simulator/link_use.h"
#include "simulator/report.h"
#include "simulator/report_json.h"
#include "simulator/trace.h"
#include "support/status.h"
#include "support/units.h"
#include "transforms/auto_shard.h"
#include "transforms/schedules/schedule.h"
#include "transforms/schedules/text.h"
#include "transforms/zero.h"

// One candidate from the training step to its figures.

namespace orrery::search {

/// How long slices of the sequence are, of schedules whose microbatches they are: equally long;
/// `balanced`, so that the pipeline takes the least time (search/slices.h); or as `rows` has them.
struct SliceLengths {
  bool balanced = false;
  std::vector<int64_t> rows = {};
};

/// What all candidates of a search share. Read only while candidates are evaluated.
struct Setting {
  ir::Function step;  // a whole training step on one device, of the global batch
  std::string model_name;
  int64_t batch_size = 1;  // samples
  int64_t tokens_a_sample = 1;
  cluster::Cluster cluster;
  std::unique_ptr<const cost_models::CostModel> cost_model;
  lowering::LoweringOptions lowering;
  std::string order = "hp,dp,pp";
  /// Orders that somebody has written down; the schedule of candidates is not asked then.
  std::optional<transforms::ParsedOrders> orders;
  std::string orders_file;  // that they come from
  /// How the axes but dp and pp are used: by cost, or by Megatron's pattern.
  bool shard_by_cost = true;
  transforms::AutoShardOptions sharding;
  bool equal_stages = false;     // as in transforms::SpreadOptions
  transforms::ZeroOptions zero;  // but its stage, which is the candidate's
  /// Where stages begin. Prices, sends and memory are filled in for each candidate.
  transforms::StageChoice stages = {};
  SliceLengths slices = {};
  int64_t offload_prefetch = 1;  // as in transforms::OffloadPolicy
  bool fp8_mixed = false;        // likewise in transforms::SpreadOptions; mfu is of fp8's peak
  Flops model_flops;             // of the unspread step: CountModelFlops
};

/// The schedule of that name, or the orders that the setting has; an error when there is none, or
/// the orders are of another pipeline. Good as long as the setting.
absl::StatusOr<transforms::PipelineSchedule> ScheduleOf(const Setting& setting,
                                                        const Candidate& candidate);

/// The shape of its pipeline, with the chunks that the schedule has where the candidate leaves them
/// open.
transforms::PipelineShape ShapeOf(const transforms::PipelineSchedule& schedule,
                                  const Candidate& candidate);

/// A candidate that has been played: everything that a report or a trace is made from.
struct Run {
  simulator::Program program;
  simulator::Trace trace;
  std::optional<simulator::LinkUse> link_use;  // when Setting::lowering asks for every link
  simulator::Report report;
  simulator::ModelFigures figures;
  /// Batches that were played. More than one for asynchronous schedules, which never drain: the
  /// report is then of one batch in the steady state, the program and its trace of all.
  int32_t rounds = 1;
  std::vector<transforms::SliceRange> slices = {};  // of the sequence, where microbatches are some
  std::vector<lowering::PlacedStep> steps;          // of the schedule, with their tasks
};

/// A row of a search: figures, or why there are none.
struct Result {
  Candidate candidate;
  bool ran = false;
  Duration step_time;
  simulator::ModelFigures figures;
  double communication_overhead = 0;
  double exposed_communication_s = 0;
  double bubble_fraction = 0;
  Bytes peak_memory;
  int64_t simulated_tasks = 0;
  bool fits = false;
  std::optional<Infeasible> infeasible;  // set unless it fits

  bool feasible() const { return ran && fits; }
};

/// Plays one candidate. Infeasible (as a status, see support/status.h) when it cannot be spread;
/// one that does not fit in memory is played, and its report says so.
absl::StatusOr<Run> Play(const Setting& setting, const Candidate& candidate);

/// Plays one candidate and keeps its figures; infeasibility is part of the result. An error only
/// for what no candidate could do: our own bug or an impossible setting.
absl::StatusOr<Result> Evaluate(const Setting& setting, const Candidate& candidate);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_EVALUATE_H_
