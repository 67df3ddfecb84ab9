#include <gtest/gtest.h>

#include <string>

#include "ir/infer_test_util.h"

// Types, shardings and errors of norms. Over mesh(dp=2, hp=4).

namespace orrery::ir {
namespace norm_types_test_cc {
namespace {

TEST(NormTypes, OfLayerNorm) {
  Expect({
      {"LayerNorm", "f16[4@dp,3,8]; f16[8]; f16[8]", "f16[4@dp,3,8]; f32[4@dp,3,1]; f32[4@dp,3,1]"},
      {"LayerNorm {axis=1}", "f64[4@dp,3,8]; f64[3,8]",
       "f64[4@dp,3,8]; f64[4@dp,1,1]; f64[4@dp,1,1]"},
      {"LayerNorm {axis=-3}", "f32[4,3,8]; f32[4,3,8]", "f32[4,3,8]; f32[1,1,1]; f32[1,1,1]"},
      {"LayerNorm", "f32[3,8@hp]; f32[8]",
       "dimension 1 of operand 0 is split over hp; it must be whole"},
      {"LayerNorm {axis=1}", "f32[2,4@hp,8]; f32[4,8]",
       "dimension 1 of operand 0 is split over hp; it must be whole"},
      {"LayerNorm", "f32[3,8]; f32[8@hp]",
       "dimension 0 of operand 1 is split over hp; it must be whole"},
      {"LayerNorm", "f32[]; f32[]", "operand 0 has shape []; wanted [..,n]"},
      {"LayerNorm {axis=3}", "f32[4,3,8]; f32[8]", "axis 3 is none of the 3 dimensions"},
      {"LayerNorm", "i32[3,8]; f32[8]", "operand 0 is of i32; wanted floating point"},
      {"LayerNorm", "f32[3,8]; i32[8]", "operand 1 is of i32; wanted floating point"},
      {"LayerNorm", "f32[3,8]; f32[8]; i32[8]", "operand 2 is of i32; wanted floating point"},
      {"LayerNorm", "f32[3,8]; f32[3]",
       "operand 1 has shape [3]; wanted [8] as what is normalized"},
      {"LayerNorm {axis=0}", "f32[3,8]; f32[3,8]; f32[8]",
       "operand 2 has shape [8]; wanted [3,8] as what is normalized"},
  });
}

TEST(NormTypes, OfLayerNormBackward) {
  Expect({
      // What all rows share is a sum over them.
      {"LayerNormGrad", "f32[4@dp,8]; f16[8]; f32[4@dp,1]; f32[4@dp,1]; f32[4@dp,8]",
       "f32[4@dp,8]; f16[8] partial(dp); f16[8] partial(dp)"},
      {"LayerNormGrad", "f32[4,8]; f32[4]; f32[4,1]; f32[4,1]; f32[4,8]",
       "operand 1 has shape [4]; wanted [8] as what is normalized"},
      {"LayerNormGrad", "f32[4,8]; f32[8]; f32[4]; f32[4,1]; f32[4,8]",
       "operand 2 has shape [4]; wanted [4,1] (the means)"},
      {"LayerNormGrad", "f32[4,8]; f32[8]; f32[4,1]; f32[1,1]; f32[4,8]",
       "operand 3 has shape [1,1]; wanted [4,1] (the deviations)"},
      {"LayerNormGrad", "f32[4,8]; f32[8]; f32[4,1]; f32[4,1]; f32[4,1]",
       "operand 4 has shape [4,1]; wanted [4,8] as x"},
      {"LayerNormGrad", "f32[4,8]; f32[8]; f32[4,1]; f32[4,1]; i32[4,8]",
       "operand 4 is of i32; wanted floating point"},
  });
}

TEST(NormTypes, OfGroupNorm) {
  Expect({
      {"GroupNorm {groups=2}", "f16[8@dp,4,3]; f16[4]; f16[4]",
       "f16[8@dp,4,3]; f32[8@dp,2]; f32[8@dp,2]"},
      {"GroupNorm", "f32[8,4]; f32[1]; f32[4]", "f32[8,4]; f32[8,1]; f32[8,1]"},
      {"GroupNorm {groups=4}", "f32[8,4@hp,3]; f32[4]; f32[4]",
       "dimension 1 of operand 0 is split over hp; it must be whole"},
      {"GroupNorm", "f32[4]; f32[4]; f32[4]",
       "operand 0 has shape [4]; wanted [batch,channels,..]"},
      {"GroupNorm", "f32[8,4]; f32[4]; i32[4]", "operand 2 is of i32; wanted floating point"},
      {"GroupNorm {groups=3}", "f32[8,4]; f32[4]; f32[4]", "groups=3 does not divide 4 channels"},
      {"GroupNorm {groups=0}", "f32[8,4]; f32[4]; f32[4]", "groups=0 does not divide 4 channels"},
      {"GroupNorm {groups=2}", "f32[8,4]; f32[3]; f32[4]",
       "operand 1 has shape [3]; wanted [4] (one a channel)"},
      {"GroupNorm {groups=2}", "f32[8,4]; f32[2]; f32[1]",
       "operand 2 has shape [1]; wanted [4] (one a channel)"},
      {"GroupNormGrad {groups=2}", "f32[8@dp,4]; f16[2]; f32[8@dp,2]; f32[8@dp,2]; f32[8@dp,4]",
       "f32[8@dp,4]; f16[2] partial(dp); f16[2] partial(dp)"},
      {"GroupNormGrad {groups=2}", "f32[8,4]; f32[4]; f32[8,4]; f32[8,2]; f32[8,4]",
       "operand 2 has shape [8,4]; wanted [8,2] (the means)"},
      {"GroupNormGrad {groups=2}", "f32[8,4]; f32[3]; f32[8,2]; f32[8,2]; f32[8,4]",
       "operand 1 has shape [3]; wanted [4] (one a channel)"},
  });
}

TEST(NormTypes, OfRmsNorm) {
  Expect({
      {"RmsNorm", "f16[4@dp,3,8]; f16[8]", "f16[4@dp,3,8]; f32[4@dp,3]"},
      {"RmsNorm {axis=1}", "f64[4@dp,3,8]; f64[3,8]", "f64[4@dp,3,8]; f64[4@dp]"},
      {"RmsNorm {axis=0}", "f32[3,8]; f32[3,8]", "f32[3,8]; f32[]"},
      {"RmsNorm", "f32[3,8@hp]; f32[8]",
       "dimension 1 of operand 0 is split over hp; it must be whole"},
      {"RmsNorm", "f32[3,8]; f32[3]",
       "got a gamma of f32[3] for x of f32[3,8]; wanted the normalized dimensions [8]"},
      {"RmsNorm", "f32[3,8]; f16[8]",
       "got a gamma of f16[8] for x of f32[3,8]; wanted the normalized dimensions [8]"},
      {"RmsNorm", "i32[3,8]; i32[8]",
       "got a gamma of i32[8] for x of i32[3,8]; wanted the normalized dimensions [8]"},
      {"RmsNorm {axis=2}", "f32[3,8]; f32[8]", "axis 2 is none of the 2 dimensions"},
      {"RmsNormGrad", "f32[4@dp,8]; f32[8]; f32[4@dp]; f32[4@dp,8]",
       "f32[4@dp,8]; f32[8] partial(dp)"},
      {"RmsNormGrad", "f32[4,8]; f32[8]; i32[4]; f32[4,8]",
       "operand 2 is of i32; wanted floating point"},
      {"RmsNormGrad", "f32[4,8]; f32[8]; f32[4]; bool[4,8]",
       "operand 3 is of bool; wanted floating point"},
      {"RmsNormGrad", "f32[4,8]; f32[8]; f32[4,1]; f32[4,8]",
       "rstd and dy have shapes [4,1] and [4,8]; wanted [4] and [4,8]"},
      {"RmsNormGrad", "f32[4,8]; f32[8]; f32[4]; f32[4]",
       "rstd and dy have shapes [4] and [4]; wanted [4] and [4,8]"},
  });
}

TEST(NormTypes, OfBatchNorm) {
  const std::string image = "f16[8@dp,4@hp,3]",
                    four = "; f32[4@hp]; f32[4@hp]; f32[4@hp]; f32[4@hp]";
  Expect({
      {"BatchNorm", image + four, image},
      {"BatchNorm {activation=\"relu6\"}", image + four + "; f16[8@dp,4@hp,3]", image},
      // The batch is split, yet statistics are no parts of a sum: each rank has its own.
      {"BatchNorm {training=1}", image + four, image + four},
      {"BatchNorm {training=1}", "f64[8,4]; f64[4]; f64[4]; f16[4]; f64[4]",
       "f64[8,4]; f64[4]; f64[4]; f16[4]; f64[4]"},
      {"BatchNorm", "f32[8,4,2@dp]; f32[4]; f32[4]; f32[4]; f32[4]",
       "dimension 2 of operand 0 is split over dp; it must be whole"},
      {"BatchNormGrad {training=1}",
       "f32[8@dp,4@hp]; f32[4@hp]; f32[4@hp]; f32[4@hp]; f32[8@dp,4@hp]",
       "f32[8@dp,4@hp]; f32[4@hp] partial(dp); f32[4@hp] partial(dp)"},
  });
}

TEST(NormTypes, OfBatchNormThatDoesNotFit) {
  const std::string three = "; f32[4]; f32[4]; f32[4]";
  Expect({
      {"BatchNorm", "f32[4]; f32[4]" + three,
       "operand 0 has shape [4]; wanted [batch,channels,..]"},
      {"BatchNorm", "i32[8,4]; f32[4]" + three, "operand 0 is of i32; wanted floating point"},
      {"BatchNorm", "f32[8,4]; f32[8]" + three,
       "operand 1 has shape [8]; wanted [4] (one a channel)"},
      {"BatchNorm", "f32[8,4]" + three + "; f32[4,1]",
       "operand 4 has shape [4,1]; wanted [4] (one a channel)"},
      {"BatchNorm", "f32[8,4]" + three + "; i32[4]", "operand 4 is of i32; wanted floating point"},
      {"BatchNorm {activation=\"gelu\"}", "f32[8,4]; f32[4]" + three,
       "activation \"gelu\" is unknown; wanted \"relu\", \"relu6\" or none"},
      {"BatchNorm", "f32[8,4]; f32[4]" + three + "; f32[8,1]",
       "operand 5 has shape [8,1]; wanted [8,4] as x"},
      {"BatchNorm", "f32[8,4]; f32[4]" + three + "; i32[8,4]",
       "operand 5 is of i32; wanted floating point"},
      {"BatchNormGrad", "f32[8,4]" + three + "; f32[8]",
       "operand 4 has shape [8]; wanted [8,4] as x"},
      {"BatchNormGrad", "f32[8,4]" + three + "; i32[8,4]",
       "operand 4 is of i32; wanted floating point"},
      {"BatchNormGrad", "f32[8,4]; f32[4]; f32[4]; f32[8]; f32[8,4]",
       "operand 3 has shape [8]; wanted [4] (one a channel)"},
  });
}

TEST(NormTypes, OfLocalResponseNorm) {
  Expect({
      {"LocalResponseNorm {size=3}", "f32[2@dp,8,4@hp]", "f32[2@dp,8,4@hp]"},
      {"LocalResponseNorm {size=2147483648}", "f32[2,8]", "f32[2,8]"},
      {"LocalResponseNorm {size=2147483649}", "f32[2,8]",
       "size=2147483649; wanted the number of channels, at least 1"},
      {"LocalResponseNorm", "f32[2,8]", "size=0; wanted the number of channels, at least 1"},
      {"LocalResponseNorm {size=3}", "f32[8]",
       "operand 0 has shape [8]; wanted [batch,channels,..]"},
      {"LocalResponseNorm {size=3}", "i32[2,8]", "operand 0 is of i32; wanted floating point"},
      {"LocalResponseNorm {size=3}", "f32[2,8@hp]",
       "dimension 1 of operand 0 is split over hp; it must be whole"},
      {"LocalResponseNormGrad {size=3}", "f32[2@dp,8]; f32[2@dp,8]", "f32[2@dp,8]"},
      {"LocalResponseNormGrad {size=3}", "f32[2,8]; i32[2,8]",
       "element types differ; got f32 and i32"},
      {"LocalResponseNormGrad {size=3}", "f32[2,8]; f32[2,7]",
       "shapes differ; got [2,8] and [2,7]"},
      {"LocalResponseNormGrad", "f32[2,8]; f32[2,8]",
       "size=0; wanted the number of channels, at least 1"},
  });
}

TEST(NormTypes, OfSoftmaxAndItsLike) {
  for (const char* op : {"Softmax", "LogSoftmax", "Hardmax"}) {
    EXPECT_EQ(Infer(op, "f16[4@dp,3]"), "f16[4@dp,3]") << op;
    EXPECT_EQ(Infer(op, "f16[3,8@hp]"),
              "dimension 1 of operand 0 is split over hp; it must be whole")
        << op;
    EXPECT_EQ(Infer(op, "i32[3]"), "operand 0 is of i32; wanted floating point") << op;
  }
  Expect({
      {"Softmax {axis=0}", "f32[3,8@hp]", "f32[3,8@hp]"},
      {"Softmax {axis=-3}", "f32[3,8]", "axis -3 is none of the 2 dimensions"},
      {"SoftmaxGrad", "f32[4@dp,3]; f32[4@dp,3]", "f32[4@dp,3]"},
      {"SoftmaxGrad", "f32[4,3]; f32[4,1]", "shapes differ; got [4,3] and [4,1]"},
      {"SoftmaxGrad", "f16[4,3]; f32[4,3]", "element types differ; got f16 and f32"},
      {"LogSoftmaxGrad", "f32[4,3]; f16[4,3]", "element types differ; got f32 and f16"},
      {"LogSoftmaxGrad", "f32[4,3]; i32[4,3]", "operand 1 is of i32; wanted floating point"},
  });
}

}  // namespace
}  // namespace norm_types_test_cc
}  // namespace orrery::ir
