#include "support/heap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "support/sanitized_test_util.h"
#include "support/threads.h"

namespace orrery {
namespace heap_test_cc {
namespace {

constexpr size_t kLarge = size_t{64} << 20;

TEST(TuneHeap, MayBeCalledAtAnyTime) {
  const std::vector<int> before(100'000, 7);
  TuneHeap();
  const std::vector<int> between(10'000'000, 8);
  TuneHeap();
  const std::vector<int> after(1000, 9);
  EXPECT_EQ(before.back() + between.back() + after.back(), 24);
}

// Sanitizers have heaps of their own, which nobody tunes.
#ifndef ORRERY_OTHER_HEAP

// A large block that is written to, and freed; volatile, so that it is there at all.
void UseLargeBlock() {
  const auto block = std::make_unique_for_overwrite<char[]>(kLarge);
  volatile char* const bytes = block.get();
  for (size_t at = 0; at < kLarge; at += 4096) bytes[at] = 1;
  EXPECT_EQ(bytes[kLarge / 2], 1);
}

// Large blocks come from the heap, and not each from the system.
TEST(TuneHeap, KeepsLargeBlocksInTheHeap) {
  TuneHeap();
  const size_t mapped = mallinfo2().hblkhd;
  const auto block = std::make_unique_for_overwrite<char[]>(kLarge);
  volatile char* const bytes = block.get();
  bytes[kLarge - 1] = 1;
  EXPECT_EQ(mallinfo2().hblkhd, mapped);
}

// What was freed is kept, and taken again.
TEST(TuneHeap, KeepsWhatWasFreed) {
  TuneHeap();
  UseLargeBlock();
  const size_t arena = mallinfo2().arena;
  EXPECT_GE(arena, kLarge);
  for (int i = 0; i < 3; ++i) UseLargeBlock();
  EXPECT_GE(mallinfo2().arena, arena);
  EXPECT_LT(mallinfo2().arena, arena + kLarge);
}

// The flags of the mapping in which `address` lies, as in "VmFlags: rd wr mr mw me ac hg"; empty
// where the system does not tell.
std::string FlagsOfMapping(const void* address) {
  std::ifstream mappings("/proc/self/smaps");
  bool here = false;
  for (std::string line; std::getline(mappings, line);) {
    uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) == 2) {
      const auto at = reinterpret_cast<uintptr_t>(address);
      here = begin <= at && at < end;
    }
    if (here && line.starts_with("VmFlags:")) return line;
  }
  return "";
}

// What it says of a block of so many bytes that is allocated now, at that part of it.
std::string FlagsOfBlock(size_t size, double at) {
  const auto block = std::make_unique_for_overwrite<char[]>(size);
  volatile char* const bytes = block.get();
  const auto place = static_cast<size_t>(static_cast<double>(size) * at);
  bytes[place] = 1;
  return FlagsOfMapping(&block[place]);
}

bool TellsOfLargePages(const std::string& flags) {
  return !flags.empty() && std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled").is_open();
}

TEST(TuneHeap, TakesLargePages) {
  TuneHeap();
  for (const double at : {0.01, 0.5, 0.9}) {
    const std::string flags = FlagsOfBlock(size_t{700} << 20, at);
    if (!TellsOfLargePages(flags)) GTEST_SKIP() << "the system does not tell, or has none";
    EXPECT_THAT(flags, testing::HasSubstr(" hg")) << at;
  }
}

// A thread has a heap of its own, in large pages like that of `main`. The next thread has the same
// one, and loses nothing of it.
TEST(TuneHeapOfThread, TakesLargePagesOnce) {
  TuneHeap();
  std::set<const void*> blocks;
  std::string flags;
  for (int i = 0; i < 20; ++i) {
    std::thread([&] {
      TuneHeapOfThread();
      flags = FlagsOfBlock(size_t{64} << 10, 0.5);
      blocks.insert(std::make_unique_for_overwrite<char[]>(size_t{64} << 10).get());
    }).join();
  }
  EXPECT_LE(blocks.size(), 2U);
  if (!TellsOfLargePages(flags)) GTEST_SKIP() << "the system does not tell, or has none";
  EXPECT_THAT(flags, testing::HasSubstr(" hg"));
}

// As all threads of the library do.
TEST(RunOnThreads, HasHeapsInLargePages) {
  TuneHeap();
  std::mutex mutex;
  std::set<std::string> flags;
  RunOnThreads(
      [&] {
        const std::string here = FlagsOfBlock(size_t{8} << 20, 0.5);
        const std::lock_guard<std::mutex> lock(mutex);
        flags.insert(here);
      },
      3);
  if (!TellsOfLargePages(*flags.begin())) GTEST_SKIP() << "the system does not tell, or has none";
  EXPECT_THAT(flags, testing::Each(testing::HasSubstr(" hg")));
}

// Nor where much of the heap is in use, so that another one is begun and ended again.
TEST(TuneHeapOfThread, LosesNothingOfHeapsInUse) {
  TuneHeap();
  std::unique_ptr<char[]> block;
  std::thread([&block] {
    TuneHeapOfThread();
    block = std::make_unique_for_overwrite<char[]>(size_t{40} << 20);
  }).join();
  const size_t used = mallinfo2().uordblks;
  for (int i = 0; i < 50; ++i) std::thread(&TuneHeapOfThread).join();
  EXPECT_LT(mallinfo2().uordblks, used + (size_t{4} << 20));
}

// Bytes of this process that are in memory.
size_t Resident() {
  size_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// What is between blocks that are not free, too.
TEST(GiveBackFreed, LeavesNoMoreThanThat) {
  TuneHeap();
  constexpr size_t kBlock = size_t{1} << 20;
  std::vector<std::unique_ptr<char[]>> blocks;
  for (size_t i = 0; i < 64; ++i) blocks.push_back(std::make_unique<char[]>(kBlock));
  for (size_t i = 0; i < blocks.size(); i += 2) blocks[i].reset();
  const size_t before = Resident();
  GiveBackFreed(kLarge);
  EXPECT_NEAR(static_cast<double>(Resident()), static_cast<double>(before), 4e6);
  GiveBackFreed(kLarge / 8);
  EXPECT_LT(Resident() + kLarge / 4, before);
}

// Whatever asks for it, on whatever thread: nothing is thrown, nothing is unwound.
TEST(EndWhereMemoryEnds, TellsInOneLine) {
  const auto ask = [] {
    try {
      void* volatile const block = ::operator new (size_t{1} << 62);
      ::operator delete(block);
    } catch (...) {
      _exit(3);
    }
  };
  constexpr char kTold[] =
      "^some/program: out of memory; try a smaller model, batch or search, or fewer threads\n$";
  EXPECT_EXIT((EndWhereMemoryEnds("some/program"), ask()), testing::ExitedWithCode(1), kTold);
  EXPECT_EXIT((EndWhereMemoryEnds("some/program"), std::thread(ask).join()),
              testing::ExitedWithCode(1), kTold);
  const std::string longest(1000, 'x');
  EXPECT_EXIT((EndWhereMemoryEnds(longest), ask()), testing::ExitedWithCode(1),
              "x: out of memory; ");
}

#endif

}  // namespace
}  // namespace heap_test_cc
}  // namespace orrery
