#include "support/check.h"

#include "gtest/gtest.h"
#include "support/id.h"

namespace orrery {
namespace check_test_cc {
namespace {

ORRERY_DEFINE_ID(OpId, "op");

TEST(Check, SaysNothingWhenItHolds) {
  int evaluated = 0;
  ORRERY_CHECK(true) << ++evaluated;
  EXPECT_EQ(evaluated, 0);
}

TEST(Check, IsOneStatement) {
  int branch = 0;
  if (branch == 1)
    ORRERY_CHECK(false);
  else
    branch = 2;
  EXPECT_EQ(branch, 2);
}

TEST(CheckDeathTest, NamesTheIdTheConditionAndThePlace) {
  const int got = 3;
  EXPECT_DEATH(ORRERY_CHECK(got == 4) << OpId(7) << " has " << got << " operands",
               "support/check_test.cc:[0-9]+: CHECK failed: got == 4 op7 has 3 operands");
}

#ifdef NDEBUG
TEST(DCheck, IsNotEvaluatedInReleaseBuilds) {
  int evaluated = 0;
  ORRERY_DCHECK(++evaluated == 0) << ++evaluated;
  EXPECT_EQ(evaluated, 0);
}
#else
TEST(DCheckDeathTest, IsACheckInDebugBuilds) {
  EXPECT_DEATH(ORRERY_DCHECK(OpId().valid()) << OpId(), "CHECK failed.*op<none>");
}
#endif

}  // namespace
}  // namespace check_test_cc
}  // namespace orrery
