#include "search/walks/walkers.h"

#include <condition_variable>

#include "absl/cleanup/cleanup.h"
#include "support/threads.h"

namespace orrery::search {
namespace walkers_cc {
namespace {

class Walking {
 public:
  Walking(Walk& walk, const Walkers& walkers) : walk_(walk), walkers_(walkers) {}

  // Of one thread.
  void Go() {
    std::unique_lock<std::mutex> lock(walkers_.mutex);
    while (const std::optional<size_t> candidate = Next(lock)) {
      walkers_.under_way.insert(*candidate);
      const absl::Cleanup done = [&, candidate = *candidate] {
        if (!lock.owns_lock()) lock.lock();  // where it throws
        walkers_.under_way.erase(candidate);
        found_.notify_all();
      };
      const size_t nth = begun_++;
      lock.unlock();
      walkers_.play(*candidate, nth);
      lock.lock();
      walk_.Found(*candidate, walkers_.score(*candidate));
    }
  }

 private:
  // What others find may open more.
  std::optional<size_t> Next(std::unique_lock<std::mutex>& lock) {
    while (true) {
      const double spent = walkers_.spent(begun_);
      if (spent < 0) return std::nullopt;
      const std::vector<size_t> next = walk_.Next(1, spent);
      if (!next.empty()) return next.front();
      if (walkers_.under_way.empty()) return std::nullopt;
      found_.wait(lock);
    }
  }

  Walk& walk_;
  const Walkers& walkers_;
  size_t begun_ = 0;
  std::condition_variable found_;
};

}  // namespace
}  // namespace walkers_cc

void WalkOn(Walk& walk, const Walkers& walkers) {
  walkers_cc::Walking walking(walk, walkers);
  RunOnThreads([&] { walking.Go(); }, walkers.threads > 0 ? walkers.threads - 1 : 0);
}

}  // namespace orrery::search
