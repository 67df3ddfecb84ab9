#include "support/id.h"

#include <sstream>
#include <type_traits>

#include "absl/container/flat_hash_set.h"
#include "gtest/gtest.h"

namespace orrery {
namespace id_test_cc {
namespace {

ORRERY_DEFINE_ID(ShipId, "ship");
ORRERY_DEFINE_ID(PortId, "port");

TEST(Id, NamesNothingUntilItIsGivenARow) {
  EXPECT_FALSE(ShipId().valid());
  EXPECT_EQ(ShipId().index(), -1);
  EXPECT_TRUE(ShipId(0).valid());
  EXPECT_EQ(ShipId(7).index(), 7);
}

TEST(Id, PrintsByName) {
  EXPECT_EQ(ToString(ShipId(3)), "ship3");
  EXPECT_EQ(ToString(PortId()), "port<none>");
  std::ostringstream out;
  out << PortId(12) << " " << ShipId();
  EXPECT_EQ(out.str(), "port12 ship<none>");
}

TEST(Id, ComparesByRow) {
  EXPECT_EQ(ShipId(2), ShipId(2));
  EXPECT_NE(ShipId(2), ShipId(3));
  EXPECT_LT(ShipId(), ShipId(0));
  EXPECT_LT(ShipId(1), ShipId(10));
}

TEST(Id, HashesByRow) {
  const absl::flat_hash_set<ShipId> fleet = {ShipId(1), ShipId(2), ShipId(1)};
  EXPECT_EQ(fleet.size(), 2u);
  EXPECT_TRUE(fleet.contains(ShipId(2)));
  EXPECT_FALSE(fleet.contains(ShipId(3)));
}

TEST(Id, IsFourBytesAndOfItsOwnType) {
  static_assert(sizeof(ShipId) == 4);
  static_assert(std::is_trivially_copyable_v<ShipId>);
  static_assert(!std::is_convertible_v<ShipId, PortId>);
  static_assert(!std::is_convertible_v<int32_t, ShipId>);
  static_assert(!std::is_convertible_v<ShipId, int32_t>);
}

}  // namespace
}  // namespace id_test_cc
}  // namespace orrery
