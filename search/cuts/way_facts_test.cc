#include "search/cuts/way_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

namespace orrery::search {
namespace way_facts_test_cc {
namespace {

using ::testing::ElementsAre;

lowering::StepBound Cut(int64_t time, int64_t peak, bool may_fit = true) {
  return {.time = Duration(time),
          .likely_time = Duration(time),
          .peak = Bytes(peak),
          .may_fit = may_fit,
          .likely_peak = Bytes(peak + 1),
          .communication = 0.5 / static_cast<double>(time)};
}

// By kind: of the fastest cut, and the least of any.
TEST(WayFacts, AreOfAllCuts) {
  WayFacts facts;
  facts.Add(Cut(20, 100));
  facts.Add(Cut(10, 300));
  facts.Add(Cut(30, 50));
  EXPECT_EQ(facts.fastest, Duration(10));
  EXPECT_EQ(facts.communication, 0.05);
  EXPECT_EQ(facts.peak, Bytes(301));
  EXPECT_EQ(facts.least_peak, Bytes(51));
  EXPECT_EQ(facts.bound, Bytes(50));
  EXPECT_EQ(facts.least_time, Duration(10));
  WayFacts of_runs;
  simulator::Report run;
  run.step_time = Duration(7);
  run.peak_memory = Bytes(9);
  of_runs.Add(run);
  EXPECT_EQ(of_runs.peak, Bytes(9));
  EXPECT_EQ(of_runs.bound, Bytes(0));
  facts.Add(of_runs);
  EXPECT_EQ(facts.fastest, Duration(7));
  EXPECT_EQ(facts.bound, Bytes(0));
  EXPECT_EQ(facts.least_time, Duration(0)) << "a run says nothing of other stages";
}

TEST(CutBounds, SayWhetherACutMayBeBetter) {
  CutBounds bounds(2);
  EXPECT_FALSE(bounds.known());
  EXPECT_TRUE(bounds.MayBeat({Duration(1)})) << "nothing is known";
  bounds.Set(0, Cut(20, 100));
  EXPECT_FALSE(bounds.known());
  EXPECT_TRUE(bounds.MayBeat({Duration(1)})) << "of one";
  bounds.Set(1, Cut(10, 200, /*may_fit=*/false));
  EXPECT_TRUE(bounds.known());
  EXPECT_TRUE(bounds.MayBeat({}));
  EXPECT_TRUE(bounds.MayBeat({Duration(21)}));
  EXPECT_FALSE(bounds.MayBeat({Duration(20)})) << "the other does not fit";
  bounds.Set(0, Cut(20, 100, /*may_fit=*/false));
  EXPECT_FALSE(bounds.MayBeat({}));
}

TEST(CutBounds, BeginWithWhatMayFit) {
  CutBounds bounds(4);
  bounds.Set(0, Cut(1, 1, false));
  bounds.Set(2, Cut(1, 1, false));
  bounds.Set(3, Cut(1, 1));
  EXPECT_THAT(bounds.Order(), ElementsAre(1, 3, 0, 2));
}

}  // namespace
}  // namespace way_facts_test_cc
}  // namespace orrery::search
