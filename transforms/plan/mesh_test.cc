#include "transforms/plan/mesh.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"

namespace orrery::transforms {
namespace mesh_test_cc {
namespace {

using testing::ElementsAre;

TEST(Vanishes, OnlyCpAndEpOfOneRank) {
  EXPECT_TRUE(Vanishes("cp", 1));
  EXPECT_TRUE(Vanishes("ep", 1));
  EXPECT_FALSE(Vanishes("ep", 2));
  EXPECT_FALSE(Vanishes("dp", 1));
}

TEST(MakeMesh, HasItsFastestAxisLast) {
  ParallelPlan plan = {.dp = 2, .hp = 3, .pp = 4};
  EXPECT_EQ(ir::ToString(MakeMesh(plan).value()), "mesh(pp=4, dp=2, hp=3)");
  plan.order = "pp,hp,dp";
  EXPECT_EQ(ir::ToString(MakeMesh(plan).value()), "mesh(dp=2, hp=3, pp=4)");
}

// Axes cp and ep are there where they are used, after hp unless the order says otherwise.
TEST(MakeMesh, HasFurtherAxesWhereTheyAreUsed) {
  const auto mesh = [](const ParallelPlan& plan) { return ir::ToString(MakeMesh(plan).value()); };
  EXPECT_EQ(mesh({.dp = 2, .hp = 3, .cp = 5}), "mesh(pp=1, dp=2, cp=5, hp=3)");
  EXPECT_EQ(mesh({.dp = 2, .hp = 3, .cp = 5, .ep = 7}), "mesh(pp=1, dp=2, ep=7, cp=5, hp=3)");
  EXPECT_EQ(mesh({.dp = 2, .hp = 3, .cp = 5, .ep = 7, .order = "hp,dp,pp,cp"}),
            "mesh(cp=5, pp=1, dp=2, ep=7, hp=3)");
  EXPECT_EQ(mesh({.dp = 2, .order = "ep,cp,hp,dp,pp"}), "mesh(pp=1, dp=2, hp=1)");
  EXPECT_EQ((ParallelPlan{.dp = 2, .hp = 3, .pp = 5, .cp = 7, .ep = 11}.ranks()), 2310);
}

TEST(MakeMesh, SaysWhichDegreeMakesNoSense) {
  const auto error = [](const ParallelPlan& plan) {
    return std::string(MakeMesh(plan).status().message());
  };
  EXPECT_EQ(error({.dp = 0}), "dp=0 hp=1 pp=1; wanted degrees from 1 to 16777216");
  EXPECT_EQ(error({.hp = -2}), "dp=1 hp=-2 pp=1; wanted degrees from 1 to 16777216");
  EXPECT_EQ(error({.pp = INT64_MAX}),
            "dp=1 hp=1 pp=9223372036854775807; wanted degrees from 1 to 16777216");
  EXPECT_EQ(error({.dp = 1 << 24, .hp = 1 << 24, .pp = 1 << 24}),
            "dp=16777216 hp=16777216 pp=16777216; wanted at most 16777216 ranks");
  EXPECT_EQ(error({.microbatches = 0}), "0 microbatches; wanted at least 1");
  EXPECT_EQ(error({.cp = 0}), "dp=1 hp=1 pp=1 cp=0; wanted degrees from 1 to 16777216");
  EXPECT_EQ(error({.dp = 1 << 20, .ep = 32}),
            "dp=1048576 hp=1 pp=1 ep=32; wanted at most 16777216 ranks");
}

TEST(DegreeOf, IsThatOfTheAxis) {
  const ParallelPlan plan = {.dp = 2, .hp = 3, .pp = 5, .cp = 7, .ep = 11};
  EXPECT_EQ(DegreeOf(plan, "dp"), 2);
  EXPECT_EQ(DegreeOf(plan, "hp"), 3);
  EXPECT_EQ(DegreeOf(plan, "pp"), 5);
  EXPECT_EQ(DegreeOf(plan, "cp"), 7);
  EXPECT_EQ(DegreeOf(plan, "ep"), 11);
  EXPECT_EQ(DegreeOf(plan, "micro-batches"), 0);
  EXPECT_EQ(DegreeOf(plan, "xp"), 0);
}

TEST(MeshOrder, HasAllAxes) {
  const auto full = [](absl::string_view text) { return MeshOrder::Parse(text).value().Full(); };
  EXPECT_THAT(MeshOrder().Full(), ElementsAre("hp", "cp", "ep", "dp", "pp"));
  EXPECT_THAT(full("pp,hp,dp"), ElementsAre("pp", "hp", "cp", "ep", "dp"));
  EXPECT_THAT(full("hp,dp,pp,cp"), ElementsAre("hp", "ep", "dp", "pp", "cp"));
  EXPECT_THAT(full("ep,dp,pp,cp,hp"), ElementsAre("ep", "dp", "pp", "cp", "hp"));
}

TEST(MeshOrder, ReadsWhatItPrints) {
  for (const char* text : {"hp,dp,pp", "pp,dp,hp", "hp,cp,dp,pp", "ep,dp,pp,cp,hp"}) {
    EXPECT_EQ(MeshOrder::Parse(text).value().ToString(), text);
    EXPECT_EQ(MeshOrder::Parse(text).value(), MeshOrder(text));
  }
  EXPECT_EQ(MeshOrder::Parse("dp,tp,pp").value(), MeshOrder("dp,hp,pp"));
  EXPECT_NE(MeshOrder("dp,hp,pp"), MeshOrder());
}

TEST(MeshOrder, SaysWhatIsWrong) {
  for (const char* order :
       {"", "hp,dp", "hp,dp,pp,dp", "hp,dp,pp,xp", "hp,hp,pp", "hp dp pp", "hp,tp,dp,pp"}) {
    EXPECT_EQ(std::string(MeshOrder::Parse(order).status().message()),
              absl::StrCat("order '", order,
                           "'; wanted dp, hp and pp once each, and cp and ep at most once, as in "
                           "hp,dp,pp or hp,cp,ep,dp,pp (fastest first)"));
  }
}

}  // namespace
}  // namespace mesh_test_cc
}  // namespace orrery::transforms
