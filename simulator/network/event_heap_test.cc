#include "simulator/network/event_heap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <utility>

namespace orrery::simulator {
namespace event_heap_test_cc {
namespace {

TEST(EventHeap, SequenceDecidesTies) {
  EventHeap heap;
  for (int32_t task = 0; task < 20; ++task) heap.Push(Time(task % 2), TaskId(task));
  for (int32_t i = 0; i < 20; ++i) {
    EXPECT_EQ(heap.top().task, TaskId(i < 10 ? 2 * i : 2 * i - 19));
    heap.Pop();
  }
  EXPECT_TRUE(heap.empty());
}

TEST(EventHeap, TellsTimesApartThatDifferInTheHighBits) {
  EventHeap heap;
  heap.Push(Time(int64_t{1} << 62), TaskId(0));
  heap.Push(Time((int64_t{1} << 62) - 1), TaskId(1));
  heap.Push(Time(int64_t{1} << 32), TaskId(2));
  EXPECT_EQ(heap.top().task, TaskId(2));
  heap.Pop();
  EXPECT_EQ(heap.top().task, TaskId(1));
}

TEST(EventHeap, AgreesWithASet) {
  std::mt19937 random(1);
  EventHeap heap;
  std::set<std::pair<int64_t, uint32_t>> expected;  // time, sequence
  uint32_t sequence = 0;
  for (int step = 0; step < 20'000; ++step) {
    const uint64_t choice = random() % 3;
    const int64_t now = expected.empty() ? 0 : expected.begin()->first;
    const int64_t time = now + static_cast<int64_t>(random() % 50);
    if (choice == 0 || expected.empty()) {
      heap.Push(Time(time), TaskId(static_cast<int32_t>(sequence)));
    } else {
      ASSERT_EQ(heap.top().time, Time(expected.begin()->first));
      ASSERT_EQ(heap.top().task, TaskId(static_cast<int32_t>(expected.begin()->second)));
      expected.erase(expected.begin());
      if (choice == 1) {
        heap.Pop();
        continue;
      }
      heap.ReplaceTop(Time(time), TaskId(static_cast<int32_t>(sequence)));
    }
    expected.insert({time, sequence++});
  }
}

}  // namespace
}  // namespace event_heap_test_cc
}  // namespace orrery::simulator
