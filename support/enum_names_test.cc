#include "support/enum_names.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace orrery {
namespace enum_names_test_cc {
namespace {

enum class Fruit : uint8_t { kApple, kPear, kPlum, kUnnamed };

// In another order than the enumeration.
constexpr EnumNames<Fruit, 3> kFruits({{"plum", Fruit::kPlum},
                                       {"apple", Fruit::kApple},
                                       {"pear", Fruit::kPear}});
constexpr EnumNames<Fruit, 1> kOne({{"apple", Fruit::kApple}});

TEST(EnumNames, PrintsAndReads) {
  for (const EnumName<Fruit>& row : kFruits) {
    EXPECT_EQ(kFruits.Of(row.value), row.name);
    EXPECT_EQ(kFruits.Find(row.name), row.value);
    EXPECT_EQ(kFruits.Parse(row.name).value(), row.value);
  }
  EXPECT_EQ(kFruits.Of(Fruit::kApple), "apple");
  EXPECT_EQ(kFruits.Find("grape"), std::nullopt);
  EXPECT_EQ(kFruits.Find(""), std::nullopt);
}

TEST(EnumNames, AreListedAsTheyWereWritten) {
  EXPECT_EQ(kFruits.List(" or "), "plum, apple or pear");
  EXPECT_EQ(kFruits.List(", "), "plum, apple, pear");
  EXPECT_EQ(kOne.List(" or "), "apple");
  EXPECT_EQ(kFruits.Parse("Pear").status().message(), "'Pear': wanted plum, apple or pear");
}

TEST(EnumNamesDeathTest, HasNoNameForWhatIsNotThere) {
  EXPECT_DEATH(kFruits.Of(Fruit::kUnnamed), "value 3 has no name");
}

}  // namespace
}  // namespace enum_names_test_cc
}  // namespace orrery
