#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "cluster/device.h"
#include "cost_models/cost_model.h"
#include "ir/execution/execute.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "support/file.h"
#include "support/paths_test_util.h"
#include "transforms/substitutions/dataflow.h"
#include "transforms/substitutions/draw_rule.h"
#include "transforms/substitutions/match_rule.h"
#include "transforms/substitutions/standard_rules.h"
#include "transforms/substitutions/substitute.h"

// Mutants in functions: what they make computes the same, and where they pay.

namespace orrery::transforms::substitutions {
namespace mutants_test_cc {
namespace {

// A function of one op on two inputs.
std::string Function(absl::string_view x, absl::string_view w, absl::string_view y,
                     absl::string_view op) {
  return absl::StrCat("func @f (%x: ", x, " data, %w: ", w, " parameter) { %y: ", y, " = ", op,
                      " return %y: result }");
}

std::string Conv(absl::string_view x, absl::string_view w, absl::string_view y,
                 absl::string_view attributes) {
  return Function(x, w, y, absl::StrCat("Conv(%x, %w) {", attributes, "}"));
}

ir::NamedTensors InputsFor(const ir::Function& function) {
  RandomBits random(3);
  ir::NamedTensors inputs;
  for (const ir::Input& input : function.inputs()) {
    const ir::TensorType& type = function.type(input.value);
    ir::Tensor tensor(type.dtype, type.dims);
    for (double& value : tensor.floats()) value = static_cast<double>(random.Between(-9, 9));
    inputs[ir::ExecutionName(function, input.value)] = std::move(tensor);
  }
  return inputs;
}

// Whole numbers: what is equal is so exactly.
void ExpectSameValues(const ir::Function& a, const ir::Function& b) {
  const ir::NamedTensors inputs = InputsFor(a);
  const ir::Tensor x = ir::Execute(a, inputs, {.round = false}).value().outputs[0];
  const ir::Tensor y = ir::Execute(b, inputs, {.round = false}).value().outputs[0];
  ASSERT_EQ(x.dims(), y.dims());
  int64_t differ = 0;
  for (int64_t e = 0; e < x.size(); ++e) differ += x.Number(e) == y.Number(e) ? 0 : 1;
  EXPECT_EQ(differ, 0) << ir::Print(b);
}

// Executes what all rules of `rules` make of a function, wherever they stand in it and in what they
// made, `depth` times; adds the names of those that stand somewhere.
void ExecuteAll(const ir::Function& function, const std::vector<Rule>& rules, int depth,
                std::set<std::string>& used) {
  WorkTable works;
  const Dataflow flow = ToDataflow(function, true, works).value();
  for (const Direction& direction : DirectionsOf(rules)) {
    for (const Match& match : Matcher(works, flow).Find(direction, 3)) {
      const auto after = Apply(direction, match, flow, works);
      if (!after.has_value()) continue;
      used.insert(direction.rule->name);
      const ir::Function made = ToFunction(works, *after, function);
      ASSERT_EQ(ir::Verify(made), absl::OkStatus());
      ExpectSameValues(function, made);
      if (depth > 1) ExecuteAll(made, rules, depth - 1, used);
    }
  }
}

TEST(Mutants, ComputeTheSameInFunctions) {
  const std::vector<Rule> rules = LoadRules("mutants").value();
  std::set<std::string> used;
  const auto execute = [&](const std::string& text, int depth) {
    ExecuteAll(ir::ParseFunction(text).value(), rules, depth, used);
    const std::string biased =
        absl::StrReplaceAll(text, {{"(%x: ", "(%z: f32[2] parameter, %x: "},
                                   {"Conv(%x, %w) {", "Conv(%x, %w, %z) {activation=\"relu\", "}});
    if (!absl::StrContains(text, "Conv")) return;
    ExecuteAll(ir::ParseFunction(biased).value(), rules, depth, used);
  };
  const auto dilated = [](int size, int dilation) {
    return absl::StrReplaceAll(
        Conv("f32[1,2,#,#]", "f32[2,2,3,3]", "f32[1,2,#,#]", "dilations=[$,$], pads=[$,$,$,$]"),
        {{"#", absl::StrCat(size)}, {"$", absl::StrCat(dilation)}});
  };
  execute(dilated(5, 7), 2);
  execute(dilated(7, 5), 3);
  execute(dilated(7, 2), 2);
  execute(Conv("f32[3,2,4,6]", "f32[2,2,3,3]", "f32[3,2,4,6]", "pads=[1,1,1,1]"), 1);
  execute(Conv("f32[2,3,4,8]", "f32[2,3,3,3]", "f32[2,2,4,8]", "dilations=[1,2], pads=[1,2,1,2]"),
          1);
  execute(Function("f32[300,3]", "f32[3,5]", "f32[300,5]", "MatMul(%x, %w)"), 2);
  execute(Function("f32[300,3]", "f32[5,3]", "f32[300,5]", "MatMul(%x, %w) {transpose_w=1}"), 1);
  execute(Function("f32[2,9,20,3]", "f32[2,9,3,5]", "f32[2,9,20,5]", "MatMul(%x, %w)"), 1);
  execute(Function("f32[9,20,3]", "f32[9,3,5]", "f32[9,20,5]", "MatMul(%x, %w)"), 2);
  execute(Function("f32[9,20,3]", "f32[9,13,3]", "f32[9,20,13]", "MatMul(%x, %w) {transpose_w=1}"),
          2);
  std::set<std::string> all;
  for (const Rule& rule : rules) all.insert(rule.name);
  EXPECT_EQ(used, all);
}

Substitution SubstituteIn(const ir::Function& function, const char* names, const char* device,
                          const RewriteLimits& limits = {}) {
  const auto cost_model = cost_models::MakeCostModel("kernels").value();
  SubstituteOptions options;
  options.cost_model = cost_model.get();
  options.device = cluster::FindDevice(device).value();
  options.limits = limits;
  return Substitute(function, LoadRules(names).value(), options).value();
}

double Gain(const std::string& text, const char* names, const char* device) {
  const Substitution found = SubstituteIn(ir::ParseFunction(text).value(), names, device);
  EXPECT_EQ(ir::Verify(found.function), absl::OkStatus());
  EXPECT_LE(found.after, found.before);
  return found.before.seconds() / found.after.seconds();
}

// DeepLabv3's pyramid: of a kernel of 3x3 whose taps are 18 apart 9 meet an image of 33x33 nowhere
// at once.
TEST(Mutants, DilationBesideTheSizeOfTheImagePays) {
  const std::string text =
      ReadFile(absl::StrCat(SourceDir(), "/examples/substitutions/pyramid.orr")).value();
  EXPECT_GT(Gain(text, "mutants", "a100-80gb"), 1.9);
  EXPECT_GT(Gain(text, "standard+mutants", "h100-80gb"), 1.3);
  EXPECT_EQ(Gain(text, "standard", "a100-80gb"), 1);
}

// One row more than four full waves of tiles; columns that are no multiple of 8.
TEST(Mutants, RowsAndColumnsBesideTilesPay) {
  const auto rows = [](int m) {
    return absl::StrReplaceAll(
        Function("bf16[#,8192]", "bf16[8192,4096]", "bf16[#,4096]", "MatMul(%x, %w)"),
        {{"#", absl::StrCat(m)}});
  };
  EXPECT_GT(Gain(rows(3457), "mutants", "a100-80gb"), 1.02);
  EXPECT_EQ(Gain(rows(3456), "mutants", "a100-80gb"), 1);
  const auto columns = [](int n) {
    return absl::StrReplaceAll(Function("bf16[64,12,197,64]", "bf16[64,12,#,64]",
                                        "bf16[64,12,197,#]", "MatMul(%x, %w) {transpose_w=1}"),
                               {{"#", absl::StrCat(n)}});
  };
  EXPECT_GT(Gain(columns(197), "mutants", "a100-80gb"), 6);
  EXPECT_LT(Gain(columns(200), "mutants", "a100-80gb"), 1.05);
}

// Prices are of the product that a convolution is, whatever the shape of its images: these two move
// more than they were, and are never taken.
TEST(Mutants, OtherShapesOfOneConvolutionDoNotPay) {
  std::vector<Rule> rules = LoadRules("mutants").value();
  std::erase_if(rules, [](const Rule& rule) {
    return !absl::StartsWith(rule.name, "images_side_by_side") &&
           !absl::StartsWith(rule.name, "even_columns_beside_odd");
  });
  ASSERT_EQ(rules.size(), 4U);
  const auto cost_model = cost_models::MakeCostModel("kernels").value();
  SubstituteOptions options;
  options.cost_model = cost_model.get();
  options.device = cluster::FindDevice("a100-80gb").value();
  options.limits.alpha = 100;
  for (const char* attributes : {"pads=[1,1,1,1]", "dilations=[1,2], pads=[1,2,1,2]"}) {
    const std::string text =
        Conv("bf16[8,64,14,14]", "bf16[64,64,3,3]", "bf16[8,64,14,14]", attributes);
    const Substitution found = Substitute(ir::ParseFunction(text).value(), rules, options).value();
    EXPECT_GT(found.graphs, 1);
    EXPECT_TRUE(found.rules.empty());
    EXPECT_EQ(found.after, found.before);
  }
}

}  // namespace
}  // namespace mutants_test_cc
}  // namespace orrery::transforms::substitutions
