#include "cluster/rate_figures.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "cluster/device.h"

namespace orrery::cluster {
namespace rate_figures_test_cc {
namespace {

RateFigure Find(KernelRates& rates, absl::string_view path) {
  for (const RateFigure& figure : FiguresOf(rates)) {
    if (figure.path == path) return figure;
  }
  ADD_FAILURE() << path;
  return {};
}

// Each is of one field, and all fields have one: a change of any figure is a change of the rates.
TEST(RateFigures, AreAllThatRatesHave) {
  const KernelRates before = FindDevice("h100-80gb")->rates;
  KernelRates rates = before;
  std::set<std::string> paths;
  for (const RateFigure& figure : FiguresOf(rates)) {
    EXPECT_TRUE(paths.insert(figure.path).second) << figure.path;
    EXPECT_FALSE(figure.meaning.empty()) << figure.path;
    const double number = NumberOf(figure);
    SetNumber(figure, number == figure.least ? figure.most : figure.least);
    EXPECT_FALSE(rates == before) << figure.path;
    SetNumber(figure, number);
    EXPECT_TRUE(rates == before) << figure.path;
  }
  // Of products 9, of attention 6; and source and measured have none.
  EXPECT_EQ(paths.size(), 10 + 4 * 9 + 6 * 6);
}

TEST(RateFigures, StayInTheirRange) {
  KernelRates rates = AssumedKernelRates();
  SetNumber(Find(rates, "sustained"), 7);
  EXPECT_EQ(rates.sustained, 1);
  SetNumber(Find(rates, "half.step"), 0.25);
  EXPECT_EQ(rates.half.step, Duration(250'000));
  SetNumber(Find(rates, "cores"), 131.7);
  EXPECT_EQ(rates.cores, 132);
  SetNumber(Find(rates, "copies_both_ways"), 1);
  EXPECT_TRUE(rates.copies_both_ways);
}

TEST(RateFigures, SayWhatTheyMayBe) {
  KernelRates rates = AssumedKernelRates();
  rates.half.efficiency = 1.5;
  EXPECT_EQ(CheckFigure(Find(rates, "half.efficiency")).message(), "got 1.5; wanted 0.001 to 1");
  rates.start = Duration(2'000'000'000'000);
  EXPECT_EQ(CheckFigure(Find(rates, "start")).message(), "got 2000ms; wanted 0us to 1e+06us");
}

TEST(RateFigures, OfAllDevicesAreInTheirRange) {
  for (const Device& device : AllDevices()) {
    KernelRates rates = device.rates;
    for (const RateFigure& figure : FiguresOf(rates)) {
      EXPECT_TRUE(CheckFigure(figure).ok()) << device.name << " " << figure.path;
    }
  }
}

}  // namespace
}  // namespace rate_figures_test_cc
}  // namespace orrery::cluster
