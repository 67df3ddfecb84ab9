#include "ir/text/text.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "ir/names.h"
#include "ir/op_info.h"
#include "tests/ir_text/golden.h"

namespace orrery::ir {
namespace text_test_cc {
namespace {

TEST(Text, GoldenTextsPrintAsTheyStand) {
  const std::vector<std::string> paths = golden::Paths(), texts = golden::Texts();
  ASSERT_GT(paths.size(), 4u);
  for (size_t i = 0; i < paths.size(); ++i) {
    const auto functions = ParseFunctions(texts[i]);
    ASSERT_TRUE(functions.ok()) << paths[i] << ":" << functions.status().message();
    if (golden::Blessing()) {
      ASSERT_TRUE(WriteFile(paths[i], Print(*functions)).ok());
    } else {
      EXPECT_EQ(Print(*functions), texts[i]) << paths[i];
    }
  }
}

// Each op kind stands in a text of its own, so that parser, printer and verifier are tried on it.
TEST(Text, EveryOpHasAGoldenText) {
  for (int k = 0; k < OpKindCount(); ++k) {
    const auto kind = static_cast<OpKind>(k);
    const std::string path =
        absl::StrCat(golden::Folder(), "/ops/", std::string(GetOpInfo(kind).name), ".ir");
    const auto text = ReadFile(path);
    if (!text.ok()) {
      ADD_FAILURE() << "the op " << GetOpInfo(kind).name << " of ir/ops.def has no example: write "
                    << "a function that uses it to " << path;
      continue;
    }
    const auto functions = ParseFunctions(*text);
    ASSERT_TRUE(functions.ok()) << path << ":" << functions.status().message();
    for (const Function& function : *functions) {
      bool used = false;
      for (const OpId op : function.order()) used = used || function.kind(op) == kind;
      EXPECT_TRUE(used) << path << ": @" << function.name() << " does not use "
                        << GetOpInfo(kind).name;
    }
  }
}

// The error of `text`, which must have one.
std::string Error(absl::string_view text) {
  const auto functions = ParseFunctions(text);
  return functions.ok() ? "none" : std::string(functions.status().message());
}

struct Row {
  std::string text, error;
};

void ExpectErrors(const std::vector<Row>& rows) {
  for (const Row& row : rows) EXPECT_EQ(Error(row.text), row.error) << row.text;
}

TEST(Parser, SaysWhatItWantsInAHead) {
  ExpectErrors({
      {"fun @f", "1:1: found 'fun'; wanted 'func'"},
      {"func f", "1:6: found 'f'; wanted '@'"},
      {"func @(", "1:7: found '('; wanted the name of the function"},
      {"func @f", "1:8: found the end of the text; wanted '('"},
      {"func @f (\n  %x: f33[2] data", "2:7: found 'f33'; wanted a type, such as f32[8,16]"},
      {"func @f (%x f32[2] data", "1:13: found 'f32'; wanted ':'"},
      {"func @f (x: f32[2] data", "1:10: found 'x'; wanted a value, such as %x"},
      {"func @f (%x: f32[2] date",
       "1:21: found 'date'; wanted data, parameter, frozen, buffer, state, saved or accumulator"},
      {"func @f (%x: f32[2] data %y", "1:26: found '%y'; wanted ',' or ')'"},
      {"func @f (%x: f32[2] data, %x: f32[2] data)",
       "1:27: found '%x'; wanted a name that is not taken yet"},
      {"func @f (%x: f32[two] data", "1:18: found 'two'; wanted a dimension"},
      {"func @f (%x: f32[9223372036854775808] data",
       "1:18: found '9223372036854775808'; wanted a dimension"},
      {"func @f (%x: f32[2 3] data", "1:20: found '3'; wanted ',' or ']'"},
      {"func @f (%x: f32[2@dp] data", "1:20: found 'dp'; wanted axes of mesh(), each once"},
      {"func @f mesh(dp=2) (%x: f32[2@dp.dp] data",
       "1:31: found 'dp.dp'; wanted axes of mesh(dp=2), each once"},
      {"func @f mesh(dp=2) (%x: f32[2] partial(hp) data",
       "1:40: found 'hp'; wanted axes of mesh(dp=2), each once"},
  });
}

TEST(Parser, SaysWhatMakesAMesh) {
  const std::string wanted =
      "'; wanted up to 7 axes of letters, digits, _ and -, each once, and up to 2^40 ranks";
  ExpectErrors({
      {"func @f mesh(dp=2, dp=2) ()", absl::StrCat("1:20: found 'dp", wanted)},
      {"func @f mesh(dp=0) ()", absl::StrCat("1:14: found 'dp", wanted)},
      {"func @f mesh(dp.hp=2) ()", absl::StrCat("1:14: found 'dp.hp", wanted)},
      {"func @f mesh(a=16777216, b=16777216, c=65536) ()", absl::StrCat("1:26: found 'b", wanted)},
      {"func @f mesh(a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1) ()", absl::StrCat("1:42: found 'h", wanted)},
      {"func @f mesh(dp=2.5) ()", "1:17: found '2.5'; wanted the size of the axis"},
      {"func @f mesh(dp) ()", "1:16: found ')'; wanted '='"},
      {"func @f mesh(dp=2 hp=2) ()", "1:19: found 'hp'; wanted ',' or ')'"},
  });
}

TEST(Parser, SaysWhatItWantsInABody) {
  const std::string head = "func @f (%x: f32[2] data) {\n";
  ExpectErrors({
      {head, "2:1: found the end of the text; wanted a value, such as %x"},
      {head + "%y: f32[2] = Rely(%x)",
       "2:14: found 'Rely'; wanted the name of an op; did you mean Relu?"},
      {head + "%y: f32[2] Relu(%x)", "2:12: found 'Relu'; wanted '='"},
      {head + "%y: f32[2] = Relu(%z)", "2:19: found '%z'; wanted a value that is defined above"},
      {head + "%y: f32[2] = Relu(%y)", "2:19: found '%y'; wanted a value that is defined above"},
      {head + "%x: f32[2] = Relu(%x)", "2:1: found '%x'; wanted a name that is not taken yet"},
      {head + "%y: f32[2], %y: f32[2] = Relu(%x)",
       "2:17: found 'f32'; wanted results of different names before this"},
      {head + "%y: f32[2] = Relu(%x %x)", "2:22: found '%x'; wanted ',' or ')'"},
      {head + "return %x: outcome",
       "2:12: found 'outcome'; wanted result, loss, gradient, updated, saved or accumulator"},
      {head + "return %x: gradient(%q)", "2:21: found '%q'; wanted a value that is defined above"},
      {head + "return %x: result %x", "2:19: found '%x'; wanted ',' or '}'"},
      {head + "return %x: result } extra", "2:21: found 'extra'; wanted 'func'"},
  });
}

TEST(Parser, SaysWhatItWantsInAttributes) {
  const std::string head = "func @f () { %c: f32[] = Constant() {";
  ExpectErrors({
      {head + "=1}", "1:38: found '='; wanted the name of an attribute"},
      {head + "a 1}", "1:40: found '1'; wanted '='"},
      {head + "a=1, a=2}", "1:43: found 'a'; wanted an attribute that is not set yet"},
      {head + "a=x}", "1:40: found 'x'; wanted a number, a text or a list"},
      {head + "a=}", "1:40: found '}'; wanted a number, a text or a list"},
      {head + "a=0x1e}", "1:40: found '0x1e'; wanted a number, a text or a list"},
      {head + "a=9223372036854775808}",
       "1:40: found '9223372036854775808'; wanted a number, a text or a list"},
      {head + "a=1e+}", "1:43: found '}'; wanted an exponent"},
      {head + "a=[1, 2.5]}", "1:48: found '}'; wanted a list of one kind of numbers before this"},
      {head + "a=[1 2]}", "1:43: found '2'; wanted ',' or ']'"},
      {head + "a=[\"x\"]}", "1:41: found \"x\"; wanted a number, a text or a list"},
      {head + "a=1 b=2}", "1:42: found 'b'; wanted ',' or '}'"},
  });
}

TEST(Parser, SaysWhatIsWrongWithACharacter) {
  ExpectErrors({
      {"func @f (%x: f32[2] data) & {", "1:27: found the character '&'; wanted '{'"},
      {"func @f (%: f32[2]", "1:10: found '%' without a name; wanted a value, such as %x"},
      {"func @\"f", "1:7: found a text without its closing quote; wanted the name of the function"},
      {"func @\"f\n\"",
       "1:7: found a text without its closing quote; wanted the name of the function"},
      {"func @\"\\q\"", "1:7: found an unknown escape in a text; wanted the name of the function"},
      {"func @\"\\x4\"", "1:7: found an unknown escape in a text; wanted the name of the function"},
      {"func @\"\\", "1:7: found an unknown escape in a text; wanted the name of the function"},
  });
}

TEST(Parser, TakesCommentsSpacesAndTrailingCommas) {
  const auto function = ParseFunction(
      "// a head\nfunc@f(%x:f32[2,]data,){// body\r\n\t%007 : f32 [ 2 ] = Relu ( %x , ) { } "
      "return%007:result,}// end");
  ASSERT_TRUE(function.ok()) << function.status();
  EXPECT_EQ(Print(*function),
            "func @f (\n  %x: f32[2] data\n) {\n  %1: f32[2] = Relu(%x)\n  return %1: result\n}\n");
}

TEST(Parser, WantsOneFunctionWhereOneIsAskedFor) {
  EXPECT_EQ(ParseFunction("").status().message(), "found 0 functions; wanted one");
  EXPECT_EQ(ParseFunction("func @f () { return } func @g () { return }").status().message(),
            "found 2 functions; wanted one");
  EXPECT_EQ(Error(""), "none");
  EXPECT_EQ(Error(" // nothing"), "none");
}

// A value that was called %9 in a text is the second value, and prints as that.
TEST(Parser, NumbersValuesAnew) {
  const auto function = ParseFunction(
      "func @f (%9: f32[2] data) { %4: f32[2] = Relu(%9) %1: f32[2] = Relu(%4) return %1: result "
      "}");
  ASSERT_TRUE(function.ok()) << function.status();
  EXPECT_EQ(Print(*function),
            "func @f (\n  %0: f32[2] data\n) {\n  %1: f32[2] = Relu(%0)\n"
            "  %2: f32[2] = Relu(%1)\n  return %2: result\n}\n");
}

TEST(Names, ArePlainOrQuoted) {
  for (const std::string name : {"x", "h.3/attn", "$y'", "-", "1a", "a//b", "/"}) {
    EXPECT_TRUE(IsPlainName(name)) << name;
  }
  // Regression: "func @//f" is a comment.
  for (const std::string name : {"", "7", "007", "a b", "a\"", "a:b", "é", "//", "//f", "a,b"}) {
    EXPECT_FALSE(IsPlainName(name)) << name;
  }
  EXPECT_EQ(Quote(std::string("a\"\\\n\t\r\0\x7fé", 10)), R"("a\"\\\n\t\x0d\x00\x7fé")");
}

// Regression: a function of this name printed as a comment.
TEST(Names, OfFunctionsMayLookLikeComments) {
  Function function("//f");
  function.AddInput("//x", {DType::kF32, {2}, {}}, InputRole::kData);
  const std::string text = Print(function);
  EXPECT_EQ(text, "func @\"//f\" (\n  %\"//x\": f32[2] data\n) {\n  return\n}\n");
  const auto parsed = ParseFunction(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(Print(*parsed), text);
}

// Regression: each result was compared with each other one, which took seconds for one Adam over
// the parameters of a large model.
TEST(Parser, TakesAnOpOfManyResults) {
  constexpr int kParameters = 20000;
  std::vector<std::string> inputs, results, operands, outputs;
  for (int i = 0; i < 2 * kParameters; ++i) {
    inputs.push_back(absl::StrCat("%p", i, ": f32[2] parameter"));
    operands.push_back(absl::StrCat("%p", i));
  }
  for (int i = 0; i < kParameters; ++i) {
    results.push_back(absl::StrCat("%r", i, ": f32[2]"));
    outputs.push_back(absl::StrCat("%r", i, ": updated(%p", i, ")"));
  }
  const auto function = ParseFunction(
      absl::StrCat("func @f (", absl::StrJoin(inputs, ", "), ") {\n", absl::StrJoin(results, ", "),
                   " = Sgd(", absl::StrJoin(operands, ", "), ") {parameters=", kParameters,
                   "}\nreturn ", absl::StrJoin(outputs, ", "), "\n}\n"));
  ASSERT_TRUE(function.ok()) << function.status();
  EXPECT_EQ(function->outputs().size(), size_t{kParameters});
}

}  // namespace
}  // namespace text_test_cc
}  // namespace orrery::ir
