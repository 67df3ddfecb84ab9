#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/cli/run.h"

// The program `validate`.

namespace orrery::cli {
namespace validate_test_cc {
namespace {

Finished Ask(const std::string& flags) {
  return Execute(absl::StrCat("validate --data ", ORRERY_SOURCE_DIR,
                              "/tests/data/validation_times/02_korthikanti_2205.05198.json ",
                              flags));
}

TEST(Validate, PricesByTheCostModelThatIsAskedFor) {
  const std::string real = Ask("").out;
  EXPECT_THAT(real, testing::ContainsRegex("calibration +time +4 +1\\."));
  EXPECT_EQ(Ask("--cost-model kernels").out, real);
  EXPECT_THAT(Ask("--cost-model roofline").out,
              testing::ContainsRegex("calibration +time +4 +2[67]\\."));
}

// And not row by row.
TEST(Validate, SaysThatThereIsNoSuchCostModel) {
  const Finished finished = Ask("--cost-model abacus");
  EXPECT_EQ(finished.code, 1);
  EXPECT_EQ(finished.out, "");
  EXPECT_THAT(finished.err, testing::HasSubstr("--cost-model: cost model 'abacus' is unknown"));
}

}  // namespace
}  // namespace validate_test_cc
}  // namespace orrery::cli
