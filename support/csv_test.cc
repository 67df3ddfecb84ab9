#include "support/csv.h"

#include <gtest/gtest.h>

namespace orrery {
namespace csv_test_cc {
namespace {

TEST(CsvField, IsInQuotesOnlyWhereItMustBe) {
  EXPECT_EQ(CsvField(""), "");
  EXPECT_EQ(CsvField("1f1b; as it is"), "1f1b; as it is");
  EXPECT_EQ(CsvField("23,24"), R"("23,24")");
  EXPECT_EQ(CsvField("two\nlines"), "\"two\nlines\"");
  EXPECT_EQ(CsvField(R"(a "b")"), R"("a ""b""")");
}

TEST(CsvQuoted, IsAlwaysInQuotes) {
  EXPECT_EQ(CsvQuoted(""), R"("")");
  EXPECT_EQ(CsvQuoted("x"), R"("x")");
  EXPECT_EQ(CsvQuoted(R"(")"), R"("""")");
}

}  // namespace
}  // namespace csv_test_cc
}  // namespace orrery
