#include "support/id_table.h"

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "support/id.h"

namespace orrery {
namespace id_table_test_cc {
namespace {

ORRERY_DEFINE_ID(ShipId, "ship");

TEST(IdTable, StartsEmpty) {
  const IdTable<ShipId, int> table;
  EXPECT_TRUE(table.empty());
  EXPECT_EQ(table.size(), 0);
}

TEST(IdTable, AppendsRowsAndReturnsTheirIds) {
  IdTable<ShipId, std::string> names;
  names.reserve(2);
  EXPECT_EQ(names.push_back("Argo"), ShipId(0));
  EXPECT_EQ(names.push_back("Beagle"), ShipId(1));
  EXPECT_EQ(names[ShipId(1)], "Beagle");
  names[ShipId(0)] = "Astrolabe";
  EXPECT_EQ(names.rows(), (std::vector<std::string>{"Astrolabe", "Beagle"}));
}

TEST(IdTable, IsFilledWithTheValueGiven) {
  IdTable<ShipId, int> crew(2, 40);
  crew.resize(4, -1);
  EXPECT_EQ(crew.rows(), (std::vector<int>{40, 40, -1, -1}));
  crew.resize(1);
  EXPECT_EQ(crew.rows(), std::vector<int>{40});
}

TEST(IdTable, HoldsBooleansAndWhatCannotBeCopied) {
  IdTable<ShipId, bool> afloat(3);
  afloat[ShipId(1)] = true;
  EXPECT_FALSE(afloat[ShipId(0)]);
  EXPECT_TRUE(std::as_const(afloat)[ShipId(1)]);
  IdTable<ShipId, std::unique_ptr<int>> cargo;
  EXPECT_EQ(*cargo[cargo.push_back(std::make_unique<int>(5))], 5);
}

#ifndef NDEBUG
TEST(IdTableDeathTest, NamesTheIdThatIsOutOfRange) {
  IdTable<ShipId, int> table(2);
  EXPECT_DEATH(table[ShipId(2)], "CHECK failed.*ship2");
  EXPECT_DEATH(table[ShipId()], "CHECK failed.*ship<none>");
}
#endif

}  // namespace
}  // namespace id_table_test_cc
}  // namespace orrery
