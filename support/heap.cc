#include "support/heap.h"

#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>

#include "support/file.h"

namespace orrery {
namespace heap_cc {
namespace {

constexpr absl::string_view kOutOfMemory =
    ": out of memory; try a smaller model, batch or search, or fewer threads\n";

// Made before it is needed: then there is no memory to make it in.
char message[512] = "";
size_t message_size = 0;
std::atomic_flag told = ATOMIC_FLAG_INIT;

// A sanitizer has a heap of its own in place of that of glibc.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kOtherHeap = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kOtherHeap = true;
#else
constexpr bool kOtherHeap = false;
#endif
#else
constexpr bool kOtherHeap = false;
#endif

std::atomic<bool> tuned = false, tunes_threads = false;
std::atomic<void*> kept = nullptr;

bool IsLimited(int resource) {
  rlimit limit = {};
  return getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

// What this thread allocates next, up to so many pages, in large ones. A heap that `is_new` has
// begun with small ones: what is left before the first large page is taken and kept, which touches
// none of it. False where there is no room.
bool TakeLargePages(size_t pages, bool is_new) {
  constexpr size_t kPage = size_t{2} << 20, kHead = 64;
  const size_t size = pages * kPage;
  void* const heap = std::malloc(size);
  if (heap == nullptr) return false;
  const size_t before = kPage - reinterpret_cast<uintptr_t>(heap) % kPage;
  madvise(static_cast<char*>(heap) + before, size - kPage, MADV_HUGEPAGE);
  const auto at = reinterpret_cast<uintptr_t>(heap);
  std::free(heap);
  if (before <= kHead || !is_new) return true;
  void* const begin = std::malloc(before - kHead);
  if (reinterpret_cast<uintptr_t>(begin) == at) {
    kept = begin;
  } else {
    std::free(begin);  // from elsewhere: it would be lost
  }
  return true;
}

// Whether nothing was allocated of this thread's heap, but what a thread begins with: those of
// glibc lie at multiples of 64 MB.
bool HasNewHeap() {
  constexpr uintptr_t kHeap = 64 << 20, kBegin = 64 << 10;
  void* const block = std::malloc(2 * kBegin);
  const auto at = reinterpret_cast<uintptr_t>(block);
  std::free(block);
  return at % kHeap < kBegin;
}

// Bytes of this process that were in memory at once; 0: nobody knows.
size_t MostResident() {
  constexpr size_t kUnit = 1024;  // of getrusage
  rusage use = {};
  return getrusage(RUSAGE_SELF, &use) == 0 ? static_cast<size_t>(use.ru_maxrss) * kUnit : 0;
}

// Bytes of this process that are in memory; 0: nobody knows.
size_t Resident() {
  size_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

[[noreturn]] void TellAndEnd() {
  while (told.test_and_set()) pause();  // another thread tells
  RemoveHalfWritten();
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, message, message_size);
  _exit(1);
}

}  // namespace
}  // namespace heap_cc

void TuneHeap() {
  if (heap_cc::kOtherHeap) return;
  constexpr size_t kFew = 16, kMany = 384;
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  const bool limited = heap_cc::IsLimited(RLIMIT_AS);
  if (limited) mallopt(M_ARENA_MAX, 1);  // a heap a thread reserves 64 MB each
  const bool few = limited || heap_cc::IsLimited(RLIMIT_DATA);
  const bool is_new = !heap_cc::tuned.exchange(true);
  if (few || !heap_cc::TakeLargePages(kMany, is_new)) heap_cc::TakeLargePages(kFew, is_new);
  heap_cc::tunes_threads = !few;
}

void TuneHeapOfThread() {
  constexpr size_t kPages = 31;
  if (heap_cc::tunes_threads && heap_cc::HasNewHeap()) heap_cc::TakeLargePages(kPages, true);
}

void GiveBackFreed(size_t most) {
  const size_t resident = heap_cc::MostResident();  // asked in a microsecond
  if (resident > 0 && resident <= most) return;
  // What was given back once still counts as free there: pages that are in memory tell.
  const struct mallinfo2 heap = mallinfo2();
  if (heap_cc::Resident() > heap.uordblks + heap.hblkhd + most) malloc_trim(0);
}

void EndWhereMemoryEnds(absl::string_view program) {
  constexpr size_t kRoom = sizeof(heap_cc::message) - heap_cc::kOutOfMemory.size();
  const size_t length = std::min(program.size(), kRoom);
  std::memcpy(heap_cc::message, program.data(), length);
  std::memcpy(heap_cc::message + length, heap_cc::kOutOfMemory.data(),
              heap_cc::kOutOfMemory.size());
  heap_cc::message_size = length + heap_cc::kOutOfMemory.size();
  std::set_new_handler(heap_cc::TellAndEnd);
}

}  // namespace orrery
