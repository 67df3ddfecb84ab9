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

std::atomic<bool> tuned = false, tunes_threads = false;
void* volatile kept = nullptr;

// What this thread allocates next, in large pages. A heap that `is_new` has begun with small ones:
// what is left before the first large page is taken and kept, which touches none of it.
template <typename IsNew>
void TakeLargePages(const IsNew& is_new) {
  constexpr size_t kPage = size_t{2} << 20, kSize = 16 * kPage, kHead = 64;
  void* const heap = std::malloc(kSize);
  if (heap == nullptr) return;
  const auto at = reinterpret_cast<uintptr_t>(heap);
  const size_t before = kPage - at % kPage;
  madvise(reinterpret_cast<void*>(at + before), kSize - kPage, MADV_HUGEPAGE);
  std::free(heap);
  if (before > kHead && is_new(at)) kept = std::malloc(before - kHead);
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
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  rlimit addresses = {};
  const bool limited = getrlimit(RLIMIT_AS, &addresses) == 0 && addresses.rlim_cur != RLIM_INFINITY;
  if (limited) mallopt(M_ARENA_MAX, 1);  // a heap a thread reserves 64 MB each
  heap_cc::TakeLargePages([](uintptr_t) { return !heap_cc::tuned.exchange(true); });
  // Of a heap that a sanitizer has in its place, this knows nothing.
  heap_cc::tunes_threads = !limited && mallinfo2().arena > 0;
}

void TuneHeapOfThread() {
  constexpr uintptr_t kHeap = 64 << 20, kBegin = 64 << 10;  // of glibc: such a heap begins there
  if (!heap_cc::tunes_threads) return;
  heap_cc::TakeLargePages([](uintptr_t at) { return at % kHeap < kBegin; });
}

void GiveBackFreed(size_t most) {
  if (heap_cc::MostResident() <= most) return;  // asked in a microsecond, as all small searches do
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
