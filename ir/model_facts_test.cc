#include "ir/model_facts.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "ir/text/text.h"

namespace orrery::ir {
namespace model_facts_test_cc {
namespace {

// A function of these inputs, the first of which it returns.
Function Of(absl::string_view inputs) {
  const absl::string_view first = inputs.substr(0, inputs.find(':'));
  absl::StatusOr<Function> function =
      ParseFunction(absl::StrCat("func @f (", inputs, ") { return ", first, ": result }"));
  EXPECT_TRUE(function.ok()) << function.status();
  return function.ok() ? *std::move(function) : Function();
}

TEST(ModelFacts, OfWhatPeopleTrain) {
  struct Row {
    const char* inputs;
    int64_t length, tokens;
  };
  const Row rows[] = {
      {"%ids: i64[2,6] data, %labels: i64[2,6] data", 6, 6},
      {"%x: f32[2,6,4] data, %labels: i64[2,6] data", 6, 6},
      {"%images: f32[2,3,8,8] data, %labels: i64[2] data", 3, 1},
      {"%x: f32[2,8] data", 8, 1},
      {"%x: f32[2] data", 0, 1},
      {"%w: f32[2,8] parameter", 0, 1},
      // Sound has bins before time; what is said about it has tokens.
      {"%sound: f32[2,80,30] data, %text: i64[2,7] data", 7, 7},
      // Labels a pixel are tokens of nothing.
      {"%image: f32[2,3,8,9] data, %labels: i64[2,8,9] data", 8, 1},
      // A table of positions has no batch.
      {"%x: f32[2,6] data, %positions: i64[1,5] data", 6, 5},
  };
  for (const Row& row : rows) {
    const Function function = Of(row.inputs);
    EXPECT_EQ(SequenceLength(function), row.length) << row.inputs;
    EXPECT_EQ(TokensASample(function), row.tokens) << row.inputs;
  }
}

TEST(ComputeType, IsThatOfTheFirstParameter) {
  EXPECT_EQ(ComputeType(Of("%x: f32[2] data, %w: bf16[2] parameter, %v: f32[2] parameter")),
            DType::kBF16);
  EXPECT_EQ(ComputeType(Of("%x: f16[2] data")), std::nullopt);
}

TEST(CommonExperts, DividesTheirNumbersInEveryMixture) {
  const auto common = [](std::initializer_list<int> mixtures) {
    std::string text = "func @f (%w: f32[2,6,2] data, %c: i64[2,6,2] data) {\n";
    std::string returned = "return %w: result";
    int number = 0;
    for (const int experts : mixtures) {
      absl::StrAppend(&text, "%s", number, ": i32[", experts, ",2,", 12 / experts, "], %g", number,
                      ": f32[", experts, ",2,", 12 / experts,
                      "] = Route(%w, %c) {experts=", experts, "}\n");
      absl::StrAppend(&returned, ", %g", number++, ": result");
    }
    const absl::StatusOr<Function> function = ParseFunction(absl::StrCat(text, returned, " }"));
    EXPECT_TRUE(function.ok()) << function.status() << text;
    return function.ok() ? CommonExperts(*function) : -1;
  };
  EXPECT_EQ(common({}), 0);
  EXPECT_EQ(common({4}), 4);
  EXPECT_EQ(common({4, 6, 4}), 2);
}

}  // namespace
}  // namespace model_facts_test_cc
}  // namespace orrery::ir
