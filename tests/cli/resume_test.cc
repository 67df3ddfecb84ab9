#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "support/paths_test_util.h"
#include "support/sanitized_test_util.h"
#include "tests/cli/run.h"

// A search that is interrupted, shared out, put together or gone on with finds what one that is
// left alone finds, byte for byte.

namespace orrery::cli {
namespace resume_test_cc {
namespace {

using testing::HasSubstr;

const std::string kQuestion =
    "--model gpt:layers=2,hidden=32,heads=2,seq=32,vocab=128 --batch-size 8 --cluster "
    "uniform:4@200Gbps --hp 1 --memory-limit 300kB ";

// What a search tells: on the screen, and in its files.
struct Told {
  std::string out, csv, json;
  friend bool operator==(const Told&, const Told&) = default;
};

Told Tell(const std::string& flags) {
  const Finished finished = Execute("grid_search --csv o.csv --json o.json " + flags);
  EXPECT_EQ(finished.code, 0) << flags << "\n" << finished.err;
  EXPECT_EQ(finished.err, "") << flags;
  if (finished.code != 0) return {};
  return {finished.out, Contents("o.csv"), Contents("o.json")};
}

// That of the question, left alone.
const Told& Alone() {
  static const Told& told = *new Told(Tell(kQuestion + "--threads 1"));
  return told;
}

// A process in the folder of Execute, which this one may end.
pid_t Begin(const std::string& command) {
  const std::string line =
      absl::StrCat("cd ", Folder(), " && exec ", command, " >begun.out 2>begun.err");
  const pid_t child = fork();
  if (child != 0) return child;
  execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
  _exit(127);
}

int End(pid_t child) {
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

const std::string kProgram = BinDir() + "/grid_search ";

// Waits until a journal has so many lines, or its search is over.
void AwaitLines(const std::string& journal, pid_t search, int64_t lines) {
  const std::string path = absl::StrCat(Folder(), "/", journal);
  siginfo_t over = {};
  while (waitid(P_PID, static_cast<id_t>(search), &over, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         over.si_pid == 0) {
    std::ifstream in(path);
    if (std::count(std::istreambuf_iterator<char>(in), {}, '\n') >= lines) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST(Resume, IsTheSameOnAnyNumberOfThreads) {
  Clear();
  for (const int threads : {2, 5}) {
    EXPECT_EQ(Tell(absl::StrCat(kQuestion, "--threads ", threads)), Alone());
    EXPECT_EQ(Tell(absl::StrCat(kQuestion, "--resume j", threads, " --threads ", threads)),
              Alone());
  }
}

// A journal that is whole is all that a search needs, and tells its flags.
TEST(Resume, TakesTheQuestionFromTheJournal) {
  Clear();
  EXPECT_EQ(Tell(kQuestion + "--resume j"), Alone());
  const std::string journal = Contents("j");
  EXPECT_EQ(Tell("--resume j"), Alone());
  EXPECT_EQ(Tell(kQuestion + "--resume j"), Alone());
  EXPECT_EQ(Contents("j"), journal);
}

TEST(Parts, PutTogetherAreTheWhole) {
  for (const int count : {1, 2, 3, 7}) {
    Clear();
    std::string files;
    for (int i = 1; i <= count; ++i) {
      const Finished part = Execute(
          absl::StrCat("grid_search ", kQuestion, "--part ", i, "/", count, " --resume p", i));
      EXPECT_EQ(part.code, 0) << part.err;
      files += absl::StrCat(" p", i);
    }
    EXPECT_EQ(Tell("--merge" + files), Alone()) << count;
    EXPECT_EQ(Tell(absl::StrCat(kQuestion, "--threads 2 --merge", files)), Alone()) << count;
  }
}

// What a part leaves out by what it has found itself, the whole leaves out, too.
TEST(Parts, LeaveOutWhatTheWholeLeavesOut) {
  Clear();
  const std::string question =
      "--model gpt2-medium --dtype bf16 --batch-size 64 --cluster dgx-a100:1 --hp 1 --top 1 "
      "--cost-model roofline --recompute none,full --zero 0 --micro-batches 1,2,4,8,16,32 ";
  const Told whole = Tell(question);
  for (int i = 1; i <= 3; ++i) {
    Execute(absl::StrCat("grid_search ", question, "--part ", i, "/3 --resume p", i));
    EXPECT_THAT(Contents(absl::StrCat("p", i)), HasSubstr("\"pruned\":"));
  }
  EXPECT_EQ(Tell("--merge p1 p2 p3"), whole);
}

TEST(Parts, OfAMergeAreAllOfOneSearch) {
  Clear();
  for (int i = 1; i <= 2; ++i) {
    Execute(absl::StrCat("grid_search ", kQuestion, "--part ", i, "/2 --resume p", i));
  }
  const auto error = [](const std::string& flags) {
    const Finished finished = Execute("grid_search " + flags);
    EXPECT_EQ(finished.code, 1) << flags;
    return finished.err;
  };
  EXPECT_THAT(error("--merge p1"), HasSubstr("wanted that of part 2/2, too"));
  EXPECT_THAT(error("--merge p1 p1"), HasSubstr("wanted each part once"));
  EXPECT_THAT(error("--merge p1 none"), HasSubstr("none: no such file"));
  EXPECT_THAT(error("--merge p1 p2 --optimizer sgd"),
              HasSubstr("p1: is the journal of another search: --optimizer is not given there and "
                        "sgd here"));
  EXPECT_THAT(error(kQuestion + "--resume p1"),
              HasSubstr("p1: is the journal of part 1/2; wanted that of part 1/1"));
  EXPECT_EQ(Execute("grid_search --resume p1").code, 0);
  EXPECT_THAT(error(kQuestion + "--dp 2 --part 1/2 --resume p1"),
              HasSubstr("--dp is not given there and 2 here"));
  EXPECT_THAT(error(kQuestion + "--part 3/2"), HasSubstr("'3/2': wanted I/N"));
  EXPECT_THAT(error("--merge p1 p2 --part 1/2"), HasSubstr("--merge puts together what is done"));
  EXPECT_THAT(error(kQuestion + "--resume p1 --csv p1"), HasSubstr("--csv p1: is the file that"));
  EXPECT_THAT(error(kQuestion + "--resume new --csv ./new"),
              HasSubstr("--csv ./new: is the file that --resume writes; wanted another one"));
  EXPECT_THAT(error("--resume new"), HasSubstr("--resume: there is no journal of a search yet"));
  // A switch that was given without a text is one when the journal says it.
  const Finished blocking = Execute("grid_search " + kQuestion + "--blocking --resume b --csv b1");
  EXPECT_EQ(blocking.code, 0) << blocking.err;
  EXPECT_EQ(Execute("grid_search --resume b --csv b2").out, blocking.out);
  EXPECT_EQ(Contents("b2"), Contents("b1"));
  EXPECT_THAT(Contents("b1"), HasSubstr(",1,"));
  // What is in a file counts, not its name.
  Write("stack.json", R"({"like": "megatron"})");
  const std::string stack = kQuestion + "--stack stack.json --resume s ";
  EXPECT_EQ(Execute("grid_search " + stack).code, 0);
  Write("stack.json", R"({"like": "megatron", "step_us": 100})");
  EXPECT_THAT(error(stack), HasSubstr("the file of --stack (stack.json) has other contents"));
  Write("p2", Contents("p2").substr(0, Contents("p2").size() / 2));
  EXPECT_THAT(error("--merge p1 p2"),
              testing::ContainsRegex("p2: has [0-9]+ of the [0-9]+ candidates of part 2/2; try "
                                     "--part 2/2 with --resume p2"));
}

TEST(Resume, PassesOverDamagedLines) {
  Clear();
  Tell(kQuestion + "--resume j");
  std::string journal = Contents("j");
  journal[journal.find("\"candidate\":5,") + 14] ^= 1;
  Write("j", journal);
  const Finished again = Execute("grid_search --resume j --csv o.csv");
  EXPECT_EQ(again.err,
            "warning: j: 1 damaged lines are passed over; their candidates are done again\n");
  EXPECT_EQ(Contents("o.csv"), Alone().csv);
}

// A disk that is full: files of more than 4 KiB cannot be written.
TEST(Resume, SaysWhatCannotBeKept) {
  Clear();
  const pid_t search = Begin(absl::StrCat("sh -c \"trap '' XFSZ; ulimit -f 8; exec ", kProgram,
                                          kQuestion, "--threads 1 --resume j\""));
  EXPECT_NE(End(search), 0);
  EXPECT_EQ(Contents("begun.out"), Alone().out);
  EXPECT_THAT(Contents("begun.err"),
              testing::ContainsRegex("warning: j: .*; the search goes on\n(.*\n)*.*j: "));
  const std::string warning = "; the search goes on", told = Contents("begun.err");
  EXPECT_EQ(told.find(warning), told.rfind(warning)) << told;
  EXPECT_EQ(Tell("--resume j"), Alone());
}

// Wherever a search is killed, it goes on, and what it had finished is not done again: 20 kills a
// search.
TEST(Resume, SurvivesKills) {
  std::mt19937 random(20);
  for (int round = 0; round < CasesToWalk(5); ++round) {
    Clear();
    for (int i = 0; i < 20; ++i) {
      const std::string part = absl::StrCat(i % 3 + 1);
      const pid_t search = Begin(
          absl::StrCat(kProgram, kQuestion, "--threads 2 --part ", part, "/3 --resume p", part));
      if (i % 2 == 0) AwaitLines("p" + part, search, 2 + i);
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 40'000));
      kill(search, SIGKILL);
      End(search);
    }
    for (int i = 1; i <= 3; ++i) {
      const std::string name = absl::StrCat("p", i);
      const std::string before =
          std::filesystem::exists(absl::StrCat(Folder(), "/", name)) ? Contents(name) : "";
      const Finished part =
          Execute(absl::StrCat("grid_search ", kQuestion, "--part ", i, "/3 --resume ", name));
      EXPECT_EQ(part.code, 0) << part.err;
      const std::string whole = before.substr(0, before.rfind('\n') + 1);
      EXPECT_EQ(Contents(name).substr(0, whole.size()), whole);
    }
    EXPECT_EQ(Tell("--merge p1 p2 p3"), Alone());
  }
}

// A larger search, which is not over before somebody can stop it: as large as that takes.
const std::string kLong = absl::StrCat(
    "--model gpt:layers=", CasesToWalk(24) < 24 ? 8 : 24,
    ",hidden=64,heads=4,seq=64,vocab=512 --batch-size 256 --cluster uniform:64@200Gbps --hp 1 "
    "--threads 1 ");

TEST(Interrupt, TellsTheBestSoFar) {
  for (const int signal : {SIGINT, SIGTERM}) {
    Clear();
    const pid_t search = Begin(kProgram + kLong + "--resume j --csv o.csv --json o.json");
    AwaitLines("j", search, 3);
    kill(search, signal);
    EXPECT_EQ(End(search), 128 + signal);
    EXPECT_THAT(Contents("begun.out"), HasSubstr("\nbest so far: --dp "));
    EXPECT_THAT(
        Contents("begun.err"),
        testing::ContainsRegex(
            "grid_search: stopped after [0-9]+ of [0-9]+ candidates; --resume j goes on\n"));
    EXPECT_THAT(Left(), testing::UnorderedElementsAre("begun.err", "begun.out", "j"));
    EXPECT_EQ(Contents("j").back(), '\n');
  }
}

// Nobody else writes to it meanwhile.
TEST(Resume, AJournalIsOfOneSearchAtATime) {
  Clear();
  const pid_t search = Begin(kProgram + kLong + "--resume j");
  AwaitLines("j", search, 2);
  const Finished other = Execute("grid_search " + kLong + "--resume j");
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.err, HasSubstr("j: another search writes this journal"));
  kill(search, SIGKILL);
  End(search);
}

TEST(Progress, TellsRateAndBest) {
  Clear();
  const Finished finished = Execute("grid_search --progress " + kQuestion);
  EXPECT_THAT(finished.err,
              testing::ContainsRegex("[0-9]+/[0-9]+ candidates \\(100%\\), [0-9.]+/s, best "));
  EXPECT_EQ(finished.err.back(), '\n');
  EXPECT_EQ(finished.out, Alone().out);
}

#ifdef ORRERY_MPIRUN
// What Open MPI leaks, by modules that it has unloaded, is not ours to find.
const std::string kMpirun =
    "env ASAN_OPTIONS=detect_leaks=0 " ORRERY_MPIRUN " --allow-run-as-root --oversubscribe -n ";

std::vector<std::string> Children(pid_t parent) {
  std::ifstream in(absl::StrCat("/proc/", parent, "/task/", parent, "/children"));
  std::string text((std::istreambuf_iterator<char>(in)), {});
  return absl::StrSplit(text, ' ', absl::SkipEmpty());
}

TEST(Mpi, IsTheSameOnAnyNumberOfRanks) {
  for (const int ranks : {1, 2, 4}) {
    Clear();
    const pid_t search = Begin(absl::StrCat(kMpirun, ranks, " ", kProgram, kQuestion,
                                            "--threads 1 --csv o.csv --json o.json --resume j"));
    EXPECT_EQ(End(search), 0) << Contents("begun.err");
    EXPECT_EQ((Told{Contents("begun.out"), Contents("o.csv"), Contents("o.json")}), Alone());
    EXPECT_EQ(Tell("--resume j"), Alone());
  }
}

TEST(Mpi, SurvivesAKilledRank) {
  Clear();
  int64_t lines = 0;
  for (const int victim : {1, 0, 2}) {
    const pid_t search = Begin(absl::StrCat(kMpirun, "3 ", kProgram, kLong, "--resume j"));
    AwaitLines("j", search, lines + 4);
    const std::vector<std::string> ranks = Children(search);
    EXPECT_EQ(ranks.size(), 3u) << "over before it could be killed";
    if (ranks.size() == 3) kill(std::stoi(ranks[static_cast<size_t>(victim)]), SIGKILL);
    EXPECT_NE(End(search), 0);
    const std::string journal = Contents("j");
    lines = std::ranges::count(journal, '\n');
  }
  const Told told = Tell("--resume j");
  EXPECT_EQ(told, Tell(kLong));
}

TEST(Mpi, TellsAnErrorOnce) {
  Clear();
  const pid_t search = Begin(kMpirun + "2 " + kProgram + kQuestion + "--resume /dev/null");
  EXPECT_NE(End(search), 0);
  const std::string error = "/dev/null: is no regular file", told = Contents("begun.err");
  EXPECT_THAT(told, HasSubstr(error));
  EXPECT_EQ(told.find(error), told.rfind(error)) << told;
}
#endif

}  // namespace
}  // namespace resume_test_cc
}  // namespace orrery::cli
