#include "lowering/network/boundary_move.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "ir/tensor_parts.h"

namespace orrery::lowering {
namespace boundary_move_test_cc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

ir::Mesh MeshOf(int64_t dp, int64_t hp) { return ir::Mesh({{"pp", 1}, {"dp", dp}, {"hp", hp}}); }
constexpr ir::AxisIndex kDp = 1, kHp = 2;

// [8, 12] of f32, its dimensions split along axes; -1: not.
ir::TensorType Type(int rows, int columns) {
  ir::TensorType type{.dtype = ir::DType::kF32, .dims = {8, 12}, .sharding = {}};
  if (rows >= 0) type.sharding.Set(0, 2, ir::AxisList(static_cast<ir::AxisIndex>(rows)));
  if (columns >= 0) type.sharding.Set(1, 2, ir::AxisList(static_cast<ir::AxisIndex>(columns)));
  return type;
}

int64_t BytesIn(const BoundaryMove& move) {
  int64_t bytes = 0;
  for (const BoundaryMessage& message : move.messages) bytes += message.bytes.count();
  return bytes;
}

TEST(BoundaryMove, BetweenEqualShardsIsStraight) {
  const ir::Mesh mesh = MeshOf(2, 1);
  const ir::TensorType type = Type(kDp, -1);
  const BoundaryMove move = MoveAcross({type, mesh}, {type, mesh});
  EXPECT_THAT(move.messages,
              ElementsAre(BoundaryMessage{0, 0, Bytes(192)}, BoundaryMessage{1, 1, Bytes(192)}));
  EXPECT_THAT(move.gather.axes(), IsEmpty());
}

TEST(BoundaryMove, FromFewReplicasToMoreSendsPartsOfRows) {
  const ir::TensorType type = Type(kDp, -1);
  const ir::Mesh two = MeshOf(2, 1), four = MeshOf(4, 1);
  const BoundaryMove move = MoveAcross({type, two}, {type, four});
  // Rank 0 has rows 0 to 3, which ranks 0 and 1 want; no rank sends two in a round.
  EXPECT_THAT(move.messages,
              ElementsAre(BoundaryMessage{0, 0, Bytes(96)}, BoundaryMessage{1, 2, Bytes(96)},
                          BoundaryMessage{0, 1, Bytes(96)}, BoundaryMessage{1, 3, Bytes(96)}));
}

TEST(BoundaryMove, ReceiversThatHoldTheSameGatherShares) {
  const ir::TensorType type = Type(kDp, -1);
  const ir::Mesh from = MeshOf(1, 1), to = MeshOf(1, 4);
  const BoundaryMove move = MoveAcross({type, from}, {type, to});
  EXPECT_EQ(BytesIn(move), 8 * 12 * 4);  // once, and not four times
  EXPECT_THAT(move.gather.axes(), ElementsAre(kHp));
  EXPECT_EQ(move.messages.size(), 4u);
}

TEST(BoundaryMove, SendersThatHoldTheSameShareTheWork) {
  const ir::TensorType type = Type(-1, -1);
  const BoundaryMove move = MoveAcross({type, MeshOf(1, 2)}, {type, MeshOf(1, 2)});
  EXPECT_THAT(move.messages,
              ElementsAre(BoundaryMessage{0, 0, Bytes(192)}, BoundaryMessage{1, 1, Bytes(192)}));
}

TEST(BoundaryMove, OfOneReplicaToAnotherIsOfTheirRanksAlone) {
  ir::TensorType from = Type(kDp, -1), to = from;
  from.dims = {6, 12};  // three replicas of 2 rows each
  to.dims = {4, 12};    // two of 2 rows each
  const BoundaryMove move = MoveAcross({from, MeshOf(3, 1)}, {to, MeshOf(2, 2)}, 2, 1);
  EXPECT_THAT(move.messages,
              ElementsAre(BoundaryMessage{2, 2, Bytes(48)}, BoundaryMessage{2, 3, Bytes(48)}));
  EXPECT_THAT(move.gather.axes(), ElementsAre(kHp));
}

TEST(BoundaryMove, PartsOfASumGoToThoseOfTheirNumber) {
  ir::TensorType type = Type(-1, -1);
  type.sharding.partial = ir::AxisList(kDp);
  const BoundaryMove move = MoveAcross({type, MeshOf(4, 1)}, {type, MeshOf(2, 1)});
  std::set<std::pair<int32_t, int32_t>> pairs;
  for (const BoundaryMessage& message : move.messages) {
    EXPECT_EQ(message.bytes, Bytes(384));
    pairs.emplace(message.from, message.to);
  }
  EXPECT_THAT(pairs,
              ElementsAre(std::pair(0, 0), std::pair(1, 1), std::pair(2, 0), std::pair(3, 1)));
}

// What a rank holds, element by element.
std::set<int64_t> ElementsOf(const ir::TensorType& type, const ir::Mesh& mesh, int64_t rank) {
  const ir::Share share = ir::ShareOf(type, mesh, rank);
  const ir::Dims local = ir::LocalType(type, mesh).dims;
  std::set<int64_t> elements;
  for (int64_t row = share.first[0]; row < std::min(share.first[0] + local[0], type.dims[0]);
       ++row) {
    for (int64_t c = share.first[1]; c < std::min(share.first[1] + local[1], type.dims[1]); ++c) {
      elements.insert(row * type.dims[1] + c);
    }
  }
  return elements;
}

// As few bytes as can be: what each set of receivers that hold the same wants, once.
TEST(BoundaryMove, CrossesNothingTwice) {
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    const auto draw = [&](std::initializer_list<int> of) {
      return of.begin()[random() % of.size()];
    };
    const ir::Mesh from = MeshOf(draw({1, 2, 4}), draw({1, 2, 3})),
                   to = MeshOf(draw({1, 2, 4}), draw({1, 2, 3}));
    const ir::TensorType sent = Type(draw({-1, kDp}), draw({-1, kHp}));
    const ir::TensorType got = Type(draw({-1, kDp}), draw({-1, kHp}));
    const BoundaryMove move = MoveAcross({sent, from}, {got, to});
    std::set<std::set<int64_t>> wanted;
    for (int64_t rank = 0; rank < to.size(); ++rank) wanted.insert(ElementsOf(got, to, rank));
    int64_t elements = 0;
    for (const auto& one : wanted) elements += std::ssize(one);
    EXPECT_EQ(BytesIn(move), 4 * elements);
    std::map<int32_t, int64_t> received;
    for (const BoundaryMessage& message : move.messages) {
      const std::set<int64_t> has = ElementsOf(sent, from, message.from);
      const std::set<int64_t> wants = ElementsOf(got, to, message.to);
      std::vector<int64_t> both;
      std::ranges::set_intersection(has, wants, std::back_inserter(both));
      EXPECT_LE(message.bytes.count(), 4 * std::ssize(both));
      received[message.to] += message.bytes.count();
    }
    EXPECT_EQ(move.gather.empty(), std::ssize(wanted) == to.size());
  }
}

}  // namespace
}  // namespace boundary_move_test_cc
}  // namespace orrery::lowering
