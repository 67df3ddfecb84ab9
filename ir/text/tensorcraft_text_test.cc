#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/layout.h"
#include "ir/sharding_text.h"
#include "ir/text/layout_text.h"

// tensorcraft's mappings, read and printed, and which of them it has.

namespace orrery::ir {
namespace tensorcraft_text_test_cc {
namespace {

using testing::HasSubstr;

AxisList Axes(const std::vector<int>& axes) {
  AxisList list;
  for (const int axis : axes) list.push_back(static_cast<AxisIndex>(axis));
  return list;
}

Mesh MeshOf(const std::vector<int64_t>& sizes) {
  std::vector<Axis> axes;
  for (size_t i = 0; i < sizes.size(); ++i) axes.push_back({absl::StrCat("a", i), sizes[i]});
  return Mesh(axes);
}

// Whether every rank holds an element when blocks are dealt out one after another.
bool AllHold(int64_t size, int64_t parts, int64_t block) {
  std::vector<bool> holds(static_cast<size_t>(parts), false);
  for (int64_t i = 0; i < size; ++i) holds[static_cast<size_t>(i / block % parts)] = true;
  return std::ranges::find(holds, false) == holds.end();
}

TEST(CheckTensorcraft, WantsAnElementOnEveryRank) {
  const Mesh mesh = MeshOf({2, 3});
  for (int64_t size = 1; size <= 20; ++size) {
    for (int64_t block = 1; block <= size + 1; ++block) {
      for (const AxisList& axes : {Axes({0}), Axes({1}), Axes({1, 0})}) {
        Sharding sharding;
        sharding.Set(0, 1, axes, block);
        const absl::Status status = CheckTensorcraft(sharding, {size}, mesh);
        const int64_t parts = mesh.size(axes);
        EXPECT_EQ(status.ok(), AllHold(size, parts, block))
            << block << " of " << size << " in " << parts << " " << status;
        if (status.ok() || size < parts) continue;
        // The largest block that it offers is one.
        int64_t largest = block;
        while (!AllHold(size, parts, largest)) --largest;
        EXPECT_THAT(std::string(status.message()),
                    testing::EndsWith(absl::StrCat("wanted blocks of at most ", largest)));
      }
    }
  }
}

TEST(CheckTensorcraft, SaysWhatItLacks) {
  const Mesh mesh = MeshOf({2, 3, 1});
  const auto trouble = [&mesh](const Sharding& sharding, const Dims& dims) {
    return std::string(CheckTensorcraft(sharding, dims, mesh).message());
  };
  Sharding rows;
  rows.Set(0, 2, Axes({1}), 2);
  EXPECT_EQ(trouble(rows, {5, 7}), "");
  EXPECT_EQ(trouble(rows, {4, 7}),
            "dimension 0 of 4 in 3 parts by blocks of 2 leaves some ranks without any; wanted "
            "blocks of at most 1");
  EXPECT_EQ(trouble(rows, {2, 7}),
            "dimension 0 of 2 in 3 parts by blocks of 2 leaves some ranks without any; wanted a "
            "size of at least 3");
  EXPECT_EQ(trouble(rows, {4}),
            "found a layout of 2 dimensions for a tensor of 1; wanted one entry a dimension");
  rows.Set(0, 2, Axes({2}), 7);
  EXPECT_EQ(trouble(rows, {7, 7}), "");
  EXPECT_THAT(trouble(rows, {6, 7}), HasSubstr("in 1 parts by blocks of 7"));
  rows.Set(0, 2, Axes({0, 1}));
  EXPECT_EQ(trouble(rows, {12, 7}), "");
  EXPECT_THAT(trouble(rows, {10, 7}), HasSubstr("not blocks of one size"));
  Sharding sums;
  sums.partial = Axes({0, 1});
  EXPECT_EQ(trouble(sums, {4, 4}), "found values partial over a0.a1; wanted whole ones");
}

// What is printed in either style reads back as the same layout on the same mesh.
TEST(TensorcraftText, ReadsBack) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 300; ++i) {
    std::vector<int64_t> sizes;
    for (uint64_t axes = 1 + random() % 4; axes > 0; --axes) {
      sizes.push_back(static_cast<int64_t>(1 + random() % 5));
    }
    const Mesh mesh = MeshOf(sizes);
    const size_t rank = 1 + random() % 4;
    Sharding sharding;
    std::vector<int> order(sizes.size());
    for (size_t a = 0; a < order.size(); ++a) order[a] = static_cast<int>(a);
    for (size_t a = order.size(); a > 1; --a) std::swap(order[a - 1], order[random() % a]);
    for (const int axis : order) {
      const size_t dim = random() % (rank + 1);
      if (dim == rank) continue;
      AxisList axes = sharding.at(dim);
      axes.push_back(static_cast<AxisIndex>(axis));
      sharding.Set(dim, rank, axes, static_cast<int64_t>(1 + random() % 100));
    }
    for (const TextStyle style : {TextStyle::kAscii, TextStyle::kUnicode}) {
      const auto text = TensorcraftText(sharding, Dims(rank, 64), mesh, style);
      ASSERT_TRUE(text.ok());
      const auto read = ParseTensorcraft(*text);
      ASSERT_TRUE(read.ok()) << *text << " " << read.status();
      EXPECT_EQ(read->sharding, sharding) << *text;
      EXPECT_EQ(read->mesh, mesh);
      EXPECT_EQ(read->rank, rank);
    }
  }
}

TEST(TensorcraftText, OfNestedChunksThatAreBlocks) {
  const Mesh mesh = MeshOf({2, 4});
  Sharding sharding;
  sharding.Set(1, 3, Axes({1, 0}));
  const auto text = [&](int64_t size, TextStyle style) {
    const auto printed = TensorcraftText(sharding, {5, size, 5}, mesh, style);
    return printed.ok() ? *printed : std::string(printed.status().message());
  };
  EXPECT_EQ(text(16, TextStyle::kAscii), "D_[2,4]{-,(1,0),-}(-,2,-)");
  EXPECT_EQ(text(15, TextStyle::kUnicode), "D_[2,4]⊥{∅,(1,0),∅}(∅,2,∅)");
  EXPECT_EQ(text(3, TextStyle::kAscii), "D_[2,4]{-,(0,1),-}(-,1,-)");  // a0 idles, on the outside
  EXPECT_EQ(text(10, TextStyle::kAscii),
            "dimension 1 of 10 is split into parts that are not blocks of one size; wanted those");
  sharding.partial = {};
  sharding.Set(1, 3, Axes({1}));
  sharding.partial = Axes({0});
  EXPECT_EQ(text(16, TextStyle::kAscii),
            "the values are partial over a0; wanted whole ones, as tensorcraft knows no others");
  EXPECT_EQ(*TensorcraftText({}, {}, mesh, TextStyle::kAscii), "D_[2,4]{}()");
}

// ASCII of what is read; or the error.
std::string Again(absl::string_view text) {
  const auto read = ParseTensorcraft(text);
  if (!read.ok()) return std::string(read.status().message());
  return *TensorcraftText(read->sharding, Dims(read->rank, 64), read->mesh, TextStyle::kAscii);
}

TEST(ParseTensorcraft, ReadsAllForms) {
  EXPECT_EQ(Again("D_[2,4]{(0,),()}(3,-)"), "D_[2,4]{0,-}(3,-)");
  EXPECT_EQ(Again("D_ [ 2 , 4 ] { (1,0) , - } ( 3 , - )"), "D_[2,4]{(1,0),-}(3,-)");
  EXPECT_EQ(Again("D_[2,4]{(0,1,),-}"), "D_[2,4]{(0,1),-}(1,-)");
  EXPECT_EQ(Again("D_[2,4]⊥{1,∅}()"), "D_[2,4]{1,-}(1,-)");
  EXPECT_EQ(Again("D_[2,4]⊥{1,-}(-1,7)"), "D_[2,4]{1,-}(1,-)");  // no block where nothing is split
  EXPECT_EQ(Again("D_[2,4]{1,0}(-,∅)"), "D_[2,4]{1,0}(1,1)");
  EXPECT_EQ(Again("D_[]{-}"), "D_[]{-}(-)");
  EXPECT_EQ(Again("D_[2]{}"), "D_[2]{}()");
  EXPECT_EQ(Again("D_[1,1,1,1,1,1,1]{6}"), "D_[1,1,1,1,1,1,1]{6}(1)");
  EXPECT_EQ(Again("D_[1048576,1048576]{(1,0)}(9)"), "D_[1048576,1048576]{(1,0)}(9)");
}

TEST(ParseTensorcraft, SaysWhereItIsWrong) {
  EXPECT_EQ(Again(""), "at 1: found the end of the text; wanted 'D_'");
  EXPECT_EQ(Again("D_2"), "at 3: found \"2\"; wanted '['");
  EXPECT_EQ(Again("D_[2"), "at 5: found the end of the text; wanted ','");
  EXPECT_EQ(Again("D_[2,]{}"), "at 6: found \"]{}\"; wanted the size of an axis");
  const std::string fits = "wanted up to 7 axes of at least 1, and up to 2^40 ranks";
  EXPECT_EQ(Again("D_[1,1,1,1,1,1,1,1]{}"), "at 18: found \"1]{}\"; " + fits);
  EXPECT_EQ(Again("D_[1048576,1048577]{}"), "at 12: found \"1048577]{}\"; " + fits);
  EXPECT_EQ(Again("D_[2,-4]{}"), "at 6: found \"-4]{}\"; " + fits);
  EXPECT_EQ(Again("D_[2](1)"), "at 6: found \"(1)\"; wanted '{'");
  const std::string axis = "wanted an axis from 0 to 2 - 1, each at most once";
  EXPECT_EQ(Again("D_[2,4]{2}"), "at 9: found \"2}\"; " + axis);
  EXPECT_EQ(Again("D_[2,4]{(0,2)}"), "at 12: found \"2)}\"; " + axis);
  EXPECT_EQ(Again("D_[2,4]{(0,1),1}"), "at 15: found \"1}\"; " + axis);
  EXPECT_EQ(Again("D_[2,4]{(0,0)}"), "at 12: found \"0)}\"; " + axis);
  EXPECT_EQ(Again("D_[2,4]{256}"), "at 9: found \"256}\"; " + axis);
  EXPECT_EQ(Again("D_[2,4]{x}"), "at 9: found \"x}\"; " + axis);
  EXPECT_EQ(Again("D_[2,4]{0,}"), "at 11: found \"}\"; " + axis);
  EXPECT_EQ(Again("D_[2,4]{0"), "at 10: found the end of the text; wanted ','");
  EXPECT_EQ(Again("D_[2,4]{(0 1)}"), "at 12: found \"1)}\"; wanted ','");
  const std::string blocks = "wanted a block size of at least 1, or none: -";
  EXPECT_EQ(Again("D_[2,4]{0}(-2)"), "at 12: found \"-2)\"; " + blocks);
  EXPECT_EQ(Again("D_[2,4]{0}(-12)"), "at 12: found \"-12)\"; " + blocks);
  EXPECT_EQ(Again("D_[2,4]{0}(0)"), "at 12: found \"0)\"; " + blocks);
  EXPECT_EQ(Again("D_[2,4]{0}(x)"), "at 12: found \"x)\"; wanted a block size, or none: -");
  EXPECT_EQ(Again("D_[2,4]{0,1}(3)"),
            "found 1 blocks for 2 dimensions; wanted one a dimension, - where it is not split");
  EXPECT_EQ(Again("D_[2,4]{0,1}(3,4)(5)"), "at 18: found \"(5)\"; wanted the end of the layout");
}

std::string Parts(absl::string_view mapping, absl::string_view blocks) {
  const Mesh mesh({{"dp", 2}, {"hp", 4}});
  const auto read = ParseTensorcraftParts(mesh, mapping, blocks);
  if (!read.ok()) return std::string(read.status().message());
  EXPECT_EQ(read->mesh, mesh);
  return absl::StrCat(read->rank, ": ",
                      LayoutText(read->sharding, Dims(read->rank, 64), read->mesh));
}

TEST(ParseTensorcraftParts, ReadsEachPart) {
  EXPECT_EQ(Parts("", ""), "0: []");
  EXPECT_EQ(Parts("-", ""), "1: [64]");
  EXPECT_EQ(Parts("0,-", "5,-"), "2: [64@dp/5,64]");
  EXPECT_EQ(Parts("-,(1,0)", "-,5"), "2: [64,64@hp.dp/5]");
  EXPECT_EQ(Parts("(1,0)", ""), "1: [64@hp.dp/1]");
  EXPECT_EQ(Parts("0,-", "5"),
            "found 1 blocks for 2 dimensions; wanted one a dimension, - where it is not split");
  EXPECT_EQ(Parts("0,", ""),
            "at 3: found the end of the text; wanted an axis from 0 to 2 - 1, each at most once");
  EXPECT_EQ(Parts("0 1", ""), "at 3: found \"1\"; wanted ','");
  EXPECT_EQ(Parts("0,1", "5,"), "at 3: found the end of the text; wanted a block size, or none: -");
  EXPECT_EQ(Parts("0}", ""), "at 2: found \"}\"; wanted ','");
}

}  // namespace
}  // namespace tensorcraft_text_test_cc
}  // namespace orrery::ir
