#include <fnmatch.h>
#include <gtest/gtest.h>
#include <onnx/defs/schema.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "support/file.h"
#include "support/paths_test_util.h"
#include "tests/backend/onnx_case.h"

// The ONNX project's backend tests (Debian package libonnx-testdata): each model is imported and
// executed, and must give the outputs that come with it. ORRERY_BACKEND_FILTER="node/test_soft*"
// runs those alone, and tells of each.

namespace orrery::backend {
namespace backend_test_cc {
namespace {

constexpr char kData[] = "/usr/share/libonnx-testdata/data";

struct Exclusion {
  std::string pattern, reason;
  bool used = false;
};

std::vector<Exclusion> ReadExclusions() {
  const std::string path = SourceDir() + "/tests/backend/exclusions.txt";
  std::vector<Exclusion> exclusions;
  const std::string text = ReadFile(path).value();
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipWhitespace())) {
    if (line[0] == '#') continue;
    const std::pair<std::string, std::string> parts = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    exclusions.push_back(
        {.pattern = parts.first, .reason = std::string(absl::StripAsciiWhitespace(parts.second))});
  }
  return exclusions;
}

bool Matches(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

const char* Filter() { return std::getenv("ORRERY_BACKEND_FILTER"); }

// "node/test_abs" …, sorted.
std::vector<std::string> Cases(const std::string& kind) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(absl::StrCat(kData, "/", kind))) {
    const std::string name = absl::StrCat(kind, "/", entry.path().filename().string());
    if (!std::filesystem::exists(entry.path() / "model.onnx")) continue;
    if (Filter() == nullptr || Matches(Filter(), name)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

struct Tally {
  int passed = 0, supported = 0, other = 0;
  int known[3] = {};
};

// Whether the case is excluded; a pattern is marked as used.
bool IsExcluded(std::vector<Exclusion>& exclusions, const std::string& name) {
  bool excluded = false;
  for (Exclusion& exclusion : exclusions) {
    if (!Matches(exclusion.pattern, name)) continue;
    exclusion.used = excluded = true;
  }
  return excluded;
}

void CheckOne(const std::string& name, std::vector<Exclusion>& exclusions, Tally& tally) {
  const CaseResult result = RunCaseApart(absl::StrCat(kData, "/", name));
  const bool excluded = IsExcluded(exclusions, name);
  const bool passed = result.verdict == Verdict::kPassed;
  if (Filter() != nullptr && passed) {
    std::cout << name << ": passed, known " << result.known << "\n";
  }
  if (result.verdict == Verdict::kOtherKind) {
    EXPECT_FALSE(excluded) << name << " is of another kind and needs no exclusion";
    ++tally.other;
    return;
  }
  ++tally.supported;
  tally.passed += passed;
  tally.known[result.known % 3] += passed;
  if (excluded) {
    EXPECT_FALSE(passed) << name << " passes: take it out of exclusions.txt";
    EXPECT_EQ(result.message.find("crashed"), std::string::npos) << name << ": " << result.message;
  } else if (!passed) {
    ADD_FAILURE() << name << ": " << result.message;
  }
}

void CheckAll(const std::string& kind) {
  if (!std::filesystem::exists(kData)) {
    GTEST_SKIP() << kData << " is missing; install libonnx-testdata";
  }
  onnx::OpSchemaRegistry::Instance();  // once, before processes fork off
  std::vector<Exclusion> exclusions = ReadExclusions();
  Tally tally;
  for (const std::string& name : Cases(kind)) CheckOne(name, exclusions, tally);
  std::cout << kind << ": " << tally.passed << " of " << tally.supported
            << " tests on tensors of numbers pass (" << tally.known[0] << " with no input known, "
            << tally.known[1] << " with those that are not of floating point, " << tally.known[2]
            << " with all); " << tally.other << " are of other kinds\n";
  if (Filter() != nullptr) return;
  EXPECT_GE(tally.passed, kind == "node" ? tally.supported * 95 / 100 : 1);
  for (const Exclusion& exclusion : exclusions) {
    if (exclusion.pattern.rfind(kind + "/", 0) != 0) continue;
    EXPECT_TRUE(exclusion.used) << "no test is called " << exclusion.pattern;
    EXPECT_FALSE(exclusion.reason.empty()) << exclusion.pattern << " is excluded without a reason";
  }
}

TEST(Backend, Node) { CheckAll("node"); }
TEST(Backend, Simple) { CheckAll("simple"); }
TEST(Backend, PytorchOperator) { CheckAll("pytorch-operator"); }
TEST(Backend, PytorchConverted) { CheckAll("pytorch-converted"); }

}  // namespace
}  // namespace backend_test_cc
}  // namespace orrery::backend
