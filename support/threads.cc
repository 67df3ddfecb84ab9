#include "support/threads.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "support/heap.h"

namespace orrery {

void RunOnThreads(const std::function<void()>& work, size_t more) {
  std::mutex mutex;
  std::exception_ptr first;
  // An exception must not leave a thread, nor this function while there are some.
  const std::function<void()> guarded = [&] {
    try {
      work();
    } catch (...) {
      const std::lock_guard<std::mutex> lock(mutex);
      if (first == nullptr) first = std::current_exception();
    }
  };
  std::vector<std::thread> workers;
  workers.reserve(more);
  try {
    while (workers.size() < more) {
      workers.emplace_back([&guarded] {
        TuneHeapOfThread();
        guarded();
      });
    }
  } catch (const std::exception&) {
    // The system has no more; those that there are do all the work.
  }
  guarded();
  for (std::thread& worker : workers) worker.join();
  if (first != nullptr) std::rethrow_exception(first);
}

void ForEachOnThreads(size_t count, size_t threads, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next = 0;
  const size_t wanted = std::min(threads, count);
  RunOnThreads(
      [&] {
        for (size_t i = next++; i < count; i = next++) work(i);
      },
      wanted > 0 ? wanted - 1 : 0);
}

int32_t OwnProcessors() {
  // Of such bounds the standard library knows nothing.
  cpu_set_t own;
  if (sched_getaffinity(0, sizeof(own), &own) == 0) return std::max(1, CPU_COUNT(&own));
  return static_cast<int32_t>(std::max(1U, std::thread::hardware_concurrency()));
}

}  // namespace orrery
