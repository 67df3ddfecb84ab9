#include "simulator/testing/independent_flows.h"

#include <algorithm>

#include "support/check.h"

namespace orrery::simulator {

void IndependentFlows::Start(TaskId message, const Flow& flow) {
  const Duration alone = program_ == nullptr ? TimeAlone(flow) : TimeAlone(flow, *program_);
  active_.push_back({std::min(now_ + alone, kEndOfTime), started_++, message});
  std::push_heap(active_.begin(), active_.end(), Later);
}

std::optional<Time> IndependentFlows::NextCompletion(Time now) {
  ORRERY_CHECK(now == now_) << "asked at " << now << ", is at " << now_;
  if (active_.empty()) return std::nullopt;
  return active_.front().time;
}

std::span<const TaskId> IndependentFlows::Advance(Time to) {
  ORRERY_CHECK(to >= now_) << "from " << now_ << " back to " << to;
  now_ = to;
  arrived_.clear();
  while (!active_.empty() && active_.front().time <= to) {
    arrived_.push_back(active_.front().message);
    std::pop_heap(active_.begin(), active_.end(), Later);
    active_.pop_back();
  }
  return arrived_;
}

bool IndependentFlows::Later(const Arrival& a, const Arrival& b) {
  return a.time != b.time ? a.time > b.time : a.sequence > b.sequence;
}

}  // namespace orrery::simulator
