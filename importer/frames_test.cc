#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "importer/onnx_ops_test_util.h"

// ONNX ops that cut a tensor, put something around it or resize it; and losses over classes.

namespace orrery::importer {
namespace frames_test_cc {
namespace {

// y = op(x, s..) of x: float[4,6] with `constants`, such as "int64[2] s = {1, 2}".
std::string OnMatrix(const std::string& constants, const std::string& op, int opset = 18) {
  return OpLines(
      absl::StrCat("g (float[4,6] x) => (float[?,?] y) <", constants, "> { y = ", op, " }"), opset);
}

TEST(Slices, AreClippedToTheTensor) {
  const auto slice = [](const std::string& start, const std::string& end, const std::string& step) {
    return OnMatrix(absl::StrCat("int64[1] s = {", start, "}, int64[1] e = {", end,
                                 "}, int64[1] a = {1}, int64[1] t = {", step, "}"),
                    "Slice(x, s, e, a, t)");
  };
  EXPECT_EQ(slice("1", "5", "1"),
            "\n  %y: f32[4,4] = Slice(%x) {axes=[1], ends=[5], starts=[1], steps=[1]}");
  EXPECT_EQ(
      slice("-2", "100", "1"),
      "\n  %y: f32[4,2] = Slice(%x) {axes=[1], ends=[9223372036854775807], starts=[4], steps=[1]}");
  EXPECT_EQ(slice("-100", "-5", "1"),
            "\n  %y: f32[4,1] = Slice(%x) {axes=[1], ends=[1], starts=[0], steps=[1]}");
  EXPECT_EQ(slice("0", "6", "1"), "\n  %y: f32[4,6] = Identity(%x)");
  EXPECT_EQ(
      slice("0", "6", "2"),
      "\n  %y: f32[4,3] = Slice(%x) {axes=[1], ends=[9223372036854775807], starts=[0], steps=[2]}");
  EXPECT_EQ(
      slice("0", "6", "100"),
      "\n  %y: f32[4,1] = Slice(%x) {axes=[1], ends=[9223372036854775807], starts=[0], steps=[6]}");
  EXPECT_EQ(slice("-1", "-100", "-1"),
            "\n  %y: f32[4,6] = Slice(%x) {axes=[1], ends=[9223372036854775807], "
            "starts=[9223372036854775807], steps=[-1]}");
  EXPECT_EQ(slice("100", "0", "-2"),
            "\n  %y: f32[4,3] = Slice(%x) {axes=[1], ends=[0], starts=[9223372036854775807], "
            "steps=[-2]}");
  EXPECT_EQ(slice("4", "1", "-1"),
            "\n  %y: f32[4,3] = Slice(%x) {axes=[1], ends=[1], starts=[4], steps=[-1]}");
  EXPECT_EQ(slice("4", "-100", "-100"),
            "\n  %y: f32[4,1] = Slice(%x) {axes=[1], ends=[9223372036854775807], starts=[4], "
            "steps=[-6]}");
  EXPECT_EQ(slice("1", "5", "0"), "a step is 0; wanted another");
}

TEST(Slices, WantAsManyOfEach) {
  EXPECT_EQ(OnMatrix("int64[2] s = {1, 1}, int64[1] e = {2}", "Slice(x, s, e)"),
            "got 2 starts, 1 ends, 2 axes and 2 steps; wanted as many of each");
  EXPECT_EQ(OnMatrix("int64[2] s = {1, 1}, int64[2] e = {2, 3}", "Slice(x, s, e)"),
            "\n  %y: f32[1,2] = Slice(%x) {axes=[0, 1], ends=[2, 3], starts=[1, 1], steps=[1, 1]}");
  EXPECT_EQ(OnMatrix("int64[1] s = {1}", "Slice(x, s)"),
            "starts and ends are missing; wanted inputs 1 and 2");
  EXPECT_EQ(OnMatrix("int64[1] s = {1}", "Slice<starts = [1], ends = [3], axes = [-1]>(x)", 9),
            "\n  %y: f32[4,2] = Slice(%x) {axes=[1], ends=[3], starts=[1], steps=[1]}");
}

TEST(Frames, PutSomethingAroundOrCutItOff) {
  const auto pad = [](const std::string& pads, const std::string& attributes = "") {
    return OnMatrix(absl::StrCat("int64[4] p = {", pads, "}"),
                    absl::StrCat("Pad", attributes, "(x, p)"));
  };
  EXPECT_EQ(pad("0, 1, 2, 3"),
            "\n  %y: f32[6,10] = Pad(%x) {after=[2, 3], axes=[0, 1], before=[0, 1]}");
  EXPECT_EQ(pad("0, 0, 2, 0"), "\n  %y: f32[6,6] = Pad(%x) {after=[2], axes=[0], before=[0]}");
  EXPECT_EQ(pad("0, 0, 0, 0"), "\n  %y: f32[4,6] = Identity(%x)");
  EXPECT_EQ(pad("0, -1, 0, 2"),
            "\n  %1: f32[4,5] = Slice(%x) {axes=[1], ends=[9223372036854775807], starts=[1], "
            "steps=[1]}\n  %y: f32[4,7] = Pad(%1) {after=[2], axes=[1], before=[0]}");
  EXPECT_EQ(pad("-1, 0, -2, 0"),
            "\n  %y: f32[1,6] = Slice(%x) {axes=[0], ends=[2], starts=[1], steps=[1]}");
  EXPECT_EQ(pad("0, 1, 0, 0", "<mode = \"reflect\">"),
            "\n  %y: f32[4,7] = Pad(%x) {after=[0], axes=[1], before=[1], mode=\"reflect\"}");
  EXPECT_EQ(OnMatrix("int64[2] p = {1, 2}, int64[1] a = {-1}, float v = {2.5}", "Pad(x, p, v, a)"),
            "\n  %y: f32[4,9] = Pad(%x) {after=[2], axes=[1], before=[1], value=2.5}");
  EXPECT_EQ(OnMatrix("int64[3] p = {1, 2, 3}", "Pad(x, p)"),
            "pads=[1,2,3] for 2 dimensions; wanted two for each");
  EXPECT_EQ(OnMatrix("int64[4] p = {1, 2, 3, 4}, float[2] v = {1.0, 2.0}", "Pad(x, p, v)"),
            "input 2 (constant_value) depends on data; wanted one number that is known beforehand");
  EXPECT_EQ(OnMatrix("int64 z = {0}", "Pad<pads = [1, 0, 0, 0], value = 2.0>(x)", 10),
            "\n  %y: f32[5,6] = Pad(%x) {after=[0], axes=[0], before=[1], value=2.0}");
}

TEST(Frames, AreCentred) {
  const auto crop = [](const std::string& type, const std::string& shape,
                       const std::string& attributes = "") {
    return OnMatrix(absl::StrCat(type, " s = {", shape, "}"),
                    absl::StrCat("CenterCropPad", attributes, "(x, s)"));
  };
  EXPECT_EQ(crop("int64[2]", "4, 9"),
            "\n  %y: f32[4,9] = Pad(%x) {after=[2], axes=[1], before=[1]}");  // 1 before, 2 behind
  EXPECT_EQ(
      crop("int64[2]", "4, 3"),
      "\n  %y: f32[4,3] = Slice(%x) {axes=[1], ends=[4], starts=[1], steps=[1]}");  // 1 off before,
                                                                                    // 2 off behind
  EXPECT_EQ(crop("int64[1]", "2", "<axes = [0]>"),
            "\n  %y: f32[2,6] = Slice(%x) {axes=[0], ends=[3], starts=[1], steps=[1]}");
  EXPECT_EQ(crop("int64[1]", "2"), "got 1 sizes for 2 axes; wanted as many");
  EXPECT_EQ(crop("int64[2]", "4, -1"), "a size is negative; wanted at least 0");
}

TEST(Tiles, RepeatDimensions) {
  EXPECT_EQ(OnMatrix("int64[2] r = {1, 3}", "Tile(x, r)"),
            "\n  %y: f32[4,18] = Tile(%x) {axes=[1], repeats=[3]}");
  EXPECT_EQ(OnMatrix("int64[2] r = {2, 3}", "Tile(x, r)"),
            "\n  %y: f32[8,18] = Tile(%x) {axes=[0, 1], repeats=[2, 3]}");
  EXPECT_EQ(OnMatrix("int64[2] r = {1, 1}", "Tile(x, r)"), "\n  %y: f32[4,6] = Identity(%x)");
  EXPECT_EQ(OnMatrix("int64[1] r = {2}", "Tile(x, r)"),
            "repeats=[2] for 2 dimensions; wanted one each");
}

// x: float[1,2,4,8] to what the scales or the sizes say.
std::string Resized(const std::string& constants, const std::string& op, int opset = 18) {
  return OpLines(
      absl::StrCat("g (float[1,2,4,8] x) => (float[?,?,?,?] y) <", constants, "> { y = ", op, " }"),
      opset);
}

TEST(Resizes, LeaveOutWhatStays) {
  EXPECT_EQ(
      Resized("float[4] s = {1.0, 1.0, 2.0, 0.5}", "Resize(x, , s)"),
      "\n  %y: f32[1,2,8,4] = Resize(%x) {axes=[2, 3], coordinates=\"half_pixel\", "
      "mode=\"nearest\", nearest_mode=\"round_prefer_floor\", scales=[2.0, 0.5], sizes=[8, 4]}");
  EXPECT_EQ(Resized("float[4] s = {1.0, 1.0, 1.0, 1.0}", "Resize(x, , s)"),
            "\n  %y: f32[1,2,4,8] = Identity(%x)");
  EXPECT_EQ(
      Resized("float[1] s = {1.3}",
              "Resize<axes = [-1], mode = \"cubic\", exclude_outside = 1, antialias = 1>(x, , s)"),
      "\n  %y: f32[1,2,4,10] = Resize(%x) {antialias=1, axes=[3], coordinates=\"half_pixel\", "
      "cubic_coeff_a=-0.75, exclude_outside=1, mode=\"cubic\", scales=[1.2999999523162842], "
      "sizes=[10]}");
  EXPECT_EQ(Resized("float[4] s = {1.0, 1.0, 2.0, 2.0}", "Upsample<mode = \"bilinear\">(x, s)", 9),
            "\n  %y: f32[1,2,8,16] = Resize(%x) {axes=[2, 3], coordinates=\"asymmetric\", "
            "mode=\"linear\", nearest_mode=\"floor\", scales=[2.0, 2.0], sizes=[8, 16]}");
  EXPECT_EQ(Resized("float[4] s = {1.0, 1.0, 2.0, 2.0}", "Resize(x, s)", 10),
            "\n  %y: f32[1,2,8,16] = Resize(%x) {axes=[2, 3], coordinates=\"asymmetric\", "
            "mode=\"nearest\", nearest_mode=\"floor\", scales=[2.0, 2.0], sizes=[8, 16]}");
}

TEST(Resizes, KeepTheAspectRatioWhereTheySaySo) {
  const auto sized = [](const std::string& sizes, const std::string& policy) {
    return Resized(absl::StrCat("int64[2] z = {", sizes, "}"),
                   absl::StrCat("Resize<axes = [2, 3], keep_aspect_ratio_policy = \"", policy,
                                "\">(x, , , z)"));
  };
  EXPECT_EQ(
      sized("6, 10", "stretch"),
      "\n  %y: f32[1,2,6,10] = Resize(%x) {axes=[2, 3], coordinates=\"half_pixel\", "
      "mode=\"nearest\", nearest_mode=\"round_prefer_floor\", scales=[1.5, 1.25], sizes=[6, 10]}");
  EXPECT_EQ(sized("6, 10", "not_larger"),
            "\n  %y: f32[1,2,5,10] = Resize(%x) {axes=[2, 3], coordinates=\"half_pixel\", "
            "mode=\"nearest\", nearest_mode=\"round_prefer_floor\", scales=[1.25, 1.25], sizes=[5, "
            "10]}");  // 10 / 8 of each
  EXPECT_EQ(sized("6, 10", "not_smaller"),
            "\n  %y: f32[1,2,6,12] = Resize(%x) {axes=[2, 3], coordinates=\"half_pixel\", "
            "mode=\"nearest\", nearest_mode=\"round_prefer_floor\", scales=[1.5, 1.5], sizes=[6, "
            "12]}");  // 6 / 4 of each
  EXPECT_EQ(sized("6, 9", "not_larger"),
            "\n  %y: f32[1,2,5,9] = Resize(%x) {axes=[2, 3], coordinates=\"half_pixel\", "
            "mode=\"nearest\", nearest_mode=\"round_prefer_floor\", scales=[1.125, 1.125], "
            "sizes=[5, 9]}");  // 9 / 8: 4.5 is 5
  EXPECT_EQ(sized("6, 10", "both"),
            "keep_aspect_ratio_policy is both; wanted stretch, not_larger or not_smaller");
  EXPECT_EQ(sized("0, 10", "stretch"), "cannot resize a dimension of 4 to 0; wanted at least 1");
}

TEST(Resizes, CropFirstWhereTheyAreToldAPart) {
  const auto crop = [](const std::string& type, const std::string& roi) {
    return Resized(absl::StrCat("float", type, " r = {", roi, "}, float[2] s = {1.0, 1.0}"),
                   "Resize<axes = [2, 3], coordinate_transformation_mode = \"tf_crop_and_resize\", "
                   "extrapolation_value = 3.0>(x, r, s)");
  };
  EXPECT_EQ(crop("[4]", "0.0, 0.25, 1.0, 1.0"),
            "\n  %y: f32[1,2,4,8] = Resize(%x) {axes=[3], coordinates=\"tf_crop_and_resize\", "
            "extrapolation_value=3.0, mode=\"nearest\", nearest_mode=\"round_prefer_floor\", "
            "roi=[0.25, 1.0], scales=[1.0], sizes=[8]}");
  EXPECT_EQ(crop("[4]", "0.0, 0.0, 0.5, 1.0"),
            "\n  %y: f32[1,2,4,8] = Resize(%x) {axes=[2], coordinates=\"tf_crop_and_resize\", "
            "extrapolation_value=3.0, mode=\"nearest\", nearest_mode=\"round_prefer_floor\", "
            "roi=[0.0, 0.5], scales=[1.0], sizes=[4]}");
  EXPECT_EQ(crop("[4]", "0.0, 0.0, 1.0, 1.0"), "\n  %y: f32[1,2,4,8] = Identity(%x)");
  EXPECT_EQ(crop("[3]", "0.0, 0.0, 1.0"),
            "got 3 numbers of roi for 2 dimensions; wanted two for each");
}

TEST(Resizes, WantASizeThatLeavesSomething) {
  EXPECT_EQ(Resized("float[3] s = {1.0, 1.0, 2.0}", "Resize(x, , s)"),
            "got 3 scales for 4 dimensions; wanted one for each");
  EXPECT_EQ(Resized("float[4] s = {1.0, 1.0, 0.2, 1.0}", "Resize(x, , s)"),
            "a scale is 0.2; wanted one that leaves at least 1 element");
  EXPECT_EQ(Resized("float[4] s = {1.0, 1.0, 0.25, 1.0}", "Resize(x, , s)"),
            "\n  %y: f32[1,2,1,8] = Resize(%x) {axes=[2], coordinates=\"half_pixel\", "
            "mode=\"nearest\", nearest_mode=\"round_prefer_floor\", scales=[0.25], sizes=[1]}");
}

TEST(Losses, AreReducedAsTheySay) {
  const auto loss = [](const std::string& op, const std::string& shape = "", int opset = 13) {
    return OpLines(absl::StrCat("g (float[4,3] x, int64[4] l, float[3] w) => (float", shape,
                                " y) { y = ", op, " }"),
                   opset);
  };
  EXPECT_EQ(loss("NegativeLogLikelihoodLoss(x, l)"),
            "\n  %3: f32[4], %4: f32[4] = NegativeLikelihood(%x, %l)\n  %5: f32[] = ReduceSum(%3) "
            "{axes=[0]}\n  %6: f32[] = ReduceSum(%4) {axes=[0]}\n  %y: f32[] = Div(%5, %6)");
  EXPECT_EQ(loss("NegativeLogLikelihoodLoss<reduction = \"sum\", ignore_index = -1>(x, l, w)"),
            "\n  %3: f32[4], %4: f32[4] = NegativeLikelihood(%x, %l, %w) {ignore_index=-1}\n  %y: "
            "f32[] = ReduceSum(%3) {axes=[0]}");
  EXPECT_EQ(loss("NegativeLogLikelihoodLoss<reduction = \"none\">(x, l)", "[4]"),
            "\n  %y: f32[4], %4: f32[4] = NegativeLikelihood(%x, %l)");
  EXPECT_EQ(loss("NegativeLogLikelihoodLoss<reduction = \"max\">(x, l)"),
            "reduction is \"max\"; wanted none, sum or mean");
  EXPECT_EQ(loss("SoftmaxCrossEntropyLoss<reduction = \"sum\">(x, l)"),
            "\n  %3: f32[4,3] = LogSoftmax(%x) {axis=1}\n  %4: f32[4], %5: f32[4] = "
            "NegativeLikelihood(%3, %l)\n  %y: f32[] = ReduceSum(%4) {axes=[0]}");
}

TEST(Softmaxes, TookTheTensorAsAMatrix) {
  const auto softmax = [](const std::string& op, int opset) {
    return OpLines(absl::StrCat("g (float[5,3,4] x) => (float[5,3,4] y) { y = ", op, "(x) }"),
                   opset);
  };
  EXPECT_EQ(softmax("Softmax", 13), "\n  %y: f32[5,3,4] = Softmax(%x) {axis=2}");
  EXPECT_EQ(softmax("Softmax", 12),
            "\n  %1: f32[5,12] = Reshape(%x) {shape=[-1, 12]}\n  %2: f32[5,12] = Softmax(%1) "
            "{axis=1}\n  %y: f32[5,3,4] = Reshape(%2) {shape=[-1, 3, 4]}");
  EXPECT_EQ(softmax("LogSoftmax<axis = 2>", 12), "\n  %y: f32[5,3,4] = LogSoftmax(%x) {axis=2}");
  EXPECT_EQ(softmax("Hardmax<axis = -2>", 11),
            "\n  %1: f32[5,12] = Reshape(%x) {shape=[-1, 12]}\n  %2: f32[5,12] = Hardmax(%1) "
            "{axis=1}\n  %y: f32[5,3,4] = Reshape(%2) {shape=[-1, 3, 4]}");
  EXPECT_EQ(softmax("Softmax<axis = 0>", 11),
            "\n  %1: f32[60] = Reshape(%x) {shape=[-1]}\n  %2: f32[60] = Softmax(%1) {axis=0}\n  "
            "%y: f32[5,3,4] = Reshape(%2) {shape=[-1, 3, 4]}");
}

}  // namespace
}  // namespace frames_test_cc
}  // namespace orrery::importer
