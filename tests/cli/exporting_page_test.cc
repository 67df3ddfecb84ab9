#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "support/file.h"
#include "support/paths_test_util.h"
#include "tests/cli/run.h"

// docs/exporting.md: its snippets export with PyTorch, its commands read what they leave and print
// what the page shows, and the refusals that it explains are those of the sources.

namespace orrery::cli {
namespace exporting_page_test_cc {
namespace {

constexpr const char* kRest = "…";

// A fenced block of the page.
struct Block {
  std::string language, text;
};
// What stands under a heading.
struct Section {
  std::string name;  // letters and digits alone
  std::vector<Block> blocks;
};

std::string Page() { return ReadFile(SourceDir() + "/docs/exporting.md").value(); }

std::string NameOf(absl::string_view heading) {
  std::string name;
  for (const char c : heading) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) name.push_back(c);
  }
  return name;
}

std::vector<Section> Sections() {
  std::vector<Section> sections;
  bool inside = false;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(Page(), '\n'))) {
    if (absl::StartsWith(line, "```")) {
      inside = !inside;
      if (inside) sections.back().blocks.push_back({.language = line.substr(3), .text = ""});
    } else if (inside) {
      absl::StrAppend(&sections.back().blocks.back().text, line, "\n");
    } else if (absl::StartsWith(line, "## ")) {
      sections.push_back({.name = NameOf(line), .blocks = {}});
    }
  }
  std::erase_if(sections, [](const Section& section) { return section.blocks.empty(); });
  return sections;
}

// The code of the model, which stands once.
std::string ModelCode() {
  for (const Section& section : Sections()) {
    for (const Block& block : section.blocks) {
      if (absl::StartsWith(block.text, "# model.py\n")) return block.text;
    }
  }
  return "";
}

// Runs Python in the folder of the test; what it printed where it failed.
std::string FailureOfPython(const std::string& code) {
  Write("snippet.py", code);
  const std::string line = absl::StrCat("cd ", Folder(), " && PATH=/usr/bin:$PATH timeout 300 ",
                                        "python3 snippet.py >python.txt 2>&1");
  return std::system(line.c_str()) == 0 ? "" : absl::StrCat(Contents("python.txt"), "failed");
}

bool HasModule(absl::string_view name) {
  return FailureOfPython(absl::StrCat("import ", name, "\n")).empty();
}

// Whether `line` is `shown`, whose ellipses stand for anything.
bool IsShown(absl::string_view line, absl::string_view shown) {
  bool first = true;
  for (const absl::string_view part : absl::StrSplit(shown, kRest)) {
    const size_t at = line.find(part);
    if (at == absl::string_view::npos || (first && at != 0)) return false;
    line.remove_prefix(at + part.size());
    first = false;
  }
  return line.empty() || absl::EndsWith(shown, kRest);
}

void ExpectShown(const Finished& finished, const std::string& text) {
  const std::vector<std::string> printed =
      absl::StrSplit(absl::StrCat(finished.out, finished.err), '\n');
  for (const absl::string_view shown : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const bool any =
        std::ranges::any_of(printed, [&](const std::string& line) { return IsShown(line, shown); });
    EXPECT_TRUE(any) << "the page shows\n"
                     << shown << "\nand this is printed\n"
                     << finished.out << finished.err;
  }
}

class ExportingPage : public testing::TestWithParam<Section> {};

TEST_P(ExportingPage, DoesWhatItShows) {
  Clear();
  if (!HasModule("torch, onnx")) {
    GTEST_SKIP() << "PyTorch is not installed: python3-torch and python3-onnx of Debian";
  }
  Write("model.py", ModelCode());
  Finished finished;
  for (const Block& block : GetParam().blocks) {
    if (block.language == "python") {
      constexpr absl::string_view kNeeds = "# needs ";
      const std::string first = block.text.substr(0, block.text.find('\n'));
      if (absl::StartsWith(first, kNeeds) && !HasModule(first.substr(kNeeds.size()))) {
        GTEST_SKIP() << "not installed: " << first.substr(kNeeds.size());
      }
      ASSERT_EQ(FailureOfPython(block.text), "") << block.text;
    } else if (block.language == "sh") {
      finished = Execute(absl::StrReplaceAll(block.text, {{"build/bin/", ""}, {"\n", ""}}));
    } else {
      ASSERT_EQ(block.language, "text");
      ExpectShown(finished, block.text);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sections, ExportingPage, testing::ValuesIn(Sections()),
                         [](const auto& param_info) { return param_info.param.name; });

// The sources, with the literals that stand one after the other put together.
std::string Sources() {
  std::string text;
  for (const char* folder : {"importer", "ir", "transforms", "tools"}) {
    const std::string root = absl::StrCat(SourceDir() + "/", folder);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
      const std::string path = entry.path().string();
      if (!absl::EndsWith(path, ".cc") || absl::EndsWith(path, "_test.cc")) continue;
      absl::StrAppend(&text, ReadFile(path).value(), "\n");
    }
  }
  std::string joined;
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t next = text[i] == '"' ? text.find_first_not_of(" \n", i + 1) : std::string::npos;
    const bool joins = next != std::string::npos && next > i + 1 && text[next] == '"';
    if (joins) i = next;
    if (!joins) joined.push_back(text[i]);
  }
  return joined;
}

TEST(ExportingPage, ExplainsRefusalsThatThereAre) {
  const std::string sources = Sources(), page = Page();
  const std::string table = page.substr(page.find("| it says | do |"));
  int refusals = 0;
  for (const absl::string_view line : absl::StrSplit(table, '\n')) {
    const std::vector<absl::string_view> cells = absl::StrSplit(line, " | ");
    if (cells.size() != 2 || !absl::StrContains(cells[0], '`')) continue;
    ++refusals;
    const std::vector<absl::string_view> quoted = absl::StrSplit(cells[0], '`');
    for (size_t i = 1; i < quoted.size(); i += 2) {
      for (const absl::string_view part : absl::StrSplit(quoted[i], kRest)) {
        if (part.size() < 3) continue;
        EXPECT_NE(sources.find(std::string(part)), std::string::npos)
            << line << "\nquotes " << part;
      }
    }
  }
  EXPECT_GT(refusals, 10);
}

}  // namespace
}  // namespace exporting_page_test_cc
}  // namespace orrery::cli
