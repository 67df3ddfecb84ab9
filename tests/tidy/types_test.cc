#include "tests/tidy/types.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace orrery::tidy {
namespace types_test_cc {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// "name fields parameters" of each type.
std::vector<std::string> Found(const std::string& text) {
  std::vector<std::string> found;
  for (const TypeSpan& type : FindTypes(text)) {
    found.push_back(absl::StrCat(type.name, " ", type.fields, " ", type.constructor_parameters));
  }
  return found;
}

// As Found, without types inside of types.
std::string FoundOutermost(const std::string& text) { return Found(text).back(); }

TEST(FindTypes, CountsFields) {
  const std::pair<std::string, int> rows[] = {
      {"int a;", 1},
      {"int a = 1, b{2}; std::map<int, int> c;", 3},
      {"static constexpr int kA = 1; using T = int; friend int F(int);", 0},
      {"int (*f)(int a, int b) = nullptr; std::function<int(int, int)> g;", 2},
      {"int F(int a) const; bool operator==(const S&) const = default; ~S();", 0},
      {"int F() { int a; return a; } int b = F();", 1},
      {"enum class E { kA, kB }; struct T { int a; }; T t = {.a = 1};", 1},
      {"std::vector<int> a = {1, 2};\n private:\n  int b_; // int c;", 2},
      {"template <typename T>\n void F(T t); template <typename T> void G(T t) { t(); }", 0},
      {"[[nodiscard]] int F(int a = 1);", 0},
  };
  for (const auto& [body, fields] : rows) {
    EXPECT_EQ(FoundOutermost(absl::StrCat("struct S {", body, "\n};\n")),
              absl::StrCat("S ", fields, " 0"))
        << body;
  }
}

TEST(FindTypes, CountsParametersOfConstructors) {
  EXPECT_THAT(
      Found("class A : public B {\n public:\n  explicit A(std::map<int, int> a, int b = 1)\n"
            "      : a_(a), b_{b} {}\n  A(const A&) = delete;\n  int a_, b_;\n};\n"),
      ElementsAre("A 2 2"));
  EXPECT_THAT(Found("struct A {\n  A();\n  A F(int a, int b);\n};\n"), ElementsAre("A 0 0"));
}

TEST(FindTypes, KnowsWhereTheyStand) {
  EXPECT_THAT(
      Found("namespace a::b {\nnamespace {\nstruct C {};\n}\nenum class D : uint8_t { kA, kB };\n"
            "struct E;\ntemplate <typename T>\nclass F final {};\nvoid G() { struct H {}; }\n}\n"),
      ElementsAre("a::b::(unnamed)::C 0 0", "a::b::D 0 0", "a::b::F 0 0"));
  EXPECT_THAT(
      Found("class A {\n  A(int a);\n private:\n  struct B {\n    B(int b, int c);\n    int b, c;\n"
            "  };\n  enum class E { kA };\n  B b_{1, 2};\n};\n"),
      ElementsAre("A::B 2 2", "A::E 0 0", "A 1 1"));
  const auto nested = FindTypes("class A {\n private:\n  // Why.\n  struct B {};\n};\n");
  ASSERT_EQ(nested.size(), 2u);
  EXPECT_EQ(nested[0].line, 4);
  EXPECT_EQ(nested[0].comment, "  // Why.");
  const auto types = FindTypes("int a;\n\n/// One.\n/// Two.\nstruct B {\n  int c;\n};\n");
  ASSERT_EQ(types.size(), 1u);
  EXPECT_EQ(types[0].line, 5);
  EXPECT_EQ(types[0].comment, "/// One. /// Two.");
}

TEST(TypesDefinedTwice, AreThoseOfOneNamespace) {
  const Source a = {"a.h", "namespace n {\nstruct S { int a; };\n}\n"};
  EXPECT_THAT(TypesDefinedTwice({a, {"b.h", "namespace m {\nstruct S {};\n}\n"}}), IsEmpty());
  EXPECT_THAT(TypesDefinedTwice({a, {"b.h", "namespace n {\nstruct S;\n}\n"}}), IsEmpty());
  EXPECT_THAT(TypesDefinedTwice({a, {"b.cc", a.text}}), IsEmpty());
  EXPECT_THAT(TypesDefinedTwice({a, {"b.h", "namespace n {\nclass S { int b; };\n}\n"}}),
              ElementsAre("a.h and b.h define n::S"));
}

TEST(LargeTypes, SayWhy) {
  const std::string fields = "struct S {\n  int a, b, c;\n};\n";
  const std::string parameters = "struct S {\n  S(int a, int b, int c);\n};\n";
  const TypeLimits limits = {.fields = 2, .constructor_parameters = 2};
  EXPECT_THAT(LargeTypes({"a.h", fields}, {}), IsEmpty());
  EXPECT_THAT(LargeTypes({"a.h", fields}, limits), ElementsAre("a.h:1: S has 3 fields"));
  EXPECT_THAT(LargeTypes({"a.h", parameters}, limits), ElementsAre("a.h:1: S has 3 parameters"));
  EXPECT_THAT(LargeTypes({"a.h", "/// A record has so many fields.\n" + fields}, limits),
              IsEmpty());
  EXPECT_THAT(LargeTypes({"a.cc", "// So many fields: a key each.\n" + fields}, limits), IsEmpty());
  EXPECT_THAT(LargeTypes({"a.h", "/// A record has so many fields.\n" + parameters}, limits),
              ElementsAre("a.h:2: S has 3 parameters"));
}

}  // namespace
}  // namespace types_test_cc
}  // namespace orrery::tidy
