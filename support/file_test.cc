#include "support/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace orrery {
namespace file_test_cc {
namespace {

namespace fs = std::filesystem;

class FileTest : public testing::Test {
 protected:
  FileTest() {
    folder_ = absl::StrCat(testing::TempDir(), "/orrery_file_test.", getpid());
    fs::create_directories(folder_);
  }
  ~FileTest() override { fs::remove_all(folder_); }

  std::string At(const std::string& name) const { return absl::StrCat(folder_, "/", name); }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }

  std::string folder_;
};

TEST_F(FileTest, ReadsWhatItWrote) {
  const std::string contents("line\r\n\0\xff, without an end", 22);
  ASSERT_TRUE(WriteFile(At("a"), contents).ok());
  EXPECT_EQ(*ReadFile(At("a")), contents);
  ASSERT_TRUE(WriteFile(At("a"), "").ok());
  EXPECT_EQ(*ReadFile(At("a")), "");
  EXPECT_THAT(Names(), testing::ElementsAre("a"));
}

TEST_F(FileTest, MakesTheFolder) {
  ASSERT_TRUE(WriteFile(At("new/deep/a"), "x").ok());
  EXPECT_EQ(*ReadFile(At("new/deep/a")), "x");
}

TEST_F(FileTest, ReadNamesTheFile) {
  EXPECT_EQ(ReadFile(At("none")).status(),
            absl::NotFoundError(absl::StrCat(At("none"), ": no such file")));
  EXPECT_EQ(ReadFile(folder_).status(),
            absl::InvalidArgumentError(absl::StrCat(folder_, ": is a folder; wanted a file")));
}

// What never ends is read up to a limit, and so is a file that is larger than it may be.
TEST_F(FileTest, ReadsSoMuchAndNoMore) {
  const ReadLimits limits = {.file = 200'000, .stream = 1000};
  for (const size_t size : {size_t{0}, size_t{65'536}, size_t{200'000}}) {
    const std::string contents(size, 'x');
    ASSERT_TRUE(WriteFile(At("a"), contents).ok());
    EXPECT_EQ(*ReadFile(At("a"), limits), contents);
  }
  ASSERT_TRUE(WriteFile(At("a"), std::string(200'001, 'x')).ok());
  EXPECT_EQ(ReadFile(At("a"), limits).status(),
            absl::InvalidArgumentError(
                absl::StrCat(At("a"), ": is too large; at most 200000 bytes are read of a file")));
  EXPECT_EQ(ReadFile("/dev/zero", limits).status(),
            absl::InvalidArgumentError("/dev/zero: does not end; at most 1000 bytes are read of "
                                       "what is no regular file"));
  EXPECT_EQ(*ReadFile("/dev/null", limits), "");
}

TEST_F(FileTest, DoesNotReplaceAFolder) {
  fs::create_directory(At("folder"));
  EXPECT_EQ(WriteFile(At("folder"), "x"),
            absl::InvalidArgumentError(absl::StrCat(At("folder"), ": is a folder; wanted a file")));
  EXPECT_TRUE(fs::is_directory(At("folder")));
  EXPECT_THAT(Names(), testing::ElementsAre("folder"));
}

TEST_F(FileTest, LeavesNothingWhereItCannotWrite) {
  ASSERT_TRUE(WriteFile(At("a"), "x").ok());
  EXPECT_EQ(WriteFile(At("a/b"), "y"),
            absl::UnavailableError(absl::StrCat(
                At("a/b"), ": cannot be written: no space, no permission, or no such folder")));
  EXPECT_EQ(*ReadFile(At("a")), "x");
  EXPECT_THAT(Names(), testing::ElementsAre("a"));
}

TEST_F(FileTest, LeavesTheOldContentsWhereItMayNotWrite) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write anywhere";
  ASSERT_TRUE(WriteFile(At("locked/a"), "old").ok());
  fs::permissions(At("locked"), fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_EQ(WriteFile(At("locked/a"), "new").code(), absl::StatusCode::kUnavailable);
  fs::permissions(At("locked"), fs::perms::owner_all);
  EXPECT_EQ(*ReadFile(At("locked/a")), "old");
}

TEST_F(FileTest, ReplacesAtOnce) {
  ASSERT_TRUE(WriteFile(At("a"), "old").ok());
  const int reader = open(At("a").c_str(), O_RDONLY);
  ASSERT_TRUE(WriteFile(At("a"), "new").ok());
  char byte[4] = {};
  EXPECT_EQ(read(reader, byte, 3), 3);
  EXPECT_STREQ(byte, "old");  // who had it open still reads the old file, whole
  close(reader);
}

TEST_F(FileTest, WritesIntoDevices) {
  EXPECT_TRUE(WriteFile("/dev/null", "x").ok());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  if (fs::exists("/dev/full")) {
    EXPECT_EQ(WriteFile("/dev/full", "x"),
              absl::UnavailableError("/dev/full: cannot be written: the stream failed"));
  }
}

// What went wrong is told, and not what was asked for afterwards.
TEST_F(FileTest, SaysWhyTheRestCouldNotBeWritten) {
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit little = {.rlim_cur = 10, .rlim_max = before.rlim_max};
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
  const absl::Status status = WriteFile(At("new"), std::string(100, 'x'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  EXPECT_THAT(status.message(), testing::HasSubstr("File too large"));
  EXPECT_FALSE(fs::exists(At("new")));
}

// Several tables of one search grow at once.
TEST_F(FileTest, SeveralThatAreHalfWrittenAreRemoved) {
  auto a = FileWriter::Open(At("a")), b = FileWriter::Open(At("b"));
  ASSERT_TRUE(a.ok() && b.ok());
  ASSERT_TRUE((*a)->Write("x").ok() && (*b)->Write("y").ok());
  ASSERT_TRUE((*a)->Finish().ok());
  auto c = FileWriter::Open(At("c"));
  ASSERT_TRUE(c.ok());
  EXPECT_EQ(std::distance(fs::directory_iterator(At("")), fs::directory_iterator()), 3);
  RemoveHalfWritten();
  EXPECT_EQ(ReadFile(At("a")).value(), "x");
  EXPECT_EQ(std::distance(fs::directory_iterator(At("")), fs::directory_iterator()), 1);
}

TEST_F(FileTest, PassesOverPipesNamedAsItsNeighbours) {
  ASSERT_EQ(mkfifo(At("a.1.partial").c_str(), 0600), 0);
  EXPECT_TRUE(WriteFile(At("a"), "x").ok());
  EXPECT_TRUE(fs::exists(At("a.1.partial")));
}

TEST_F(FileTest, KeepsTheModeOfWhatItReplaces) {
  ASSERT_TRUE(WriteFile(At("a"), "old").ok());
  fs::permissions(At("a"), fs::perms(0640));
  ASSERT_TRUE(WriteFile(At("a"), "new").ok());
  EXPECT_EQ(fs::status(At("a")).permissions(), fs::perms(0640));
  ASSERT_TRUE(WriteFile(At("b"), "new").ok());
  const mode_t mask = umask(0);
  umask(mask);
  EXPECT_EQ(fs::status(At("b")).permissions(), fs::perms(0666 & ~mask));
}

TEST_F(FileTest, WritesWhatLinksLeadTo) {
  fs::create_directory(At("folder"));
  fs::create_symlink("folder/a", At("relative"));
  fs::create_symlink(At("relative"), At("absolute"));
  ASSERT_TRUE(WriteFile(At("absolute"), "new").ok()) << "before there is a file";
  EXPECT_EQ(*ReadFile(At("folder/a")), "new");
  ASSERT_TRUE(WriteFile(At("relative"), "newer").ok());
  EXPECT_EQ(*ReadFile(At("folder/a")), "newer");
  EXPECT_TRUE(fs::is_symlink(At("relative")));
  EXPECT_TRUE(fs::is_symlink(At("absolute")));
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(At("folder/a"))));
}

TEST_F(FileTest, RemovesWhatAKilledProcessLeft) {
  const pid_t child = fork();
  if (child == 0) {
    const int left = open(At("a.77.partial").c_str(), O_WRONLY | O_CREAT, 0600);
    _exit(left < 0 ? 1 : 0);
  }
  waitpid(child, nullptr, 0);
  for (const char* other : {"a.b.partial", "b.77.partial", "a..partial", "a.78.partial"}) {
    close(open(At(other).c_str(), O_WRONLY | O_CREAT, 0600));
  }
  const int writing = open(At("a.78.partial").c_str(), O_WRONLY);
  flock(writing, LOCK_EX);  // as a process that writes it has
  ASSERT_TRUE(WriteFile(At("a"), "x").ok());
  EXPECT_THAT(Names(), testing::UnorderedElementsAre("a", "a.b.partial", "b.77.partial",
                                                     "a..partial", "a.78.partial"));
  close(writing);
  ASSERT_TRUE(WriteFile(At("a"), "x").ok());
  EXPECT_THAT(Names(),
              testing::UnorderedElementsAre("a", "a.b.partial", "b.77.partial", "a..partial"));
}

TEST_F(FileTest, TakesNamesAsLongAsThereAre) {
  ASSERT_TRUE(WriteFile(At(std::string(255, 'x')), "long").ok());
  EXPECT_EQ(*ReadFile(At(std::string(255, 'x'))), "long");
  EXPECT_FALSE(WriteFile(At(std::string(256, 'x')), "longer").ok());
  EXPECT_FALSE(CheckWritable(At(std::string(256, 'x'))).ok());
  EXPECT_THAT(Names(), testing::ElementsAre(std::string(255, 'x')));
}

TEST_F(FileTest, TellsBeforehandWhatCannotBeWritten) {
  ASSERT_TRUE(WriteFile(At("a"), "x").ok());
  for (const char* good : {"a", "b", "new/deep/b"}) EXPECT_TRUE(CheckWritable(At(good)).ok());
  EXPECT_TRUE(CheckWritable("/dev/null").ok());
  for (const std::string& bad : {At("a/b"), At("a/b/c"), folder_, At("new/"), std::string()}) {
    EXPECT_FALSE(CheckWritable(bad).ok()) << bad;
  }
  EXPECT_THAT(std::string(CheckWritable("/proc/report.json").message()),
              testing::StartsWith("/proc/report.json: cannot be written: "));
  EXPECT_THAT(Names(), testing::ElementsAre("a"));
}

TEST_F(FileTest, KnowsOneFileByAllItsNames) {
  ASSERT_TRUE(WriteFile(At("a"), "x").ok());
  ASSERT_TRUE(WriteFile(At("b"), "x").ok());
  fs::create_symlink("a", At("link"));
  fs::create_hard_link(At("a"), At("hard"));
  fs::create_symlink("none", At("dangling"));
  for (const char* name : {"a", "./a", "link", "hard"}) {
    EXPECT_TRUE(AreOneFile(At("a"), At(name))) << name;
    EXPECT_FALSE(AreOneFile(At("b"), At(name))) << name;
    EXPECT_FALSE(AreOneFile(At("none"), At(name))) << name;
  }
  for (const char* name : {"none", "./none", "c/../none", "dangling"}) {
    EXPECT_TRUE(AreOneFile(At("none"), At(name))) << name;
    EXPECT_FALSE(AreOneFile(At("other"), At(name))) << name;
  }
}

// What stands at `path` now, "" when it is no link.
std::string Link(const std::string& path) {
  std::error_code error;
  return fs::read_symlink(path, error).string();
}

// Regression: with its output sent to a file, /dev/stdout is a regular file, and root renamed a new
// file over the link.
TEST_F(FileTest, WritesAfterWhatStandsInTheStandardOutput) {
  const std::string link = Link("/dev/stdout");
  if (link.empty()) GTEST_SKIP() << "no /dev/stdout here";
  fflush(stdout);
  const int before = dup(STDOUT_FILENO);
  const int file = open(At("out").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  dup2(file, STDOUT_FILENO);
  EXPECT_EQ(write(STDOUT_FILENO, "before ", 7), 7);
  const absl::Status status = WriteFile("/dev/stdout", "report");
  EXPECT_EQ(write(STDOUT_FILENO, " after", 6), 6);
  dup2(before, STDOUT_FILENO);
  close(before);
  close(file);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(*ReadFile(At("out")), "before report after");
  EXPECT_EQ(Link("/dev/stdout"), link);
}

}  // namespace
}  // namespace file_test_cc
}  // namespace orrery
