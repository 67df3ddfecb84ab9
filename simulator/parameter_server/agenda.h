#ifndef ORRERY_SIMULATOR_PARAMETER_SERVER_AGENDA_H_
#define ORRERY_SIMULATOR_PARAMETER_SERVER_AGENDA_H_

#include <cstdint>
#include <queue>
#include <utility>
#include <vector>

#include "simulator/parameter_server/channels.h"
#include "support/units.h"

namespace orrery::simulator::parameter_server {

/// Something that happens at a moment: kernels of a worker end, a server has done its work, a
/// message arrives.
struct Event {
  enum class Kind : uint8_t { kComputed, kWorked, kArrived };
  Time time = {};
  uint32_t sequence = 0;  // of one moment the first that was scheduled comes first
  Kind kind = Kind::kComputed;
  int32_t who = 0;  // worker or server; of kArrived a place among the messages in flight

  bool operator>(const Event& other) const {
    return std::pair(time, sequence) > std::pair(other.time, other.sequence);
  }
};

/// The events to come, and the messages that have been sent and have not arrived.
class Agenda {
 public:
  bool empty() const { return queue_.empty(); }
  /// When the first event is; there must be one.
  Time next() const { return queue_.top().time; }
  /// Takes the first event; there must be one.
  Event Take();
  /// Adds an event of a worker or server.
  void Add(Time time, Event::Kind kind, int32_t who);
  /// Adds the arrival of a message.
  void AddArrival(Time time, const Message& message);
  /// The message that an event of kArrived is about, whose place is free then.
  Message Land(int32_t place);

 private:
  uint32_t sequence_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> queue_;
  std::vector<Message> flying_;
  std::vector<int32_t> free_;  // places of these
};

}  // namespace orrery::simulator::parameter_server

#endif  // ORRERY_SIMULATOR_PARAMETER_SERVER_AGENDA_H_
