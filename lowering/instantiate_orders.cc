#include "lowering/instantiate_orders.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <span>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "lowering/dealt_updates.h"
#include "support/check.h"

namespace orrery::lowering {
namespace instantiate_orders_cc {
namespace {

using transforms::StepKind;

class OrderWalk {
 public:
  OrderWalk(const OrderedStages& of, Instantiator& instantiator, simulator::Program& program)
      : of_(of),
        instantiator_(instantiator),
        program_(program),
        late_(of.stages.size()),
        updated_(of.stages.size()),
        seen_(of.stages.size()) {
    for (const Stage& stage : of.stages) {
      for (const int32_t awaited : stage.awaited) is_awaited_.insert(awaited);
    }
  }

  void Run() && {
    CountMicrobatches(of_.orders);
    if (of_.geometry.dealt() && of_.repetitions.asynchronous()) {
      dealt_.emplace(of_.geometry, of_.repetitions.update_every, instantiator_);
    }
    InstantiateSlots(of_.orders);
    if (dealt_.has_value()) dealt_->Drain();
    if (!of_.repetitions.asynchronous()) InstantiateUpdates();
    for (int32_t s = 0; s < stage_count(); ++s) {
      while (!late_[static_cast<size_t>(s)].empty()) InstantiateLate(s);
    }
  }

 private:
  using Step = transforms::ScheduleStep;

  int32_t stage_count() const { return static_cast<int32_t>(of_.stages.size()); }

  void CountMicrobatches(const transforms::RankOrders& orders) {
    counts_.assign(instantiator_.runners(), 0);
    last_added_.assign(of_.stages.size(), 0);
    for (const auto& order : orders) {
      for (const Step& step : order) {
        if (step.kind == StepKind::kForward) ++CountOf(step);
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

  int64_t& CountOf(const Step& step) {
    return counts_[instantiator_.RunnerOf(step.stage, step.microbatch)];
  }
  StageProgress& ProgressOf(const Step& step) {
    return instantiator_.progress(step.stage, step.microbatch);
  }
  const Stage& StageOf(const Step& step) const { return StageAt(step.stage); }
  const Stage& StageAt(int32_t s) const { return of_.stages[static_cast<size_t>(s)]; }

  // The template of a microbatch that is the `number`th of its phase.
  const PricedTemplate* TemplateOf(const Step& step, const PhaseTemplates& templates,
                                   int32_t number) {
    if (!templates.slices.empty()) return &templates.slices[static_cast<size_t>(step.microbatch)];
    // Each replica of several runs as many as this one, and updates come by all of them.
    const int64_t all = dealt_.has_value() ? of_.geometry.RunnersOf(step.stage) : 1;
    if (of_.repetitions.always_first() || of_.repetitions.IsFirst(number * all)) {
      return &templates.first;
    }
    const bool last = !templates.last.task_template.tasks.empty() &&
                      of_.repetitions.IsLast((number + 1) * all - 1, CountOf(step));
    return last ? &templates.last : &templates.later;
  }

  // A phase of a stage that a step runs, and how many microbatches have run it.
  struct Phase {
    const PhaseTemplates& templates;
    int32_t& microbatches;
  };
  Phase FirstPhaseOf(const Step& step) {
    const Stage& stage = StageOf(step);
    StageProgress& progress = ProgressOf(step);
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
      ProgressOf(step).last_gradient = step.microbatch;
    }
    return item;
  }

  void InstantiateTogether(const Step& a, const Step& b) {
    const Instantiator::Item first = Next(a, FirstPhaseOf(a));
    instantiator_.InstantiateTogether(first, Next(b, FirstPhaseOf(b)));
    for (const Step* step : {&a, &b}) Finish(*step);
  }

  void InstantiateStep(const Step& step) {
    if (step.kind == StepKind::kForward) CatchUp(step);
    instantiator_.Instantiate(Next(step, FirstPhaseOf(step)));
    Finish(step);
  }

  // The rest of a backward: the gradients of the weights, an update.
  void Finish(const Step& step) {
    const Stage& stage = StageOf(step);
    StageProgress& progress = ProgressOf(step);
    const bool split = !stage.weights.first.task_template.tasks.empty();
    if (split && step.kind == StepKind::kBackward)
      instantiator_.Instantiate(Next(step, {stage.weights, progress.weights}));
    const bool done = step.kind == StepKind::kWeightGradient || step.kind == StepKind::kBackward ||
                      (!split && step.kind == StepKind::kInputGradient);
    if (!done) return;
    last_added_[static_cast<size_t>(step.stage)] = program_.task_count();
    if (dealt_.has_value()) return FinishDealt(step);
    // Nothing asks for the microbatch before this one again.
    const int32_t last = std::exchange(progress.last_backward, step.microbatch);
    if (!IsPending(step.stage, last)) progress.makers.Forget(last);
    const int64_t every = of_.repetitions.update_every;
    if (every == 0 || progress.backwards % every != 0) return;
    Update(step);
  }

  // An update of an asynchronous schedule, and what other stages then get of it.
  void Update(const Step& step) {
    const Stage& stage = StageOf(step);
    const auto s = static_cast<size_t>(step.stage);
    const Instantiator::Item item = {
        .stage = step.stage, .priced = &stage.update, .microbatch = step.microbatch};
    InstantiateUpdateSends(item, /*made_there=*/false);
    instantiator_.Instantiate(item);
    InstantiateUpdateSends(item, /*made_there=*/true);
    if (is_awaited_.contains(step.stage)) {
      updated_[s].emplace(step.microbatch, static_cast<int32_t>(updated_[s].size()));
    }
    if (!stage.awaited.empty()) late_[s].push_back(step.microbatch);
  }

  bool IsPending(int32_t stage, int32_t microbatch) const {
    const std::deque<int32_t>& late = late_[static_cast<size_t>(stage)];
    return std::ranges::find(late, microbatch) != late.end();
  }

  // Before a forward come those late updates of its stage whose other halves the microbatch has met
  // on the stages that it waits for: so both read the same copy.
  void CatchUp(const Step& forward) {
    const auto s = static_cast<size_t>(forward.stage);
    if (is_awaited_.contains(forward.stage)) {
      seen_[s][forward.microbatch] = static_cast<int32_t>(updated_[s].size());
    }
    const std::vector<int32_t>& awaited = StageOf(forward).awaited;
    const auto met = [&](int32_t on) {
      const auto& updated = updated_[static_cast<size_t>(on)];
      const auto update = updated.find(late_[s].front());
      const auto& seen = seen_[static_cast<size_t>(on)];
      const auto passed = seen.find(forward.microbatch);
      return update != updated.end() && passed != seen.end() && update->second < passed->second;
    };
    while (!late_[s].empty() && std::ranges::all_of(awaited, met)) InstantiateLate(forward.stage);
  }

  void InstantiateLate(int32_t s) {
    std::deque<int32_t>& late = late_[static_cast<size_t>(s)];
    const int32_t microbatch = late.front();
    late.pop_front();
    const PricedTemplate& update = StageAt(s).late_update;
    ORRERY_CHECK(update.task_template.sends.empty()) << "stage " << s << " sends what is late";
    instantiator_.Instantiate({.stage = s, .priced = &update, .microbatch = microbatch});
    StageProgress& progress = instantiator_.progress(s, microbatch);
    if (progress.last_backward != microbatch) progress.makers.Forget(microbatch);
  }

  // A round is over with the last of its backwards, before any replica begins that of the next one.
  void FinishDealt(const Step& step) {
    dealt_->AfterBackward(step.stage, step.microbatch);
    ProgressOf(step).makers.Forget(step.microbatch - 2 * of_.geometry.RunnersOf(step.stage));
  }

  // Gradients of parameters that several stages have go first; what is made of them then comes from
  // later stages (ShareParameters). Else a rank reduces first what its last backwards make first.
  void InstantiateUpdates() {
    for (int32_t s = 0; s < stage_count(); ++s) {
      InstantiateUpdateSends({.stage = s, .priced = &StageAt(s).update}, /*made_there=*/false);
    }
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
      const Instantiator::Item item = {.stage = s, .priced = &StageAt(s).update};
      instantiator_.Instantiate(item);
      InstantiateUpdateSends(item, /*made_there=*/true);
    }
  }

  // Whether a template neither waits for those of other stages nor they for it.
  static bool StandsAlone(const TaskTemplate& task_template) {
    return task_template.sends.empty() &&
           std::ranges::none_of(task_template.inputs, &TemplateValue::received);
  }

  void InstantiateUpdateSends(const Instantiator::Item& item, bool made_there) {
    const std::vector<TemplateSend>& sends = item.priced->task_template.sends;
    for (size_t i = 0; i < sends.size(); ++i) {
      const bool made = sends[i].has_maker && !sends[i].made_by.external;
      if (made == made_there) instantiator_.InstantiateSend(item, i);
    }
  }

  const OrderedStages& of_;
  Instantiator& instantiator_;
  simulator::Program& program_;
  std::vector<int64_t> counts_;      // of microbatches, by runner
  std::vector<int32_t> last_added_;  // of a stage's backwards: how many tasks were before its end
  std::vector<Instantiator::Item> sends_;  // whose templates have run in this moment
  std::optional<DealtUpdates> dealt_;      // of replicas that run microbatches in turn, on and on
  // Of updates that wait for parts of gradients of earlier stages:
  absl::flat_hash_set<int32_t> is_awaited_;
  std::vector<std::deque<int32_t>> late_;  // by stage: microbatches whose late update is to come
  // By stage that is awaited: which update followed a microbatch, and how many there were when
  // its forward began.
  std::vector<absl::flat_hash_map<int32_t, int32_t>> updated_, seen_;
};

}  // namespace
}  // namespace instantiate_orders_cc

void InstantiateOrders(const OrderedStages& of, Instantiator& instantiator,
                       simulator::Program& program) {
  instantiate_orders_cc::OrderWalk(of, instantiator, program).Run();
}

}  // namespace orrery::lowering
