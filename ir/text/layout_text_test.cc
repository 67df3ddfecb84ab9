#include "ir/text/layout_text.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/layout.h"
#include "ir/sharding_text.h"
#include "ir/text/text.h"
#include "support/paths_test_util.h"

namespace orrery::ir {
namespace layout_text_test_cc {
namespace {

using testing::HasSubstr;

const Mesh& Named() {
  static const auto& kMesh = *new Mesh({{"dp", 2}, {"hp", 8}, {"pp", 3}});
  return kMesh;
}

Mesh Numbered(const std::vector<int64_t>& sizes) {
  std::vector<Axis> axes;
  for (size_t i = 0; i < sizes.size(); ++i) axes.push_back({absl::StrCat("a", i), sizes[i]});
  return Mesh(axes);
}

// Reads and prints again; or the error.
std::string Again(absl::string_view text) {
  const auto layout = ParseLayout(text, Named());
  return layout.ok() ? LayoutText(*layout) : std::string(layout.status().message());
}

TEST(LayoutText, ReadsWhatItPrints) {
  for (const absl::string_view text :
       {"[]", "[64]", "[64@dp,512@hp.pp]", "[64@pp.hp/100,7]", "[5@hp/balanced] partial(dp)",
        "[8] partial(dp.hp:max)", "[8] partial(dp,hp:avg,pp)", "[8] partial(dp:avg,hp.pp)",
        "[8@hp:(1)2.dp] partial(hp:(2)4)", "[8@hp:(2)2,4@hp:(4)2]", "[8@hp:(4)2.hp:(1)4/3]",
        "[8@hp:(2)4.hp:(1)2]", "[8@hp:(2)2]"}) {
    EXPECT_EQ(Again(text), text);
  }
}

TEST(LayoutText, SaysWhereItIsWrong) {
  const std::string mesh = "mesh(dp=2, hp=8, pp=3)";
  EXPECT_EQ(Again("64"), "at 1: found \"64\"; wanted '['");
  EXPECT_EQ(Again("[64@"), "at 5: found the end of the text; wanted an axis of " + mesh);
  EXPECT_EQ(Again("[64@xp]"), "at 5: found \"xp]\"; wanted an axis of " + mesh);
  EXPECT_EQ(Again("[-4]"), "at 2: found \"-4]\"; wanted a dimension that is not negative");
  EXPECT_EQ(Again("[4@hp/0]"),
            "at 7: found \"0]\"; wanted a block size of at least 1, or balanced");
  EXPECT_EQ(Again("[4] partial(hp:mean)"),
            "at 16: found \"mean)\"; wanted sum, avg, product, max or min");
  EXPECT_EQ(Again("[4] x"), "at 5: found \"x\"; wanted the end of the layout");
  EXPECT_EQ(Again("[4@hp,4@hp:(2)2]"),
            "found hp:(2)2 where a part of it is used before; wanted each part of an axis at most "
            "once");
  EXPECT_EQ(Again("[4@hp:(3)2]"), "hp:(3)2: found an axis of size 8; wanted a multiple of 3 × 2");
  EXPECT_EQ(Again("[4@hp:(0)2]"), "hp:(0)2: found an axis of size 8; wanted a multiple of 0 × 2");
  EXPECT_THAT(Again("[4] partial(dp:max,hp:min)"), HasSubstr("different reductions"));
  EXPECT_THAT(Again("[99999999999999999999]"), HasSubstr("wanted a dimension"));
}

TEST(RefineMesh, CutsAxesAndKeepsRanks) {
  const auto cut = RefineMesh(Named(), {{1, 2, 2}, {1, 1, 2}});
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_EQ(ToString(cut->refined), "mesh(dp=2, hp-0=2, hp-1=2, hp-2=2, pp=3)");
  EXPECT_EQ(cut->parts[2], (SubAxis{1, 2, 2}));
  const Mesh hyphened({{"hp", 4}, {"hp-0", 2}});
  EXPECT_EQ(ToString(RefineMesh(hyphened, {{0, 1, 2}})->refined), "mesh(hp--0=2, hp--1=2, hp-0=2)");
  const Mesh six({{"a", 6}});
  EXPECT_EQ(RefineMesh(six, {{0, 1, 2}, {0, 1, 3}}).status().message(),
            "axis a is cut after 2 and after 3 parts; wanted cuts of which each divides the next");
  EXPECT_EQ(RefineMesh(six, {{3, 1, 2}}).status().message(),
            "found a part of axis 3; wanted one of mesh(a=6)");
  const Mesh seven({{"a", 4}, {"b", 1}, {"c", 1}, {"d", 1}, {"e", 1}, {"f", 1}, {"g", 1}});
  EXPECT_EQ(RefineMesh(seven, {{0, 2, 2}}).status().message(),
            "the sub-axes cut " + ToString(seven) + " into 8 axes; wanted at most 7");
}

// The same parts on the same ranks as without the sub-axes.
TEST(RefineMesh, DoesNotMoveAnything) {
  const auto whole = ParseLayout("[64@hp.dp]", Named());
  const auto cut = ParseLayout("[64@hp:(1)2.hp:(2)4.dp]", Named());
  ASSERT_TRUE(whole.ok() && cut.ok()) << cut.status();
  EXPECT_EQ(cut->mesh.refined.axes().size(), 4u);
  for (int64_t rank = 0; rank < Named().size(); ++rank) {
    EXPECT_EQ(HeldPart(SplitOf(whole->sharding, whole->dims, 0), whole->mesh.refined, rank),
              HeldPart(SplitOf(cut->sharding, cut->dims, 0), cut->mesh.refined, rank));
  }
  EXPECT_EQ(LayoutText(*cut), "[64@hp.dp]");
}

TEST(Tensorcraft, ReadsWhatItPrinted) {
  std::ifstream file(absl::StrCat(SourceDir(), "/tests/data/tensorcraft_layouts.json"));
  const nlohmann::json cases = nlohmann::json::parse(file)["cases"];
  for (const nlohmann::json& golden : cases) {
    const auto text = golden["dist"].get<std::string>();
    const auto layout = ParseTensorcraft(text);
    ASSERT_TRUE(layout.ok()) << text << " " << layout.status();
    const auto shape = golden["shape"].get<std::vector<int64_t>>();
    const Dims dims(shape.begin(), shape.end());
    EXPECT_EQ(*TensorcraftText(layout->sharding, dims, layout->mesh, TextStyle::kUnicode), text);
    const auto ascii = TensorcraftText(layout->sharding, dims, layout->mesh, TextStyle::kAscii);
    const auto again = ParseTensorcraft(*ascii);
    ASSERT_TRUE(again.ok()) << *ascii;
    EXPECT_EQ(again->sharding, layout->sharding);
    EXPECT_EQ(again->mesh, Numbered(golden["mesh"].get<std::vector<int64_t>>()));
    EXPECT_TRUE(CheckTensorcraft(layout->sharding, dims, layout->mesh).ok()) << text;
  }
}

TEST(Tensorcraft, ReadsThePartsOfTheCommandLine) {
  const Mesh mesh = Numbered({4, 2, 4});
  const auto layout = ParseTensorcraftParts(mesh, "(0,1),-,-,-", "100,-,-,-");
  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_EQ(*TensorcraftText(layout->sharding, {800, 400, 800, 4}, mesh, TextStyle::kAscii),
            "D_[4,2,4]{(0,1),-,-,-}(100,-,-,-)");
  EXPECT_EQ(layout->sharding, ParseTensorcraft("D_[4,2,4]⊥{(0,1),∅,∅,∅}(100,∅,∅,∅)")->sharding);
  // A missing block is 1; a tuple of one is an axis, as Python prints it.
  const auto ones = ParseTensorcraftParts(mesh, "-,(1,),0", "-,-,-1");
  ASSERT_TRUE(ones.ok()) << ones.status();
  EXPECT_EQ(ones->sharding, ParseTensorcraftParts(mesh, "-,1,0", "")->sharding);
  EXPECT_EQ(ones->sharding.block(1), 1);
}

std::string TroubleOfTensorcraft(absl::string_view text) {
  return std::string(ParseTensorcraft(text).status().message());
}

TEST(Tensorcraft, SaysWhatIsWrong) {
  EXPECT_EQ(TroubleOfTensorcraft("E"), "at 1: found \"E\"; wanted 'D_'");
  EXPECT_EQ(TroubleOfTensorcraft("D_[2]{0,0}"),
            "at 9: found \"0}\"; wanted an axis from 0 to 1 - 1, each at most once");
  EXPECT_EQ(TroubleOfTensorcraft("D_[0]{}"),
            "at 4: found \"0]{}\"; wanted up to 7 axes of at least 1, and up to 2^40 ranks");
  EXPECT_EQ(TroubleOfTensorcraft("D_[2]{0}(0)"),
            "at 10: found \"0)\"; wanted a block size of at least 1, or none: -");
  EXPECT_THAT(TroubleOfTensorcraft("D_[2]{0}(1,1)"), HasSubstr("found 2 blocks for 1 dimensions"));
  EXPECT_THAT(TroubleOfTensorcraft("D_[2]{0}(1)x"), HasSubstr("wanted the end of the layout"));
}

// Every rank owns an element: torch's chunks of 12 in 8 parts do not.
TEST(Tensorcraft, WantsNoEmptyRanks) {
  const Mesh mesh = Numbered({8});
  const auto trouble = [&mesh](int64_t size, int64_t block) {
    Sharding sharding;
    sharding.Set(0, 1, AxisList(0), block);
    return std::string(CheckTensorcraft(sharding, {size}, mesh).message());
  };
  EXPECT_EQ(trouble(16, 2), "");
  EXPECT_EQ(trouble(15, 2), "");
  EXPECT_EQ(trouble(16, kNestedChunks), "");
  EXPECT_EQ(trouble(12, 2),
            "dimension 0 of 12 in 8 parts by blocks of 2 leaves some ranks without any; wanted "
            "blocks of at most 1");
  EXPECT_THAT(trouble(7, 1), HasSubstr("wanted a size of at least 8"));
  Sharding partial;
  partial.partial = AxisList(0);
  EXPECT_THAT(std::string(CheckTensorcraft(partial, {8}, mesh).message()), HasSubstr("partial"));
  EXPECT_FALSE(TensorcraftText(partial, {8}, mesh, TextStyle::kAscii).ok());
  Sharding balanced;
  balanced.Set(0, 1, AxisList(0), kBalancedChunks);
  EXPECT_FALSE(TensorcraftText(balanced, {10}, mesh, TextStyle::kAscii).ok());
  EXPECT_EQ(*TensorcraftText(balanced, {16}, mesh, TextStyle::kAscii), "D_[8]{0}(2)");
}

// The short text of placements of a tensor of 3 dimensions on 2 × 4 × 2 ranks.
std::string Short(absl::string_view text) {
  const Mesh mesh = Numbered({2, 4, 2});
  const auto sharding = ParsePlacements(text, mesh, 3);
  if (!sharding.ok()) return std::string(sharding.status().message());
  return *PlacementText(*sharding, {64, 64, 64}, mesh, PlacementStyle::kShort);
}

TEST(Placements, AreReadInAllForms) {
  EXPECT_EQ(Short("[Shard(0), Replicate, Partial(sum)]"), "S0,R,P");
  EXPECT_EQ(Short("(Shard(dim=1), Replicate(), Partial())"), "S1,R,P");
  EXPECT_EQ(Short("S0, S(0) ,Pmax"), "S0,S0,P(max)");
  EXPECT_EQ(Short("P(avg),P,Psum"), "P(avg),P,P");
  EXPECT_EQ(Short("S-1,R,Partial(product)"), "S2,R,P(product)");
  EXPECT_EQ(Short("S0,S0,R order(0:1.0)"), "S0,S0,R order(0:1.0)");
  EXPECT_EQ(Short("S0,S0,S0 order(0:0.1.2)"), "S0,S0,S0");
  EXPECT_EQ(Short("_StridedShard(0, split_factor=4),S0,R"), "S0,S0,R order(0:1.0)");
  EXPECT_EQ(Short("_StridedShard(dim=0, sf=8),S0,S0"), "S0,S0,S0 order(0:1.2.0)");
  EXPECT_EQ(Short("_S(0, 2),_S(0, 2),S0"), "S0,S0,S0 order(0:2.0.1)");
}

TEST(Placements, SayWhatIsWrong) {
  EXPECT_EQ(Short("S0,R"), "at 5: found the end of the text; wanted ','");
  EXPECT_EQ(Short("S0,R,R,R"),
            "at 7: found \",R\"; wanted 3 placements, one an axis of mesh(a0=2, a1=4, a2=2)");
  EXPECT_EQ(Short("S3,R,R"), "at 2: found \"3,R,R\"; wanted a dimension below 3");
  EXPECT_EQ(Short("X,R,R"),
            "at 1: found \"X,R,R\"; wanted a placement: S0, R, P, P(max), or _S(0, "
            "2)");
  EXPECT_EQ(Short("P(mean),R,R"),
            "at 3: found \"mean),R,R\"; wanted sum, avg, product, max or min");
  EXPECT_THAT(Short("P(max),P(min),R"), HasSubstr("different reductions"));
  EXPECT_THAT(Short("_S(0, 3),S0,R"), HasSubstr("axis 0: found split factor 3"));
  EXPECT_THAT(Short("S0,S0,R order(0:1)"), HasSubstr("wanted the order of all axes"));
  EXPECT_THAT(Short("S0,S0,R order(0:1.2)"), HasSubstr("wanted an axis that splits dimension 0"));
  EXPECT_THAT(Short("S0,R,R]"), HasSubstr("wanted the end of the placements"));
}

// FSDP with tensor parallelism: 8 rows on 2 × 2 ranks lie as pairs 0, 2, 1, 3.
TEST(Placements, OfStridedShardsLieInAnotherOrder) {
  const Mesh mesh = Numbered({2, 2});
  const auto sharding = ParsePlacements("_StridedShard(0, split_factor=2),S0", mesh, 1);
  ASSERT_TRUE(sharding.ok()) << sharding.status();
  std::vector<int64_t> begins;
  for (int64_t rank = 0; rank < 4; ++rank) {
    begins.push_back(HeldPart(SplitOf(*sharding, {8}, 0), mesh, rank).begin);
  }
  EXPECT_THAT(begins, testing::ElementsAre(0, 4, 2, 6));
}

TEST(Placements, PrintWhatIsInNestedChunksOnly) {
  const Mesh mesh = Numbered({2, 4});
  Sharding sharding;
  sharding.Set(1, 2, AxisList(1), 2);
  EXPECT_EQ(*PlacementText(sharding, {4, 8}, mesh, PlacementStyle::kLong), "[Replicate, Shard(1)]");
  EXPECT_EQ(PlacementText(sharding, {4, 16}, mesh, PlacementStyle::kLong).status().message(),
            "dimension 1 of 16 is split into parts that are not nested chunks; wanted those");
}

std::string TypeAgain(absl::string_view type) {
  const auto function =
      ParseFunction(absl::StrCat("func @f mesh(dp=2, hp=2) (%x: ", type, " data) { return }"));
  if (!function.ok()) return std::string(function.status().message());
  return ToString(function->type(function->inputs()[0].value), function->mesh());
}

// The parser reads every layout; which of them a function may carry, the verifier says.
TEST(IrTypes, ReadBlocksAndReductions) {
  EXPECT_EQ(TypeAgain("f32[8@dp,4] partial(hp:sum)"), "f32[8@dp,4] partial(hp)");
  EXPECT_EQ(TypeAgain("f32[8@dp.hp/2]"),
            "f: %x is f32[8@dp.hp/2]; wanted no blocks: the values of a function are split evenly, "
            "and blocks are for redistributions");
  EXPECT_THAT(TypeAgain("f32[8@dp/balanced]"), HasSubstr("is f32[8@dp/balanced]; wanted no"));
  EXPECT_EQ(TypeAgain("f32[8@dp] partial(hp:max)"),
            "f: %x is f32[8@dp] partial(hp:max); wanted sums: the values of a function are partial "
            "in no other way, which is for redistributions");
  EXPECT_THAT(TypeAgain("f32[8] partial(dp,hp:avg)"), HasSubstr("is f32[8] partial(dp,hp:avg);"));
  EXPECT_THAT(TypeAgain("f32[8@dp/0]"), HasSubstr("wanted a block size behind the axes"));
  EXPECT_THAT(TypeAgain("f32[8] partial(dp/2)"), HasSubstr("wanted axes without blocks"));
  EXPECT_THAT(TypeAgain("f32[8] partial(dp,dp)"), HasSubstr("wanted partial axes, each once"));
  EXPECT_THAT(TypeAgain("f32[8] partial(dp:mean)"), HasSubstr("wanted sum, avg, product"));
}

// Texts with bytes exchanged, dropped and doubled: each is read, and prints what reads back, or is
// an error. Sanitizers see the rest.
TEST(LayoutTexts, AreReadWhateverTheySay) {
  const std::vector<std::string> seeds = {"[64@dp,512@hp:(2)4.pp/100] partial(hp:(1)2:max)",
                                          "[5@hp/balanced] partial(dp,pp:avg)",
                                          "D_[4,2,4]⊥{(0,1),∅,2}(100,∅,∅)",
                                          "D_[4,2]{(0,1),-}(-1,-)",
                                          "[Shard(0), _StridedShard(1, split_factor=2), P(max)]",
                                          "S0,S0,Pavg order(0:1.0)"};
  const std::string marks = "[](){}@.:,/-∅⊥0123456789SRPD_ adhmpx";
  std::mt19937_64 random(3);
  int read = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = seeds[random() % seeds.size()];
    for (uint64_t changes = random() % 4; changes > 0 && !text.empty(); --changes) {
      const size_t at = random() % text.size();
      const uint64_t kind = random() % 3;
      if (kind == 0) text[at] = marks[random() % marks.size()];
      if (kind == 1) text.erase(at, 1 + random() % 3);
      if (kind == 2) text.insert(at, text.substr(random() % text.size(), 4));
    }
    const Dims dims = {60, 24};
    if (const auto ours = ParseLayout(text, Named()); ours.ok()) {
      ++read;
      const std::string printed = LayoutText(*ours);
      const auto again = ParseLayout(printed, Named());
      ASSERT_TRUE(again.ok()) << text << " " << printed << " " << again.status();
      EXPECT_EQ(LayoutText(*again), printed) << text;
    }
    if (const auto theirs = ParseTensorcraft(text); theirs.ok() && theirs->rank == 2) {
      ++read;
      const auto printed = TensorcraftText(theirs->sharding, dims, theirs->mesh, TextStyle::kAscii);
      ASSERT_TRUE(printed.ok()) << text << " " << printed.status();
      EXPECT_EQ(ParseTensorcraft(*printed)->sharding, theirs->sharding) << text;
    }
    if (const auto torch = ParsePlacements(text, Named(), 2); torch.ok()) {
      ++read;
      const auto printed = PlacementText(*torch, dims, Named(), PlacementStyle::kLong);
      ASSERT_TRUE(printed.ok()) << text << " " << printed.status();
      EXPECT_EQ(*ParsePlacements(*printed, Named(), 2), *torch) << text;
    }
  }
  EXPECT_GT(read, 2000);
}

}  // namespace
}  // namespace layout_text_test_cc
}  // namespace orrery::ir
