#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ir/builder.h"
#include "ir/op_kind.h"
#include "search/details.h"
#include "search/evaluate.h"
#include "search/settings/setting_test_util.h"
#include "search/unequal/unequal_steps.h"
#include "simulator/report/report_details.h"
#include "support/status.h"
#include "transforms/plan/plan_text.h"

// Plans whose stages are a graph: how long they take, and what they hold.

namespace orrery::search {
namespace placed_steps_test_cc {
namespace {

using ir::OpKind;
using ir::ValueId;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

ir::TensorType Type(ir::Dims dims) { return {ir::DType::kF32, std::move(dims), {}}; }

constexpr int64_t kBatch = 256, kWidth = 1024;

// So many branches of some products, which meet in a sum: "b0.1" is the second of the first one.
ir::Function Branches(int branches, int products) {
  ir::Builder builder("branches");
  const ValueId x = builder.Data("x", Type({kBatch, kWidth}));
  ValueId sum;
  for (int b = 0; b < branches; ++b) {
    ValueId y = x;
    for (int p = 0; p < products; ++p) {
      const std::string name = absl::StrCat("b", b, ".", p);
      y = builder.Op(OpKind::kMatMul, {y, builder.Parameter(name + ".w", Type({kWidth, kWidth}))},
                     name);
    }
    sum = sum.valid() ? builder.Op(OpKind::kAdd, {sum, y}, absl::StrCat("sum", b)) : y;
  }
  builder.Return(sum);
  ir::Function function = std::move(builder).Finalize().value();
  EXPECT_TRUE(transforms::MakeTrainingStep(function, {.loss = {.kind = "mse"}}).ok());
  return function;
}

Setting SettingOf(ir::Function step, const std::string& cluster) {
  return StepSetting(std::move(step), "placed", kBatch, cluster);
}

ParallelPlan Parse(const std::string& text) {
  ParallelPlan plan = transforms::ParsePlan(text).value();
  if (!plan.placement.empty()) plan.pp = std::ssize(plan.placement.sets);
  return plan;
}

search::Run PlayOnce(const Setting& setting, const std::string& text) {
  absl::StatusOr<search::Run> run = Play(setting, Parse(text));
  EXPECT_TRUE(run.ok()) << text << ": " << run.status();
  return *std::move(run);
}

Setting Gpt() {
  return ModelSetting("gpt", "layers=2,hidden=256,heads=8,seq=64,vocab=512", 16,
                      "uniform:8@200Gbps,device=a100-80gb");
}

TEST(PlacedSteps, OnOneDeviceAreThePlainPlanToThePicosecond) {
  const Setting settings[] = {Gpt(), SettingOf(Branches(3, 2), "dgx-a100:1")};
  for (const Setting& setting : settings) {
    for (const char* more : {"", " --micro-batches 4", " --micro-batches 4 --schedule gpipe",
                             " --micro-batches 2 --blocking", " --zero 1 --recompute full"}) {
      const search::Run plain = PlayOnce(setting, absl::StrCat("--pp 1", more));
      const search::Run placed = PlayOnce(setting, absl::StrCat("--placement *=3", more));
      EXPECT_EQ(placed.report.step_time, plain.report.step_time) << more;
      EXPECT_EQ(placed.report.peak_memory, plain.report.peak_memory) << more;
      EXPECT_EQ(placed.report.flops.count(), plain.report.flops.count()) << more;
      EXPECT_EQ(placed.pipelined.unequal.places.front().devices, std::vector<int32_t>{3});
    }
  }
}

// So are sets of several devices that run everything.
TEST(PlacedSteps, OnOneSetAreThePlanOfItsDegrees) {
  Setting setting = Gpt();
  setting.lowering.fold = false;
  const search::Run plain =
      PlayOnce(setting, "--dp 2 --hp 2 --micro-batches 2 --sharding megatron");
  const search::Run placed =
      PlayOnce(setting, "--placement *=2x2@0 --micro-batches 2 --sharding megatron");
  EXPECT_EQ(placed.report.step_time, plain.report.step_time);
  EXPECT_EQ(placed.report.peak_memory, plain.report.peak_memory);
  EXPECT_EQ(placed.report.bytes_reduced, plain.report.bytes_reduced);
}

// A chain that is placed is the pipeline of such stages.
TEST(PlacedSteps, OfAChainAreThePipelineToThePicosecond) {
  const Setting setting = SettingOf(Branches(1, 6), "uniform:4@200Gbps,device=a100-80gb");
  for (const char* more :
       {" --micro-batches 1", " --micro-batches 4", " --micro-batches 8 --schedule gpipe"}) {
    const search::Run plain =
        PlayOnce(setting, absl::StrCat("--pp 3 --split-at ^b0\\.[24]$", more));
    const search::Run placed =
        PlayOnce(setting, absl::StrCat("--placement ^b0\\.[01]=0;^b0\\.[23]=1;*=2", more));
    EXPECT_EQ(placed.report.step_time, plain.report.step_time) << more;
    EXPECT_EQ(placed.report.peak_memory, plain.report.peak_memory) << more;
    EXPECT_EQ(placed.report.bytes_sent, plain.report.bytes_sent) << more;
  }
}

// So it is where stages are not equally long, and where ranks have one stream for everything, in
// which sends stand between compute.
TEST(PlacedSteps, OfAChainAreThePipelineWhateverItsCutsAndStreams) {
  const Setting setting = SettingOf(Branches(1, 8), "uniform:4@50Gbps,device=a100-80gb");
  struct Cut {
    const char *split, *placement;
  };
  for (const Cut& cut : {Cut{"^b0\\.[246]$", "^b0\\.[01]=0;^b0\\.[23]=1;^b0\\.[45]=2;*=3"},
                         Cut{"^b0\\.[157]$", "^b0\\.0=0;^b0\\.[1-4]=1;^b0\\.[56]=2;*=3"}}) {
    for (const char* more : {"", " --blocking", " --blocking --schedule gpipe"}) {
      const std::string flags = absl::StrCat(" --micro-batches 8", more);
      const search::Run plain =
          PlayOnce(setting, absl::StrCat("--pp 4 --split-at ", cut.split, flags));
      const search::Run placed =
          PlayOnce(setting, absl::StrCat("--placement ", cut.placement, flags));
      EXPECT_EQ(placed.report.step_time, plain.report.step_time) << cut.placement << flags;
      EXPECT_EQ(placed.report.peak_memory, plain.report.peak_memory) << cut.placement << flags;
    }
  }
}

// Two equal branches on two devices take half as long as both on one, but for what they share.
TEST(PlacedSteps, RunBranchesAtOnce) {
  const Setting setting = SettingOf(Branches(2, 4), "dgx-a100:1");
  for (const char* more : {"", " --micro-batches 4"}) {
    const search::Run one = PlayOnce(setting, absl::StrCat("--pp 1", more));
    const search::Run two = PlayOnce(setting, absl::StrCat("--placement ^b0=0;*=1", more));
    const double ratio = two.report.step_time.seconds() / one.report.step_time.seconds();
    EXPECT_GE(ratio, 0.5) << more;
    EXPECT_LE(ratio, 0.56) << more;
    // One activation goes over, and its gradient comes back.
    EXPECT_EQ(two.report.bytes_sent, Bytes(2 * kBatch * kWidth * 4)) << more;
    EXPECT_EQ(two.report.flops.count(), one.report.flops.count()) << more;
    EXPECT_LT(two.report.peak_memory, one.report.peak_memory) << more;
  }
}

int64_t ParameterBytes(const search::Run& run) {
  int64_t bytes = 0;
  for (int32_t r = 0; r < run.program.rank_count(); ++r) {
    const simulator::RankClassId rank(r);
    bytes += run.program.resident(rank, simulator::MemoryKind::kParameters).count();
  }
  return bytes;
}

// What each device holds of parameters adds up to what one holds, also where two stages of a device
// read one, as embedding and head do.
TEST(PlacedSteps, HoldEachParameterOnce) {
  const Setting setting = SettingOf(Branches(3, 3), "dgx-a100:1");
  const search::Run run =
      PlayOnce(setting, "--placement ^b0=0;b1.1=0;^b1=1;^b2=2;*=1 --micro-batches 2");
  EXPECT_GT(run.pipelined.stages.size(), 3u);
  EXPECT_EQ(ParameterBytes(run), 9 * kWidth * kWidth * 4);
  const Setting gpt = Gpt();
  const search::Run tied = PlayOnce(gpt, "--placement mlp=1;*=0 --micro-batches 2");
  EXPECT_EQ(tied.pipelined.stages.size(), 5u);
  EXPECT_EQ(ParameterBytes(tied), ParameterBytes(PlayOnce(gpt, "--pp 1 --micro-batches 2")));
}

// What reports tell of stages: on which set, which layers of the model begin there, and parameters.
TEST(PlacedSteps, HaveSizesOfStages) {
  const search::Run run = PlayOnce(Gpt(), "--placement mlp=1;*=0 --micro-batches 2");
  const std::vector<simulator::StageSize> sizes = SizesOf(run.pipelined);
  std::vector<int32_t> sets;
  std::vector<int64_t> layers;
  for (const simulator::StageSize& size : sizes) {
    EXPECT_EQ(size.stage, std::ssize(sets));
    EXPECT_GT(size.parameters, 0);
    sets.push_back(size.rank);
    layers.push_back(size.layers);
  }
  EXPECT_THAT(sets, ElementsAre(1, 0, 1, 0, 1));
  EXPECT_THAT(layers, ElementsAre(1, 0, 1, 0, 1));
  int64_t of_pipeline = 0;
  for (const simulator::StageSize& size : SizesOf(PlayOnce(Gpt(), "--pp 2").pipelined)) {
    of_pipeline += size.layers;
  }
  EXPECT_EQ(of_pipeline, std::reduce(layers.begin(), layers.end()));
  EXPECT_TRUE(SizesOf(PlayOnce(Gpt(), "--placement *=3").pipelined).empty());
}

// No placement is faster than its busiest device, or than all work shared out evenly, and none
// slower than everything one after the other with its messages.
TEST(PlacedSteps, KeepToTheBoundsOfWork) {
  constexpr int kBranches = 3, kProducts = 3;
  const Setting setting = SettingOf(Branches(kBranches, kProducts), "dgx-a100:1");
  const double alone = PlayOnce(setting, "--pp 1").report.step_time.seconds();
  for (uint32_t seed = 0; seed < 12; ++seed) {
    std::mt19937 random(seed);
    std::string text = "--placement ";
    for (int b = 0; b < kBranches; ++b) {
      for (int p = 0; p < kProducts; ++p) {
        absl::StrAppend(&text, "^b", b, "\\.", p, "=", random() % 3, ";");
      }
    }
    text += "*=0";
    const search::Run run = PlayOnce(setting, text);
    double busiest = 0, work = 0, sent = 0;
    for (int32_t r = 0; r < run.program.rank_count(); ++r) {
      const simulator::RankReport& rank = run.report.ranks[simulator::RankClassId(r)];
      const double busy = (run.report.step_time - rank.idle - rank.exposed_communication).seconds();
      busiest = std::max(busiest, busy);
      work += busy;
    }
    for (int32_t t = 0; t < run.program.task_count(); ++t) {
      const simulator::TaskId task(t);
      if (run.program.label(run.program.label_of(task)).kind == simulator::TaskKind::kSend) {
        sent += (run.trace.finish_of(task) - run.trace.start_of(task)).seconds();
      }
    }
    const double time = run.report.step_time.seconds();
    EXPECT_GE(time, busiest) << text;
    EXPECT_GE(time * run.program.rank_count(), work) << text;
    // Each stage has an update of its own, a launch of 5 us more.
    EXPECT_GE(work, 0.999 * alone) << text;
    EXPECT_LE(work, alone + 5e-6 * static_cast<double>(run.pipelined.stages.size())) << text;
    EXPECT_LE(time, work + sent) << text;
  }
}

std::string TroubleOf(const Setting& setting, const std::string& text) {
  const absl::Status status = Play(setting, Parse(text)).status();
  const auto infeasible = AsInfeasible(status);
  return infeasible.has_value() ? infeasible->detail : std::string(status.message());
}

TEST(PlacedSteps, SayWhatIsWanted) {
  const Setting setting = SettingOf(Branches(2, 2), "uniform:4@200Gbps");
  EXPECT_THAT(TroubleOf(setting, "--placement ^b0=0;*=4"),
              HasSubstr("has 4 devices; `placement` wants device 4"));
  EXPECT_THAT(TroubleOf(setting, "--placement ^b0=0;^c=1;*=0"), HasSubstr("'^c' matches no"));
  EXPECT_THAT(TroubleOf(setting, "--placement ^b0=0;^b1=1"), HasSubstr("no group has %sum1"));
  EXPECT_THAT(TroubleOf(setting, "--placement ^b0=0;*=1 --schedule zb-h1"),
              HasSubstr("wanted 1f1b or gpipe beside a placement"));
  EXPECT_THAT(TroubleOf(setting, "--placement ^b0=0;*=1 --layers-per-stage 1,1"),
              HasSubstr("wanted none beside devices of groups of ops"));
}

}  // namespace
}  // namespace placed_steps_test_cc
}  // namespace orrery::search
