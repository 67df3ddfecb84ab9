#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cluster/cluster.h"
#include "cost_models/cost_model.h"
#include "importer/builtin_models.h"
#include "ir/models/mlp.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "simulator/report/memory.h"
#include "tests/lowering/played.h"
#include "transforms/plan/plan_text.h"
#include "transforms/training/fp8_mixed.h"
#include "transforms/training/training_step.h"

// What 8-bit products cost and what they keep, by hand.

namespace orrery::lowering {
namespace fp8_test_cc {
namespace {

ir::Function GptStep(const std::string& sizes, int64_t batch) {
  ir::Function step =
      importer::BuildBuiltinModel(absl::StrCat("gpt:", sizes), batch, ir::DType::kBF16).value();
  EXPECT_TRUE(transforms::MakeTrainingStep(step, {}).ok());
  return step;
}

// Picoseconds of kernels on an H100.
struct Times {
  int64_t all = 0, casts = 0;
  int64_t products = 0;  // of two operands or more that are matrices, but the vocabulary's
};

Times TimesOf(const ir::Function& step) {
  const cluster::Device device = cluster::ParseCluster("dgx-h100:1")->device;
  const auto cost_model = cost_models::MakeCostModel("roofline").value();
  Times times;
  for (const ir::OpId op : step.order()) {
    if (step.info(op).op_class == ir::OpClass::kView) continue;
    std::vector<const ir::TensorType*> operands, results;
    for (const ir::ValueId operand : step.operands(op)) operands.push_back(&step.type(operand));
    for (int32_t i = 0; i < step.result_count(op); ++i) {
      results.push_back(&step.type(step.result(op, i)));
    }
    const int64_t time = cost_model
                             ->Compute({.kind = step.kind(op),
                                        .attributes = step.attributes(op),
                                        .operands = operands,
                                        .results = results},
                                       device)
                             .picoseconds();
    const std::string kind(step.info(op).name);
    const bool linear =
        kind == "Linear" || kind == "MatMulGrad" || kind.rfind("LinearGroup", 0) == 0;
    const bool head = operands.size() > 1 && operands[1]->dims == ir::Dims({128, 12288});
    times.all += time;
    if (kind == "Cast") times.casts += time;
    if (linear && !head) times.products += time;
  }
  return times;
}

// Nothing else changes: a step is shorter by what its products are, and longer by the casts.
TEST(Fp8Mixed, HalvesTheTimeOfTheProductsOfALayer) {
  const ir::Function step = GptStep("layers=1,hidden=12288,heads=96,seq=2048,vocab=128", 2);
  ir::Function mixed = step;
  ASSERT_TRUE(transforms::Fp8Mixed(mixed).value());
  const Times before = TimesOf(step), after = TimesOf(mixed);
  const double products =
      static_cast<double>(after.products) / static_cast<double>(before.products);
  EXPECT_NEAR(products, 0.5, 0.01);
  EXPECT_EQ(before.casts, 0);
  EXPECT_EQ(after.all, before.all - before.products + after.products + after.casts);
  EXPECT_GT(2 * before.products, before.all) << "else the layer is no example of one";
}

// One cast of 2 bytes read and 1 written for each value that products read, at 3.35 TB/s: of a
// token 4 widths of forward and 9 of backward (q, k, v, proj, up, down: of x 1, 1, 1, 4; of dy 3,
// 1, 4, 1), of weights once a step 12 widths squared.
TEST(Fp8Mixed, CastsReadTwoBytesAndWriteOne) {
  const ir::Function step = GptStep("layers=1,hidden=12288,heads=96,seq=2048,vocab=128", 2);
  ir::Function mixed = step;
  ASSERT_TRUE(transforms::Fp8Mixed(mixed).value());
  const double tokens = 2 * 2048, width = 12288;
  const double elements = tokens * width * (7 + 9) + 12 * width * width;
  int casts = 0;
  for (const ir::OpId op : mixed.order()) casts += mixed.kind(op) == ir::OpKind::kCast ? 1 : 0;
  EXPECT_EQ(casts, 4 + 6 + 6);
  const cluster::Device device = cluster::ParseCluster("dgx-h100:1")->device;
  const auto bandwidth = static_cast<double>(device.memory_bandwidth.bytes_per_second());
  const double seconds = 3 * elements / bandwidth + casts * device.launch_overhead.seconds();
  EXPECT_NEAR(static_cast<double>(TimesOf(mixed).casts) * 1e-12, seconds, seconds * 1e-4);
}

struct Residents {
  int64_t parameters, optimizer;
};

transforms::ParallelPlan Mixed(transforms::ParallelPlan plan) {
  plan.dtype = transforms::StepDType::kF8Mixed;
  return plan;
}

Residents ResidentsOf(const ir::Function& step, const transforms::ParallelPlan& plan) {
  const Played played = Play(step, {.plan = Mixed(plan)});
  const auto resident = [&](simulator::MemoryKind kind) {
    return played.program.resident(simulator::RankClassId(0), kind).count();
  };
  return {resident(simulator::MemoryKind::kParameters),
          resident(simulator::MemoryKind::kOptimizer)};
}

// Three bytes a weight, two of them sharded by ZeRO's stage 3 alone, and twelve of state.
TEST(Fp8Mixed, KeepsAByteMoreAWeight) {
  constexpr int64_t kLayers = 4, kDim = 64, kWeights = kLayers * kDim * kDim;
  ir::Function step =
      ir::Mlp({.layers = kLayers, .dim = kDim, .batch = 256, .dtype = ir::DType::kBF16}).value();
  ASSERT_TRUE(transforms::AppendOptimizer(step, "adam").value());
  const auto expect = [&](const transforms::ParallelPlan& plan, const Residents& wanted) {
    SCOPED_TRACE(ToString(plan));
    const Residents found = ResidentsOf(step, plan);
    EXPECT_EQ(found.parameters, wanted.parameters);
    EXPECT_EQ(found.optimizer, wanted.optimizer);
  };
  expect({}, {3 * kWeights, 12 * kWeights});
  expect({.hp = 2}, {3 * kWeights / 2, 12 * kWeights / 2});
  expect({.pp = 2, .microbatches = 2}, {3 * kWeights / 2, 12 * kWeights / 2});
  expect({.dp = 4, .zero = 1}, {3 * kWeights, 12 * kWeights / 4});
  expect({.dp = 4, .zero = 2}, {3 * kWeights, 12 * kWeights / 4});
  expect({.dp = 4, .zero = 3}, {3 * kWeights / 4, 12 * kWeights / 4});
}

// The update makes copies where the old ones are: a step has no more at its peak than without them,
// but for the byte a weight, and less where activations are at their peak.
TEST(Fp8Mixed, PeaksLower) {
  const ir::Function step = GptStep("layers=4,hidden=1024,heads=16,seq=512,vocab=1024", 32);
  for (const int64_t pp : {1, 2}) {
    const transforms::ParallelPlan plan = {.dp = 2, .pp = pp, .microbatches = 4};
    const Played before = Play(step, {.plan = plan});
    const Played after = Play(step, {.plan = Mixed(plan)});
    const auto activations = [](const Played& played) {
      return played.report.ranks[simulator::RankClassId(0)]
          .memory.of(simulator::MemoryKind::kActivations)
          .count();
    };
    EXPECT_LT(activations(after), activations(before)) << pp;
    EXPECT_GT(activations(after), activations(before) / 2) << pp;
  }
}

}  // namespace
}  // namespace fp8_test_cc
}  // namespace orrery::lowering
