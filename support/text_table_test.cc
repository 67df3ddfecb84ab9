#include "support/text_table.h"

#include <gtest/gtest.h>

namespace orrery {
namespace text_table_test_cc {
namespace {

TEST(TextTable, IsAsWideAsItsCells) {
  EXPECT_EQ(TextTable({{"Step #", "Operation", "Cost"}, {"0", "", "0"}, {"1", "(0, 1) → -", "12"}}),
            "Step #  Operation   Cost\n"
            "0                   0\n"
            "1       (0, 1) → -  12\n");
}

TEST(TextTable, HasNumbersToTheRight) {
  EXPECT_EQ(
      TextTable({{"phase", "ops", "flops"}, {"forward", "1,024", "9"}, {"total", "7", "-"}}, 1),
      "phase      ops  flops\n"
      "forward  1,024      9\n"
      "total        7      -\n");
}

TEST(TextTable, MayBeSmall) {
  EXPECT_EQ(TextTable({}), "");
  EXPECT_EQ(TextTable({{"a"}, {"long"}}), "a\nlong\n");
  EXPECT_EQ(TextTable({{"a"}, {"long"}}, 0), "   a\nlong\n");
}

TEST(TextTableDeathTest, WantsRowsOfOneLength) {
  EXPECT_DEATH(TextTable({{"a", "b"}, {"c"}}), "1 cells");
}

}  // namespace
}  // namespace text_table_test_cc
}  // namespace orrery
