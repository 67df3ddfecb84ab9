#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "importer/onnx_ops_test_util.h"

// ONNX ops that reduce, draw, scan and sample: their attributes, defaults and opsets.

namespace orrery::importer {
namespace reductions_test_cc {
namespace {

TEST(Norms, AreOverOneDimension) {
  EXPECT_EQ(OpLines("g (float[4,3] x) => (float[4,3] y) { y = LpNormalization(x) }"), R"(
  %1: f32[4,3] = Mul(%x, %x)
  %2: f32[4,1] = ReduceSum(%1) {axes=[1], keepdims=1}
  %3: f32[4,1] = Sqrt(%2)
  %y: f32[4,3] = Div(%x, %3))");
  EXPECT_EQ(
      OpLines("g (float[4,3] x) => (float[4,3] y) { y = LpNormalization<p = 1, axis = 0>(x) }"),
      R"(
  %1: f32[4,3] = Abs(%x)
  %2: f32[1,3] = ReduceSum(%1) {axes=[0], keepdims=1}
  %y: f32[4,3] = Div(%x, %2))");
  EXPECT_EQ(OpLines("g (float[4,3] x) => (float[4,3] y) { y = LpNormalization<p = 3>(x) }"),
            "p is 3; wanted 1 or 2");
}

TEST(Norms, OfMeanAndVarianceAreOverAllButTheChannels) {
  EXPECT_EQ(
      OpLines("g (float[2,3,4,5] x) => (float[2,3,4,5] y) { y = MeanVarianceNormalization(x) }"),
      R"(
  %1: f32[1,3,1,1] = ReduceMean(%x) {axes=[0, 2, 3], keepdims=1}
  %2: f32[2,3,4,5] = Sub(%x, %1)
  %3: f32[2,3,4,5] = Mul(%2, %2)
  %4: f32[1,3,1,1] = ReduceMean(%3) {axes=[0, 2, 3], keepdims=1}
  %5: f32[1,3,1,1] = Sqrt(%4)
  %6: f32[] = Constant() {fill=1e-09}
  %7: f32[1,3,1,1] = Add(%5, %6)
  %y: f32[2,3,4,5] = Div(%2, %7))");
}

TEST(Reductions, AreOverWhatTheyName) {
  EXPECT_EQ(OpLines("g (float[2,3,4] x) => (float y) { y = ReduceMax<keepdims = 0>(x) }"),
            "\n  %y: f32[] = ReduceMax(%x) {axes=[0, 1, 2]}");
  EXPECT_EQ(
      OpLines("g (float[2,3,4] x) => (float[2,1,1] y) { y = ReduceMax<axes = [-1, 1, 2]>(x) }"),
      "\n  %y: f32[2,1,1] = ReduceMax(%x) {axes=[1, 2], keepdims=1}");
  EXPECT_EQ(OpLines("g (float[2,3,4] x) => (float[2,3,4] y) { "
                    "y = ReduceSum<noop_with_empty_axes = 1>(x) }"),
            "\n  %y: f32[2,3,4] = Identity(%x)");
  EXPECT_EQ(OpLines("g (float[2,3] x) => (float[2,1] y) { y = ReduceL2<axes = [1]>(x) }"), R"(
  %1: f32[2,3] = Mul(%x, %x)
  %2: f32[2,1] = ReduceSum(%1) {axes=[1], keepdims=1}
  %y: f32[2,1] = Sqrt(%2))");
  EXPECT_EQ(OpLines("g (float[2,3] x) => (float[2,1] y) { y = ReduceL1<axes = [1]>(x) }"), R"(
  %1: f32[2,3] = Abs(%x)
  %y: f32[2,1] = ReduceSum(%1) {axes=[1], keepdims=1})");
  EXPECT_EQ(OpLines("g (float[2,3] x) => (float[2,1] y) { y = ReduceLogSum<axes = [1]>(x) }"), R"(
  %1: f32[2,1] = ReduceSum(%x) {axes=[1], keepdims=1}
  %y: f32[2,1] = Log(%1))");
}

TEST(Reductions, ToPositionsAreOverOneDimension) {
  EXPECT_EQ(OpLines("g (float[2,3] x) => (int64[1,3] y) { y = ArgMax(x) }"),
            "\n  %y: i64[1,3] = ArgMax(%x) {axis=0, keepdims=1}");
  EXPECT_EQ(OpLines("g (float[2,3] x) => (int64[2] y) { "
                    "y = ArgMin<axis = -1, keepdims = 0, select_last_index = 1>(x) }"),
            "\n  %y: i64[2] = ArgMin(%x) {axis=1, select_last_index=1}");
}

// y of random numbers; all are the mean where they are evaluated.
TEST(RandomNumbers, HaveATypeAndAMean) {
  const std::string like = "g (float[4,3] x) => (float[4,3] y) { y = ";
  EXPECT_EQ(OpLines(like + "RandomNormalLike(x) }"),
            "\n  %y: f32[4,3] = RandomLike(%x) {to=\"f32\"}");
  EXPECT_EQ(OpLines(like + "RandomNormalLike<mean = 2.0>(x) }"),
            "\n  %y: f32[4,3] = RandomLike(%x) {to=\"f32\", value=2.0}");
  EXPECT_EQ(OpLines(like + "RandomUniformLike(x) }"),
            "\n  %y: f32[4,3] = RandomLike(%x) {to=\"f32\", value=0.5}");
  EXPECT_EQ(OpLines(like + "RandomUniformLike<low = 2.0, high = 5.0>(x) }"),
            "\n  %y: f32[4,3] = RandomLike(%x) {to=\"f32\", value=3.5}");
  EXPECT_EQ(OpLines("g (float[4,3] x) => (double[4,3] y) { y = Bernoulli<dtype = 11>(x) }", 15),
            "\n  %y: f64[4,3] = RandomLike(%x) {to=\"f64\"}");
  EXPECT_EQ(OpLines("g (float[5,2] x) => (float[5,2] y) { z = RandomUniform<shape = [2]>() "
                    "y = Add(x, z) }"),
            "\n  %1: f32[2] = Constant() {fill=0.0}\n  %z: f32[2] = RandomLike(%1) {to=\"f32\", "
            "value=0.5}\n  %y: f32[5,2] = Add(%x, %z)");
  EXPECT_EQ(OpLines("g (float[5,2] x) => (float[5,2] y) { "
                    "z = RandomNormal<shape = [2], dtype = 99>() y = Add(x, z) }")
                .substr(0, 35),
            "element type number 99 is not suppo");
}

TEST(RandomNumbers, AreDrawnForEachRow) {
  const auto draw = [](const std::string& x, const std::string& samples) {
    return OpLines(absl::StrCat("g (float[", x, "] x) => (int32[4,", samples,
                                "] y) { y = Multinomial<sample_size = ", samples, ">(x) }"));
  };
  EXPECT_EQ(draw("4,3", "5"),
            "\n  %1: f32[4,1] = Slice(%x) {axes=[1], ends=[1], starts=[0], steps=[1]}\n  %2: "
            "f32[4,5] = Expand(%1) {shape=[-1, 5]}\n  %y: i32[4,5] = RandomLike(%2) {to=\"i32\"}");
  EXPECT_EQ(draw("4,3", "0"),
            "got 0 samples and 2 dimensions; wanted at least 1 sample, and [batch,classes]");
  EXPECT_EQ(draw("4", "1"),
            "got 1 samples and 1 dimensions; wanted at least 1 sample, and [batch,classes]");
  EXPECT_EQ(draw("4,3,2", "1"),
            "got 1 samples and 3 dimensions; wanted at least 1 sample, and [batch,classes]");
}

TEST(Scans, TakeTheirAxisFromAnInput) {
  const auto sum = [](const std::string& axis, const std::string& attributes) {
    return OpLines(absl::StrCat("g (float[4,3] x) => (float[4,3] y) <", axis, "> { y = CumSum",
                                attributes, "(x, a) }"),
                   14);
  };
  EXPECT_EQ(sum("int64 a = {-1}", ""), "\n  %y: f32[4,3] = CumSum(%x) {axis=1}");
  EXPECT_EQ(sum("int32 a = {0}", "<exclusive = 1, reverse = 1>"),
            "\n  %y: f32[4,3] = CumSum(%x) {axis=0, exclusive=1, reverse=1}");
  EXPECT_EQ(sum("int64[2] a = {0, 1}", ""), "input 1 holds 2 numbers; wanted one");
}

TEST(Triangles, AreTheUpperOnes) {
  const std::string head =
      "g (float[4,3] x) => (float[4,3] y) <int64 k = {-1}, int64 z = {0}> { y = Trilu";
  EXPECT_EQ(OpLines(head + "(x) }", 14), "\n  %y: f32[4,3] = Trilu(%x) {upper=1}");
  EXPECT_EQ(OpLines(head + "<upper = 0>(x, k) }", 14),
            "\n  %y: f32[4,3] = Trilu(%x) {k=-1, upper=0}");
  EXPECT_EQ(OpLines(head + "<upper = 1>(x, z) }", 14), "\n  %y: f32[4,3] = Trilu(%x) {upper=1}");
}

TEST(LargestNumbers, AreCountedByAnInputSinceOpset10) {
  const std::string head = "g (float[4,3] x) => (float[?,?] y, int64[?,?] i) ";
  EXPECT_EQ(OpLines(head + "{ y, i = TopK<k = 2>(x) }", 9),
            "\n  %y: f32[4,2], %i: i64[4,2] = TopK(%x) {axis=1, k=2}");
  EXPECT_EQ(
      OpLines(head + "<int64[1] k = {2}> { y, i = TopK<axis = 0, largest = 0, sorted = 0>(x, k) }",
              11),
      "\n  %y: f32[2,3], %i: i64[2,3] = TopK(%x) {axis=0, k=2, largest=0, sorted=0}");
  EXPECT_EQ(OpLines(head + "<int64[2] k = {2, 1}> { y, i = TopK(x, k) }", 11),
            "input 1 holds 2 numbers; wanted one");
}

TEST(OneHots, HaveADepthAndTwoValues) {
  const auto classes = [](const std::string& depth, const std::string& values,
                          const std::string& attributes = "") {
    return OpLines(absl::StrCat("g (int64[4] x) => (float[?,?] y) <", depth, ", ", values,
                                "> { y = OneHot", attributes, "(x, d, v) }"));
  };
  EXPECT_EQ(classes("int64 d = {3}", "float[2] v = {0.0, 1.0}"),
            "\n  %y: f32[4,3] = OneHot(%x) {axis=1, depth=3, to=\"f32\"}");
  EXPECT_EQ(classes("int64[1] d = {3}", "float[2] v = {-1.0, 2.0}", "<axis = 0>"),
            "\n  %y: f32[3,4] = OneHot(%x) {axis=0, depth=3, off=-1.0, on=2.0, to=\"f32\"}");
  EXPECT_EQ(classes("int64 d = {-1}", "float[2] v = {0.0, 1.0}"),
            "depth is -1; wanted a number of classes");
  EXPECT_EQ(classes("int64[2] d = {3, 3}", "float[2] v = {0.0, 1.0}"),
            "depth or values depend on data; wanted one and two numbers that are known beforehand");
  EXPECT_EQ(classes("int64 d = {3}", "float[3] v = {0.0, 1.0, 2.0}"),
            "depth or values depend on data; wanted one and two numbers that are known beforehand");
}

TEST(Samples, HaveModesOfTheirOpset) {
  const auto sample = [](const std::string& attributes, int opset) {
    return OpLines(absl::StrCat("g (float[2,3,4,5] x, float[2,6,7,2] g) => (float[2,3,6,7] y) { "
                                "y = GridSample",
                                attributes, "(x, g) }"),
                   opset);
  };
  EXPECT_EQ(sample("", 16),
            "\n  %y: f32[2,3,6,7] = GridSample(%x, %g) {mode=\"linear\", padding_mode=\"zeros\"}");
  EXPECT_EQ(sample("<mode = \"bicubic\", align_corners = 1>", 16),
            "\n  %y: f32[2,3,6,7] = GridSample(%x, %g) {align_corners=1, mode=\"cubic\", "
            "padding_mode=\"zeros\"}");
  EXPECT_EQ(sample("<padding_mode = \"border\">", 20),
            "\n  %y: f32[2,3,6,7] = GridSample(%x, %g) {mode=\"linear\", padding_mode=\"border\"}");
  EXPECT_EQ(sample("<mode = \"nearest\">", 20),
            "\n  %y: f32[2,3,6,7] = GridSample(%x, %g) {mode=\"nearest\", padding_mode=\"zeros\"}");
}

TEST(Samples, OfRegionsAreOfHalfPixelsSinceOpset16) {
  const auto align = [](const std::string& attributes, int opset) {
    return OpLines(
        absl::StrCat("g (float[2,3,8,8] x, float[5,4] r, int64[5] b) => (float[?,?,?,?] y) { "
                     "y = RoiAlign",
                     attributes, "(x, r, b) }"),
        opset);
  };
  EXPECT_EQ(align("", 16),
            "\n  %y: f32[5,3,1,1] = RoiAlign(%x, %r, %b) {half_pixel=1, mode=\"avg\", pooled=[1, "
            "1], sampling_ratio=0, spatial_scale=1.0}");
  EXPECT_EQ(align("", 10),
            "\n  %y: f32[5,3,1,1] = RoiAlign(%x, %r, %b) {mode=\"avg\", pooled=[1, 1], "
            "sampling_ratio=0, spatial_scale=1.0}");
  EXPECT_EQ(align("<mode = \"max\", output_height = 2, output_width = 3, sampling_ratio = 4, "
                  "spatial_scale = 0.5, coordinate_transformation_mode = \"output_half_pixel\">",
                  16),
            "\n  %y: f32[5,3,2,3] = RoiAlign(%x, %r, %b) {mode=\"max\", pooled=[2, 3], "
            "sampling_ratio=4, spatial_scale=0.5}");
}

// (4 - 1) * 2 + 2 of each dimension, less its pads.
TEST(Pools, AreUndoneToTheImageThatTheyHad) {
  const std::string head =
      "g (float[1,1,4,4] x, int64[1,1,4,4] i) => (float[?,?,?,?] y) <int64[4] s = {1, 1, 9, 8}, "
      "int64[4] t = {1, 1, 8, 8}> { y = MaxUnpool<kernel_shape = [2, 2], strides = [2, 2]";
  EXPECT_EQ(OpLines(head + ">(x, i) }"),
            "\n  %y: f32[1,1,8,8] = MaxUnpool(%x, %i) {spatial=[8, 8]}");
  EXPECT_EQ(OpLines(head + ", pads = [0, 1, 0, 0]>(x, i) }"),
            "\n  %y: f32[1,1,8,7] = MaxUnpool(%x, %i) {spatial=[8, 7]}");
  EXPECT_EQ(OpLines(head + ">(x, i, s) }"),
            "\n  %2: f32[1,1,8,8] = MaxUnpool(%x, %i) {spatial=[8, 8]}\n  %y: f32[1,1,9,8] = "
            "Pad(%2) {after=[1], axes=[2], before=[0]}");
  EXPECT_EQ(OpLines(head + ">(x, i, t) }"),
            "\n  %y: f32[1,1,8,8] = MaxUnpool(%x, %i) {spatial=[8, 8]}");
}

TEST(Pools, HaveTheirAttributes) {
  const auto pool = [](const std::string& op, int opset = 13) {
    return OpLines(absl::StrCat("g (float[2,3,8,8] x) => (float[?,?,?,?] y) { y = ", op, "(x) }"),
                   opset);
  };
  EXPECT_EQ(pool("MaxPool<kernel_shape = [2, 2]>"),
            "\n  %y: f32[2,3,7,7] = MaxPool(%x) {dilations=[1, 1], kernel=[2, 2], pads=[0, 0, 0, "
            "0], strides=[1, 1]}");
  EXPECT_EQ(
      pool("MaxPool<kernel_shape = [3, 3], strides = [2, 2], pads = [1, 0, 1, 0], ceil_mode = 1>"),
      "\n  %y: f32[2,3,5,4] = MaxPool(%x) {ceil_mode=1, dilations=[1, 1], kernel=[3, 3], pads=[1, "
      "0, 1, 0], strides=[2, 2]}");
  EXPECT_EQ(pool("AveragePool<kernel_shape = [2, 2], count_include_pad = 1>"),
            "\n  %y: f32[2,3,7,7] = AveragePool(%x) {count_include_pad=1, dilations=[1, 1], "
            "kernel=[2, 2], pads=[0, 0, 0, 0], strides=[1, 1]}");
  EXPECT_EQ(pool("LpPool<kernel_shape = [2, 2]>"),
            "\n  %y: f32[2,3,7,7] = LpPool(%x) {dilations=[1, 1], kernel=[2, 2], p=2, pads=[0, 0, "
            "0, 0], strides=[1, 1]}");
  EXPECT_EQ(pool("GlobalLpPool<p = 3>"), "\n  %y: f32[2,3,1,1] = LpPool(%x) {kernel=[8, 8], p=3}");
  EXPECT_EQ(pool("GlobalMaxPool"),
            "\n  %y: f32[2,3,1,1] = ReduceMax(%x) {axes=[2, 3], keepdims=1}");
  EXPECT_EQ(pool("GlobalAveragePool"),
            "\n  %y: f32[2,3,1,1] = ReduceMean(%x) {axes=[2, 3], keepdims=1}");
  EXPECT_EQ(pool("MaxPool"), "attribute 'kernel_shape' is missing");
  EXPECT_EQ(pool("MaxPool<kernel_shape = [2]>"),
            "attribute 'kernel_shape' is [2]; wanted 2 numbers, none of them negative or huge");
  EXPECT_EQ(pool("MaxPool<kernel_shape = [2, -1]>"),
            "attribute 'kernel_shape' is [2,-1]; wanted 2 numbers, none of them negative or huge");
  EXPECT_EQ(pool("MaxPool<kernel_shape = [1, 2, 3, 4, 5, 6, 7, 8, 9]>"),
            "attribute 'kernel_shape' is [1,2,3,4,5,6,7,8,...]; wanted 2 numbers, none of them "
            "negative or huge");
  EXPECT_EQ(pool("MaxPool<kernel_shape = [2, 2], strides = [0, 1]>"),
            "strides=[0,1]; wanted 2 numbers of at least 1");
}

}  // namespace
}  // namespace reductions_test_cc
}  // namespace orrery::importer
