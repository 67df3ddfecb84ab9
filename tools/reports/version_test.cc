#include "tools/reports/version.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::tools {
namespace version_test_cc {
namespace {

TEST(Version, IsThreeNumbers) {
  EXPECT_THAT(std::string(Version()), testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
}

}  // namespace
}  // namespace version_test_cc
}  // namespace orrery::tools
