#ifndef ORRERY_LOWERING_PLACEMENT_STAGE_H_
#define ORRERY_LOWERING_PLACEMENT_STAGE_H_

#include <array>
#include <cstdint>
#include <iterator>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "lowering/blocks/task_template.h"
#include "lowering/network/pricing.h"
#include "lowering/placement/makers.h"
#include "simulator/program/program.h"
#include "transforms/schedules/schedule.h"

namespace orrery::lowering {

/// A rank that is simulated: one of a stage, standing for all of it or for itself.
struct Actor {
  simulator::RankClassId rank;
  std::array<simulator::StreamId, simulator::kStreamKindCount> streams;
  size_t kind = 0;  // of its device, among those of its stage
};

/// A template with what was looked up once.
struct PricedTemplate {
  TaskTemplate task_template;
  /// Of its kernels on each kind of device of the stage but the first, whose are in the template.
  std::vector<std::vector<Duration>> other_durations = {};
  // When folded:
  std::vector<simulator::FlowId> flows = {};  // by task, invalid for kernels
  std::vector<TaskTime> sends = {};

  /// How long task `t` takes on a device of that kind.
  Duration DurationOf(size_t t, size_t kind) const {
    return kind == 0 ? task_template.tasks[t].duration : other_durations[kind - 1][t];
  }
};

/// The template of the first microbatch, when there is nothing to add to, and that of the others.
struct PhaseTemplates {
  PricedTemplate first, later;
  PricedTemplate last;  // `later` before an update, where FuseRuns tells them apart; else empty
  /// Instead of all of these, where microbatches are slices of the sequence: one each.
  std::vector<PricedTemplate> slices = {};

  /// That of most microbatches; no slice.
  const PricedTemplate& usual() const { return later.task_template.tasks.empty() ? first : later; }
  /// Of the microbatch after which the update begins; of a single one there is only a first. The
  /// first slice is the last to go back.
  const TaskTemplate& final() const {
    if (!slices.empty()) return slices.front().task_template;
    return usual().task_template;
  }
};

/// One stage as it is instantiated: what ranks it has, and what they run. No instance changes it.
struct Stage {
  std::vector<Actor> actors;
  PhaseTemplates forward, backward, weights;  // weights: empty where backward is not split
  PricedTemplate update;
  PricedTemplate gathers;  // of the update before, where it gathers beside forward (TakeGathers)
  PricedTemplate late_update;         // of asynchronous schedules, what TakeLate takes of `update`
  std::vector<int32_t> awaited = {};  // the stages that it waits for

  /// Of which those of slices come last.
  template <typename Template>
  using Templates = absl::InlinedVector<Template*, 11>;
  Templates<PricedTemplate> templates() { return TemplatesOf<PricedTemplate>(*this); }
  Templates<const PricedTemplate> templates() const {
    return TemplatesOf<const PricedTemplate>(*this);
  }
  /// Whether it is the update, or the late part of it.
  bool IsUpdate(const PricedTemplate* priced) const {
    return priced == &update || priced == &late_update;
  }
  /// What makes the last gradients before the update.
  const TaskTemplate& LastBackward() const {
    return weights.final().tasks.empty() ? backward.final() : weights.final();
  }

 private:
  template <typename Template, typename Self>
  static Templates<Template> TemplatesOf(Self& self) {
    Templates<Template> all = {&self.forward.first,  &self.forward.later, &self.backward.first,
                               &self.backward.later, &self.backward.last, &self.weights.first,
                               &self.weights.later,  &self.weights.last,  &self.update,
                               &self.gathers,        &self.late_update};
    for (auto* phase : {&self.forward, &self.backward}) {
      for (Template& slice : phase->slices) all.push_back(&slice);
    }
    return all;
  }
};

/// What of a stage has been instantiated so far.
struct StageProgress {
  int32_t forwards = 0, backwards = 0, weights = 0;  // instances of each phase
  int32_t last_microbatch = 0;
  int32_t last_gradient = 0;   // whose gradient of the input was instantiated
  int32_t last_backward = -1;  // whose backward was instantiated; -1: none yet
  Makers makers = {};
};

/// How often templates are instantiated.
struct Repetitions {
  int64_t microbatches = 1;
  transforms::PipelineShape shape = {};
  int64_t update_every = 0;  // microbatches, in asynchronous schedules; 0: once, in the end

  bool asynchronous() const { return update_every > 0; }
  /// There is never anything to add to: the templates of the first microbatch are those of all.
  bool always_first() const { return update_every == 1 || microbatches == 1; }
  /// Whether gradients begin anew with the microbatch that is the `number`th of its stage.
  bool IsFirst(int64_t number) const {
    return asynchronous() ? number % update_every == 0 : number == 0;
  }
  /// Whether an update follows the microbatch that is the `number`th of `count` of its stage.
  bool IsLast(int64_t number, int64_t count) const {
    return asynchronous() ? (number + 1) % update_every == 0 : number + 1 == count;
  }
  /// Of each of Stage::templates but those of slices, at most. These are instantiated once.
  std::array<int64_t, 11> counts() const {
    const int64_t updates = asynchronous() ? microbatches / update_every + 1 : 1;
    const int64_t first = always_first() ? microbatches : updates;
    const int64_t later = always_first() ? 0 : microbatches;
    return {first, later, first, later, updates, first, later, updates, updates, 1, updates};
  }
  /// Rows that `rows_of` counts in the templates of a stage, each as often as a rank has it.
  template <typename RowsOf>
  int64_t CountOnARank(const Stage& stage, const RowsOf& rows_of) const {
    int64_t rows = 0;
    const auto templates = stage.templates();
    const std::array<int64_t, 11> times = counts();
    for (size_t b = 0; b < templates.size(); ++b) {
      rows += rows_of(templates[b]->task_template) * (b < times.size() ? times[b] : 1);
    }
    return rows;
  }
  /// The same of all ranks that are simulated.
  template <typename RowsOf>
  int64_t Count(const std::vector<Stage>& stages, const RowsOf& rows_of) const {
    int64_t rows = 0;
    for (const Stage& stage : stages) {
      rows += CountOnARank(stage, rows_of) * std::ssize(stage.actors);
    }
    return rows;
  }
};

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_PLACEMENT_STAGE_H_
