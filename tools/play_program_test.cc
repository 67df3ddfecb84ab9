#include "tools/play_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "simulator/program/program_text.h"
#include "simulator/program/time_alone.h"
#include "support/file.h"
#include "tools/flags.h"
#include "tools/traces/write_trace.h"

namespace orrery::tools {
namespace play_program_test_cc {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// A folder of its own for each test.
class PlayProgram : public testing::Test {
 protected:
  PlayProgram() : folder_(absl::StrCat(testing::TempDir(), "orrery_tools_", getpid(), "/")) {
    std::filesystem::create_directories(folder_);
  }
  ~PlayProgram() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + name; }

  // What is printed, but for the last line, which has the time that it took; or the error.
  std::string Play(const std::string& text, const std::string& cluster = "") {
    flags_.program = Path("p");
    flags_.cluster = cluster;
    EXPECT_TRUE(WriteFile(flags_.program, text).ok());
    testing::internal::CaptureStdout();
    const absl::Status status = PlayProgramFile(flags_);
    const std::string out = testing::internal::GetCapturedStdout();
    const std::string said =
        status.ok() ? out.substr(0, out.find("  simulated")) : std::string(status.message());
    return absl::StrReplaceAll(said, {{folder_, ""}});
  }

  ProgramFlags flags_;

 private:
  std::string folder_;
};

const char* const kHead = R"(program
rank0 "r" members 0-1 stage 0
stream0 rank0 compute
stream1 rank0 data
label0 "op" compute forward stage 0
)";

TEST_F(PlayProgram, PrintsTheReportOfAText) {
  EXPECT_EQ(Play(absl::StrCat("# a remark\n\n  ", kHead, R"(task0 stream0 label0 takes 1500000 ps
task1 stream0 label0 takes 500000 ps
memory task0 rank0 activations +4096 bytes
)")),
            R"(p

  step time                2.00 us (0.000002000000 s)
  communication overhead   0.00 %
  exposed communication    0 s a rank, of the step 0.00 %
  bubble                   0.00 %
  peak memory              4.00 KiB on rank 0, fits: activations 4.00 KiB
    reached                at 0.00 ns by op, forward on stage 0
  bytes sent, reduced      0 B, 0 B
)");
}

TEST_F(PlayProgram, NeedsAClusterForProgramsOfRanks) {
  const std::string text = "rank-programs\t# by hand\nrank 0\ncompute 5us\n";
  EXPECT_EQ(Play(text),
            "--cluster is missing; wanted one for programs of ranks, such as dgx-h100:2");
  EXPECT_THAT(Play(text, "dgx-h100:1"), StartsWith("p, on dgx-h100:1\n\n  step time  "));
  EXPECT_THAT(Play("rank-programs\nrank 8\n", "dgx-h100:1"), StartsWith("p: rank 8: "));
}

TEST_F(PlayProgram, SaysWhatItCannotRead) {
  const auto begins = [](const std::string& word) {
    return absl::StrCat("p: begins with '", word,
                        "'; wanted 'rank-programs', or 'program'; try examples/programs, or "
                        "docs/programs.md");
  };
  EXPECT_EQ(Play(""), begins(""));
  EXPECT_EQ(Play("# program\n \t\n"), begins(""));
  EXPECT_EQ(Play("Program"), begins("Program"));
  EXPECT_EQ(Play("hello\tworld"), begins("hello"));
  EXPECT_EQ(Play(std::string(41, 'x')), begins(std::string(40, 'x')));
  EXPECT_THAT(Play("program\nnonsense\n"), StartsWith("p: "));
  flags_.program = "/no/such/file";
  EXPECT_FALSE(PlayProgramFile(flags_).ok());
}

// 2^62 bytes in all may be summed, on as many ranks as a label stands for.
TEST_F(PlayProgram, SumsUpTo4EiB) {
  const std::string error =
      "p: all labels, memory events and residents together are more than 4 EiB; wanted less";
  const auto of_label = [&](const std::string& bytes) {
    return Play(absl::StrCat("program\nrank0 \"r\" members 0-1 stage 0\nstream0 rank0 data\n",
                             "label0 \"op\" collective forward stage 0 bytes ", bytes,
                             "\ntask0 stream0 label0 takes 1 ps\n"));
  };
  EXPECT_THAT(of_label("2305843009213693952"), StartsWith("p\n"));  // 2^61 on two ranks
  EXPECT_EQ(of_label("2305843009213693953"), error);
  EXPECT_THAT(of_label("1537228672809129301 collectives 3"), StartsWith("p\n"));  // 2^62 / 3
  EXPECT_EQ(of_label("1537228672809129302 collectives 3"), error);
  const auto resident = [&](const std::string& bytes) {
    return Play(absl::StrCat(kHead, "resident rank0 other ", bytes, " bytes\n"));
  };
  EXPECT_THAT(resident("4611686018427387904"), StartsWith("p\n"));
  EXPECT_EQ(resident("4611686018427387905"), error);
  // What is given back counts like what is taken.
  const auto events = [&](const std::string& bytes) {
    return Play(absl::StrCat(kHead, "task0 stream0 label0 takes 1 ps\n",
                             "memory task0 rank0 other +", bytes, " bytes\n",
                             "memory task0 rank0 other -", bytes, " bytes\n"));
  };
  EXPECT_THAT(events("2305843009213693952"), StartsWith("p\n"));
  EXPECT_EQ(events("2305843009213693953"), error);
}

// The streams of a rank together may be busy for no longer than time goes on.
TEST_F(PlayProgram, EndsBeforeTimeDoes) {
  const int64_t half = simulator::kEndOfTime.picoseconds() / 2;
  const auto play = [&](int64_t picoseconds) {
    return Play(absl::StrCat(kHead, "task0 stream0 label0 takes ", picoseconds, " ps\n"));
  };
  EXPECT_THAT(play(half), StartsWith("p\n"));
  EXPECT_THAT(play(half + 1), HasSubstr(" on 2 streams of a rank; wanted busy times of at most "));
}

TEST_F(PlayProgram, WritesReportAndTrace) {
  flags_.json = Path("r.json");
  flags_.trace.path = Path("t.json");
  Play(absl::StrCat(kHead, "task0 stream0 label0 takes 1500000 ps\n"));
  EXPECT_THAT(ReadFile(flags_.json).value(), HasSubstr("\"step_time_s\": 1.5"));
  EXPECT_THAT(ReadFile(flags_.trace.path).value(), HasSubstr("\"op\""));
  flags_.trace.path = flags_.json;
  EXPECT_EQ(Play(kHead), "r.json: two outputs go to this file; wanted one each");
}

// What `packed` has, a gzip file of one member.
std::string Unpack(const std::string& path) {
  std::string text(1 << 16, '\0');
  const gzFile file = gzopen(path.c_str(), "rb");
  const int size = gzread(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  return text.substr(0, static_cast<size_t>(std::max(size, 0)));
}

TEST_F(PlayProgram, PacksTracesByTheirNames) {
  const simulator::Program program =
      simulator::ParseProgram(absl::StrCat(kHead, "task0 stream0 label0 takes 1500000 ps\n"))
          .value();
  simulator::Trace trace;
  trace.start.push_back(Time(0));
  trace.finish.push_back(Time(1'500'000));
  trace.makespan = Duration(1'500'000);
  for (const char* name : {"t.json", "gz", "t.gz", "u.gz"}) {
    ASSERT_TRUE(WriteTrace({.path = Path(name)}, program, trace, nullptr).ok()) << name;
  }
  const std::string plain = ReadFile(Path("t.json")).value();
  EXPECT_THAT(plain, StartsWith("{"));
  EXPECT_EQ(ReadFile(Path("gz")).value(), plain);
  const std::string packed = ReadFile(Path("t.gz")).value();
  EXPECT_THAT(packed, StartsWith("\x1f\x8b"));
  EXPECT_LT(packed.size(), plain.size());
  EXPECT_EQ(Unpack(Path("t.gz")), plain);
  EXPECT_EQ(ReadFile(Path("u.gz")).value(), packed);  // no time in it
  EXPECT_FALSE(WriteTrace({.path = Path("gz/t.gz")}, program, trace, nullptr).ok());  // no folder
}

TEST_F(PlayProgram, KnowsRanksWithGaps) {
  const simulator::Program program = simulator::ParseProgram(R"(program
rank0 "" members 0 stage 0
rank1 "" members 8 stage 0
stream0 rank0 compute
label0 "op" compute forward stage 0
task0 stream0 label0 takes 1500000 ps
)")
                                         .value();
  simulator::Trace trace;
  trace.start.push_back(Time(0));
  trace.finish.push_back(Time(1'500'000));
  trace.makespan = Duration(1'500'000);
  TraceRequest request = {.path = Path("t.json"), .snapshot = Path("m.pickle"), .ranks = {3}};
  EXPECT_THAT(std::string(WriteTrace(request, program, trace, nullptr).message()),
              HasSubstr("the program has no rank 3"));
  request.ranks = {8};
  EXPECT_TRUE(WriteTrace(request, program, trace, nullptr).ok());
}

}  // namespace
}  // namespace play_program_test_cc
}  // namespace orrery::tools
