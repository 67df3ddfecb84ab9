#include "search/slices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "ir/models/model_test_util.h"
#include "search/evaluate.h"
#include "transforms/training_step.h"

namespace orrery::search {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Setting GptSetting(const std::string& keys) {
  Setting setting;
  setting.step = ir::BuildModel("gpt", keys, 2);
  EXPECT_TRUE(transforms::MakeTrainingStep(setting.step, {.optimizer = "sgd"}).ok());
  setting.batch_size = 2;
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

TEST(ParseSliceLengths, ReadsAWordOrLengths) {
  EXPECT_FALSE(ParseSliceLengths("equal")->balanced);
  EXPECT_TRUE(ParseSliceLengths("balanced")->balanced);
  EXPECT_THAT(ParseSliceLengths("3,2,1")->rows, ElementsAre(3, 2, 1));
  for (const absl::string_view text :
       {"even", "3,,1", "3,0", "-1", "3;2", "99999999999999999999"}) {
    EXPECT_THAT(std::string(ParseSliceLengths(text).status().message()),
                HasSubstr("': wanted equal, balanced, or the positions of each slice"));
  }
}

TEST(Slices, AreAsLongAsTheyAreGiven) {
  Setting setting = GptSetting("layers=2,hidden=32,heads=2,seq=12,vocab=16");
  Candidate candidate{.pp = 2, .microbatches = 3, .schedule = "terapipe"};
  EXPECT_THAT(RowsOf(Play(setting, candidate).value()), ElementsAre(4, 4, 4));
  setting.slices.rows = {6, 4, 2};
  EXPECT_THAT(RowsOf(Play(setting, candidate).value()), ElementsAre(6, 4, 2));
  candidate.microbatches = 4;
  EXPECT_THAT(std::string(Play(setting, candidate).status().message()),
              HasSubstr("slices of 6,4,2 are 3 and have 12 positions; wanted 4 that have 12"));
  candidate.schedule = "1f1b";  // cuts the batch, and has not enough of it
  EXPECT_THAT(std::string(Play(setting, candidate).status().message()), HasSubstr("a batch of 2"));
}

// Later slices meet more keys. Balanced ones get shorter, and none is slower than equal ones.
TEST(Slices, BalancedAreFaster) {
  Setting setting = GptSetting(kLong);
  for (const int64_t pp : {2, 4, 8}) {
    for (const int64_t slices : {2, 4, 8, 16}) {
      for (const int64_t hp : {int64_t{1}, 8 / pp}) {
        const Candidate candidate{
            .hp = hp, .pp = pp, .microbatches = slices, .schedule = "terapipe"};
        SCOPED_TRACE(ToString(candidate));
        setting.slices = {};
        const auto equal = Play(setting, candidate).value();
        setting.slices = {.balanced = true};
        const auto balanced = Play(setting, candidate).value();
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
}

// Where the last stage is slow, and has the longest part of the last slice: equal slices may be the
// better ones.
TEST(Slices, BalancedAreNotSlowerWhereStagesDiffer) {
  Setting setting =
      GptSetting("layers=16,hidden=512,heads=8,seq=16384,vocab=50304,flash=1,tied_embeddings=0");
  for (const std::string recompute : {"none", "full"}) {
    for (const bool layers : {false, true}) {
      setting.stages.by = layers ? transforms::StagesBy::kLayers : transforms::StagesBy::kFlops;
      for (const auto& [pp, slices] :
           std::vector<std::pair<int64_t, int64_t>>{{2, 8}, {2, 32}, {4, 16}, {8, 16}}) {
        const Candidate candidate{
            .pp = pp, .microbatches = slices, .schedule = "terapipe", .recompute = recompute};
        SCOPED_TRACE(ToString(candidate));
        setting.slices = {};
        const auto equal = Play(setting, candidate).value();
        setting.slices = {.balanced = true};
        const auto balanced = Play(setting, candidate).value();
        EXPECT_LE(balanced.report.step_time.seconds(), 1.001 * equal.report.step_time.seconds());
      }
    }
  }
}

// One rank that stands for those that are alike takes what each of them does.
TEST(Slices, BalancedAreTheSameFoldedOrNot) {
  Setting setting = GptSetting(kLong);
  setting.sharding.sequence_parallel = true;
  setting.slices.balanced = true;
  const Candidate candidate{.hp = 4, .pp = 2, .microbatches = 8, .schedule = "terapipe"};
  const auto folded = Play(setting, candidate).value();
  setting.lowering.fold = false;
  const auto all = Play(setting, candidate).value();
  EXPECT_EQ(RowsOf(all), RowsOf(folded));
  EXPECT_EQ(all.report.step_time, folded.report.step_time);
}

// Of a sequence that does not divide into as many.
TEST(Slices, BalancedNeedNotDivide) {
  Setting setting = GptSetting(kLong);
  setting.slices.balanced = true;
  EXPECT_EQ(
      RowsOf(Play(setting, {.pp = 2, .microbatches = 5, .schedule = "terapipe"}).value()).size(),
      5);
  setting = GptSetting("layers=2,hidden=32,heads=2,seq=13,vocab=16");
  setting.slices.balanced = true;
  EXPECT_EQ(
      RowsOf(Play(setting, {.pp = 2, .microbatches = 13, .schedule = "terapipe"}).value()).size(),
      13);
  EXPECT_THAT(
      std::string(
          Play(setting, {.pp = 2, .microbatches = 14, .schedule = "terapipe"}).status().message()),
      HasSubstr(
          "a sequence of 13 divides into 13 parts, of 256 at most; wanted 14 slices or more"));
}

}  // namespace
}  // namespace orrery::search
