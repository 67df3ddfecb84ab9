#ifndef ORRERY_SIMULATOR_NETWORK_EVENT_HEAP_H_
#define ORRERY_SIMULATOR_NETWORK_EVENT_HEAP_H_

#include <cstdint>
#include <vector>

#include "simulator/program/program.h"
#include "support/units.h"

namespace orrery::simulator {

/// A task that is to finish at a moment. `sequence` counts the events as they were made, and
/// decides which of one moment comes first.
struct Event {
  Time time;
  uint32_t sequence = 0;
  TaskId task;
};

/// The events to come, first (time, sequence) first: a binary heap.
class EventHeap {
 public:
  bool empty() const { return heap_.empty(); }
  /// The first event; there must be one.
  const Event& top() const { return heap_.front(); }
  /// Adds an event; of those of one moment it comes after all that were added before.
  void Push(Time time, TaskId task) { Push({time, next_sequence_++, task}); }
  /// The same with a sequence number of the caller's: for a heap that is filled so throughout, or
  /// for an event that was made before and has moved.
  void Push(const Event& event);
  /// The sequence number that the next event gets.
  uint32_t next_sequence() const { return next_sequence_; }
  /// Drops the first event; there must be one.
  void Pop();
  /// `Pop` and `Push` in one, for half the price of both: a task that finishes mostly starts the
  /// next one of its stream.
  void ReplaceTop(Time time, TaskId task);

 private:
  void SiftDown(const Event& event);

  std::vector<Event> heap_;
  uint32_t next_sequence_ = 0;
};

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_NETWORK_EVENT_HEAP_H_
