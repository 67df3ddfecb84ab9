#include <gtest/gtest.h>

#include <string>

#include "lowering/blocks/stack_kernels.h"
#include "search/evaluate.h"
#include "tools/flags.h"
#include "tools/validation/software_stack.h"
#include "transforms/plan/plan_text.h"

// A stack that compiles: whole steps take less, and compute and send the same.

namespace orrery::tools {
namespace compiled_stack_test_cc {
namespace {

using transforms::ParallelPlan;

search::Run Played(const std::string& stack, const ParallelPlan& plan, bool fold = true,
                   const std::string& cost_model = "roofline") {
  ModelFlags flags;
  flags.model = "gpt:layers=4,hidden=64,heads=4,seq=32,vocab=256,dropout=0.1";
  flags.batch_size = 16;
  flags.cluster = "uniform:8@200Gbps";
  flags.memory_limit = "none";
  flags.cost_model = cost_model;
  search::Setting setting = MakeSetting(flags, plan).value();
  EXPECT_TRUE(SetStack(stack, {}, setting.lowering).ok());
  setting.lowering.stack_memory = {};
  setting.lowering.fold = fold;
  return search::Play(setting, plan).value();
}

// Of one sharding each, whatever is the fastest.
constexpr auto kProducts = transforms::ShardingMethod::kDistir;
const ParallelPlan kPlans[] = {{},
                               {.dp = 2, .hp = 2, .microbatches = 2, .sharding = kProducts},
                               {.hp = 2, .pp = 2, .microbatches = 4, .sharding = kProducts},
                               {.dp = 4, .pp = 2, .microbatches = 2, .zero = 3}};

TEST(CompiledStack, IsOneOfThem) {
  for (const SoftwareStack* stack : AllSoftwareStacks()) {
    const bool compiles = stack->name == "torch-compile" || stack->name == "nemo";
    lowering::LoweringOptions options;
    EXPECT_TRUE(SetStack(stack->name, {}, options).ok());
    EXPECT_EQ(options.kernels.fuses_pointwise, compiles) << stack->name;
    EXPECT_EQ(options.kernels.sums_in_products, stack->name == "nemo") << stack->name;
    EXPECT_EQ(options.kernels.launch > Duration(0), stack->name == "megatron-deepspeed")
        << stack->name;
  }
  lowering::LoweringOptions options;
  EXPECT_FALSE(SetStack("abacus", {}, options).ok());
}

// A small model takes what its host takes; a large one hides it.
TEST(CompiledStack, OfASlowHostTakesItsLaunches) {
  const search::Run plain = Played("megatron", {}), slow = Played("megatron-deepspeed", {});
  EXPECT_GT(slow.report.step_time.seconds(), 2 * plain.report.step_time.seconds());
  EXPECT_EQ(slow.report.flops, plain.report.flops);
  EXPECT_EQ(slow.report.peak_memory, plain.report.peak_memory);
  const ParallelPlan pipeline = {.pp = 2, .microbatches = 4};
  EXPECT_EQ(Played("megatron-deepspeed", pipeline).report.step_time,
            Played("megatron-deepspeed", pipeline, /*fold=*/false).report.step_time);
}

// Sums over microbatches take no time where products add them, but for those of other gradients;
// all else is the same.
TEST(CompiledStack, OfNemoAddsGradientsInProducts) {
  for (const ParallelPlan& plan :
       {ParallelPlan{.microbatches = 4}, ParallelPlan{.pp = 2, .microbatches = 4}}) {
    const search::Run plain = Played("torch-compile", plan), adds = Played("nemo", plan);
    EXPECT_LT(adds.report.step_time, plain.report.step_time);
    EXPECT_EQ(adds.report.flops, plain.report.flops);
    EXPECT_EQ(adds.report.peak_memory, plain.report.peak_memory);
  }
  const search::Run plain = Played("torch-compile", {}), adds = Played("nemo", {});
  EXPECT_EQ(adds.report.step_time, plain.report.step_time);
}

TEST(CompiledStack, TakesLessForTheSame) {
  for (const ParallelPlan& plan : kPlans) {
    SCOPED_TRACE(ToString(plan));
    const search::Run plain = Played("ideal", plan), compiled = Played("torch-compile", plan);
    EXPECT_LT(compiled.report.step_time, plain.report.step_time);
    EXPECT_LE(compiled.report.peak_memory, plain.report.peak_memory);
    EXPECT_EQ(compiled.report.flops, plain.report.flops);
  }
}

// One rank stands for all that do alike, as it does where nothing is fused.
TEST(CompiledStack, FoldedIsUnfolded) {
  for (const ParallelPlan& plan : kPlans) {
    SCOPED_TRACE(ToString(plan));
    const search::Run folded = Played("torch-compile", plan);
    const search::Run unfolded = Played("torch-compile", plan, /*fold=*/false);
    EXPECT_EQ(folded.report.step_time, unfolded.report.step_time);
    EXPECT_EQ(folded.report.peak_memory, unfolded.report.peak_memory);
  }
}

TEST(CompiledStack, ChangesNothingWhereTheCostModelHasNoSuchKernels) {
  EXPECT_EQ(Played("torch-compile", {}, true, "distir").report.step_time,
            Played("ideal", {}, true, "distir").report.step_time);
}

}  // namespace
}  // namespace compiled_stack_test_cc
}  // namespace orrery::tools
