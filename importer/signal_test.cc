#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "importer/onnx_ops_test_util.h"

// ONNX's tables of numbers, by hand: windows, grids, columns, frames, the mel scale.

namespace orrery::importer {
namespace signal_test_cc {
namespace {

std::string Ops(const std::string& graph, int opset = 20) { return OpLines(graph, opset); }

// The values of y, a constant that `nodes` make.
std::string Values(const std::string& nodes, const std::string& type = "float[?] y") {
  const std::string ops =
      Ops(absl::StrCat("g (float[1] x) => (float[1] x2, ", type, ") { x2 = Relu(x) ", nodes, " }"));
  const size_t begin = ops.find("values=");
  if (begin == std::string::npos) return ops;
  return ops.substr(begin + 7, ops.find(']', begin) - begin - 6);
}

// Hann: (1 - cos) / 2; Hamming: 25/46 - 21/46 cos; Blackman: 0.42 - cos / 2 + 0.08 cos of twice.
TEST(Windows, AreSumsOfCosines) {
  const std::string four = "n = Constant<value = int64 {4}>() y = ";
  EXPECT_EQ(Values(four + "HannWindow(n)"), "[0.0, 0.5, 1.0, 0.5]");
  EXPECT_EQ(Values(four + "HannWindow<periodic = 0>(n)"), "[0.0, 0.75, 0.75, 0.0]");
  EXPECT_EQ(Values(four + "HammingWindow(n)"),
            "[0.08695652335882187, 0.54347825050354, 1.0, 0.54347825050354]");  // 4/46, 25/46, 1
  EXPECT_EQ(Values(four + "BlackmanWindow(n)"),
            "[-1.3877787807814457e-17, 0.3400000035762787, 1.0, 0.3400000035762787]");
  EXPECT_EQ(Values("n = Constant<value = int64 {1}>() y = HannWindow<periodic = 0>(n)"), "[0.0]");
  EXPECT_EQ(Values("n = Constant<value = int64 {2}>() y = HannWindow<output_datatype = 11>(n)",
                   "double[2] y"),
            "[0.0, 1.0]");
}

TEST(Windows, WantASizeAndAType) {
  const std::string wanted = "the size is no number of samples; wanted one, at least 0";
  EXPECT_EQ(Values("n = Constant<value = int64 {-1}>() y = HannWindow(n)"), wanted);
  EXPECT_EQ(Values("n = Constant<value = int64[2] {4, 4}>() y = HannWindow(n)"), wanted);
  EXPECT_EQ(Values("n = Constant<value = int64 {4}>() y = HannWindow<output_datatype = 99>(n)"),
            "element type number 99 is not supported; wanted one of FLOAT, FLOAT16, BFLOAT16, "
            "DOUBLE, BOOL, INT8, INT32, INT64, INT16, UINT8, UINT16, UINT32, UINT64");
}

// Rows x, y and 1; between the edges, or with corners at -1 and 1.
TEST(AffineGrids, AreProductsWithPositions) {
  const auto grid = [](const std::string& size, const std::string& attributes) {
    return Ops(absl::StrCat("g (float[5,2,3] t) => (float[5,?,?,?] y) { s = Constant<value = ",
                            size, ">() y = AffineGrid", attributes, "(t, s) }"));
  };
  EXPECT_EQ(grid("int64[4] {5, 7, 2, 4}", ""), R"(
  %1: f32[3,8] = Constant() {values=[-0.75, -0.25, 0.25, 0.75, -0.75, -0.25, 0.25, 0.75, -0.5, -0.5, -0.5, -0.5, 0.5, 0.5, 0.5, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]}
  %2: f32[5,2,8] = MatMul(%t, %1)
  %3: f32[5,8,2] = Transpose(%2) {perm=[0, 2, 1]}
  %y: f32[5,2,4,2] = Reshape(%3) {shape=[-1, 2, 4, 2]})");
  EXPECT_EQ(grid("int64[4] {5, 7, 1, 3}", "<align_corners = 1>"), R"(
  %1: f32[3,3] = Constant() {values=[-1.0, 0.0, 1.0, -1.0, -1.0, -1.0, 1.0, 1.0, 1.0]}
  %2: f32[5,2,3] = MatMul(%t, %1)
  %3: f32[5,3,2] = Transpose(%2) {perm=[0, 2, 1]}
  %y: f32[5,1,3,2] = Reshape(%3) {shape=[-1, 1, 3, 2]})");
  const std::string wanted = "; wanted [n,2,3] and [n,c,h,w], or [n,3,4] and [n,c,d,h,w]";
  EXPECT_EQ(grid("int64[4] {6, 7, 1, 2}", ""),
            "theta has shape [5,2,3] and size is [6,7,1,2]" + wanted);
  EXPECT_EQ(grid("int64[5] {5, 7, 1, 1, 1}", ""),
            "theta has shape [5,2,3] and size is [5,7,1,1,1]" + wanted);
}

// The positions of an image of one dimension that columns go to, and what comes of an error.
std::string Positions(const std::string& size, const std::string& block,
                      const std::string& attributes) {
  const std::string ops =
      Ops(absl::StrCat("g (float[2,6,", size, "] x) => (float[2,?,5] y) { ",
                       "i = Constant<value = int64[1] {5}>() b = ", "Constant<value = int64[1] {",
                       block, "}>() y = Col2Im", attributes, "(x, i, b) }"));
  const size_t begin = ops.find("values=");
  return begin == std::string::npos ? ops : ops.substr(begin + 7, ops.find('}') - begin - 7);
}

// Of each element of a block, then of each block; 5 is beyond the image.
TEST(Columns, GoToTheirPositions) {
  EXPECT_EQ(Positions("3", "3", ""), "[0, 1, 2, 1, 2, 3, 2, 3, 4]");
  EXPECT_EQ(Positions("3", "3", "<strides = [2], pads = [1, 1]>"), "[5, 1, 3, 0, 2, 4, 1, 3, 5]");
  EXPECT_EQ(Positions("2", "3", "<strides = [2], pads = [0, 1]>"), "[0, 2, 1, 3, 2, 4]");
  EXPECT_EQ(Positions("3", "2", "<dilations = [2]>"), "[0, 1, 2, 2, 3, 4]");
  EXPECT_EQ(Positions("1", "2", "<dilations = [4]>"), "[0, 4]");
  EXPECT_EQ(Positions("4", "3", ""),
            "input 0 has shape [2,6,4]; wanted [n,c times 3,3], as the image and the blocks say");
  EXPECT_EQ(Positions("2", "4", ""),
            "input 0 has shape [2,6,2]; wanted [n,c times 4,2], as the image and the blocks say");
  const std::string wanted =
      "image_shape, block_shape, dilations, pads and strides do not fit; wanted a positive number "
      "of each for each dimension of the image, and two pads";
  for (const char* attributes :
       {"<strides = [0]>", "<dilations = [0]>", "<dilations = [1048577]>", "<pads = [0, -1]>",
        "<pads = [1]>", "<strides = [1, 1]>", "<dilations = [1, 1]>"}) {
    EXPECT_EQ(Positions("3", "3", attributes), wanted) << attributes;
  }
  EXPECT_EQ(Positions("3", "0", ""), wanted);
}

TEST(Columns, AreAddedUpToAnImage) {
  EXPECT_EQ(
      Ops("g (float[1,8,2] x) => (float[1,2,2,3] y) { i = Constant<value = int64[2] {2, 3}>() "
          "b = Constant<value = int64[2] {2, 2}>() y = Col2Im(x, i, b) }"),
      R"(
  %1: i64[8] = Constant() {values=[0, 1, 1, 2, 3, 4, 4, 5]}
  %2: f32[1,2,8] = Reshape(%x) {shape=[-1, 2, 8]}
  %3: f32[1,2,7] = GatherGrad(%1, %2) {axis=2, size=7}
  %4: f32[1,2,6] = Slice(%3) {axes=[2], ends=[6], starts=[0], steps=[1]}
  %y: f32[1,2,2,3] = Reshape(%4) {shape=[-1, 2, 2, 3]})");
}

TEST(FourierTransforms, HaveTheirAxisAsTheOpsetSays) {
  const std::string x = "g (float[2,8,3,1] x) => (float[2,8,3,2] y) { y = DFT";
  EXPECT_EQ(Ops(x + "(x) }", 19), "\n  %y: f32[2,8,3,2] = Dft(%x) {axis=1}");
  EXPECT_EQ(Ops(x + "<axis = -2>(x) }", 19), "\n  %y: f32[2,8,3,2] = Dft(%x) {axis=2}");
  EXPECT_EQ(Ops(x + "(x) }", 20), "\n  %y: f32[2,8,3,2] = Dft(%x) {axis=2}");
  const auto cut = [](const std::string& length) {
    return Ops(absl::StrCat("g (float[2,8,1] x) => (float[2,3,2] y) { n = Constant<value = int64 {",
                            length, "}>() a = Constant<value = int64 {1}>() ",
                            "y = DFT<onesided = 1>(x, n, a) }"));
  };
  EXPECT_EQ(cut("4"), "\n  %y: f32[2,3,2] = Dft(%x) {axis=1, length=4, onesided=1}");
  EXPECT_EQ(cut("0"), "input 1 is 0; wanted 1 to 16777216");
  EXPECT_EQ(cut("16777217"), "input 1 is 1.67772e+07; wanted 1 to 16777216");
  EXPECT_EQ(Ops("g (float[2,8,2] x) => (float[2,8,2] y) { y = DFT<inverse = 1>(x) }"),
            "\n  %y: f32[2,8,2] = Dft(%x) {axis=1, inverse=1}");
  EXPECT_EQ(Ops("g (float[2,8,1] x, int64 n) => (float[2,3,2] y) { y = DFT(x, n) }"),
            "input 1 is no number that is known beforehand");
}

// 7 samples in frames of `inputs`, `step` apart.
std::string Frames(const std::string& step, const std::string& inputs,
                   const std::string& attributes = "", const std::string& length = "3") {
  return Ops(absl::StrCat("g (float[2,7,1] x, float[4] w) => (float[?,?,?,?] y) { s = ",
                          "Constant<value = int64 {", step, "}>() n = Constant<value = int64 {",
                          length, "}>() y = STFT", attributes, "(x, s", inputs, ") }"));
}

TEST(FramesOfSignals, OverlapByTheirStep) {
  EXPECT_EQ(Frames("3", ", w"), R"(
  %2: i64[2,4] = Constant() {values=[0, 1, 2, 3, 3, 4, 5, 6]}
  %3: f32[2,2,4,1] = Gather(%x, %2) {axis=1}
  %4: f32[4,1] = Unsqueeze(%w) {axes=[1]}
  %5: f32[2,2,4,1] = Mul(%3, %4)
  %y: f32[2,2,3,2] = Dft(%5) {axis=2, onesided=1})");
  EXPECT_EQ(Frames("2", ", , n", "<onesided = 0>"), R"(
  %2: i64[3,3] = Constant() {values=[0, 1, 2, 2, 3, 4, 4, 5, 6]}
  %3: f32[2,3,3,1] = Gather(%x, %2) {axis=1}
  %y: f32[2,3,3,2] = Dft(%3) {axis=2})");
  EXPECT_EQ(Frames("9", ", , n", "<onesided = 0>", "7"), R"(
  %2: i64[1,7] = Constant() {values=[0, 1, 2, 3, 4, 5, 6]}
  %3: f32[2,1,7,1] = Gather(%x, %2) {axis=1}
  %y: f32[2,1,7,2] = Dft(%3) {axis=2})");
  EXPECT_EQ(Frames("2", ""), "has neither a window nor a frame length");
  EXPECT_EQ(Frames("2", ", , n", "", "8"),
            "input 0 has 3 dimensions and frames are 8 long; wanted [batch,length,1 or 2]");
}

std::string MelMatrix(const std::string& bands, const std::string& length, const std::string& rate,
                      const std::string& low, const std::string& high) {
  return Values(
      absl::StrCat("b = Constant<value = int64 {", bands, "}>() l = Constant<value = int64 {",
                   length, "}>() r = Constant<value = int64 {", rate,
                   "}>() f = Constant<value = float {", low, "}>() t = Constant<value = float {",
                   high, "}>() y = MelWeightMatrix(b, l, r, f, t)"),
      "float[?,?] y");
}

// 4000 Hz are 2146.06 mel; quarters of that are 426.8, 1113.8 and 2219.8 Hz, times 17 / 8000 the
// bins 0, 2 and 4: so the bands have their edges at 0 0 2 and at 0 2 4. Nine bins of two bands.
TEST(MelScales, AreTriangles) {
  EXPECT_EQ(MelMatrix("2", "16", "8000", "0.0", "4000.0"),
            "[1.0, 0.0, 0.5, 0.5, 0.0, 1.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, "
            "0.0]");
  // At one frequency alone, 1000 Hz are the bin 17000 / 8000.
  EXPECT_EQ(MelMatrix("1", "16", "8000", "1000.0", "1000.0"),
            "[0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]");
  EXPECT_EQ(MelMatrix("0", "16", "8000", "0.0", "4000.0"), "input 0 is 0; wanted 1 to 16777216");
  const std::string wrong = "rate and edges make no mel scale of a moderate size";
  EXPECT_EQ(MelMatrix("2", "16", "8000", "4000.0", "0.0"), wrong);
  EXPECT_EQ(MelMatrix("2", "16", "8000", "-1.0", "4000.0"), wrong);
  EXPECT_EQ(MelMatrix("2", "16", "0", "0.0", "4000.0"), wrong);
  EXPECT_EQ(MelMatrix("1048576", "16", "8000", "0.0", "4000.0"), wrong);  // 2^20 times 2^4
}

}  // namespace
}  // namespace signal_test_cc
}  // namespace orrery::importer
