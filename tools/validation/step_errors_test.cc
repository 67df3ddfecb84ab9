#include "tools/validation/step_errors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ir/text/text.h"
#include "tools/validation/software_stack.h"
#include "tools/validation/validation_report.h"

namespace orrery::tools {
namespace step_errors_test_cc {
namespace {

PredictedStep Row(const std::string& source, const std::string& split, Pair seconds, Pair bytes) {
  PredictedStep row;
  row.step.id = "r";
  row.step.source = source;
  row.step.split = split;
  row.step.seconds = seconds.measured;
  row.step.bytes = bytes.measured;
  row.seconds = seconds.predicted;
  row.bytes = bytes.predicted;
  return row;
}

TEST(ErrorFigures, KeepTheSignOfTheBiasAlone) {
  const std::vector<Pair> pairs = {{4, 1}, {4, 5}, {2, 3}, {10, 9}};
  const ErrorFigures figures = FiguresOf(pairs);  // -75, +25, +50 and -10 %
  EXPECT_EQ(figures.count, 4);
  EXPECT_NEAR(figures.mean, 0.4, 1e-12);
  EXPECT_NEAR(figures.worst, 0.75, 1e-12);
  EXPECT_NEAR(figures.bias, -0.025, 1e-12);
  EXPECT_EQ(FiguresOf(std::vector<Pair>()).count, 0);
  EXPECT_EQ(FiguresOf(std::vector<Pair>()).mean, 0);
}

// Ranks 0.5 0.5 2 3 against 0 2 2 2 less their mean, 1.5: 2.25 / sqrt(4.5 * 3).
TEST(ErrorFigures, CorrelateRanksThatAreShared) {
  const std::vector<Pair> pairs = {{1, 1}, {1, 7}, {2, 7}, {3, 7}};
  EXPECT_NEAR(FiguresOf(pairs).spearman,
              1.0 * (1.0 * 1.5 - 1.0 * 0.5 + 0.5 * 0.5 + 1.5 * 0.5) / std::sqrt(4.5 * 3.0), 1e-12);
  const std::vector<Pair> falling = {{1, 9}, {2, 8}, {3, 7}};
  EXPECT_NEAR(FiguresOf(falling).spearman, -1, 1e-12);
  const std::vector<Pair> flat = {{1, 5}, {2, 5}};
  EXPECT_EQ(FiguresOf(flat).spearman, 0);
}

// Only what is measured and predicted counts; groups in the order in which they come.
TEST(ErrorTable, HasAGroupEachSourceAndSplit) {
  std::vector<PredictedStep> rows = {Row("b", "x", {2, 3}, {0, 5}), Row("a", "x", {2, 0}, {4, 3}),
                                     Row("b", "y", {0, 3}, {4, 0}), Row("b", "x", {2, 1}, {0, 0}),
                                     Row("a", "y", {1, 1}, {8, 9})};
  EXPECT_EQ(
      ErrorTable(rows),
      R"(source                               split        of       rows     mean    worst     bias  Spearman
b                                    x            time        2   50.00%   50.00%   +0.00%     0.000
a                                    x            memory      1   25.00%   25.00%  -25.00%     0.000
a                                    y            time        1    0.00%    0.00%   +0.00%     0.000
a                                    y            memory      1   12.50%   12.50%  +12.50%     0.000
)");
  rows.resize(1);
  rows[0].skipped = "z";
  rows.push_back(rows[0]);
  rows.push_back(rows[0]);
  rows.back().skipped = "y";
  EXPECT_THAT(ErrorTable(rows), testing::EndsWith("\n\nskipped:\n     1  y\n     2  z\n"));
}

// The error is that of the time where one is measured, else that of memory.
TEST(StepReport, HasSixDigitsOfTimesAndTwelveOfBytes) {
  const ValidationReport report = {
      .steps = {Row("b,c", "x", {1.23456789, 2.46913578}, {123456789012.0, 234567890123.0}),
                Row("a", "y", {1, 0}, {4, 3})}};
  const std::string csv = ReportCsv(report);
  EXPECT_EQ(csv.substr(csv.find('\n') + 1),
            "r,1.23457,2.46914,1.0000,,123456789012,234567890123,0.9000,\"b,c\",x,,,,,,\n"
            "r,1,,,,4,3,-0.2500,a,y,,,,,,\n");
}

TEST(StepReport, HasWhatTheTableHas) {
  ValidationReport report = {.steps = {Row("a", "x", {2, 3}, {4, 0})}};
  report.steps[0].skipped = "z";
  const auto json = nlohmann::json::parse(ReportJson(report));
  EXPECT_EQ(json["sources"].dump(),
            R"([{"bias":0.5,"mean_error":0.5,"of":"time","rows":1,"source":"a","spearman":0.0,)"
            R"("split":"x","worst_error":0.5}])");
  EXPECT_EQ(json["rows"].size(), 1u);
  EXPECT_EQ(json["rows"][0]["predicted_s"], 3.0);
  EXPECT_TRUE(json["rows"][0]["predicted_bytes"].is_null());
  EXPECT_EQ(json["rows"][0]["skipped"], "z");
  EXPECT_EQ(json["skipped"]["z"], 1);
}

// "parameter" of a type that computes; of none, what is usual.
TEST(StackUse, IsOfTheStep) {
  const auto use = [](const std::string& dtype) {
    const std::string text = "func @f (\n  %x: " + dtype + "[4,8] data,\n  %w: " + dtype +
                             "[8,8] parameter\n) {\n  %y: " + dtype +
                             "[4,8] = MatMul(%x, %w)\n  return %y: result\n}\n";
    return StackUseOf(ir::ParseFunction(text).value());
  };
  EXPECT_EQ(use("f16").dtype, ir::DType::kF16);
  EXPECT_EQ(use("f32").dtype, ir::DType::kF32);
  EXPECT_EQ(StackUseOf(ir::Function()).dtype, ir::DType::kBF16);
}

TEST(Stacks, HoldWhatTheirFilesSay) {
  using ir::DType;
  struct Case {
    const char* stack;
    DType dtype;
    double gradient, loss, update, sent = 0;
  };
  const Case kCases[] = {
      {"megatron", DType::kF16, 0, 8, 4},     {"megatron", DType::kBF16, 2, 8, 0},
      {"deepspeed", DType::kF16, 0, 8, 6, 2}, {"deepspeed", DType::kBF16, 4, 8, 0, 2},
      {"fsdp", DType::kF16, 0, 12, 0},        {"fsdp", DType::kBF16, 0, 12, 0},
      {"torchtitan", DType::kF16, 0, 12, 0}};
  for (const Case& c : kCases) {
    lowering::StackMemory memory = StackMemoryOf(c.stack, {.dtype = c.dtype}).value();
    memory.split_loss = 0;  // below
    EXPECT_EQ(memory,
              (lowering::StackMemory{
                  .gradient = c.gradient, .loss = c.loss, .update = c.update, .sent = c.sent}))
        << c.stack;
  }
  const auto split = [](const char* stack) {
    return StackMemoryOf(stack, {.dtype = DType::kF16}).value();
  };
  EXPECT_EQ(split("megatron").split_loss, 8);
  EXPECT_EQ(split("megatron").update, 4);
  EXPECT_EQ(split("deepspeed").split_loss, 8);
  EXPECT_EQ(split("fsdp").split_loss, 20);
  EXPECT_EQ(split("ideal").split_loss, 0);
}

}  // namespace
}  // namespace step_errors_test_cc
}  // namespace orrery::tools
