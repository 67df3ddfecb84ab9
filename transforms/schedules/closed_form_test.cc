#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "transforms/schedules/orders.h"
#include "transforms/schedules/testing/slots.h"

// What papers say of their schedules, over many sizes: time, memory, versions of the weights.

namespace orrery::transforms {
namespace closed_form_test_cc {
namespace {

const PipelineSchedule& Schedule(absl::string_view name) { return *FindSchedule(name).value(); }

// Orders of a schedule and the shape that they are of.
struct Orders {
  const PipelineSchedule& schedule;
  PipelineShape shape;
  RankOrders ranks;

  Timing Time(const StepDurations& durations) const {
    return TimeOrders(ranks, schedule.placement, shape, durations);
  }
};

Orders OrdersOf(absl::string_view name, int32_t ranks, int32_t microbatches, int32_t chunks = 0) {
  const PipelineSchedule& schedule = Schedule(name);
  const PipelineShape shape = schedule.ShapeOf(ranks, microbatches, chunks);
  EXPECT_TRUE(schedule.CheckShape(shape).ok()) << schedule.CheckShape(shape);
  return {.schedule = schedule, .shape = shape, .ranks = schedule.OrdersOf(shape)};
}

struct Sizes {
  int32_t ranks = 1;
  int32_t microbatches = 1;
  StepDurations durations = {};

  // Of one microbatch on one stage.
  int64_t Work() const { return durations.forward + durations.Of(StepKind::kBackward); }
};

template <typename Check>
void ForRandomSizes(Check check) {
  std::mt19937 random(7);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int i = 0; i < 60; ++i) {
    Sizes sizes = {.ranks = static_cast<int32_t>(draw(1, 12)),
                   .microbatches = static_cast<int32_t>(draw(1, 40))};
    sizes.durations.forward = draw(1, 50);
    sizes.durations.input_gradient = draw(1, 50);
    sizes.durations.weight_gradient = draw(0, 50);
    SCOPED_TRACE(absl::StrCat(
        sizes.ranks, " ranks, ", sizes.microbatches, " microbatches, F=", sizes.durations.forward,
        " I=", sizes.durations.input_gradient, " W=", sizes.durations.weight_gradient));
    check(sizes);
  }
}

std::vector<int64_t> Peaks(const Orders& orders) {
  std::vector<int64_t> peaks;
  for (const auto& order : orders.ranks) peaks.push_back(PeakLive(order));
  return peaks;
}

// (D-1)/(D-1+N) of the time, whatever steps last: each rank waits for D-1 forwards and backwards.
TEST(ClosedForm, TheBubbleOfSchedulesThatFlushIsThatOfGpipe) {
  ForRandomSizes([](const Sizes& sizes) {
    for (const char* name : {"gpipe", "1f1b", "terapipe"}) {
      const Timing timing = OrdersOf(name, sizes.ranks, sizes.microbatches).Time(sizes.durations);
      EXPECT_EQ(timing.makespan, (sizes.microbatches + sizes.ranks - 1) * sizes.Work()) << name;
      for (const int64_t idle : timing.idle) {
        EXPECT_EQ(idle, (sizes.ranks - 1) * sizes.Work()) << name;
      }
    }
  });
}

// (D-1)/(V N) of the work, where each step lasts 1/V of that of a rank with one chunk.
TEST(ClosedForm, InterleavingDividesTheBubble) {
  ForRandomSizes([](const Sizes& sizes) {
    for (int32_t chunks = 1; chunks <= 4; ++chunks) {
      const int32_t microbatches = sizes.ranks * (1 + sizes.microbatches / 5);
      for (const char* name : {"interleaved", "looped-bfs"}) {
        const Timing timing =
            OrdersOf(name, sizes.ranks, microbatches, chunks).Time(sizes.durations);
        for (const int64_t idle : timing.idle) {
          EXPECT_EQ(idle, (sizes.ranks - 1) * sizes.Work()) << name << " of " << chunks;
        }
      }
    }
  });
}

// Also where microbatches do not divide: torch wants as many in each round.
TEST(ClosedForm, InterleavingWithRoundsOfTwoSizesIsNoWorseThanOneChunk) {
  ForRandomSizes([](const Sizes& sizes) {
    if (sizes.microbatches < sizes.ranks) return;
    for (int32_t chunks = 1; chunks <= 4; ++chunks) {
      const Timing timing =
          OrdersOf("interleaved", sizes.ranks, sizes.microbatches, chunks).Time(sizes.durations);
      for (const int64_t idle : timing.idle) {
        EXPECT_LE(idle, chunks * (sizes.ranks - 1) * sizes.Work()) << chunks;
      }
    }
  });
}

TEST(ClosedForm, GpipeLoopedBfsAndTerapipeKeepEveryActivation) {
  ForRandomSizes([](const Sizes& sizes) {
    for (const char* name : {"gpipe", "looped-bfs", "terapipe"}) {
      const Orders orders = OrdersOf(name, sizes.ranks, sizes.microbatches);
      EXPECT_THAT(Peaks(orders), testing::Each(sizes.microbatches * orders.shape.chunks)) << name;
    }
  });
}

TEST(ClosedForm, OneForwardOneBackwardKeepsOneMicrobatchLiveAStageBehindIt) {
  ForRandomSizes([](const Sizes& sizes) {
    const std::vector<int64_t> peaks = Peaks(OrdersOf("1f1b", sizes.ranks, sizes.microbatches));
    for (int32_t rank = 0; rank < sizes.ranks; ++rank) {
      EXPECT_EQ(peaks[static_cast<size_t>(rank)], std::min(sizes.ranks - rank, sizes.microbatches));
    }
  });
}

TEST(ClosedForm, OneChunkInterleavedIsOneForwardOneBackward) {
  ForRandomSizes([](const Sizes& sizes) {
    EXPECT_EQ(OrdersOf("interleaved", sizes.ranks, sizes.microbatches, 1).ranks,
              OrdersOf("1f1b", sizes.ranks, sizes.microbatches).ranks);
  });
}

// In the memory of 1F1B: p stages, which are 2p halves of one.
TEST(ClosedForm, ZbvHasNoBubbleInsideAndTheMemoryOfOneForwardOneBackward) {
  ForRandomSizes([](const Sizes& sizes) {
    const Orders orders = OrdersOf("zbv", sizes.ranks, sizes.microbatches + 2 * sizes.ranks);
    const Timing timing = orders.Time({.forward = 5, .input_gradient = 5, .weight_gradient = 5});
    EXPECT_THAT(timing.idle_inside, testing::Each(0));
    EXPECT_THAT(Peaks(orders), testing::Each(testing::Le(2 * sizes.ranks)));
  });
}

TEST(ClosedForm, InterleavedZeroBubbleHoldsAsMuchOnEachRank) {
  ForRandomSizes([](const Sizes& sizes) {
    const int32_t microbatches = sizes.ranks * (1 + sizes.microbatches / 5);
    const Orders orders = OrdersOf("interleaved-zero-bubble", sizes.ranks, microbatches, 3);
    EXPECT_THAT(Peaks(orders), testing::Each(2 * sizes.ranks + sizes.ranks));
    const Orders whole = OrdersOf("interleaved", sizes.ranks, microbatches, 3);
    const StepDurations even = {.forward = 3, .input_gradient = 3, .weight_gradient = 3};
    EXPECT_LE(orders.Time(even).makespan, whole.Time(even).makespan);
  });
}

// p+1 halves of a stage on each rank; figure 5 of the DeepSeek-V3 report.
TEST(ClosedForm, DualPipeHoldsOneMicrobatchMoreThanThereAreRanks) {
  for (int32_t ranks = 2; ranks <= 12; ranks += 2) {
    for (int32_t microbatches = 2 * ranks; microbatches <= 4 * ranks; microbatches += 2) {
      EXPECT_THAT(Peaks(OrdersOf("dualpipe", ranks, microbatches)), testing::Each(ranks + 1));
      EXPECT_THAT(Peaks(OrdersOf("dualpipe-v", ranks, microbatches)), testing::Each(2 * ranks + 1));
    }
  }
}

// Steps of one length: a bubble of D-2, where 1F1B has 2(D-1), and at most D live (Chimera,
// tables 2 and 3).
TEST(ClosedForm, ChimeraHasHalfTheBubbleOfOneForwardOneBackward) {
  for (int32_t ranks = 2; ranks <= 16; ranks += 2) {
    for (int32_t groups = 1; groups <= 4; ++groups) {
      const Orders orders = OrdersOf("chimera", ranks, groups * ranks);
      EXPECT_EQ(UnitMakespan(orders.ranks), 2 * groups * ranks + ranks - 2);
      for (const int64_t peak : Peaks(orders)) {
        EXPECT_GE(peak, ranks / 2 + 1);
        EXPECT_LE(peak, ranks);
      }
    }
  }
}

// Backwards that last longer than forwards leave a bubble between groups too: one
// group is better than 1F1B, many are not.
TEST(ClosedForm, ChimeraWaitsBetweenGroupsForLongBackwards) {
  for (int32_t ranks = 2; ranks <= 16; ranks += 2) {
    for (int32_t groups = 1; groups <= 4; ++groups) {
      for (const int64_t longer : {0, 1, 5}) {  // than a forward, of 5
        const Timing timing =
            OrdersOf("chimera", ranks, groups * ranks)
                .Time({.forward = 5, .input_gradient = 5, .weight_gradient = longer});
        EXPECT_THAT(timing.idle, testing::Each((ranks - 2) * (5 + groups * longer)));
      }
    }
  }
}

TEST(ClosedForm, PipedreamOrdersStepsAsOneForwardOneBackward) {
  ForRandomSizes([](const Sizes& sizes) {
    const Orders plain = OrdersOf("1f1b", sizes.ranks, sizes.microbatches);
    EXPECT_EQ(OrdersOf("pipedream", sizes.ranks, sizes.microbatches).ranks, plain.ranks);
    EXPECT_EQ(OrdersOf("pipedream-2bw", sizes.ranks, sizes.microbatches).ranks, plain.ranks);
  });
}

std::vector<int32_t> Versions(const Orders& orders) {
  std::vector<int32_t> versions;
  for (int32_t stage = 0; stage < orders.shape.stages(); ++stage) {
    versions.push_back(orders.schedule.weight_versions(orders.shape, stage));
  }
  return versions;
}

std::vector<int32_t> StaleUpdates(const Orders& orders) {
  const auto& an_update = orders.schedule.microbatches_an_update;
  return Staleness(orders.ranks, orders.shape.stages(),
                   an_update == nullptr ? 1 : an_update(orders.shape));
}

// A version for each microbatch that is live, of which the oldest has seen as many updates less.
TEST(ClosedForm, PipedreamKeepsAVersionForEachRankFromHereToTheLast) {
  ForRandomSizes([](const Sizes& sizes) {
    const Orders orders = OrdersOf("pipedream", sizes.ranks, sizes.microbatches + sizes.ranks);
    std::vector<int32_t> versions;
    std::vector<int32_t> stale;
    for (int32_t stage = 0; stage < sizes.ranks; ++stage) {
      versions.push_back(sizes.ranks - stage);
      stale.push_back(sizes.ranks - 1 - stage);
    }
    EXPECT_EQ(Versions(orders), versions);
    EXPECT_EQ(StaleUpdates(orders), stale);
  });
}

// Updates that are far enough apart leave nobody behind by more than one.
TEST(ClosedForm, PipedreamWithTwoVersionsIsOneUpdateBehindAtMost) {
  ForRandomSizes([](const Sizes& sizes) {
    if (sizes.ranks == 1) return;
    const Orders batch = OrdersOf("pipedream-2bw", sizes.ranks, sizes.microbatches);
    const int32_t an_update = batch.schedule.microbatches_an_update(batch.shape);
    EXPECT_EQ(an_update, std::max(sizes.ranks, sizes.microbatches));
    const Orders orders = OrdersOf("pipedream-2bw", sizes.ranks, 3 * an_update);
    EXPECT_THAT(Versions(orders), testing::Each(2));
    const std::vector<int32_t> stale = Staleness(orders.ranks, orders.shape.stages(), an_update);
    EXPECT_THAT(stale, testing::Each(testing::Le(1)));
    EXPECT_EQ(stale.front(), 1);
  });
}

// The limit bounds memory and with it how stale weights are; that many are enough to leave no
// bubble but the first filling and the last draining.
TEST(ClosedForm, AmpnetKeepsToItsLimitAndNeverWaitsInTheMiddle) {
  ForRandomSizes([](const Sizes& sizes) {
    const PipelineSchedule& schedule = Schedule("ampnet");
    PipelineShape shape = schedule.ShapeOf(sizes.ranks, sizes.microbatches + 3 * sizes.ranks);
    shape.durations = sizes.durations;
    for (const int64_t limit : {0, 1, 2, 5}) {
      shape.live_limit = limit;
      const int64_t most = limit > 0 ? limit : 2 * sizes.ranks;
      const RankOrders orders = schedule.OrdersOf(shape);
      for (const auto& order : orders) EXPECT_LE(PeakLive(order), most);
      EXPECT_LE(Staleness(orders, shape.ranks, 1).front(), most - 1);
      const Timing timing = TimeOrders(orders, schedule.placement, shape, shape.durations);
      if (limit == 1) {
        EXPECT_EQ(timing.makespan, shape.microbatches * sizes.ranks * sizes.Work());
      } else if (limit == 0) {
        EXPECT_THAT(timing.idle, testing::Each((sizes.ranks - 1) * sizes.Work()));
      }
    }
  });
}

TEST(ClosedForm, DistirRunsTwiceAsFarAheadAsOneForwardOneBackward) {
  ForRandomSizes([](const Sizes& sizes) {
    const Orders orders = OrdersOf("distir", sizes.ranks, sizes.microbatches);
    for (int32_t rank = 0; rank < sizes.ranks; ++rank) {
      int32_t warm_up = 0;
      for (const ScheduleStep& step : orders.ranks[static_cast<size_t>(rank)]) {
        if (step.kind == StepKind::kBackward) break;
        ++warm_up;
      }
      EXPECT_EQ(warm_up, std::min(2 * (sizes.ranks - rank) - 1, sizes.microbatches));
    }
  });
}

// DistIR's own slots come from playing its rules; the earliest slots come from a longest path.
TEST(ClosedForm, DistirIsGreedySoThatItsTimestepsAreTheEarliestSlots) {
  ForRandomSizes([](const Sizes& sizes) {
    const Orders orders = OrdersOf("distir", sizes.ranks, sizes.microbatches);
    RankOrders earliest = orders.ranks;
    AssignSlots(earliest, StagePlacement::kLoop, orders.shape);
    EXPECT_EQ(earliest, orders.ranks);
  });
}

}  // namespace
}  // namespace closed_form_test_cc
}  // namespace orrery::transforms
