#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "ir/infer_test_util.h"

// Types, shardings and errors of attention and of what stands around it: masks, caches of rows,
// rotations. Over mesh(dp=2, hp=4); 99 stands for 0.

namespace orrery::ir {
namespace attention_types_test_cc {
namespace {

TEST(AttentionTypes, OfHeadsPackedOrApart) {
  Expect({
      // Two heads; k is 4 wide, v 6.
      {"Attention {heads=2}", "f32[1,3,8]; f32[1,5,8]; f32[1,5,12]", "f32[1,3,12]; f32[1,2,3,5]"},
      {"Attention {heads=2}", "f32[1,3,8]; f32[1,2,5,4]; f32[1,2,5,6]",
       "f32[1,3,12]; f32[1,2,3,5]"},
      {"Attention {heads=2}", "f32[1,2,3,4]; f32[1,5,8]; f32[1,5,12]",
       "f32[1,2,3,6]; f32[1,2,3,5]"},
      {"Attention {heads=2, kv_heads=1}", "f32[1,3,8]; f32[1,5,4]; f32[1,5,6]",
       "f32[1,3,12]; f32[1,2,3,5]"},
      {"Attention {heads=2}", "f32[1,3,8]; f32[1,99,8]; f32[1,99,8]", "f32[1,3,8]; f32[1,2,3,0]"},
      // A logarithm a row, in f32 at least.
      {"Attention {flash=1, heads=2}", "f16[1,3,8]; f16[1,5,8]; f16[1,5,12]",
       "f16[1,3,12]; f32[1,2,3]"},
      {"Attention {flash=1, heads=2}", "f64[1,3,8]; f64[1,5,8]; f64[1,5,12]",
       "f64[1,3,12]; f64[1,2,3]"},
      {"Attention {dropout=0.5, heads=2}", "f16[1,3,8]; f16[1,5,8]; f16[1,5,12]",
       "f16[1,3,12]; f16[1,2,3,5]; bool[1,2,3,5]; f16[1,2,3,5]"},
      {"Attention {flash=1, heads=4}", "f32[2@dp,3,16@hp]; f32[2@dp,5,16@hp]; f32[2@dp,5,16@hp]",
       "f32[2@dp,3,16@hp]; f32[2@dp,4@hp,3]"},
      // Ranks may share all keys and values, but not one of them alone.
      {"Attention {heads=4}", "f32[1,3,8@hp]; f32[1,5,8]; f32[1,5,8]",
       "f32[1,3,8@hp]; f32[1,4@hp,3,5]"},
      {"Attention {heads=4}", "f32[1,3,8@hp]; f32[1,5,8]; f32[1,5,8@hp]",
       "operands 0 and 1 run over one dimension that is split over 'hp' in the one and over '' in "
       "the other"},
  });
}

// Each row breaks one of the conditions.
TEST(AttentionTypes, OfShapesThatDoNotFit) {
  const auto row = [](const std::string& attributes, const std::string& q, const std::string& k,
                      const std::string& v) {
    return InferRow{
        absl::StrCat("Attention {", attributes, "}"),
        absl::StrCat("f32", q, "; f32", k, "; f32", v),
        absl::StrCat("q, k and v have shapes ", q, ", ", k, " and ", v, " with ", attributes,
                     "; wanted [batch,rows,heads width] or [batch,heads,rows,width], one batch, "
                     "one width of q and k, and as many heads of k and v as go into those of q")};
  };
  Expect({
      row("heads=2", "[3,8]", "[1,5,8]", "[1,5,12]"),
      row("heads=2", "[1,1,2,3,4]", "[1,5,8]", "[1,5,12]"),
      row("heads=2", "[1,3,8]", "[5,8]", "[5,8]"),
      row("heads=2", "[1,3,8]", "[1,5,8]", "[1,2,5,6]"),
      row("heads=0", "[1,3,8]", "[1,5,8]", "[1,5,12]"),
      row("heads=2", "[1,3,7]", "[1,5,8]", "[1,5,12]"),
      row("heads=2", "[1,3,3,4]", "[1,5,8]", "[1,5,12]"),
      row("heads=2", "[1,3,8]", "[1,5,6]", "[1,5,12]"),
      row("heads=2", "[1,3,8]", "[1,5,8]", "[1,5,7]"),
      row("heads=2", "[1,3,8]", "[2,5,8]", "[1,5,12]"),
      row("heads=2", "[1,3,8]", "[1,5,8]", "[2,5,12]"),
      row("heads=2", "[1,3,8]", "[1,5,8]", "[1,4,12]"),
      row("heads=2", "[1,3,8]", "[1,2,5,3]", "[1,2,5,6]"),
      row("heads=2", "[1,3,8]", "[1,2,5,4]", "[1,1,5,6]"),
  });
  const std::string empty = Infer("Attention {heads=2}", "f32[1,3,99]; f32[1,5,8]; f32[1,5,12]");
  EXPECT_EQ(empty.substr(0, 37), "q, k and v have shapes [1,3,0], [1,5,");
  const std::string none = Infer("Attention {heads=2}", "f32[1,3,8]; f32[1,5,99]; f32[1,5,12]");
  EXPECT_EQ(none.substr(0, 41), "q, k and v have shapes [1,3,8], [1,5,0] a");
}

TEST(AttentionTypes, OfHeadsTypesAndMasksThatDoNotFit) {
  const std::string qkv = "f32[4,3,8]; f32[4,5,8]; f32[4,5,12]";
  const std::string results = "f32[4,3,12]; f32[4,2,3,5]";
  Expect({
      {"Attention {heads=2}", "f32[1,3,8]; f32[1,5,4]; f32[1,5,4]",
       "k has 1 heads of width 4; wanted kv_heads=2, which go into heads=2"},
      {"Attention {heads=3, kv_heads=2}", "f32[1,3,12]; f32[1,5,8]; f32[1,5,8]",
       "k has 2 heads of width 4; wanted kv_heads=2, which go into heads=3"},
      {"Attention {dropout=-0.5, heads=2}", qkv, "dropout=-0.5; wanted at least 0 and less than 1"},
      {"Attention {heads=2}", "f32[1,3,8]; f16[1,5,8]; f32[1,5,8]",
       "q, k and v are of f32, f16 and f32; wanted one type of floats"},
      {"Attention {heads=2}", "f32[1,3,8]; f32[1,5,8]; f64[1,5,8]",
       "q, k and v are of f32, f32 and f64; wanted one type of floats"},
      {"Attention {heads=2}", "i32[1,3,8]; i32[1,5,8]; i32[1,5,8]",
       "q, k and v are of i32, i32 and i32; wanted one type of floats"},
      {"Attention {heads=2}", qkv + "; bool[3,5]", results},
      {"Attention {heads=2}", qkv + "; f32[4,1,1,5]", results},
      // Two masks, one for every second sample: windows.
      {"Attention {heads=2}", qkv + "; f32[2,2,3,5]", results},
      {"Attention {heads=2}", qkv + "; f32[3,2,3,5]",
       "a mask of shape [3,2,3,5] does not broadcast to [4,2,3,5]"},
      {"Attention {heads=2}", qkv + "; bool[4,5]",
       "a mask of shape [4,5] does not broadcast to [4,2,3,5]"},
      {"Attention {heads=2}", qkv + "; bool[2,4,2,3,5]",
       "a mask of shape [2,4,2,3,5] does not broadcast to [4,2,3,5]"},
      {"Attention {heads=2}", qkv + "; f16[3,5]", "got a mask of f16[3,5]; wanted bool or f32"},
      {"Attention {heads=2}", qkv + "; i32[3,5]", "got a mask of i32[3,5]; wanted bool or f32"},
  });
}

TEST(AttentionTypes, OfGradients) {
  const std::string qkv = "f32[1,3,8]; f32[1,5,8]; f32[1,5,12]", y = "; f32[1,3,12]",
                    p = "; f32[1,2,3,5]", results = "f32[1,3,8]; f32[1,5,8]; f32[1,5,12]";
  const std::string wanted = "; wanted [1,3,12], [1,2,3,5] and [1,3,12]";
  Expect({
      {"AttentionGrad {heads=2}", qkv + y + p + y, results},
      {"AttentionGrad {heads=2}", qkv + y + p + y + "; bool[3,5]", results},
      {"AttentionGrad {heads=2}", qkv + y + p + y + "; f32[3,5]", results},
      {"AttentionGrad {heads=2, mask_gradient=1}", qkv + y + p + y + "; f32[3,5]",
       results + "; f32[3,5]"},
      {"AttentionGrad {heads=2, mask_gradient=1}", qkv + y + p + y, results},
      {"AttentionGrad {heads=2, mask_gradient=1}", qkv + y + p + y + "; bool[3,5]",
       "operand 6 is of bool; wanted floating point"},
      {"AttentionGrad {heads=2}", qkv + "; f32[1,3,8]" + p + y,
       "y, statistics and dy have shapes [1,3,8], [1,2,3,5] and [1,3,12]" + wanted},
      {"AttentionGrad {heads=2}", qkv + y + "; f32[1,2,3]" + y,
       "y, statistics and dy have shapes [1,3,12], [1,2,3] and [1,3,12]" + wanted},
      {"AttentionGrad {heads=2}", qkv + y + p + "; f32[1,3,8]",
       "y, statistics and dy have shapes [1,3,12], [1,2,3,5] and [1,3,8]" + wanted},
      {"AttentionGrad {heads=2}", qkv + "; i32[1,3,12]" + p + y,
       "operand 3 is of i32; wanted floating point"},
      {"AttentionGrad {heads=2}", qkv + y + p + "; bool[1,3,12]",
       "operand 5 is of bool; wanted floating point"},
      {"AttentionGrad {dropout=0.5, heads=2}", qkv + y + p + y + "; bool[1,2,3,5]; i32[1,2,3,5]",
       "what dropout left is bool[1,2,3,5] and i32[1,2,3,5]; wanted bools and floats of shape "
       "[1,2,3,5]"},
      {"AttentionGrad {heads=2}", qkv + y + p + y + "; f32[3,5]; f32[3,5]",
       "got 8 operands; wanted 6, and a mask or none"},
      {"AttentionGrad {heads=2}", qkv + y + p + y + "; f32[4,5]",
       "a mask of shape [4,5] does not broadcast to [1,2,3,5]"},
  });
}

TEST(AttentionTypes, OfMergedParts) {
  const auto both = [](const std::string& y, const std::string& l) {
    return absl::StrCat(y, "; ", l, "; ", y, "; ", l);
  };
  const auto refused = [&](const std::string& y, const std::string& l) {
    return InferRow{"MergeAttention", both(y, l),
                    absl::StrCat("got ", y, " and ", l, ", and ", y, " and ", l,
                                 "; wanted two results of Attention with flash=1, of one shape")};
  };
  Expect({
      {"MergeAttention", both("f16[2,4,6,8]", "f32[2,4,6]"), "f16[2,4,6,8]; f32[2,4,6]"},
      {"MergeAttention", both("f64[2,6,8]", "f64[2,4,6]"), "f64[2,6,8]; f64[2,4,6]"},
      {"MergeAttention", both("f32[2@dp,6,8@hp]", "f32[2@dp,4@hp,6]"),
       "f32[2@dp,6,8@hp]; f32[2@dp,4@hp,6]"},
      refused("f64[2,6,8]", "f32[2,4,6]"),
      refused("i32[2,6,8]", "f32[2,4,6]"),
      refused("f32[2,6,8]", "f32[4,6]"),
      refused("f32[2,6,8]", "f32[2,3,6]"),
      refused("f32[2,6,8]", "f32[2,4,5]"),
      refused("f32[3,6,8]", "f32[2,4,6]"),
      refused("f32[2,8]", "f32[2,4,6]"),
      refused("f32[3,4,6,8]", "f32[2,4,6]"),
      refused("f32[2,3,6,8]", "f32[2,4,6]"),
      refused("f32[2,4,5,8]", "f32[2,4,6]"),
      {"MergeAttention", "f32[2,6,8]; f32[2,4,6]; f16[2,6,8]; f32[2,4,6]",
       "got f32[2,6,8] and f32[2,4,6], and f16[2,6,8] and f32[2,4,6]; wanted two results of "
       "Attention with flash=1, of one shape"},
  });
}

TEST(AttentionTypes, OfRowsThatAreAppended) {
  const std::string wanted = "; wanted [batch,rows,heads width] and [batch,heads,rows,width]";
  Expect({
      {"AppendRows", "f32[2,3,5,4]; f32[2,7,12]", "f32[2,3,12,4]"},
      {"AppendRows", "f32[2@dp,4@hp,99,4]; f32[2@dp,7,16@hp]", "f32[2@dp,4@hp,7,4]"},
      {"AppendRows", "f32[2,4,5,4]; f32[2,8@hp,16]",
       "dimension 1 of operand 1 is split over hp; it must be whole"},
      {"AppendRows", "f32[2,3,5,4]; f32[2,7,11]",
       "cannot append f32[2,7,11] to f32[2,3,5,4]" + wanted},
      {"AppendRows", "f32[2,3,5,4]; f32[1,7,12]",
       "cannot append f32[1,7,12] to f32[2,3,5,4]" + wanted},
      {"AppendRows", "f32[2,3,5,4]; f16[2,7,12]",
       "cannot append f16[2,7,12] to f32[2,3,5,4]" + wanted},
      {"AppendRows", "f32[2,5,12]; f32[2,7,12]",
       "cannot append f32[2,7,12] to f32[2,5,12]" + wanted},
      {"AppendRows", "f32[2,3,5,4]; f32[2,3,7,4]",
       "cannot append f32[2,3,7,4] to f32[2,3,5,4]" + wanted},
  });
}

TEST(AttentionTypes, OfRowsOfSlices) {
  const std::string wanted =
      " of an operand of 3 dimensions; wanted one of these, and no fewer rows than none";
  Expect({
      {"ExtendRows {earlier=3}", "f32[2@dp,5,8@hp]", "f32[2@dp,8,8@hp]"},
      {"ExtendRows {dim=2, earlier=3}", "f32[2,4@hp,8]", "f32[2,4@hp,11]"},
      {"ExtendRows {dim=0}", "f32[2,5,8]", "f32[2,5,8]"},
      {"ExtendRows {earlier=3}", "f32[2,4@hp,8]",
       "dimension 1 of operand 0 is split over hp; it must be whole"},
      {"ExtendRows {dim=3, earlier=3}", "f32[2,5,8]", "dim=3, earlier=3 and later=0" + wanted},
      {"ExtendRows {dim=-1, earlier=3}", "f32[2,5,8]", "dim=-1, earlier=3 and later=0" + wanted},
      {"ExtendRows {earlier=-1}", "f32[2,5,8]", "dim=1, earlier=-1 and later=0" + wanted},
      {"ExtendRows {earlier=9223372036854775807}", "f32[2,5,8]",
       "its result would be f32[2,2305843009213693952,8]; wanted at most 2^60 bytes"},
      {"ExtendRowsGrad {earlier=3, later=2}", "f32[2@dp,5,8@hp]", "f32[2@dp,2,8@hp]"},
      {"ExtendRowsGrad {dim=2, earlier=3}", "f32[2,5,8]", "f32[2,5,5]"},
      {"ExtendRowsGrad {earlier=5}", "f32[2,5,8]", "f32[2,0,8]"},
      {"ExtendRowsGrad {earlier=6}", "f32[2,5,8]",
       "[2,5,8] has 5 rows; wanted the earlier=6 among them"},
      {"ExtendRowsGrad {later=-1}", "f32[2,5,8]", "dim=1, earlier=0 and later=-1" + wanted},
  });
}

TEST(AttentionTypes, OfRotations) {
  const auto misfit = [](const std::string& x, const std::string& table) {
    return InferRow{"Rotary", absl::StrCat("f32", x, "; f32", table, "; f32", table),
                    absl::StrCat("tables of shape ", table, " do not broadcast to ", x,
                                 "; wanted [..,sequence,d] with an even d")};
  };
  Expect({
      {"Rotary", "f32[2,4@hp,3,4]; f32[3,4]; f32[3,4]", "f32[2,4@hp,3,4]"},
      {"Rotary {layout=\"interleaved\"}", "f16[2,3,4]; f16[1,3,4]; f16[1,3,4]", "f16[2,3,4]"},
      {"Rotary", "f32[2,4@hp,4]; f32[4@hp,4]; f32[4@hp,4]", "f32[2,4@hp,4]"},
      // Two packed heads: one a rank, but no half of one.
      {"Rotary", "f32[2,3,8@dp]; f32[3,4]; f32[3,4]", "f32[2,3,8@dp]"},
      {"Rotary", "f32[2,3,8@hp]; f32[3,4]; f32[3,4]",
       "dimension 2 of operand 0 is split over hp; it must be whole"},
      {"Rotary", "f32[2,3,4@dp]; f32[3,4]; f32[3,4]",
       "dimension 2 of operand 0 is split over dp; it must be whole"},
      {"Rotary {layout=\"spiral\"}", "f32[2,3,4]; f32[3,4]; f32[3,4]",
       "layout=\"spiral\"; wanted \"half\" or \"interleaved\""},
      {"Rotary", "f32[2,3,4]; f32[3,4]; f32[3,2]",
       "got tables f32[3,4] and f32[3,2] for f32[2,3,4]; wanted one type"},
      {"Rotary", "f32[2,3,4]; f16[3,4]; f32[3,4]",
       "got tables f16[3,4] and f32[3,4] for f32[2,3,4]; wanted one type"},
      {"Rotary", "f32[2,3,4]; f32[3,4]; f16[3,4]",
       "got tables f32[3,4] and f16[3,4] for f32[2,3,4]; wanted one type"},
      {"Rotary", "i32[2,3,4]; i32[3,4]; i32[3,4]",
       "got tables i32[3,4] and i32[3,4] for i32[2,3,4]; wanted one type"},
      misfit("[2,3,3]", "[3,3]"),
      misfit("[2,3,6]", "[3,4]"),
      misfit("[2,3,4]", "[5,4]"),
      misfit("[]", "[3,4]"),
      misfit("[2,3,4]", "[]"),
      misfit("[3,4]", "[2,3,4]"),
      misfit("[2,2,3,8]", "[3,4]"),  // four dimensions: heads are no longer packed
      {"Rotary", "f32[2,3,4]; f32[3,99]; f32[3,99]",
       "tables of shape [3,0] do not broadcast to [2,3,4]; wanted [..,sequence,d] with an even d"},
  });
}

TEST(AttentionTypes, OfMaskedSoftmax) {
  Expect({
      {"MaskedSoftmax", "f16[2@dp,3,5]; f16[3,5]", "f16[2@dp,3,5]"},
      {"MaskedSoftmax {axis=0}", "f32[3,8@hp]; bool[8@hp]", "f32[3,8@hp]"},
      {"MaskedSoftmax {causal=1}", "f32[2@dp,4,4]", "f32[2@dp,4,4]"},
      {"MaskedSoftmax", "f32[3,4@hp]",
       "dimension 1 of operand 0 is split over hp; it must be whole"},
      // Which columns a row sees depends on which row it is.
      {"MaskedSoftmax {causal=1}", "f32[2,4@hp,4]",
       "dimension 1 of operand 0 is split over hp; it must be whole"},
      {"MaskedSoftmax", "f32[2,4@hp,4]", "f32[2,4@hp,4]"},
      {"MaskedSoftmax {axis=-1, causal=1}", "f32[3,5]", "f32[3,5]"},
      {"MaskedSoftmax {axis=0, causal=1}", "f32[3,5]",
       "causal=1 with axis=0 of [3,5]; wanted the last dimension"},
      {"MaskedSoftmax {axis=2}", "f32[3,5]", "axis 2 is none of the 2 dimensions"},
      {"MaskedSoftmax", "f32[3,5]; f16[5]", "got a mask of f16[5]; wanted bool or f32"},
      {"MaskedSoftmax", "i32[3,5]", "operand 0 is of i32; wanted floating point"},
      {"MaskedSoftmax", "f32[3,5]; f32[4]", "a mask of shape [4] does not broadcast to [3,5]"},
      {"MaskedSoftmax", "f32[3,5]; bool[2,3,5]",
       "a mask of shape [2,3,5] does not broadcast to [3,5]"},
  });
}

}  // namespace
}  // namespace attention_types_test_cc
}  // namespace orrery::ir
