#include "search/settings/setting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "search/settings/setting_test_util.h"
#include "transforms/plan/plan_text.h"

namespace orrery::search {
namespace setting_test_cc {
namespace {

// Orders of GPipe, which a setting keeps as if somebody had written them down.
Setting WithOrders(int32_t ranks, int32_t microbatches) {
  Setting setting = MlpSetting();
  const transforms::PipelineSchedule& gpipe = *transforms::ScheduleChoice("gpipe");
  transforms::ParsedOrders orders;
  orders.shape = gpipe.ShapeOf(ranks, microbatches);
  orders.orders = gpipe.OrdersOf(orders.shape);
  setting.orders = orders;
  return setting;
}

TEST(ScheduleOf, IsThePlans) {
  const Setting setting = MlpSetting();
  const auto schedule = ScheduleOf(setting, {.schedule = "gpipe"});
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_EQ(schedule->name, "gpipe");
  EXPECT_EQ(schedule->given, nullptr);
}

TEST(ScheduleOf, IsWhatSomebodyHasWrittenDown) {
  const Setting setting = WithOrders(2, 4);
  const ParallelPlan plan = {.pp = 2, .microbatches = 4, .schedule = "pipedream"};
  const auto schedule = ScheduleOf(setting, plan);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_EQ(schedule->given, &setting.orders->orders);
  EXPECT_EQ(schedule->OrdersOf(ShapeOf(*schedule, plan)), setting.orders->orders);
  EXPECT_FALSE(schedule->asynchronous);  // whatever schedule the plan names
  EXPECT_EQ(schedule->chunks, 1);
}

TEST(ScheduleOf, WantsOrdersOfThePipeline) {
  const Setting setting = WithOrders(2, 4);
  for (const ParallelPlan& plan : {ParallelPlan{.pp = 4, .microbatches = 4},
                                   ParallelPlan{.pp = 2, .microbatches = 8}, ParallelPlan{}}) {
    const absl::Status status = ScheduleOf(setting, plan).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_EQ(status.message(),
              absl::StrCat(ToString(plan, setting.base),
                           ": the orders are of 2 ranks and 4 microbatches; wanted `pp` and "
                           "`micro-batches` alike"));
  }
}

TEST(ShapeOf, HasTheChunksOfTheSchedule) {
  const auto shape = [](const ParallelPlan& plan) { return ShapeOf(*plan.schedule, plan); };
  EXPECT_EQ(shape({.pp = 4, .microbatches = 8}).ranks, 4);
  EXPECT_EQ(shape({.pp = 4, .microbatches = 8}).microbatches, 8);
  EXPECT_EQ(shape({.pp = 4, .microbatches = 8}).chunks, 1);
  EXPECT_EQ(shape({.pp = 4, .microbatches = 8, .chunks = 3}).chunks, 1);  // is no choice
  const ParallelPlan open = {.pp = 2, .microbatches = 4, .schedule = "interleaved"};
  ASSERT_EQ(open.schedule->chunks, 0);
  EXPECT_EQ(shape(open).chunks, 2);
  ParallelPlan three = open;
  three.chunks = 3;
  EXPECT_EQ(shape(three).chunks, 3);
  EXPECT_EQ(shape(three).stages(), 6);
}

TEST(ShapeOf, DoesNotOverflow) {
  const ParallelPlan plan = {.pp = int64_t{1} << 33, .microbatches = (int64_t{1} << 32) + 1};
  const transforms::PipelineShape shape = ShapeOf(*plan.schedule, plan);
  EXPECT_EQ(shape.ranks, std::numeric_limits<int32_t>::max());
  EXPECT_EQ(shape.microbatches, std::numeric_limits<int32_t>::max());
}

// Unless a plan says how much is reduced at once, the software does.
TEST(LoweringOf, HasTheBucketsOfTheSoftware) {
  Setting setting = MlpSetting();
  EXPECT_EQ(LoweringOf(setting, {.dp = 64}).bucket_size, ParallelPlan().bucket_size);
  setting.lowering.kernels = {.bucket_parameters = 40, .bucket_parameters_a_rank = 2};
  EXPECT_EQ(LoweringOf(setting, {.dp = 8}).bucket_size, Bytes(80));
  EXPECT_EQ(LoweringOf(setting, {.dp = 64}).bucket_size, Bytes(256));
  EXPECT_EQ(LoweringOf(setting, {.dp = 16, .cp = 4}).bucket_size, Bytes(256));
  EXPECT_EQ(LoweringOf(setting, {.dp = 64, .bucket_size = Bytes(1234)}).bucket_size, Bytes(1234));
  EXPECT_EQ(LoweringOf(setting, {.dp = 64, .bucket_size = Bytes(0)}).bucket_size, Bytes(0));
}

TEST(LoweringOf, TakesFromThePlanWhatItChooses) {
  Setting setting = MlpSetting();
  setting.lowering = {
      .fold = false, .memory_limit = Bytes(77), .bucket_size = Bytes(1), .every_link = true};
  const ParallelPlan plan = {.blocking = true,
                             .bucket_size = Bytes(1234),
                             .algorithm = cost_models::CollectiveChoice::Parse("ring").value()};
  const lowering::LoweringOptions options = LoweringOf(setting, plan);
  EXPECT_TRUE(options.blocking);
  EXPECT_EQ(options.bucket_size, Bytes(1234));
  EXPECT_EQ(options.algorithms, plan.algorithm);
  // And the rest from the setting.
  EXPECT_FALSE(options.fold);
  EXPECT_TRUE(options.every_link);
  EXPECT_EQ(options.memory_limit, Bytes(77));
  setting.lowering.blocking = true;
  EXPECT_FALSE(LoweringOf(setting, {}).blocking);
}

}  // namespace
}  // namespace setting_test_cc
}  // namespace orrery::search
