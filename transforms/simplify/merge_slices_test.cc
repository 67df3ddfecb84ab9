#include <gtest/gtest.h>

#include <string>

#include "transforms/simplify/pass_test_util.h"

namespace orrery::transforms {
namespace merge_slices_test_cc {
namespace {

// In another order than they stand in; one reads to the end, whatever that is.
constexpr char kParts[] = R"(%x: f32[4,3,6] data
%b: f32[4,3,3] = Slice(%x) {axes=[2], ends=[4], starts=[1], steps=[1]}
%c: f32[4,3,2] = Slice(%x) {axes=[2], ends=[9223372036854775807], starts=[4], steps=[1]}
%a: f32[4,3,1] = Slice(%x) {axes=[2], ends=[1], starts=[0], steps=[1]}
%y: f32[4,3,6] = Concat(%c, %b, %a) {axis=2}
return %y: result)";

TEST(MergeSlices, OfAllRowsAreOneSplit) {
  EXPECT_EQ(After("merge-slices", kParts),
            "%a: f32[4,3,1], %b: f32[4,3,3], %c: f32[4,3,2] = Split(%x) {axis=2, sizes=[1, 3, 2]}\n"
            "%y: f32[4,3,6] = Concat(%c, %b, %a) {axis=2}\nreturn %y: result\n");
}

TEST(MergeSlices, LeavesWhatLeavesSomethingOut) {
  ExpectLeft("merge-slices", kParts,
             {{{"%a: f32[4,3,1]", "%a: f32[4,3,2]"},
               {"ends=[1]", "ends=[2]"},
               {",6] = Concat", ",7] = Concat"}},
              {{"%c: f32[4,3,2]", "%c: f32[4,3,1]"},
               {"ends=[9223372036854775807]", "ends=[5]"},
               {",6] = Concat", ",5] = Concat"}},
              {{"%a: f32[4,3,1] = Slice(%x)", "%a: f32[4,3,1] = Slice(%b)"}}});
}

}  // namespace
}  // namespace merge_slices_test_cc
}  // namespace orrery::transforms
