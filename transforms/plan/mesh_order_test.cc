#include "transforms/plan/mesh_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/hash/hash_testing.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace orrery::transforms {
namespace mesh_order_test_cc {
namespace {

using ::testing::ElementsAre;

std::string Trouble(absl::string_view text) {
  const absl::StatusOr<MeshOrder> order = MeshOrder::Parse(text);
  if (order.ok()) return "none";
  EXPECT_TRUE(absl::IsInvalidArgument(order.status()));
  return std::string(order.status().message());
}

TEST(MeshOrder, IsMegatronsUnlessItSaysOtherwise) {
  EXPECT_EQ(MeshOrder().ToString(), "hp,dp,pp");
  EXPECT_EQ(MeshOrder(), MeshOrder("hp,dp,pp"));
  EXPECT_THAT(MeshOrder().Full(), ElementsAre("hp", "cp", "ep", "dp", "pp"));
}

TEST(MeshOrder, OtherAxesStandAfterHp) {
  EXPECT_THAT(MeshOrder("pp,hp,dp").Full(), ElementsAre("pp", "hp", "cp", "ep", "dp"));
  EXPECT_THAT(MeshOrder("dp,pp,hp").Full(), ElementsAre("dp", "pp", "hp", "cp", "ep"));
  EXPECT_THAT(MeshOrder("cp,pp,hp,dp").Full(), ElementsAre("cp", "pp", "hp", "ep", "dp"));
  EXPECT_THAT(MeshOrder("hp,dp,ep,pp").Full(), ElementsAre("hp", "cp", "dp", "ep", "pp"));
  EXPECT_THAT(MeshOrder("ep,dp,cp,pp,hp").Full(), ElementsAre("ep", "dp", "cp", "pp", "hp"));
}

TEST(MeshOrder, PrintsAsItWasWritten) {
  for (const char* text :
       {"hp,dp,pp", "pp,dp,hp", "cp,hp,dp,pp", "hp,dp,pp,ep", "ep,cp,pp,dp,hp"}) {
    EXPECT_EQ(MeshOrder::Parse(text)->ToString(), text);
  }
}

TEST(MeshOrder, TpIsHp) {
  EXPECT_EQ(MeshOrder::Parse("dp,tp,pp")->ToString(), "dp,hp,pp");
  EXPECT_EQ(MeshOrder("dp,tp,pp"), MeshOrder("dp,hp,pp"));
  EXPECT_NE(Trouble("tp,hp,dp,pp"), "none");  // the same axis twice
}

TEST(MeshOrder, WantsEachAxisOnce) {
  EXPECT_EQ(Trouble("dp,pp"),
            "order 'dp,pp'; wanted dp, hp and pp once each, and cp and ep at most once, as in "
            "hp,dp,pp or hp,cp,ep,dp,pp (fastest first)");
  for (const char* text : {"", "hp", "hp,dp", "hp,pp", "hp,dp,pp,pp", "hp,dp,pp,cp,cp", "hp,dp,pp,",
                           "hp,dp,pp,xp", "hp, dp,pp", "HP,dp,pp", "hp;dp;pp"}) {
    EXPECT_THAT(Trouble(text), testing::StartsWith(absl::StrCat("order '", text, "'; wanted ")));
  }
}

// Of each order of all five axes: nothing is added, moved or lost.
TEST(MeshOrder, OfAllAxesIsFullAlready) {
  std::vector<std::string> axes = {"cp", "dp", "ep", "hp", "pp"};
  int orders = 0;
  do {
    const absl::StatusOr<MeshOrder> order = MeshOrder::Parse(absl::StrJoin(axes, ","));
    ASSERT_TRUE(order.ok()) << order.status();
    EXPECT_EQ(order->Full(), axes);
    ++orders;
  } while (std::ranges::next_permutation(axes).found);
  EXPECT_EQ(orders, 120);
}

// Orders that say the same in other words are other orders.
TEST(MeshOrder, IsAValue) {
  EXPECT_NE(MeshOrder("hp,dp,pp"), MeshOrder("hp,cp,dp,pp"));
  EXPECT_TRUE(absl::VerifyTypeImplementsAbslHashCorrectly(
      {MeshOrder(), MeshOrder("dp,hp,pp"), MeshOrder("dp,tp,pp"), MeshOrder("pp,hp,dp"),
       MeshOrder("hp,cp,ep,dp,pp")}));
}

TEST(MeshOrderDeathTest, ALiteralIsRight) { EXPECT_DEATH(MeshOrder("hp,dp"), "hp,dp"); }

}  // namespace
}  // namespace mesh_order_test_cc
}  // namespace orrery::transforms
