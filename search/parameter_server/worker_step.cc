#include "search/parameter_server/worker_step.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/optimizer_operands.h"
#include "lowering/blocks/task_name.h"
#include "support/check.h"
#include "transforms/memory/adafactor_update.h"
#include "transforms/memory/muon_update.h"

namespace orrery::search {
namespace worker_step_cc {
namespace {

using simulator::parameter_server::Key;
using simulator::parameter_server::Segment;
using transforms::StageFunction;

// A parameter that is trained: values are origins (StageFunction).
struct Trained {
  ir::ValueId parameter;
  std::set<ir::ValueId> gradients;  // what backward leaves of it
  Key key;
};

Bytes BytesOf(const ir::Function& function, ir::ValueId value) {
  return SizeOf(function.type(value));
}

// What of a value comes into the function: its own origins, or those of what it is made from.
void AddSources(const StageFunction& part, ir::ValueId value, std::set<ir::ValueId>& origins) {
  const ir::OpId producer = part.function.producer(value);
  if (!producer.valid()) {
    origins.insert(OriginOf(part, value));
    return;
  }
  for (const ir::ValueId operand : part.function.operands(producer)) {
    AddSources(part, operand, origins);
  }
}

std::vector<Trained> TrainedOf(const StageFunction& update) {
  std::vector<Trained> trained;
  for (const ir::OpId op : update.function.order()) {
    if (update.function.info(op).op_class != ir::OpClass::kOptimizer) continue;
    const ir::OptimizerOperands operands(update.function, op);
    for (size_t i = 0; i < operands.count(); ++i) {
      const ir::ValueId parameter = operands.parameters()[i], gradient = operands.gradients()[i];
      Trained& each = trained.emplace_back();
      each.parameter = OriginOf(update, parameter);
      AddSources(update, gradient, each.gradients);
      each.key = {.name = std::string(update.function.value_name(parameter)),
                  .gradient = BytesOf(update.function, gradient),
                  .parameter = BytesOf(update.function, parameter)};
      for (size_t group = 1; group + 1 < operands.groups(); ++group) {
        each.key.state += BytesOf(update.function, operands.all()[operands.Position(group, i)]);
      }
    }
  }
  return trained;
}

// A kernel of the step, in its order.
struct Kernel {
  const StageFunction* part = nullptr;
  size_t position = 0;  // of its op in the order of the part
  int32_t pass = 0;     // which of the phases, one after the other, it is of
  Duration time;        // from the end of the kernel before to its own
  Duration busy;
  simulator::Phase phase = simulator::Phase::kForward;
};

// The op of a part that a task is of: the next one of its name.
size_t PositionOf(const StageFunction& part, absl::string_view name, size_t from) {
  const std::vector<ir::OpId>& order = part.function.order();
  for (size_t i = 0; i < order.size(); ++i) {
    const size_t position = (from + i) % order.size();
    if (lowering::ToString(lowering::NameOfTask(part.function, order[position])) == name) {
      return position;
    }
  }
  ORRERY_CHECK(false) << "no op '" << name << "' in " << part.function.name();
  return 0;
}

std::vector<Kernel> KernelsOf(const Run& run) {
  const transforms::PipelineStage& stage = run.pipelined.stages[0];
  std::vector<Kernel> kernels;
  Time last(0);
  size_t next = 0;
  int32_t microbatch = -1, pass = -1;
  for (int32_t t = 0; t < run.program.task_count(); ++t) {
    const simulator::TaskId task(t);
    const simulator::StreamId stream = run.program.streams_of(task)[0];
    const simulator::TaskLabel label = run.program.label(run.program.label_of(task));
    if (run.program.stream(stream).kind != simulator::StreamKind::kCompute ||
        label.phase == simulator::Phase::kUpdate) {
      continue;
    }
    const bool forward = label.phase == simulator::Phase::kForward;
    const StageFunction& part = forward ? stage.forward : stage.backward;
    if (kernels.empty() || kernels.back().part != &part ||
        microbatch != run.program.microbatch_of(task)) {
      ++pass;
      next = 0;
      microbatch = run.program.microbatch_of(task);
    }
    const size_t position = PositionOf(part, label.name, next);
    next = position + 1;
    const Time finish = run.trace.finish_of(task);
    kernels.push_back({.part = &part,
                       .position = position,
                       .pass = pass,
                       .time = finish - last,
                       .busy = finish - run.trace.start_of(task),
                       .phase = label.phase});
    last = finish;
  }
  return kernels;
}

// For each value of a part the parameters, by their numbers, that it is or is a view of.
std::vector<int32_t> ViewedParameters(const StageFunction& part,
                                      const std::map<ir::ValueId, int32_t>& numbers) {
  const ir::Function& function = part.function;
  std::vector<int32_t> viewed(static_cast<size_t>(function.value_limit()), -1);
  for (const ir::Input& input : function.inputs()) {
    const auto found = numbers.find(OriginOf(part, input.value));
    if (found != numbers.end()) viewed[static_cast<size_t>(input.value.index())] = found->second;
  }
  for (const ir::OpId op : function.order()) {
    if (!function.info(op).strided_view || function.operands(op).empty()) continue;
    viewed[static_cast<size_t>(function.result(op).index())] =
        viewed[static_cast<size_t>(function.operands(op)[0].index())];
  }
  return viewed;
}

constexpr size_t kNone = std::numeric_limits<size_t>::max();

// The kernel that does what an op does: its own; of an op without one, as `later` says the one
// after it or the one before, in the same pass; kNone: there is none.
size_t KernelAt(const std::vector<Kernel>& kernels, int32_t pass, size_t position, bool later) {
  size_t found = kNone;
  for (size_t k = 0; k < kernels.size(); ++k) {
    if (kernels[k].pass != pass) continue;
    if (kernels[k].position == position) return k;
    const bool behind = kernels[k].position > position;
    if (later && behind) return k;
    if (!later && !behind) found = k;
    if (later) found = k;  // the last of the pass, where none is behind
  }
  return found;
}

// The first kernel of the step that needs each parameter.
std::vector<size_t> FirstNeeds(const std::vector<Kernel>& kernels,
                               const std::vector<Trained>& trained) {
  std::map<ir::ValueId, int32_t> numbers;
  for (size_t i = 0; i < trained.size(); ++i) {
    numbers[trained[i].parameter] = static_cast<int32_t>(i);
  }
  std::vector<size_t> first(trained.size(), kNone);
  for (size_t begin = 0; begin < kernels.size();) {
    size_t end = begin;
    while (end < kernels.size() && kernels[end].pass == kernels[begin].pass) ++end;
    const ir::Function& function = kernels[begin].part->function;
    const std::vector<int32_t> viewed = ViewedParameters(*kernels[begin].part, numbers);
    for (size_t position = 0; position < function.order().size(); ++position) {
      const ir::OpId op = function.order()[position];
      if (function.info(op).strided_view) continue;
      for (const ir::ValueId operand : function.operands(op)) {
        const int32_t number = viewed[static_cast<size_t>(operand.index())];
        if (number < 0 || first[static_cast<size_t>(number)] != kNone) continue;
        const size_t before = KernelAt(kernels, kernels[begin].pass, position, false);
        first[static_cast<size_t>(number)] = before == kNone ? begin : before;
      }
    }
    begin = end;
  }
  return first;
}

// The op that makes what a value is a view of; invalid where it comes in.
ir::OpId MakerOf(const ir::Function& function, ir::ValueId value) {
  ir::OpId op = function.producer(value);
  while (op.valid() && function.info(op).strided_view) {
    op = function.producer(function.operands(op)[0]);
  }
  return op;
}

// What the last microbatch adds to a sum; of another value itself. Sums have no origin.
ir::ValueId SummandOf(const ir::Function& function, ir::ValueId value) {
  const ir::OpId op = function.producer(value);
  const bool sum = op.valid() && function.kind(op) == ir::OpKind::kAccumulate;
  return sum ? function.operands(op)[1] : value;
}

// The last kernel that each gradient waits for: in the last backward.
absl::StatusOr<std::vector<size_t>> Completions(const std::vector<Kernel>& kernels,
                                                const std::vector<Trained>& trained) {
  const Kernel& last = kernels.back();
  const ir::Function& function = last.part->function;
  std::vector<size_t> position_of(static_cast<size_t>(function.op_limit()));
  for (size_t p = 0; p < function.order().size(); ++p) {
    position_of[static_cast<size_t>(function.order()[p].index())] = p;
  }
  std::map<ir::ValueId, size_t> made;  // by origin, the kernel
  for (const ir::Output& output : function.outputs()) {
    const ir::OpId op = MakerOf(function, output.value);
    if (!op.valid()) continue;
    const size_t kernel =
        KernelAt(kernels, last.pass, position_of[static_cast<size_t>(op.index())], true);
    made[OriginOf(*last.part, SummandOf(function, output.value))] = kernel;
  }
  std::vector<size_t> completions;
  for (const Trained& each : trained) {
    size_t& kernel = completions.emplace_back(kNone);
    for (const ir::ValueId origin : each.gradients) {
      const auto found = made.find(origin);
      if (found == made.end()) continue;
      kernel = kernel == kNone ? found->second : std::max(kernel, found->second);
    }
    if (kernel == kNone) {
      return absl::InternalError(
          absl::StrCat("no kernel of the step makes the gradient of '", each.key.name, "'"));
    }
  }
  return completions;
}

// Kernels in a row, none of which but the first needs and none but the last completes anything.
std::vector<Segment> SegmentsOf(const std::vector<Kernel>& kernels, const std::vector<Key>& keys,
                                const std::vector<size_t>& first,
                                const std::vector<size_t>& completions) {
  std::vector<std::vector<int32_t>> needs(kernels.size()), completes(kernels.size());
  for (size_t key = 0; key < keys.size(); ++key) {
    needs[first[key]].push_back(static_cast<int32_t>(key));
    completes[completions[key]].push_back(static_cast<int32_t>(key));
  }
  std::vector<Segment> segments;
  double squares = 0, sum = 0;
  for (size_t k = 0; k < kernels.size(); ++k) {
    const bool begins = k == 0 || !needs[k].empty() || !segments.back().completes.empty() ||
                        kernels[k].phase != kernels[k - 1].phase;
    if (begins) {
      segments.push_back({.phase = kernels[k].phase, .needs = needs[k]});
      squares = sum = 0;
    }
    Segment& segment = segments.back();
    segment.time += kernels[k].time;
    segment.completes = completes[k];
    squares += kernels[k].busy.seconds() * kernels[k].busy.seconds();
    sum += kernels[k].busy.seconds();
    segment.spread_left = sum > 0 ? std::sqrt(squares) / sum : 1;
  }
  for (Segment& segment : segments) {
    const std::vector<int32_t>& named = segment.needs.empty() ? segment.completes : segment.needs;
    segment.name = absl::StrCat(
        segment.phase == simulator::Phase::kForward ? "forward" : "backward",
        named.empty() ? "" : absl::StrCat(" ", keys[static_cast<size_t>(named[0])].name));
  }
  return segments;
}

}  // namespace
}  // namespace worker_step_cc

absl::StatusOr<WorkerStep> WorkerStepOf(const Setting& setting, const Run& run) {
  using worker_step_cc::Kernel;
  using worker_step_cc::Trained;
  ORRERY_CHECK(run.pipelined.stages.size() == 1 && run.program.rank_count() == 1) << "one rank";
  const bool muon = transforms::HasMuon(setting.step);
  if (muon || transforms::HasAdafactor(setting.step)) {
    return absl::FailedPreconditionError(
        absl::StrCat("servers update parts of weights, and ",
                     muon ? "Muon whole matrices" : "Adafactor by means over whole ones",
                     "; wanted another `optimizer`"));
  }
  const std::vector<Trained> trained = worker_step_cc::TrainedOf(run.pipelined.stages[0].update);
  const std::vector<Kernel> kernels = worker_step_cc::KernelsOf(run);
  if (trained.empty() || kernels.empty()) {
    return absl::FailedPreconditionError("nothing of the model is updated in a step");
  }
  const std::vector<size_t> first = worker_step_cc::FirstNeeds(kernels, trained);
  absl::StatusOr<std::vector<size_t>> completions = worker_step_cc::Completions(kernels, trained);
  if (!completions.ok()) return completions.status();
  std::vector<size_t> order;  // in which forward needs them
  for (size_t i = 0; i < trained.size(); ++i) order.push_back(i);
  std::ranges::stable_sort(order, {}, [&](size_t i) { return first[i]; });
  WorkerStep step;
  std::vector<size_t> ordered_first, ordered_completions;
  for (const size_t i : order) {
    step.keys.push_back(trained[i].key);
    // One that no kernel reads is there before it has a gradient.
    ordered_first.push_back(std::min(first[i], (*completions)[i]));
    ordered_completions.push_back((*completions)[i]);
  }
  step.segments =
      worker_step_cc::SegmentsOf(kernels, step.keys, ordered_first, ordered_completions);
  step.segments.back().time += setting.lowering.kernels.step;
  for (const auto& segment : step.segments) step.time += segment.time;
  const simulator::RankClassId rank(0);
  const simulator::MemoryUse& peak = run.report.ranks[rank].memory;
  step.memory = peak.total - peak.by_kind[static_cast<size_t>(simulator::MemoryKind::kOptimizer)];
  const Bytes capacity = run.program.rank(rank).capacity;
  step.fits = capacity == Bytes(0) || step.memory <= capacity;
  return step;
}

}  // namespace orrery::search
