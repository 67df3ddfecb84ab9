#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "support/paths_test_util.h"
#include "tests/cli/run.h"

// The program `validate`.

namespace orrery::cli {
namespace validate_test_cc {
namespace {

Finished Ask(const std::string& flags) {
  return Execute(absl::StrCat("validate --data ", SourceDir(),
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
  EXPECT_THAT(Ask("--fit --csv a.csv").err, testing::HasSubstr("'a.csv': wanted without --fit"));
  EXPECT_THAT(Ask("--with nowhere").err, testing::HasSubstr("nowhere: found no file of a device"));
}

// And not row by row.
TEST(Validate, SaysThatThereIsNoSuchCostModel) {
  const Finished finished = Ask("--cost-model abacus");
  EXPECT_EQ(finished.code, 1);
  EXPECT_EQ(finished.out, "");
  EXPECT_THAT(finished.err, testing::HasSubstr("--cost-model: cost model 'abacus' is unknown"));
}

// Pairs, tables of kernels and sweeps stand behind the steps, in all forms.
TEST(Validate, SaysWhatAChangeDoesAndWhatKernelsTake) {
  const std::string data = absl::StrCat("validate --data ", SourceDir(), "/tests/data/");
  const Finished pairs = Execute(data + "validation_pairs.json --csv pairs.csv");
  EXPECT_EQ(pairs.code, 0) << pairs.err;
  EXPECT_THAT(pairs.out,
              testing::ContainsRegex("full recomputation +reference +time, ratio +1\\.3000 "
                                     "+1\\.[0-9]+ +right\n"));
  EXPECT_THAT(pairs.out, testing::HasSubstr("time: 2, of which 2 have the right sign"));
  EXPECT_THAT(Contents("pairs.csv"),
              testing::HasSubstr(",reference,own-base,full recomputation,1.3,"));
  const Finished tables = Execute(data + "validation_tables.json --csv out.csv --json out.json");
  EXPECT_EQ(tables.code, 0) << tables.err;
  EXPECT_THAT(tables.out, testing::ContainsRegex("H100-SXM5-80GB bfloat16 +reference +2 "));
  EXPECT_THAT(
      Contents("out.csv"),
      testing::HasSubstr("\n\"H100-SXM5-80GB bfloat16 m=4096,n=12288,k=12288\",0.00156,0.0"));
  EXPECT_THAT(Contents("out.json"), testing::HasSubstr("\"median_error\": 0."));
  const Finished both = Execute(absl::StrCat(data, "validation_pairs.json --data ", SourceDir(),
                                             "/tests/data/validation_tables.json"));
  EXPECT_THAT(both.out, testing::HasSubstr("time: 2, of which 2 have the right sign"));
  EXPECT_THAT(both.out, testing::HasSubstr("H100-SXM5-80GB bfloat16"));
}

// A page links its plot from where it stands; residuals are a line a row.
TEST(Validate, WritesAPageAndItsPlot) {
  Clear();
  const Finished finished =
      Ask("--page docs/rows.md --plot docs/img/rows.svg --residuals rows.inc");
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(Contents("docs/rows.md"), testing::HasSubstr("](img/rows.svg)\n"));
  EXPECT_THAT(Contents("docs/rows.md"),
              testing::HasSubstr("| `02_korthikanti_2205.05198` | calibration | time | 4 | 1."));
  EXPECT_THAT(Contents("docs/img/rows.svg"), testing::HasSubstr("02_korthikanti_2205.05198"));
  EXPECT_THAT(Contents("rows.inc"),
              testing::HasSubstr("\"a100-80gb\", \"fp16\", \"megatron\", false, "));
}

// Before any work.
TEST(Validate, NeedsGnuplotForPlotsAlone) {
  Clear();
  const std::string data =
      absl::StrCat("--data ", SourceDir(), "/tests/data/validation_pairs.json --page p.md ");
  const Finished ending = Execute("validate " + data + "--plot p.png");
  EXPECT_EQ(ending.code, 1);
  EXPECT_THAT(ending.err, testing::HasSubstr("--plot: p.png: wanted a name that ends in .svg or "
                                             ".pdf"));
  EXPECT_TRUE(Left().empty());
  const std::string nowhere = absl::StrCat("validate ", data);
  const Finished twice = Execute(nowhere + "--plot p.md");
  EXPECT_EQ(twice.code, 1);
  EXPECT_THAT(twice.err, testing::HasSubstr("two outputs go to this file"));
  const Finished without = Execute(absl::StrCat("validate --help >/dev/null; PATH=/nowhere ",
                                                BinDir(), "/", nowhere, "--plot p.svg"));
  EXPECT_EQ(without.code, 1);
  EXPECT_THAT(without.err, testing::HasSubstr("wanted that of Debian's package gnuplot-nox"));
  EXPECT_TRUE(Left().empty());
  EXPECT_EQ(
      Execute(absl::StrCat("validate --help >/dev/null; PATH=/nowhere ", BinDir(), "/", nowhere))
          .code,
      0);
}

}  // namespace
}  // namespace validate_test_cc
}  // namespace orrery::cli
