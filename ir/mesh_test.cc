#include "ir/mesh.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace orrery::ir {
namespace mesh_test_cc {
namespace {

AxisList List(std::initializer_list<AxisIndex> axes) {
  AxisList list;
  for (const AxisIndex axis : axes) list.push_back(axis);
  return list;
}

TEST(AxisList, KeepsTheOrder) {
  const AxisList list = List({2, 0, 1});
  EXPECT_EQ(std::vector<AxisIndex>(list.axes().begin(), list.axes().end()),
            (std::vector<AxisIndex>{2, 0, 1}));
  EXPECT_NE(list, List({0, 1, 2}));
  EXPECT_EQ(list.Without(0), List({2, 1}));
  EXPECT_EQ(list.Without(5), list);
  EXPECT_TRUE(list.contains(1));
  EXPECT_FALSE(list.contains(3));
  EXPECT_TRUE(AxisList().empty());
  EXPECT_EQ(AxisList(4), List({4}));
  static_assert(sizeof(AxisList) == 8);
}

TEST(AxisListDeathTest, RefusesAnAxisTwice) {
  AxisList list(1);
  EXPECT_DEATH(list.push_back(1), "CHECK failed.*axis 1");
}

TEST(Mesh, NumbersRanksWithTheLastAxisFastest) {
  const Mesh mesh({{"dp", 2}, {"hp", 3}, {"pp", 4}});
  EXPECT_EQ(mesh.size(), 24);
  EXPECT_EQ(mesh.stride(0), 12);
  EXPECT_EQ(mesh.stride(1), 4);
  EXPECT_EQ(mesh.stride(2), 1);
  EXPECT_EQ(mesh.size(AxisIndex{1}), 3);
  EXPECT_EQ(mesh.size(List({2, 0})), 8);
  EXPECT_EQ(mesh.size(AxisList()), 1);
}

TEST(Mesh, FindsAndPrintsItsAxes) {
  const Mesh mesh({{"dp", 2}, {"hp", 3}});
  EXPECT_EQ(mesh.Find("hp"), AxisIndex{1});
  EXPECT_FALSE(mesh.Find("pp").has_value());
  EXPECT_EQ(mesh.Names(List({1, 0})), "hp.dp");
  EXPECT_EQ(mesh.Names(AxisList()), "");
  EXPECT_EQ(ToString(mesh), "mesh(dp=2, hp=3)");
  EXPECT_EQ(ToString(Mesh()), "mesh()");
  EXPECT_EQ(Mesh().size(), 1);
}

TEST(Mesh, FitsWithinItsLimits) {
  EXPECT_TRUE(Mesh::Fits({}));
  EXPECT_TRUE(Mesh::Fits({{"a-b_C9", 1}, {"x", kMaxRanks}}));
  EXPECT_FALSE(Mesh::Fits({{"a", 2}, {"a", 2}}));
  EXPECT_FALSE(Mesh::Fits({{"a", 0}}));
  EXPECT_FALSE(Mesh::Fits({{"a", -4}}));
  const std::vector<Axis> seven = {{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1},
                                   {"e", 1}, {"f", 1}, {"g", 1}};
  EXPECT_TRUE(Mesh::Fits(seven));
  std::vector<Axis> eight = seven;
  eight.push_back({"h", 1});
  EXPECT_FALSE(Mesh::Fits(eight));
}

// Regression: axes of 2^24 ranks each were let in one by one, and the product of three overflowed;
// a product of 2^64 was 0, and the verifier divided by it.
TEST(Mesh, HasAProductThatFits) {
  const int64_t large = int64_t{1} << 24;
  EXPECT_FALSE(Mesh::Fits({{"a", large}, {"b", large}, {"c", large}}));
  EXPECT_FALSE(Mesh::Fits({{"a", kMaxRanks}, {"b", 2}}));
  EXPECT_TRUE(Mesh::Fits({{"a", kMaxRanks / 2}, {"b", 2}}));
}

// Regression: "dp.hp" is read as two axes, and "a b" is not read at all.
TEST(Mesh, HasNamesThatTheTextFormCanSay) {
  for (const std::string name : {"", "7", "dp.hp", "a b", "a=b", "//", "\"a\"", "é", "a/b"}) {
    EXPECT_FALSE(Mesh::Fits({{name, 2}})) << name;
  }
}

TEST(MeshDeathTest, AbortsUnlessItFits) {
  EXPECT_DEATH(Mesh({{"dp", 2}, {"dp", 2}}), "CHECK failed.*mesh\\(dp=2, dp=2\\)");
  EXPECT_DEATH(Mesh({{"dp", 0}}), "CHECK failed");
}

}  // namespace
}  // namespace mesh_test_cc
}  // namespace orrery::ir
