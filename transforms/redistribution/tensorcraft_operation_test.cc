#include "transforms/redistribution/tensorcraft_operation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace orrery::transforms::redistribution {
namespace tensorcraft_operation_test_cc {
namespace {

using ir::AxisIndex;
using ir::AxisList;
using Kind = TensorcraftOperationKind;
using ::testing::ElementsAre;

AxisList Axes(std::initializer_list<AxisIndex> axes) {
  AxisList list;
  for (const AxisIndex axis : axes) list.push_back(axis);
  return list;
}

PackedLayout Split(int dim, const AxisList& axes, int64_t block) {
  PackedLayout layout;
  layout.SetSplit(dim, axes, block);
  return layout;
}

// "{(0,1)/2,-} 16": what splits each dimension, in which blocks, and the elements of a rank.
std::string Text(const PackedLayout& layout, int rank, int64_t elements) {
  std::vector<std::string> dims;
  for (int d = 0; d < rank; ++d) {
    const AxisList axes = layout.axes(d);
    const std::vector<int> numbers(axes.axes().begin(), axes.axes().end());
    dims.push_back(numbers.empty()
                       ? "-"
                       : absl::StrCat("(", absl::StrJoin(numbers, ","), ")/", layout.block(d)));
  }
  return absl::StrCat("{", absl::StrJoin(dims, ","), "} ", elements);
}

// What an operation makes of a layout; "none" where it is not possible.
std::string Applied(const TensorcraftTensor& tensor, const PackedLayout& layout,
                    const TensorcraftOperation& operation) {
  const auto taken = Apply(tensor, tensor.Open(layout), operation);
  if (!taken.has_value()) return "none";
  return Text(taken->step.after, tensor.rank(), taken->elements);
}

std::vector<std::string> Names(const TensorcraftOperations& operations) {
  std::vector<std::string> names;
  for (const TensorcraftOperation& operation : operations) names.push_back(NameOf(operation));
  return names;
}

// A matrix of 8 by 8 on 2 x 2 ranks.
const TensorcraftTensor& Square() {
  static const auto& kSquare = *new TensorcraftTensor(ir::Mesh({{"a0", 2}, {"a1", 2}}), {8, 8});
  return kSquare;
}

TEST(NameOf, IsTheLibrarys) {
  EXPECT_EQ(NameOf({.kind = Kind::kSplit, .to = 1, .axes = Axes({2}), .block = 4}), "split_1_2_4");
  EXPECT_EQ(
      NameOf({.kind = Kind::kSplit, .to = 0, .to_minor = true, .axes = Axes({1}), .block = 1}),
      "split_minor_0_1_1");
  EXPECT_EQ(NameOf({.kind = Kind::kAllGather, .axes = {}}), "allgather_*");
  EXPECT_EQ(NameOf({.kind = Kind::kAllGather, .axes = Axes({3})}), "allgather_3");
  EXPECT_EQ(NameOf({.kind = Kind::kPermute, .axes = Axes({2, 0})}), "permute_2_0");
  EXPECT_EQ(NameOf({.kind = Kind::kAllToAll, .from = 0, .to = 1, .axes = {}}), "alltoall_0_1_-1");
  EXPECT_EQ(NameOf({.kind = Kind::kAllToAll, .from = 0, .to = 1, .from_minor = true, .axes = {}}),
            "alltoall_mf_0_1_-1");
  EXPECT_EQ(NameOf({.kind = Kind::kAllToAll,
                    .from = 2,
                    .to = 0,
                    .from_minor = true,
                    .to_minor = true,
                    .axes = {},
                    .block = 8}),
            "alltoall_mf_mt_2_0_8");
  EXPECT_EQ(NameOf({.kind = Kind::kChangeBlock, .to = 2, .axes = {}, .block = 4}),
            "changeBlockSize_2_4");
}

TEST(ListOperations, OfAWholeTensorAreSplits) {
  const TensorcraftLayout open = Square().Open(PackedLayout());
  EXPECT_THAT(Names(ListOperations(Square(), open, {1, 2}, Repeats::kNone)),
              ElementsAre("split_0_0_1", "split_1_0_1", "split_0_0_2", "split_1_0_2", "split_0_1_1",
                          "split_1_1_1", "split_0_1_2", "split_1_1_2"));
  EXPECT_EQ(ListOperations(Square(), open, {1, 2}, Repeats::kAll).size(), 16u);
}

TEST(ListOperations, OfASplitTensorAreOfEachKind) {
  const TensorcraftLayout open = Square().Open(Split(0, Axes({0}), 4));
  EXPECT_THAT(Names(ListOperations(Square(), open, {1, 2}, Repeats::kNone)),
              ElementsAre("split_0_1_1", "split_minor_0_1_1", "split_1_1_1", "split_1_1_2",
                          "allgather_*", "alltoall_0_1_-1", "alltoall_0_1_1", "alltoall_0_1_2",
                          "changeBlockSize_0_1", "changeBlockSize_0_2"));
  EXPECT_EQ(ListOperations(Square(), open, {1, 2}, Repeats::kAll).size(), 15u);
}

TEST(ListOperations, OfTwoAxesOnADimension) {
  const TensorcraftLayout open = Square().Open(Split(1, Axes({1, 0}), 2));
  EXPECT_THAT(Names(ListOperations(Square(), open, {2}, Repeats::kNone)),
              ElementsAre("allgather_*", "allgather_0", "allgather_1", "permute_1_0",
                          "alltoall_1_0_-1", "alltoall_mf_1_0_-1", "changeBlockSize_1_2"));
}

TEST(Apply, SplitsAnAxisThatIsFree) {
  const auto split = [](const PackedLayout& layout, int8_t axis, int64_t block, bool minor) {
    return Applied(Square(), layout,
                   {.kind = Kind::kSplit,
                    .to = 0,
                    .to_minor = minor,
                    .axes = AxisList(static_cast<AxisIndex>(axis)),
                    .block = block});
  };
  EXPECT_EQ(split(PackedLayout(), 0, 2, false), "{(0)/2,-} 32");
  EXPECT_EQ(split(PackedLayout(), 0, 2, true), "{(0)/2,-} 32");
  EXPECT_EQ(split(PackedLayout(), 0, 7, false), "{(0)/7,-} 56");  // 7 and 1
  EXPECT_EQ(split(PackedLayout(), 0, 8, false), "none");          // 8 and 0
  // Inside of the blocks that are there, or outside of them with blocks as they are.
  EXPECT_EQ(split(Split(0, Axes({0}), 4), 1, 1, true), "{(0,1)/2,-} 16");
  EXPECT_EQ(split(Split(0, Axes({0}), 2), 1, 1, false), "{(1,0)/2,-} 16");
  EXPECT_EQ(split(Split(0, Axes({0}), 4), 1, 1, false), "none");  // 4 4 on four ranks
  EXPECT_EQ(split(Split(0, Axes({0}), 1), 1, 1, true), "none");   // half an element
}

TEST(Apply, GathersTheFirstAxisOrTheLast) {
  const auto gather = [](const PackedLayout& layout, const AxisList& axes) {
    const TensorcraftTensor tensor(ir::Mesh({{"a0", 2}, {"a1", 2}, {"a2", 2}}), {8});
    return Applied(tensor, layout, {.kind = Kind::kAllGather, .axes = axes});
  };
  const PackedLayout all = Split(0, Axes({0, 1, 2}), 1);
  EXPECT_EQ(gather(all, Axes({0})), "{(1,2)/1} 2");
  EXPECT_EQ(gather(all, Axes({2})), "{(0,1)/2} 2");
  EXPECT_EQ(gather(all, Axes({1})), "none");
  EXPECT_EQ(gather(all, {}), "{-} 8");
  EXPECT_EQ(gather(Split(0, Axes({1}), 3), Axes({1})), "{-} 8");
}

TEST(Apply, PermutesAxesOfOneSize) {
  const TensorcraftTensor tensor(ir::Mesh({{"a0", 2}, {"a1", 2}, {"a2", 3}}), {12, 5});
  const TensorcraftOperation swap = {.kind = Kind::kPermute, .axes = Axes({0, 1})};
  EXPECT_EQ(Applied(tensor, Split(0, Axes({0, 1}), 2), swap), "{(1,0)/2,-} 20");
  EXPECT_EQ(Applied(tensor, Split(0, Axes({0, 2, 1}), 1), swap), "{(1,2,0)/1,-} 5");
  EXPECT_EQ(
      Applied(tensor, Split(0, Axes({0, 2}), 2), {.kind = Kind::kPermute, .axes = Axes({0, 2})}),
      "none");
}

TEST(Apply, MovesAxesToAnotherDimension) {
  const auto move = [](const PackedLayout& layout, bool from_minor, bool to_minor, int64_t block) {
    return Applied(Square(), layout,
                   {.kind = Kind::kAllToAll,
                    .from = 0,
                    .to = 1,
                    .from_minor = from_minor,
                    .to_minor = to_minor,
                    .axes = {},
                    .block = block});
  };
  EXPECT_EQ(move(Split(0, Axes({0}), 4), false, false, -1), "{-,(0)/4} 32");
  EXPECT_EQ(move(Split(0, Axes({0}), 4), false, false, 1), "{-,(0)/1} 32");
  EXPECT_EQ(move(Split(0, Axes({0}), 4), false, false, 8), "none");
  EXPECT_EQ(move(Split(0, Axes({0, 1}), 2), false, false, -1), "{-,(0,1)/2} 16");
  // What stays joins its blocks.
  EXPECT_EQ(move(Split(0, Axes({0, 1}), 2), true, false, -1), "{(0)/4,(1)/2} 16");
  PackedLayout both = Split(0, Axes({0}), 4);
  both.SetSplit(1, Axes({1}), 2);
  EXPECT_EQ(move(both, false, false, -1), "{-,(0,1)/2} 16");
  EXPECT_EQ(move(both, false, true, -1), "{-,(1,0)/1} 16");
}

TEST(Apply, ChangesBlocks) {
  const auto change = [](int64_t from, int64_t to) {
    return Applied(Square(), Split(0, Axes({0}), from),
                   {.kind = Kind::kChangeBlock, .to = 0, .axes = {}, .block = to});
  };
  EXPECT_EQ(change(1, 2), "{(0)/2,-} 32");
  EXPECT_EQ(change(2, 4), "{(0)/4,-} 32");
  EXPECT_EQ(change(1, 4), "{(0)/4,-} 32");
  EXPECT_EQ(change(1, 3), "none");  // no whole rounds of two blocks
  EXPECT_EQ(change(2, 6), "none");
  EXPECT_EQ(change(4, 1), "{(0)/1,-} 32");
  EXPECT_EQ(change(4, 2), "none");  // as the library has it
  EXPECT_EQ(change(2, 2), "none");
  EXPECT_EQ(change(4, 8), "none");  // nothing is left for the other rank
}

TEST(Apply, NamesTheStep) {
  const auto step = [](const PackedLayout& layout, const TensorcraftOperation& operation) {
    return Apply(Square(), Square().Open(layout), operation)->step;
  };
  const PackedLayout split = Split(1, Axes({1}), 4);
  const Step slice =
      step(PackedLayout(), {.kind = Kind::kSplit, .to = 1, .axes = Axes({1}), .block = 4});
  EXPECT_EQ(slice.kind, MoveKind::kSlice);
  EXPECT_EQ(slice.axes, Axes({1}));
  EXPECT_EQ(slice.to, 1);
  EXPECT_EQ(slice.after, split);
  const Step gather = step(split, {.kind = Kind::kAllGather, .axes = Axes({1})});
  EXPECT_EQ(gather.kind, MoveKind::kAllGather);
  EXPECT_EQ(gather.from, 1);
  EXPECT_EQ(gather.after, PackedLayout());
  EXPECT_EQ(step(split, {.kind = Kind::kAllGather, .axes = {}}).axes, Axes({1}));
  const Step move = step(split, {.kind = Kind::kAllToAll, .from = 1, .to = 0, .axes = {}});
  EXPECT_EQ(move.kind, MoveKind::kAllToAll);
  EXPECT_EQ(move.axes, Axes({1}));
  const Step reblock = step(split, {.kind = Kind::kChangeBlock, .to = 1, .axes = {}, .block = 1});
  EXPECT_EQ(reblock.kind, MoveKind::kReblock);
  EXPECT_EQ(reblock.from, 1);
  EXPECT_EQ(reblock.axes, Axes({1}));
}

using Layouts = std::vector<std::pair<std::string, PackedLayout>>;

// The layouts that one operation leads to, each once. Each is one that tensorcraft has, and as
// large as it says.
Layouts Neighbours(const TensorcraftTensor& tensor, const PackedLayout& layout,
                   const std::vector<int64_t>& blocks, Repeats repeats) {
  const TensorcraftLayout open = tensor.Open(layout);
  Layouts found;
  for (const auto& operation : ListOperations(tensor, open, blocks, repeats)) {
    const auto taken = Apply(tensor, open, operation);
    if (!taken.has_value()) continue;
    const PackedLayout& after = taken->step.after;
    EXPECT_TRUE(tensor.Check(after).ok()) << NameOf(operation) << ": " << tensor.Check(after);
    EXPECT_EQ(taken->elements, tensor.Elements(after)) << NameOf(operation);
    found.emplace_back(Text(after, tensor.rank(), taken->elements), after);
  }
  const auto by_text = [](const auto& a, const auto& b) { return a.first < b.first; };
  std::ranges::sort(found, by_text);
  const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
  found.erase(std::unique(found.begin(), found.end(), same), found.end());
  return found;
}

// Walks at random from the whole tensor: leaving out repeats leaves out no layout.
TEST(Repeats, AreLeftOutWithoutLoss) {
  constexpr unsigned kSeed = 80;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  const ir::Mesh mesh({{"a0", 2}, {"a1", 3}, {"a2", 2}});
  for (const ir::Dims& dims : {ir::Dims{12}, ir::Dims{8, 9}, ir::Dims{6, 4, 10}}) {
    const TensorcraftTensor tensor(mesh, dims);
    const std::vector<int64_t> blocks = {1, 2, 4};
    for (int walk = 0; walk < 10; ++walk) {
      PackedLayout layout;
      for (int i = 0; i < 8; ++i) {
        const Layouts few = Neighbours(tensor, layout, blocks, Repeats::kNone);
        const Layouts all = Neighbours(tensor, layout, blocks, Repeats::kAll);
        ASSERT_EQ(few.size(), all.size());
        for (size_t k = 0; k < few.size(); ++k) ASSERT_EQ(few[k].first, all[k].first);
        ASSERT_FALSE(all.empty());
        layout = all[std::uniform_int_distribution<size_t>(0, all.size() - 1)(random)].second;
      }
    }
  }
}

}  // namespace
}  // namespace tensorcraft_operation_test_cc
}  // namespace orrery::transforms::redistribution
