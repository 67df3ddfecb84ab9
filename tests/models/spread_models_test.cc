#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "importer/load_model.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "support/paths_test_util.h"
#include "support/sanitized_test_util.h"
#include "tests/models/small_sizes.h"
#include "tests/semantics/compare.h"
#include "tests/semantics/random_step.h"
#include "transforms/parallel.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/plan/plan_text.h"
#include "transforms/sharding/plain_prices_test_util.h"
#include "transforms/simplify/simplify.h"
#include "transforms/training/training_step.h"

// Real ONNX files, with the sizes of their tensors made small, parallelized in every combination of
// dp, hp and pp by cost: each verifies, and computes what one device computes.

namespace orrery {
namespace spread_models_test_cc {
namespace {

using transforms::ParallelPlan;
using transforms::PlainPrices;

constexpr int64_t kBatch = 12;

struct Model {
  std::string name;
  std::string folder;
  SmallSizes sizes;
  /// Whether each sample is computed by itself: else replicas change what norms see.
  bool exact = true;
};

std::ostream& operator<<(std::ostream& out, const Model& model) { return out << model.name; }

// Of images; 224 pixels become 32.
SmallSizes Channels() {
  return {.dims = {{64, 8},
                   {128, 16},
                   {192, 24},
                   {256, 24},
                   {512, 48},
                   {1024, 64},
                   {2048, 96},
                   {4096, 24},
                   {25088, 48},
                   {1000, 20},
                   {224, 32}},
          .kernels = {{7, 1}}};
}

// The same of a net that puts channels side by side: all are an eighth.
SmallSizes Squeezed() {
  SmallSizes sizes = {.dims = {{1000, 20}, {224, 32}}, .kernels = {}};
  for (const int64_t channels : {16, 32, 48, 64, 96, 128, 192, 256, 384, 512}) {
    sizes.dims[channels] = channels / 8;
  }
  return sizes;
}

std::vector<Model> Models() {
  const std::string examples = "/examples/models/", data = "/tests/data/models/";
  const SmallSizes gpt = {.dims = {{768, 24}, {3072, 48}, {50257, 40}, {1024, 4}}, .kernels = {}};
  const SmallSizes bert = {.dims = {{768, 24}, {3072, 48}, {30522, 40}, {512, 4}}, .kernels = {}};
  const SmallSizes llama = {.dims = {{2048, 16}, {64, 2}, {512, 4}, {8192, 24}, {32000, 24}},
                            .kernels = {},
                            .heads = {{32, 8}, {8, 2}}};
  return {{"gpt2_small", examples, gpt},
          {"gpt2_small_dynamic", data, gpt},
          {"bert_base", examples, bert},
          {"llama_4layer", examples, llama},
          {"mlp_64x512", examples, {.dims = {{512, 12}}, .kernels = {}}},
          {"resnet50", examples, Channels(), false},
          {"light_resnet50", data, Channels()},
          {"light_squeezenet", data, Squeezed()},
          {"light_vgg19", data, Channels()}};
}

// The training step of the file, at its small sizes.
ir::Function SmallStep(const Model& model) {
  const std::string path = absl::StrCat(SourceDir(), model.folder, model.name, ".onnx");
  auto function = importer::LoadModel({.model = path, .batch_size = kBatch});
  EXPECT_TRUE(function.ok()) << function.status();
  EXPECT_TRUE(transforms::Simplify(*function).ok());
  ir::Function small = WithSmallSizes(*function, model.sizes);
  EXPECT_TRUE(ir::Verify(small).ok()) << ir::Verify(small);
  transforms::FreezeTables(small);
  const absl::Status status =
      transforms::MakeTrainingStep(small, {.optimizer = "sgd", .simplify = false});
  EXPECT_TRUE(status.ok()) << status;
  return small;
}

class SpreadModels : public testing::TestWithParam<Model> {
 protected:
  // Now links are dear, and now memory is.
  static PlainPrices PricesOf(const ir::Mesh& mesh, int64_t seed) {
    constexpr PlainPrices::Rates kRates[] = {
        {.flops = 1e9, .bytes = 1e12, .link = 1e11, .latency = 1e-9},
        {.flops = 1e12, .bytes = 1e9, .link = 1e11, .latency = 1e-9},
        {.flops = 1e12, .bytes = 1e11, .link = 1e10, .latency = 1e-8}};
    return PlainPrices(mesh, kRates[seed % 3]);
  }

  static absl::StatusOr<transforms::PipelinedStep> Sharded(const ir::Function& step,
                                                           const ParallelPlan& plan) {
    const auto mesh = transforms::MakeMesh(plan);
    if (!mesh.ok()) return mesh.status();
    const PlainPrices prices = PricesOf(*mesh, plan.dp + plan.hp + plan.pp);
    return transforms::ParallelTransform3d(step, transforms::ByFlops(plan), {.prices = &prices});
  }

  // With several microbatches where statistics of a batch do not forbid it.
  static ParallelPlan PlanOf(int64_t dp, int64_t hp, int64_t pp, bool exact) {
    return {.dp = dp, .hp = hp, .pp = pp, .microbatches = exact && pp > 1 && dp != 4 ? 2 : 1};
  }
};

TEST_P(SpreadModels, Verify) {
  const ir::Function step = SmallStep(GetParam());
  for (const int64_t hp : CasesToWalk({2, 3, 4, 8})) {
    for (const int64_t dp : {1, 2, 3, 4}) {
      for (const int64_t pp : {1, 2, 3, 4}) {
        const ParallelPlan plan = PlanOf(dp, hp, pp, GetParam().exact);
        const auto pipelined = Sharded(step, plan);
        ASSERT_TRUE(pipelined.ok()) << ToString(plan) << ": " << pipelined.status();
        for (const ir::Function& function : pipelined->Functions()) {
          ASSERT_TRUE(ir::Verify(function).ok()) << ToString(plan) << ": " << ir::Verify(function);
        }
      }
    }
  }
}

// Every two of the degrees of dp, hp and pp meet.
TEST_P(SpreadModels, AreTheSame) {
  const ir::Function step = SmallStep(GetParam());
  const semantics::Named inputs = semantics::RandomInputs(step, 7);
  const semantics::Named expected = semantics::RunAll(step, inputs).outputs;
  int64_t turn = 0;
  for (const int64_t hp : CasesToWalk({2, 3, 4, 8})) {
    for (const int64_t dp : {1, 2, 3, 4}) {
      const ParallelPlan plan =
          PlanOf(GetParam().exact ? dp : 1, hp, 1 + (turn + turn / 4) % 4, GetParam().exact);
      ++turn;
      SCOPED_TRACE(ToString(plan));
      const auto pipelined = Sharded(step, plan);
      ASSERT_TRUE(pipelined.ok()) << pipelined.status();
      const auto orders = semantics::OrdersOf("1f1b", *pipelined);
      const semantics::PipelinedOutcome outcome =
          semantics::RunPipelined(*pipelined, orders, inputs);
      semantics::ExpectSame(outcome.outputs, expected, 1e-8);
      EXPECT_LE(outcome.disagreement, 1e-8);
      EXPECT_EQ(outcome.lost, 0);
      if (HasFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Files, SpreadModels, testing::ValuesIn(CasesToWalk(Models())),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace spread_models_test_cc
}  // namespace orrery
