#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"
#include "tests/validation/stack_test_util.h"
#include "transforms/plan/plan_text.h"

// A stack that compiles: whole steps take less, and compute and send the same.

namespace orrery::tools {
namespace compiled_stack_test_cc {
namespace {

using transforms::ParallelPlan;

search::Run Played(const std::string& stack, const ParallelPlan& plan, bool fold = true,
                   const std::string& cost_model = "roofline") {
  search::Setting setting = SmallSetting(plan, cost_model);
  EXPECT_TRUE(SetStack(stack, {}, setting.lowering).ok());
  setting.lowering.stack_memory = {};
  setting.lowering.fold = fold;
  return search::Play(setting, plan).value();
}

search::Run Played(const lowering::StackKernels& kernels, const ParallelPlan& plan,
                   bool fold = true, const std::string& model = kDropoutGpt) {
  return PlayedWith(kernels, plan, fold, model);
}

// The same is computed, sent and kept, in less time; and one rank stands for all.
void ExpectLessTime(const lowering::StackKernels& kernels, const ParallelPlan& plan) {
  SCOPED_TRACE(ToString(plan));
  const search::Run plain = Played(lowering::StackKernels(), plan), run = Played(kernels, plan);
  EXPECT_LT(run.report.step_time, plain.report.step_time);
  EXPECT_DOUBLE_EQ(run.report.flops.count(), plain.report.flops.count());
  EXPECT_EQ(run.report.bytes_sent, plain.report.bytes_sent);
  EXPECT_EQ(run.report.bytes_reduced, plain.report.bytes_reduced);
  EXPECT_EQ(run.report.peak_memory, plain.report.peak_memory);
  EXPECT_EQ(run.report.step_time, Played(kernels, plan, /*fold=*/false).report.step_time);
}

// Of one sharding each, whatever is the fastest.
constexpr auto kProducts = transforms::ShardingMethod::kDistir;
const ParallelPlan kPlans[] = {{},
                               {.dp = 2, .hp = 2, .microbatches = 2, .sharding = kProducts},
                               {.hp = 2, .pp = 2, .microbatches = 4, .sharding = kProducts},
                               {.dp = 4, .pp = 2, .microbatches = 2, .zero = 3}};

TEST(CompiledStack, IsOneOfThem) {
  for (const SoftwareStack* stack : AllSoftwareStacks()) {
    const bool compiles = stack->name == "torch-compile" || stack->name == "nemo" ||
                          stack->name == "maxtext" || stack->name == "compiler";
    lowering::LoweringOptions options;
    EXPECT_TRUE(SetStack(stack->name, {}, options).ok());
    EXPECT_EQ(options.kernels.fuses_pointwise, compiles) << stack->name;
    const bool captures = stack->name == "maxtext" || stack->name == "compiler";
    EXPECT_EQ(options.kernels.graphs, captures) << stack->name;
    EXPECT_EQ(options.kernels.batches_kernels, stack->name == "compiler") << stack->name;
    EXPECT_EQ(options.kernels.bounds_fusion, stack->name == "compiler") << stack->name;
    const bool adds = stack->name == "nemo" || stack->name == "megatron-core";
    EXPECT_EQ(options.kernels.sum_share < 1, adds) << stack->name;
    const bool pipelines = stack->name == "nemo" || stack->name == "torchtitan-async";
    EXPECT_EQ(options.kernels.pipelines_products, pipelines) << stack->name;
    EXPECT_EQ(options.kernels.copies_gathers,
              stack->name == "torchtitan" || stack->name == "torchtitan-compile")
        << stack->name;
    EXPECT_EQ(options.kernels.gathers_ahead, stack->name == "nemo") << stack->name;
    const bool slow = stack->name == "megatron-deepspeed" || stack->name == "deepspeed" ||
                      absl::StartsWith(stack->name, "torchtitan");
    EXPECT_EQ(options.kernels.launch > Duration(0), slow) << stack->name;
    EXPECT_EQ(options.kernels.waits_for_kernels, stack->name == "deepspeed") << stack->name;
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

// A checkpoint that runs a whole layer again multiplies once more by the last weight of each, which
// no gradient asks for unless dropout comes behind it.
TEST(CompiledStack, RecomputesWholeLayers) {
  for (const ParallelPlan& base : kPlans) {
    ParallelPlan plan = base;
    plan.recompute = transforms::ParseRecomputePolicy("full").value();
    SCOPED_TRACE(ToString(plan));
    const lowering::StackKernels kernels = {.recomputes_whole = true};
    const std::string model = "gpt:layers=4,hidden=64,heads=4,seq=32,vocab=256";
    const search::Run plain = Played(lowering::StackKernels(), plan, /*fold=*/true, model);
    const search::Run run = Played(kernels, plan, /*fold=*/true, model);
    EXPECT_GT(run.report.step_time, plain.report.step_time);
    EXPECT_GT(run.report.flops.count(), 1.05 * plain.report.flops.count());
    const search::Run all = Played(kernels, plan, /*fold=*/false, model);
    EXPECT_EQ(run.report.step_time, all.report.step_time);
  }
}

// Of what tensor-parallel ranks send to each other nothing is hidden.
TEST(CompiledStack, WaitsForTensorParallelRanks) {
  const lowering::StackKernels kernels = {.waits_for_tensor_parallel = true};
  for (const ParallelPlan& plan : kPlans) {
    SCOPED_TRACE(ToString(plan));
    const search::Run plain = Played(lowering::StackKernels(), plan), run = Played(kernels, plan);
    EXPECT_EQ(run.report.bytes_reduced, plain.report.bytes_reduced);
    EXPECT_EQ(run.report.step_time, Played(kernels, plan, /*fold=*/false).report.step_time);
    if (plan.hp > 1) {
      EXPECT_GT(run.report.step_time, plain.report.step_time);
    } else {
      EXPECT_EQ(run.report.step_time, plain.report.step_time);
    }
  }
}

// Kernels beside which something is sent take longer, others as long.
TEST(CompiledStack, SlowsDownBesideCommunication) {
  const lowering::StackKernels nothing, kernels = {.slowdown = 0.4};
  const ParallelPlan alone, zero = {.dp = 4, .microbatches = 2, .zero = 3};
  EXPECT_EQ(Played(kernels, alone).report.step_time, Played(nothing, alone).report.step_time);
  const Duration slow = Played(kernels, zero).report.step_time;
  EXPECT_GT(slow, Played(nothing, zero).report.step_time);
  EXPECT_EQ(slow, Played(kernels, zero, /*fold=*/false).report.step_time);
}

// What is gathered or summed up over hp goes on under the products that read and make it.
TEST(CompiledStack, PipelinesProducts) {
  const lowering::StackKernels kernels = {.pipelines_products = true};
  for (const ParallelPlan& plan :
       {ParallelPlan{.hp = 4, .sharding = transforms::ShardingMethod::kMegatron},
        ParallelPlan{.dp = 2,
        .hp = 2,
        .pp = 2,
        .microbatches = 4,
        .sharding = transforms::ShardingMethod::kMegatron}}) {
    ParallelPlan split = plan;
    split.sequence_parallel = transforms::SequenceParallel::kOn;
    ExpectLessTime(kernels, split);
  }
  // Blocking software does one thing after the other.
  const ParallelPlan blocking = {.hp = 4,
                                 .sharding = transforms::ShardingMethod::kMegatron,
                                 .sequence_parallel = transforms::SequenceParallel::kOn,
                                 .blocking = true};
  EXPECT_EQ(Played(kernels, blocking).report.step_time,
            Played(lowering::StackKernels(), blocking).report.step_time);
}

// Updated parameters are gathered beside the forward of the next step.
TEST(CompiledStack, GathersAhead) {
  const lowering::StackKernels kernels = {.gathers_ahead = true};
  for (ParallelPlan plan :
       {ParallelPlan{.dp = 4, .microbatches = 2, .zero = 1},
        ParallelPlan{.dp = 4, .pp = 2, .microbatches = 2, .zero = 2},
        ParallelPlan{.dp = 4, .zero = 1, .dtype = transforms::StepDType::kF8Mixed}}) {
    plan.bucket_size = Bytes(1 << 14);
    ExpectLessTime(kernels, plan);
  }
  // Where nothing is gathered nothing changes; nor where weights are gathered for each use.
  for (const ParallelPlan& plan : {ParallelPlan{.dp = 4}, ParallelPlan{.dp = 4, .zero = 3}}) {
    EXPECT_EQ(Played(kernels, plan).report.step_time,
              Played(lowering::StackKernels(), plan).report.step_time);
  }
}

// Sums over microbatches take part of their time where products add them, but for those of other
// gradients; all else is the same.
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
