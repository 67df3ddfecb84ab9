#include "transforms/plan/stage_meshes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "transforms/plan/plan_text.h"

namespace orrery::transforms {
namespace stage_meshes_test_cc {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(absl::string_view text) {
  return std::string(ParseStageMeshes(text).status().message());
}

TEST(StageMeshes, ReadWhatTheyPrint) {
  for (const absl::string_view text : {"", "1x1", "4x2,8x1", "4x2,8x1@16", "2x1@4,1x2@0"}) {
    EXPECT_EQ(ToString(ParseStageMeshes(text).value()), text);
  }
  EXPECT_EQ(ToString(ParseStageMeshes("4x2@0,8x1@8").value()), "4x2,8x1");
  const StageMeshes meshes = ParseStageMeshes("4x2,8x1@16").value();
  EXPECT_EQ(meshes.ranks(), 16);
  EXPECT_EQ(meshes.most_dp(), 8);
  EXPECT_EQ(meshes.most_hp(), 2);
}

TEST(StageMeshes, NameADeviceOnce) {
  EXPECT_EQ(ErrorOf("2x2,1x1@3"), "device 3 is of stages 0 and 1; wanted each of one");
  EXPECT_EQ(ErrorOf("1x1@5,1x1,2x4@0"), "device 5 is of stages 0 and 2; wanted each of one");
}

TEST(StageMeshes, SayWhatIsWanted) {
  for (const absl::string_view text : {"4", "0x1", "4x", "4x2@", "4x2@-1", "ax2", "1048577x1"}) {
    EXPECT_THAT(ErrorOf(text), HasSubstr("wanted dp and hp of a stage")) << text;
  }
}

TEST(ReplicaShares, ReadWhatTheyPrint) {
  for (const absl::string_view text : {"split", "round-robin", "speed", "3,5"}) {
    EXPECT_EQ(ToString(ParseReplicaShares(text).value()), text);
  }
  for (const absl::string_view text : {"", "3,0", "three"}) {
    EXPECT_FALSE(ParseReplicaShares(text).ok()) << text;
  }
}

std::string CheckOf(absl::string_view text) {
  return std::string(CheckPlan(ParsePlan(text).value()).message());
}

TEST(StageMeshes, GoWithTheRestOfThePlan) {
  EXPECT_EQ(CheckOf("--pp 2 --micro-batches 8 --stage-meshes 4x2,8x1"), "");
  EXPECT_THAT(CheckOf("--pp 3 --stage-meshes 4x2,8x1"), HasSubstr("has 2 stages"));
  EXPECT_THAT(CheckOf("--pp 2 --dp 2 --stage-meshes 4x2,8x1"), HasSubstr("wanted none"));
  EXPECT_THAT(CheckOf("--pp 2 --split-at h --stage-meshes 4x2,8x1"), HasSubstr("pattern"));
  EXPECT_EQ(CheckOf("--dp 2 --micro-batches 8 --shares 3,5"), "");
  EXPECT_THAT(CheckOf("--dp 2 --micro-batches 8 --shares 3,4"),
              HasSubstr("3,4 adds up to 7 microbatches; wanted the 8"));
  EXPECT_THAT(CheckOf("--dp 3 --micro-batches 8 --shares 3,5"), HasSubstr("one each"));
  EXPECT_THAT(CheckOf("--dp 4 --micro-batches 3 --shares round-robin"), HasSubstr("one for each"));
  EXPECT_THAT(CheckOf("--micro-batches 4 --shares round-robin"), HasSubstr("dp of at least 2"));
  EXPECT_THAT(CheckOf("--pp 2 --micro-batches 8 --stage-meshes 2x1,1x1 --shares speed"),
              HasSubstr("stages of 1 and of 2 replicas"));
}

}  // namespace
}  // namespace stage_meshes_test_cc
}  // namespace orrery::transforms
