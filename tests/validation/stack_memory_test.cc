#include "lowering/blocks/stack_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "search/evaluate.h"
#include "tools/flags.h"
#include "tools/validation/software_stack.h"
#include "transforms/plan/plan_text.h"

// What software holds beside a step, in the peaks of ranks.

namespace orrery::tools {
namespace stack_memory_test_cc {
namespace {

using lowering::StackMemory;
using simulator::MemoryKind;
using transforms::ParallelPlan;

constexpr int64_t kBatch = 8, kSequence = 32, kVocabulary = 256;
constexpr double kMuch = 1000;  // more than a layer takes for each of its elements

simulator::MemoryUse PeakOf(const StackMemory& memory, const ParallelPlan& plan) {
  ModelFlags flags;
  flags.model = "gpt:layers=2,hidden=64,heads=4,seq=32,vocab=256,tied_embeddings=0,bias=0";
  flags.batch_size = kBatch;
  flags.cluster = "uniform:8@200Gbps";
  flags.memory_limit = "none";
  ParallelPlan half = plan;
  half.dtype = transforms::StepDType::kBF16;
  search::Setting setting = MakeSetting(flags, half).value();
  setting.lowering.stack_memory = memory;
  const search::Run run = search::Play(setting, half).value();
  simulator::MemoryUse peak;
  for (int32_t r = 0; r < run.program.rank_count(); ++r) {
    const simulator::MemoryUse& use = run.report.ranks[simulator::RankClassId(r)].memory;
    if (use.total > peak.total) peak = use;
  }
  return peak;
}

int64_t Difference(const StackMemory& more, const StackMemory& less, const ParallelPlan& plan) {
  return (PeakOf(more, plan).total - PeakOf(less, plan).total).count();
}

int64_t ParametersOf(const ParallelPlan& plan) {
  return PeakOf({}, plan).of(MemoryKind::kParameters).count() / 2;
}

TEST(StackMemory, GradientsAreForEachParameterOfARank) {
  for (const ParallelPlan& plan : {ParallelPlan{}, ParallelPlan{.dp = 2}, ParallelPlan{.pp = 2},
                                   ParallelPlan{.dp = 2, .zero = 3}}) {
    const int64_t parameters = ParametersOf(plan);
    ASSERT_GT(parameters, 0);
    EXPECT_EQ(Difference({.gradient = 2}, {}, plan), 2 * parameters) << ToString(plan);
    EXPECT_EQ((PeakOf({.gradient = 2}, plan).of(MemoryKind::kGradients) -
               PeakOf({}, plan).of(MemoryKind::kGradients))
                  .count(),
              2 * parameters)
        << ToString(plan);
  }
}

TEST(StackMemory, LossIsForEachLogitOfAMicrobatch) {
  constexpr int64_t kLogits = kBatch * kSequence * kVocabulary;
  const StackMemory less = {.loss = kMuch}, more = {.loss = 2 * kMuch};
  EXPECT_EQ(Difference(more, less, {}), int64_t{1000} * kLogits);
  EXPECT_EQ(Difference(more, less, {.dp = 2}), int64_t{1000} * kLogits / 2);
  EXPECT_EQ(Difference(more, less, {.microbatches = 4}), int64_t{1000} * kLogits / 4);
}

TEST(StackMemory, UpdateIsForWhatARankUpdates) {
  const StackMemory less = {.update = kMuch}, more = {.update = 2 * kMuch};
  const int64_t parameters = ParametersOf({});
  EXPECT_EQ(Difference(more, less, {}), 1000 * parameters);
  EXPECT_EQ(Difference(more, less, {.dp = 4, .zero = 1}), 1000 * parameters / 4);
}

// On the first stage of p, p microbatches are under way, or all there are; the last sends nothing.
TEST(StackMemory, SentIsForEachMicrobatchUnderWay) {
  constexpr int64_t kElements = kBatch * kSequence * 64;
  const StackMemory less = {.sent = kMuch}, more = {.sent = 2 * kMuch};
  EXPECT_EQ(Difference(more, less, {.pp = 2}), 1000 * kElements);
  EXPECT_EQ(Difference(more, less, {.pp = 2, .microbatches = 8}), 1000 * 2 * kElements / 8);
  EXPECT_EQ(Difference(more, less, {.dp = 2, .pp = 2, .microbatches = 4}),
            1000 * 2 * kElements / 4 / 2);
  EXPECT_EQ(Difference(more, {}, {.dp = 2, .microbatches = 4}), 0);
  EXPECT_EQ((PeakOf(more, {.pp = 2}).of(MemoryKind::kBuffers) -
             PeakOf(less, {.pp = 2}).of(MemoryKind::kBuffers))
                .count(),
            1000 * kElements);
}

// 16 bytes a parameter in mixed precision; DeepSpeed's bf16 has two more copies of 16 bits.
TEST(StackMemory, OfStacksIsWhatTheyAreKnownFor) {
  using ir::DType;
  const auto of = [](absl::string_view stack, DType dtype) {
    return StackMemoryOf(stack, {.dtype = dtype}).value();
  };
  EXPECT_EQ(of("ideal", DType::kBF16), StackMemory());
  EXPECT_EQ(of("megatron", DType::kF32), StackMemory());
  EXPECT_EQ(of("megatron", DType::kF16).gradient, 0);
  EXPECT_EQ(of("megatron", DType::kBF16).gradient, 2);
  EXPECT_EQ(of("deepspeed", DType::kBF16).gradient, 4);
  EXPECT_EQ(of("deepspeed", DType::kF16).sent, 2);
  EXPECT_EQ(of("torchtitan", DType::kBF16).loss, 12);
  EXPECT_EQ(of("torchtitan", DType::kBF16).split_loss, 20);
  EXPECT_EQ(of("maxtext", DType::kBF16).loss, 4);
  EXPECT_EQ(std::string(StackMemoryOf("abacus", {}).status().message()),
            "there is no stack 'abacus'; wanted one of ideal, megatron, megatron-2021, "
            "megatron-core, nemo, "
            "megatron-deepspeed, deepspeed, fsdp, torch-compile, torchtitan, torchtitan-compile, "
            "torchtitan-async, maxtext, compiler, "
            "or a file that ends in .json");
}

// Of each record: found by its name, told in errors, and what it holds is beside 16 bits alone.
TEST(StackMemory, EveryStackIsFound) {
  const StackMemory nothing;
  for (const SoftwareStack* stack : AllSoftwareStacks()) {
    SCOPED_TRACE(stack->name);
    const auto of = [&](ir::DType dtype) {
      return StackMemoryOf(stack->name, {.dtype = dtype}).value();
    };
    StackMemory fp16 = stack->fp16, bf16 = stack->bf16;
    fp16.split_loss = bf16.split_loss = stack->split_loss;
    EXPECT_EQ(of(ir::DType::kF32), nothing);
    EXPECT_EQ(of(ir::DType::kF16), fp16);
    EXPECT_EQ(of(ir::DType::kBF16), bf16);
    EXPECT_THAT(std::string(StackMemoryOf("abacus", {}).status().message()),
                testing::HasSubstr(std::string(stack->name)));
  }
}

}  // namespace
}  // namespace stack_memory_test_cc
}  // namespace orrery::tools
