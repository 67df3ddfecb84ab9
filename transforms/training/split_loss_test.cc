#include "transforms/training/split_loss.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "ir/op_info.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "transforms/stages/stage_plan.h"

namespace orrery::transforms {
namespace split_loss_test_cc {
namespace {

using ir::Function;
using ir::OpId;

std::string Inputs(absl::string_view dtype = "f32", int64_t classes = 12) {
  return absl::StrCat("func @f (\n  %x: ", dtype, "[4,", classes,
                      "] parameter,\n  %labels: i64[4] data\n) {\n");
}

std::string Split(const std::string& text, int64_t parts) {
  Function function = ir::ParseFunction(text).value();
  const auto changed = SplitLosses(function, parts);
  EXPECT_TRUE(changed.ok()) << changed.status();
  EXPECT_TRUE(ir::Verify(function).ok()) << ir::Verify(function);
  EXPECT_EQ(*changed, ir::Print(function) != text);
  return ir::Print(function);
}

TEST(SplitLosses, LossAndGradientShareTheirParts) {
  EXPECT_EQ(Split(Inputs() + R"(  %l: f32[4] = CrossEntropy(%x, %labels) {batch=8}
  %dx: f32[4,12] = CrossEntropyGrad(%x, %labels) {batch=8}
  return %l: loss, %dx: gradient(%x)
}
)",
                  3),
            Inputs() + R"(  %2: f32[4,3,2] = CrossEntropyParts(%x, %labels) {parts=3}
  %l: f32[4] = CrossEntropyOfParts(%2, %labels) {batch=8}
  %dx: f32[4,12] = CrossEntropyPartsGrad(%x, %labels, %2) {batch=8}
  return %l: loss, %dx: gradient(%x)
}
)");
}

TEST(SplitLosses, AGradientAloneHasItsParts) {
  EXPECT_EQ(Split(Inputs("bf16") + R"(  %dx: bf16[4,12] = CrossEntropyGrad(%x, %labels) {batch=8}
  return %dx: gradient(%x)
}
)",
                  2),
            Inputs("bf16") + R"(  %2: f32[4,2,2] = CrossEntropyParts(%x, %labels) {parts=2}
  %dx: bf16[4,12] = CrossEntropyPartsGrad(%x, %labels, %2) {batch=8}
  return %dx: gradient(%x)
}
)");
}

// Only what asks the same of the same has the same parts; the type of a loss stays.
TEST(SplitLosses, WhatIsIgnoredTellsPartsApart) {
  EXPECT_EQ(Split(Inputs("f16") + R"(  %l: f16[4] = CrossEntropy(%x, %labels) {batch=8}
  %m: f16[4] = CrossEntropy(%x, %labels) {batch=8, ignore_index=1}
  %n: f16[4] = CrossEntropy(%x, %labels) {batch=4}
  return %l: loss, %m: loss, %n: loss
}
)",
                  2),
            Inputs("f16") + R"(  %2: f32[4,2,2] = CrossEntropyParts(%x, %labels) {parts=2}
  %l: f16[4] = CrossEntropyOfParts(%2, %labels) {batch=8, to="f16"}
  %4: f32[4,2,2] = CrossEntropyParts(%x, %labels) {ignore_index=1, parts=2}
  %m: f16[4] = CrossEntropyOfParts(%4, %labels) {batch=8, ignore_index=1, to="f16"}
  %n: f16[4] = CrossEntropyOfParts(%2, %labels) {batch=4, to="f16"}
  return %l: loss, %m: loss, %n: loss
}
)");
}

TEST(SplitLosses, WhatDoesNotDivideStays) {
  for (const int64_t parts : {5, 24}) {
    const std::string text = Inputs() + R"(  %l: f32[4] = CrossEntropy(%x, %labels) {batch=8}
  return %l: loss
}
)";
    EXPECT_EQ(Split(text, parts), text);
  }
}

// The backward phase begins where it did.
TEST(SplitLosses, PartsAreForward) {
  Function function = ir::ParseFunction(Inputs() + R"(  %y: f32[4,12] = Scale(%x) {factor=2.0}
  %dy: f32[4,12] = CrossEntropyGrad(%y, %labels) {batch=8}
  %l: f32[4] = CrossEntropy(%y, %labels) {batch=8}
  %dx: f32[4,12] = Scale(%dy) {factor=2.0}
  return %l: loss, %dx: gradient(%x)
})")
                          .value();
  ASSERT_TRUE(SplitLosses(function, 2).value());
  const IdTable<OpId, StepPhase> phases = FindPhases(function);
  std::string text;
  for (const OpId op : function.order()) {
    absl::StrAppend(&text, function.info(op).name,
                    phases[op] == StepPhase::kForward ? " forward\n" : " backward\n");
  }
  EXPECT_EQ(text,
            "Scale forward\nCrossEntropyParts forward\nCrossEntropyPartsGrad forward\n"
            "CrossEntropyOfParts forward\nScale backward\n");
}

}  // namespace
}  // namespace split_loss_test_cc
}  // namespace orrery::transforms
