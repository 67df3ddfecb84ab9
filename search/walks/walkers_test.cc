#include "search/walks/walkers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace orrery::search {
namespace walkers_test_cc {
namespace {

// Candidates in their order, as long as they are open.
class InOrder final : public Walk {
 public:
  InOrder(size_t all, const absl::flat_hash_set<size_t>& under_way)
      : all_(all), under_way_(under_way) {}

  std::vector<size_t> Next(size_t most, double spent) override {
    spent_.push_back(spent);
    std::vector<size_t> next;
    for (size_t i = 0; i < all_ && next.size() < most; ++i) {
      if (found_.contains(i) || under_way_.contains(i) || (i > waits_for_ && !Knows())) continue;
      next.push_back(i);
    }
    return next;
  }
  void Found(size_t candidate, std::optional<WalkScore> score) override {
    found_.insert(candidate);
    scores_.push_back(score.has_value() ? score->size : -1);
  }

  // Those behind `candidate` are wanted only once it is found.
  void WaitFor(size_t candidate) { waits_for_ = candidate; }
  const std::set<size_t>& found() const { return found_; }
  const std::vector<double>& scores() const { return scores_; }
  const std::vector<double>& spent() const { return spent_; }

 private:
  bool Knows() const { return found_.contains(waits_for_); }

  const size_t all_;
  const absl::flat_hash_set<size_t>& under_way_;
  size_t waits_for_ = static_cast<size_t>(-1);
  std::set<size_t> found_;
  std::vector<double> scores_, spent_;
};

class WalkersTest : public testing::Test {
 protected:
  Walkers With(size_t threads, std::function<void(size_t, size_t)> play) {
    return {.threads = threads,
            .mutex = mutex_,
            .under_way = under_way_,
            .spent = [](size_t begun) { return static_cast<double>(begun) / 100; },
            .play = std::move(play),
            .score = [](size_t i) -> std::optional<WalkScore> {
              if (i % 2 == 1) return std::nullopt;
              return WalkScore{.size = static_cast<double>(i)};
            }};
  }

  std::mutex mutex_;
  absl::flat_hash_set<size_t> under_way_;
};

TEST_F(WalkersTest, PlayAllAndTellTheWalk) {
  InOrder walk(5, under_way_);
  std::vector<size_t> played, numbers;
  WalkOn(walk, With(1, [&](size_t i, size_t nth) {
           EXPECT_THAT(under_way_, testing::ElementsAre(i));
           played.push_back(i);
           numbers.push_back(nth);
         }));
  EXPECT_THAT(played, testing::ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(numbers, testing::ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(walk.scores(), testing::ElementsAre(0, -1, 2, -1, 4));
  EXPECT_THAT(walk.spent(), testing::ElementsAre(0, .01, .02, .03, .04, .05));
  EXPECT_TRUE(under_way_.empty());
}

// One candidate takes until all others are played.
TEST_F(WalkersTest, WaitForNobody) {
  constexpr size_t kAll = 9;
  InOrder walk(kAll, under_way_);
  std::mutex mutex;
  std::condition_variable changed;
  size_t others = 0;
  bool in_time = true;
  WalkOn(walk, With(2, [&](size_t i, size_t) {
           std::unique_lock<std::mutex> lock(mutex);
           if (i == 0) {
             in_time = changed.wait_for(lock, std::chrono::seconds(20),
                                        [&] { return others == kAll - 1; });
           } else {
             ++others;
             changed.notify_all();
           }
         }));
  EXPECT_TRUE(in_time);
  EXPECT_EQ(walk.found().size(), kAll);
}

// Nothing is open until the first is found, which takes until somebody else has asked in vain.
TEST_F(WalkersTest, WaitForWhatOthersOpen) {
  InOrder walk(3, under_way_);
  walk.WaitFor(0);
  std::mutex mutex;
  std::condition_variable changed;
  int both = 0;  // of those that are opened
  bool met = true;
  WalkOn(walk, With(2, [&](size_t i, size_t) {
           const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
           for (bool asked = i > 0; !asked; std::this_thread::yield()) {
             const std::lock_guard<std::mutex> lock(mutex_);
             asked = walk.spent().size() > 1 || std::chrono::steady_clock::now() > end;
           }
           std::unique_lock<std::mutex> lock(mutex);
           if (i == 0) return;
           ++both;
           changed.notify_all();
           const auto are_both = [&] { return both == 2; };
           met = changed.wait_for(lock, std::chrono::seconds(20), are_both) && met;
         }));
  EXPECT_TRUE(met) << "the one that waited has gone";
  EXPECT_EQ(walk.found().size(), 3u);
}

TEST_F(WalkersTest, BeginNothingOnceItIsSpent) {
  InOrder walk(100, under_way_);
  Walkers walkers = With(4, [](size_t, size_t) {});
  walkers.spent = [](size_t begun) { return begun < 7 ? 0.5 : -1; };
  WalkOn(walk, walkers);
  EXPECT_EQ(walk.found().size(), 7u);
}

// Nobody waits for one that has thrown.
TEST_F(WalkersTest, ThrowWhatAPlayThrows) {
  InOrder walk(3, under_way_);
  walk.WaitFor(0);
  const auto play = [&](size_t, size_t) { throw std::runtime_error("a play"); };
  EXPECT_THROW(WalkOn(walk, With(2, play)), std::runtime_error);
  EXPECT_TRUE(under_way_.empty());
}

}  // namespace
}  // namespace walkers_test_cc
}  // namespace orrery::search
