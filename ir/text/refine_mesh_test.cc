#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/layout.h"
#include "ir/sharding_text.h"
#include "ir/tensor_parts.h"
#include "ir/text/layout_text.h"

// Meshes whose axes are cut into parts, and layouts on them.

namespace orrery::ir {
namespace refine_mesh_test_cc {
namespace {

using testing::HasSubstr;

int64_t Coordinate(const Mesh& mesh, int64_t rank, AxisIndex axis) {
  return PartOf(mesh, rank, AxisList(axis));
}

// Where a rank stands along a sub-axis, from its coordinate on the whole axis.
int64_t Along(const Mesh& mesh, int64_t rank, const SubAxis& sub) {
  const int64_t inner = mesh.size(sub.axis) / sub.outer / sub.size;
  return Coordinate(mesh, rank, sub.axis) / inner % sub.size;
}

// Sub-axes of axes of 24 and 16 whose cuts are among those of one chain of divisors each.
std::vector<SubAxis> AnyWanted(std::mt19937_64& random) {
  const std::vector<std::vector<int64_t>> chains[] = {{{1, 2, 6, 24}, {1, 3, 12, 24}, {1, 4, 24}},
                                                      {{1, 2, 4, 16}, {1, 8, 16}, {1, 16}}};
  std::vector<SubAxis> wanted;
  for (const AxisIndex axis : {AxisIndex{0}, AxisIndex{2}}) {
    const auto& chain = chains[axis / 2][random() % 3];
    for (uint64_t subs = random() % 3; subs > 0; --subs) {
      const size_t from = random() % (chain.size() - 1);
      const size_t to = from + random() % (chain.size() - from);
      wanted.push_back({axis, chain[from], chain[to] / chain[from]});
    }
  }
  return wanted;
}

TEST(RefineMesh, NumbersRanksAsBefore) {
  const Mesh mesh({{"hp", 24}, {"one", 1}, {"dp", 16}});
  std::mt19937_64 random(1);
  for (int i = 0; i < 60; ++i) {
    const std::vector<SubAxis> wanted = AnyWanted(random);
    const auto cut = RefineMesh(mesh, wanted);
    ASSERT_TRUE(cut.ok()) << cut.status();
    EXPECT_EQ(cut->whole, mesh);
    ASSERT_EQ(cut->refined.size(), mesh.size());
    ASSERT_EQ(cut->parts.size(), cut->refined.axes().size());
    for (AxisIndex axis = 0; axis < static_cast<AxisIndex>(cut->parts.size()); ++axis) {
      EXPECT_EQ(cut->refined.size(axis), cut->parts[axis].size);
      for (int64_t rank = 0; rank < mesh.size(); rank += 1 + rank % 7) {
        ASSERT_EQ(Coordinate(cut->refined, rank, axis), Along(mesh, rank, cut->parts[axis]));
      }
    }
    // No cut but those that are wanted.
    for (const SubAxis& part : cut->parts) {
      bool begins = part.outer == 1;
      for (const SubAxis& sub : wanted) {
        if (sub.axis != part.axis) continue;
        begins = begins || sub.outer == part.outer || sub.outer * sub.size == part.outer;
      }
      EXPECT_TRUE(begins) << ToString(cut->refined);
    }
  }
}

// Split over a sub-axis, a rank has the part of its position along it, whatever else is cut.
TEST(RefineMesh, SplitsBySubAxes) {
  const Mesh mesh({{"hp", 24}, {"one", 1}, {"dp", 16}});
  std::mt19937_64 random(2);
  for (int i = 0; i < 60; ++i) {
    const std::vector<SubAxis> wanted = AnyWanted(random);
    if (wanted.empty() || wanted[0].size == 1) continue;
    const SubAxis& sub = wanted[0];
    const std::string& name = mesh.axes()[sub.axis].name;
    std::string text = absl::StrCat("[", 3 * sub.size, "@", name, ":(", sub.outer, ")", sub.size);
    const bool whole = sub.size == mesh.size(sub.axis);
    const std::string printed =
        whole ? absl::StrCat("[", 3 * sub.size, "@", name, "]") : absl::StrCat(text, "]");
    const auto layout = ParseLayout(absl::StrCat(text, "]"), mesh);
    ASSERT_TRUE(layout.ok()) << text << " " << layout.status();
    EXPECT_EQ(LayoutText(*layout), printed);
    for (int64_t rank = 0; rank < mesh.size(); ++rank) {
      const Part part =
          HeldPart(SplitOf(layout->sharding, layout->dims, 0), layout->mesh.refined, rank);
      ASSERT_EQ(part.begin, 3 * Along(mesh, rank, sub)) << text;
      ASSERT_EQ(part.size(), 3);
    }
  }
}

std::string Refined(const Mesh& mesh, const std::vector<SubAxis>& wanted) {
  const auto cut = RefineMesh(mesh, wanted);
  return cut.ok() ? ToString(cut->refined) : std::string(cut.status().message());
}

TEST(RefineMesh, CutsNoMoreThanWanted) {
  const Mesh mesh({{"hp", 12}, {"dp", 4}});
  EXPECT_EQ(Refined(mesh, {}), "mesh(hp=12, dp=4)");
  EXPECT_EQ(Refined(mesh, {{0, 1, 12}}), "mesh(hp=12, dp=4)");
  EXPECT_EQ(Refined(mesh, {{0, 1, 1}, {0, 12, 1}}), "mesh(hp=12, dp=4)");
  EXPECT_EQ(Refined(mesh, {{0, 1, 3}}), "mesh(hp-0=3, hp-1=4, dp=4)");
  EXPECT_EQ(Refined(mesh, {{0, 3, 4}}), "mesh(hp-0=3, hp-1=4, dp=4)");
  EXPECT_EQ(Refined(mesh, {{0, 3, 1}}), "mesh(hp-0=3, hp-1=4, dp=4)");
  EXPECT_EQ(Refined(mesh, {{0, 3, 2}}), "mesh(hp-0=3, hp-1=2, hp-2=2, dp=4)");
  EXPECT_EQ(Refined(mesh, {{0, 2, 6}, {1, 2, 2}}), "mesh(hp-0=2, hp-1=6, dp-0=2, dp-1=2)");
  EXPECT_EQ(Refined(mesh, {{0, 2, 2}, {0, 1, 4}}), "mesh(hp-0=2, hp-1=2, hp-2=3, dp=4)");
  EXPECT_EQ(Refined(Mesh(), {}), "mesh()");
  EXPECT_EQ(Refined(Mesh({{"a", 1}, {"b", 2}}), {{0, 1, 1}}), "mesh(a=1, b=2)");
  EXPECT_EQ(Refined(Mesh({{"a", 4}, {"b-c", 2}, {"d--e", 3}}), {{0, 2, 2}}),
            "mesh(a---0=2, a---1=2, b-c=2, d--e=3)");
}

TEST(RefineMesh, SaysWhatItCannotCut) {
  const Mesh mesh({{"hp", 12}, {"dp", 4}});
  EXPECT_EQ(Refined(mesh, {{0, 5, 2}}),
            "hp:(5)2: found an axis of size 12; wanted a multiple of 5 × 2");
  EXPECT_EQ(Refined(mesh, {{0, 2, 5}}),
            "hp:(2)5: found an axis of size 12; wanted a multiple of 2 × 5");
  EXPECT_EQ(Refined(mesh, {{0, 4, 6}}),
            "hp:(4)6: found an axis of size 12; wanted a multiple of 4 × 6");
  EXPECT_EQ(Refined(mesh, {{1, -1, 2}}),
            "dp:(-1)2: found an axis of size 4; wanted a multiple of -1 × 2");
  EXPECT_EQ(Refined(mesh, {{1, 2, 0}}),
            "dp:(2)0: found an axis of size 4; wanted a multiple of 2 × 0");
  EXPECT_EQ(Refined(mesh, {{0, 1, 4}, {0, 1, 6}}),
            "axis hp is cut after 4 and after 6 parts; wanted cuts of which each divides the next");
  EXPECT_EQ(Refined(mesh, {{2, 1, 1}}), "found a part of axis 2; wanted one of mesh(hp=12, dp=4)");
  const Mesh wide({{"a", 64}, {"b", 2}, {"c", 2}});
  EXPECT_EQ(Refined(wide, {{0, 2, 2}, {0, 8, 2}}),
            "mesh(a-0=2, a-1=2, a-2=2, a-3=2, a-4=4, b=2, c=2)");
  EXPECT_EQ(Refined(wide, {{0, 2, 2}, {0, 8, 2}, {0, 32, 2}}),
            "the sub-axes cut mesh(a=64, b=2, c=2) into 8 axes; wanted at most 7");
}

std::string Again(absl::string_view text) {
  const auto layout = ParseLayout(text, Mesh({{"hp", 8}, {"dp", 4}, {"x", 1}}));
  return layout.ok() ? LayoutText(*layout) : std::string(layout.status().message());
}

// Parts that follow one another are printed as one; others are not.
TEST(LayoutText, JoinsNeighbouringParts) {
  EXPECT_EQ(Again("[64@hp:(1)2.hp:(2)2.hp:(4)2]"), "[64@hp]");
  EXPECT_EQ(Again("[64@hp:(1)2.hp:(2)2]"), "[64@hp:(1)4]");
  EXPECT_EQ(Again("[64@hp:(2)2.hp:(1)2]"), "[64@hp:(2)2.hp:(1)2]");
  EXPECT_EQ(Again("[64@hp:(1)2.dp.hp:(2)4]"), "[64@hp:(1)2.dp.hp:(2)4]");
  EXPECT_EQ(Again("[64@hp:(1)2.hp:(4)2]"), "[64@hp:(1)2.hp:(4)2]");
  EXPECT_EQ(Again("[64@hp:(1)2.dp:(2)2]"), "[64@hp:(1)2.dp:(2)2]");
  EXPECT_EQ(Again("[64@hp:(1)8,4@x]"), "[64@hp,4@x]");
  EXPECT_EQ(Again("[64] partial(hp:(2)2.hp:(1)2)"), "[64] partial(hp:(1)4)");
  EXPECT_EQ(Again("[64] partial(dp.hp)"), "[64] partial(hp.dp)");
  EXPECT_EQ(Again("[64] partial(hp:(1)2:avg,hp:(2)4)"), "[64] partial(hp:(1)2:avg,hp:(2)4)");
  EXPECT_EQ(Again("[64] partial(hp:(1)2:average,hp:(2)4:avg)"), "[64] partial(hp:avg)");
  EXPECT_EQ(Again("[64@hp:(2)1/3]"), "[64]");  // a part of one rank splits nothing
}

TEST(LayoutText, SaysWhatItFindsInstead) {
  EXPECT_EQ(Again("[64@hp:2]"), "at 7: found \":2]\"; wanted ','");
  EXPECT_EQ(Again("[64@hp:(2]"), "at 10: found \"]\"; wanted ')'");
  EXPECT_EQ(Again("[64@hp:(2)]"), "at 11: found \"]\"; wanted the size of the sub-axis");
  EXPECT_EQ(Again("[64@hp:()2]"), "at 9: found \")2]\"; wanted the number of outer parts");
  EXPECT_EQ(Again("[64@hp.]"), "at 8: found \"]\"; wanted an axis of mesh(hp=8, dp=4, x=1)");
  EXPECT_EQ(Again("[64@hp/]"), "at 8: found \"]\"; wanted a block size, or balanced");
  EXPECT_EQ(Again("[64@hp/-1]"),
            "at 8: found \"-1]\"; wanted a block size of at least 1, or balanced");
  EXPECT_EQ(Again("[64/4]"), "at 4: found \"/4]\"; wanted ','");
  EXPECT_EQ(Again("[64,]"), "at 5: found \"]\"; wanted a dimension");
  EXPECT_EQ(Again("[64] partial"), "at 13: found the end of the text; wanted '('");
  EXPECT_EQ(Again("[64] partial()"), "at 14: found \")\"; wanted an axis of mesh(hp=8, dp=4, x=1)");
  EXPECT_EQ(Again("[64] partial(hp"), "at 16: found the end of the text; wanted ')'");
  EXPECT_EQ(Again("[64] partial(hp/2)"), "at 16: found \"/2)\"; wanted ')'");
  EXPECT_EQ(Again("[64@hp] partial(hp:(4)2)"),
            "found hp:(4)2 where a part of it is used before; wanted each part of an axis at most "
            "once");
  EXPECT_THAT(Again("[64] partial(hp:(1)2:max,hp:(2)4:sum)"), HasSubstr("different reductions"));
  EXPECT_THAT(Again("[64@hp:(99999999999999999999)2]"), HasSubstr("the number of outer parts"));
}

}  // namespace
}  // namespace refine_mesh_test_cc
}  // namespace orrery::ir
