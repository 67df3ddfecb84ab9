#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "ir/infer_test_util.h"

// Types, shardings and errors of what works element by element, reduces, or moves elements, where
// pointwise_test.cc and movement_test.cc have none. Over mesh(dp=2, hp=4); 99 stands for 0.

namespace orrery::ir {
namespace element_types_test_cc {
namespace {

TEST(ElementTypes, OfOneOperand) {
  for (const char* op : {"Acos", "Gelu", "Exp", "Tanh", "HardSwish"}) {
    EXPECT_EQ(Infer(op, "f16[8@dp,4@hp]"), "f16[8@dp,4@hp]") << op;
    EXPECT_EQ(Infer(op, "i32[4]"), "operand 0 is of i32; wanted floating point") << op;
    EXPECT_EQ(Infer(op, "f32[4] partial(dp)"),
              "operand 0 is partial over dp; it must be reduced first")
        << op;
  }
  // These are whole on whole numbers.
  for (const char* op : {"Abs", "Sign", "Neg"}) {
    EXPECT_EQ(Infer(op, "i32[8@dp]"), "i32[8@dp]") << op;
    EXPECT_EQ(Infer(op, "bool[8]"), "operand 0 is of bool; wanted numbers") << op;
  }
  const std::string wanted =
      "\" is no unary function that has a gradient; wanted one such as \"Tanh\"";
  Expect({
      {"UnaryGrad {of=\"Gelu\"}", "f16[8@dp]; f16[8@dp]", "f16[8@dp]"},
      {"UnaryGrad", "f32[4]; f32[4]", "of=\"" + wanted},
      {"UnaryGrad {of=\"Floor\"}", "f32[4]; f32[4]", "of=\"Floor" + wanted},
      {"UnaryGrad {of=\"Add\"}", "f32[4]; f32[4]", "of=\"Add" + wanted},
      {"UnaryGrad {of=\"Tanh\"}", "i32[4]; f32[4]", "operand 0 is of i32; wanted floating point"},
      {"UnaryGrad {of=\"Tanh\"}", "f32[4]; i32[4]", "operand 1 is of i32; wanted floating point"},
      {"UnaryGrad {of=\"Tanh\"}", "f16[4]; f32[4]", "element types differ; got f16 and f32"},
      {"UnaryGrad {of=\"Tanh\"}", "f32[4]; f32[1]", "shapes differ; got [4] and [1]"},
  });
}

TEST(ElementTypes, OfSeveralOperands) {
  Expect({
      {"Add", "f16[8@dp,1]; f16[4@hp]", "f16[8@dp,4@hp]"},
      {"Add", "f32[8] partial(dp); f32[8] partial(dp)", "f32[8] partial(dp)"},
      {"Mul", "f32[8] partial(dp); f32[8] partial(dp)",
       "operand 0 is partial over dp; it must be reduced first"},
      {"Add", "f32[8]; f16[8]", "element types differ; got f32 and f16"},
      {"Add", "f32[2,3]; f32[2]", "shapes [2,3] and [2] do not broadcast"},
      {"Less", "i64[8@dp,1]; i64[4]", "bool[8@dp,4]"},
      {"Where", "bool[8@dp,1,1]; f16[3,1]; f16[4@hp]", "f16[8@dp,3,4@hp]"},
      {"Where", "bool[3]; f32[3]; f16[3]", "element types differ; got f32 and f16"},
      {"PRelu", "f16[8@dp,4@hp]; f16[4@hp]", "f16[8@dp,4@hp]"},
      {"PReluGrad", "f32[8@dp,4]; f32[4]; f32[8@dp,4]", "f32[8@dp,4]; f32[8@dp,4]"},
      {"PReluGrad", "f32[8,4]; f32[4]; f32[4]",
       "operand 2 is f32[4]; wanted the type and shape of the result of [8,4] and [4]"},
      {"PReluGrad", "f32[8,4]; f32[4]; f16[8,4]",
       "operand 2 is f16[8,4]; wanted the type and shape of the result of [8,4] and [4]"},
      {"PowGrad", "i32[4]; i32[4]; i32[4]", "operand 0 is of i32; wanted floating point"},
      {"SwiGlu", "f16[8@dp]; f16[8@dp]", "f16[8@dp]"},
      {"SwiGlu", "f32[8]; f32[1]", "shapes differ; got [8] and [1]"},
      {"SwiGlu", "f32[8]; f16[8]", "element types differ; got f32 and f16"},
      {"ReluGrad", "f16[8@dp]; f16[8@dp]", "f16[8@dp]"},
      {"ReluGrad", "f16[8]; f32[8]", "element types differ; got f16 and f32"},
      {"SwiGluGrad", "f16[8@dp]; f16[8@dp]; f16[8@dp]", "f16[8@dp]; f16[8@dp]"},
      {"SwiGluGrad", "f32[8]; f32[4]; f32[8]", "shapes differ; got [8] and [4]"},
      {"SwiGluGrad", "f32[8]; f16[8]; f32[8]", "element types differ; got f32 and f16"},
      {"SwiGluGrad", "f16[8]; f16[8]; f32[8]", "element types differ; got f16 and f32"},
      {"SwiGluGrad", "f32[8]; f32[8]; f32[2]", "shapes differ; got [8] and [2]"},
  });
}

// Scales for the tensor, for each place along an axis, or for each block there.
TEST(ElementTypes, OfQuantization) {
  Expect({
      {"QuantizeLinear", "f32[8@dp,4@hp]; f32[]", "u8[8@dp,4@hp]"},
      {"QuantizeLinear {to=\"i16\"}", "f32[8@dp,4@hp]; f32[4@hp]; i16[4@hp]", "i16[8@dp,4@hp]"},
      {"QuantizeLinear {axis=0}", "f32[8@dp,4@hp]; f32[8@dp]", "u8[8@dp,4@hp]"},
      {"QuantizeLinear {block_size=3, to=\"f8\"}", "f32[8@dp,7]; f32[8@dp,3]", "f8[8@dp,7]"},
      {"QuantizeLinear {block_size=3}", "f32[8,7]; f32[8,2]",
       "the scale has shape [8,2]; wanted one number or [8,3]"},
      {"QuantizeLinear {block_size=3}", "f32[8,6]; f32[8,3]",
       "the scale has shape [8,3]; wanted one number or [8,2]"},
      // Blocks that a split would cut.
      {"QuantizeLinear {block_size=2}", "f32[8,4@dp]; f32[8,2@dp]",
       "dimension 1 of operand 0 is split over dp; it must be whole"},
      {"QuantizeLinear {block_size=1}", "f32[8,4]; f32[]",
       "the scale has shape []; wanted one number or [8,4]"},
      {"QuantizeLinear {block_size=2}", "f32[8,4]; f32[]",
       "the scale has shape []; wanted one number or [8,2]"},
      {"QuantizeLinear {to=\"i32\"}", "f32[8,4]; f32[]",
       "to=\"i32\"; wanted u8, i8, u16, i16 or f8"},
      {"QuantizeLinear {to=\"bool\"}", "f32[8,4]; f32[]",
       "to=\"bool\"; wanted u8, i8, u16, i16 or f8"},
      {"QuantizeLinear", "f32[8,4]; i32[]", "operand 1 is of i32; wanted floating point"},
      {"QuantizeLinear {axis=2}", "f32[8,4]; f32[4]", "axis 2 is none of the 2 dimensions"},
      {"QuantizeLinear", "f32[8,4]; f32[]; i8[]", "the zero point is of i8; wanted u8"},
      {"QuantizeLinear", "f32[8,4]; f32[]; u8[1]", "u8[8,4]"},
      {"QuantizeLinear", "f32[8,4]; f32[4]; u8[1]",
       "the zero point has shape [1]; wanted that of the scale, [4]"},
      {"DequantizeLinear", "u8[8@dp,4]; f16[]", "f16[8@dp,4]"},
      {"DequantizeLinear", "bool[8,4]; f16[]", "operand 0 is of bool; wanted numbers"},
  });
}

TEST(ElementTypes, OfReductions) {
  Expect({
      {"ReduceSum {axes=[1]}", "f32[8@dp,4@hp]", "f32[8@dp] partial(hp)"},
      {"ReduceMean {axes=[1], keepdims=1}", "f32[8@dp,4@hp]", "f32[8@dp,1] partial(hp)"},
      {"ReduceSum {axes=[0]}", "f32[8,4@hp] partial(dp)", "f32[4@hp] partial(dp)"},
      {"ReduceSum", "f32[8@dp,4]", "f32[8@dp,4]"},
      {"ReduceSum {axes=[2]}", "f32[8,4]", "axis 2 is none of the 2 dimensions"},
      {"ReduceSum {axes=[-1]}", "f32[8,4]", "axis -1 is none of the 2 dimensions"},
      {"ReduceMax {axes=[2]}", "f32[8,4]", "axis 2 is none of the 2 dimensions"},
      {"ReduceSum {axes=[0]}", "bool[8]", "operand 0 is of bool; wanted numbers"},
      {"ArgMax {axis=1}", "f32[8@dp,4]", "i64[8@dp]"},
      {"ArgMin {axis=-1, keepdims=1}", "f32[8@dp,4]", "i64[8@dp,1]"},
      {"ArgMax {axis=1}", "f32[8,4@hp]",
       "dimension 1 of operand 0 is split over hp; it must be whole"},
      {"ArgMax {axis=2}", "f32[8,4]", "axis 2 is none of the 2 dimensions"},
  });
  // No part of a maximum is the rest of it.
  for (const char* op : {"ReduceMax", "ReduceMin", "ReduceProd", "ReduceLogSumExp"}) {
    EXPECT_EQ(Infer(absl::StrCat(op, " {axes=[1]}"), "f32[8@dp,4]"), "f32[8@dp]") << op;
    EXPECT_EQ(Infer(absl::StrCat(op, " {axes=[1], keepdims=1}"), "f32[8,4@hp]"),
              "dimension 1 of operand 0 is split over hp; it must be whole")
        << op;
  }
}

TEST(ElementTypes, OfWhatIsMoved) {
  Expect({
      {"Transpose", "f32[8@dp,3,4@hp]", "f32[4@hp,3,8@dp]"},
      {"Transpose {perm=[1, 2, 0]}", "f32[8@dp,3,4@hp]", "f32[3,4@hp,8@dp]"},
      {"Transpose {perm=[0]}", "f32[8,4]", "perm=[0] does not permute 2 dimensions"},
      {"Transpose {perm=[0, 0]}", "f32[8,4]", "perm=[0,0] does not permute 2 dimensions"},
      {"Transpose {perm=[1, 2]}", "f32[8,4]", "perm=[1,2] does not permute 2 dimensions"},
      {"Transpose {perm=[0, 1, 2]}", "f32[8,4]", "perm=[0,1,2] does not permute 2 dimensions"},
      {"Transpose {perm=[]}", "f32[8,4]", "perm=[] does not permute 2 dimensions"},
      {"Roll {axes=[1], shifts=[-9]}", "f32[8@dp,4]", "f32[8@dp,4]"},
      {"Roll {axes=[1]}", "f32[8,4]",
       "shifts=[]; wanted one number of at least -9223372036854775808 for each of the 1 axes"},
      {"Roll {axes=[2], shifts=[1]}", "f32[8,4]", "axis 2 is none of the 2 dimensions"},
      {"PadGrad {axes=[1], before=[1], after=[2]}", "f32[8@dp,4]", "f32[8@dp,1]"},
      {"Tile {axes=[1], repeats=[-1]}", "f32[8,4]",
       "repeats=[-1]; wanted one number of at least 0 for each of the 1 axes"},
      {"CumSum {axis=2}", "f32[8,4]", "axis 2 is none of the 2 dimensions"},
      {"CumSum {axis=1}", "f32[8@dp,4]", "f32[8@dp,4]"},
      {"TopK {axis=1, k=4}", "f32[8@dp,4]", "f32[8@dp,4]; i64[8@dp,4]"},
      {"TopK {axis=1, k=-1}", "f32[8,4]", "k=-1; wanted at most the 4 elements of the dimension"},
      {"OneHot {axis=2, depth=5}", "i64[8@dp]", "axis 2 is none of the 2 dimensions"},
      {"OneHot {axis=0, depth=-1}", "i64[8]",
       "its result would be i64[-1,8]; wanted at most 2^60 bytes"},
  });
}

// A slice from 1 by 2 reads 1, 3 and 5 of seven; one backwards from the end 6, 3 and 0.
TEST(ElementTypes, OfGradientsOfSlices) {
  const std::string by_two = "SliceGrad {axes=[1], starts=[1], steps=[2], sizes=[7]}";
  const std::string back =
      "SliceGrad {axes=[1], starts=[9223372036854775807], steps=[-3], sizes=[7]}";
  Expect({
      {by_two, "f32[8@dp,3]", "f32[8@dp,7]"},
      {by_two, "f32[8,1]", "f32[8,7]"},
      {by_two, "f32[8,4]", "a slice of 4 from 1 by 2 leaves a dimension of 7"},
      {back, "f32[8,3]", "f32[8,7]"},
      {back, "f32[8,4]", "a slice of 4 from 9223372036854775807 by -3 leaves a dimension of 7"},
      {"SliceGrad {axes=[0], starts=[7], steps=[1], sizes=[7]}", "f32[99]", "f32[7]"},
      {"SliceGrad {axes=[0], starts=[8], steps=[1], sizes=[7]}", "f32[99]",
       "a slice of 0 from 8 by 1 leaves a dimension of 7"},
      {"SliceGrad {axes=[0], starts=[6], steps=[-1], sizes=[7]}", "f32[7]", "f32[7]"},
      {"SliceGrad {axes=[0], starts=[7], steps=[-1], sizes=[7]}", "f32[1]",
       "a slice of 1 from 7 by -1 leaves a dimension of 7"},
      {"SliceGrad {axes=[0], starts=[0], steps=[0], sizes=[7]}", "f32[1]",
       "a slice of 1 from 0 by 0 leaves a dimension of 7"},
      {"SliceGrad {axes=[0], starts=[0], steps=[1], sizes=[-1]}", "f32[1]",
       "sizes=[-1]; wanted one number of at least 0 for each of the 1 axes"},
      {"Slice {axes=[0], starts=[7], ends=[0], steps=[-1]}", "f32[8]", "f32[7]"},
      {"Slice {axes=[0], starts=[8], ends=[0], steps=[-1]}", "f32[8]",
       "the slice from 8 to 0 by -1 leaves dimension 0 of [8]"},
      {"Slice {axes=[0], starts=[2], ends=[8], steps=[-1]}", "f32[8]",
       "the slice from 2 to 8 by -1 leaves dimension 0 of [8]"},
      {"Slice {axes=[0], starts=[2], ends=[5], steps=[-1]}", "f32[8]", "f32[0]"},
      {"Slice {axes=[0], starts=[5], ends=[5], steps=[1]}", "f32[8]", "f32[0]"},
      {"Slice {axes=[0], starts=[9223372036854775807], ends=[9223372036854775807], steps=[-3]}",
       "f32[8]", "f32[3]"},
  });
}

TEST(ElementTypes, OfGathersAndScattersThatDoNotFit) {
  const std::string wanted = "; wanted rows that have the indices' dimensions from the axis on";
  const std::string tuples =
      "; wanted indices [batch..,tuples..,k] into k dimensions after the batch";
  const std::string slices = "; wanted a slice for each tuple, and a size for each of its indices";
  // As many dimensions as a tensor may have, and one more.
  const std::string ones = "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1";  // 15
  const std::string ids16 = "i64[" + ones + ",1]", ids17 = "i64[" + ones + ",1,1]";
  const std::string x16 = "f32[" + ones + ",1]";
  Expect({
      {"GatherGrad {axis=-1, size=9}", "i64[3]; f32[3]",
       "got indices [3], rows [3], axis -1 and size 9" + wanted},
      {"GatherGrad {axis=1, size=9}", "i64[3]; f32[3]",
       "got indices [3], rows [3], axis 1 and size 9" + wanted},
      {"GatherGrad {axis=0, size=-1}", "i64[3]; f32[3]",
       "got indices [3], rows [3], axis 0 and size -1" + wanted},
      {"GatherGrad {axis=1, size=9}", "i64[3]; f32[2@dp,3,4@hp]", "f32[2@dp,9,4@hp]"},
      {"GatherGrad {axis=1, size=9}", "i64[]; f32[2]", "f32[2,9]"},
      {"GatherElementsGrad {axis=1, size=9}", "i64[2,3]; f32[2,4]",
       "shapes differ; got [2,3] and [2,4]"},
      {"GatherElements {axis=0}", "f32[8,5]; i64[9,5]", "f32[9,5]"},
      {"GatherElements {axis=0}", "f32[8,5]; i64[9]",
       "got shapes [8,5] and [9]; wanted indices of the same rank and no larger, but for "
       "dimension 0"},
      {"GatherND {batch_dims=1}", "f32[8,5]; i64[7,3,1]",
       "got shapes [8,5] and [7,3,1] with batch_dims=1" + tuples},
      {"GatherND {batch_dims=-1}", "f32[8,5]; i64[3,1]",
       "got shapes [8,5] and [3,1] with batch_dims=-1" + tuples},
      {"GatherND {batch_dims=2}", "f32[8,5]; i64[8,5]",
       "got shapes [8,5] and [8,5] with batch_dims=2" + tuples},
      {"GatherND {batch_dims=1}", "f32[8,5]; i64[8,2]",
       "got shapes [8,5] and [8,2] with batch_dims=1" + tuples},
      {"GatherND", "f32[8,5]; i64[3,2]", "f32[3]"},
      {"GatherNDGrad {batch_dims=1, sizes=[9]}", "i64[2@dp,3,1]; f32[2@dp,3,4@hp]",
       "f32[2@dp,9,4@hp]"},
      {"GatherNDGrad {sizes=[9, 9]}", "i64[3,1]; f32[3]",
       "got indices [3,1], slices [3], sizes=[9,9] and batch_dims=0" + slices},
      {"GatherNDGrad {batch_dims=2, sizes=[9]}", "i64[3,1]; f32[3]",
       "got indices [3,1], slices [3], sizes=[9] and batch_dims=2" + slices},
      {"GatherNDGrad {batch_dims=-1, sizes=[9]}", "i64[3,1]; f32[3]",
       "got indices [3,1], slices [3], sizes=[9] and batch_dims=-1" + slices},
      {"GatherNDGrad {sizes=[9]}", "i64[3,1]; f32[4]",
       "got indices [3,1], slices [4], sizes=[9] and batch_dims=0" + slices},
      {"GatherNDGrad {sizes=[9]}", "i64[3,1]; f32[]",
       "got indices [3,1], slices [], sizes=[9] and batch_dims=0" + slices},
      // Indices of 15 dimensions of tuples, and 15 dimensions left of x.
      {"ScatterND {value=0}", x16 + "; " + ids16, x16},
      {"ScatterND {value=0}", x16 + "; " + ids17,
       "writes slices of 31 dimensions; wanted at most 30"},
      {"ScatterND", "f32[8,5]; i64[3,1]; f32[3,4]", "the updates are f32[3,4]; wanted f32[3,5]"},
      {"ScatterND", "f32[8,5]; f32[3,1]; f32[3,5]", "the indices are f32; wanted i32 or i64"},
  });
}

}  // namespace
}  // namespace element_types_test_cc
}  // namespace orrery::ir
