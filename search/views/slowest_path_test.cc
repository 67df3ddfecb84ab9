#include "search/views/slowest_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "search/settings/setting_test_util.h"
#include "transforms/plan/plan_text.h"
#include "transforms/sharding/model_step_test_util.h"

namespace orrery::search {
namespace slowest_path_test_cc {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// Two devices, of which the second computes a third as fast.
Setting UnlikeSetting() {
  Setting setting = MlpSetting("uniform:2@100000Gbps,device=a100-80gb");
  setting.step = ir::Mlp({.layers = 4, .dim = 2048, .batch = 4096}).value();
  transforms::AppendOptimizer(setting.step, "adam").value();
  setting.batch_size = 4096;
  return WithSlowerHalf(std::move(setting), 3);
}

SlowestPath PathOf(const Setting& setting, const std::string& text) {
  const ParallelPlan plan = transforms::ParsePlan(text).value();
  return FindSlowestPath(setting, plan, Play(setting, plan).value());
}

TEST(SlowestPath, NamesTheReplicaAndItsShare) {
  const Setting setting = UnlikeSetting();
  const SlowestPath path = PathOf(setting, "--dp 2 --micro-batches 4");
  ASSERT_EQ(path.parts.size(), 2u);
  EXPECT_EQ(path.parts[path.slowest].device, "slow");
  EXPECT_EQ(path.parts[path.slowest].replica, 1);
  EXPECT_GT(path.over_replicas, 1.3);
  EXPECT_THAT(path.remedy, StartsWith("--micro-batches 8 --shares "));
  // What it says is faster, and evens out what it named.
  const SlowestPath after = PathOf(setting, absl::StrCat("--dp 2 ", path.remedy));
  EXPECT_LT(after.parts[after.slowest].seconds, path.parts[path.slowest].seconds);
  EXPECT_THAT(after.remedy, IsEmpty());
}

// Of equal stages by what they compute: the first hands on as it goes, and adds up gradients last.
TEST(SlowestPath, HandsALayerToANeighbour) {
  Setting setting = MlpSetting("switch:8@25gbe,device=a100-80gb");
  setting.step = transforms::ModelStep("gpt", "layers=5,hidden=256,heads=8,seq=128,vocab=1000", 8);
  setting.batch_size = 8;
  const std::string text = "--pp 2 --micro-batches 1 --stage-meshes 4x1,4x1 --layers-per-stage ";
  const SlowestPath path = PathOf(setting, text + "3,2");
  EXPECT_EQ(path.remedy, "--layers-per-stage 2,3");
  EXPECT_LT(Play(setting, transforms::ParsePlan(text + "2,3").value())->report.step_time,
            Play(setting, transforms::ParsePlan(text + "3,2").value())->report.step_time);
}

TEST(SlowestPath, NamesTheStageAndItsLayers) {
  const Setting setting = UnlikeSetting();
  const SlowestPath path =
      PathOf(setting, "--pp 2 --micro-batches 4 --layers-per-stage 2,2 --stage-meshes 1x1,1x1");
  ASSERT_EQ(path.parts.size(), 2u);
  EXPECT_EQ(path.parts[path.slowest].stage, 1);
  EXPECT_GT(path.over_stages, 1.3);
  EXPECT_EQ(path.remedy, "--layers-per-stage 3,1");
}

TEST(SlowestPath, IsToldOfWhatIsUnlike) {
  const Setting unlike = UnlikeSetting(), alike = MlpSetting();
  const auto lines = [](const Setting& setting, const std::string& text) {
    const ParallelPlan plan = transforms::ParsePlan(text).value();
    std::string all;
    for (const auto& [title, line] : SlowestPathLines(setting, plan, Play(setting, plan).value())) {
      absl::StrAppend(&all, title, ": ", line, "\n");
    }
    return all;
  };
  EXPECT_EQ(lines(alike, "--dp 2 --micro-batches 4"), "");
  EXPECT_THAT(
      lines(alike, "--dp 2 --micro-batches 4 --shares 3,1"),
      StartsWith("microbatches: 3 1, by stage and replica\nslowest path: stage 0, replica 0 "
                 "on "));
  EXPECT_THAT(lines(unlike, "--dp 2 --micro-batches 4"),
              HasSubstr("times as long for a microbatch as other replicas\nevened out by: "
                        "--micro-batches 8 --shares "));
}

}  // namespace
}  // namespace slowest_path_test_cc
}  // namespace orrery::search
