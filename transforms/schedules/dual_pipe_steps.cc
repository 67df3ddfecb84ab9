#include "transforms/schedules/dual_pipe_steps.h"

#include <deque>
#include <utility>

namespace orrery::transforms {
namespace dual_pipe_steps_cc {
namespace {

constexpr size_t kEarly = 0;
constexpr size_t kLate = 1;

class DualPipeRank {
 public:
  DualPipeRank(const HalfPipe& position, const std::array<int32_t, 2>& stages)
      : position_(position), after_(position.ranks - 1 - position.rank), stages_(stages) {}

  std::vector<ScheduleStep> Order() && {
    WarmUp();
    const int32_t steady = position_.microbatches - 2 * position_.ranks + position_.rank + 1;
    for (int32_t i = 0; i < steady; ++i) {
      // The innermost rank cannot overlap at first: its backward needs the forward before it.
      const bool apart = i == 0 && after_ == 0;
      Forward(kEarly, !apart);
      Backward(kLate);
      Forward(kLate, true);
      Backward(kEarly);
    }
    for (int32_t i = 0; i < after_; ++i) {
      Backward(kLate);
      Forward(kLate, true);
      Backward(kEarly);
    }
    CoolDown();
    return std::move(order_);
  }

 private:
  void WarmUp() {
    for (int32_t i = 0; i < 2 * after_; ++i) Forward(kEarly, false);
    for (int32_t i = 0; i <= position_.rank; ++i) {
      Forward(kEarly, false);
      Forward(kLate, false);
    }
    for (int32_t i = 0; i < after_; ++i) {
      InputGradient(kLate);
      WeightGradient();
      Forward(kLate, false);
    }
  }

  // From the middle of the last backwards on, those of weights are put off: ranks take turns in
  // where exactly, as neighbours alternate.
  void CoolDown() {
    bool put_off = false;
    const int32_t middle = (position_.rank + 1) / 2;
    for (int32_t i = 0; i <= position_.rank; ++i) {
      put_off |= i == middle && position_.rank % 2 == 1;
      put_off ? InputGradient(kLate) : Backward(kLate);
      put_off |= i == middle && position_.rank % 2 == 0;
      put_off ? InputGradient(kEarly) : Backward(kEarly);
    }
    for (int32_t i = 0; i < after_; ++i) {
      WeightGradient();
      InputGradient(kEarly);
    }
    while (!put_off_.empty()) WeightGradient();
  }

  void Forward(size_t stream, bool with_next) {
    Add(StepKind::kForward, stream, next_forward_[stream]++);
    order_.back().with_next = with_next;
  }
  void Backward(size_t stream) { Add(StepKind::kBackward, stream, next_backward_[stream]++); }
  void InputGradient(size_t stream) {
    put_off_.emplace_back(stream, next_backward_[stream]);
    Add(StepKind::kInputGradient, stream, next_backward_[stream]++);
  }
  void WeightGradient() {
    const auto [stream, microbatch] = put_off_.front();
    put_off_.pop_front();
    Add(StepKind::kWeightGradient, stream, microbatch);
  }
  void Add(StepKind kind, size_t stream, int32_t microbatch) {
    order_.push_back({.kind = kind, .stage = stages_[stream], .microbatch = microbatch});
  }

  const HalfPipe position_;
  const int32_t after_;  // ranks further inside
  const std::array<int32_t, 2> stages_;
  std::array<int32_t, 2> next_forward_ = {};
  std::array<int32_t, 2> next_backward_ = {};
  std::deque<std::pair<size_t, int32_t>> put_off_;
  std::vector<ScheduleStep> order_;
};

}  // namespace
}  // namespace dual_pipe_steps_cc

std::vector<ScheduleStep> DualPipeSteps(const HalfPipe& position,
                                        const std::array<int32_t, 2>& stages) {
  return dual_pipe_steps_cc::DualPipeRank(position, stages).Order();
}

}  // namespace orrery::transforms
