#include "tests/tidy/docstrings.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tidy/repository.h"

namespace orrery::tidy {
namespace docstrings_test_cc {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> Faults(const std::string& text) {
  return Undocumented({.path = "a.h", .text = absl::StrCat("namespace a {\n", text, "\n}\n")});
}

TEST(FindDeclarations, KnowsScopesAndNames) {
  std::vector<std::string> found;
  for (const Declaration& declared : FindDeclarations(R"(namespace a::b {
inline constexpr int kA{1};
template <typename T = int>
T F(T a = {});
enum class E : uint8_t { kOne, kTwo };
struct S final : T {
  int field = 0;
  int G() const { return H({1}); }
 private:
  int hidden_;
};
using L = std::vector<int>;
}  // namespace a::b
)")) {
    found.push_back(absl::StrCat(declared.line, " ", declared.scope, ".", declared.name));
  }
  EXPECT_THAT(found, ElementsAre("2 .kA", "3 .F", "5 .E", "6 .S", "7 S.field", "8 S.G", "12 .L"));
}

TEST(Undocumented, AreFunctionsTypesAndConstants) {
  EXPECT_THAT(Faults("int F();"), ElementsAre("a.h:2: F has no sentence"));
  EXPECT_THAT(Faults("// A comment is no sentence.\nstruct S {};"),
              ElementsAre("a.h:3: S has no sentence"));
  EXPECT_THAT(Faults("/// One.\nint F();\nint G();"), ElementsAre("a.h:4: G has no sentence"));
  EXPECT_THAT(Faults("inline constexpr int kA = 1;"), ElementsAre("a.h:2: kA has no sentence"));
  EXPECT_THAT(Faults("enum class E { kA };"), ElementsAre("a.h:2: E has no sentence"));
  EXPECT_THAT(
      Faults("/// One.\nclass C {\n public:\n  int Get(int a) const;\n  static int F();\n};"),
      ElementsAre("a.h:5: Get has no sentence", "a.h:6: F has no sentence"));
}

TEST(Undocumented, AreNotThoseThatExplainThemselves) {
  EXPECT_THAT(Faults("/// One.\nint F();\nint F(int a);"), IsEmpty());
  EXPECT_THAT(Faults("class C;\nenum class E : int;\nnamespace b = c;\nusing std::swap;"),
              IsEmpty());
  EXPECT_THAT(Faults("ORRERY_DEFINE_ID(A, \"a\");\nstd::string ToString(A a);"), IsEmpty());
  EXPECT_THAT(Faults(R"(/// One.
class C : public B {
 public:
  explicit C(int a) : a_{a} {}
  ~C();
  bool operator<(const C& c) const;
  friend bool operator==(const C&, const C&) = default;
  int a() const { return a_; }
  void Run() override;
 private:
  int Hidden();
  int a_;
};
/// Two.
struct S {
  int field = 0;  // explained here
  int (*f)(int a) = nullptr;
};)"),
              IsEmpty());
}

// The header is the manual.
TEST(Docstrings, EveryPublicHeaderIsAManual) {
  const std::vector<Source> lists = ReadSources({"cmake/public_headers.txt"});
  ASSERT_EQ(lists.size(), 1u);
  std::vector<std::string> names = absl::StrSplit(lists[0].text, '\n', absl::SkipEmpty());
  std::erase_if(names, [](const std::string& name) { return !absl::EndsWith(name, ".h"); });
  int64_t headers = 0;
  for (const Source& source : Sources()) {
    if (std::ranges::find(names, source.path) == names.end()) continue;
    ++headers;
    EXPECT_THAT(Undocumented(source), IsEmpty());
  }
  EXPECT_EQ(headers, std::ssize(names));
}

}  // namespace
}  // namespace docstrings_test_cc
}  // namespace orrery::tidy
