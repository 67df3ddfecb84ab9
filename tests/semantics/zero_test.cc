#include "transforms/zero.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "ir/models/mlp.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "support/status.h"
#include "tests/semantics/compare.h"
#include "tests/semantics/random_step.h"
#include "tests/semantics/spread.h"
#include "transforms/model_step_test_util.h"
#include "transforms/parallel.h"
#include "transforms/plain_prices_test_util.h"
#include "transforms/schedules/schedule.h"
#include "transforms/training_step.h"

// Whoever keeps what, a step computes what it computes on one device.

namespace orrery::semantics {
namespace {

using transforms::ParallelDegrees;
using transforms::PlainPrices;
using transforms::SpreadOptions;
using transforms::ZeroOptions;

std::string Show(const ParallelDegrees& d, const ZeroOptions& zero) {
  return absl::StrCat("dp=", d.dp, " hp=", d.hp, " pp=", d.pp, " cp=", d.cp, " ep=", d.ep,
                      " K=", d.microbatches, " zero=", zero.stage, " group=", zero.group,
                      " prefetch=", zero.prefetch);
}

/// A step, and what it computes on one device.
struct Expected {
  explicit Expected(ir::Function of)
      : step(std::move(of)), inputs(RandomInputs(step, 7)), outputs(RunAll(step, inputs).outputs) {}

  ir::Function step;
  Named inputs, outputs;
};

int64_t Count(const transforms::PipelinedStep& step, ir::OpKind kind) {
  int64_t count = 0;
  for (const ir::Function& function : step.Functions()) {
    for (const ir::OpId op : function.order()) count += function.kind(op) == kind ? 1 : 0;
  }
  return count;
}

/// Plays the step, spread by `degrees` and `options`, and compares. False where it cannot be.
bool ExpectSameStep(const Expected& expected, const ParallelDegrees& degrees,
                    const SpreadOptions& options) {
  SCOPED_TRACE(Show(degrees, options.zero));
  const auto step = transforms::ParallelTransform3d(expected.step, degrees, options);
  if (AsInfeasible(step.status()).has_value()) return false;
  EXPECT_TRUE(step.ok()) << step.status();
  if (!step.ok()) return false;
  for (const ir::Function& function : step->Functions()) {
    EXPECT_TRUE(ir::Verify(function).ok()) << ir::Verify(function) << ir::Print(function);
  }
  if (testing::Test::HasFailure()) return false;
  const auto orders = transforms::FindSchedule("1f1b").value()->orders(
      {.stages = static_cast<int32_t>(degrees.pp),
       .microbatches = static_cast<int32_t>(degrees.microbatches)});
  const PipelinedOutcome outcome = RunPipelined(*step, orders, expected.inputs);
  ExpectSame(outcome.outputs, expected.outputs, 1e-8);
  EXPECT_LE(outcome.disagreement, 1e-8);
  EXPECT_EQ(outcome.lost, 0);
  if (testing::Test::HasFailure()) ADD_FAILURE() << ir::Print(step->Functions());
  return !testing::Test::HasFailure();
}

std::vector<ParallelDegrees> AllDegrees() {
  std::vector<ParallelDegrees> all;
  for (const int64_t dp : {2, 3, 4}) {
    for (const int64_t hp : {1, 2}) {
      for (const int64_t pp : {1, 2}) {
        for (const int64_t microbatches : {1, 2, 3}) {
          all.push_back({.dp = dp, .hp = hp, .pp = pp, .microbatches = microbatches});
        }
      }
    }
  }
  return all;
}

TEST(Zero, EveryStageIsTheMlp) {
  for (const char* optimizer : {"sgd", "adam"}) {
    ir::Function step = ir::Mlp({.layers = 4, .dim = 12, .batch = 72}).value();
    ASSERT_TRUE(transforms::AppendOptimizer(step, optimizer).value());
    const Expected expected(std::move(step));
    for (const ParallelDegrees& degrees : AllDegrees()) {
      for (const int64_t stage : {1, 2, 3}) {
        ASSERT_TRUE(ExpectSameStep(expected, degrees,
                                   {.zero = {.stage = stage, .prefetch = degrees.microbatches - 1}}));
      }
    }
  }
}

}  // namespace
}  // namespace orrery::semantics
