#include "lowering/placement/find_stretches.h"

#include <algorithm>
#include <array>
#include <optional>

namespace orrery::lowering {
namespace find_stretches_cc {
namespace {

// Of tasks by their stream: one bit each.
using Streams = uint32_t;
static_assert(simulator::kStreamKindCount < 31);
// What is no task of the rank's own: a send, the place of a unit.
constexpr Streams kElsewhere = Streams{1} << 31;

constexpr Streams BitOf(simulator::StreamKind stream) {
  return Streams{1} << static_cast<uint32_t>(stream);
}
// Of communicators of the layers themselves: those of dp are queued beside.
constexpr Streams kOfLayers = BitOf(simulator::StreamKind::kHorizontal) |
                              BitOf(simulator::StreamKind::kContext) |
                              BitOf(simulator::StreamKind::kExperts);

Streams BitOf(const TemplateTask& task) { return BitOf(task.stream); }

// Whether it is a collective of these.
bool IsOfLayers(const TemplateTask& task) {
  return !task.group.empty() && (BitOf(task) & kOfLayers) != 0;
}

// Of each task, whether a kernel of the template waits for it: then it is done before whatever
// follows the template on the stream of kernels.
std::vector<char> AwaitedByKernels(const TaskTemplate& of) {
  std::vector<char> awaited(of.tasks.size(), 0);
  for (const TemplateTask& task : of.tasks) {
    if (!IsKernel(task)) continue;
    for (const TemplateDependency& on : of.DependenciesOf(task)) {
      if (!on.external) awaited[static_cast<size_t>(on.index)] = 1;
    }
  }
  return awaited;
}

// Has a field for each thing that it knows of every task.
class StretchFinder {
 public:
  StretchFinder(const PricedTemplate& priced, const HandedValues& handed, const TemplateEnds& ends,
                bool by_update)
      : priced_(priced),
        template_(priced.task_template),
        handed_(handed),
        ends_(ends),
        by_update_(by_update) {}

  std::vector<TaskSpan> Find() && {
    Prepare();
    std::vector<TaskSpan> spans;
    const bool any = std::ranges::any_of(tasks(), IsOfLayers);
    for (size_t t = 0; t < tasks().size();) {
      const std::optional<TaskSpan> stretch = any && IsKernel(tasks()[t]) ? From(t) : std::nullopt;
      spans.push_back(stretch.value_or(TaskSpan{t, t + 1}));
      for (; t < spans.back().end; ++t) Pass(t);
    }
    return spans;
  }

 private:
  using ByStream = std::array<int32_t, simulator::kStreamKindCount>;
  static constexpr int32_t kUnknown = -1;  // only those of templates before

  const std::vector<TemplateTask>& tasks() const { return template_.tasks; }
  static size_t StreamOf(const TemplateTask& task) { return static_cast<size_t>(task.stream); }

  // Who waits for what, beside kernels, whose stream sees to it.
  void Prepare() {
    const size_t count = tasks().size();
    users_.assign(count, 0);
    last_user_.assign(count, 0);
    first_user_.assign(count, count);
    outside_.assign(count, 0);
    done_.assign(count, 0);
    on_stream_.fill(kUnknown);
    for (size_t t = 0; t < count; ++t) {
      for (const TemplateDependency& on : template_.DependenciesOf(tasks()[t])) {
        if (on.external) continue;
        size_t& first = first_user_[static_cast<size_t>(on.index)];
        first = std::min(first, t);
      }
      if (IsKernel(tasks()[t])) continue;
      by_stream_[StreamOf(tasks()[t])].push_back(t);
      for (const TemplateDependency& on : template_.DependenciesOf(tasks()[t])) {
        if (on.external) continue;
        users_[static_cast<size_t>(on.index)] |= BitOf(tasks()[t]);
        last_user_[static_cast<size_t>(on.index)] = t;
      }
    }
    for (const TemplateSend& send : template_.sends) {
      if (send.has_maker && !send.made_by.external) {
        outside_[static_cast<size_t>(send.made_by.index)] |= kElsewhere;
      }
    }
    for (const int32_t task : template_.releases) outside_[static_cast<size_t>(task)] |= kElsewhere;
    const auto add = [&](const HandedValues::Users& wanted, const TemplateValue& output) {
      const auto found = wanted.find(output.origin);
      if (found != wanted.end()) outside_[static_cast<size_t>(output.task)] |= found->second;
    };
    for (const TemplateValue& output : template_.outputs) {
      if (output.task < 0) continue;
      add(handed_.wanted, output);
      if (by_update_) add(handed_.by_update, output);
    }
  }

  // A task that was passed: kernels are done for those after them, and so is what they wait for.
  void Pass(size_t t) {
    const TemplateTask& task = tasks()[t];
    if (IsKernel(task)) {
      Finish(t);
    } else if (IsOfLayers(task)) {
      on_stream_[StreamOf(task)] = static_cast<int32_t>(t);
    }
  }
  void Finish(size_t t) {
    done_[t] = 1;
    for (const TemplateDependency& on : template_.DependenciesOf(tasks()[t])) {
      if (!on.external && done_[static_cast<size_t>(on.index)] == 0) {
        Finish(static_cast<size_t>(on.index));
      }
    }
  }

  // The longest stretch from kernel `begin` on.
  std::optional<TaskSpan> From(size_t begin) {
    // What its own kernel waits for is done, too, once it starts.
    for (const TemplateDependency& on : template_.DependenciesOf(tasks()[begin])) {
      if (!on.external && done_[static_cast<size_t>(on.index)] == 0) {
        Finish(static_cast<size_t>(on.index));
      }
    }
    std::optional<TaskSpan> longest;
    Inside inside;
    for (size_t end = begin + 1; end < tasks().size(); ++end) {
      if (!Joins(begin, end, inside.used) || !Add(end - 1, end, inside)) break;
      if (!Chains(begin, end, inside)) break;
      if (!IsKernel(tasks()[end])) inside.used |= BitOf(tasks()[end]);
      if (IsKernel(tasks()[end]) && EndsWell(end + 1, inside)) longest = {begin, end + 1};
    }
    return longest;
  }

  // Of the tasks of a stretch as far as it goes; but for `used` without the last of them.
  struct Inside {
    Streams used = 0;      // by its own collectives
    Streams outside = 0;   // who waits for one of them, elsewhere
    size_t waited_at = 0;  // each collective has been waited for before
    // The network says how long some take. Then the others' times follow from the kernel that
    // waited for the last of those, or from the first one.
    std::optional<size_t> flow, leg;
    size_t first_flow = 0;             // the flow goes on behind this one, without a gap
    bool alone = false;                // no kernel runs beside these
    std::optional<size_t> before_leg;  // with whose end the leg begins: the last flow so far
    std::array<size_t, simulator::kStreamKindCount> last_user = {};  // by stream: of any of them
  };

  // Counts task `t`, that another joins at `end`. False where somebody waits for it on a stream
  // that no stretch runs on: then none ends well from there on.
  bool Add(size_t t, size_t end, Inside& inside) const {
    if (!IsKernel(tasks()[t])) inside.waited_at = std::max(inside.waited_at, first_user_[t]);
    inside.outside |= outside_[t];
    Streams waiting = outside_[t];
    if (last_user_[t] > end) waiting |= users_[t];
    for (size_t stream = 0; stream < simulator::kStreamKindCount; ++stream) {
      if ((users_[t] >> stream & 1) == 0) continue;
      inside.last_user[stream] = std::max(inside.last_user[stream], last_user_[t]);
    }
    return (waiting & ~kOfLayers) == 0;
  }

  // Whether task `t` starts at a fixed time after `begin`, if all between do, which use streams.
  bool Joins(size_t begin, size_t t, Streams used) const {
    const TemplateTask& task = tasks()[t];
    const bool kernel = IsKernel(task);
    if (!kernel && (!IsOfLayers(task) || task.gate != 0)) return false;
    const bool in_use = (used & BitOf(task)) != 0;
    bool inside = kernel || in_use;  // else it may start before the first kernel
    for (const TemplateDependency& on : template_.DependenciesOf(task)) {
      const auto index = static_cast<size_t>(on.index);
      inside = inside || (!on.external && index >= begin);
      if (on.external) {
        const ir::ValueId origin = template_.inputs[index].origin;
        if (handed_.late.contains(origin)) return false;
        if (kernel && !handed_.made.contains(origin)) return false;
      } else if (index < begin && done_[index] == 0) {
        return false;
      }
    }
    if (!inside) return false;
    if (kernel || in_use) return true;
    const int32_t last = on_stream_[StreamOf(task)];
    if (last == kUnknown) return (ends_.left_running & BitOf(task)) == 0;
    return done_[static_cast<size_t>(last)] != 0;
  }

  // Counts task `t` of the stretch from `begin` on, if the stretch is a chain of legs with it
  // (simulator::Leg), or has no flows: beside a flow there are kernels alone, and no flow begins
  // but where the leg says when.
  bool Chains(size_t begin, size_t t, Inside& inside) const {
    if (IsKernel(tasks()[t])) return !inside.flow.has_value() || RunsBeside(t, inside);
    const bool flows = priced_.flows[t].valid();
    if (!flows && !inside.leg.has_value()) return true;
    if (inside.flow.has_value()) {
      if (!flows || !GoesOn(t, inside)) return false;
      inside.flow = t;
      return true;
    }
    const size_t leg = inside.leg.value_or(begin);
    if (inside.waited_at >= t) return false;
    if (!Awaits(t, leg, t) && !(flows && inside.before_leg && IsOnStream(t, *inside.before_leg))) {
      return false;
    }
    inside.leg = leg;
    inside.before_leg.reset();
    if (!flows) return true;
    inside.flow = inside.first_flow = t;
    inside.alone = Awaits(t, LastKernelBefore(t), t);
    return true;
  }
  // Whether a kernel waits for the last flow, with which the leg ends, or for none that goes.
  bool RunsBeside(size_t t, Inside& inside) const {
    if (Awaits(t, *inside.flow, *inside.flow + 1)) {
      inside.leg = t;
      inside.before_leg = inside.alone ? inside.flow : std::nullopt;
      inside.flow.reset();
      return true;
    }
    const bool takes_time = tasks()[t].duration > Duration();
    if (takes_time && inside.first_flow != *inside.flow) return false;  // beside all of the row
    inside.alone = inside.alone && !takes_time;
    return !AwaitsCollective(t, inside.first_flow);
  }
  // Whether a flow begins when the one that goes has ended, as a leg of its own: nothing runs
  // beside that, and what it waits for was done before.
  bool GoesOn(size_t t, const Inside& inside) const {
    return inside.alone && IsOnStream(t, *inside.flow) && !Awaits(t, inside.first_flow, t);
  }
  bool IsOnStream(size_t t, size_t other) const {
    return BitOf(tasks()[t]) == BitOf(tasks()[other]);
  }
  size_t LastKernelBefore(size_t t) const {
    do --t;
    while (!IsKernel(tasks()[t]));
    return t;
  }

  // Whether kernel `t` itself waits for a collective from `first` on.
  bool AwaitsCollective(size_t t, size_t first) const {
    return std::ranges::any_of(template_.DependenciesOf(tasks()[t]),
                               [&](const TemplateDependency& on) {
                                 const auto index = static_cast<size_t>(on.index);
                                 return !on.external && index >= first && !IsKernel(tasks()[index]);
                               });
  }

  // Whether task `t` itself waits for one of those from `first` up to `last`.
  bool Awaits(size_t t, size_t first, size_t last) const {
    return std::ranges::any_of(template_.DependenciesOf(tasks()[t]),
                               [&](const TemplateDependency& on) {
                                 const auto index = static_cast<size_t>(on.index);
                                 return !on.external && index >= first && index < last;
                               });
  }

  // Whether nobody outside looks into it, and its streams are asked for again only after its end:
  // so that who waits for something inside, and runs on one of them, waits for the end anyway.
  bool EndsWell(size_t end, const Inside& inside) const {
    if (inside.used == 0 || inside.waited_at >= end) return false;
    if ((inside.outside & ~inside.used) != 0) return false;
    for (size_t stream = 0; stream < simulator::kStreamKindCount; ++stream) {
      const bool used = (inside.used >> stream & 1) != 0;
      if (used ? !NextWaits(stream, end) : inside.last_user[stream] >= end) return false;
    }
    return true;
  }

  bool NextWaits(size_t stream, size_t end) const {
    const std::vector<size_t>& of_stream = by_stream_[stream];
    const auto next = std::ranges::lower_bound(of_stream, end);
    if (next == of_stream.end()) return (ends_.asked_early >> stream & 1) == 0;
    return std::ranges::any_of(template_.DependenciesOf(tasks()[*next]),
                               [&](const TemplateDependency& on) {
                                 return !on.external && static_cast<size_t>(on.index) + 1 >= end &&
                                        IsKernel(tasks()[static_cast<size_t>(on.index)]);
                               });
  }

  const PricedTemplate& priced_;
  const TaskTemplate& template_;
  const HandedValues& handed_;
  const TemplateEnds& ends_;
  const bool by_update_;
  std::vector<Streams> users_;      // by task: of the template, that are no kernels
  std::vector<size_t> last_user_;   // by task: the last of these
  std::vector<size_t> first_user_;  // by task: the first of all that wait for it
  std::array<std::vector<size_t>, simulator::kStreamKindCount> by_stream_;  // no kernels
  std::vector<Streams> outside_;  // by task: what else waits for it
  std::vector<char> done_;        // by task: a kernel that was passed has waited for it
  ByStream on_stream_;            // the last task that was passed
};

}  // namespace
}  // namespace find_stretches_cc

HandedValues FindHandedValues(const Stage& stage) {
  using find_stretches_cc::Streams;
  HandedValues handed;
  for (const PricedTemplate* priced : stage.templates()) {
    const TaskTemplate& of = priced->task_template;
    HandedValues::Users& wanted = stage.IsUpdate(priced) ? handed.by_update : handed.wanted;
    for (const TemplateValue& input : of.inputs) {
      if (input.received) handed.late.insert(input.origin);
    }
    const std::vector<char> awaited = find_stretches_cc::AwaitedByKernels(of);
    for (const TemplateValue& output : of.outputs) {
      if (output.task < 0) continue;
      const auto task = static_cast<size_t>(output.task);
      handed.made.insert(output.origin);
      if (!IsKernel(of.tasks[task]) && awaited[task] == 0) handed.late.insert(output.origin);
    }
    const auto want = [&](const TemplateDependency& on, Streams by) {
      if (on.external) wanted[of.inputs[static_cast<size_t>(on.index)].origin] |= by;
    };
    for (const TemplateTask& task : of.tasks) {
      if (IsKernel(task)) continue;
      for (const TemplateDependency& on : of.DependenciesOf(task))
        want(on, find_stretches_cc::BitOf(task));
    }
    for (const TemplateSend& send : of.sends) {
      if (send.has_maker) want(send.made_by, find_stretches_cc::kElsewhere);
    }
  }
  return handed;
}

TemplateEnds FindTemplateEnds(const std::vector<Stage>& stages) {
  TemplateEnds ends;
  for (const Stage& stage : stages) {
    for (const PricedTemplate* priced : stage.templates()) {
      const TaskTemplate& of = priced->task_template;
      const std::vector<char> awaited = find_stretches_cc::AwaitedByKernels(of);
      uint32_t seen = 0, running = 0;
      for (size_t t = 0; t < of.tasks.size(); ++t) {
        const TemplateTask& task = of.tasks[t];
        if (IsKernel(task)) continue;
        const uint32_t bit = find_stretches_cc::BitOf(task);
        const bool waits =
            std::ranges::any_of(of.DependenciesOf(task), [&](const TemplateDependency& on) {
              return !on.external && IsKernel(of.tasks[static_cast<size_t>(on.index)]);
            });
        if ((seen & bit) == 0 && !waits) ends.asked_early |= bit;
        seen |= bit;
        running = awaited[t] != 0 ? running & ~bit : running | bit;
      }
      ends.left_running |= running;
    }
  }
  return ends;
}

std::vector<TaskSpan> FindStretches(const PricedTemplate& priced, const HandedValues& handed,
                                    const TemplateEnds& ends, bool by_update) {
  return find_stretches_cc::StretchFinder(priced, handed, ends, by_update).Find();
}

}  // namespace orrery::lowering
