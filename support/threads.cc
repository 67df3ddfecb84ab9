#include "support/threads.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

namespace orrery {

void RunOnThreads(const std::function<void()>& work, size_t more) {
  std::vector<std::thread> workers;
  workers.reserve(more);
  try {
    while (workers.size() < more) workers.emplace_back(std::cref(work));
  } catch (const std::exception&) {
    // The system has no more; those that there are do all the work.
  }
  work();
  for (std::thread& worker : workers) worker.join();
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

}  // namespace orrery
