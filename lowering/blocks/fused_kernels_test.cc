#include "lowering/blocks/fused_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cluster/cluster.h"
#include "ir/text/text.h"
#include "lowering/blocks/pointwise_groups.h"

// Which ops are one kernel, and what that takes: a function written out op by op against the kernel
// that does the same.

namespace orrery::lowering {
namespace fused_kernels_test_cc {
namespace {

using testing::ElementsAre;

ir::Function Parsed(const std::string& inputs, const std::string& ops) {
  const auto function =
      ir::ParseFunction(absl::StrCat("func @f (", inputs, ") {\n", ops, "\nreturn %y: result\n}"));
  EXPECT_TRUE(function.ok()) << function.status();
  return function.ok() ? *function : ir::Function("none");
}

// The groups by the names of what they make, with those that stay inside in brackets.
std::vector<std::string> Groups(const std::string& inputs, const std::string& ops,
                                FusedOps fused = FusedOps::kAll) {
  const ir::Function function = Parsed(inputs, ops);
  const LocalTypes local(function);
  const PointwiseGroups groups = FindPointwiseGroups(function, local, fused);
  std::vector<std::string> lines;
  for (const std::vector<ir::OpId>& members : groups.members) {
    std::vector<std::string> names;
    for (const ir::OpId member : members) {
      const ir::ValueId result = function.result(member);
      const std::string name(function.value_name(result));
      names.push_back(groups.inside[result] != 0 ? absl::StrCat("[", name, "]") : name);
    }
    lines.push_back(absl::StrJoin(names, " "));
  }
  return lines;
}

// What a forward takes.
struct Taken {
  Duration time;
  int64_t bytes = 0;  // to and from memory
  int64_t peak = 0;   // of what it makes
};

Taken Take(const ir::Function& function, bool fuses, const std::string& model = "roofline") {
  transforms::StageFunction part = {.function = function, .origins = {}};
  for (int32_t v = 0; v < function.value_limit(); ++v) part.origins.push_back(ir::ValueId(v));
  const auto cost_model = cost_models::MakeCostModel(model).value();
  const auto cluster = cluster::ParseCluster("dgx-a100:1").value();
  simulator::Program program;
  const TaskTemplate made = LowerPhase(
      part,
      {.cost_model = *cost_model, .device = &cluster.device, .kernels = {.fuses_pointwise = fuses}},
      program);
  Taken taken;
  for (const TemplateTask& task : made.tasks) {
    taken.time += task.duration;
    taken.bytes += program.label(task.label).bytes.count();
  }
  int64_t now = 0;
  for (int32_t t = 0; t < static_cast<int32_t>(made.tasks.size()); ++t) {
    for (const int sign : {1, -1}) {
      for (const TemplateMemory& memory : made.memory) {
        if (memory.task == t && memory.bytes * sign > 0) now += memory.bytes;
      }
      taken.peak = std::max(taken.peak, now);
    }
  }
  return taken;
}

// x [64,128,256] of bf16 is 4 MiB.
constexpr char kX[] = "%x: bf16[64,128,256] data";
constexpr int64_t kSize = int64_t{4} << 20;

constexpr char kTanhGelu[] = R"(
  %c: bf16[64,128,256] = Mul(%x, %x)
  %d: bf16[64,128,256] = Mul(%c, %x)
  %e: bf16[64,128,256] = Scale(%d) {factor=0.044715}
  %f: bf16[64,128,256] = Add(%x, %e)
  %g: bf16[64,128,256] = Scale(%f) {factor=0.7978845608}
  %h: bf16[64,128,256] = Tanh(%g)
  %i: bf16[64,128,256] = Scale(%x) {factor=0.5}
  %j: bf16[64,128,256] = Mul(%i, %h)
  %y: bf16[64,128,256] = Add(%i, %j))";

constexpr char kErfGelu[] = R"(
  %c: bf16[64,128,256] = Scale(%x) {factor=0.70710678}
  %d: bf16[64,128,256] = Erf(%c)
  %e: bf16[64,128,256] = Mul(%x, %d)
  %f: bf16[64,128,256] = Add(%x, %e)
  %y: bf16[64,128,256] = Scale(%f) {factor=0.5})";

// Both take what the kernel takes, but for the launch of what is not there; half a percent for the
// arithmetic that they count.
void ExpectAlike(const std::string& inputs, const std::string& ops, const std::string& kernel) {
  const Taken fused = Take(Parsed(inputs, ops), true), one = Take(Parsed(inputs, kernel), false);
  EXPECT_EQ(fused.bytes, one.bytes);
  EXPECT_EQ(fused.peak, one.peak);
  EXPECT_EQ(fused.time, one.time);
  const Taken unfused = Take(Parsed(inputs, ops), false);
  EXPECT_GT(unfused.time.picoseconds(), 2 * one.time.picoseconds());
  EXPECT_GE(unfused.peak, fused.peak);
}

TEST(FusedKernels, GeluWrittenOut) {
  ExpectAlike(kX, kTanhGelu, R"(%y: bf16[64,128,256] = Gelu(%x) {approximate="tanh"})");
  ExpectAlike(kX, kErfGelu, "%y: bf16[64,128,256] = Gelu(%x)");
  EXPECT_EQ(Take(Parsed(kX, kErfGelu), true).bytes, 2 * kSize);
}

TEST(FusedKernels, SwiGluWrittenOut) {
  ExpectAlike(absl::StrCat(kX, ", %z: bf16[64,128,256] data"), R"(
  %c: bf16[64,128,256] = Sigmoid(%x)
  %d: bf16[64,128,256] = Mul(%x, %c)
  %y: bf16[64,128,256] = Mul(%d, %z))",
              "%y: bf16[64,128,256] = SwiGlu(%x, %z)");
}

// In f32, with casts on both sides, as Llama has it.
TEST(FusedKernels, RmsNormWrittenOut) {
  const std::string inputs = absl::StrCat(kX, ", %w: bf16[256] parameter");
  const std::string ops = R"(
  %c: f32[64,128,256] = Cast(%x) {to="f32"}
  %d: f32[64,128,256] = Mul(%c, %c)
  %e: f32[64,128,1] = ReduceMean(%d) {axes=[2], keepdims=1}
  %o: f32[] = Constant() {values=[1e-5]}
  %f: f32[64,128,1] = Add(%e, %o)
  %g: f32[64,128,1] = Rsqrt(%f)
  %h: f32[64,128,256] = Mul(%c, %g)
  %i: bf16[64,128,256] = Cast(%h) {to="bf16"}
  %y: bf16[64,128,256] = Mul(%i, %w))";
  const Taken fused = Take(Parsed(inputs, ops), true);
  EXPECT_THAT(Groups(inputs, ops), ElementsAre("[c] [d] [e] [f] [g] [h] [i] y"));
  EXPECT_EQ(fused.bytes, 2 * kSize + 2 * 256 + 4);  // and the constant
  EXPECT_EQ(fused.peak, kSize);
  EXPECT_GT(Take(Parsed(inputs, ops), false).bytes, 10 * kSize);
}

TEST(FusedKernels, RotaryPositionsWrittenOut) {
  const std::string inputs =
      "%x: bf16[64,8,128,32] data, %c: bf16[128,32] buffer, %s: bf16[128,32] buffer";
  const std::string ops = R"(
  %a: bf16[64,8,128,16] = Slice(%x) {axes=[3], ends=[16], starts=[0], steps=[1]}
  %b: bf16[64,8,128,16] = Slice(%x) {axes=[3], ends=[32], starts=[16], steps=[1]}
  %n: bf16[64,8,128,16] = Neg(%b)
  %r: bf16[64,8,128,32] = Concat(%n, %a) {axis=3}
  %d: bf16[64,8,128,32] = Mul(%x, %c)
  %e: bf16[64,8,128,32] = Mul(%r, %s)
  %y: bf16[64,8,128,32] = Add(%d, %e))";
  EXPECT_THAT(Groups(inputs, ops), ElementsAre("[n] [r] [d] [e] y"));
  ExpectAlike(inputs, ops, "%y: bf16[64,8,128,32] = Rotary(%x, %c, %s)");
}

// A bias, dropout and a residual: reads both, writes the sum, and the mask where backward wants it.
TEST(FusedKernels, ResidualAndDropout) {
  const std::string inputs =
      absl::StrCat(kX, ", %z: bf16[64,128,256] data, %b: bf16[256] parameter");
  const std::string ops = R"(
  %c: bf16[64,128,256] = Add(%x, %b)
  %d: bf16[64,128,256], %m: bool[64,128,256] = Dropout(%c) {ratio=0.5}
  %y: bf16[64,128,256] = Add(%d, %z))";
  EXPECT_THAT(Groups(inputs, ops), ElementsAre("[c] [d] y"));
  EXPECT_EQ(Take(Parsed(inputs, ops), true).bytes, 3 * kSize + 2 * 256);
  EXPECT_EQ(Take(Parsed(inputs, ops), true).peak, kSize);
}

// Megatron's bias_dropout_fusion: whatever else stands there is a kernel of its own.
TEST(PointwiseGroups, OfADropoutAndItsSumAlone) {
  const std::string inputs = "%x: bf16[8,16] data, %r: bf16[8,16] data";
  const std::string ops = R"(
  %a: bf16[8,16] = Relu(%x)
  %d: bf16[8,16], %m: bool[8,16] = Dropout(%a) {ratio=0.1}
  %s: bf16[8,16] = Add(%r, %d)
  %t: bf16[8,16] = Add(%s, %r)
  %y: bf16[8,16] = Relu(%t)
)";
  EXPECT_THAT(Groups(inputs, ops, FusedOps::kDropoutSums), ElementsAre("[d] s"));
  EXPECT_THAT(Groups(inputs, ops), ElementsAre("[a] [d] [s] [t] y"));
}

TEST(PointwiseGroups, ProductsAreKernelsOfTheirOwn) {
  EXPECT_THAT(Groups("%x: f32[8,8] data, %w: f32[8,8] parameter", R"(
  %a: f32[8,8] = Relu(%x)
  %b: f32[8,8] = Neg(%a)
  %c: f32[8,8] = MatMul(%b, %w)
  %d: f32[8,8] = Relu(%c)
  %y: f32[8,8] = Scale(%d) {factor=2.0})"),
              ElementsAre("[a] b", "[d] y"));
}

// The sum reads what the group makes by way of a product: it cannot be in it.
TEST(PointwiseGroups, CopiesOfEightBitsMayBeKernelsOfTheirOwn) {
  const std::string ops = R"(
  %a: bf16[64,128,256] = Gelu(%x)
  %b: bf16[64,128,256] = Mul(%a, %x)
  %y: f8[64,128,256] = Cast(%b) {to="f8"})";
  EXPECT_THAT(Groups(kX, ops), ElementsAre("[a] [b] y"));
  EXPECT_THAT(Groups(kX, ops, FusedOps::kAllButCopies), ElementsAre("[a] b"));
  const std::string wide = R"(
  %a: bf16[64,128,256] = Gelu(%x)
  %y: f32[64,128,256] = Cast(%a) {to="f32"})";
  EXPECT_THAT(Groups(kX, wide, FusedOps::kAllButCopies), ElementsAre("[a] y"));
}

TEST(PointwiseGroups, NoWayLeadsBack) {
  EXPECT_THAT(Groups("%x: f32[8,8] data, %w: f32[8,8] parameter", R"(
  %a: f32[8,8] = Relu(%x)
  %b: f32[8,8] = Neg(%a)
  %c: f32[8,8] = MatMul(%b, %w)
  %d: f32[8,8] = Add(%a, %c)
  %y: f32[8,8] = Relu(%d))"),
              ElementsAre("a b", "[d] y"));
  // Nor through two groups: d is behind a product of a, and e of both.
  EXPECT_THAT(Groups("%x: f32[8,8] data, %z: f32[8,8] data, %w: f32[8,8] parameter", R"(
  %a: f32[8,8] = Relu(%x)
  %b: f32[8,8] = MatMul(%a, %w)
  %d: f32[8,8] = Add(%b, %z)
  %e: f32[8,8] = Neg(%d)
  %y: f32[8,8] = Add(%a, %e))"),
              ElementsAre("[d] [e] y"));
}

// %z would wait for %c2, whose kernel waits for %a by way of %c1.
TEST(PointwiseGroups, NoWayLeadsBackThroughAnotherKernel) {
  EXPECT_THAT(Groups("%p: f32[64,64] data, %x: f32[8,64,64] data, %w: f32[8,64,64] data, "
                     "%v: f32[64,64] parameter",
                     R"(
  %a: f32[64,64] = Relu(%p)
  %c1: f32[8,64,64] = Add(%x, %a)
  %c2: f32[8,64,64] = Mul(%x, %w)
  %c3: f32[8,64,64] = Add(%c1, %c2)
  %m: f32[8,64,64] = MatMul(%c2, %v)
  %r: f32[64,64] = ReduceSum(%m) {axes=[0]}
  %z: f32[64,64] = Add(%a, %r)
  %y: f32[8,64,64] = MatMul(%c3, %z))"),
              ElementsAre("[c1] c2 c3"));
}

// Sums over the first dimensions, of a bias's gradient, are kernels of their own; those over the
// last go with what they sum up, and what is read with them.
TEST(PointwiseGroups, OfReductions) {
  EXPECT_THAT(Groups("%x: f32[8,4] data", R"(
  %a: f32[8,4] = Relu(%x)
  %b: f32[8,4] = Neg(%a)
  %y: f32[4] = ReduceSum(%b) {axes=[0]})"),
              ElementsAre("[a] b"));
  EXPECT_THAT(Groups("%x: f32[8,4] data", R"(
  %a: f32[8,4] = Relu(%x)
  %s: f32[8,1] = ReduceMax(%a) {axes=[1], keepdims=1}
  %d: f32[8,4] = Sub(%a, %s)
  %e: f32[8,4] = Exp(%d)
  %t: f32[8,1] = ReduceSum(%e) {axes=[1], keepdims=1}
  %y: f32[8,4] = Div(%e, %t))"),
              ElementsAre("[a] [s] [d] [e] [t] y"));
}

// What two kernels of another size read is made once, and written.
TEST(PointwiseGroups, OtherSizesGoTogetherWhereNobodyElseReads) {
  EXPECT_THAT(Groups("%x: f32[1,8] data, %z: f32[4,8] data", R"(
  %a: f32[1,8] = Exp(%x)
  %y: f32[4,8] = Add(%a, %z))"),
              ElementsAre("[a] y"));
  EXPECT_THAT(Groups("%x: f32[1,8] data, %z: f32[4,8] data, %u: f32[8,8] data", R"(
  %a: f32[1,8] = Exp(%x)
  %b: f32[4,8] = Add(%a, %z)
  %c: f32[8,8] = Add(%a, %u)
  %y: f32[12,8] = Concat(%b, %c) {axis=0})"),
              ElementsAre("[b] [c] y"));
}

TEST(PointwiseGroups, OfManyOpsAreSeveral) {
  std::string ops = "%a0: f32[8] = Relu(%x)\n";
  for (int i = 1; i < 100; ++i) {
    absl::StrAppend(&ops, "%a", i, ": f32[8] = Neg(%a", i - 1, ")\n");
  }
  const ir::Function function = Parsed("%x: f32[8] data", ops + "%y: f32[8] = Neg(%a99)");
  const PointwiseGroups groups = FindPointwiseGroups(function, LocalTypes(function));
  ASSERT_EQ(groups.members.size(), 2U);
  EXPECT_EQ(groups.members[0].size(), 64U);
  EXPECT_EQ(groups.members[1].size(), 37U);
}

// A model that prices ops as a paper has them fuses none.
TEST(FusedKernels, NotWhereTheCostModelHasNone) {
  const ir::Function gelu = Parsed(kX, kErfGelu);
  EXPECT_EQ(Take(gelu, true, "distir").time, Take(gelu, false, "distir").time);
}

}  // namespace
}  // namespace fused_kernels_test_cc
}  // namespace orrery::lowering
