#include "support/time_source.h"

#include <gtest/gtest.h>

namespace orrery {
namespace time_source_test_cc {
namespace {

// Reports and JSON files have these names.
TEST(TimeSource, HasANameEach) {
  EXPECT_EQ(kTimeSourceNames.Of(TimeSource::kMeasured), "measured");
  EXPECT_EQ(kTimeSourceNames.Of(TimeSource::kInterpolated), "interpolated");
  EXPECT_EQ(kTimeSourceNames.Of(TimeSource::kModelled), "modelled");
  EXPECT_TRUE(AreNone({}));
  EXPECT_FALSE(AreNone({0, 0.5, 0}));
}

}  // namespace
}  // namespace time_source_test_cc
}  // namespace orrery
