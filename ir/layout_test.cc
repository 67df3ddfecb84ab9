#include "ir/layout.h"

#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/tensor_parts.h"
#include "support/paths_test_util.h"

namespace orrery::ir {
namespace layout_test_cc {
namespace {

using testing::ElementsAre;
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

// Whether `rank` holds `element`, found the slow way: by dealing out the elements one by one.
bool DealtTo(const SplitDimension& split, const Mesh& mesh, int64_t rank, int64_t element) {
  const int64_t parts = mesh.size(split.axes), part = PartOf(mesh, rank, split.axes);
  if (split.axes.empty()) return true;
  if (split.block > 0) return element / split.block % parts == part;
  if (split.block == kBalancedChunks) {
    int64_t first = 0;
    for (int64_t p = 0; p < part; ++p) first += (split.size + parts - 1 - p) / parts;
    return element >= first && element < first + (split.size + parts - 1 - part) / parts;
  }
  int64_t length = split.size;
  for (const AxisIndex axis : split.axes.axes()) {
    const int64_t chunk = (length + mesh.size(axis) - 1) / mesh.size(axis);
    const int64_t number = element / chunk;
    if (number != PartOf(mesh, rank, AxisList(axis))) return false;
    element -= number * chunk;
    length = std::min(chunk, length - number * chunk);
  }
  return true;
}

using Random = std::mt19937_64;

int64_t Below(Random& random, int64_t limit) {
  return static_cast<int64_t>(random() % static_cast<uint64_t>(limit));
}

// Each axis goes to a dimension, or to none; blocks of all kinds.
Sharding AnySharding(Random& random, const Dims& dims, const Mesh& mesh) {
  std::vector<int> order;
  for (size_t i = 0; i < mesh.axes().size(); ++i) order.push_back(static_cast<int>(i));
  for (size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[static_cast<size_t>(Below(random, static_cast<int64_t>(i)))]);
  }
  std::vector<AxisList> split(dims.size());
  for (const int axis : order) {
    const auto d = static_cast<size_t>(Below(random, static_cast<int64_t>(dims.size()) + 1));
    if (d < dims.size()) split[d].push_back(static_cast<AxisIndex>(axis));
  }
  Sharding sharding;
  for (size_t d = 0; d < dims.size(); ++d) {
    const int64_t block = Below(random, 5) < 3 ? Below(random, 2) - 1 : 1 + Below(random, 4);
    sharding.Set(d, dims.size(), split[d], block);
  }
  return sharding;
}

// What each rank holds, element by element: rows of ranks.
std::vector<std::vector<bool>> Held(const Sharding& sharding, const Dims& dims, const Mesh& mesh) {
  std::vector<std::vector<bool>> held;
  for (const int64_t rank : AllRanks(mesh)) {
    std::vector<bool>& row = held.emplace_back();
    for (int64_t element = 0; element < ElementCount(dims); ++element) {
      int64_t rest = element;
      bool holds = true;
      for (size_t d = dims.size(); d-- > 0; rest /= dims[d]) {
        holds = holds && DealtTo(SplitOf(sharding, dims, d), mesh, rank, rest % dims[d]);
      }
      row.push_back(holds);
    }
  }
  return held;
}

TEST(HeldPart, IsWhatIsDealtOut) {
  Random random(1);
  for (int i = 0; i < 2000; ++i) {
    const Mesh mesh = MeshOf({1 + Below(random, 4), 1 + Below(random, 3), 1 + Below(random, 3)});
    const Dims dims = {1 + Below(random, 30)};
    const Sharding sharding = AnySharding(random, dims, mesh);
    const SplitDimension split = SplitOf(sharding, dims, 0);
    EXPECT_TRUE(CheckSharding(sharding, dims, mesh).ok());
    int64_t most = 0;
    for (const int64_t rank : AllRanks(mesh)) {
      const Part part = HeldPart(split, mesh, rank);
      std::vector<int64_t> ranged, dealt;
      for (const Range& range : part.Ranges()) {
        ASSERT_LT(range.begin, range.end);
        for (int64_t at = range.begin; at < range.end; ++at) ranged.push_back(at);
      }
      for (int64_t at = 0; at < dims[0]; ++at) {
        if (DealtTo(split, mesh, rank, at)) dealt.push_back(at);
        EXPECT_EQ(part.contains(at), DealtTo(split, mesh, rank, at));
      }
      ASSERT_EQ(ranged, dealt) << "block " << split.block << " of " << dims[0] << " rank " << rank;
      EXPECT_EQ(part.size(), static_cast<int64_t>(dealt.size()));
      most = std::max(most, part.size());
    }
    EXPECT_EQ(LargestPart(split, mesh), most);
  }
}

TEST(HeldPart, OfNestedChunksMayBeShortOrEmpty) {
  const Mesh mesh = MeshOf({2, 2});
  const auto sizes = [&mesh](const SplitDimension& split) {
    std::vector<int64_t> sizes;
    for (const int64_t rank : AllRanks(mesh)) sizes.push_back(HeldPart(split, mesh, rank).size());
    return sizes;
  };
  EXPECT_THAT(sizes({5, Axes({0, 1}), kNestedChunks}), ElementsAre(2, 1, 1, 1));
  EXPECT_THAT(sizes({5, Axes({0, 1}), 2}), ElementsAre(2, 2, 1, 0));  // torch's flat chunks
  EXPECT_THAT(sizes({6, Axes({0, 1}), kBalancedChunks}), ElementsAre(2, 2, 1, 1));
  EXPECT_THAT(sizes({6, Axes({1, 0}), kBalancedChunks}), ElementsAre(2, 1, 2, 1));
  EXPECT_THAT(sizes({0, Axes({0, 1}), kBalancedChunks}), ElementsAre(0, 0, 0, 0));
}

TEST(HeldPart, OfHugeMeshesAndBlocksDoesNotOverflow) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const Mesh mesh({{"a", int64_t{1} << 20}, {"b", int64_t{1} << 20}});
  for (const int64_t block : {kNestedChunks, kBalancedChunks, int64_t{1}, kMost}) {
    for (const int64_t size : {int64_t{1}, int64_t{1} << 60, kMost}) {
      const SplitDimension split{size, Axes({0, 1}), block};
      const Part last = HeldPart(split, mesh, mesh.size() - 1);
      EXPECT_LE(last.size(), LargestPart(split, mesh));
      EXPECT_GE(last.begin, 0);
      EXPECT_LE(last.end, size);
      const Dims dims = {size};
      Sharding sharding;
      sharding.Set(0, 1, split.axes, block);
      EXPECT_TRUE(SameOwnership(sharding, Normalized(sharding, dims, mesh), dims, mesh));
    }
  }
  EXPECT_EQ(LargestLocalElements({}, {kMost, 2}, mesh), kMost);
  EXPECT_EQ(LargestLocalElements({}, {kMost, 2, 0}, mesh), 0);
}

// Layouts of small tensors on small meshes, compared pair by pair with what the ranks hold.
TEST(SameOwnership, IsWhatTheRanksHold) {
  Random random(2);
  int same = 0;
  for (int i = 0; i < 20000; ++i) {
    const Mesh mesh = MeshOf({1 + Below(random, 3), 1 + Below(random, 3), 1 + Below(random, 2)});
    Dims dims = {1 + Below(random, i % 2 == 0 ? 13 : 3)};
    if (Below(random, 3) == 0) dims.push_back(1 + Below(random, 3));
    const Sharding a = AnySharding(random, dims, mesh), b = AnySharding(random, dims, mesh);
    const Sharding normal = Normalized(a, dims, mesh);
    const auto held = Held(a, dims, mesh);
    EXPECT_TRUE(CheckSharding(normal, dims, mesh).ok());
    ASSERT_EQ(held, Held(normal, dims, mesh));
    EXPECT_EQ(normal, Normalized(normal, dims, mesh));
    const bool expected = held == Held(b, dims, mesh);
    ASSERT_EQ(SameOwnership(a, b, dims, mesh), expected)
        << absl::StrCat(dims[0], " on ", ToString(mesh), " block ", a.block(0), " and ", b.block(0),
                        " ", mesh.Names(a.at(0)), " and ", mesh.Names(b.at(0)));
    if (dims.size() == 1) {
      EXPECT_EQ(normal == Normalized(b, dims, mesh), expected);
    }
    same += expected ? 1 : 0;
  }
  EXPECT_GT(same, 2000);
}

TEST(Normalized, CallsEvenSplitsNestedChunks) {
  const Mesh mesh = MeshOf({2, 4, 1});
  const Dims dims = {16, 12};
  Sharding nested;
  nested.Set(0, 2, Axes({0, 1}));
  for (const int64_t block : {kNestedChunks, kBalancedChunks, int64_t{2}}) {
    Sharding other;
    other.Set(0, 2, Axes({0, 2, 1}), block);
    EXPECT_EQ(Normalized(other, dims, mesh), nested);
  }
  Sharding cyclic;
  cyclic.Set(0, 2, Axes({0, 1}), 1);
  EXPECT_EQ(Normalized(cyclic, dims, mesh), cyclic);
  EXPECT_FALSE(SameOwnership(cyclic, nested, dims, mesh));
}

TEST(SameOwnership, MindsWhatIsPartial) {
  const Mesh mesh = MeshOf({2, 1});
  Sharding sum, average, idle;
  sum.partial = average.partial = Axes({0});
  average.reductions[0] = Reduction::kAverage;
  idle.partial = Axes({1});
  EXPECT_FALSE(SameOwnership(sum, average, {4}, mesh));
  EXPECT_FALSE(SameOwnership(sum, {}, {4}, mesh));
  EXPECT_TRUE(SameOwnership(idle, {}, {4}, mesh));
  EXPECT_EQ(Normalized(idle, {4}, mesh), Sharding());
}

std::string Trouble(const Sharding& sharding) {
  const absl::Status status = CheckSharding(sharding, {8, 8}, MeshOf({2, 2}));
  return status.ok() ? "ok" : std::string(status.message());
}

TEST(CheckSharding, SaysWhatIsWrong) {
  Sharding sharding;
  EXPECT_EQ(Trouble(sharding), "ok");
  sharding.split = {Axes({0})};
  EXPECT_EQ(Trouble(sharding),
            "found a layout of 1 dimensions for a tensor of 2; wanted one entry a dimension");
  sharding.split = {Axes({0}), Axes({0})};
  EXPECT_EQ(Trouble(sharding), "axis 0 (a0) is used twice; wanted each axis at most once");
  sharding.split = {Axes({0}), Axes({2})};
  EXPECT_EQ(Trouble(sharding), "found axis 2; wanted one of the 2 of mesh(a0=2, a1=2)");
  sharding.split = {Axes({0}), Axes({})};
  sharding.blocks = {-2, 0};
  EXPECT_THAT(Trouble(sharding), HasSubstr("dimension 0: found a block of -2"));
  sharding.blocks = {0, 3};
  EXPECT_THAT(Trouble(sharding), HasSubstr("dimension 1: found blocks of a dimension that no"));
}

TEST(CheckSharding, LetsSumsAndAveragesMix) {
  Sharding sharding;
  sharding.partial = Axes({0, 1});
  sharding.reductions[1] = Reduction::kAverage;
  EXPECT_EQ(Trouble(sharding), "ok");
  sharding.reductions[1] = Reduction::kMax;
  EXPECT_THAT(Trouble(sharding), HasSubstr("different reductions"));
  sharding.partial = Axes({0});
  EXPECT_EQ(Trouble(sharding), "axis 1 has a reduction and is not partial");
  sharding = {};
  sharding.partial = Axes({1, 0});
  EXPECT_THAT(Trouble(sharding), HasSubstr("out of order"));
}

// 60 layouts that tensorcraft has sharded over its processors.
TEST(LocalDims, AreThoseOfTensorcraft) {
  std::ifstream file(absl::StrCat(SourceDir(), "/tests/data/tensorcraft_layouts.json"));
  const nlohmann::json cases = nlohmann::json::parse(file)["cases"];
  ASSERT_EQ(cases.size(), 60u);
  for (const nlohmann::json& golden : cases) {
    const Mesh mesh = MeshOf(golden["mesh"].get<std::vector<int64_t>>());
    const auto shape = golden["shape"].get<std::vector<int64_t>>();
    const Dims dims(shape.begin(), shape.end());
    Sharding sharding;
    for (size_t d = 0; d < dims.size(); ++d) {
      sharding.Set(d, dims.size(), Axes(golden["mapping"][d].get<std::vector<int>>()),
                   golden["blocks"][d].get<int64_t>());
    }
    ASSERT_TRUE(CheckSharding(sharding, dims, mesh).ok()) << golden["dist"];
    EXPECT_EQ(LargestLocalElements(sharding, dims, mesh), golden["max_elements"].get<int64_t>());
    for (const int64_t rank : AllRanks(mesh)) {
      const auto local = golden["local_shapes_by_rank"][static_cast<size_t>(rank)];
      EXPECT_THAT(LocalDims(sharding, dims, mesh, rank),
                  testing::ElementsAreArray(local.get<std::vector<int64_t>>()));
    }
    for (const nlohmann::json& owned : golden["ownership"]) {
      std::vector<int64_t> owners;
      for (const int64_t rank : AllRanks(mesh)) {
        bool holds = true;
        for (size_t d = 0; d < dims.size(); ++d) {
          const Part part = HeldPart(SplitOf(sharding, dims, d), mesh, rank);
          holds = holds && part.contains(owned["index"][d].get<int64_t>());
        }
        if (holds) owners.push_back(rank);
      }
      EXPECT_EQ(owners, owned["owners"].get<std::vector<int64_t>>()) << golden["dist"];
    }
  }
}

}  // namespace
}  // namespace layout_test_cc
}  // namespace orrery::ir
