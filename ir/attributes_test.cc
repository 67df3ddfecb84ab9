#include "ir/attributes.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace orrery::ir {
namespace attributes_test_cc {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

std::string PrintOne(const Attribute& value) { return ToString(AttributeSet{{"a", value}}); }

TEST(Attributes, PrintDoublesAsTheShortestTextThatReadsBack) {
  const std::vector<std::pair<double, std::string>> rows = {
      {0.0, "0.0"},
      {-0.0, "-0.0"},
      {1.0, "1.0"},
      {0.1, "0.1"},
      {0.1 + 0.2, "0.30000000000000004"},
      {1e22, "1e+22"},
      {123456.0, "123456.0"},
      {1e-7, "1e-07"},
      {5e-324, "5e-324"},
      {std::numeric_limits<double>::max(), "1.7976931348623157e+308"},
      {kInfinity, "inf"},
      {-kInfinity, "-inf"},
      {std::nan(""), "nan"},
  };
  for (const auto& [value, text] : rows) EXPECT_EQ(PrintOne(value), absl::StrCat("{a=", text, "}"));
}

TEST(Attributes, PrintEachKindInItsOwnWay) {
  EXPECT_EQ(PrintOne(int64_t{8}), "{a=8}");
  EXPECT_EQ(PrintOne(kLeast), "{a=-9223372036854775808}");
  EXPECT_EQ(PrintOne(std::string("su\"m\n")), R"({a="su\"m\n"})");
  EXPECT_EQ(PrintOne(std::vector<int64_t>{1, 0}), "{a=[1, 0]}");
  EXPECT_EQ(PrintOne(std::vector<double>{0.5, 1}), "{a=[0.5, 1.0]}");
  EXPECT_EQ(PrintOne(std::vector<int64_t>{}), "{a=[]}");
  EXPECT_EQ(PrintOne(std::vector<double>{}), "{a=[f]}");
  EXPECT_EQ(ToString(AttributeSet()), "");
}

TEST(Attributes, PrintInTheOrderOfTheNames) {
  AttributeSet set;
  set.Set("lr", 0.5);
  set.Set("axis", int64_t{0});
  set.Set("lr", 0.25);
  EXPECT_EQ(ToString(set), "{axis=0, lr=0.25}");
  // Regression: such a name printed without quotes, and the text did not parse.
  EXPECT_EQ(ToString(AttributeSet{{"a b", int64_t{1}}, {"7", int64_t{2}}}), R"({"7"=2, "a b"=1})");
}

TEST(Attributes, ReadAsOneTypeOrFallBack) {
  const AttributeSet set = {{"int", int64_t{3}},
                            {"real", 3.0},
                            {"text", std::string("sum")},
                            {"ints", std::vector<int64_t>{1, 2}}};
  EXPECT_EQ(set.Int("int", -1), 3);
  EXPECT_EQ(set.Int("real", -1), -1);
  EXPECT_EQ(set.Int("none", -1), -1);
  EXPECT_EQ(set.String("text", "max"), "sum");
  EXPECT_EQ(set.String("int", "max"), "max");
  EXPECT_EQ(set.Ints("ints"), (std::vector<int64_t>{1, 2}));
  EXPECT_TRUE(set.Ints("int").empty());
  EXPECT_EQ(set.Find("none"), nullptr);
  EXPECT_NE(set.Find("real"), nullptr);
}

TEST(AttributeTable, HasEachSetOnce) {
  AttributeTable table;
  EXPECT_EQ(table.Intern({}), AttributesId(0));
  EXPECT_TRUE(table[AttributesId(0)].empty());
  const AttributesId one = table.Intern({{"a", int64_t{1}}});
  EXPECT_EQ(table.Intern({{"a", int64_t{1}}}), one);
  EXPECT_NE(table.Intern({{"a", 1.0}}), one);
  EXPECT_NE(table.Intern({{"a", std::string("1")}}), one);
  EXPECT_NE(table.Intern({{"a", std::vector<int64_t>{1}}}), one);
  EXPECT_NE(table.Intern({{"b", int64_t{1}}}), one);
  EXPECT_NE(table.Intern({{"a", std::vector<int64_t>{}}}),
            table.Intern({{"a", std::vector<double>{}}}));
}

// Regression: sets were ordered by value, so that -0.0 became the 0.0 before it, and a NaN, which
// is neither less nor greater, became whatever stood there.
TEST(AttributeTable, TellsZerosApartAndKeepsNan) {
  AttributeTable table;
  const AttributesId positive = table.Intern({{"a", 0.0}}), negative = table.Intern({{"a", -0.0}});
  EXPECT_FALSE(std::signbit(std::get<double>(*table[positive].Find("a"))));
  EXPECT_TRUE(std::signbit(std::get<double>(*table[negative].Find("a"))));
  const AttributesId nan = table.Intern({{"a", std::nan("")}});
  EXPECT_TRUE(std::isnan(std::get<double>(*table[nan].Find("a"))));
  EXPECT_EQ(table.Intern({{"a", std::nan("")}}), nan);
}

}  // namespace
}  // namespace attributes_test_cc
}  // namespace orrery::ir
