#include "transforms/stages/second_pipeline.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "ir/text/text.h"

namespace orrery::transforms {
namespace second_pipeline_test_cc {
namespace {

StageFunction Part(const std::string& text, int32_t first_origin) {
  StageFunction part{.function = ir::ParseFunction(text).value(), .origins = {}};
  for (int32_t v = 0; v < part.function.value_limit(); ++v) {
    part.origins.emplace_back(first_origin + v);
  }
  return part;
}

std::string OriginsOf(const StageFunction& part) {
  std::string text;
  for (int32_t v = 0; v < part.function.value_limit(); ++v) {
    const ir::ValueId value(v), origin = part.origins[static_cast<size_t>(v)];
    if (origin.valid())
      absl::StrAppend(&text, ir::PrintValue(part.function, value), "=", origin.index(), " ");
  }
  return text;
}

// Both stages have the parameter of which %t is the gradient; the second one has a value that is
// called what the sum of its twin would be.
PipelinedStep TwoStages() {
  PipelinedStep step;
  step.stages.resize(2);
  step.stages[0].forward = Part(R"(func @forward0 (%x: f32[2] data) {
  Send(%x) {tag="x", to=1}
  return
}
)",
                                0);
  step.stages[0].update = Part(R"(func @update0 (
  %v: f32[2] parameter,
  %dv: f32[2] accumulator,
  %t: f32[2] accumulator
) {
  Send(%t) {tag="t", to=1}
  %v': f32[2] = Sub(%v, %dv)
  return %v': updated(%v)
}
)",
                               10);
  step.stages[1].update = Part(R"(func @update1 (
  %w: f32[2] parameter,
  %t: f32[2] accumulator
) {
  %other: f32[2] = Receive() {from=0, tag="t"}
  %t.twin: f32[2] = Add(%t, %other)
  %w': f32[2] = Sub(%w, %t.twin)
  return %w': updated(%w)
}
)",
                               20);
  return step;
}

TEST(AddSecondPipeline, CopiesStagesAndExchangesTheirSums) {
  PipelinedStep step = TwoStages();
  AddSecondPipeline(step);
  ASSERT_EQ(step.stages.size(), 4U);
  EXPECT_EQ(ir::Print(step.stages[2].forward.function), R"(func @forward0.back (
  %x: f32[2] data
) {
  Send(%x) {tag="x", to=3}
  return
}
)");
  // What is only sent on is not exchanged: the stage that gets it hears from both.
  EXPECT_EQ(ir::Print(step.stages[0].update.function), R"(func @update0 (
  %v: f32[2] parameter,
  %dv: f32[2] accumulator,
  %t: f32[2] accumulator
) {
  Send(%dv) {tag="dv", to=2}
  %dv.twin: f32[2] = Receive() {from=2, tag="dv"}
  %4: f32[2] = Add(%dv, %dv.twin)
  Send(%t) {tag="t", to=1}
  Send(%t) {tag="t", to=3}
  %v': f32[2] = Sub(%v, %4)
  return %v': updated(%v)
}
)");
  EXPECT_EQ(ir::Print(step.stages[3].update.function), R"(func @update1.back (
  %w: f32[2] parameter,
  %t: f32[2] accumulator
) {
  Send(%t) {tag="t", to=1}
  %t.twin': f32[2] = Receive() {from=1, tag="t"}
  %3: f32[2] = Add(%t, %t.twin')
  %other: f32[2] = Receive() {from=2, tag="t"}
  %t.twin'': f32[2] = Receive() {from=0, tag="t"}
  %6: f32[2] = Add(%other, %t.twin'')
  %t.twin: f32[2] = Add(%3, %6)
  %w': f32[2] = Sub(%w, %t.twin)
  return %w': updated(%w)
}
)");
}

// What comes from a twin stands for the twin's value.
TEST(AddSecondPipeline, OriginsAreThoseOfTheTwin) {
  PipelinedStep step = TwoStages();
  AddSecondPipeline(step);
  EXPECT_EQ(OriginsOf(step.stages[0].update), "%v=10 %dv=11 %t=12 %v'=13 %dv.twin=36 ");
  EXPECT_EQ(OriginsOf(step.stages[2].update), "%v=35 %dv=36 %t=37 %v'=38 %dv.twin=11 ");
  EXPECT_EQ(OriginsOf(step.stages[3].update),
            "%w=45 %t=46 %other=47 %t.twin=48 %w'=49 %t.twin'=21 %t.twin''=22 ");
}

}  // namespace
}  // namespace second_pipeline_test_cc
}  // namespace orrery::transforms
