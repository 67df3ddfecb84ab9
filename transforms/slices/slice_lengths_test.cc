#include "transforms/slices/slice_lengths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace orrery::transforms {
namespace slice_lengths_test_cc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ParseSliceLengths, ReadsAWordOrLengths) {
  EXPECT_FALSE(ParseSliceLengths("equal")->balanced);
  EXPECT_TRUE(ParseSliceLengths("balanced")->balanced);
  EXPECT_THAT(ParseSliceLengths("3,2,1")->rows, ElementsAre(3, 2, 1));
  for (const absl::string_view text :
       {"even", "3,,1", "3,0", "-1", "3;2", "99999999999999999999"}) {
    EXPECT_THAT(std::string(ParseSliceLengths(text).status().message()),
                HasSubstr("': wanted equal, balanced, or the positions of each slice"));
  }
}

TEST(SliceLengths, ReadsWhatItPrints) {
  for (const char* text : {"equal", "balanced", "3,2,1", "7"}) {
    EXPECT_EQ(ToString(ParseSliceLengths(text).value()), text);
  }
  EXPECT_EQ(ParseSliceLengths("3,2,1").value(), (SliceLengths{.rows = {3, 2, 1}}));
  EXPECT_NE(ParseSliceLengths("equal").value(), ParseSliceLengths("balanced").value());
}

}  // namespace
}  // namespace slice_lengths_test_cc
}  // namespace orrery::transforms
