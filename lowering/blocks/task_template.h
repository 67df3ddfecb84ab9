#ifndef ORRERY_LOWERING_BLOCKS_TASK_TEMPLATE_H_
#define ORRERY_LOWERING_BLOCKS_TASK_TEMPLATE_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <span>
#include <vector>

#include "cluster/device.h"
#include "cost_models/cost_model.h"
#include "ir/function.h"
#include "lowering/blocks/stack_kernels.h"
#include "lowering/blocks/stack_memory.h"
#include "lowering/network/pricing.h"
#include "simulator/program/program.h"
#include "transforms/stages/pipeline.h"

// A task template is one phase of one stage as numbers: the tasks that it becomes, what they wait
// for, what memory they take. It is made once and instantiated for every microbatch.

namespace orrery::lowering {

/// A task waits for another one of its template, or for whatever made an input of the template.
struct TemplateDependency {
  bool external = false;
  int32_t index = 0;  // of the task, or of the input
};

/// A task of any kind, thus so many fields: a kernel, a collective, a copy.
struct TemplateTask {
  simulator::StreamKind stream = simulator::StreamKind::kCompute;
  simulator::LabelId label;
  Duration duration;  // of a kernel; collectives are priced where they are instantiated
  Bytes bytes;        // that a collective gathers or reduces, a rank
  cost_models::CollectiveKind collective = cost_models::CollectiveKind::kAllReduce;
  ir::DType dtype = ir::DType::kF32;  // of a collective
  ir::AxisList group;                 // of a collective; empty: a kernel
  static constexpr int32_t kNoUnit = -1;
  int32_t unit = kNoUnit;  // of a collective: see transforms/memory/units.h
  /// Of a gather before the first kernel: it waits for the so-manieth last of
  /// TaskTemplate::releases of the template before it on the rank; 0: for none.
  int32_t gate = 0;
  uint32_t dependency_begin = 0;  // in TaskTemplate::dependencies
  uint32_t dependency_end = 0;
  // Positions in the order of the part of the ops whose names (NameOfTask) the label begins and
  // ends with; where it is one, more may follow it.
  int32_t first_op = -1;
  int32_t last_op = -1;
  bool follows = false;      // the last kernel added on the rank before it: it waits for it, too
  bool joins = false;        // the task before it in a run of kernels (FuseRuns)
  MovementId movement = {};  // of a collective that was announced to Pricing
  Duration parts = {};       // of a stretch (FuseStretches), the sum of what is in it; else 0
};

/// Whether the task runs on the compute stream of its rank.
inline bool IsKernel(const TemplateTask& task) {
  return task.group.empty() && task.stream == simulator::StreamKind::kCompute;
}

/// How much memory grows over the microbatches.
enum class MemoryGrowth : uint8_t {
  kNone,      // as much in each
  kSoFar,     // as much for each microbatch before this one
  kWithThis,  // and for this one
};

/// Memory taken at the start (bytes > 0) or given back at the finish (bytes < 0) of a task.
struct TemplateMemory {
  int32_t task = 0;
  simulator::MemoryKind kind = simulator::MemoryKind::kActivations;
  MemoryGrowth growth = MemoryGrowth::kNone;
  simulator::MemoryMoment moment = simulator::MemoryMoment::kBySign;
  int64_t bytes = 0;

  /// In microbatch `m`, counted from 0.
  int64_t BytesIn(int64_t m) const {
    if (growth == MemoryGrowth::kNone) return bytes;
    return bytes * (growth == MemoryGrowth::kSoFar ? m : m + 1);
  }
};

/// A value that comes in or goes out. `task`: the one that makes it; -1 when none does.
struct TemplateValue {
  ir::ValueId origin;
  int32_t task = -1;
  bool received = false;  // from another stage, for this template
};

/// What one rank of a stage sends one of another, where the two are not alike in their ranks.
struct SendMessage {
  int32_t from = 0;  // rank, by its number within its stage
  int32_t to = 0;
  Bytes bytes = {};
  MovementId movement = {};
  size_t group = 0;  // of the movement
  simulator::LabelId label = {};
};

/// How a value goes to a stage that is not alike in its ranks (lowering/network/boundary_move.h).
struct SendMessages {
  std::vector<SendMessage> messages = {};  // of all replicas, in the order in which they go
  ir::AxisList gather = {};                // along which receivers then gather what they hold alike
  MovementId gathering = {};               // of that
  simulator::LabelId label = {};           // likewise
  Bytes received = {};                     // a rank, in all
};

/// A value that goes to another stage once the template has run. So many fields: what goes, when,
/// and how.
struct TemplateSend {
  ir::ValueId origin;
  TemplateDependency made_by;
  bool has_maker = false;
  int32_t to = 0;
  Bytes bytes;               // a rank
  bool freed = false;        // nobody needs it here after that
  int32_t op = -1;           // its position in the order of the part
  MovementId movement = {};  // that was announced to Pricing
  simulator::LabelId label;
  SendMessages across = {};  // none: each rank sends to that of its own number
};

/// What is asked of Pricing for a collective, and for a send.
inline CollectiveRequest RequestOf(const TemplateTask& task) {
  return {.stream = task.stream,
          .collective = task.collective,
          .group = task.group,
          .bytes = task.bytes};
}
inline SendRequest RequestOf(const TemplateSend& send) {
  return {.to = send.to, .bytes = send.bytes};
}

struct TaskTemplate {
  std::vector<TemplateTask> tasks;
  std::vector<TemplateDependency> dependencies;
  std::vector<TemplateMemory> memory;
  std::vector<TemplateValue> inputs;  // task is -1
  std::vector<TemplateValue> outputs;
  std::vector<TemplateSend> sends;
  std::vector<int32_t> releases;  // tasks after which a gathered unit is dropped, in their order

  std::span<const TemplateDependency> DependenciesOf(const TemplateTask& task) const {
    return std::span(dependencies)
        .subspan(task.dependency_begin, task.dependency_end - task.dependency_begin);
  }

  /// `new_index`: by task, the one that now makes what it made for outputs and sends.
  void RenumberMakers(std::span<const int32_t> new_index) {
    for (TemplateValue& output : outputs) {
      if (output.task >= 0) output.task = new_index[static_cast<size_t>(output.task)];
    }
    for (TemplateSend& send : sends) {
      if (!send.has_maker || send.made_by.external) continue;
      send.made_by.index = new_index[static_cast<size_t>(send.made_by.index)];
    }
  }

  /// The rows that a rank gets of it.
  int64_t task_count() const {
    return std::ssize(tasks) + std::ranges::count_if(sends, [](const TemplateSend& send) {
             return send.across.messages.empty();
           });
  }
  /// The rows that all ranks get together, of sends to ranks that are not alike: at most, since no
  /// microbatch goes between all replicas, and a group that gathers has got several messages.
  int64_t shared_task_count() const {
    int64_t rows = 0;
    for (const TemplateSend& send : sends) {
      rows += std::ssize(send.across.messages) * (send.across.gathering.valid() ? 2 : 1);
    }
    return rows;
  }
};

/// So many fields: what a phase depends on beside its function.
struct TemplateContext {
  const cost_models::CostModel& cost_model;
  const cluster::Device* device = nullptr;
  simulator::Phase phase = simulator::Phase::kForward;
  int32_t stage = 0;
  bool first = true;              // no microbatch has run before: nothing to add to
  bool blocking = false;          // one stream for everything
  bool keeps_results = true;      // what is returned stays until the end of the step
  bool names = true;              // whether labels of tasks have any
  bool every_dependency = false;  // also those that the order of a stream implies
  /// The update, where backward is split: what goes there is gradients. Else all that backward
  /// leaves is.
  const transforms::StageFunction* update = nullptr;
  StackMemory stack_memory = {};
  StackKernels kernels = {};
  Bytes gathered_at_once = {};  // of a unit, at most; 0: all of it
  /// How long a collective takes when it is alone; asked where launches take time.
  std::function<Duration(const TemplateTask&)> collective_time = {};
  /// Among how many places that communicate with each other the ranks of a group along axes are:
  /// nodes, or ranks where all are of one node. None: unknown.
  std::function<int64_t(const ir::AxisList&)> places = {};
  /// Where this is the first part of a backward, the second: what both take of forward stays for
  /// it.
  const transforms::StageFunction* weights = nullptr;
};

/// Lowers one phase of a stage. What its tasks are called and do goes to the labels of `program`.
TaskTemplate LowerPhase(const transforms::StageFunction& part, const TemplateContext& context,
                        simulator::Program& program);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_BLOCKS_TASK_TEMPLATE_H_
