#include "simulator/network/fair_rates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <vector>

#include "simulator/network/exact_sum.h"

namespace orrery::simulator {
namespace fair_rates_test_cc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

Program Links(const std::vector<int64_t>& capacities) {
  Program program;
  for (const int64_t capacity : capacities) program.AddResource({.capacity = Bandwidth(capacity)});
  return program;
}

using Loads = std::vector<Load>;

Load On(int32_t resource, double load = 1) { return {ResourceId(resource), load}; }

TEST(ExactSum, IsTheSameInAnyOrder) {
  std::mt19937 random(1);
  std::vector<double> terms;
  for (int i = 0; i < 50; ++i)
    terms.push_back(std::ldexp(1.0 / 3 + i, static_cast<int>(random() % 20)));
  ExactSum first;
  for (const double term : terms) first.Add(term);
  for (int round = 0; round < 20; ++round) {
    std::shuffle(terms.begin(), terms.end(), random);
    ExactSum sum;
    for (const double term : terms) sum.Add(term);
    EXPECT_EQ(sum.value(), first.value());
    for (size_t i = 0; i < terms.size(); i += 2) sum.Add(-terms[i]);
    for (size_t i = 1; i < terms.size(); i += 2) sum.Add(-terms[i]);
    EXPECT_EQ(sum.value(), 0);
  }
}

TEST(ExactSum, ProductsLoseNothing) {
  ExactSum thirds;
  for (int i = 0; i < 7; ++i) thirds.Add(1.0 / 3);
  ExactSum sum(1e12 / 3);
  for (int i = 0; i < 7; ++i) sum.Add(1e12 / 3 * (1.0 / 3));
  // What is left is the rounding of the product, which is below half a unit in its last place.
  sum.SubtractProduct(1e12 / 3, thirds);
  EXPECT_NEAR(sum.value(), 1e12 / 3, 1e-4);
  ExactSum exact(3.0);
  exact.SubtractProduct(0.1, ExactSum(30));
  EXPECT_EQ(exact.value(), -30 * 5.551115123125783e-18);  // 0.1 is more than a tenth by this
}

// Of two numbers of 53 bits each: the product's 106 bits, put down in two parts, are all there.
TEST(ExactSum, ProductsOfFullMantissasLoseNothing) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 200; ++i) {
    const int64_t a = static_cast<int64_t>(random() >> 11) | 1 | int64_t{1} << 52;
    const int64_t b = static_cast<int64_t>(random() >> 11) | 1 | int64_t{1} << 52;
    const __int128 product = static_cast<__int128>(a) * b;
    const auto high = static_cast<double>(product);
    ExactSum sum(high);
    sum.Add(static_cast<double>(product - static_cast<__int128>(high)));
    sum.SubtractProduct(static_cast<double>(a), ExactSum(static_cast<double>(b)));
    EXPECT_EQ(sum.value(), 0) << a << " times " << b;
  }
}

TEST(FairRates, SharesALinkEvenly) {
  const Program program = Links({12});
  FairRates rates(program);
  const Loads one = {On(0)};
  EXPECT_FALSE(rates.stale());
  const FairRates::Slot a = rates.Add(Bandwidth(100), one);
  EXPECT_TRUE(rates.stale());
  EXPECT_EQ(rates.rate(a), 0);
  EXPECT_THAT(rates.Solve(), ElementsAre(a));
  EXPECT_EQ(rates.rate(a), 12);
  EXPECT_EQ(rates.rate_alone(a), 12);
  const FairRates::Slot b = rates.Add(Bandwidth(3), one);
  const FairRates::Slot c = rates.Add(Bandwidth(100), one);
  EXPECT_THAT(rates.Solve(), UnorderedElementsAre(a, b, c));
  EXPECT_EQ(rates.rate(a), 4.5);
  EXPECT_EQ(rates.rate(b), 3);  // has its own bound; the others go on
  EXPECT_EQ(rates.rate(c), 4.5);
  EXPECT_EQ(rates.used(ResourceId(0)), 12);
  rates.Remove(a);
  EXPECT_THAT(rates.Solve(), UnorderedElementsAre(b, c));
  EXPECT_EQ(rates.rate(c), 9);
  rates.Remove(b);
  rates.Remove(c);
  EXPECT_THAT(rates.Solve(), IsEmpty());
  EXPECT_EQ(rates.used(ResourceId(0)), 0);
}

// Bertsekas & Gallager's example: a long flow and short ones, two links of unlike width.
TEST(FairRates, TheNarrowestLinkDecidesFirst) {
  const Program program = Links({10, 30});
  FairRates rates(program);
  const Loads both = {On(0), On(1)};
  const Loads first = {On(0)};
  const Loads second = {On(1)};
  const FairRates::Slot a = rates.Add(Bandwidth(10), both);
  const FairRates::Slot b = rates.Add(Bandwidth(10), first);
  const FairRates::Slot c = rates.Add(Bandwidth(30), second);
  rates.Solve();
  EXPECT_EQ(rates.rate(a), 5);
  EXPECT_EQ(rates.rate(b), 5);
  EXPECT_EQ(rates.rate(c), 25);
}

// A flow of load 3 takes thrice its rate, and is as fast as a message beside it.
TEST(FairRates, LoadsWeigh) {
  const Program program = Links({12, 8});
  FairRates rates(program);
  const Loads collective = {On(0, 3), On(1, 0.5)};
  const Loads message = {On(0)};
  const FairRates::Slot a = rates.Add(Bandwidth(100), collective);
  const FairRates::Slot b = rates.Add(Bandwidth(100), message);
  rates.Solve();
  EXPECT_EQ(rates.rate(a), 3);
  EXPECT_EQ(rates.rate(b), 3);
  EXPECT_EQ(rates.used(ResourceId(0)), 12);
  EXPECT_EQ(rates.used(ResourceId(1)), 1.5);
  EXPECT_EQ(rates.rate_alone(a), 4);
}

TEST(FairRates, SolvesOnlyWhatIsConnectedWithAChange) {
  const Program program = Links({10, 10, 10, 10});
  FairRates rates(program);
  const Loads left = {On(0), On(1)};
  const Loads right = {On(2), On(3)};
  const Loads end = {On(3)};
  const FairRates::Slot a = rates.Add(Bandwidth(10), left);
  const FairRates::Slot b = rates.Add(Bandwidth(10), right);
  rates.Solve();
  const FairRates::Slot c = rates.Add(Bandwidth(10), end);
  EXPECT_THAT(rates.Solve(), UnorderedElementsAre(b, c));
  EXPECT_THAT(rates.solved(), UnorderedElementsAre(ResourceId(2), ResourceId(3)));
  rates.Remove(a);
  EXPECT_THAT(rates.Solve(), IsEmpty());
  EXPECT_THAT(rates.solved(), UnorderedElementsAre(ResourceId(0), ResourceId(1)));
}

TEST(FairRates, SlotsAreUsedAgainOnceTheyAreForgotten) {
  const Program program = Links({10});
  FairRates rates(program);
  const Loads one = {On(0)};
  std::set<FairRates::Slot> slots;
  for (int i = 0; i < 100; ++i) {
    const FairRates::Slot slot = rates.Add(Bandwidth(10), one);
    rates.Remove(slot);  // gone before it was ever seen
    const FairRates::Slot stays = rates.Add(Bandwidth(10), one);
    EXPECT_NE(slot, stays);
    EXPECT_THAT(rates.Solve(), ElementsAre(stays));
    rates.Remove(stays);
    slots.insert(slot);
    slots.insert(stays);
  }
  EXPECT_LE(slots.size(), 4u);
}

struct RandomFlow {
  Bandwidth bound;
  Loads loads;
};

class FairRatesOfRandomFlows : public ::testing::TestWithParam<uint32_t> {
 protected:
  FairRatesOfRandomFlows() {
    const size_t links = 1 + Below(12);
    std::vector<int64_t> capacities;
    for (size_t i = 0; i < links; ++i) capacities.push_back(static_cast<int64_t>(1 + Below(100)));
    program_ = Links(capacities);
    const size_t flows = 1 + Below(40);
    for (size_t i = 0; i < flows; ++i) flows_.push_back(MakeFlow(links));
  }

  size_t Below(size_t count) { return random_() % count; }

  RandomFlow MakeFlow(size_t links) {
    static constexpr std::array kLoads = {1.0, 1.0, 2.0, 0.5, 3.0, 1.0 / 3, 0.7};
    std::vector<int32_t> route(links);
    for (size_t i = 0; i < links; ++i) route[i] = static_cast<int32_t>(i);
    std::shuffle(route.begin(), route.end(), random_);
    route.resize(1 + Below(std::min<size_t>(links, 4)));
    RandomFlow flow;
    flow.bound = Bandwidth(static_cast<int64_t>(1 + Below(Below(2) == 0 ? 10 : 300)));
    for (const int32_t link : route) flow.loads.push_back(On(link, kLoads[Below(kLoads.size())]));
    return flow;
  }

  // The rates of those flows, in that order of coming.
  std::vector<double> Solved(const std::vector<size_t>& order) {
    FairRates rates(program_);
    std::vector<FairRates::Slot> slots(flows_.size());
    for (const size_t i : order) slots[i] = rates.Add(flows_[i].bound, flows_[i].loads);
    rates.Solve();
    std::vector<double> all(flows_.size());
    for (const size_t i : order) all[i] = rates.rate(slots[i]);
    return all;
  }

  std::vector<size_t> All() const {
    std::vector<size_t> order(flows_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    return order;
  }

  std::mt19937 random_{GetParam()};
  Program program_;
  std::vector<RandomFlow> flows_;
};

TEST_P(FairRatesOfRandomFlows, AreMaxMin) {
  const std::vector<double> rates = Solved(All());
  const size_t links = static_cast<size_t>(program_.resource_count());
  std::vector<double> used(links);
  std::vector<double> highest(links);
  for (size_t i = 0; i < flows_.size(); ++i) {
    for (const Load& load : flows_[i].loads) {
      const size_t link = static_cast<size_t>(load.resource.index());
      used[link] += load.load * rates[i];
      highest[link] = std::max(highest[link], rates[i]);
    }
  }
  std::vector<double> capacity(links);
  for (size_t link = 0; link < links; ++link) {
    const ResourceId id(static_cast<int32_t>(link));
    capacity[link] = static_cast<double>(program_.resource(id).capacity.bytes_per_second());
    EXPECT_LE(used[link], capacity[link] * (1 + 1e-12));
  }
  // Each flow has its own bound, or a full link on which nobody has more.
  for (size_t i = 0; i < flows_.size(); ++i) {
    const double bound = static_cast<double>(flows_[i].bound.bytes_per_second());
    EXPECT_GT(rates[i], 0);
    EXPECT_LE(rates[i], bound);
    bool held = rates[i] == bound;
    for (const Load& load : flows_[i].loads) {
      const size_t link = static_cast<size_t>(load.resource.index());
      held |= used[link] >= capacity[link] * (1 - 1e-12) && rates[i] >= highest[link] * (1 - 1e-12);
    }
    EXPECT_TRUE(held) << "flow " << i << " at " << rates[i];
  }
}

TEST_P(FairRatesOfRandomFlows, DoNotDependOnTheOrderInWhichTheyCame) {
  std::vector<size_t> order = All();
  const std::vector<double> rates = Solved(order);
  for (int round = 0; round < 5; ++round) {
    std::shuffle(order.begin(), order.end(), random_);
    EXPECT_EQ(Solved(order), rates);
  }
}

TEST_P(FairRatesOfRandomFlows, DoNotDependOnThoseThatWent) {
  FairRates rates(program_);
  std::vector<FairRates::Slot> slots(flows_.size(), -1);
  for (int step = 0; step < 60; ++step) {
    for (size_t changes = 1 + Below(3); changes > 0; --changes) {
      const size_t i = Below(flows_.size());
      if (slots[i] >= 0) {
        rates.Remove(slots[i]);
        slots[i] = -1;
      } else {
        slots[i] = rates.Add(flows_[i].bound, flows_[i].loads);
      }
    }
    rates.Solve();
    std::vector<size_t> there;
    for (size_t i = 0; i < slots.size(); ++i) {
      if (slots[i] >= 0) there.push_back(i);
    }
    const std::vector<double> fresh = Solved(there);
    for (const size_t i : there) ASSERT_EQ(rates.rate(slots[i]), fresh[i]) << "step " << step;
  }
}

TEST_P(FairRatesOfRandomFlows, AloneAreTheirOwnBoundOrThatOfALink) {
  for (size_t i = 0; i < flows_.size(); ++i) {
    FairRates rates(program_);
    const FairRates::Slot slot = rates.Add(flows_[i].bound, flows_[i].loads);
    rates.Solve();
    EXPECT_EQ(rates.rate(slot), rates.rate_alone(slot));
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, FairRatesOfRandomFlows, ::testing::Range(0u, 60u));

}  // namespace
}  // namespace fair_rates_test_cc
}  // namespace orrery::simulator
