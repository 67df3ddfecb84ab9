#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "support/file.h"
#include "support/paths_test_util.h"
#include "tests/cli/run.h"

// `simulate --program`: what a person writes, and what is wrong with it.

namespace orrery::cli {
namespace program_test_cc {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kExample = SourceDir() + "/examples/programs/overlap.ranks";

TEST(ProgramFile, ThePageShowsWhatItPrints) {
  const absl::StatusOr<std::string> page = ReadFile(SourceDir() + "/docs/programs.md");
  ASSERT_TRUE(page.ok()) << page.status();
  const Finished finished = Execute("simulate --program " + kExample + " --cluster dgx-a100:1");
  ASSERT_EQ(finished.code, 0) << finished.err;
  std::vector<std::string> lines = absl::StrSplit(finished.out, '\n', absl::SkipEmpty());
  ASSERT_GT(lines.size(), 6u);
  for (size_t i = 1; i + 1 < lines.size(); ++i) EXPECT_THAT(*page, HasSubstr(lines[i]));
  EXPECT_THAT(*page, HasSubstr(*ReadFile(kExample)));
}

// A flag may be cut short where no other one begins like it.
TEST(ProgramFile, TheFlagMayBeCutShort) {
  const auto out = [](const std::string& flag) {
    const Finished finished =
        Execute(absl::StrCat("simulate ", flag, kExample, " --cluster dgx-a100:1"));
    // The last line has the time that it took.
    return absl::StrCat(finished.code, finished.out.substr(0, finished.out.find("simulated")),
                        finished.err);
  };
  const std::string whole = out("--program ");
  EXPECT_EQ(whole[0], '0');
  for (const char* flag : {"--program=", "--progra ", "--progra="}) {
    EXPECT_EQ(out(flag), whole) << flag;
  }
  // It could be --progress.
  for (const char* flag : {"--pr ", "--prog ", "--prog="}) {
    EXPECT_THAT(out(flag), HasSubstr("ambiguous")) << flag;
  }
  EXPECT_THAT(out("--programs "), HasSubstr("--programs"));
}

TEST(ProgramFile, WritesReportAndTrace) {
  Clear();
  const Finished finished = Execute(absl::StrCat(
      "simulate --program ", kExample, " --cluster dgx-a100:1 --json r.json --trace t.json"));
  ASSERT_EQ(finished.code, 0) << finished.err;
  const json report = json::parse(Contents("r.json"));
  EXPECT_EQ(report["devices"].size(), 8u);
  EXPECT_EQ(report["simulated_tasks"], 37);
  EXPECT_EQ(report["bytes_sent"], 16 << 20);
  EXPECT_EQ(report["bytes_reduced"], 576 << 20);
  const std::string trace = Contents("t.json");
  EXPECT_TRUE(json::accept(trace));
  EXPECT_THAT(trace, HasSubstr("all-reduce world"));
  EXPECT_THAT(trace, HasSubstr("device0 -> ")) << "links are counters";
}

TEST(ProgramFile, OverlapPays) {
  Clear();
  const auto step_time = [](const std::string& stream) {
    Write("p.ranks", absl::StrCat("rank-programs\ncommunicator w 0-7\nrank 0-7\ncompute 9ms\n",
                                  "all-reduce w 1GiB", stream, "\ncompute 9ms\n"));
    EXPECT_EQ(Execute("simulate --program p.ranks --cluster dgx-a100:1 --json r.json").code, 0);
    return json::parse(Contents("r.json"))["step_time_s"].get<double>();
  };
  EXPECT_EQ(step_time(" on data"), 0.018);
  EXPECT_GT(step_time(""), 0.024);
}

TEST(ProgramFile, TheTextOfAProgramNeedsNoCluster) {
  const Finished finished =
      Execute("simulate --program " + SourceDir() + "/tests/lowering/pipelined.program");
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("28 tasks of 2 rank classes"));
}

struct BadProgram {
  std::string name;
  std::string text;
  std::string cluster;
  std::string err;  // a part of the line
};

void PrintTo(const BadProgram& bad, std::ostream* out) { *out << bad.name; }

class BadPrograms : public testing::TestWithParam<BadProgram> {};

TEST_P(BadPrograms, EndWithOneLine) {
  Clear();
  Write("bad.ranks", GetParam().text);
  const std::string cluster = GetParam().cluster;
  const Finished finished =
      Execute(absl::StrCat("simulate --program bad.ranks --json r.json --trace t.json",
                           cluster.empty() ? "" : " --cluster ", cluster));
  EXPECT_EQ(finished.code, 1);
  EXPECT_EQ(std::count(finished.err.begin(), finished.err.end(), '\n'), 1);
  EXPECT_THAT(finished.err, HasSubstr(GetParam().err));
  EXPECT_EQ(finished.out, "");
  EXPECT_THAT(Left(), IsEmpty());
}

const std::string kHead = "rank-programs\ncommunicator a 0-1\ncommunicator b 1,0\n";

INSTANTIATE_TEST_SUITE_P(
    Files, BadPrograms,
    testing::ValuesIn(std::vector<BadProgram>{
        {"Empty", "", "dgx-a100:1", "simulate: bad.ranks: begins with ''; wanted 'rank-programs'"},
        {"OtherForm", "hello", "dgx-a100:1", "bad.ranks: begins with 'hello'; wanted"},
        {"NoCluster", kHead, "",
         "simulate: --cluster is missing; wanted one for programs of ranks"},
        {"UnknownCluster", kHead, "dgx-z:1", "dgx-z"},
        {"Line", kHead + "rank 0\n jump\n", "dgx-a100:1",
         "bad.ranks: line 5: found 'jump', wanted"},
        {"TooManyRanks", kHead + "rank 8\n", "dgx-a100:1",
         "bad.ranks: rank 8: dgx-a100:1 has 8 devices; wanted ranks 0 to 7"},
        {"Kind", kHead + "rank 0\nall-reduce a 8\nrank 1\nall-gather a 8\n", "dgx-a100:1",
         "bad.ranks: communicator 'a', call 0: rank 0 (line 5) calls all-reduce of 8 bytes, rank 1 "
         "(line 7) all-gather of 8 bytes; wanted"},
        {"Size", kHead + "rank 0\nall-reduce a 8\nrank 1\nall-reduce a 9\n", "dgx-a100:1",
         "rank 0 (line 5) calls all-reduce of 8 bytes, rank 1 (line 7) all-reduce of 9 bytes"},
        {"Order", kHead + "rank 0\nbarrier a\nbarrier b\nrank 1\nbarrier b\nbarrier a\n",
         "dgx-a100:1",
         "bad.ranks: ranks wait for each other in a circle: rank 0 (line 6) comes to barrier of 0 "
         "B "
         "in 'b' after barrier of 0 B in 'a' (line 5); rank 1 (line 9) comes to"},
        {"Number", kHead + "rank 0-1\nbarrier a\nrank 1\nbarrier a\n", "dgx-a100:1",
         "rank 1 (line 7) calls barrier of 0 B in 'a' as call 1, and rank 0 (line 5), the last "
         "time, calls it only 1 times"},
        {"Send", kHead + "rank 0\nsend to 1 8\nrank 1\n", "dgx-a100:1",
         "bad.ranks: rank 0 (line 5): send to rank 1 of 8 B with tag 0 has no other end: rank 1 "
         "has "
         "only 0 such receives; wanted a receive on rank 1"},
        {"Receive", kHead + "rank 0\nreceive from 1 8 tag 2\nrank 1\nsend to 0 8\n", "dgx-a100:1",
         "rank 1 (line 7): send to rank 0 of 8 B with tag 0 has no other end: rank 0 has only 0 "
         "such "
         "receives, and rank 0 (line 5) has one with tag 2; wanted a receive on rank 0"},
        {"Deadlock",
         "program\nrank0 \"r\" members 0 stage 0\nstream0 rank0 compute\nlabel0 \"op\" compute "
         "forward stage 0\ntask0 stream0 label0 takes 1 ps after task1\ntask1 stream0 label0 takes "
         "1 ps\n",
         "", "bad.ranks: program: deadlock: 2 of 2 tasks can never start: task0 \"op\""},
        {"Endless",
         "program\nrank0 \"r\" members 0 stage 0\nstream0 rank0 compute\nlabel0 \"op\" compute "
         "forward stage 0\ntask0 stream0 label0 takes 4600000000000000000 ps\ntask1 stream0 label0 "
         "takes 4600000000000000000 ps\n",
         "", "bad.ranks: simulation: after 2 of 2 tasks, what runs goes on beyond"},
        {"TooMuch",
         "program\nrank0 \"r\" members 0 stage 0\nresident rank0 other 9000000000000000000 bytes\n",
         "", "bad.ranks: all labels, memory events and residents together are more than 4 EiB"},
        {"TooBusy",
         "program\nrank0 \"r\" members 0 stage 0\nstream0 rank0 compute\nstream1 rank0 data\n"
         "label0 \"op\" compute forward stage 0\ntask0 stream0 label0 takes 4600000000000000000 "
         "ps\ntask1 stream1 label0 takes 4600000000000000000 ps\n",
         "", "on 2 streams of a rank; wanted busy times of at most"},
    }),
    [](const testing::TestParamInfo<BadProgram>& info) { return info.param.name; });

TEST(ProgramFile, OtherFlagsAreWrongUsage) {
  const Finished finished = Execute("simulate --program p.ranks --model mlp:layers=4,dim=64");
  EXPECT_EQ(finished.code, 2);
  EXPECT_THAT(finished.err, HasSubstr("--help"));
  EXPECT_EQ(Execute("simulate --program no.ranks").code, 1);
  EXPECT_THAT(Execute("simulate --help").out, HasSubstr("--program"));
  EXPECT_THAT(Execute("simulate --program x --help").out, HasSubstr("programs of ranks"));
}

}  // namespace
}  // namespace program_test_cc
}  // namespace orrery::cli
