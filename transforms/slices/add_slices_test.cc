#include "transforms/slices/add_slices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ir/model_facts.h"
#include "ir/models/model_test_util.h"
#include "ir/op_kind.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "support/status.h"
#include "transforms/parallel.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/slices/slices.h"
#include "transforms/training/training_step.h"

namespace orrery::transforms {
namespace add_slices_test_cc {
namespace {

TEST(CheckSliceCount, IsAboutAllOpsOfAllSlices) {
  EXPECT_TRUE(CheckSliceCount(0, 5).ok());
  EXPECT_TRUE(CheckSliceCount(1, 4'194'304).ok());
  EXPECT_TRUE(CheckSliceCount(4'194'304, 1).ok());
  EXPECT_TRUE(CheckSliceCount(2048, 2048).ok());
  EXPECT_TRUE(CheckSliceCount(1000, 0).ok());
  EXPECT_FALSE(CheckSliceCount(1, 4'194'305).ok());
  EXPECT_FALSE(CheckSliceCount(2048, 2049).ok());
  EXPECT_FALSE(CheckSliceCount(int64_t{1} << 40, int64_t{1} << 40).ok());
}

TEST(CheckSliceCount, SaysHowManyThereAre) {
  const auto infeasible = AsInfeasible(CheckSliceCount(3, 2'000'000));
  ASSERT_TRUE(infeasible.has_value());
  EXPECT_EQ(infeasible->reason, InfeasibleReason::kUnsupported);
  EXPECT_EQ(infeasible->detail,
            "3 slices of 2000000 ops; at most 4194304 ops are simulated; try fewer slices");
}

// A GPT of 12 positions on two stages.
ir::Function Gpt() {
  ir::Function step =
      ir::BuildModel("gpt", "layers=2,hidden=16,heads=2,seq=12,vocab=16,tied_embeddings=0", 2);
  EXPECT_TRUE(MakeTrainingStep(step, {.optimizer = "sgd"}).ok());
  return step;
}

PipelinedStep Sliced(const ir::Function& step, const std::vector<SliceRange>& slices) {
  auto sliced = ParallelTransform3d(
      step, ByFlops({.pp = 2, .microbatches = static_cast<int64_t>(slices.size())}),
      {.slices = slices});
  EXPECT_TRUE(sliced.ok()) << sliced.status();
  return *std::move(sliced);
}

const std::vector<SliceRange> kEqual = {{0, 4}, {4, 4}, {8, 4}};
const std::vector<SliceRange> kUneven = {{0, 5}, {5, 4}, {9, 3}};

// The functions of a stage that are each slice's own.
std::vector<const StageFunction*> PartsOf(const SequenceSlice::Stage& stage) {
  return {&stage.forward, &stage.backward, &stage.weights};
}

TEST(AddSlices, MakesTheSameOpsForEach) {
  const ir::Function whole = Gpt();
  for (const auto& ranges : {kEqual, kUneven}) {
    const PipelinedStep step = Sliced(whole, ranges);
    ASSERT_EQ(step.slices.size(), 3u);
    for (size_t m = 0; m < 3; ++m) {
      EXPECT_EQ(step.slices[m].range.begin, ranges[m].begin);
      EXPECT_EQ(step.slices[m].range.rows, ranges[m].rows);
      ASSERT_EQ(step.slices[m].stages.size(), 2u);
      for (size_t s = 0; s < 2; ++s) {
        const auto made = PartsOf(step.slices[m].stages[s]);
        const auto of = step.stages[s].parts();
        for (size_t i = 0; i < made.size(); ++i) {
          const ir::Function &now = made[i]->function, &before = of[i]->function;
          EXPECT_TRUE(ir::Verify(now).ok()) << ir::Verify(now);
          ASSERT_EQ(now.order().size(), before.order().size());
          for (size_t k = 0; k < now.order().size(); ++k) {
            EXPECT_EQ(now.kind(now.order()[k]), before.kind(before.order()[k]));
          }
          EXPECT_EQ(made[i]->origins.size(), static_cast<size_t>(now.value_limit()));
        }
      }
    }
  }
}

// Rows of data are the slice's, rows of keys those up to its end.
TEST(AddSlices, HaveTheRowsOfTheSlice) {
  const ir::Function whole = Gpt();
  const std::vector<std::string> names = SequenceInputs(whole);
  ASSERT_FALSE(names.empty());
  const PipelinedStep step = Sliced(whole, kUneven);
  int data = 0, extended = 0;
  for (const SequenceSlice& slice : step.slices) {
    for (const SequenceSlice::Stage& stage : slice.stages) {
      const ir::Function& forward = stage.forward.function;
      for (const ir::Input& input : forward.inputs()) {
        const std::string name(forward.value_name(input.value));
        if (std::ranges::find(names, name) == names.end()) continue;
        EXPECT_EQ(forward.type(input.value).dims[1], slice.range.rows) << name;
        ++data;
      }
      for (const ir::OpId op : forward.order()) {
        if (forward.kind(op) != ir::OpKind::kExtendRows) continue;
        EXPECT_EQ(forward.attributes(op).Int("earlier", -1), slice.range.begin);
        EXPECT_EQ(forward.type(forward.result(op)).dims[1], slice.range.begin + slice.range.rows);
        ++extended;
      }
    }
  }
  EXPECT_GE(data, 6);      // tokens and labels of three slices
  EXPECT_GE(extended, 6);  // keys or values of two layers, of three
  EXPECT_EQ(ir::SequenceLength(whole), 12);
}

// What one stage sends, the other receives, of the same slice.
TEST(AddSlices, SendWhatIsReceived) {
  const PipelinedStep step = Sliced(Gpt(), kUneven);
  for (const SequenceSlice& slice : step.slices) {
    std::vector<ir::TensorType> sent, received;
    for (const SequenceSlice::Stage& stage : slice.stages) {
      const ir::Function& forward = stage.forward.function;
      for (const ir::OpId op : forward.order()) {
        if (forward.kind(op) == ir::OpKind::kSend) {
          sent.push_back(forward.type(forward.operands(op)[0]));
        }
        if (forward.kind(op) == ir::OpKind::kReceive) {
          received.push_back(forward.type(forward.result(op)));
        }
      }
    }
    EXPECT_FALSE(sent.empty());
    EXPECT_EQ(sent, received);
  }
}

}  // namespace
}  // namespace add_slices_test_cc
}  // namespace orrery::transforms
