#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "ir/op_info.h"
#include "ir/text/text.h"
#include "lowering/blocks/pointwise_groups.h"
#include "simulator/engine/play.h"
#include "support/sanitized_test_util.h"
#include "tests/lowering/played.h"
#include "tests/semantics/random_step.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/training/training_step.h"

// Training steps of a function that is written out op by op, where a compiler fuses element-wise
// ops: against those of the one op that says the same.

namespace orrery::lowering {
namespace fused_steps_test_cc {
namespace {

// Between two products and a loss: of h and of g, what `ops` make is y.
ir::Function StepOf(const std::string& ops) {
  const std::string text = absl::StrCat(R"(func @f (
  %x: bf16[64,128,256] data, %z: bf16[64,128,256] data, %c: bf16[128,256] buffer, %s: bf16[128,256] buffer,
  %w: bf16[256,256] parameter, %v: bf16[256,256] parameter, %u: bf16[256,256] parameter, %gain: bf16[256] parameter
) {
  %h: bf16[64,128,256] = MatMul(%x, %w)
  %g: bf16[64,128,256] = MatMul(%x, %v)
)",
                                        ops, R"(
  %scaled: bf16[64,128,256] = Mul(%y, %gain)
  %q: bf16[64,128,256] = MatMul(%scaled, %u)
  %r: bf16[64,128,256] = Add(%q, %g)
  %l: bf16[64,128,256] = Loss(%r, %z) {batch=64}
  return %l: loss
})");
  auto function = ir::ParseFunction(text);
  EXPECT_TRUE(function.ok()) << function.status();
  if (!function.ok()) return ir::Function("none");
  EXPECT_TRUE(transforms::AppendOptimizer(*function, "sgd").ok());
  return *std::move(function);
}

Played PlayStep(const ir::Function& step, bool fuses) {
  const cluster::Cluster cluster = cluster::ParseCluster("dgx-a100:1").value();
  const transforms::ParallelPlan plan = transforms::ByFlops({});
  Played played;
  auto parallel = transforms::ParallelTransform3d(step, plan, {.fuses_pointwise = fuses});
  EXPECT_TRUE(parallel.ok()) << parallel.status();
  played.step = *std::move(parallel);
  const auto cost_model = cost_models::MakeCostModel("roofline").value();
  auto program = Lower({.step = played.step,
                        .schedule = *plan.schedule,
                        .cluster = cluster,
                        .cost_model = *cost_model,
                        .options = {.memory_limit = {}, .kernels = {.fuses_pointwise = fuses}}});
  EXPECT_TRUE(program.ok()) << program.status();
  played.program = *std::move(program);
  played.trace = simulator::Play(played.program).value();
  played.report = simulator::Summarize(played.program, played.trace);
  return played;
}

struct Case {
  const char* name;
  const char* written;
  const char* op;
};

constexpr Case kCases[] = {
    {"gelu by tanh", R"(
  %a: bf16[64,128,256] = Mul(%h, %h)
  %b: bf16[64,128,256] = Mul(%a, %h)
  %d: bf16[64,128,256] = Scale(%b) {factor=0.044715}
  %e: bf16[64,128,256] = Add(%h, %d)
  %i: bf16[64,128,256] = Scale(%e) {factor=0.7978845608}
  %j: bf16[64,128,256] = Tanh(%i)
  %k: bf16[64,128,256] = Scale(%h) {factor=0.5}
  %m: bf16[64,128,256] = Mul(%k, %j)
  %y: bf16[64,128,256] = Add(%k, %m))",
     R"(%y: bf16[64,128,256] = Gelu(%h) {approximate="tanh"})"},
    {"gelu by erf", R"(
  %a: bf16[64,128,256] = Scale(%h) {factor=0.70710678}
  %b: bf16[64,128,256] = Erf(%a)
  %d: bf16[64,128,256] = Mul(%h, %b)
  %e: bf16[64,128,256] = Add(%h, %d)
  %y: bf16[64,128,256] = Scale(%e) {factor=0.5})",
     "%y: bf16[64,128,256] = Gelu(%h)"},
    {"swiglu", R"(
  %a: bf16[64,128,256] = Sigmoid(%h)
  %b: bf16[64,128,256] = Mul(%h, %a)
  %y: bf16[64,128,256] = Mul(%b, %g))",
     "%y: bf16[64,128,256] = SwiGlu(%h, %g)"},
    {"rotary", R"(
  %a: bf16[64,128,128] = Slice(%h) {axes=[2], ends=[128], starts=[0], steps=[1]}
  %b: bf16[64,128,128] = Slice(%h) {axes=[2], ends=[256], starts=[128], steps=[1]}
  %n: bf16[64,128,128] = Neg(%b)
  %t: bf16[64,128,256] = Concat(%n, %a) {axis=2}
  %d: bf16[64,128,256] = Mul(%h, %c)
  %e: bf16[64,128,256] = Mul(%t, %s)
  %y: bf16[64,128,256] = Add(%d, %e))",
     "%y: bf16[64,128,256] = Rotary(%h, %c, %s)"},
    {"rms norm", R"(
  %a: bf16[64,128,256] = Mul(%h, %h)
  %b: bf16[64,128,1] = ReduceMean(%a) {axes=[2], keepdims=1}
  %d: bf16[64,128,1] = Rsqrt(%b)
  %y: bf16[64,128,256] = Mul(%h, %d))",
     R"(
  %one: bf16[256] = Constant() {fill=1.0}
  %y: bf16[64,128,256], %d: f32[64,128] = RmsNorm(%h, %one) {axis=2})"},
};

TEST(FusedSteps, TakeWhatTheOneOpTakes) {
  for (const Case& each : kCases) {
    SCOPED_TRACE(each.name);
    const ir::Function step = StepOf(each.written);
    const simulator::Report fused = PlayStep(step, true).report;
    const simulator::Report unfused = PlayStep(step, false).report;
    const simulator::Report one = PlayStep(StepOf(each.op), true).report;
    const double time = fused.step_time.seconds() / one.step_time.seconds();
    const double peak = static_cast<double>(fused.peak_memory.count()) /
                        static_cast<double>(one.peak_memory.count());
    // A norm in one op is a kernel beside the gain behind it; written out it is one with it.
    EXPECT_GE(time, 0.8);
    EXPECT_LE(time, 1.05);
    EXPECT_LE(peak, 1.05);
    EXPECT_GE(unfused.step_time.seconds() / one.step_time.seconds(), 1.3);
  }
}

// Kernels in an order in which each has what it reads: there is one unless they wait for each
// other.
bool HaveAnOrder(const ir::Function& function, const PointwiseGroups& groups) {
  const auto kernel = [&](ir::OpId op) {
    const int32_t group = groups.group[op];
    return group == PointwiseGroups::kAlone ? op.index()
                                            : groups.members[static_cast<size_t>(group)][0].index();
  };
  std::map<int32_t, std::set<int32_t>> needs;
  for (const ir::OpId op : function.order()) {
    if (function.info(op).strided_view) continue;
    std::set<int32_t>& before = needs[kernel(op)];
    for (const ir::ValueId operand : function.operands(op)) {
      ir::OpId maker = function.producer(operand);
      while (maker.valid() && function.info(maker).strided_view) {
        maker = function.producer(function.operands(maker)[0]);
      }
      if (maker.valid() && kernel(maker) != kernel(op)) before.insert(kernel(maker));
    }
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (auto row = needs.begin(); row != needs.end();) {
      const bool ready = std::none_of(row->second.begin(), row->second.end(),
                                      [&](int32_t other) { return needs.contains(other); });
      changed = changed || ready;
      row = ready ? needs.erase(row) : std::next(row);
    }
  }
  return needs.empty();
}

TEST(FusedSteps, OfRandomStepsAreNoSlower) {
  int64_t groups_found = 0;
  for (uint32_t seed = 0; seed < CasesToWalk(60u); ++seed) {
    SCOPED_TRACE(seed);
    const ir::Function step = semantics::RandomStep({.seed = seed,
                                                     .layers = 3 + static_cast<int>(seed % 4),
                                                     .batch = 64,
                                                     .width_unit = 32,
                                                     .tied = seed % 3 == 0},
                                                    "sgd");
    const PointwiseGroups groups = FindPointwiseGroups(step, LocalTypes(step));
    groups_found += static_cast<int64_t>(groups.members.size());
    EXPECT_TRUE(HaveAnOrder(step, groups));
    const simulator::Report fused = PlayStep(step, true).report;
    const simulator::Report unfused = PlayStep(step, false).report;
    EXPECT_LE(fused.step_time, unfused.step_time);
    EXPECT_LE(fused.peak_memory, unfused.peak_memory);
  }
  EXPECT_GE(groups_found, CasesToWalk(60));
}

}  // namespace
}  // namespace fused_steps_test_cc
}  // namespace orrery::lowering
