#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/file.h"
#include "support/paths_test_util.h"
#include "tests/cli/run.h"

// What a program brings along decides how long it takes to start (bench/start_time): it loads
// libraries that are part of any system, and its readers of files when a file asks for them.

namespace orrery::cli {
namespace start_test_cc {
namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kPrograms[] = {"collective",   "goodput",  "grid_search", "opt",
                                     "redistribute", "schedule", "simulate",    "validate"};
constexpr const char* kModules[] = {"onnx", "cluster_file"};

std::string PathOf(const std::string& module) {
  return absl::StrCat(BinDir(), "/../lib/orrery/liborrery_", module, ".so");
}

// The last word of each line that `command` prints, without the version of a symbol.
std::set<std::string> LastWords(const std::string& command) {
  const Finished finished = Execute(absl::StrCat("schedule --list > /dev/null; ", command));
  EXPECT_EQ(finished.code, 0) << finished.err;
  std::set<std::string> words;
  std::istringstream lines(finished.out);
  for (std::string line; std::getline(lines, line);) {
    const std::string word = line.substr(line.rfind(' ') + 1);
    words.insert(word.substr(0, word.find('@')));
  }
  return words;
}

std::set<std::string> LibrariesOf(const std::string& path) {
  return LastWords(absl::StrCat("readelf -dW ", path, " | grep NEEDED"));
}

// Orrery's own symbols, and Abseil's.
std::set<std::string> SymbolsOf(const std::string& path, const std::string& which) {
  std::set<std::string> symbols =
      LastWords(absl::StrCat("nm --dynamic ", which, " ", path, " | grep ' [^wv] '"));
  std::erase_if(symbols, [](const std::string& symbol) {
    return !absl::StrContains(symbol, "orrery") && !absl::StrContains(symbol, "absl");
  });
  return symbols;
}

TEST(Start, ProgramsLoadNoLargeLibrary) {
  for (const char* program : kPrograms) {
    SCOPED_TRACE(program);
    EXPECT_THAT(LibrariesOf(absl::StrCat(BinDir(), "/", program)),
                Each(Not(AnyOf(HasSubstr("protobuf"), HasSubstr("onnx"), HasSubstr("absl"),
                               HasSubstr("boost"), HasSubstr("re2")))));
  }
}

TEST(Start, ModulesDo) {
  for (const char* module : kModules) {
    EXPECT_THAT(LibrariesOf(PathOf(module)), testing::Contains(HasSubstr("protobuf")));
  }
}

// Options of another layout were read as garbage.
TEST(Start, AModuleOfAnotherBuildIsNotLoaded) {
  Clear();
  const auto run = [](const std::string& stamp_ends_with) {
    const std::string program = absl::StrCat(BinDir(), "/simulate");
    std::string module = ReadFile(PathOf("onnx")).value();
    const size_t stamp = module.find("orrery build ");
    EXPECT_NE(stamp, std::string::npos);
    module.replace(stamp + 13 + 32 - stamp_ends_with.size(), stamp_ends_with.size(),
                   stamp_ends_with);
    Write("liborrery_onnx.so", module);
    const Finished finished = Execute(absl::StrCat(
        "schedule --list > /dev/null; cp ", program, " . && ./simulate --model ",
        "$MODELS/mlp_64x512.onnx --batch-size 64 --cluster uniform:4@200Gbps --memory-limit none"));
    return absl::StrCat(finished.code, " ", finished.err);
  };
  EXPECT_EQ(run(""), "0 ");
  EXPECT_THAT(run("~"), testing::AllOf(testing::StartsWith("1 ./simulate: "),
                                       HasSubstr("liborrery_onnx.so: it is of another build; "
                                                 "wanted the one that was built or installed "
                                                 "with this program\n")));
}

// A module has no copy of what it shares with programs, so each program has to have all of it.
TEST(Start, ProgramsHaveWhatModulesLeaveOpen) {
  for (const char* program : kPrograms) {
    const std::set<std::string> defined =
        SymbolsOf(absl::StrCat(BinDir(), "/", program), "--defined-only");
    for (const char* module : kModules) {
      std::set<std::string> open = SymbolsOf(PathOf(module), "--undefined-only");
      EXPECT_THAT(open, Not(IsEmpty()));
      std::erase_if(open, [&](const std::string& symbol) { return defined.contains(symbol); });
      EXPECT_THAT(open, IsEmpty()) << program << ", " << module;
    }
  }
}

class LonelyProgram : public testing::Test {
 protected:
  LonelyProgram() {
    Clear();
    fs::create_directories(Folder() + "/bin");
    fs::copy_file(BinDir() + "/simulate", Folder() + "/bin/simulate");
  }
  static Finished Run(const std::string& flags) {
    return Execute(
        absl::StrCat("schedule --list > /dev/null; ", Folder(), "/bin/simulate ", flags));
  }
};

TEST_F(LonelyProgram, NeedsNoModuleForWhatIsBuiltIn) {
  EXPECT_EQ(Run("--model mlp:layers=2,dim=64 --batch-size 8 --cluster uniform:2@200Gbps").code, 0);
}

TEST_F(LonelyProgram, SaysWhichModuleIsMissing) {
  const Finished onnx =
      Run("--model $MODELS/mlp_64x512.onnx --batch-size 64 --cluster uniform:2@200Gbps");
  EXPECT_EQ(onnx.code, 1);
  EXPECT_THAT(onnx.err,
              HasSubstr(absl::StrCat("mlp_64x512.onnx: found no liborrery_onnx.so in ", Folder(),
                                     "/bin or ", Folder(),
                                     "/lib/orrery; wanted the one that was built or installed "
                                     "with this program\n")));
  Write("a.textproto", "");
  const Finished cluster = Run("--model mlp --batch-size 8 --cluster a.textproto");
  EXPECT_EQ(cluster.code, 1);
  EXPECT_THAT(cluster.err, HasSubstr("a.textproto: found no liborrery_cluster_file.so in "));
}

TEST_F(LonelyProgram, TakesModulesThatStandBesideIt) {
  fs::copy_file(PathOf("onnx"), Folder() + "/bin/liborrery_onnx.so");
  EXPECT_EQ(Run("--model $MODELS/mlp_64x512.onnx --batch-size 64 --cluster uniform:2@200Gbps").code,
            0);
}

}  // namespace
}  // namespace start_test_cc
}  // namespace orrery::cli
