#include "lowering/instantiate_orders.h"

#include <algorithm>
#include <span>
#include <utility>

namespace orrery::lowering {
namespace instantiate_orders_cc {
namespace {

using transforms::StepKind;

class OrderWalk {
 public:
  OrderWalk(const OrderedStages& of, Instantiator& instantiator, simulator::Program& program)
      : of_(of), instantiator_(instantiator), program_(program) {}

  void Run() && {
    CountMicrobatches(of_.orders);
    InstantiateSlots(of_.orders);
    if (!of_.repetitions.asynchronous()) InstantiateUpdates();
  }

 private:
  using Step = transforms::ScheduleStep;

  int32_t stage_count() const { return static_cast<int32_t>(of_.stages.size()); }

  void CountMicrobatches(const transforms::RankOrders& orders) {
    counts_.assign(of_.stages.size(), 0);
    last_added_.assign(of_.stages.size(), 0);
    for (const auto& order : orders) {
      for (const Step& step : order) {
        if (step.kind == StepKind::kForward) ++counts_[static_cast<size_t>(step.stage)];
      }
    }
  }

  // The steps of a moment that stand at the next position of their rank's order: one of each rank,
  // or two that run at once.
  void InstantiateSlots(const transforms::RankOrders& orders) {
    std::vector<size_t> next(orders.size(), 0);
    std::vector<std::span<const Step>> now;
    int32_t last_slot = 0;
    for (const auto& order : orders) {
      if (!order.empty()) last_slot = std::max(last_slot, order.back().slot);
    }
    for (int32_t slot = 0; slot <= last_slot; ++slot) {
      now.clear();
      for (size_t r = 0; r < orders.size(); ++r) {
        if (next[r] >= orders[r].size() || orders[r][next[r]].slot != slot) continue;
        const size_t count = orders[r][next[r]].with_next ? 2 : 1;
        now.push_back(std::span(orders[r]).subspan(next[r], count));
        next[r] += count;
      }
      InstantiateMoment(now);
    }
  }

  // Sends follow all compute of the moment, in order of the sending rank.
  void InstantiateMoment(const std::vector<std::span<const Step>>& now) {
    sends_.clear();
    for (const std::span<const Step>& steps : now) {
      const simulator::TaskId begin(program_.task_count());
      if (steps.size() == 2) {
        InstantiateTogether(steps[0], steps[1]);
      } else {
        InstantiateStep(steps[0]);
      }
      if (of_.lowered == nullptr) continue;
      for (const Step& step : steps) {
        of_.lowered->push_back(
            {.step = step, .begin = begin, .end = simulator::TaskId(program_.task_count())});
      }
    }
    for (const Instantiator::Item& item : sends_) {
      for (size_t i = 0; i < item.priced->task_template.sends.size(); ++i)
        instantiator_.InstantiateSend(item, i);
    }
  }

  const Stage& StageOf(const Step& step) const { return StageAt(step.stage); }
  const Stage& StageAt(int32_t s) const { return of_.stages[static_cast<size_t>(s)]; }

  // The template of a microbatch that is the `number`th of its phase.
  const PricedTemplate* TemplateOf(const Step& step, const PhaseTemplates& templates,
                                   int32_t number) const {
    if (!templates.slices.empty()) return &templates.slices[static_cast<size_t>(step.microbatch)];
    if (of_.repetitions.always_first() || of_.repetitions.IsFirst(number)) return &templates.first;
    const bool last = !templates.last.task_template.tasks.empty() &&
                      of_.repetitions.IsLast(number, counts_[static_cast<size_t>(step.stage)]);
    return last ? &templates.last : &templates.later;
  }

  // A phase of a stage that a step runs, and how many microbatches have run it.
  struct Phase {
    const PhaseTemplates& templates;
    int32_t& microbatches;
  };
  Phase FirstPhaseOf(const Step& step) {
    const Stage& stage = StageOf(step);
    StageProgress& progress = instantiator_.progress(step.stage);
    if (step.kind == StepKind::kForward) return {stage.forward, progress.forwards};
    return step.kind == StepKind::kWeightGradient ? Phase{stage.weights, progress.weights}
                                                  : Phase{stage.backward, progress.backwards};
  }

  // The next microbatch of one of a stage's phases.
  Instantiator::Item Next(const Step& step, const Phase& phase) {
    const int32_t number = phase.microbatches++;
    const Stage& stage = StageOf(step);
    const PricedTemplate& gathers = stage.gathers;
    if (number == 0 && step.kind == StepKind::kForward && !gathers.task_template.tasks.empty()) {
      instantiator_.Instantiate({.stage = step.stage, .priced = &gathers});
    }
    const Instantiator::Item item = {.stage = step.stage,
                                     .priced = TemplateOf(step, phase.templates, number),
                                     .microbatch = step.microbatch,
                                     .collected = of_.repetitions.asynchronous() ? 0 : number};
    sends_.push_back(item);
    if (&phase.templates == &stage.backward) {
      instantiator_.progress(step.stage).last_gradient = step.microbatch;
    }
    return item;
  }

  void InstantiateTogether(const Step& a, const Step& b) {
    const Instantiator::Item first = Next(a, FirstPhaseOf(a));
    instantiator_.InstantiateTogether(first, Next(b, FirstPhaseOf(b)));
    for (const Step* step : {&a, &b}) Finish(*step);
  }

  void InstantiateStep(const Step& step) {
    instantiator_.Instantiate(Next(step, FirstPhaseOf(step)));
    Finish(step);
  }

  // The rest of a backward: the gradients of the weights, an update.
  void Finish(const Step& step) {
    const Stage& stage = StageOf(step);
    StageProgress& progress = instantiator_.progress(step.stage);
    const bool split = !stage.weights.first.task_template.tasks.empty();
    if (split && step.kind == StepKind::kBackward)
      instantiator_.Instantiate(Next(step, {stage.weights, progress.weights}));
    const bool done = step.kind == StepKind::kWeightGradient || step.kind == StepKind::kBackward ||
                      (!split && step.kind == StepKind::kInputGradient);
    if (!done) return;
    last_added_[static_cast<size_t>(step.stage)] = program_.task_count();
    // Nothing asks for the microbatch before this one again.
    progress.makers.Forget(std::exchange(progress.last_backward, step.microbatch));
    const int64_t every = of_.repetitions.update_every;
    if (every == 0 || progress.backwards % every != 0) return;
    instantiator_.Instantiate(
        {.stage = step.stage, .priced = &stage.update, .microbatch = step.microbatch});
  }

  // Gradients of parameters that several stages have go first; what is made of them then comes from
  // later stages (ShareParameters). Else a rank reduces first what its last backwards make first.
  void InstantiateUpdates() {
    for (int32_t s = 0; s < stage_count(); ++s) InstantiateUpdateSends(s, /*made_there=*/false);
    std::vector<int32_t> order;
    bool sends = false;
    for (int32_t s = stage_count() - 1; s >= 0; --s) {
      order.push_back(s);
      sends = sends || !StageAt(s).update.task_template.sends.empty();
    }
    const auto last_added = [this](int32_t s) { return last_added_[static_cast<size_t>(s)]; };
    std::vector<int32_t> by_end = order;
    std::ranges::stable_sort(by_end, {}, last_added);
    for (const int32_t s : by_end) {
      const PricedTemplate& update = StageAt(s).update;
      if (StandsAlone(update.task_template)) {
        instantiator_.BeginUpdate({.stage = s, .priced = &update});
      }
    }
    if (!sends) order = by_end;
    for (const int32_t s : order) {
      instantiator_.Instantiate({.stage = s, .priced = &StageAt(s).update});
      InstantiateUpdateSends(s, /*made_there=*/true);
    }
  }

  // Whether a template neither waits for those of other stages nor they for it.
  static bool StandsAlone(const TaskTemplate& task_template) {
    return task_template.sends.empty() &&
           std::ranges::none_of(task_template.inputs, &TemplateValue::received);
  }

  void InstantiateUpdateSends(int32_t s, bool made_there) {
    const PricedTemplate& update = StageAt(s).update;
    for (size_t i = 0; i < update.task_template.sends.size(); ++i) {
      const TemplateSend& send = update.task_template.sends[i];
      const bool made = send.has_maker && !send.made_by.external;
      if (made == made_there) instantiator_.InstantiateSend({.stage = s, .priced = &update}, i);
    }
  }

  const OrderedStages& of_;
  Instantiator& instantiator_;
  simulator::Program& program_;
  std::vector<int64_t> counts_;      // of microbatches, by stage
  std::vector<int32_t> last_added_;  // of a stage's backwards: how many tasks were before its end
  std::vector<Instantiator::Item> sends_;  // whose templates have run in this moment
};

}  // namespace
}  // namespace instantiate_orders_cc

void InstantiateOrders(const OrderedStages& of, Instantiator& instantiator,
                       simulator::Program& program) {
  instantiate_orders_cc::OrderWalk(of, instantiator, program).Run();
}

}  // namespace orrery::lowering
