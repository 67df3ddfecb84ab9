#include "transforms/memory/recompute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "transforms/memory/recompute_test_util.h"
#include "transforms/memory/rematerialize.h"
#include "transforms/stages/stage_parts_test_util.h"

// Small stages as text: what forward keeps and what later phases rematerialize. That the numbers
// are the same is for tests/semantics to say.

namespace orrery::transforms {
namespace recompute_test_cc {
namespace {

// Two layers of a residual net, the second of which looks at its input through a view.
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
func @backward (
  %dy1: f32[4,8] saved,
  %p1: f32[4,8] saved,
  %y0: f32[4,8] saved,
  %w1: f32[8,8] parameter,
  %p0: f32[4,8] saved,
  %x: f32[4,8] data
) {
  %dp1: f32[4,8] = UnaryGrad(%p1, %dy1) {of="Gelu"}
  %f0: f32[2,2,8] = Reshape(%y0) {shape=[2, 2, 8]}
  %v0: f32[4,8] = Reshape(%f0) {shape=[4, 8]}
  %dv0: f32[4,8], %dw1: f32[8,8] = MatMulGrad(%v0, %w1, %dp1)
  %dy0: f32[4,8] = Add(%dy1, %dv0)
  %dp0: f32[4,8] = UnaryGrad(%p0, %dy0) {of="Gelu"}
  %dw0: f32[8,8] = MatMulWeightGrad(%x, %dp0)
  return %dw1: saved, %dw0: saved
}
)";

// The view is there before backward's own, which is not run a second time; each layer's product
// stands just before its gradient.
TEST(Recompute, KeepsInputsOfLayers) {
  EXPECT_EQ(Recomputed(kResidual, "full"), R"(  %p0: f32[4,8] = MatMul(%x, %w0)
  %g0: f32[4,8] = Gelu(%p0)
  %y0: f32[4,8] = Add(%x, %g0)
  %f0: f32[2,2,8] = Reshape(%y0) {shape=[2, 2, 8]}
  %v0: f32[4,8] = Reshape(%f0) {shape=[4, 8]}
  %p1: f32[4,8] = MatMul(%v0, %w1)
  %g1: f32[4,8] = Gelu(%p1)
  %y1: f32[4,8] = Add(%y0, %g1)
  %l: f32[4,8] = Loss(%y1, %z) {batch=4}
  %dy1: f32[4,8] = LossGrad(%y1, %z) {batch=4}
  return %dy1: saved, %y0: saved, %l: loss
  %f0: f32[2,2,8] = Reshape(%y0) {shape=[2, 2, 8]}
  %v0: f32[4,8] = Reshape(%f0) {shape=[4, 8]}
  %p1: f32[4,8] = MatMul(%v0, %w1)
  %dp1: f32[4,8] = UnaryGrad(%p1, %dy1) {of="Gelu"}
  %dv0: f32[4,8], %dw1: f32[8,8] = MatMulGrad(%v0, %w1, %dp1)
  %dy0: f32[4,8] = Add(%dy1, %dv0)
  %p0: f32[4,8] = MatMul(%x, %w0)
  %dp0: f32[4,8] = UnaryGrad(%p0, %dy0) {of="Gelu"}
  %dw0: f32[8,8] = MatMulWeightGrad(%x, %dp0)
  return %dw1: saved, %dw0: saved
)");
}

// As checkpoints of Megatron do: also what no gradient reads, but for the end of a layer, which has
// been kept.
TEST(Recompute, OfWholeLayersRunsAllOfThem) {
  EXPECT_THAT(Recomputed(kResidual, "full", /*whole=*/true), testing::EndsWith(R"(
  return %dy1: saved, %y0: saved, %l: loss
  %f0: f32[2,2,8] = Reshape(%y0) {shape=[2, 2, 8]}
  %v0: f32[4,8] = Reshape(%f0) {shape=[4, 8]}
  %p1: f32[4,8] = MatMul(%v0, %w1)
  %g1: f32[4,8] = Gelu(%p1)
  Drop(%g1)
  %dp1: f32[4,8] = UnaryGrad(%p1, %dy1) {of="Gelu"}
  %dv0: f32[4,8], %dw1: f32[8,8] = MatMulGrad(%v0, %w1, %dp1)
  %dy0: f32[4,8] = Add(%dy1, %dv0)
  %p0: f32[4,8] = MatMul(%x, %w0)
  %g0: f32[4,8] = Gelu(%p0)
  Drop(%g0)
  %dp0: f32[4,8] = UnaryGrad(%p0, %dy0) {of="Gelu"}
  %dw0: f32[8,8] = MatMulWeightGrad(%x, %dp0)
  return %dw1: saved, %dw0: saved
)"));
}

// One input for both: the first layer is rematerialized for the second, and holds what it will
// want.
TEST(Recompute, KeepsOneInputOfSeveralLayers) {
  EXPECT_THAT(Recomputed(kResidual, "every:2"), testing::EndsWith(R"(
  return %dy1: saved, %l: loss
  %p0: f32[4,8] = MatMul(%x, %w0)
  %g0: f32[4,8] = Gelu(%p0)
  %y0: f32[4,8] = Add(%x, %g0)
  %f0: f32[2,2,8] = Reshape(%y0) {shape=[2, 2, 8]}
  %v0: f32[4,8] = Reshape(%f0) {shape=[4, 8]}
  %p1: f32[4,8] = MatMul(%v0, %w1)
  %dp1: f32[4,8] = UnaryGrad(%p1, %dy1) {of="Gelu"}
  %dv0: f32[4,8], %dw1: f32[8,8] = MatMulGrad(%v0, %w1, %dp1)
  %dy0: f32[4,8] = Add(%dy1, %dv0)
  %dp0: f32[4,8] = UnaryGrad(%p0, %dy0) {of="Gelu"}
  %dw0: f32[8,8] = MatMulWeightGrad(%x, %dp0)
  return %dw1: saved, %dw0: saved
)"));
  EXPECT_EQ(Recomputed(kResidual, "every:2"), Recomputed(kResidual, "every:1000000000000"));
}

TEST(Recompute, OfNamesThatMatch) {
  EXPECT_THAT(Recomputed(kResidual, "match:^p1$"),
              testing::HasSubstr("return %dy1: saved, %y0: saved, %p0: saved, %l: loss"));
  // What is not kept leads to something that is.
  EXPECT_THAT(Recomputed(kResidual, "match:y0"), testing::EndsWith(R"(
  return %dy1: saved, %p1: saved, %p0: saved, %l: loss
  %dp1: f32[4,8] = UnaryGrad(%p1, %dy1) {of="Gelu"}
  %g0: f32[4,8] = Gelu(%p0)
  %y0: f32[4,8] = Add(%x, %g0)
  %f0: f32[2,2,8] = Reshape(%y0) {shape=[2, 2, 8]}
  %v0: f32[4,8] = Reshape(%f0) {shape=[4, 8]}
  %dv0: f32[4,8], %dw1: f32[8,8] = MatMulGrad(%v0, %w1, %dp1)
  %dy0: f32[4,8] = Add(%dy1, %dv0)
  %dp0: f32[4,8] = UnaryGrad(%p0, %dy0) {of="Gelu"}
  %dw0: f32[8,8] = MatMulWeightGrad(%x, %dp0)
  return %dw1: saved, %dw0: saved
)"));
  EXPECT_EQ(Recomputed(kResidual, "match:nothing"),
            "'match:nothing': finds no value that forward keeps for backward; opt names them "
            "with `stages`");
}

TEST(Recompute, OfNothingChangesNothing) {
  const StageParts parts(kResidual);
  for (const char* policy : {"none", "selective"}) {
    EXPECT_EQ(Recomputed(kResidual, policy), parts.Text(0) + parts.Text(1));
  }
}

// Attention as a graph may have it, with a mask that is made of data.
constexpr char kAttention[] = R"(func @forward (
  %q: f32[2,4,8] data,
  %k: f32[2,8,4] data,
  %v: f32[2,4,8] data,
  %m: f32[2,4,4] data,
  %w: f32[8,8] parameter
) {
  %mask: f32[2,4,4] = Scale(%m) {factor=2.0}
  %s: f32[2,4,4] = MatMul(%q, %k)
  %t: f32[2,4,4] = Add(%s, %mask)
  %p: f32[2,4,4] = Softmax(%t) {axis=2}
  %d: f32[2,4,4], %kept: bool[2,4,4] = Dropout(%p) {ratio=0.5}
  %y: f32[2,4,8] = MatMul(%d, %v)
  %o: f32[2,4,8] = MatMul(%y, %w)
  %g: f32[2,4,8] = Gelu(%o)
  return %g: result, %p: saved, %kept: saved, %d: saved, %y: saved, %o: saved
}
func @backward (
  %dg: f32[2,4,8] data,
  %o: f32[2,4,8] saved,
  %y: f32[2,4,8] saved,
  %w: f32[8,8] parameter,
  %d: f32[2,4,4] saved,
  %v: f32[2,4,8] data,
  %kept: bool[2,4,4] saved,
  %p: f32[2,4,4] saved
) {
  %do: f32[2,4,8] = UnaryGrad(%o, %dg) {of="Gelu"}
  %dy: f32[2,4,8], %dw: f32[8,8] = MatMulGrad(%y, %w, %do)
  %dd: f32[2,4,4] = MatMul(%dy, %v) {transpose_w=1}
  %dv: f32[2,4,8] = MatMul(%d, %dy) {transpose_x=1}
  %dp: f32[2,4,4] = DropoutGrad(%kept, %dd) {ratio=0.5}
  %dt: f32[2,4,4] = SoftmaxGrad(%p, %dp) {axis=2}
  return %dt: result, %dv: result, %dw: saved
}
)";

TEST(Recompute, SelectsTheCoreOfAttention) {
  EXPECT_THAT(Recomputed(kAttention, "selective"), testing::EndsWith(R"(
  return %g: result, %y: saved, %o: saved
  %do: f32[2,4,8] = UnaryGrad(%o, %dg) {of="Gelu"}
  %dy: f32[2,4,8], %dw: f32[8,8] = MatMulGrad(%y, %w, %do)
  %dd: f32[2,4,4] = MatMul(%dy, %v) {transpose_w=1}
  %mask: f32[2,4,4] = Scale(%m) {factor=2.0}
  %s: f32[2,4,4] = MatMul(%q, %k)
  %t: f32[2,4,4] = Add(%s, %mask)
  %p: f32[2,4,4] = Softmax(%t) {axis=2}
  %d: f32[2,4,4], %kept: bool[2,4,4] = Dropout(%p) {ratio=0.5}
  %dv: f32[2,4,8] = MatMul(%d, %dy) {transpose_x=1}
  %dp: f32[2,4,4] = DropoutGrad(%kept, %dd) {ratio=0.5}
  %dt: f32[2,4,4] = SoftmaxGrad(%p, %dp) {axis=2}
  return %dt: result, %dv: result, %dw: saved
)"));
}

// In one op: with flash it keeps nothing that large.
std::string FusedAttention(absl::string_view flash, absl::string_view statistics) {
  return absl::StrCat(R"(func @forward (
  %q: f32[2,4,8] data
) {
  %y: f32[2,4,8], %p: f32)",
                      statistics, " = Attention(%q, %q, %q) {flash=", flash,
                      ", heads=2}\n  return %y: saved, %p: saved\n}\n", R"(func @backward (
  %q: f32[2,4,8] data,
  %dy: f32[2,4,8] data,
  %y: f32[2,4,8] saved,
  %p: f32)",
                      statistics, R"( saved
) {
  %dq: f32[2,4,8], %dk: f32[2,4,8], %dv: f32[2,4,8] = AttentionGrad(%q, %q, %q, %y, %p, %dy) {flash=)",
                      flash, ", heads=2}\n  return %dq: result\n}\n");
}

TEST(Recompute, SelectsProbabilitiesOfFusedAttention) {
  EXPECT_EQ(Recomputed(FusedAttention("0", "[2,2,4,4]"), "selective"),
            R"(  %y: f32[2,4,8], %p: f32[2,2,4,4] = Attention(%q, %q, %q) {flash=0, heads=2}
  return %y: saved
  %3: f32[2,4,8], %p: f32[2,2,4,4] = Attention(%q, %q, %q) {flash=0, heads=2}
  %dq: f32[2,4,8], %dk: f32[2,4,8], %dv: f32[2,4,8] = AttentionGrad(%q, %q, %q, %y, %p, %dy) {flash=0, heads=2}
  return %dq: result
)");
  EXPECT_THAT(Recomputed(FusedAttention("1", "[2,2,4]"), "selective"),
              testing::HasSubstr("return %y: saved, %p: saved"));
}

// What other stages have sent is kept, and what update reads is neither lost nor rematerialized for
// it.
TEST(Recompute, RematerializesNoReceive) {
  EXPECT_EQ(Recomputed(R"(func @forward (
  %w: f32[8,8] parameter,
  %c: f32[8] parameter
) {
  %x: f32[4,8] = Receive() {from=0, tag="x"}
  %p: f32[4,8] = MatMul(%x, %w)
  %g: f32[4,8] = Gelu(%p)
  %n: f32[8] = Scale(%c) {factor=2.0}
  Send(%g) {tag="g", to=2}
  return %p: saved, %n: saved
}
func @backward (
  %p: f32[4,8] saved
) {
  %dg: f32[4,8] = Receive() {from=2, tag="dg"}
  %dp: f32[4,8] = UnaryGrad(%p, %dg) {of="Gelu"}
  return %dp: saved
}
func @update (
  %n: f32[8] saved
) {
  %m: f32[8] = Scale(%n) {factor=2.0}
  return %m: result
}
)",
                       "full"),
            R"(  %x: f32[4,8] = Receive() {from=0, tag="x"}
  %p: f32[4,8] = MatMul(%x, %w)
  %g: f32[4,8] = Gelu(%p)
  %n: f32[8] = Scale(%c) {factor=2.0}
  Send(%g) {tag="g", to=2}
  return %n: saved, %x: saved
  %dg: f32[4,8] = Receive() {from=2, tag="dg"}
  %p: f32[4,8] = MatMul(%x, %w)
  %dp: f32[4,8] = UnaryGrad(%p, %dg) {of="Gelu"}
  return %dp: saved
)");
}

// A backward in two parts: the first runs what it needs and leaves for the second what that wants
// of it; the second runs the rest.
TEST(Rematerialize, ForTwoLaterPhases) {
  StageParts parts(R"(func @forward (
  %x: f32[4,8] data,
  %w0: f32[8,8] parameter,
  %w1: f32[8,8] parameter
) {
  %p0: f32[4,8] = MatMul(%x, %w0)
  %g0: f32[4,8] = Gelu(%p0)
  %p1: f32[4,8] = MatMul(%g0, %w1)
  %g1: f32[4,8] = Gelu(%p1)
  return %p0: saved, %g0: saved, %p1: saved, %g1: saved
}
func @inputs (
  %dg1: f32[4,8] data,
  %p1: f32[4,8] saved,
  %w1: f32[8,8] parameter
) {
  %dp1: f32[4,8] = UnaryGrad(%p1, %dg1) {of="Gelu"}
  %dg0: f32[4,8] = MatMul(%dp1, %w1) {transpose_w=1}
  return %dp1: saved, %dg0: result
}
func @weights (
  %dp1: f32[4,8] saved,
  %g0: f32[4,8] saved,
  %g1: f32[4,8] saved
) {
  %dw1: f32[8,8] = MatMulWeightGrad(%g0, %dp1)
  %s: f32[4,8] = Add(%g1, %dp1)
  return %dw1: saved, %s: result
}
)");
  StageFunction& forward = parts.parts()[0];
  StageFunction* const later[] = {&parts.parts()[1], &parts.parts()[2]};
  const LayerRange all[] = {{.begin = 0, .end = 4}};
  const KeepPlan plan =
      PlanToKeep(forward.function, {.policy = ParseRecomputePolicy("full").value()}, all,
                 FindSaved(forward, later));
  EXPECT_EQ(plan.dropped, 3);  // of p0, which nobody reads, nothing is said
  Rematerialize(plan, later, {}, forward);
  EXPECT_EQ(absl::StrCat(parts.Text(0), parts.Text(1), parts.Text(2)), R"(  return
  %p0: f32[4,8] = MatMul(%x, %w0)
  %g0: f32[4,8] = Gelu(%p0)
  %p1: f32[4,8] = MatMul(%g0, %w1)
  %dp1: f32[4,8] = UnaryGrad(%p1, %dg1) {of="Gelu"}
  %dg0: f32[4,8] = MatMul(%dp1, %w1) {transpose_w=1}
  return %dp1: saved, %dg0: result, %g0: saved, %p1: saved
  %dw1: f32[8,8] = MatMulWeightGrad(%g0, %dp1)
  %g1: f32[4,8] = Gelu(%p1)
  %s: f32[4,8] = Add(%g1, %dp1)
  return %dw1: saved, %s: result
)");
}

// Parts are kept instead of the whole, and gathered again where it is read.
TEST(Recompute, RematerializesGathers) {
  const std::string text = R"(func @forward mesh(hp=2) (
  %x: f32[4,8@hp] data,
  %w: f32[8,8] parameter
) {
  %n: f32[4,8@hp] = Gelu(%x)
  %a: f32[4,8] = AllGather(%n) {axes="hp", dim=1}
  %p: f32[4,8] = MatMul(%a, %w)
  %y: f32[4,8] = Gelu(%p)
  return %y: result, %a: saved, %p: saved
}
func @backward mesh(hp=2) (
  %dy: f32[4,8] data,
  %a: f32[4,8] saved,
  %p: f32[4,8] saved
) {
  %dp: f32[4,8] = UnaryGrad(%p, %dy) {of="Gelu"}
  %dw: f32[8,8] = MatMulWeightGrad(%a, %dp)
  return %dw: saved
}
)";
  StageParts parts(text);
  PipelinedStep step;
  step.stages.emplace_back();
  step.stages[0].forward = parts.parts()[0];
  step.stages[0].backward = parts.parts()[1];
  ASSERT_TRUE(Recompute(step, {.gathers = true}).ok());
  parts.parts()[0] = step.stages[0].forward;
  parts.parts()[1] = step.stages[0].backward;
  EXPECT_THAT(parts.Text(0), testing::EndsWith("  return %y: result, %p: saved, %n: saved\n"));
  EXPECT_EQ(parts.Text(1), R"(  %dp: f32[4,8] = UnaryGrad(%p, %dy) {of="Gelu"}
  %a: f32[4,8] = AllGather(%n) {axes="hp", dim=1}
  %dw: f32[8,8] = MatMulWeightGrad(%a, %dp)
  return %dw: saved
)");
}

}  // namespace
}  // namespace recompute_test_cc
}  // namespace orrery::transforms
