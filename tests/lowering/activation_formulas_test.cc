#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cluster/cluster.h"
#include "cost_models/cost_model.h"
#include "importer/builtin_models.h"
#include "ir/models/mlp.h"
#include "lowering/network/sharding_prices.h"
#include "simulator/report/memory.h"
#include "support/sanitized_test_util.h"
#include "tests/lowering/played.h"
#include "transforms/parallel.h"
#include "transforms/training/training_step.h"

// What forward keeps for backward, against published formulas: Korthikanti et al. 2022
// (2205.05198), table 2, for their four models; and Chen et al. 2016 on how often to keep.

namespace orrery::lowering {
namespace activation_formulas_test_cc {
namespace {

// A model of table 3; `b` samples a microbatch.
struct Gpt {
  const char* name;
  double hidden, heads, microbatch;
};
constexpr double kSequence = 2048;
constexpr Gpt kGpts[] = {{"megatron-22b", 6144, 64, 4},
                         {"megatron-175b", 12288, 96, 1},
                         {"megatron-530b", 20480, 128, 1},
                         {"megatron-1t", 25600, 160, 1}};

struct Way {
  int64_t tensor_parallel = 1;
  bool sequence_parallel = false;
  std::string recompute = "none";
  bool fp8 = false;
};

std::string Show(const Gpt& gpt, const Way& way) {
  return absl::StrCat(gpt.name, " t=", way.tensor_parallel,
                      way.sequence_parallel ? " sequence parallel " : " ", way.recompute,
                      way.fp8 ? " fp8" : "");
}

// Bytes that one layer keeps on a rank: table 2 of the paper. Its fully recomputed layer keeps its
// input alone, which sequence parallelism splits as well.
double BytesOfALayer(const Gpt& gpt, const Way& way) {
  const double s = kSequence, b = gpt.microbatch, h = gpt.hidden, a = gpt.heads;
  const auto t = static_cast<double>(way.tensor_parallel);
  const double core = way.recompute == "none" ? 5 * a * s / h : 0;
  if (way.recompute == "full") return 2 * s * b * h / (way.sequence_parallel ? t : 1);
  // One byte where products alone read what they keep: 1 + 1 for the norms' results, 1 for
  // attention's, beside the 2 that attention's backward reads, and 4 for Gelu's. The paper has 2
  // and 2 for the norms' results, 2 for attention's, 8 for Gelu's: 5 bytes less, 2 of them of the
  // norms.
  if (way.fp8 && way.sequence_parallel) return s * b * h / t * (29 + core);
  if (way.fp8) return s * b * h * (8 + 21 / t + core / t);
  if (way.sequence_parallel) return s * b * h / t * (34 + core);
  return s * b * h * (10 + 24 / t + core / t);
}

transforms::PipelinedStep Sharded(const Gpt& gpt, int64_t layers, const Way& way) {
  const std::string model = absl::StrCat(gpt.name, ":dropout=0.1,layers=", layers);
  ir::Function step =
      importer::BuildBuiltinModel(model, static_cast<int64_t>(gpt.microbatch), ir::DType::kF16)
          .value();
  EXPECT_TRUE(transforms::MakeTrainingStep(step, {}).ok());
  const transforms::ParallelPlan plan = {
      .hp = way.tensor_parallel,
      .recompute = transforms::ParseRecomputePolicy(way.recompute).value(),
      .sharding = transforms::ShardingMethod::kMegatron,
      .sequence_parallel = way.sequence_parallel ? transforms::SequenceParallel::kOn
                                                 : transforms::SequenceParallel::kOff,
      .dtype = way.fp8 ? transforms::StepDType::kF8Mixed : transforms::StepDType::kModel};
  const cluster::Cluster cluster = cluster::ParseCluster("dgx-a100:1").value();
  const auto cost_model = cost_models::MakeCostModel("roofline").value();
  const ClusterShardingPrices prices(transforms::MakeMesh(plan).value(), cluster, *cost_model);
  return transforms::ParallelTransform3d(step, plan, {.prices = &prices}).value();
}

// Of a rank, for one microbatch.
double SavedBytes(const transforms::PipelinedStep& step) {
  const ir::Function& forward = step.stages[0].forward.function;
  int64_t bytes = 0;
  for (const ir::Output& output : forward.outputs()) {
    if (output.role != ir::OutputRole::kSaved) continue;
    bytes += ir::SizeOf(ir::LocalType(forward.type(output.value), forward.mesh())).count();
  }
  return static_cast<double>(bytes);
}

// The paper leaves out the statistics of norms, 16 bytes a token and layer: at most 0.1 %.
TEST(Activations, AreThoseOfKorthikantisFormulas) {
  for (const Gpt& gpt : kGpts) {
    for (const int64_t t : CasesToWalk({2, 1, 4, 8})) {
      for (const bool sequence_parallel : {false, true}) {
        if (t == 1 && sequence_parallel) continue;
        for (const char* recompute : {"none", "selective", "full"}) {
          for (const bool fp8 : {false, true}) {
            const Way way = {t, sequence_parallel, recompute, fp8};
            const double layer =
                (SavedBytes(Sharded(gpt, 5, way)) - SavedBytes(Sharded(gpt, 3, way))) / 2;
            EXPECT_NEAR(layer / BytesOfALayer(gpt, way), 1, 1e-3) << Show(gpt, way);
          }
        }
      }
    }
  }
}

// Figure 7 of the paper, in percent of what is kept without any of it: rounded up or down there.
TEST(Activations, SaveAsMuchAsFigure7Says) {
  const struct {
    double sequence, selective, both, full;
  } kPercent[] = {{66.84, 49.42, 16.18, 7.64},
                  {62.04, 56.53, 18.49, 8.71},
                  {58.31, 62.04, 20.27, 9.42},
                  {58.31, 62.04, 20.27, 9.42}};
  for (size_t i = 0; i < std::size(kGpts); ++i) {
    const auto layer = [&](bool sequence_parallel, const char* recompute) {
      const Way way = {8, sequence_parallel, recompute};
      return SavedBytes(Sharded(kGpts[i], 3, way)) - SavedBytes(Sharded(kGpts[i], 2, way));
    };
    const double none = layer(false, "none") / 100;
    EXPECT_NEAR(layer(true, "none") / none, kPercent[i].sequence, 0.5) << kGpts[i].name;
    EXPECT_NEAR(layer(false, "selective") / none, kPercent[i].selective, 0.5) << kGpts[i].name;
    EXPECT_NEAR(layer(true, "selective") / none, kPercent[i].both, 0.5) << kGpts[i].name;
    EXPECT_NEAR(layer(false, "full") / none, kPercent[i].full, 0.5) << kGpts[i].name;
  }
}

// The most that activations take at any time.
int64_t PeakActivations(const Played& played) {
  const auto timelines = simulator::MemoryTimeline(played.program, played.trace);
  int64_t peak = 0;
  for (const simulator::MemoryUse& use : timelines[simulator::RankClassId(0)]) {
    const auto kind = static_cast<size_t>(simulator::MemoryKind::kActivations);
    peak = std::max(peak, use.by_kind[kind].count());
  }
  return peak;
}

// Of L equal layers, L/K inputs and one group of K layers are there at once (Chen et al. 2016,
// section 4.1): least where K is the root of L.
TEST(Activations, AreLeastWhereARootOfTheLayersIsKept) {
  for (const int64_t root : {2, 3, 4, 5, 7, 8}) {
    const int64_t layers = root * root;
    const ir::Function step = ir::Mlp({.layers = layers, .dim = 64, .batch = 1024}).value();
    const auto peak = [&](const std::string& recompute) {
      return PeakActivations(
          Play(step, {.plan = {.recompute = transforms::ParseRecomputePolicy(recompute).value()}}));
    };
    const int64_t least = peak(absl::StrCat("every:", root));
    for (int64_t every = 1; every <= layers; ++every) {
      EXPECT_GE(peak(absl::StrCat("every:", every)), least) << layers << " every " << every;
    }
    EXPECT_GT(peak("full"), least);
    EXPECT_GT(peak(absl::StrCat("every:", layers)), least);
    // Two roots of activations, of the layers that kept one each; and what is at work.
    const int64_t activation = int64_t{1024} * 64 * 4;
    EXPECT_LE(least, (2 * root + 2) * activation) << layers;
  }
}

}  // namespace
}  // namespace activation_formulas_test_cc
}  // namespace orrery::lowering
