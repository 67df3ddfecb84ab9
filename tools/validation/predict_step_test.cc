#include "tools/validation/predict_step.h"

#include <gtest/gtest.h>

#include <string>

#include "search/evaluate.h"
#include "tools/validation/rows/measured_row_test_util.h"
#include "tools/validation/rows/step_setup.h"
#include "tools/validation/software_stack.h"

namespace orrery::tools {
namespace predict_step_test_cc {
namespace {

MeasuredStep Small(const std::string& source, int64_t pp) {
  MeasuredStep row = MeasuredRow();
  row.source = source;
  row.model = {.layers = 4, .hidden = 128, .heads = 2, .vocab = 256, .seq = 64};
  row.devices = row.pp = pp;
  row.global_batch = 8;
  row.precision = "fp16";
  return row;
}

TEST(Predict, SaysWhyItDoesNot) {
  MeasuredStep row = Small("paper", 1);
  row.device = "abacus";
  const PredictedStep predicted = Predict(row, "");
  EXPECT_EQ(predicted.skipped, "no cluster for device 'abacus'");
  EXPECT_EQ(predicted.seconds + predicted.bytes, 0);
  EXPECT_EQ(predicted.step.device, "abacus");
}

// DeepSpeed keeps what the first stage has sent: of min(2, 4) microbatches, 2 bytes each of
// 2 samples of 64 positions of 128.
TEST(Predict, AddsWhatDeepspeedsPipelineKeeps) {
  const auto play = [](const StepSetup& setup) {
    search::Setting setting = MakeSetting(setup.flags, setup.plan).value();
    setting.lowering.stack_memory = StackMemoryOf("deepspeed", StackUseOf(setting.step)).value();
    setting.lowering.stack_memory.sent = 0;
    return search::Play(setting, setup.plan).value().report.peak_memory.count();
  };
  for (const int64_t pp : {1, 2}) {
    const MeasuredStep row = Small("bloom", pp);
    const StepSetup setup = SetupOf(row).value();
    ASSERT_EQ(setup.plan.microbatches, 4);
    const PredictedStep predicted = Predict(row, "");
    EXPECT_EQ(predicted.skipped, "");
    EXPECT_GT(predicted.seconds, 0);
    const double sent = pp == 1 ? 0 : 2.0 * 2 * (2 * 64 * 128);
    EXPECT_EQ(predicted.bytes, static_cast<double>(play(setup)) + sent);
  }
}

// On two stages of two, by tensor parallelism and along a context whose attention is left open, so
// that there are ways to choose between.
TEST(PredictAgain, IsWhatPredictSaysByTheSameFigures) {
  FittedFigures slow;
  slow.devices.push_back(cluster::FindDevice("h100-80gb").value());
  slow.devices[0].rates.sustained /= 2;
  slow.devices[0].rates.half.memory /= 2;
  slow.stacks.emplace_back("nemo", FindStack("nemo", {}).value());
  slow.stacks[0].second.prepare_us = 700;
  for (const bool split : {false, true}) {
    MeasuredStep row = Small("nemo", 2);
    row.devices = 16;
    (split ? row.tp : row.cp) = 2;
    row.schedule = split ? "1f1b" : "zb-h1";
    StepWay way;
    const FittedFigures built_in;
    const PredictedStep first = Predict(row, "", &built_in, &way);
    ASSERT_NE(way, nullptr) << first.skipped;
    EXPECT_EQ(PredictAgain(row, "", built_in, *way).value(), first.seconds);
    const double slower = PredictAgain(row, "", slow, *way).value();
    EXPECT_GT(slower, 1.2 * first.seconds);
    EXPECT_EQ(slower, Predict(row, "", &slow).seconds);
  }
}

}  // namespace
}  // namespace predict_step_test_cc
}  // namespace orrery::tools
