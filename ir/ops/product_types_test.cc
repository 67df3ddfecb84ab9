#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "ir/infer_test_util.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"

// Types, shardings and errors of matrix products, layers, einsums and convolutions. Over
// mesh(dp=2, hp=4); 99 stands for 0.

namespace orrery::ir {
namespace product_types_test_cc {
namespace {

TEST(ProductTypes, OfMatrices) {
  const std::string wanted = "; wanted [..,m,k] and [..,k,n]";
  Expect({
      {"MatMul", "f32[2,1,3,4]; f32[5,4,6]", "f32[2,5,3,6]"},
      {"MatMul {out=\"bf16\"}", "f8[3,4]; f8[4,5]", "bf16[3,5]"},
      {"MatMul {transpose_x=1, transpose_w=1}", "f32[8@hp,3]; f32[4@dp,8@hp]",
       "f32[3,4@dp] partial(hp)"},
      {"MatMul", "f32[4]; f32[4,5]", "got shapes [4] and [4,5]" + wanted},
      {"MatMul", "f32[3,4]; f32[4]", "got shapes [3,4] and [4]" + wanted},
      {"MatMul", "f32[3,4]; f16[4,5]", "element types differ; got f32 and f16"},
      {"MatMul", "f32[3,4]; f32[3,5]", "inner dimensions differ; got 4 and 3"},
      {"MatMul {transpose_x=1}", "f32[3,4]; f32[4,5]", "inner dimensions differ; got 3 and 4"},
      {"MatMul {transpose_w=1}", "f32[3,4]; f32[4,5]", "inner dimensions differ; got 4 and 5"},
      {"MatMul", "f32[2,3,4]; f32[3,4,5]",
       "leading dimensions of [2,3,4] and [3,4,5] do not broadcast"},
      {"MatMul {out=\"i32\"}", "f8[3,4]; f8[4,5]",
       "out=\"i32\"; wanted a floating-point type such as \"bf16\""},
      {"MatMul {out=\"f32\"}", "i32[3,4]; i32[4,5]",
       "operands are of i32 with out=\"f32\"; wanted floating point"},
      {"MatMul {out=\"f12\"}", "f8[3,4]; f8[4,5]",
       "out=\"f12\"; wanted a floating-point type such as \"bf16\""},
  });
}

TEST(ProductTypes, OfGradientsOfMatrices) {
  const std::string wanted = "; wanted [..,m,k] and [..,m,n]";
  Expect({
      {"MatMulGrad", "f32[4@dp,3,8]; f32[8,4@hp]; f32[4@dp,3,4@hp]",
       "f32[4@dp,3,8] partial(hp); f32[8,4@hp] partial(dp)"},
      {"MatMulGrad {out=\"bf16\"}", "f8[3,4]; f8[4,5]; f8[3,5]", "bf16[3,4]; bf16[4,5]"},
      {"MatMulGrad", "f32[2,3,4]; f32[2,4,5]; f32[2,3,5]",
       "operand 1 has shape [2,4,5]; wanted [k,n]"},
      {"MatMulGrad", "f32[3,4]; f32[4,5]; f32[3,4]", "the gradient has shape [3,4]; wanted [3,5]"},
      {"MatMulGrad", "f32[3,4]; f32[4,5]; i32[3,5]",
       "the gradient is of i32, the product of f32; wanted numbers of one kind"},
      {"MatMulGrad", "f32[3,4]; f32[5,4]; f32[3,4]", "inner dimensions differ; got 4 and 5"},
      {"MatMulWeightGrad", "f32[4@dp,3,8]; f32[4@dp,3,4@hp]", "f32[8,4@hp] partial(dp)"},
      {"MatMulWeightGrad {transpose_w=1}", "f32[2,3,8@hp]; f32[2,3,5]", "f32[5,8@hp]"},
      {"MatMulWeightGrad {transpose_x=1}", "f32[2,8,3]; f32[2,3,5]", "f32[8,5]"},
      {"MatMulWeightGrad {out=\"f16\"}", "f8[3,4]; f8[3,5]", "f16[4,5]"},
      {"MatMulWeightGrad {out=\"f16\"}", "i8[3,4]; i8[3,5]",
       "operands are of i8 with out=\"f16\"; wanted floating point"},
      {"MatMulGrad {out=\"f16\"}", "i8[3,4]; i8[4,5]; i8[3,5]",
       "operands are of i8 with out=\"f16\"; wanted floating point"},
      {"MatMulWeightGrad", "f32[2,3,4]; f32[3,5]", "got shapes [2,3,4] and [3,5]" + wanted},
      {"MatMulWeightGrad", "f32[4]; f32[5]", "got shapes [4] and [5]" + wanted},
      {"MatMulWeightGrad", "f32[2,3,4]; f32[1,3,5]", "got shapes [2,3,4] and [1,3,5]" + wanted},
      {"MatMulWeightGrad", "f32[2,3,4]; f32[2,4,5]", "got shapes [2,3,4] and [2,4,5]" + wanted},
      {"MatMulWeightGrad {transpose_x=1}", "f32[2,3,4]; f32[2,3,5]",
       "got shapes [2,3,4] and [2,3,5]" + wanted},
      {"MatMulWeightGrad", "f32[3,4]; f16[3,5]", "element types differ; got f32 and f16"},
  });
}

TEST(ProductTypes, OfLinearLayers) {
  Expect({
      {"Linear", "f32[2@dp,3,8@hp]; f32[8@hp,5]; f32[5]", "f32[2@dp,3,5] partial(hp)"},
      {"Linear {transpose_w=1}", "f32[2@dp,3]; f32[8@hp,3]; f32[8@hp]", "f32[2@dp,8@hp]"},
      {"Linear {activation=\"relu\"}", "f32[2,3]; f32[3,8@hp]", "f32[2,8@hp]"},
      // Backward wants what goes into the activation.
      {"Linear {activation=\"gelu\"}", "f32[2,3]; f32[3,8@hp]", "f32[2,8@hp]; f32[2,8@hp]"},
      {"Linear {activation=\"gelu_tanh\"}", "f32[2,3]; f32[3,5]", "f32[2,5]; f32[2,5]"},
      {"Linear {activation=\"silu\"}", "f32[2,3]; f32[3,5]", "f32[2,5]; f32[2,5]"},
      {"Linear {activation=\"silu\", out=\"bf16\"}", "f8[2,3]; f8[3,5]; bf16[5]",
       "bf16[2,5]; bf16[2,5]"},
      // And an activation the whole sum.
      {"Linear {activation=\"relu\"}", "f32[2,8@hp]; f32[8@hp,5]",
       "dimension 1 of operand 0 is split over hp; it must be whole"},
      {"Linear {activation=\"tanh\"}", "f32[2,3]; f32[3,5]",
       "activation=\"tanh\"; wanted \"\", \"relu\", \"gelu\", \"gelu_tanh\" or \"silu\""},
      {"Linear", "f32[3]; f32[3,5]", "got shapes [3] and [3,5]; wanted [..,m,k] and [k,n]"},
      {"Linear", "f32[2,3]; f32[1,3,5]", "got shapes [2,3] and [1,3,5]; wanted [..,m,k] and [k,n]"},
      {"Linear", "f32[2,3]; f32[4,3]", "inner dimensions differ; got 3 and 4"},
      {"Linear {transpose_w=1}", "f32[2,3]; f32[3,4]", "inner dimensions differ; got 3 and 4"},
      {"Linear", "f32[2,3]; f16[3,5]", "element types differ; got f32, f16; wanted one"},
      {"Linear", "f16[2,3]; f16[3,5]; f32[5]", "the bias is of f32; wanted f16, as the result is"},
      {"Linear {out=\"bf16\"}", "f8[2,3]; f8[3,5]; f8[5]",
       "the bias is of f8; wanted bf16, as the result is"},
      {"Linear", "f32[2,3]; f32[3,5]; f32[3]", "got a bias of shape [3]; wanted [5]"},
      {"Linear", "f32[2,3]; f32[3,5]; f32[1,5]", "got a bias of shape [1,5]; wanted [5]"},
      {"Linear {out=\"u8\"}", "f8[2,3]; f8[3,5]",
       "out=\"u8\"; wanted a floating-point type such as \"bf16\""},
  });
}

TEST(ProductTypes, OfLayersSideBySide) {
  const std::string wanted = "; wanted x, then `count` weights, and `count` more tensors";
  const std::string two = "f32[2,8]; f32[8,4]; f32[8,5]";
  Expect({
      {"LinearGroup {count=2}", two, "f32[2,4]; f32[2,5]"},
      {"LinearGroup {count=2}", "f32[2@dp,3]; f32[3,4@hp]; f32[3,8@hp]; f32[4@hp]; f32[8@hp]",
       "f32[2@dp,4@hp]; f32[2@dp,8@hp]"},
      {"LinearGroup {count=2, out=\"f16\"}", "f8[2,8]; f8[8,4]; f8[8,5]", "f16[2,4]; f16[2,5]"},
      {"LinearGroup", two, "got 3 operands and count=0" + wanted},
      {"LinearGroup {count=-2}", two, "got 3 operands and count=0" + wanted},
      {"LinearGroup {count=3}", two, "got 3 operands and count=3" + wanted},
      {"LinearGroup {count=2}", two + "; f32[4]", "got 4 operands and count=2" + wanted},
      {"LinearGroup {count=2}", "f32[2,8]; f32[8,4]; f32[7,5]",
       "inner dimensions differ; got 8 and 7"},
      {"LinearGroup {count=2}", two + "; f32[4]; f32[4]", "got a bias of shape [4]; wanted [5]"},
      {"LinearGroupGrad {count=2}", two + "; f32[2,4]; f32[2,5]", "f32[2,8]; f32[8,4]; f32[8,5]"},
      {"LinearGroupGrad {count=1}", "f32[2@dp,8]; f32[8,4@hp]; f32[2@dp,4@hp]",
       "f32[2@dp,8] partial(hp); f32[8,4@hp] partial(dp)"},
      {"LinearGroupGrad {count=2}", two, "got 3 operands and count=2" + wanted},
      {"LinearGroupGrad {count=2}", two + "; f32[2,4]; f32[2,4]",
       "a gradient has shape [2,4]; wanted [2,5]"},
      {"LinearGroupGrad {count=1, out=\"bf16\"}", "f8[2,8]; f8[8,4]; f8[2,4]",
       "bf16[2,8]; bf16[8,4]"},
      {"LinearGroupGrad {count=1}", "i32[2,8]; i32[8,4]; i32[2,4]",
       "operand 0 is of i32; wanted floating point"},
      {"LinearGroupGrad {count=1}", "f32[2,8]; f32[8,4]; i32[2,4]",
       "element types differ; got f32 and i32"},
      {"LinearGroupGrad {count=1}", "f32[2,8]; f32[7,4]; f32[2,4]",
       "inner dimensions differ; got 8 and 7"},
  });
}

std::string Equation(const std::string& equation, const std::string& more = "") {
  return absl::StrCat("Einsum", more.empty() ? "" : "Grad", " {equation=\"", equation, "\"", more,
                      "}");
}

TEST(ProductTypes, OfEinsums) {
  const std::string letters = "abcdefghijklmnopqrstuvwxyzABCDEF";  // 32
  const auto malformed = [](const std::string& equation, const std::string& trouble) {
    return InferRow{Equation(equation), "f32[2,2]",
                    absl::StrCat("equation \"", equation, "\" ", trouble,
                                 "; wanted letters as in \"bik,bkj->bij\"")};
  };
  Expect({
      {Equation("ij,jk->ki"), "f32[2@dp,8]; f32[8,4@hp]", "f32[4@hp,2@dp]"},
      {Equation("ij,jk->ik"), "f32[2,8@hp]; f32[8@hp,4]", "f32[2,4] partial(hp)"},
      {Equation("ii->i"), "f32[4@hp,4]",
       "dimension 0 of operand 0 is split over hp; it must be whole"},
      malformed("ij", "has no one arrow"),
      malformed("ij->i->j", "has no one arrow"),
      malformed("i1->i", "has more"),
      malformed("ij->ii", "repeats a letter in its result"),
      malformed("ij->ijk", "makes its result of letters that no operand has"),
      malformed(letters + "G->", "has more than 32 letters"),
      {Equation(letters + "->"), "f32[2]",
       "operand 0 has shape [2]; wanted a dimension for each of \"" + letters + "\""},
      {Equation("ij,j->i"), "f32[2,3]", "got 1 operands; wanted 2 as the equation has"},
      {Equation("ij,j->i"), "f32[2,3]; f16[3]", "element types differ; got f32 and f16"},
      {Equation("ij,j->i"), "f32[2,3]; f32[3,1]",
       "operand 1 has shape [3,1]; wanted a dimension for each of \"j\""},
      {Equation("ij,j->i"), "f32[2,3]; f32[2]", "'j' has size 3 and size 2"},
      {Equation("ij,j->i", ", operand=1"), "f32[2,3]; f32[3]; f32[2]", "f32[3]"},
      {Equation("ij,j->i", ", operand=2"), "f32[2,3]; f32[3]; f32[2]",
       "operand=2 is none of the 2 operands of the equation"},
      {Equation("ij,j->i", ", operand=-1"), "f32[2,3]; f32[3]; f32[2]",
       "operand=-1 is none of the 2 operands of the equation"},
      {Equation("ij,j->i", ", operand=0"), "f32[2,3]; f32[3]; f32[3]",
       "operand 2 has shape [3]; wanted [2] as the result"},
      {Equation("ij,j->i", ", operand=0"), "f32[2,3]; f32[3]; f16[2]",
       "element types differ; got f32 and f16"},
      {Equation("ij,j->i", ", operand=0"), "i32[2,3]; i32[3]; i32[2]",
       "operand 0 is of i32; wanted floating point"},
      {Equation("ij,j->i", ", operand=0"), "f32[2,3]; f32[2]",
       "got 1 operands; wanted 2 as the equation has"},
  });
}

// No text has an op without operands that wants some; a builder might.
TEST(ProductTypes, OfNothing) {
  const AttributeSet attributes;
  const Mesh mesh;
  TypeList results;
  const OpTypes op{.attributes = attributes, .operands = {}, .mesh = mesh};
  EXPECT_EQ(InferTypes(OpKind::kEinsumGrad, op, results).message(),
            "got 0 operands; wanted 2 or more");
  EXPECT_EQ(InferTypes(OpKind::kConcat, op, results).message(),
            "got 0 operands; wanted at least 1");
}

TEST(ProductTypes, OfConvolutions) {
  Expect({
      // (7 + 1 + 1 - 3) / 2 + 1; then the three elements reach over 7.
      {"Conv {strides=[2], pads=[1, 1]}", "f32[1,3,7]; f32[2,3,3]", "f32[1,2,4]"},
      {"Conv {strides=[2], pads=[1, 1], dilations=[3]}", "f32[1,3,7]; f32[2,3,3]", "f32[1,2,2]"},
      {"Conv", "f32[1,3,7]; f32[2,3,7]; f32[2]", "f32[1,2,1]"},
      {"Conv {pads=[-2, -1]}", "f32[1,3,7]; f32[2,3,3]", "f32[1,2,2]"},
      {"Conv", "f32[2@dp,4@hp,5]; f32[6,4@hp,3]", "f32[2@dp,6,3] partial(hp)"},
      {"Conv {activation=\"relu\"}", "f32[2,3,5]; f32[8@hp,3,3]; f32[8@hp]", "f32[2,8@hp,3]"},
      {"Conv {activation=\"relu\"}", "f32[2,4@hp,5]; f32[6,4@hp,3]",
       "dimension 1 of operand 0 is split over hp; it must be whole"},
      {"Conv {group=4}", "f32[2,4@hp,5]; f32[4@hp,1,3]; f32[4@hp]", "f32[2,4@hp,3]"},
      {"Conv {activation=\"relu6\", group=4}", "f32[2,4@hp,5]; f32[4@hp,1,3]", "f32[2,4@hp,3]"},
      {"Conv {group=4}", "f32[2,4@hp,5]; f32[8@hp,1,3]",
       "dimension 1 of operand 0 is split over hp; it must be whole"},
      {"ConvTranspose {spatial=[6]}", "f32[2@dp,8@hp,3]; f32[8@hp,3,4]; f32[3]",
       "f32[2@dp,3,6] partial(hp)"},
      {"ConvDataGrad {spatial=[6], group=2}", "f32[1,2,3]; f32[2,3,4]", "f32[1,6,6]"},
      {"ConvDataGrad {spatial=[1099511627775]}", "f32[1,2,3]; f32[2,3,4]",
       "f32[1,3,1099511627775]"},
      {"ConvWeightGrad {kernel=[4]}", "f32[2@dp,3,6]; f32[2@dp,8@hp,3]",
       "f32[8@hp,3,4] partial(dp)"},
      {"ConvWeightGrad {kernel=[4], group=2}", "f32[2,6,6]; f32[2,8,3]", "f32[8,3,4]"},
  });
}

TEST(ProductTypes, OfConvolutionsThatDoNotFit) {
  const std::string xw = "f32[1,3,7]; f32[2,3,3]";
  Expect({
      {"Conv", "f32[1,3]; f32[2,3]", "operand 0 has shape [1,3]; wanted [batch,channels,..]"},
      {"Conv", "f32[1,3,7]; f32[2,3]", "operand 1 has shape [2,3]; wanted [batch,channels,..]"},
      {"Conv", "f32[1,3,7]; f16[2,3,3]", "element types differ; got f32 and f16"},
      {"Conv", "f32[1,3,7]; f32[2,3,3,3]",
       "got shapes [1,3,7] and [2,3,3,3]; wanted as many dimensions"},
      {"Conv {group=0}", xw, "group=0 does not divide 3 channels and 2 maps"},
      {"Conv {group=3}", "f32[1,3,7]; f32[2,1,3]", "group=3 does not divide 3 channels and 2 maps"},
      {"Conv", "f32[1,99,7]; f32[2,99,3]", "group=1 does not divide 0 channels and 2 maps"},
      {"Conv", "f32[1,3,7]; f32[99,3,3]", "group=1 does not divide 3 channels and 0 maps"},
      {"Conv", "f32[1,3,7]; f32[2,2,3]",
       "got 3 channels in 1 groups and weights for 2 channels a group"},
      {"Conv", xw + "; f32[3]", "operand 2 has shape [3]; wanted [2] (the bias)"},
      {"Conv", xw + "; f16[2]", "element types differ; got f32 and f16"},
      {"Conv {activation=\"gelu\"}", xw,
       "activation \"gelu\" is unknown; wanted \"relu\", \"relu6\" or none"},
      {"Conv", "f32[1,3,7]; f32[2,3,8]",
       "a window that reaches over 8 does not fit into spatial dimension 0 of 7 with padding 0 and "
       "0"},
      {"ConvDataGrad {spatial=[6]}", "f32[1,3,3]; f32[2,3,4]", "got 3 maps and weights for 2"},
      {"ConvDataGrad {spatial=[6], group=0}", "f32[1,2,3]; f32[2,3,4]",
       "group=0 does not divide 0 channels and 2 maps"},
      {"ConvDataGrad {spatial=[6], group=3}", "f32[1,2,3]; f32[2,3,4]",
       "group=3 does not divide 3 channels and 2 maps"},
      {"ConvDataGrad {spatial=[6]}", "f32[1,2,3]; f32[2,99,4]",
       "group=1 does not divide 0 channels and 2 maps"},
      {"ConvDataGrad", "f32[1,2,3]; f32[2,3,4]",
       "spatial=[]; wanted a size for each of 1 spatial dimensions"},
      {"ConvDataGrad {spatial=[0]}", "f32[1,2,3]; f32[2,3,4]",
       "spatial=[0]; wanted a size for each of 1 spatial dimensions"},
      {"ConvDataGrad {spatial=[1099511627776]}", "f32[1,2,3]; f32[2,3,4]",
       "spatial=[1099511627776]; wanted a size for each of 1 spatial dimensions"},
      {"ConvDataGrad {spatial=[6], strides=[0]}", "f32[1,2,3]; f32[2,3,4]",
       "strides=[0]; wanted 1 numbers of at least 1"},
      {"ConvTranspose {spatial=[6]}", "f32[1,2,3]; f32[2,3,4]; f32[2]",
       "operand 2 has shape [2]; wanted [3] (the bias)"},
      {"ConvWeightGrad {kernel=[4]}", "f32[2,3,6]; f32[1,8,3]", "got batches of 2 and 1"},
      {"ConvWeightGrad {kernel=[4], group=2}", "f32[2,3,6]; f32[2,8,3]",
       "group=2 does not divide 3 channels and 8 maps"},
      {"ConvWeightGrad {kernel=[4, 4]}", "f32[2,3,6]; f32[2,8,3]",
       "kernel=[4,4]; wanted a size for each of 1 spatial dimensions"},
      {"ConvWeightGrad {kernel=[4], pads=[0]}", "f32[2,3,6]; f32[2,8,3]",
       "pads=[0]; wanted 2 numbers of at least -1073741824"},
  });
}

}  // namespace
}  // namespace product_types_test_cc
}  // namespace orrery::ir
