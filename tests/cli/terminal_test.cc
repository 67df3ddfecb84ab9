#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "support/paths_test_util.h"
#include "tests/cli/run.h"

// What a program shows at a terminal, and only there.

namespace orrery::cli {
namespace terminal_test_cc {
namespace {

using testing::HasSubstr;
using testing::Not;

/// A terminal that somebody sits at.
struct Seat {
  unsigned short columns = 80;
  std::string variables = "TERM=xterm LC_ALL=C.UTF-8";
};

// All that `command` writes to it, of both streams.
std::string Seen(const std::string& command, const Seat& seat = {}) {
  const std::string line = absl::StrCat("cd ", Folder(), " && exec env -u NO_COLOR -u COLUMNS ",
                                        seat.variables, " timeout 60 ", BinDir(), "/", command);
  winsize size = {.ws_row = 50, .ws_col = seat.columns, .ws_xpixel = 0, .ws_ypixel = 0};
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    _exit(127);
  }
  std::string seen;
  char buffer[4096];
  // At the end of the other side the terminal is an error, not the end of a file.
  for (ssize_t got; (got = read(terminal, buffer, sizeof(buffer))) > 0;) {
    seen.append(buffer, static_cast<size_t>(got));
  }
  close(terminal);
  int status = 0;
  waitpid(child, &status, 0);
  return absl::StrReplaceAll(seen, {{"\r\n", "\n"}});
}

const std::string kStep =
    "simulate --model mlp:layers=8,dim=512 --batch-size 64 --cluster dgx-h100:1 --dp 2 --pp 2 "
    "--micro-batches 4 ";
const std::string kSearch =
    "grid_search --model mlp:layers=8,dim=512 --batch-size 64 --cluster dgx-h100:1 --threads 1 ";

TEST(Terminal, HasChartsOfAStep) {
  Clear();
  const std::string seen = Seen(kStep);
  EXPECT_THAT(seen, HasSubstr("where the time of a step goes:\n"));
  EXPECT_THAT(seen, HasSubstr("\x1b[32m█"));
  EXPECT_THAT(seen, HasSubstr("  bubble, "));
}

TEST(Terminal, HasChartsOfASearch) {
  Clear();
  const std::string seen = Seen(kSearch);
  EXPECT_THAT(seen, HasSubstr("a step of each, the best first:\n  1  \x1b[32m█"));
  EXPECT_THAT(seen, HasSubstr("feasible candidates that were played:\nstep time"));
  EXPECT_THAT(seen, HasSubstr("\x1b[32m◆\x1b[0m none is both faster and smaller"));
  EXPECT_THAT(seen, HasSubstr("peak memory of a rank"));
}

TEST(Terminal, AloneHasThem) {
  Clear();
  for (const std::string& command : {kStep, kSearch}) {
    const std::string out = Execute("simulate --version >&2; LC_ALL=C.UTF-8 TERM=xterm " +
                                    absl::StrCat(BinDir(), "/", command))
                                .out;
    EXPECT_THAT(out, Not(HasSubstr("\x1b")));
    EXPECT_THAT(out, Not(HasSubstr("█")));
    EXPECT_THAT(out, Not(HasSubstr("where the time of a step goes")));
    EXPECT_THAT(out, HasSubstr("bubble"));
  }
}

TEST(Terminal, IsPlainWhereItIsWanted) {
  Clear();
  EXPECT_THAT(Seen(kStep, {.variables = "TERM=xterm LC_ALL=C.UTF-8 NO_COLOR=1"}),
              testing::AllOf(Not(HasSubstr("\x1b")), HasSubstr("█")));
  EXPECT_THAT(Seen(kStep, {.variables = "TERM=dumb LC_ALL=C.UTF-8"}), Not(HasSubstr("\x1b")));
  // Open MPI gives each process that it starts a terminal.
  EXPECT_THAT(Seen(kStep, {.variables = "TERM=xterm LC_ALL=C.UTF-8 OMPI_COMM_WORLD_SIZE=1"}),
              testing::AllOf(HasSubstr("step time"), Not(HasSubstr("\x1b")), Not(HasSubstr("█"))));
  const std::string ascii = Seen(kSearch, {.variables = "TERM=dumb LC_ALL=C"});
  EXPECT_THAT(ascii, HasSubstr("  # compute  = exposed communication  - bubble\n"));
  for (const char c : ascii) ASSERT_EQ(c & 0x80, 0) << ascii;
}

TEST(Terminal, IsWideEnoughForTablesAndCharts) {
  Clear();
  for (const unsigned short columns : std::initializer_list<unsigned short>{70, 80, 120}) {
    const std::string seen =
        Seen(kSearch, {.columns = columns, .variables = "TERM=dumb LC_ALL=C.UTF-8"});
    for (const std::string& line : std::vector<std::string>(absl::StrSplit(seen, '\n'))) {
      // Plans are words of a command line, which nobody wants cut.
      if (absl::StrContains(line, "--") || absl::StrContains(line, "candidates")) continue;
      size_t width = 0;
      for (const char c : line) width += (c & 0xC0) != 0x80 ? 1 : 0;
      EXPECT_LE(width, columns) << line;
    }
    EXPECT_EQ(absl::StrContains(seen, "  compute"), columns == 120) << seen;
  }
}

TEST(Quiet, LeavesChartsAndProgressOut) {
  Clear();
  EXPECT_THAT(Seen(kStep + "--quiet"), Not(HasSubstr("where the time of a step goes")));
  EXPECT_EQ(Execute(kSearch + "--quiet --progress").err, "");
  EXPECT_EQ(Execute(kSearch + "--quiet").out, Execute(kSearch).out);
}

// It is wiped out, so that what stays on the screen is results.
TEST(Progress, EndsWithAnEmptyLine) {
  Clear();
  const std::string seen = Seen(kSearch + "--space full --budget 2s");
  EXPECT_THAT(seen, testing::ContainsRegex("\r[0-9]+ of [0-9]+ candidates, [0-9.]+/s, best "));
  EXPECT_THAT(seen, testing::ContainsRegex("\r +\rmlp:layers=8"));
}

TEST(Errors, NameTheProgramInRed) {
  Clear();
  EXPECT_THAT(Seen("simulate --no-such-flag"),
              HasSubstr("simulate:\x1b[0m unrecognised option '--no-such-flag'; try --help\n"));
}

TEST(Help, IsAsWideAsTheTerminal) {
  Clear();
  const auto longest = [](const std::string& text) {
    size_t most = 0;
    for (const std::string& line : std::vector<std::string>(absl::StrSplit(text, '\n'))) {
      if (line.starts_with("  -")) most = std::max(most, line.size());
    }
    return most;
  };
  EXPECT_LE(longest(Seen("simulate --help")), 80u);
  const size_t wide = longest(Seen("simulate --help", {.columns = 140}));
  EXPECT_GT(wide, 100u);
  EXPECT_LE(wide, 140u);
  EXPECT_LE(longest(Execute("simulate --help").out), 80u);
}

}  // namespace
}  // namespace terminal_test_cc
}  // namespace orrery::cli
