#ifndef ORRERY_SIMULATOR_TESTING_INDEPENDENT_FLOWS_H_
#define ORRERY_SIMULATOR_TESTING_INDEPENDENT_FLOWS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "simulator/network/network_model.h"
#include "simulator/program/time_alone.h"

namespace orrery::simulator {

/// Each message as if it were alone: no sharing, so a lower bound of every other network model.
class IndependentFlows : public NetworkModel {
 public:
  IndependentFlows() = default;
  /// Flows are bounded by the resources of `program`, too, which must outlive this; else by their
  /// own rate alone.
  explicit IndependentFlows(const Program& program) : program_(&program) {}

  void Start(TaskId message, const Flow& flow) override;
  std::optional<Time> NextCompletion(Time now) override;
  std::span<const TaskId> Advance(Time to) override;

 private:
  struct Arrival {
    Time time;
    int64_t sequence = 0;  // of the start: decides ties
    TaskId message;
  };
  static bool Later(const Arrival& a, const Arrival& b);

  const Program* program_ = nullptr;
  Time now_;
  int64_t started_ = 0;
  std::vector<Arrival> active_;  // a heap, the next arrival first
  std::vector<TaskId> arrived_;
};

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_TESTING_INDEPENDENT_FLOWS_H_
