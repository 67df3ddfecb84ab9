#ifndef ORRERY_SIMULATOR_NETWORK_ASTRA_NETWORKS_H_
#define ORRERY_SIMULATOR_NETWORK_ASTRA_NETWORKS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "simulator/network/event_heap.h"
#include "simulator/network/network_model.h"

// The two analytical networks of ASTRA-sim 2 (astra-network-analytical 599a047), for comparison:
// they count in whole nanoseconds, and each breaks physics in its own way (unaware lets messages
// share a link at full speed each, aware stores and forwards whole messages at every switch). A
// load other than 1 stretches the time on its link.

namespace orrery::simulator {

/// Every message alone on its path: floor(latency + size / bandwidth) ns, the bandwidth that of the
/// narrowest link, whatever else is under way.
class AstraUnaware : public NetworkModel {
 public:
  /// `program` holds the resources, and must outlive the network.
  explicit AstraUnaware(const Program& program) : program_(program) {}

  void Start(TaskId message, const Flow& flow) override;
  std::optional<Time> NextCompletion(Time now) override;
  std::span<const TaskId> Advance(Time to) override;

 private:
  const Program& program_;
  Time now_;
  EventHeap arrivals_;
  std::vector<TaskId> arrived_;
};

/// Messages queue for each link of their route, first come first served, and cross it whole before
/// they go on: one that begins to cross at t arrives at its other end at t + floor(latency + size /
/// bandwidth) ns and leaves the link to the next one at t + floor(size / bandwidth) ns. The route
/// is the flow's resources in their order; without any, the message is as in AstraUnaware.
class AstraAware : public NetworkModel {
 public:
  /// `program` holds the resources, and must outlive the network.
  explicit AstraAware(const Program& program);

  void Start(TaskId message, const Flow& flow) override;
  std::optional<Time> NextCompletion(Time now) override;
  std::span<const TaskId> Advance(Time to) override;

 private:
  struct Message {
    TaskId task;
    Flow flow;
    size_t crossed = 0;     // links of its route
    uint32_t sequence = 0;  // of its start
  };

  void Cross(size_t row, Time now);

  const Program& program_;
  Time now_;
  uint32_t started_ = 0;
  std::vector<Time> free_at_;  // by resource
  std::vector<Message> messages_;
  std::vector<size_t> free_rows_;  // of `messages_`
  EventHeap reaches_;              // when a row of `messages_`, named as a task, has crossed a link
  std::vector<Message> ended_;
  std::vector<TaskId> arrived_;
};

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_NETWORK_ASTRA_NETWORKS_H_
