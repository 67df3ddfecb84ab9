#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "support/file.h"
#include "support/sanitized_test_util.h"
#include "tests/cli/run.h"

// What documents show is what the programs print.

namespace orrery::cli {
namespace documents_test_cc {
namespace {

std::string Source(const std::string& name) {
  return ReadFile(absl::StrCat(ORRERY_SOURCE_DIR "/", name)).value();
}

// The part of `text` from `begin` up to `end`; empty when it is not there.
std::string Between(const std::string& text, const std::string& begin, const std::string& end) {
  const size_t from = text.find(begin);
  if (from == std::string::npos) return "";
  return text.substr(from, text.find(end, from) - from);
}

// The lines that `command`, as a document gives it from the root of the repository, prints: but the
// first, which names the file, and the one that tells how long the simulation took.
std::vector<std::string> Printed(const std::string& command) {
  Clear();
  const Finished finished = Execute(absl::StrReplaceAll(
      command, {{"build/bin/", ""}, {"examples/models", "$MODELS"}, {"\\\n", " "}}));
  EXPECT_EQ(finished.code, 0) << finished.err;
  const std::string out = absl::StrReplaceAll(
      finished.out, {{ORRERY_BIN_DIR "/", "build/bin/"}, {ORRERY_SOURCE_DIR "/", ""}});
  std::vector<std::string> lines = absl::StrSplit(out, '\n', absl::SkipEmpty());
  EXPECT_GT(lines.size(), 3u);
  if (!lines.empty()) lines.erase(lines.begin());
  std::erase_if(lines, [](const std::string& line) {
    return line.find(" rank classes in ") != std::string::npos;
  });
  return lines;
}

TEST(Readme, ShowsWhatScriptsRunPrints) {
#ifdef ORRERY_OTHER_HEAP
  GTEST_SKIP() << "a whole search takes minutes under sanitizers; the release build runs this";
#endif
  const std::string command =
      Between(Source("scripts/run"), "build/bin/grid_search --model", "\necho");
  ASSERT_NE(command, "");
  const std::string shown =
      Between(Source("README.md"), "`scripts/run` ends with this", "Each row is");
  for (const std::string& line : Printed(command)) EXPECT_THAT(shown, testing::HasSubstr(line));
}

TEST(Readme, ShowsWhatSimulatePrints) {
  // Behind what a search prints, which ends with such a command, too.
  const std::string whole = Source("README.md");
  const std::string readme = whole.substr(whole.find("train so:"));
  const std::string command = Between(readme, "build/bin/simulate --model", "\n");
  ASSERT_NE(command, "");
  const std::string shown = Between(readme, command, "```");
  for (const std::string& line : Printed(command)) EXPECT_THAT(shown, testing::HasSubstr(line));
}

// How many lines that `command` prints begin with one of these; the page has all of them.
int ShownOf(const std::string& page, const std::string& command,
            const std::vector<std::string>& beginnings) {
  int shown = 0;
  for (const std::string& line : Printed(command)) {
    const bool wanted = std::ranges::any_of(
        beginnings, [&](const std::string& beginning) { return line.starts_with(beginning); });
    if (!wanted) continue;
    EXPECT_THAT(page, testing::HasSubstr(line));
    ++shown;
  }
  return shown;
}

TEST(MemoryPage, ShowsWhatSimulatePrints) {
  const std::string page = Source("docs/memory.md");
  const std::string fits = Between(page, "build/bin/simulate --model gpt3-175b", " --json");
  const std::string misfit = Between(page, "build/bin/simulate --model gpt3-1.3b", "\n\n");
  ASSERT_TRUE(!fits.empty() && !misfit.empty());
  EXPECT_EQ(ShownOf(page, fits, {"  peak memory", "    reached"}), 2);
  EXPECT_EQ(ShownOf(page, misfit, {"needs", "would fit"}), 2);
}

TEST(CommandLinePage, ShowsWhatSchedulePrints) {
  const std::string page = Source("docs/command_line.md");
  const std::string command = Between(page, "build/bin/schedule --name", "\n");
  ASSERT_NE(command, "");
  for (const std::string& line : Printed(command)) EXPECT_THAT(page, testing::HasSubstr(line));
}

}  // namespace
}  // namespace documents_test_cc
}  // namespace orrery::cli
