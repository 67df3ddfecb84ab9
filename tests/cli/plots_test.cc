#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/cli/run.h"

// --plot of the programs: which view goes to which file.

namespace orrery::cli {
namespace plots_test_cc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* kStep =
    "simulate --model mlp:layers=4,dim=64 --batch-size 16 --cluster dgx-a100:1 --dp 2 --pp 2 "
    "--micro-batches 2 ";
constexpr const char* kSearch =
    "grid_search --model mlp:layers=4,dim=64 --batch-size 16 --cluster dgx-a100:1 ";

Finished Ask(const char* command, const std::string& rest) {
  return Execute(absl::StrCat(command, rest));
}

TEST(Plots, OneRunDrawsSeveral) {
  Clear();
  const Finished done =
      Ask(kStep, "--plot step.svg --plot step.pdf --plot memory=out/m.svg --plot links=l.svg");
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(Left(), ElementsAre("l.svg", "out", "out/m.svg", "step.pdf", "step.svg"));
  EXPECT_THAT(Contents("step.svg"), HasSubstr("What each rank computes when"));
  EXPECT_THAT(Contents("step.pdf"), StartsWith("%PDF"));
  EXPECT_THAT(Contents("out/m.svg"), HasSubstr("memory, "));
  EXPECT_THAT(Contents("l.svg"), HasSubstr("of what it can, %"));
}

TEST(Plots, NameTheViewsThereAre) {
  Clear();
  for (const char* command : {kStep, kSearch}) {
    const Finished wrong = Ask(command, "--plot memroy=m.svg");
    EXPECT_EQ(wrong.code, 1);
    EXPECT_THAT(wrong.err, HasSubstr("--plot 'memroy=m.svg': there is no view 'memroy'; wanted "));
  }
  EXPECT_THAT(Execute("simulate --help").out, HasSubstr("critical-path"));
  EXPECT_THAT(Execute("grid_search --help").out, HasSubstr("outcomes"));
  EXPECT_EQ(Execute("schedule --plot ranks=r.svg --name 1f1b").code, 1);
  EXPECT_EQ(Left(), std::vector<std::string>());
}

// Files are told apart by what stands behind the view.
TEST(Plots, AreFilesToWrite) {
  Clear();
  const Finished twice = Ask(kSearch, "--plot a.svg --plot ./front=a.svg --plot front=a.svg");
  EXPECT_EQ(twice.code, 1);
  EXPECT_THAT(twice.err, HasSubstr("a.svg: two outputs go to this file"));
  Write("model.orr", "");
  EXPECT_EQ(Ask(kSearch, "--plot front=/dev/null/a.svg").code, 1);
  EXPECT_EQ(Left(), std::vector<std::string>());
}

// Of several searches each is a line, and the table has a column a key.
TEST(Plots, OfSeveralSearchesAreOneFigure) {
  Clear();
  const std::string several =
      "grid_search --model mlp:layers=4,dim=64,mlp:dim=128 --batch-size 16 --cluster dgx-a100:1 "
      "--dp 1,2,4 --hp 1 --pp 1 --no-prune ";
  const Finished done = Execute(several + "--plot s.svg --plot front=f.svg --csv t.csv");
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.err, Not(HasSubstr("warning")));
  const std::string figure = Contents("s.svg");
  for (const char* text : {"data-parallel degree", "layers 4, dim 64", "layers 64, dim 128"}) {
    EXPECT_THAT(figure, HasSubstr(text));
  }
  EXPECT_THAT(Contents("t.csv"), HasSubstr(",price_per_sample,layers,dim\n"));
  EXPECT_THAT(Contents("t.csv"), HasSubstr(",,4,64\n"));
  EXPECT_THAT(Contents("t.csv"), HasSubstr(",,64,128\n"));
  const Finished worth = Execute(several + "--plot worth=w.svg");
  EXPECT_EQ(worth.code, 1);
  EXPECT_THAT(worth.err, HasSubstr("worth is of one search; wanted scaling or front"));
}

TEST(Plots, WarnOfWhatTheyLeaveOut) {
  Clear();
  const Finished done = Ask(kSearch, "--top 1 --plot front=f.svg");
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.err, HasSubstr("warning: f.svg: "));
  EXPECT_THAT(done.err, HasSubstr("try --no-prune"));
}

}  // namespace
}  // namespace plots_test_cc
}  // namespace orrery::cli
