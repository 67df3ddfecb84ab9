#include "transforms/substitutions/dataflow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/text/text.h"

namespace orrery::transforms::substitutions {
namespace dataflow_test_cc {
namespace {

ir::Function Parsed(absl::string_view text) { return ir::ParseFunction(text).value(); }

// As merge-common has it: constants by their elements, and nothing that is drawn at random.
TEST(Dataflow, MergesWhatMergeCommonDoes) {
  const ir::Function function = Parsed(R"(func @f (%x: f32[4] data) {
  %a: f32[4] = Constant() {fill=2.0}
  %b: f32[4] = Constant() {fill=2.0}
  %c: f32[4] = Add(%x, %a)
  %d: f32[4] = Add(%x, %b)
  %e: f32[4], %m: bool[4] = Dropout(%c) {ratio=0.5}
  %g: f32[4], %n: bool[4] = Dropout(%d) {ratio=0.5}
  %y: f32[4] = Sub(%e, %g)
  return %y: result
})");
  WorkTable works;
  const Dataflow merged = ToDataflow(function, false, works).value();
  const Dataflow given = OpByOp(function, false, works).value();
  EXPECT_EQ(given.op_count(), 7);
  EXPECT_EQ(merged.op_count(), 5);
  EXPECT_LT(merged.price, given.price);
  EXPECT_EQ(ToFunction(works, given, function).order().size(), function.order().size());
}

TEST(Dataflow, WeightsAndBuffersAreFixed) {
  const ir::Function function = Parsed(R"(func @f (
  %x: f32[4] data, %u: f32[4] parameter, %v: f32[4] frozen, %w: f32[4] buffer
) {
  %a: f32[4] = Add(%u, %v)
  %b: f32[4] = Add(%a, %w)
  %y: f32[4] = Add(%x, %b)
  return %y: result
})");
  WorkTable works;
  EXPECT_EQ(ToDataflow(function, true, works).value().price, Duration(1));
  EXPECT_EQ(ToDataflow(function, false, works).value().price, Duration(3));
}

}  // namespace
}  // namespace dataflow_test_cc
}  // namespace orrery::transforms::substitutions
