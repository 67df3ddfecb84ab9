#include "support/sanitized_test_util.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace orrery {
namespace sanitized_test_util_test_cc {
namespace {

using testing::ElementsAre;

#ifdef ORRERY_OTHER_HEAP

TEST(CasesToWalk, AreASixteenthUnderSanitizers) {
  EXPECT_EQ(CasesToWalk(1), 1);
  EXPECT_EQ(CasesToWalk(16), 1);
  EXPECT_EQ(CasesToWalk(17u), 2u);
  std::vector<int> cases(16);
  std::iota(cases.begin(), cases.end(), 1);
  EXPECT_THAT(CasesToWalk(cases), ElementsAre(1));
  cases.push_back(17);
  EXPECT_THAT(CasesToWalk(cases), ElementsAre(1, 17));
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
