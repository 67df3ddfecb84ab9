#include "simulator/network/event_heap.h"

#include "support/check.h"

namespace orrery::simulator {
namespace event_heap_cc {
namespace {

bool Before(const Event& a, const Event& b) {
  // One branch-free comparison of (time, sequence): the branch on equal times would be a coin toss.
  using Key = unsigned __int128;
  const auto key = [](const Event& event) {
    return (static_cast<Key>(static_cast<uint64_t>(event.time.picoseconds())) << 32) |
           event.sequence;
  };
  return key(a) < key(b);
}

}  // namespace
}  // namespace event_heap_cc

void EventHeap::Push(const Event& event) {
  ORRERY_DCHECK(event.time >= Time(0)) << event.task;
  size_t hole = heap_.size();
  heap_.push_back(event);
  while (hole > 0) {
    const size_t parent = (hole - 1) / 2;
    if (!event_heap_cc::Before(event, heap_[parent])) break;
    heap_[hole] = heap_[parent];
    hole = parent;
  }
  heap_[hole] = event;
}

void EventHeap::Pop() {
  ORRERY_DCHECK(!heap_.empty());
  const Event last = heap_.back();
  heap_.pop_back();
  if (!heap_.empty()) SiftDown(last);
}

void EventHeap::ReplaceTop(Time time, TaskId task) {
  ORRERY_DCHECK(time >= heap_.front().time) << task;
  SiftDown({time, next_sequence_++, task});
}

// Puts `event` where the first one was, and down to its position.
void EventHeap::SiftDown(const Event& event) {
  const size_t count = heap_.size();
  size_t hole = 0;
  for (size_t child = 1; child < count; child = 2 * hole + 1) {
    if (child + 1 < count) child += event_heap_cc::Before(heap_[child + 1], heap_[child]);
    if (!event_heap_cc::Before(heap_[child], event)) break;
    heap_[hole] = heap_[child];
    hole = child;
  }
  heap_[hole] = event;
}

}  // namespace orrery::simulator
