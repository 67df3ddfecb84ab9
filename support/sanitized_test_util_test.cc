#include "support/sanitized_test_util.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery {
namespace sanitized_test_util_test_cc {
namespace {

using testing::ElementsAre;

#ifdef ORRERY_OTHER_HEAP

TEST(CasesToWalk, AreAnEighthUnderSanitizers) {
  EXPECT_EQ(CasesToWalk(1), 1);
  EXPECT_EQ(CasesToWalk(8), 1);
  EXPECT_EQ(CasesToWalk(9u), 2u);
  EXPECT_THAT(CasesToWalk({1, 2, 3, 4, 5, 6, 7, 8}), ElementsAre(1));
  EXPECT_THAT(CasesToWalk({1, 2, 3, 4, 5, 6, 7, 8, 9}), ElementsAre(1, 9));
}

#else

TEST(CasesToWalk, AreAll) {
  EXPECT_EQ(CasesToWalk(1), 1);
  EXPECT_EQ(CasesToWalk(9u), 9u);
  EXPECT_THAT(CasesToWalk({1, 2, 3}), ElementsAre(1, 2, 3));
}

#endif

TEST(CasesToWalk, OfNoneAreNone) {
  EXPECT_EQ(CasesToWalk(0), 0);
  EXPECT_THAT(CasesToWalk(std::vector<int>()), testing::IsEmpty());
}

}  // namespace
}  // namespace sanitized_test_util_test_cc
}  // namespace orrery
