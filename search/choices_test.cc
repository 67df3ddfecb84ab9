#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "ir/models/model_test_util.h"
#include "search/details.h"
#include "search/evaluate.h"
#include "search/plan_player.h"
#include "support/sanitized_test_util.h"
#include "support/status.h"
#include "transforms/plan/plan_text.h"
#include "transforms/schedules/text.h"
#include "transforms/training/training_step.h"

// What is chosen for a plan is never worse than what one could have said oneself: over random plans
// of small models on small clusters.

namespace orrery::search {
namespace choices_test_cc {
namespace {

using transforms::StagesBy;

class Random {
 public:
  explicit Random(uint32_t seed) : random_(seed) {}

  template <typename T>
  T Of(std::initializer_list<T> values) {
    return *(values.begin() + random_() % values.size());
  }
  bool Sometimes() { return random_() % 3 == 0; }

 private:
  std::mt19937 random_;
};

Setting SettingOfModel(const std::string& model, const std::string& keys, int64_t batch) {
  Setting setting;
  setting.step = ir::BuildModel(model, keys, batch);
  EXPECT_TRUE(transforms::MakeTrainingStep(setting.step, {.optimizer = "adam"}).ok());
  setting.batch_size = batch;
  setting.cost_model = cost_models::MakeCostModel("roofline").value();
  return setting;
}

Setting RandomSetting(Random& random) {
  const bool gpt = random.Sometimes();
  const int layers = gpt ? random.Of({4, 5, 7}) : random.Of({4, 6, 8});
  const int width = gpt ? random.Of({100, 3000}) : random.Of({64, 512, 2048});
  Setting setting =
      gpt ? SettingOfModel("gpt",
                           absl::StrCat("hidden=64,heads=4,seq=16,tied_embeddings=0,layers=",
                                        layers, ",vocab=", width),
                           32)
          : SettingOfModel("mlp", absl::StrCat("layers=", layers, ",dim=", width), 32);
  setting.cluster =
      cluster::ParseCluster(
          random.Of<std::string>({"dgx-a100:2", "tpu-v4:2x2x4", "ring:16@50GB/s,latency=1us",
                                  "nodes:2x8@450GB/s,nic=50GB/s,nics=2", "uniform:16@200Gbps"}))
          .value();
  return setting;
}

ParallelPlan RandomPlan(Random& random) {
  ParallelPlan plan = {.dp = random.Of<int64_t>({1, 2}),
                       .hp = random.Of<int64_t>({1, 2}),
                       .pp = random.Of<int64_t>({2, 4}),
                       .microbatches = random.Of<int64_t>({1, 2, 4, 8})};
  plan.sharding = transforms::ShardingMethod::kMegatron;
  plan.blocking = random.Sometimes();
  if (random.Sometimes()) plan.bucket_size = Bytes(1 << 20);
  return plan;
}

double Milliseconds(const Run& run) { return 1e3 * run.report.step_time.seconds(); }

TEST(Choices, OfOneStageAndOneMicrobatchAllSchedulesAreOne) {
  for (uint32_t seed = 0; seed < CasesToWalk(12u); ++seed) {
    Random random(seed);
    const Setting setting = RandomSetting(random);
    ParallelPlan plan = RandomPlan(random);
    plan.pp = plan.microbatches = 1;
    plan.schedule = "gpipe";
    const search::Run gpipe = Play(setting, plan).value();
    for (const transforms::PipelineSchedule* schedule : transforms::AllSchedules()) {
      if (schedule->asynchronous) continue;  // batches follow each other without a pause
      plan.schedule = schedule->name.data();
      SCOPED_TRACE(absl::StrCat(setting.cluster.name, " ", ToString(plan)));
      const absl::StatusOr<search::Run> run = Play(setting, plan);
      if (!run.ok()) {
        EXPECT_TRUE(AsInfeasible(run.status()).has_value()) << run.status();
        continue;
      }
      EXPECT_EQ(run->report.step_time, gpipe.report.step_time);
      EXPECT_EQ(run->report.peak_memory, gpipe.report.peak_memory);
    }
  }
}

// Several microbatches on one rank: a backward in two parts is none.
TEST(Choices, OfOneRankABackwardIsWhole) {
  for (uint32_t seed = 0; seed < CasesToWalk(12u); ++seed) {
    Random random(seed);
    const Setting setting = RandomSetting(random);
    ParallelPlan plan = RandomPlan(random);
    plan.pp = 1;
    plan.schedule = "1f1b";
    const search::Run whole = Play(setting, plan).value();
    for (const char* schedule : {"zb-h1", "zbv", "v-half", "interleaved-zero-bubble"}) {
      plan.schedule = schedule;
      SCOPED_TRACE(absl::StrCat(setting.cluster.name, " ", ToString(plan)));
      EXPECT_EQ(Play(setting, plan)->report.step_time, whole.report.step_time);
    }
  }
}

// Orders that are searched, for the durations of the average stage, beside those for steps that all
// last the same, from a file.
TEST(Choices, OfOrdersAreNoSlowerThanThoseOfUnitTimes) {
  for (uint32_t seed = 0; seed < CasesToWalk(60u); ++seed) {
    Random random(seed);
    Setting setting = RandomSetting(random);
    ParallelPlan plan = RandomPlan(random);
    plan.schedule =
        random.Of<const char*>({"zb-h1", "zb-h2", "zb-1p", "zbv", "v-half", "v-min", "1f1b-v"});
    SCOPED_TRACE(absl::StrCat(setting.cluster.name, " ", ToString(plan)));
    const absl::StatusOr<search::Run> searched = Play(setting, plan);
    if (!searched.ok()) continue;
    const transforms::PipelineSchedule& schedule = *plan.schedule;
    const std::string file = transforms::PrintOrders(schedule.OrdersOf(ShapeOf(schedule, plan)));
    setting.orders = transforms::ParseOrders(file).value();
    EXPECT_LE(Milliseconds(*searched), Milliseconds(Play(setting, plan).value()));
  }
}

// By cost beside equally many layers, and what may cut layers beside what may not.
TEST(Choices, OfStagesAreNoSlowerThanThoseWithLessChoice) {
  int faster = 0;
  for (uint32_t seed = 0; seed < CasesToWalk(60u); ++seed) {
    Random random(seed);
    const Setting setting = RandomSetting(random);
    ParallelPlan plan = RandomPlan(random);
    plan.schedule =
        random.Of<const char*>({"gpipe", "1f1b", "interleaved", "zbv", "zb-h1", "pipedream"});
    SCOPED_TRACE(absl::StrCat(setting.cluster.name, " ", ToString(plan)));
    const auto play = [&](StagesBy by) {
      plan.stages_by = by;
      return Play(setting, plan);
    };
    const auto layers = play(StagesBy::kLayers), cost = play(StagesBy::kCost),
               ops = play(StagesBy::kOps);
    if (!layers.ok()) continue;
    ASSERT_TRUE(cost.ok() && ops.ok());
    EXPECT_LE(Milliseconds(*cost), Milliseconds(*layers));
    EXPECT_LE(Milliseconds(*ops), Milliseconds(*layers));
    if (cost->report.step_time < layers->report.step_time) {
      ++faster;
    } else {
      EXPECT_LE(cost->report.peak_memory, layers->report.peak_memory);
    }
  }
  EXPECT_GT(faster, CasesToWalk(5));
}

TEST(Choices, OfSlicesAreNoSlowerThanEqualOnes) {
  for (uint32_t seed = 0; seed < CasesToWalk(16u); ++seed) {
    Random random(seed);
    const int length = random.Of({256, 1024});
    const int vocabulary = random.Of({100, 2000, 8000});
    Setting setting = SettingOfModel(
        "gpt",
        absl::StrCat("layers=4,hidden=64,heads=4,flash=0,tied_embeddings=0,seq=", length,
                     ",vocab=", vocabulary),
        2);
    setting.cluster = cluster::ParseCluster("dgx-a100:2").value();
    ParallelPlan plan = RandomPlan(random);
    plan.dp = 1;
    plan.microbatches = random.Of<int64_t>({2, 4});
    plan.schedule = "terapipe";
    SCOPED_TRACE(ToString(plan));
    const search::Run equal = Play(setting, plan).value();
    plan.slices = {.balanced = true};
    EXPECT_LE(Milliseconds(Play(setting, plan).value()), Milliseconds(equal));
  }
}

// What a report tells of the stages adds up to the model, however it is cut and whatever is copied.
TEST(SizesOf, AreThoseOfTheModel) {
  Random random(1);
  Setting setting = RandomSetting(random);
  setting.step =
      ir::BuildModel("gpt", "hidden=64,heads=4,seq=16,tied_embeddings=0,layers=5,vocab=100", 32);
  ASSERT_TRUE(transforms::MakeTrainingStep(setting.step, {.optimizer = "adam"}).ok());
  int64_t parameters = 0;
  for (const ir::Input& input : setting.step.inputs()) {
    if (input.role != ir::InputRole::kParameter) continue;
    parameters += ir::ElementCount(setting.step.type(input.value).dims);
  }
  for (const int64_t zero : CasesToWalk<int64_t>({0, 1, 3})) {
    const ParallelPlan plan = {
        .dp = 2, .hp = 2, .pp = 2, .microbatches = 2, .schedule = "interleaved", .zero = zero};
    const search::Run run = Play(setting, plan).value();
    const std::vector<simulator::StageSize> sizes = SizesOf(run.pipelined);
    ASSERT_EQ(sizes.size(), 4u);
    int64_t sum = 0, layers = 0;
    for (const simulator::StageSize& size : sizes) {
      EXPECT_EQ(size.rank, size.stage % 2);
      sum += size.parameters;
      layers += size.layers;
    }
    EXPECT_EQ(sum, parameters) << zero;
    EXPECT_EQ(layers, 5);
  }
  EXPECT_TRUE(SizesOf(Play(setting, {.dp = 2})->pipelined).empty());
}

}  // namespace
}  // namespace choices_test_cc
}  // namespace orrery::search
