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

void SlotHeap::Put(size_t place, const Entry& entry) {
  heap_[place] = entry;
  PlaceOf(entry.slot) = static_cast<int32_t>(place);
}

void SlotHeap::Rise(size_t place) {
  const Entry entry = heap_[place];
  while (place > 0) {
    const size_t parent = (place - 1) / 2;
    if (heap_[parent].time <= entry.time) break;
    Put(place, heap_[parent]);
    place = parent;
  }
  Put(place, entry);
}

void SlotHeap::Sink(size_t place) {
  const Entry entry = heap_[place];
  const size_t count = heap_.size();
  for (size_t child = 2 * place + 1; child < count; child = 2 * place + 1) {
    if (child + 1 < count && heap_[child + 1].time < heap_[child].time) ++child;
    if (heap_[child].time >= entry.time) break;
    Put(place, heap_[child]);
    place = child;
  }
  Put(place, entry);
}

void SlotHeap::Pop() {
  ORRERY_DCHECK(!heap_.empty());
  PlaceOf(heap_.front().slot) = kNowhere;
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
    if (slot >= places_.size()) places_.resize(slot + 1, kNowhere);
    if (places_[slot] == kNowhere) {
      places_[slot] = static_cast<int32_t>(heap_.size());
      heap_.push_back(entry);
    }
    const size_t place = static_cast<size_t>(places_[slot]);
    heap_[place].time = entry.time;
    if (!few) continue;
    Rise(place);
    Sink(static_cast<size_t>(places_[slot]));
  }
  if (few) return;
  for (size_t place = heap_.size() / 2; place-- > 0;) Sink(place);
}

}  // namespace orrery::simulator
