#include "search/journal/part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace orrery::search {
namespace part_test_cc {
namespace {

TEST(Part, ReadsWhatItPrints) {
  const absl::StatusOr<Part> part = ParsePart("2/3");
  ASSERT_TRUE(part.ok());
  EXPECT_EQ(part->index, 2);
  EXPECT_EQ(part->count, 3);
  EXPECT_EQ(ToString(*part), "2/3");
  EXPECT_TRUE(ParsePart("1/1")->is_whole());
  EXPECT_FALSE(part->is_whole());
}

TEST(Part, SaysWhatIsWanted) {
  for (const char* text : {"", "3", "0/3", "4/3", "-1/3", "1/0", "a/b", "1/2/3", "1/1000001"}) {
    EXPECT_THAT(std::string(ParsePart(text).status().message()), testing::HasSubstr("wanted I/N"))
        << text;
  }
}

// Each candidate is of one part, and no part has two more than another.
TEST(Part, DealsAllOutEvenly) {
  for (const int64_t count : {1, 2, 3, 7, 16}) {
    for (const size_t candidates : {0u, 1u, 5u, 100u, 1001u}) {
      std::vector<size_t> all, sizes;
      for (int64_t i = 1; i <= count; ++i) {
        const std::vector<size_t> of_part = CandidatesOf({.index = i, .count = count}, candidates);
        sizes.push_back(of_part.size());
        all.insert(all.end(), of_part.begin(), of_part.end());
      }
      std::ranges::sort(all);
      std::vector<size_t> wanted(candidates);
      std::iota(wanted.begin(), wanted.end(), size_t{0});
      EXPECT_EQ(all, wanted);
      EXPECT_LE(std::ranges::max(sizes) - std::ranges::min(sizes), 1u);
    }
  }
}

// An axis whose values come round as often as parts do is not one value a part.
TEST(Part, SharesOutTheValuesOfAnAxis) {
  constexpr size_t kValues = 4;
  for (int64_t i = 1; i <= 4; ++i) {
    std::vector<int> seen(kValues);
    for (const size_t candidate : CandidatesOf({.index = i, .count = 4}, 400)) {
      ++seen[candidate % kValues];
    }
    EXPECT_GE(std::ranges::min(seen), 10) << i;
  }
}

}  // namespace
}  // namespace part_test_cc
}  // namespace orrery::search
