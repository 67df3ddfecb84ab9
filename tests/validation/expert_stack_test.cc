#include <gtest/gtest.h>

#include <string>

#include "lowering/blocks/expert_exchange.h"
#include "tests/validation/stack_test_util.h"

// What stacks make of tokens on their way to experts.

namespace orrery::tools {
namespace expert_stack_test_cc {
namespace {

using lowering::StackKernels;
using simulator::TaskId;
using transforms::ParallelPlan;

// Each token has four of sixteen experts, two on a rank.
constexpr char kMixture[] =
    "gpt:layers=2,hidden=256,heads=4,seq=64,vocab=256,experts=16,topk=4,expert_ffn=256";

ParallelPlan Plan(int64_t microbatches = 1) {
  return {.ep = 8, .microbatches = microbatches, .sharding = transforms::ShardingMethod::kMegatron};
}

search::Run Played(const StackKernels& kernels, const ParallelPlan& plan,
                   const std::string& cluster = "uniform:8@200Gbps", bool fold = true) {
  search::Setting setting = SmallSetting(plan, "roofline", kMixture, cluster);
  setting.lowering.kernels = kernels;
  setting.lowering.fold = fold;
  search::PlanPlayer player(setting, plan);
  EXPECT_TRUE(player.Prepare().ok());
  return player.Play({}).value();
}

// What collectives of that kind move, tasks of their own or parts of one.
double Moved(const search::Run& run, absl::string_view kind = "all-to-all ep") {
  double bytes = 0;
  for (int32_t t = 0; t < run.program.task_count(); ++t) {
    const simulator::LabelId id = run.program.label_of(TaskId(t));
    const simulator::TaskLabel label = run.program.label(id);
    if (label.phase == simulator::Phase::kUpdate) continue;
    if (label.communication == kind) bytes += static_cast<double>(label.bytes.count());
    for (const simulator::StretchPart& part : run.program.parts_of(id)) {
      if (run.program.label(part.label).communication != kind) continue;
      bytes += static_cast<double>(part.bytes.count());
    }
  }
  return bytes;
}

constexpr char kNodes[] = "rails:2x4@100GB/s,nic=10GB/s";

// Megatron's pattern has tokens go where their experts are, and no rank takes those of all others,
// though over nodes that would be cheaper: each crosses once.
TEST(ExpertStack, MovesRowsOfTokensAlone) {
  const search::Run run = Played(StackKernels(), Plan(), kNodes);
  EXPECT_GT(Moved(run), 0);
  EXPECT_LT(Moved(run, "all-gather ep"), 0.05 * Moved(run));
}

TEST(ExpertStack, SendsTokensOnceToARankOrANode) {
  const StackKernels plain, once = {.sends_tokens_once = true};
  const double all = Moved(Played(plain, Plan()));
  ASSERT_GT(all, 0);
  const double by_rank = Moved(Played(once, Plan()));
  // What else goes over ep stays as it is.
  EXPECT_NEAR(by_rank / all, lowering::DistinctShare(4, 8), 0.02);
  const double by_node = Moved(Played(once, Plan(), kNodes));
  EXPECT_NEAR(by_node / Moved(Played(plain, Plan(), kNodes)), lowering::DistinctShare(4, 2), 1e-3);
  EXPECT_LT(Played(once, Plan(), kNodes).report.step_time,
            Played(plain, Plan(), kNodes).report.step_time);
  EXPECT_EQ(Played(once, Plan(), kNodes).report.step_time,
            Played(once, Plan(), kNodes, /*fold=*/false).report.step_time);
}

// Each forward of a layer of experts waits for the host once, but for graphs.
TEST(ExpertStack, WaitsForTheHostInEachLayer) {
  const StackKernels plain, waits = {.experts = Duration(2'000'000'000)};
  const auto seconds = [](const StackKernels& kernels) {
    return Played(kernels, Plan(2)).report.step_time.seconds();
  };
  EXPECT_NEAR(seconds(waits) - seconds(plain), 2 * 2 * 2e-3, 1e-5);  // microbatches, layers
  lowering::LoweringOptions options;
  ASSERT_TRUE(SetStack("nemo", {.dtype = ir::DType::kBF16}, options).ok());
  EXPECT_GT(options.kernels.experts, Duration(0));
  CaptureGraphs(options);
  EXPECT_EQ(options.kernels.experts, Duration(0));
}

TEST(ExpertStack, RunsOtherMicrobatchesWhileTokensAreUnderWay) {
  const std::string fast = "uniform:8@200Gbps", slow = "uniform:8@10Gbps";
  const StackKernels plain, overlaps = {.overlaps_experts = true};
  const search::Run before = Played(plain, Plan(2), fast), after = Played(overlaps, Plan(2), fast);
  EXPECT_LT(after.report.step_time.seconds(), 0.995 * before.report.step_time.seconds());
  EXPECT_DOUBLE_EQ(Moved(after), Moved(before));
  EXPECT_EQ(after.report.flops, before.report.flops);
  EXPECT_EQ(after.report.step_time,
            Played(overlaps, Plan(2), fast, /*fold=*/false).report.step_time);
  // Of one microbatch there is no other.
  EXPECT_EQ(Played(overlaps, Plan(), fast).report.step_time,
            Played(plain, Plan(), fast).report.step_time);
  // Exchanges hold up each other all the same: over a slow network they are what a step takes.
  EXPECT_GT(Played(overlaps, Plan(2), slow).report.step_time.seconds(),
            0.8 * Played(plain, Plan(2), slow).report.step_time.seconds());
}

}  // namespace
}  // namespace expert_stack_test_cc
}  // namespace orrery::tools
