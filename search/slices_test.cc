#include "search/slices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "ir/models/model_test_util.h"
#include "search/evaluate.h"
#include "support/sanitized_test_util.h"
#include "support/status.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/plan/plan_text.h"
#include "transforms/training/training_step.h"

namespace orrery::search {
namespace slices_test_cc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using transforms::ByFlops;

Setting GptSetting(const std::string& keys, int64_t batch = 2) {
  Setting setting;
  setting.step = ir::BuildModel("gpt", keys, batch);
  EXPECT_TRUE(transforms::MakeTrainingStep(setting.step, {.optimizer = "sgd"}).ok());
  setting.batch_size = batch;
  setting.cluster = cluster::ParseCluster("dgx-a100:1").value();
  setting.cost_model = cost_models::MakeCostModel("roofline").value();
  return setting;
}

const std::string kLong =
    "layers=8,hidden=512,heads=8,seq=16384,vocab=64,flash=1,tied_embeddings=0";

std::vector<int64_t> RowsOf(const Run& run) {
  std::vector<int64_t> rows;
  int64_t begin = 0;
  for (const transforms::SliceRange& slice : run.slices) {
    EXPECT_EQ(slice.begin, begin);
    begin += slice.rows;
    rows.push_back(slice.rows);
  }
  return rows;
}

TEST(Slices, AreAsLongAsTheyAreGiven) {
  const Setting setting = GptSetting("layers=2,hidden=32,heads=2,seq=12,vocab=16");
  ParallelPlan plan = ByFlops({.pp = 2, .microbatches = 3, .schedule = "terapipe"});
  EXPECT_THAT(RowsOf(Play(setting, plan).value()), ElementsAre(4, 4, 4));
  plan.slices.rows = {6, 4, 2};
  EXPECT_THAT(RowsOf(Play(setting, plan).value()), ElementsAre(6, 4, 2));
  plan.microbatches = 4;
  EXPECT_THAT(std::string(Play(setting, plan).status().message()),
              HasSubstr("slices of 6,4,2 are 3 and have 12 positions; wanted 4 that have 12"));
  plan.schedule = "1f1b";  // cuts the batch, and has not enough of it
  EXPECT_THAT(std::string(Play(setting, plan).status().message()), HasSubstr("a batch of 2"));
}

// Rows are sharded as a slice of the average length can be.
TEST(Slices, ThatCannotBeShardedAsOthersAreInfeasible) {
  const Setting setting = GptSetting("layers=1,hidden=32,heads=2,seq=4,vocab=101", 1);
  ParallelPlan plan = ByFlops({.hp = 2, .microbatches = 2, .schedule = "terapipe"});
  plan.sequence_parallel = transforms::SequenceParallel::kOn;
  plan.slices.rows = {1, 3};
  const absl::Status status = Play(setting, plan).status();
  const auto infeasible = AsInfeasible(status);
  ASSERT_TRUE(infeasible.has_value()) << status;
  EXPECT_EQ(infeasible->reason, InfeasibleReason::kDivisibility);
  EXPECT_THAT(infeasible->detail,
              HasSubstr("a slice of 1 positions cannot be sharded as others are: "));
}

// Later slices meet more keys. Balanced ones get shorter, and none is slower than equal ones.
class StagesOfSlices : public testing::TestWithParam<int64_t> {};

INSTANTIATE_TEST_SUITE_P(Pp, StagesOfSlices, testing::ValuesIn(CasesToWalk<int64_t>({8, 2, 4})));

TEST_P(StagesOfSlices, BalancedAreFaster) {
  const Setting setting = GptSetting(kLong);
  const int64_t pp = GetParam();
  for (const int64_t slices : {2, 4, 8, 16}) {
    for (const int64_t hp : {int64_t{1}, 8 / pp}) {
      ParallelPlan plan =
          ByFlops({.hp = hp, .pp = pp, .microbatches = slices, .schedule = "terapipe"});
      SCOPED_TRACE(ToString(plan));
      const auto equal = Play(setting, plan).value();
      plan.slices = {.balanced = true};
      const auto balanced = Play(setting, plan).value();
      const std::vector<int64_t> rows = RowsOf(balanced);
      EXPECT_EQ(std::ssize(rows), slices);
      EXPECT_GT(rows.front(), rows.back());
      EXPECT_LE(balanced.report.step_time.seconds(), 1.002 * equal.report.step_time.seconds());
      if (slices == 4 && pp == 8) {
        EXPECT_LT(balanced.report.step_time.seconds(), 0.95 * equal.report.step_time.seconds());
      }
    }
  }
}

// Where the last stage is slow, and has the longest part of the last slice: equal slices may be the
// better ones.
TEST(Slices, BalancedAreNotSlowerWhereStagesDiffer) {
  const Setting setting =
      GptSetting("layers=16,hidden=512,heads=8,seq=16384,vocab=50304,flash=1,tied_embeddings=0");
  for (const char* recompute : {"none", "full"}) {
    for (const bool layers : {false, true}) {
      for (const auto& [pp, slices] :
           CasesToWalk<std::pair<int64_t, int64_t>>({{2, 8}, {2, 32}, {4, 16}, {8, 16}})) {
        ParallelPlan plan{
            .pp = pp,
            .microbatches = slices,
            .schedule = "terapipe",
            .recompute = transforms::ParseRecomputePolicy(recompute).value(),
            .stages_by = layers ? transforms::StagesBy::kLayers : transforms::StagesBy::kFlops};
        SCOPED_TRACE(ToString(plan));
        const auto equal = Play(setting, plan).value();
        plan.slices = {.balanced = true};
        const auto balanced = Play(setting, plan).value();
        EXPECT_LE(balanced.report.step_time.seconds(), 1.001 * equal.report.step_time.seconds());
      }
    }
  }
}

// One rank that stands for those that are alike takes what each of them does.
TEST(Slices, BalancedAreTheSameFoldedOrNot) {
  Setting setting = GptSetting(kLong);
  const ParallelPlan plan = ByFlops({.hp = 4,
                                     .pp = 2,
                                     .slices = {.balanced = true},
                                     .microbatches = 8,
                                     .schedule = "terapipe",
                                     .sequence_parallel = transforms::SequenceParallel::kOn});
  const auto folded = Play(setting, plan).value();
  setting.lowering.fold = false;
  const auto all = Play(setting, plan).value();
  EXPECT_EQ(RowsOf(all), RowsOf(folded));
  EXPECT_EQ(all.report.step_time, folded.report.step_time);
}

// Of a sequence that does not divide into as many.
TEST(Slices, BalancedNeedNotDivide) {
  Setting setting = GptSetting(kLong);
  const auto play = [&](int64_t slices) {
    return Play(setting, ByFlops({.pp = 2,
                                  .slices = {.balanced = true},
                                  .microbatches = slices,
                                  .schedule = "terapipe"}));
  };
  EXPECT_EQ(RowsOf(play(5).value()).size(), 5);
  setting = GptSetting("layers=2,hidden=32,heads=2,seq=13,vocab=16");
  EXPECT_EQ(RowsOf(play(13).value()).size(), 13);
  EXPECT_THAT(
      std::string(play(14).status().message()),
      HasSubstr(
          "a sequence of 13 divides into 13 parts, of 256 at most; wanted 14 slices or more"));
}

// A prime number of positions, beyond the most parts that there are.
TEST(Slices, OfAPrimeNumberOfPositionsCannotBeBalanced) {
  const Setting setting = GptSetting("layers=1,hidden=32,heads=2,seq=263,vocab=16");
  const auto run = Play(
      setting, ByFlops({.slices = {.balanced = true}, .microbatches = 2, .schedule = "terapipe"}));
  EXPECT_THAT(std::string(run.status().message()),
              HasSubstr("a sequence of 263 divides into 1 parts, of 256 at most; wanted 2"));
}

// Where a slice takes as long as any other, mostly to launch its kernels: equal ones where the
// sequence divides, as fast as what was planned.
TEST(Slices, BalancedAreEqualWhereNoneIsSlower) {
  const Setting setting = GptSetting("layers=2,hidden=32,heads=2,seq=12,vocab=16");
  const auto rows = [&](int64_t slices) {
    return RowsOf(Play(setting, ByFlops({.pp = 4,
                                         .slices = {.balanced = true},
                                         .microbatches = slices,
                                         .schedule = "terapipe"}))
                      .value());
  };
  EXPECT_THAT(rows(2), ElementsAre(6, 6));
  EXPECT_THAT(rows(3), ElementsAre(4, 4, 4));
  EXPECT_THAT(rows(6), ElementsAre(2, 2, 2, 2, 2, 2));
  EXPECT_THAT(rows(8), testing::SizeIs(8)) << "12 does not divide by 8";
}

}  // namespace
}  // namespace slices_test_cc
}  // namespace orrery::search
