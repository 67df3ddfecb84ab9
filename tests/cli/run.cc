#include "tests/cli/run.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "support/check.h"
#include "support/file.h"
#include "support/paths_test_util.h"
#include "support/sanitized_test_util.h"

namespace orrery::cli {
namespace run_cc {
namespace {

const std::string kBin = BinDir() + "/";

// In seconds; less than ctest's own.
#ifdef ORRERY_OTHER_HEAP
constexpr int kLimit = 240;
#else
constexpr int kLimit = 60;
#endif

std::set<std::string>& Written() {
  static auto& written = *new std::set<std::string>;
  return written;
}

std::string Slurp(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  ORRERY_CHECK(text.ok()) << text.status().ToString();
  return *text;
}

}  // namespace
}  // namespace run_cc

const std::string& Folder() {
  // Of this process, and gone with it: ctest runs many at a time.
  struct Temporary {
    std::string path =
        (std::filesystem::temp_directory_path() / absl::StrCat("orrery_cli_", getpid())).string();
    Temporary() { std::filesystem::create_directories(path); }
    ~Temporary() { std::filesystem::remove_all(path); }
  };
  static const Temporary folder;
  return folder.path;
}

Finished Execute(const std::string& command) {
  const std::string streams = absl::StrCat(Folder(), ".streams");
  std::filesystem::create_directories(streams);
  const std::string line = absl::StrCat(
      "cd ", Folder(), " && MODELS=", SourceDir(), "/examples/models; timeout ", run_cc::kLimit,
      " ", run_cc::kBin, command, " >", streams, "/out 2>", streams, "/err");
  const int status = std::system(line.c_str());
  Finished finished{
      .code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
      .out = run_cc::Slurp(streams + "/out"),
      .err = absl::StrReplaceAll(run_cc::Slurp(streams + "/err"), {{run_cc::kBin, ""}})};
  std::filesystem::remove_all(streams);
  return finished;
}

std::string Contents(const std::string& name) {
  return run_cc::Slurp(absl::StrCat(Folder(), "/", name));
}

void Write(const std::string& name, const std::string& contents) {
  ORRERY_CHECK(WriteFile(absl::StrCat(Folder(), "/", name), contents).ok()) << name;
  run_cc::Written().insert(name);
}

std::vector<std::string> Left() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(Folder())) {
    const std::string name = std::filesystem::relative(entry.path(), Folder()).string();
    if (!run_cc::Written().contains(name)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

void Clear() {
  std::filesystem::remove_all(Folder());
  std::filesystem::create_directories(Folder());
  run_cc::Written().clear();
}

}  // namespace orrery::cli
