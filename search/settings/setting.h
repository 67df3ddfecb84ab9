#ifndef ORRERY_SEARCH_SETTINGS_SETTING_H_
#define ORRERY_SEARCH_SETTINGS_SETTING_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/cluster.h"
#include "cost_models/cost_model.h"
#include "ir/function.h"
#include "lowering/lower.h"
#include "support/units.h"
#include "transforms/plan/axis.h"
#include "transforms/plan/parallel_plan.h"
#include "transforms/schedules/schedule.h"
#include "transforms/schedules/text.h"

namespace orrery::search {

using transforms::ParallelPlan;

/// What is known of the file of a model beside its step.
struct FileNotes {
  std::vector<std::string> warnings = {};  // a line each
  std::string batch_lost = {};             // as in transforms::PlanContext
};

/// What a model is made of, in a column of its own: of a built-in one a key, such as layers.
struct ModelColumn {
  std::string name;
  std::variant<std::monostate, int64_t, double, std::string> value = {};  // nothing: it has none
};

/// What all plans of a search share. Read only while plans are evaluated. It has so many fields as
/// there are parts of a question.
struct Setting {
  ir::Function step;  // a whole training step on one device, of the global batch
  std::string model_name;
  int64_t batch_size = 1;  // samples
  int64_t tokens_a_sample = 1;
  cluster::Cluster cluster;
  std::unique_ptr<const cost_models::CostModel> cost_model;
  /// How a plan is played. What a plan chooses itself (blocking, buckets, algorithms) is not read.
  lowering::LoweringOptions lowering;
  /// Orders that somebody has written down (ParallelPlan::schedule_file); the schedule of plans is
  /// not asked then.
  std::optional<transforms::ParsedOrders> orders;
  ParallelPlan base;  // what a preset chooses: texts of plans name what differs from it
  /// The plans that `step` is of are those that have the axes which remake the step in common with
  /// this one (AxisInfo::remakes_step).
  ParallelPlan made_for = {};
  FileNotes notes = {};
  bool plays_all = false;  // microbatches, also where a steady state would tell (--no-skip)
  /// What gradients of asynchronous schedules may be late by, in updates; nothing: by any number.
  std::optional<int32_t> most_staleness = {};
  double device_hour = 0;   // what a device costs an hour, in any currency; 0: nobody says
  int64_t run_samples = 0;  // of the whole training run; 0: nobody says
  Flops model_flops;        // of the step of one device: CountModelFlops
  std::vector<ModelColumn> model_columns = {};  // behind those of tables; of several searches alike
};

/// Which setting a plan of a search is of (search/settings/settings.h).
using SettingOf = std::function<const Setting&(const ParallelPlan& plan)>;

/// The schedule of the plan, or the orders that the setting has; an error when the orders are of
/// another pipeline. Good as long as the setting.
absl::StatusOr<transforms::PipelineSchedule> ScheduleOf(const Setting& setting,
                                                        const ParallelPlan& plan);

/// The shape of the plan's pipeline under `schedule`, with the chunks that the schedule has where
/// the plan leaves them open.
transforms::PipelineShape ShapeOf(const transforms::PipelineSchedule& schedule,
                                  const ParallelPlan& plan);

/// For what a search of the setting looks.
transforms::SpaceSize SpaceSizeOf(const Setting& setting);

/// The lowering options of a setting with what the plan chooses.
lowering::LoweringOptions LoweringOf(const Setting& setting, const ParallelPlan& plan);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_SETTINGS_SETTING_H_
