#include "transforms/memory/keep_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/text/text.h"

namespace orrery::transforms {
namespace keep_plan_test_cc {
namespace {

// Two layers of a residual net, the second of which looks at its input through views. Places: p0
// 0, g0 1, y0 2; f0 3, v0 4, p1 5, g1 6, y1 7; l 8, dy1 9.
constexpr char kResidual[] = R"(func @forward (
  %x: f32[4,8] data,
  %w0: f32[8,8] parameter,
  %w1: f32[8,8] parameter,
  %z: f32[4,8] data
) {
  %p0: f32[4,8] = MatMul(%x, %w0)
  %g0: f32[4,8] = Gelu(%p0)
  %y0: f32[4,8] = Add(%x, %g0)
  %f0: f32[2,2,8] = Reshape(%y0) {shape=[2, 2, 8]}
  %v0: f32[4,8] = Reshape(%f0) {shape=[4, 8]}
  %p1: f32[4,8] = MatMul(%v0, %w1)
  %g1: f32[4,8] = Gelu(%p1)
  %y1: f32[4,8] = Add(%y0, %g1)
  %l: f32[4,8] = Loss(%y1, %z) {batch=4}
  %dy1: f32[4,8] = LossGrad(%y1, %z) {batch=4}
  return %dy1: saved, %p1: saved, %y0: saved, %p0: saved, %l: loss
}
)";
const std::vector<LayerRange> kLayers = {{.begin = 0, .end = 3}, {.begin = 3, .end = 8}};

// The core of an attention: the product of two activations, by way of `normalize`, with a third.
std::string Attention(absl::string_view normalize) {
  return absl::StrCat(R"(func @forward (
  %x: f32[4,8] data,
  %w: f32[8,8] parameter
) {
  %q: f32[4,8] = MatMul(%x, %w)
  %s: f32[4,4] = MatMul(%q, %q) {transpose_w=1}
  %p: f32[4,4] = )",
                      normalize, R"(
  %o: f32[4,8] = MatMul(%p, %q)
  return %q: saved, %s: saved, %p: saved, %o: saved
}
)");
}

// "p0 p1; 2 dropped": what is rematerialized, in the order of the ops.
std::string Again(const std::string& text, const KeepRule& rule,
                  const std::vector<LayerRange>& layers = {}) {
  const ir::Function forward = ir::ParseFunction(text).value();
  IdTable<ir::ValueId, char> saved(forward.value_limit(), 0);
  for (const ir::Output& output : forward.outputs()) {
    saved[output.value] = output.role == ir::OutputRole::kSaved ? 1 : 0;
  }
  const KeepPlan plan = PlanToKeep(forward, rule, layers, saved);
  EXPECT_EQ(plan.rematerialized.size(), forward.value_limit());
  for (const ir::Input& input : forward.inputs()) EXPECT_EQ(plan.rematerialized[input.value], 0);
  std::vector<std::string> rematerialized;
  for (const ir::OpId op : forward.order()) {
    for (int32_t i = 0; i < forward.result_count(op); ++i) {
      const ir::ValueId value = forward.result(op, i);
      if (plan.rematerialized[value] != 0) rematerialized.emplace_back(forward.value_name(value));
    }
  }
  return absl::StrCat(absl::StrJoin(rematerialized, " "), "; ", plan.dropped, " dropped");
}

TEST(PlanToKeep, KeepsEverythingUnlessItIsTold) {
  EXPECT_EQ(Again(kResidual, {}, kLayers), "; 0 dropped");
}

// y0 crosses the end of its layer, y1 that of the last one.
TEST(PlanToKeep, KeepsWhatCrossesTheEndsOfLayers) {
  EXPECT_EQ(Again(kResidual, {.policy = {.record = &kLayersRecompute}}, kLayers),
            "p0 g0 f0 v0 p1 g1; 2 dropped");
}

TEST(PlanToKeep, KeepsLessOfGroupsOfLayers) {
  for (const int64_t every : {2, 3, 1000}) {
    EXPECT_EQ(Again(kResidual, {.policy = {.record = &kLayersRecompute, .every = every}}, kLayers),
              "p0 g0 y0 f0 v0 p1 g1; 3 dropped")
        << every;
  }
}

TEST(PlanToKeep, KeepsWhatIsMadeOutsideOfLayers) {
  const KeepRule rule = {.policy = {.record = &kLayersRecompute}};
  EXPECT_EQ(Again(kResidual, rule, {{.begin = 3, .end = 8}}), "f0 v0 p1 g1; 1 dropped");
  // A view is looked at again.
  EXPECT_EQ(Again(kResidual, rule, {}), "f0 v0; 0 dropped");
}

// Values that nobody reads are rematerialized, rather than kept: their operands lead to some that
// are.
TEST(PlanToKeep, RunsAgainWhatMatches) {
  const auto matching = [](const char* pattern) {
    return Again(kResidual, {.policy = {.record = &kMatchingRecompute, .pattern = pattern}});
  };
  EXPECT_EQ(matching("^p"), "p0 g0 f0 v0 p1 g1 y1 l; 2 dropped");
  EXPECT_EQ(matching("^p0$"), "p0 g0 f0 v0 g1 y1 l; 1 dropped");
  EXPECT_EQ(matching("y"), "g0 y0 f0 v0 g1 y1 l dy1; 2 dropped");
  EXPECT_EQ(matching("nothing"), "g0 f0 v0 g1 y1 l; 0 dropped");
}

TEST(PlanToKeep, DropsTheScoresOfAttention) {
  const KeepRule selective = {.policy = {.record = &kSelectiveRecompute}};
  EXPECT_EQ(Again(Attention("Softmax(%s) {axis=1}"), selective), "s p; 2 dropped");
  EXPECT_EQ(Again(Attention("Exp(%s)"), selective), "s p; 2 dropped");
  // A product of two activations is no attention without a softmax.
  EXPECT_EQ(Again(Attention("Relu(%s)"), selective), "; 0 dropped");
  EXPECT_EQ(Again(kResidual, selective), "g0 f0 v0 g1 y1 l; 0 dropped");
}

// Products of a parameter and an activation, in either order, are no scores, whatever follows.
TEST(PlanToKeep, ProductsOfParametersAreNoScores) {
  const auto mixed = [](const char* scores) {
    return absl::StrCat(R"(func @forward (
  %x: f32[8,8] data,
  %w: f32[8,8] parameter
) {
  %s: f32[8,8] = )",
                        scores, R"(
  %p: f32[8,8] = Softmax(%s) {axis=1}
  %o: f32[8,8] = MatMul(%p, %x)
  return %s: saved, %p: saved, %o: saved
}
)");
  };
  const KeepRule selective = {.policy = {.record = &kSelectiveRecompute}};
  EXPECT_EQ(Again(mixed("MatMul(%w, %x)"), selective), "; 0 dropped");
  EXPECT_EQ(Again(mixed("MatMul(%x, %w)"), selective), "; 0 dropped");
  EXPECT_EQ(Again(mixed("MatMul(%x, %x)"), selective), "s p; 2 dropped");
}

constexpr char kTable[] = R"(func @forward (
  %x: f32[4,8] data,
  %w: f32[8,8] parameter
) {
  %a: f32[8,8] = Gelu(%w)
  %b: f32[8,8] = Gelu(%a)
  %y: f32[4,8] = MatMul(%x, %b)
  return %b: saved, %y: result
}
)";

TEST(PlanToKeep, RunsAgainWhatIsMadeFromParametersAlone) {
  // `b` is read by a later phase, `a` is not; `y` is made from data.
  EXPECT_EQ(Again(kTable, {.policy = {.record = &kLayersRecompute}}), "a; 0 dropped");
}

constexpr char kGathered[] = R"(func @forward mesh(hp=2) (
  %x: f32[8@hp,4] data,
  %w: f32[4@hp,4] parameter
) {
  %x.whole: f32[8,4] = AllGather(%x) {axes="hp", dim=0}
  %w.whole: f32[4,4] = AllGather(%w) {axes="hp", dim=0}
  %y: f32[8,4] = MatMul(%x.whole, %w.whole)
  return %x.whole: saved, %w.whole: saved, %y: result
}
)";

// Activations alone; the part that they are gathered from is an input here.
TEST(PlanToKeep, GathersActivationsAgain) {
  EXPECT_EQ(Again(kGathered, {.gathers = true}), "x.whole; 1 dropped");
  EXPECT_EQ(Again(kGathered, {.gathers = false}), "; 0 dropped");
}

// What is gathered from a value that is made here keeps that value in its place.
TEST(PlanToKeep, KeepsThePartOfWhatItGathers) {
  constexpr char kPart[] = R"(func @forward mesh(hp=2) (
  %x: f32[8@hp,4] data
) {
  %a: f32[8@hp,4] = Gelu(%x)
  %b: f32[8@hp,4] = Gelu(%a)
  %b.whole: f32[8,4] = AllGather(%b) {axes="hp", dim=0}
  return %b.whole: saved
}
)";
  EXPECT_EQ(Again(kPart, {.policy = {.record = &kSelectiveRecompute}, .gathers = true}),
            "a b.whole; 1 dropped");
  EXPECT_EQ(Again(kPart, {.policy = {.record = &kSelectiveRecompute}}), "a b; 0 dropped");
}

// Sums over microbatches, and what they return together: a second time would count twice.
TEST(PlanToKeep, KeepsWhatMustNotHappenTwice) {
  constexpr char kTwice[] = R"(func @forward (
  %x: f32[4,8] data,
  %sum: f32[4,8] accumulator,
  %all: f32[16,8] accumulator
) {
  %a: f32[4,8] = Gelu(%x)
  %more: f32[4,8] = Accumulate(%sum, %a)
  %every: f32[16,8] = Collect(%all, %a) {microbatch=3}
  return %a: saved, %more: saved, %every: saved
}
)";
  const LayerRange all = {.begin = 0, .end = 3};
  EXPECT_EQ(Again(kTwice, {.policy = {.record = &kLayersRecompute}}, {all}), "a; 1 dropped");
}

}  // namespace
}  // namespace keep_plan_test_cc
}  // namespace orrery::transforms
