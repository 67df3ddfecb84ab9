#include "transforms/memory/offload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ir/models/mlp.h"
#include "ir/text/text.h"
#include "transforms/parallel.h"
#include "transforms/training/training_step.h"

namespace orrery::transforms {
namespace offload_test_cc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(OffloadPolicy, ReadsWhatItPrints) {
  for (const char* text : {"none", "activations", "optimizer", "optimizer+activations",
                           "activations:a[0-9]+", "optimizer+activations:x,y|z+"}) {
    const auto policy = ParseOffloadPolicy(text);
    ASSERT_TRUE(policy.ok()) << policy.status();
    EXPECT_EQ(ToString(*policy), text);
  }
  EXPECT_EQ(ToString(*ParseOffloadPolicy("activations,optimizer")), "optimizer+activations");
  EXPECT_EQ(ToString(*ParseOffloadPolicy("optimizer,activations:a,b")),
            "optimizer+activations:a,b");
}

TEST(OffloadPolicy, SaysWhatIsWrong) {
  for (const char* text : {"", "all", "optimizer,optimizer", "activations:", "activations:(",
                           "optimizer+", "optimizer,none", "activations,activations:x"}) {
    const auto policy = ParseOffloadPolicy(text);
    ASSERT_FALSE(policy.ok()) << text;
    EXPECT_THAT(policy.status().message(),
                HasSubstr(absl::StrCat("'", text, "': wanted none, optimizer, activations")));
  }
}

TEST(OffloadPolicy, ListsKeepThePatternsCommas) {
  EXPECT_THAT(ParseOffloadList("none,activations+optimizer,activations:x{1,2},optimizer").value(),
              ElementsAre("none", "optimizer+activations", "activations:x{1,2}", "optimizer"));
  EXPECT_FALSE(ParseOffloadList("none,some").ok());
}

struct Mlp {
  int64_t layers = 3;
  const char* optimizer = "none";
};

// Its step, as text.
std::string Offloaded(const Mlp& mlp, const char* policy, int64_t prefetch) {
  ir::Function step = ir::Mlp({.layers = mlp.layers, .dim = 4, .batch = 8}).value();
  EXPECT_TRUE(AppendOptimizer(step, mlp.optimizer).ok());
  const auto pipelined = ParallelTransform3d(
      step, {.offload = ParseOffloadPolicy(policy).value(), .offload_prefetch = prefetch});
  EXPECT_TRUE(pipelined.ok()) << pipelined.status();
  return pipelined.ok() ? ir::Print(pipelined->Functions()) : "";
}

TEST(OffloadActivations, CopiesOutAfterTheLastUseAndBackALayerAhead) {
  EXPECT_EQ(Offloaded({}, "activations", 1), R"(func @mlp.forward0 mesh(pp=1, dp=1, hp=1) (
  %x: f32[8,4] data,
  %w0: f32[4,4] parameter,
  %w1: f32[4,4] parameter,
  %w2: f32[4,4] parameter,
  %z: f32[8,4] data
) {
  %y0: f32[8,4] = MatMul(%x, %w0)
  %a0: f32[8,4] = Relu(%y0)
  %y0.host: f32[8,4] = Identity(%y0) {layer=0, memory="host"}
  %y1: f32[8,4] = MatMul(%a0, %w1)
  %a0.host: f32[8,4] = Identity(%a0) {layer=1, memory="host"}
  %a1: f32[8,4] = Relu(%y1)
  %y1.host: f32[8,4] = Identity(%y1) {layer=1, memory="host"}
  %y2: f32[8,4] = MatMul(%a1, %w2)
  %a2: f32[8,4] = Relu(%y2)
  %l: f32[8,4] = Loss(%a2, %z) {batch=8}
  %dl: f32[8,4] = LossGrad(%a2, %z) {batch=8}
  return %y2: saved, %dl: saved, %a1: saved, %y1.host: saved, %a0.host: saved, %y0.host: saved, %l: loss
}

func @mlp.backward0 mesh(pp=1, dp=1, hp=1) (
  %y2: f32[8,4] saved,
  %dl: f32[8,4] saved,
  %a1: f32[8,4] saved,
  %w2: f32[4,4] parameter,
  %y1: f32[8,4] saved,
  %a0: f32[8,4] saved,
  %w1: f32[4,4] parameter,
  %y0: f32[8,4] saved,
  %x: f32[8,4] data,
  %w0: f32[4,4] parameter
) {
  %y1.device: f32[8,4] = Identity(%y1) {memory="device"}
  %a0.device: f32[8,4] = Identity(%a0) {memory="device"}
  %da2: f32[8,4] = ReluGrad(%y2, %dl)
  %dy2: f32[8,4], %dw2: f32[4,4] = MatMulGrad(%a1, %w2, %da2)
  %y0.device: f32[8,4] = Identity(%y0) {memory="device"}
  %da1: f32[8,4] = ReluGrad(%y1.device, %dy2)
  %dy1: f32[8,4], %dw1: f32[4,4] = MatMulGrad(%a0.device, %w1, %da1)
  %da0: f32[8,4] = ReluGrad(%y0.device, %dy1)
  %dy0: f32[8,4], %dw0: f32[4,4] = MatMulGrad(%x, %w0, %da0)
  return %dw2: gradient(%w2), %dw1: gradient(%w1), %dy0: result, %dw0: gradient(%w0)
}
)");
}

// Where each copy back stands among the ops of backward.
std::string OrderOfBackward(int64_t prefetch) {
  std::string order;
  const std::string text = Offloaded({.layers = 4}, "activations", prefetch);
  const size_t begin = text.find("@mlp.backward0");
  for (const absl::string_view line : absl::StrSplit(text.substr(begin), '\n')) {
    if (!absl::StrContains(line, " = ")) continue;
    const bool copy = absl::StrContains(line, "Identity");
    absl::StrAppend(&order,
                    copy                              ? line.substr(3, 2)
                    : absl::StrContains(line, "Relu") ? "|"
                                                      : "*",
                    " ");
  }
  return order;
}

TEST(OffloadActivations, CopiesBackAsFarAheadAsToldTo) {
  EXPECT_EQ(OrderOfBackward(0), "| * y2 | a1 * y1 | a0 * y0 | * ");
  EXPECT_EQ(OrderOfBackward(1), "y2 a1 | * y1 a0 | * y0 | * | * ");
  EXPECT_EQ(OrderOfBackward(2), "y2 a1 y1 a0 | * y0 | * | * | * ");
  EXPECT_EQ(OrderOfBackward(3), "y2 a1 y1 a0 y0 | * | * | * | * ");
}

TEST(OffloadOptimizer, RunsParameterByParameterAsGradientsCome) {
  const std::string text = Offloaded({.layers = 2, .optimizer = "momentum"}, "optimizer", 1);
  EXPECT_EQ(text.substr(text.find("func @mlp.update0")),
            R"(func @mlp.update0 mesh(pp=1, dp=1, hp=1) (
  %w1: f32[4,4] parameter,
  %w0: f32[4,4] parameter,
  %w1.m: f32[4,4] state,
  %w0.m: f32[4,4] state,
  %dw1: f32[4,4] saved,
  %dw0: f32[4,4] saved
) {
  %dw1.host: f32[4,4] = Identity(%dw1) {memory="host"}
  %dw0.host: f32[4,4] = Identity(%dw0) {memory="host"}
  %w1'.host: f32[4,4], %w1.m': f32[4,4] = Momentum(%w1, %w1.m, %dw1.host) {memory="host", parameters=1}
  %w1': f32[4,4] = Identity(%w1'.host) {memory="device"}
  %w0'.host: f32[4,4], %w0.m': f32[4,4] = Momentum(%w0, %w0.m, %dw0.host) {memory="host", parameters=1}
  %w0': f32[4,4] = Identity(%w0'.host) {memory="device"}
  return %w1': updated(%w1), %w0': updated(%w0), %w1.m': updated(%w1.m), %w0.m': updated(%w0.m)
}
)");
}

TEST(OffloadActivations, SaysWhenAPatternFindsNothing) {
  ir::Function step = ir::Mlp({.layers = 2, .dim = 4, .batch = 8}).value();
  const ParallelPlan plan = {.offload = ParseOffloadPolicy("activations:nothing").value()};
  EXPECT_THAT(ParallelTransform3d(step, plan).status().message(),
              HasSubstr("'activations:nothing': finds no value that forward leaves for backward"));
}

}  // namespace
}  // namespace offload_test_cc
}  // namespace orrery::transforms
