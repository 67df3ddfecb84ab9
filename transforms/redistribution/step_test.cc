#include "transforms/redistribution/step.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "transforms/redistribution/move_set.h"

namespace orrery::transforms::redistribution {
namespace step_test_cc {
namespace {

TEST(MoveKind, HasANameAndSaysWhetherRanksExchangeAnything) {
  std::vector<std::string> found;
  for (int kind = 0; kind <= static_cast<int>(MoveKind::kMakePartial); ++kind) {
    found.push_back(absl::StrCat(ToString(static_cast<MoveKind>(kind)),
                                 Communicates(static_cast<MoveKind>(kind)) ? " *" : ""));
  }
  EXPECT_THAT(found, testing::ElementsAre("slice", "all-gather *", "reduce-scatter *",
                                          "all-reduce *", "all-to-all *", "permute *", "reblock *",
                                          "local-copy", "make-partial"));
}

TEST(Step, IsEqualWhereAllOfItIs) {
  const Step step{
      .kind = MoveKind::kAllToAll, .axes = ir::AxisList(2), .from = 0, .to = 1, .after = {}};
  std::vector<Step> others(5, step);
  others[0].kind = MoveKind::kSlice;
  others[1].axes = ir::AxisList(1);
  others[2].from = 2;
  others[3].to = 2;
  others[4].after.SetPartial(0, ir::Reduction::kSum);
  for (const Step& other : others) EXPECT_FALSE(step == other);
  EXPECT_TRUE(step == Step(step));
}

TEST(StepCost, IsTheSumOfItsParts) {
  const StepCost cost{.launches = 1,
                      .latency = 10,
                      .transfer = 100,
                      .copy = 1000,
                      .reduction = 10000,
                      .synchronization = 100000,
                      .memory = 1000000};
  EXPECT_EQ(cost.total(), 1111111);
  EXPECT_EQ(StepCost().total(), 0);
}

}  // namespace
}  // namespace step_test_cc
}  // namespace orrery::transforms::redistribution
