#include "support/word_list.h"

#include <gtest/gtest.h>

#include <vector>

namespace orrery {
namespace word_list_test_cc {
namespace {

using Words = std::vector<absl::string_view>;

TEST(ListWords, PutsTheLastOneBehindAWord) {
  EXPECT_EQ(ListWords(Words{}, " or "), "");
  EXPECT_EQ(ListWords(Words{"cost"}, " or "), "cost");
  EXPECT_EQ(ListWords(Words{"cost", "ops"}, " or "), "cost or ops");
  EXPECT_EQ(ListWords(Words{"cost", "ops", "layers"}, " and "), "cost, ops and layers");
}

TEST(ListWords, KeepsWordsThatAreEmpty) {
  EXPECT_EQ(ListWords(Words{"", "", ""}, " or "), ",  or ");
}

}  // namespace
}  // namespace word_list_test_cc
}  // namespace orrery
