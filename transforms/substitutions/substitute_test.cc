#include "transforms/substitutions/substitute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "cluster/device.h"
#include "ir/execution/execute.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "support/file.h"
#include "support/paths_test_util.h"
#include "transforms/pass_registry.h"
#include "transforms/substitutions/dataflow.h"
#include "transforms/substitutions/draw_rule.h"
#include "transforms/substitutions/match_rule.h"
#include "transforms/substitutions/standard_rules.h"

namespace orrery::transforms::substitutions {
namespace substitute_test_cc {
namespace {

Substitution SubstituteIn(const ir::Function& function, const RewriteLimits& limits = {}) {
  const auto cost_model = cost_models::MakeCostModel("kernels").value();
  SubstituteOptions options;
  options.cost_model = cost_model.get();
  options.device = cluster::FindDevice("a100-80gb").value();
  options.limits = limits;
  return Substitute(function, LoadRules("standard").value(), options).value();
}

// Numbers for all inputs; variances are not negative.
ir::NamedTensors InputsFor(const ir::Function& function) {
  RandomBits random(3);
  ir::NamedTensors inputs;
  for (const ir::Input& input : function.inputs()) {
    const ir::TensorType& type = function.type(input.value);
    ir::Tensor tensor(type.dtype, type.dims);
    const bool buffer = input.role == ir::InputRole::kBuffer;
    for (double& value : tensor.floats()) {
      value = static_cast<double>(random.Between(buffer ? 10 : -100, 100)) / 100;
    }
    inputs[ir::ExecutionName(function, input.value)] = std::move(tensor);
  }
  return inputs;
}

// By the executor, without rounding: two ways to compute one thing differ by next to nothing.
void ExpectSameValues(const ir::Function& a, const ir::Function& b) {
  const ir::NamedTensors inputs = InputsFor(a);
  const auto x = ir::Execute(a, inputs, {.round = false}).value().outputs;
  const auto y = ir::Execute(b, inputs, {.round = false}).value().outputs;
  ASSERT_EQ(x.size(), y.size());
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(x[i].dims(), y[i].dims());
    double most = 0;
    for (int64_t e = 0; e < x[i].size(); ++e) {
      const double size = std::max(1.0, std::abs(x[i].Number(e)));
      most = std::max(most, std::abs(x[i].Number(e) - y[i].Number(e)) / size);
    }
    EXPECT_LT(most, 1e-9);
  }
}

struct Kind {
  const char* name;
  double least;  // by how many times the kernels are faster, at least
  int32_t fewer_kernels;
};

class KindsOfGraphs : public testing::TestWithParam<Kind> {
 protected:
  static std::string Text() {
    return ReadFile(absl::StrCat(SourceDir(), "/examples/substitutions/", GetParam().name, ".orr"))
        .value();
  }
};

// TASO (Jia et al. 2019, figures 7 and 8) is faster on each of these kinds of graphs.
TEST_P(KindsOfGraphs, BecomeFaster) {
  const ir::Function function = ir::ParseFunction(Text()).value();
  const Substitution found = SubstituteIn(function, {.steps = 40});
  EXPECT_EQ(ir::Verify(found.function), absl::OkStatus());
  EXPECT_GE(found.before.seconds() / found.after.seconds(), GetParam().least) << Tell(found);
  EXPECT_GE(found.kernels_before - found.kernels_after, GetParam().fewer_kernels) << Tell(found);
}

// The same graphs, small enough to execute.
TEST_P(KindsOfGraphs, ComputeTheSame) {
  const std::string small = absl::StrReplaceAll(Text(), {{"[8,", "[1,"},
                                                         {",28,28]", ",4,4]"},
                                                         {",56,56]", ",4,4]"},
                                                         {"4096", "32"},
                                                         {"1024", "16"},
                                                         {"512", "8"}});
  const ir::Function function = ir::ParseFunction(small).value();
  const Substitution found = SubstituteIn(function, {.steps = 40});
  EXPECT_LT(found.after, found.before);
  ExpectSameValues(function, found.function);
}

INSTANTIATE_TEST_SUITE_P(Taso, KindsOfGraphs,
                         testing::Values(Kind{"inception", 1.4, 14}, Kind{"resnext", 1.8, 20},
                                         Kind{"bert", 1.25, 10}, Kind{"rnn", 1.7, 30}),
                         [](const auto& info) { return std::string(info.param.name); });

// A module of each kind, small enough to execute; sizes at which rewriting pays all the same.
constexpr absl::string_view kSmall[] = {
    R"(func @inception (
  %x: f32[1,3,6,6] data, %u: f32[4,3,1,1] parameter, %v: f32[5,3,3,3] parameter,
  %s: f32[4] parameter, %b: f32[4] parameter, %m: f32[4] buffer, %n: f32[4] buffer
) {
  %a: f32[1,4,6,6] = Conv(%x, %u)
  %c: f32[1,4,6,6] = BatchNorm(%a, %s, %b, %m, %n) {activation="relu", epsilon=0.01}
  %d: f32[1,5,6,6] = Conv(%x, %v) {pads=[1, 1, 1, 1]}
  %e: f32[1,5,6,6] = Relu(%d)
  %y: f32[1,9,6,6] = Concat(%c, %e) {axis=1}
  return %y: result
})",
    R"(func @branches (
  %x: f32[2,4,5,5] data, %u: f32[3,2,3,3] parameter, %v: f32[3,2,3,3] parameter
) {
  %a: f32[2,2,5,5], %b: f32[2,2,5,5] = Split(%x) {axis=1, sizes=[2, 2]}
  %c: f32[2,3,3,3] = Conv(%a, %u)
  %d: f32[2,3,3,3] = Conv(%b, %v)
  %y: f32[2,6,3,3] = Concat(%c, %d) {axis=1}
  return %y: result
})",
    R"(func @attention (
  %x: f32[2,3,8] data, %q: f32[8,4] parameter, %k: f32[8,4] parameter, %v: f32[8,6] parameter,
  %a: f32[4] parameter, %b: f32[4] parameter, %c: f32[6] parameter
) {
  %1: f32[2,3,4] = MatMul(%x, %q)
  %2: f32[2,3,4] = Add(%1, %a)
  %3: f32[2,3,4] = MatMul(%x, %k)
  %4: f32[2,3,4] = Add(%3, %b)
  %5: f32[2,3,6] = MatMul(%x, %v)
  %6: f32[2,3,6] = Add(%5, %c)
  return %2: result, %4: result, %6: result
})",
    R"(func @cell (
  %x: f32[3,8] data, %h: f32[3,5] data, %w: f32[8,4] parameter, %u: f32[5,4] parameter
) {
  %a: f32[3,4] = MatMul(%x, %w)
  %b: f32[3,4] = MatMul(%h, %u)
  %s: f32[3,4] = Add(%a, %b)
  %y: f32[3,4] = Tanh(%s)
  return %y: result
})"};

TEST(Substitute, ComputesTheSame) {
  for (const absl::string_view text : kSmall) {
    SCOPED_TRACE(text);
    const ir::Function function = ir::ParseFunction(text).value();
    const Substitution found = SubstituteIn(function);
    EXPECT_LT(found.after, found.before);
    EXPECT_LT(found.kernels_after, found.kernels_before);
    ExpectSameValues(function, found.function);
  }
}

TEST(Substitute, KernelsBecomeLargerToBeOne) {
  const ir::Function function = ir::ParseFunction(R"(func @f (
  %x: f32[1,3,6,6] data, %u: f32[4,3,1,1] parameter, %v: f32[5,3,3,3] parameter
) {
  %a: f32[1,4,6,6] = Conv(%x, %u)
  %b: f32[1,5,6,6] = Conv(%x, %v) {pads=[1, 1, 1, 1]}
  return %a: result, %b: result
})")
                                    .value();
  const Substitution found = SubstituteIn(function);
  EXPECT_EQ(found.kernels_after, 1);
  EXPECT_THAT(found.rules, testing::Contains("enlarge_1x1"));
  ExpectSameValues(function, found.function);
}

TEST(Substitute, TransposesGoIntoProducts) {
  const ir::Function function = ir::ParseFunction(R"(func @f (
  %x: f32[2,5,3] data, %u: f32[2,5,4] data
) {
  %a: f32[2,3,5] = Transpose(%x) {perm=[0, 2, 1]}
  %b: f32[2,3,4] = MatMul(%a, %u)
  %c: f32[2,4,3] = Transpose(%b) {perm=[0, 2, 1]}
  %d: f32[2,4,3] = Scale(%c) {factor=2.0}
  %e: f32[2,4,3] = Scale(%d) {factor=0.25}
  return %e: result
})")
                                    .value();
  const Substitution found = SubstituteIn(function);
  EXPECT_EQ(found.kernels_after, 2) << Tell(found);
  EXPECT_THAT(ir::Print(found.function), testing::HasSubstr("{factor=0.5}"));
  ExpectSameValues(function, found.function);
}

TEST(Substitute, IsNeverSlowerWhereverTheSearchStops) {
  const ir::Function function = ir::ParseFunction(kSmall[0]).value();
  Duration last = kLongestDuration;
  for (int64_t steps = 1; steps < 12; ++steps) {
    const Substitution found = SubstituteIn(function, {.steps = steps});
    EXPECT_LE(found.after, found.before);
    EXPECT_LE(found.after, last);
    last = found.after;
    ExpectSameValues(function, found.function);
  }
}

// A graph that one of the rules makes of another one, drawn from all of them with its rule.
std::optional<std::pair<Dataflow, std::string>> AnyStep(const Dataflow& flow,
                                                        std::span<const Direction> directions,
                                                        RandomBits& random, WorkTable& works) {
  constexpr int32_t kMostOps = 24;
  std::vector<std::pair<Dataflow, std::string>> steps;
  const Matcher matcher(works, flow);
  for (const Direction& direction : directions) {
    for (const Match& match : matcher.Find(direction, 8)) {
      std::optional<Dataflow> after = Apply(direction, match, flow, works);
      if (!after.has_value() || !KeepsOutputsApart(flow, *after)) continue;
      if (after->op_count() > kMostOps || after->fingerprint == flow.fingerprint) continue;
      steps.emplace_back(*std::move(after), direction.rule->name);
    }
  }
  if (steps.empty()) return std::nullopt;
  return std::move(steps[random.Next() % steps.size()]);
}

// Wherever rules lead, cheaper or dearer: several that are drawn at random, one after another.
TEST(Substitute, RandomWalksComputeTheSame) {
  const std::vector<Rule> rules = LoadRules("standard").value();
  const std::vector<Direction> directions = DirectionsOf(rules);
  RandomBits random(20261130);
  std::set<std::string> applied;
  for (const absl::string_view text : kSmall) {
    const ir::Function function = ir::ParseFunction(text).value();
    for (int walk = 0; walk < 8; ++walk) {
      WorkTable works;
      Dataflow flow = ToDataflow(function, false, works).value();
      std::string way;
      for (int step = 0; step < 8; ++step) {
        auto next = AnyStep(flow, directions, random, works);
        if (!next.has_value()) break;
        flow = std::move(next->first);
        applied.insert(next->second);
        absl::StrAppend(&way, next->second, " ");
      }
      SCOPED_TRACE(absl::StrCat(text, "\n", way));
      const ir::Function there = ToFunction(works, flow, function);
      ASSERT_EQ(ir::Verify(there), absl::OkStatus());
      ExpectSameValues(function, there);
    }
  }
  EXPECT_GT(applied.size(), 15U);
}

// What costs something twice as the function stands is paid for twice before.
TEST(Substitute, BeforeIsOfTheFunctionAsItStands) {
  constexpr absl::string_view kTwice =
      "func @f (%x: f32[64,64] data, %u: f32[64,64] data) { %a: f32[64,64] = MatMul(%x, %u) "
      "%b: f32[64,64] = MatMul(%x, %u) %s: f32[64,64] = Sub(%a, %b) return %s: result }";
  constexpr absl::string_view kOnce =
      "func @f (%x: f32[64,64] data, %u: f32[64,64] data) { %a: f32[64,64] = MatMul(%x, %u) "
      "%s: f32[64,64] = Sub(%a, %a) return %s: result }";
  const Substitution twice = SubstituteIn(ir::ParseFunction(kTwice).value());
  const Substitution once = SubstituteIn(ir::ParseFunction(kOnce).value());
  EXPECT_EQ(twice.kernels_before, 3);
  EXPECT_EQ(twice.kernels_after, 2);
  EXPECT_EQ(twice.merged, 1);
  EXPECT_GT(twice.before, once.before);
  EXPECT_EQ(twice.after, once.after);
  EXPECT_THAT(Tell(twice), testing::HasSubstr("merged  1x what another op computes\n"));
  EXPECT_THAT(Tell(once), testing::Not(testing::HasSubstr("merged")));
  // The function that is left is that of the story.
  ir::Function function = ir::ParseFunction(kTwice).value();
  EXPECT_TRUE(RunPass(ParsePasses("substitute").value()[0], function).value());
  EXPECT_EQ(function.order().size(), 2U);
}

TEST(Substitute, IsTheSameEachTime) {
  const ir::Function function = ir::ParseFunction(kSmall[2]).value();
  EXPECT_EQ(ir::Print(SubstituteIn(function).function), ir::Print(SubstituteIn(function).function));
}

TEST(Substitute, TheStepOfTrainingPaysForItsWeights) {
  // Joining weights once a step costs more than it saves: they are read and written.
  const auto cost_model = cost_models::MakeCostModel("kernels").value();
  SubstituteOptions options;
  options.cost_model = cost_model.get();
  options.device = cluster::FindDevice("a100-80gb").value();
  const ir::Function function = ir::ParseFunction(
                                    "func @f (%x: f32[1,1024] data, %u: f32[1024,4096] parameter, "
                                    "%v: f32[1024,4096] parameter) { "
                                    "%a: f32[1,4096] = MatMul(%x, %u) %b: f32[1,4096] = MatMul(%x, "
                                    "%v) return %a: result, %b: "
                                    "result }")
                                    .value();
  const std::vector<Rule> rules = LoadRules("standard").value();
  EXPECT_FALSE(Substitute(function, rules, options).value().rules.empty());
  // Weights that are frozen are weights.
  const std::string frozen = absl::StrReplaceAll(ir::Print(function), {{"parameter", "frozen"}});
  EXPECT_FALSE(Substitute(ir::ParseFunction(frozen).value(), rules, options).value().rules.empty());
  options.fixed_weights = false;
  EXPECT_TRUE(Substitute(function, rules, options).value().rules.empty());
}

TEST(SubstitutePass, SaysWhatIsWrongWithItsOptions) {
  ir::Function function = ir::ParseFunction(kSmall[3]).value();
  const auto error = [&](const std::string& passes) {
    const auto calls = ParsePasses(passes).value();
    return std::string(RunPass(calls[0], function).status().message());
  };
  EXPECT_EQ(error("substitute{weights=some}"),
            "substitute: option weights is 'some'; wanted fixed, folded or trained");
  EXPECT_EQ(error("substitute{alpha=0.5}"),
            "substitute: option alpha is '0.5'; wanted a number of at least 1");
  EXPECT_THAT(error("substitute{device=b99}"), testing::HasSubstr("b99"));
  EXPECT_THAT(error("substitute{rules=nowhere.rules}"), testing::HasSubstr("nowhere.rules"));
}

// A text that has no ops for what is computed once; gradients are of the weights that there are.
TEST(SubstitutePass, FoldsWeights) {
  constexpr absl::string_view kJoined =
      "func @f (%x: f32[1,1024] data, %u: f32[1024,4096] parameter, %v: f32[1024,4096] parameter) "
      "{ %a: f32[1,4096] = MatMul(%x, %u) %b: f32[1,4096] = MatMul(%x, %v) return %a: result, %b: "
      "result }";
  const auto kinds = [&](const std::string& weights) {
    ir::Function function = ir::ParseFunction(kJoined).value();
    EXPECT_TRUE(
        RunPass(ParsePasses(absl::StrCat("substitute{weights=", weights, "}")).value()[0], function)
            .value());
    EXPECT_EQ(ir::Verify(function), absl::OkStatus());
    return function.order().size();
  };
  EXPECT_EQ(kinds("fixed"), 3U);   // Concat, MatMul, Split
  EXPECT_EQ(kinds("folded"), 2U);  // MatMul, Split
  ir::Function trained = ir::ParseFunction(kSmall[3]).value();
  const auto calls = ParsePasses("attach-loss{loss=sum},build-backward").value();
  for (const auto& call : calls) {
    EXPECT_TRUE(RunPass(call, trained).ok());
  }
  EXPECT_THAT(
      RunPass(ParsePasses("substitute{weights=folded}").value()[0], trained).status().message(),
      testing::HasSubstr("the function has gradients of its weights"));
}

TEST(SubstitutePass, TellsWhatItDid) {
  ir::Function function = ir::ParseFunction(kSmall[3]).value();
  std::string story;
  const auto calls = ParsePasses("substitute").value();
  EXPECT_TRUE(RunPass(calls[0], function, &story).value());
  EXPECT_THAT(story, testing::HasSubstr("kernels   4 -> 3\n"));
}

}  // namespace
}  // namespace substitute_test_cc
}  // namespace orrery::transforms::substitutions
