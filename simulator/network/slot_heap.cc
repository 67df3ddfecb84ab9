#include "simulator/network/slot_heap.h"

#include <algorithm>

#include "support/check.h"

namespace orrery::simulator {
namespace slot_heap_cc {
namespace {

// When more than one in so many moments changes, building the heap anew beats moving each: a build
// costs two comparisons an entry, a move up to two a level.
constexpr size_t kFewIsOneIn = 4;

}  // namespace
}  // namespace slot_heap_cc

void SlotHeap::Put(size_t position, const Entry& entry) {
  heap_[position] = entry;
  PositionOf(entry.slot) = static_cast<int32_t>(position);
}

void SlotHeap::Rise(size_t position) {
  const Entry entry = heap_[position];
  while (position > 0) {
    const size_t parent = (position - 1) / 2;
    if (heap_[parent].time <= entry.time) break;
    Put(position, heap_[parent]);
    position = parent;
  }
  Put(position, entry);
}

void SlotHeap::Sink(size_t position) {
  const Entry entry = heap_[position];
  const size_t count = heap_.size();
  for (size_t child = 2 * position + 1; child < count; child = 2 * position + 1) {
    if (child + 1 < count && heap_[child + 1].time < heap_[child].time) ++child;
    if (heap_[child].time >= entry.time) break;
    Put(position, heap_[child]);
    position = child;
  }
  Put(position, entry);
}

void SlotHeap::Pop() {
  ORRERY_DCHECK(!heap_.empty());
  PositionOf(heap_.front().slot) = kNowhere;
  const Entry last = heap_.back();
  heap_.pop_back();
  if (heap_.empty()) return;
  heap_.front() = last;
  Sink(0);
}

void SlotHeap::Set(std::span<const Entry> entries) {
  const bool few = entries.size() * slot_heap_cc::kFewIsOneIn < heap_.size();
  for (const Entry& entry : entries) {
    const size_t slot = static_cast<size_t>(entry.slot);
    if (slot >= positions_.size()) positions_.resize(slot + 1, kNowhere);
    if (positions_[slot] == kNowhere) {
      positions_[slot] = static_cast<int32_t>(heap_.size());
      heap_.push_back(entry);
    }
    const size_t position = static_cast<size_t>(positions_[slot]);
    heap_[position].time = entry.time;
    if (!few) continue;
    Rise(position);
    Sink(static_cast<size_t>(positions_[slot]));
  }
  if (few) return;
  for (size_t position = heap_.size() / 2; position-- > 0;) Sink(position);
}

}  // namespace orrery::simulator
