#include "search/search_rows.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace orrery::search {
namespace search_rows_test_cc {
namespace {

Result Named(int64_t dp) {
  Result result;
  result.plan.dp = dp;
  result.peak_memory = Bytes(dp);
  return result;
}

TEST(SearchRows, MakesWhatWasNotPlayed) {
  SearchRows rows(
      {.row =
           [](size_t candidate, Unplayed why) {
             Result result = Named(static_cast<int64_t>(candidate));
             if (why == Unplayed::kPruned) result.pruned = "so";
             result.left = why == Unplayed::kLeft;
             return result;
           },
       .least_memory =
           [](size_t candidate) { return Bytes(static_cast<int64_t>(10 * candidate)); }});
  rows.Add(Named(100));
  rows.Add(3, Unplayed::kPruned);
  rows.Add(4, Unplayed::kTooLarge);
  rows.Add(5, Unplayed::kLeft);
  EXPECT_FALSE(rows.least_left().has_value());
  rows.NoteLeft({Duration(9)});
  rows.NoteLeft({Duration(7)});
  rows.NoteLeft({Duration(8)});
  EXPECT_EQ(rows.least_left(), Duration(7));
  ASSERT_EQ(rows.size(), 4u);
  std::string seen;
  rows.ForEach([&](const Result& result) {
    seen += std::to_string(result.plan.dp) + (result.pruned.empty() ? "" : "p") +
            (result.left ? "l " : " ");
  });
  EXPECT_EQ(seen, "100 3p 4 5l ");
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows.IsPruned(i), i == 1) << i;
    EXPECT_EQ(rows.IsLeft(i), i == 3) << i;
    EXPECT_EQ(rows.Played(i) != nullptr, i == 0) << i;
  }
  EXPECT_EQ(rows.MemoryOf(0), Bytes(100));
  EXPECT_EQ(rows.MemoryOf(2), Bytes(40));
  EXPECT_EQ(rows[2].plan.dp, 4);
  EXPECT_EQ(rows.played().size(), 1u);
}

TEST(SearchRows, OfResultsHasThem) {
  std::vector<Result> results = {Named(1), Named(2)};
  results[1].pruned = "so";
  const SearchRows rows = results;
  EXPECT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].plan.dp, 2);
  EXPECT_TRUE(rows.IsPruned(1));
  EXPECT_FALSE(rows.IsLeft(1));
  EXPECT_TRUE(SearchRows().empty());
}

}  // namespace
}  // namespace search_rows_test_cc
}  // namespace orrery::search
