#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
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

// Each row of a CSV file by its name: the field of that number.
std::map<std::string, std::string> Column(const std::string& csv, size_t number) {
  std::map<std::string, std::string> column;
  for (const absl::string_view line : absl::StrSplit(csv, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> fields = absl::StrSplit(line, ',');
    if (fields.size() > number) column[fields[0]] = fields[number];
  }
  column.erase("id");
  return column;
}

// From fit to files to prediction: what the fit says of the rows is what its files give.
TEST(Validate, PredictsWithWhatItHasFitted) {
  const Finished fitted = Ask("--fit --fit-out fit");
  ASSERT_EQ(fitted.code, 0) << fitted.err;
  EXPECT_THAT(fitted.out, testing::ContainsRegex("device a100-80gb sustained +share "));
  EXPECT_THAT(fitted.out, testing::ContainsRegex("calibration, fitted +4 "));
  EXPECT_EQ(Ask("--with fit --csv with.csv").code, 0);
  const auto by_fit = Column(Contents("fit/residuals.csv"), 6),
             by_files = Column(Contents("with.csv"), 2);
  EXPECT_EQ(by_fit.size(), 4);
  for (const auto& [id, seconds] : by_fit) EXPECT_EQ(by_files.at(id), seconds) << id;
  EXPECT_EQ(Ask("--csv without.csv").code, 0);
  EXPECT_NE(Column(Contents("without.csv"), 2), by_files);
}

TEST(Validate, SaysWhatIsWrongOfAFit) {
  EXPECT_THAT(Ask("--fit-out fit").err, testing::HasSubstr("--fit-out: wanted with --fit alone"));
  EXPECT_THAT(Ask("--fit --csv a.csv").err, testing::HasSubstr("--csv, --json: wanted without"));
  EXPECT_THAT(Ask("--with nowhere").err, testing::HasSubstr("nowhere: found no file of a device"));
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
