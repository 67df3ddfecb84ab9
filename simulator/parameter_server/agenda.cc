#include "simulator/parameter_server/agenda.h"

namespace orrery::simulator::parameter_server {

Event Agenda::Take() {
  const Event event = queue_.top();
  queue_.pop();
  return event;
}

void Agenda::Add(Time time, Event::Kind kind, int32_t who) {
  queue_.push({.time = time, .sequence = sequence_++, .kind = kind, .who = who});
}

void Agenda::AddArrival(Time time, const Message& message) {
  if (free_.empty()) {
    free_.push_back(static_cast<int32_t>(flying_.size()));
    flying_.emplace_back();
  }
  const int32_t place = free_.back();
  free_.pop_back();
  flying_[static_cast<size_t>(place)] = message;
  Add(time, Event::Kind::kArrived, place);
}

Message Agenda::Land(int32_t place) {
  free_.push_back(place);
  return flying_[static_cast<size_t>(place)];
}

}  // namespace orrery::simulator::parameter_server
