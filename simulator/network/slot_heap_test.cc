#include "simulator/network/slot_heap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

namespace orrery::simulator {
namespace slot_heap_test_cc {
namespace {

// Changes of a few and of many at once, against a map.
TEST(SlotHeap, FindsTheFirstOfMomentsThatChange) {
  std::mt19937 random(1);
  SlotHeap heap;
  std::map<int32_t, Time> moments;
  for (int step = 0; step < 2000; ++step) {
    std::map<int32_t, Time> changes;
    for (size_t i = random() % (step % 5 == 0 ? 60 : 3); i > 0; --i) {
      changes[static_cast<int32_t>(random() % 100)] = Time(static_cast<int64_t>(random() % 50));
    }
    std::vector<SlotHeap::Entry> entries;
    for (const auto& [slot, time] : changes) {
      entries.push_back({time, slot});
      moments[slot] = time;
    }
    std::shuffle(entries.begin(), entries.end(), random);
    heap.Set(entries);
    for (size_t i = random() % 6; i > 0 && !moments.empty(); --i) {
      Time first = moments.begin()->second;
      for (const auto& [slot, time] : moments) first = std::min(first, time);
      ASSERT_FALSE(heap.empty());
      ASSERT_EQ(heap.top().time, first);
      ASSERT_EQ(moments[heap.top().slot], first);
      moments.erase(heap.top().slot);
      heap.Pop();
    }
    ASSERT_EQ(heap.empty(), moments.empty());
  }
}

}  // namespace
}  // namespace slot_heap_test_cc
}  // namespace orrery::simulator
