#include "tests/tidy/scan.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

// The checker itself, on small good and bad snippets.

namespace orrery::tidy {
namespace scan_test_cc {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(BlankNonCode, LeavesCodeAndLineEnds) {
  EXPECT_EQ(BlankNonCode("a;  // b\nc;"), "a;      \nc;");
  EXPECT_EQ(BlankNonCode("a /* b\n{ */ c"), "a     \n     c");
  EXPECT_EQ(BlankNonCode("f(\"{\\\"\", '}', '\\'')"), "f(     ,    ,     )");
  EXPECT_EQ(BlankNonCode("R\"x({\")x\" + 1'000"), "R         + 1'000");
  EXPECT_EQ(BlankNonCode("#define A { \\\n  {\nb"), "             \n   \nb");
}

TEST(CountLines, TellsCodeFromComments) {
  const LineCounts counts =
      CountLines("#include <a>\n\n// why\nint a;  // what\n/* b\nc */\n\"//\";\n");
  EXPECT_EQ(counts.code, 3);
  EXPECT_EQ(counts.comment, 4);
  EXPECT_EQ(counts.total, 7);
}

struct Row {
  std::string text;
  std::vector<int32_t> lines;  // of each function
};

std::vector<int32_t> Lengths(const std::string& text) {
  std::vector<int32_t> lengths;
  for (const FunctionSpan& function : FindFunctions(text)) lengths.push_back(function.lines);
  return lengths;
}

TEST(FindFunctions, FindsEachBody) {
  const Row rows[] = {
      {"int f() { return 1; }\n", {1}},
      {"int f(\n    int a) {\n  if (a) {\n    g();\n  }\n}\n", {6}},
      {"namespace n {\nclass A : public B {\n public:\n  A() : a_{1}, b_(2) {\n  }\n  int f() "
       "const override { return "
       "a_; }\n};\n}\n",
       {2, 1}},
      {"enum class E : uint8_t { kA };\nstruct S { int a = 1; };\n", {}},
      {"template <typename T>\nstruct S {\n  friend auto operator<=>(S, S) = default;\n};\n", {}},
      {"auto f() -> std::vector<int> {\n}\n", {2}},
      {"const Record kA = {\n    .run = [](int) -> absl::StatusOr<bool> {\n      return true;\n    "
       "},\n};\n",
       {3}},
      {"const int kTable[] = {1, 2};\nconst T kB = F({1}, {2});\nint g() {\n}\n", {2}},
      {"TEST(A, B) {\n  const auto l = [] { return 1; };\n}\nint x;\n", {3}},
      {"int f();\nusing A = int (*)(int);\n", {}},
  };
  for (const Row& row : rows) EXPECT_EQ(Lengths(row.text), row.lines) << row.text;
}

TEST(FindFunctions, SaysWhere) {
  const auto functions = FindFunctions("int a;\n\n// why\nint f(int b) {\n  return b;\n}\n");
  ASSERT_EQ(functions.size(), 1u);
  EXPECT_EQ(functions[0].line, 4);
  EXPECT_EQ(functions[0].head, "int f(int b)");
}

TEST(FindFunctions, SeesAFunctionThatIsTooLong) {
  std::string text = "void f() {\n";
  for (int i = 0; i < 70; ++i) absl::StrAppend(&text, "  g(", i, ");\n");
  EXPECT_THAT(Lengths(text + "}\n"), ElementsAre(72));
}

TEST(TextFaults, OfBadSnippets) {
  const std::string guard = "#ifndef ORRERY_IR_A_H_\n#define ORRERY_IR_A_H_\n#endif\n";
  EXPECT_THAT(TextFaults({"ir/a.h", guard}), IsEmpty());
  EXPECT_THAT(TextFaults({"ir/b.h", guard}),
              ElementsAre("ir/b.h:1: wanted the guard ORRERY_IR_B_H_"));
  EXPECT_THAT(TextFaults({"a.h", "#pragma once\n"}),
              ElementsAre("a.h:1: wanted the guard ORRERY_A_H_"));
  EXPECT_THAT(TextFaults({"a.cc", "int a;\n\tint b; \n"}),
              ElementsAre("a.cc:2: tab", "a.cc:2: trailing blank"));
  EXPECT_THAT(TextFaults({"a.cc", "int a;"}), ElementsAre("a.cc:1: no line end"));
  EXPECT_THAT(TextFaults({"a.cc", absl::StrCat("// ../sh", "ared/x\n")}),
              ElementsAre("a.cc:1: path that leaves the repository"));
}

TEST(IsTest, GoesByName) {
  EXPECT_TRUE(IsTest("ir/type_test.cc"));
  EXPECT_TRUE(IsTest("tests/tidy/scan.h"));
  EXPECT_FALSE(IsTest("ir/type.cc"));
}

}  // namespace
}  // namespace scan_test_cc
}  // namespace orrery::tidy
