#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/infer_test_util.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/tensor.h"

// Types, shardings and errors of what looks at images: pools, deformable convolutions, regions,
// grids, resizes. Over mesh(dp=2, hp=4); 99 stands for 0.

namespace orrery::ir {
namespace window_types_test_cc {
namespace {

// How often a window of 2 or 3 fits, by hand.
TEST(WindowTypes, CountTheirPlaces) {
  Expect({
      {"MaxPool {kernel=[3]}", "f32[1,2,6]", "f32[1,2,4]"},
      {"MaxPool {kernel=[6]}", "f32[1,2,6]", "f32[1,2,1]"},
      {"MaxPool {kernel=[2], strides=[2]}", "f32[1,2,5]", "f32[1,2,2]"},
      {"MaxPool {kernel=[3], dilations=[2]}", "f32[1,2,6]", "f32[1,2,2]"},
      {"MaxPool {kernel=[2, 3], pads=[1, 0, 0, 2]}", "f32[1,2,4,4]", "f32[1,2,4,4]"},
      // Rounded up, but for a window that starts behind the input.
      {"MaxPool {ceil_mode=1, kernel=[2], strides=[2]}", "f32[1,2,5]", "f32[1,2,3]"},
      {"MaxPool {ceil_mode=1, kernel=[2], strides=[2]}", "f32[1,2,4]", "f32[1,2,2]"},
      {"MaxPool {ceil_mode=1, kernel=[2], strides=[2], pads=[0, 1]}", "f32[1,2,4]", "f32[1,2,2]"},
      {"MaxPool {ceil_mode=1, kernel=[2], strides=[2], pads=[1, 0]}", "f32[1,2,4]", "f32[1,2,3]"},
      {"MaxPool {indices=1, kernel=[3]}", "f16[2@dp,4@hp,6]", "f16[2@dp,4@hp,4]; i64[2@dp,4@hp,4]"},
      {"AveragePool {kernel=[3]}", "f32[1,2,8@hp]",
       "dimension 2 of operand 0 is split over hp; it must be whole"},
  });
}

TEST(WindowTypes, OfWindowsThatAreNone) {
  const std::string x = "f32[1,2,6]";
  Expect({
      {"MaxPool {kernel=[3]}", "f32[2,6]", "operand 0 has shape [2,6]; wanted [batch,channels,..]"},
      {"MaxPool", x, "kernel=[]; wanted a size for each of 1 spatial dimensions"},
      {"MaxPool {kernel=[3, 3]}", x,
       "kernel=[3,3]; wanted a size for each of 1 spatial dimensions"},
      {"MaxPool {kernel=[0]}", x, "the window is [0]; wanted sizes of at least 1"},
      {"MaxPool {kernel=[1073741825]}", x,
       "the window is [1073741825]; wanted sizes of at least 1"},
      {"MaxPool {kernel=[1073741824]}", x,
       "a window that reaches over 1073741824 does not fit into spatial dimension 0 of 6 with "
       "padding 0 and 0"},
      {"MaxPool {kernel=[3], dilations=[3]}", x,
       "a window that reaches over 7 does not fit into spatial dimension 0 of 6 with padding 0 and "
       "0"},
      {"MaxPool {kernel=[2, 3], pads=[0, 1, 0, -2]}", "f32[1,1,2,3]",
       "a window that reaches over 3 does not fit into spatial dimension 1 of 3 with padding 1 and "
       "-2"},
      {"MaxPool {kernel=[3], strides=[1, 1]}", x, "strides=[1,1]; wanted 1 numbers of at least 1"},
      {"MaxPool {kernel=[3], strides=[1073741824]}", x, "f32[1,2,1]"},
      {"MaxPool {kernel=[3], strides=[1073741825]}", x,
       "strides=[1073741825]; wanted 1 numbers of at least 1"},
      {"MaxPool {kernel=[3], dilations=[0]}", x, "dilations=[0]; wanted 1 numbers of at least 1"},
      {"MaxPool {kernel=[3], pads=[-1073741825, 0]}", x,
       "pads=[-1073741825,0]; wanted 2 numbers of at least -1073741824"},
  });
}

TEST(WindowTypes, OfOtherPoolsAndBackward) {
  const std::string x = "f32[2@dp,4@hp,6]", y = "f32[2@dp,4@hp,4]",
                    as = " as the result of the pool";
  Expect({
      {"LpPool {kernel=[3], p=1}", x, y},
      {"LpPool {kernel=[3], p=0}", x, "p=0; wanted at least 1"},
      {"LpPool {kernel=[3]}", "i32[1,2,6]", "operand 0 is of i32; wanted floating point"},
      {"MaxPoolGrad {kernel=[3]}", x + "; " + y, x},
      {"MaxPoolGrad {kernel=[3]}", "i32[1,2,6]; i32[1,2,4]",
       "operand 0 is of i32; wanted floating point"},
      {"MaxPoolGrad {kernel=[3]}", "f32[1,2,6]; f16[1,2,4]",
       "element types differ; got f32 and f16"},
      {"MaxPoolGrad {kernel=[3]}", "f32[1,2,6]; f32[1,2,5]",
       "operand 1 has shape [1,2,5]; wanted [1,2,4]" + as},
      {"LpPoolGrad {kernel=[3]}", x + "; " + y + "; " + y, x},
      {"LpPoolGrad {kernel=[3], p=-1}", x + "; " + y + "; " + y, "p=-1; wanted at least 1"},
      {"LpPoolGrad {kernel=[3]}", "f32[1,2,6]; f32[1,2,4]; f32[1,2,6]",
       "operand 2 has shape [1,2,6]; wanted [1,2,4]" + as},
      {"AveragePoolGrad {kernel=[3], spatial=[6]}", y, x},
      {"AveragePoolGrad {kernel=[3], spatial=[7]}", "f32[1,2,4]",
       "operand 0 has shape [1,2,4]; wanted [1,2,5]" + as},
      {"AveragePoolGrad {kernel=[3]}", "f32[1,2,4]", "spatial=[]; wanted the sizes of the image"},
      {"AveragePoolGrad {kernel=[3], spatial=[0]}", "f32[1,2,4]",
       "spatial=[0]; wanted the sizes of the image"},
      {"AveragePoolGrad {kernel=[3], spatial=[1099511627776]}", "f32[1,2,4]",
       "spatial=[1099511627776]; wanted the sizes of the image"},
      {"AveragePoolGrad {kernel=[3], spatial=[6]}", "i32[1,2,4]",
       "operand 0 is of i32; wanted floating point"},
      {"AveragePoolGrad {kernel=[3], spatial=[6]}", "f32[2,4]",
       "operand 0 has shape [2,4]; wanted [batch,channels,..]"},
  });
}

TEST(WindowTypes, OfUnpooling) {
  Expect({
      {"MaxUnpool {spatial=[6]}", "f32[2@dp,4@hp,3]; i64[2@dp,4@hp,3]", "f32[2@dp,4@hp,6]"},
      {"MaxUnpool {spatial=[6]}", "f32[1,3]; i64[1,3]",
       "operand 0 has shape [1,3]; wanted [batch,channels,..]"},
      {"MaxUnpool {spatial=[6]}", "f32[1,2,3]; f32[1,2,3]",
       "operand 1 is of f32; wanted a type of whole numbers"},
      {"MaxUnpool {spatial=[6]}", "f32[1,2,3]; i64[1,2,4]",
       "operand 1 has shape [1,2,4]; wanted [1,2,3] as x"},
      {"MaxUnpool {spatial=[6, 6]}", "f32[1,2,3]; i64[1,2,3]",
       "spatial=[6,6]; wanted the sizes of the image"},
      {"MaxUnpool {spatial=[0]}", "f32[1,2,3]; i64[1,2,3]",
       "spatial=[0]; wanted the sizes of the image"},
      {"MaxUnpool {spatial=[1099511627776]}", "f32[1,2,3]; i64[1,2,3]",
       "spatial=[1099511627776]; wanted the sizes of the image"},
      {"MaxUnpoolGrad", "i64[2@dp,4,3]; f32[2@dp,4,6]", "f32[2@dp,4,3]"},
      {"MaxUnpoolGrad", "f32[1,2,3]; f32[1,2,6]",
       "operand 0 is of f32; wanted a type of whole numbers"},
      {"MaxUnpoolGrad", "i64[1,2,3]; f32[2,2,6]",
       "got shapes [1,2,3] and [2,2,6]; wanted one batch and channels"},
      {"MaxUnpoolGrad", "i64[1,2,3]; f32[1,1,6]",
       "got shapes [1,2,3] and [1,1,6]; wanted one batch and channels"},
      {"MaxUnpoolGrad", "i64[1,2,3]; f32[1,2,6,6]",
       "got shapes [1,2,3] and [1,2,6,6]; wanted one batch and channels"},
  });
}

TEST(WindowTypes, OfDeformableConvolutions) {
  const std::string xw = "f32[1,4,5,5]; f32[2,2,3,3]", offsets = "; f32[1,18,3,3]";
  const std::string huge = "f32[1,1,32768,32768]; f32[1,1,32768,32768]; f32[1,1,1,1]";
  const std::string larger = "f32[1,1,32768,32769]; f32[1,1,32768,32769]; f32[1,1,1,1]";
  Expect({
      {"DeformConv {group=2}", xw + offsets + "; f32[1,9,3,3]", "f32[1,2,3,3]"},
      {"DeformConv {offset_group=2}", "f32[1,4,5,5]; f32[2,4,3,3]; f32[1,36,3,3]; f32[1,18,3,3]",
       "f32[1,2,3,3]"},
      {"DeformConv", "f32[2@dp,4,5,5]; f32[2,4,3,3]; f32[2@dp,18,3,3]", "f32[2@dp,2,3,3]"},
      {"DeformConv", "f32[2,4,5]; f32[2,4,3,3]; f32[2,18,3,3]",
       "operand 0 has shape [2,4,5]; wanted 4 dimensions"},
      {"DeformConv", "f32[1,4,5,5]; i32[2,4,3,3]" + offsets,
       "operand 1 is of i32; wanted floating point"},
      {"DeformConv {group=3}", xw + offsets,
       "group=3 and offset_group=1 do not fit shapes [1,4,5,5] and [2,2,3,3]"},
      {"DeformConv {group=4}", "f32[1,4,5,5]; f32[2,1,3,3]" + offsets,
       "group=4 and offset_group=1 do not fit shapes [1,4,5,5] and [2,1,3,3]"},
      {"DeformConv {group=0}", xw + offsets,
       "group=0 and offset_group=1 do not fit shapes [1,4,5,5] and [2,2,3,3]"},
      {"DeformConv {group=2, offset_group=3}", xw + offsets,
       "group=2 and offset_group=3 do not fit shapes [1,4,5,5] and [2,2,3,3]"},
      {"DeformConv {group=2, offset_group=0}", xw + offsets,
       "group=2 and offset_group=0 do not fit shapes [1,4,5,5] and [2,2,3,3]"},
      {"DeformConv", xw + offsets,
       "group=1 and offset_group=1 do not fit shapes [1,4,5,5] and [2,2,3,3]"},
      {"DeformConv", "f32[1,99,5,5]; f32[2,99,3,3]" + offsets,
       "group=1 and offset_group=1 do not fit shapes [1,0,5,5] and [2,0,3,3]"},
      {"DeformConv {group=2}", xw + "; f32[1,17,3,3]",
       "operand 2 has shape [1,17,3,3]; wanted [1,18,3,3] (offsets)"},
      {"DeformConv {group=2}", xw + offsets + "; f32[1,18,3,3]",
       "operand 3 has shape [1,18,3,3]; wanted [1,9,3,3] (the mask)"},
      {"DeformConvGrad {group=2}", xw + offsets + "; f32[1,9,3,3]; f32[1,2,3,3]",
       xw + offsets + "; f32[1,9,3,3]"},
      {"DeformConvGrad {group=2}", xw + offsets + "; f32[1,2,3,3]", xw + offsets},
      {"DeformConvGrad {group=2}", xw + offsets + "; f32[1,2,3,4]",
       "operand 3 has shape [1,2,3,4]; wanted [1,2,3,3] as the result"},
      // 2^30 elements of a kernel are one too few to be too large.
      {"DeformConv", huge, "operand 2 has shape [1,1,1,1]; wanted [1,2147483648,1,1] (offsets)"},
      {"DeformConv", larger, "the kernel is too large"},
  });
}

TEST(WindowTypes, OfRegions) {
  const std::string align = "f32[1,4@hp,8,8]; f32[3,4]; i64[3]";
  const std::string wanted = "; wanted [batch,channels,height,width] and [regions,";
  Expect({
      {"RoiAlign {pooled=[2, 5]}", align, "f32[3,4@hp,2,5]"},
      {"RoiAlign {mode=\"max\", pooled=[2, 2], sampling_ratio=1024}", align, "f32[3,4@hp,2,2]"},
      {"RoiAlign {pooled=[2, 2], sampling_ratio=1025}", align,
       "sampling_ratio=1025; wanted 0 to 1024"},
      {"RoiAlign {pooled=[2, 2], sampling_ratio=-1}", align, "sampling_ratio=-1; wanted 0 to 1024"},
      {"RoiAlign {mode=\"min\", pooled=[2, 2]}", align, "mode is \"min\"; wanted avg or max"},
      {"RoiAlign", align, "pooled is no height and width of at least 1"},
      {"RoiAlign {pooled=[2, 0]}", align, "pooled is no height and width of at least 1"},
      {"RoiAlign {pooled=[0, 2]}", align, "pooled is no height and width of at least 1"},
      {"RoiAlign {pooled=[2, 1073741824]}", align, "f32[3,4@hp,2,1073741824]"},
      {"RoiAlign {pooled=[2, 1073741825]}", align, "pooled is no height and width of at least 1"},
      {"RoiAlign {pooled=[2, 2]}", "f32[1,4,8,8]; f32[3,4]; f32[3]",
       "operand 2 is of f32; wanted a type of whole numbers"},
      {"RoiAlign {pooled=[2, 2]}", "f32[1,4,8,8]; f32[]; i64[3]", "got no regions"},
      {"RoiAlign {pooled=[2, 2]}", "f32[1,4,8,8]; f32[3,4]; i64[2]",
       "operand 2 has shape [2]; wanted [3] (the image of each region)"},
      {"RoiAlign {pooled=[2, 2]}", "i32[1,4,8,8]; f32[3,4]; i64[3]",
       "operand 0 is of i32; wanted floating point"},
      {"RoiAlign {pooled=[2, 2]}", "f32[1,4,8,8]; i32[3,4]; i64[3]",
       "operand 1 is of i32; wanted floating point"},
      {"RoiAlign {pooled=[2, 2]}", "f32[4,8,8]; f32[3,4]; i64[3]",
       "got shapes [4,8,8] and [3,4]" + wanted + "4]"},
      {"RoiAlign {pooled=[2, 2]}", "f32[1,4,8,8]; f32[3,5]; i64[3]",
       "got shapes [1,4,8,8] and [3,5]" + wanted + "4]"},
      {"RoiAlignGrad {pooled=[2, 2]}", align + "; f32[3,4@hp,2,2]", "f32[1,4@hp,8,8]"},
      {"RoiAlignGrad {pooled=[2, 2]}", align + "; f32[3,4,2,3]",
       "operand 3 has shape [3,4,2,3]; wanted [3,4,2,2] as the result"},
      {"RoiAlignGrad {pooled=[2, 2]}", align + "; i32[3,4,2,2]",
       "operand 3 is of i32; wanted floating point"},
      {"RoiMaxPool {pooled=[2, 2]}", "f32[1,4@hp,8,8]; f32[3,5]", "f32[3,4@hp,2,2]"},
      {"RoiMaxPool {pooled=[2, 2]}", "f32[1,4,8,8]; f32[3,4]",
       "got shapes [1,4,8,8] and [3,4]" + wanted + "5]"},
      {"RoiMaxPoolGrad {pooled=[2, 2]}", "f32[1,4,8,8]; f32[3,5]; f32[3,4,2,1]",
       "operand 2 has shape [3,4,2,1]; wanted [3,4,2,2] as the result"},
  });
}

TEST(WindowTypes, OfGridsAndResizes) {
  const std::string wanted = "; wanted [batch,channels,..] and a grid [batch,..,coordinates]";
  const std::string x = "f32[1,2,5,5]", grid = "f32[1,3,4,2]";
  Expect({
      {"GridSample", "f32[2@dp,4,5,5]; f32[2@dp,3,7,2]", "f32[2@dp,4,3,7]"},
      {"GridSample", "f32[1,2,5]; f32[1,3,1]", "f32[1,2,3]"},
      {"GridSample {mode=\"area\"}", x + "; " + grid,
       "mode is \"area\"; wanted linear, nearest or cubic"},
      {"GridSample {padding_mode=\"wrap\"}", x + "; " + grid,
       "padding_mode is \"wrap\"; wanted zeros, border or reflection"},
      {"GridSample", "f32[1,2]; f32[1,3,1]",
       "operand 0 has shape [1,2]; wanted 3 dimensions or more"},
      {"GridSample", "f32[1,2,5]; f32[1,3]",
       "operand 1 has shape [1,3]; wanted 3 dimensions or more"},
      {"GridSample", x + "; i32[1,3,4,2]", "operand 1 is of i32; wanted floating point"},
      {"GridSample", x + "; f32[1,3,2]", "got shapes [1,2,5,5] and [1,3,2]" + wanted},
      {"GridSample", x + "; f32[2,3,4,2]", "got shapes [1,2,5,5] and [2,3,4,2]" + wanted},
      {"GridSample", x + "; f32[1,3,4,3]", "got shapes [1,2,5,5] and [1,3,4,3]" + wanted},
      {"GridSampleGrad", x + "; " + grid + "; f32[1,2,3,4]", x + "; " + grid},
      {"GridSampleGrad", x + "; " + grid + "; f32[1,2,4,3]",
       "operand 2 has shape [1,2,4,3]; wanted [1,2,3,4] as the result"},
      {"GridSampleGrad", x + "; " + grid + "; i32[1,2,3,4]",
       "operand 2 is of i32; wanted floating point"},
      {"Resize {axes=[1], sizes=[3]}", "f32[4,99]",
       "dimension 1 of [4,0] has no elements to resize"},
      {"Resize {axes=[0, 0], sizes=[3, 3]}", "f32[4]", "axes=[0,0] names 0 twice"},
      {"Resize {axes=[0], sizes=[3], coordinates=\"corners\"}", "f32[4]",
       "coordinates=\"corners\"; wanted one of half_pixel, half_pixel_symmetric, "
       "pytorch_half_pixel, align_corners, asymmetric, tf_half_pixel_for_nn, tf_crop_and_resize"},
      {"Resize {axes=[0], nearest_mode=\"round\", sizes=[3]}", "f32[4]",
       "nearest_mode=\"round\"; wanted one of round_prefer_floor, round_prefer_ceil, floor, ceil"},
      {"Resize {axes=[0], scales=[2.0, 2.0], sizes=[3]}", "f32[4]",
       "scales=[2,2] and roi=[] for 1 axes; wanted a positive scale and a begin and an end for "
       "each, or none"},
      {"Resize {axes=[0], roi=[0.5], sizes=[3]}", "f32[4]",
       "scales=[] and roi=[0.5] for 1 axes; wanted a positive scale and a begin and an end for "
       "each, or none"},
      {"Resize {axes=[0], roi=[0.0, 1.0], sizes=[3]}", "f32[4]", "f32[3]"},
      {"ResizeGrad {axes=[1], sizes=[5]}", "f32[2@dp,3]", "f32[2@dp,5]"},
  });
}

// The error of an op on tensors whose types fit.
std::string ErrorOf(OpKind kind, const AttributeSet& attributes,
                    const std::vector<Tensor>& operands) {
  std::vector<TensorType> types;
  std::vector<const TensorType*> type_pointers;
  std::vector<const Tensor*> pointers;
  for (const Tensor& operand : operands) types.push_back(operand.type());
  for (size_t i = 0; i < operands.size(); ++i) {
    type_pointers.push_back(&types[i]);
    pointers.push_back(&operands[i]);
  }
  const Mesh mesh;
  TypeList results;
  const absl::Status inferred = InferTypes(kind, {attributes, type_pointers, mesh}, results);
  EXPECT_TRUE(inferred.ok()) << inferred;
  return std::string(Evaluate(kind, attributes, pointers, results).status().message());
}

TEST(WindowErrors, OfPlacesThatAreNone) {
  const Tensor one(DType::kF32, {1, 1, 1}), image(DType::kF32, {2, 1, 4, 4});
  const auto ids = [](const Dims& dims, int64_t id) {
    return Tensor::OfInts(DType::kI64, dims, {id});
  };
  const AttributeSet spatial = {{"spatial", std::vector<int64_t>{3}}};
  EXPECT_EQ(ErrorOf(OpKind::kMaxUnpool, spatial, {one, ids({1, 1, 1}, -1)}),
            "position -1 is none of the image");
  EXPECT_EQ(ErrorOf(OpKind::kMaxUnpool, spatial, {one, ids({1, 1, 1}, 0)}), "");
  const AttributeSet pooled = {{"pooled", std::vector<int64_t>{1, 1}}};
  const Tensor region(DType::kF32, {1, 4});
  for (const int64_t id : {-1, 2}) {
    EXPECT_EQ(ErrorOf(OpKind::kRoiAlign, pooled, {image, region, ids({1}, id)}),
              absl::StrCat("region 0 is of image ", id, " of 2"));
  }
  EXPECT_EQ(ErrorOf(OpKind::kRoiAlign, pooled, {image, region, ids({1}, 1)}), "");
  for (const double id : {-0.5, 2.0}) {
    const Tensor named = Tensor::OfFloats(DType::kF32, {1, 5}, {id, 0, 0, 1, 1});
    EXPECT_EQ(ErrorOf(OpKind::kRoiMaxPool, pooled, {image, named}), "region 0 is of no image");
  }
  const Tensor last = Tensor::OfFloats(DType::kF32, {1, 5}, {1, 0, 0, 1, 1});
  EXPECT_EQ(ErrorOf(OpKind::kRoiMaxPool, pooled, {image, last}), "");
}

}  // namespace
}  // namespace window_types_test_cc
}  // namespace orrery::ir
