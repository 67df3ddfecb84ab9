#include "ir/text/lexer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace orrery::ir {
namespace lexer_test_cc {
namespace {

using ::testing::ElementsAre;

absl::string_view NameOf(TokenKind kind) {
  switch (kind) {
    case TokenKind::kEnd:
      return "end";
    case TokenKind::kWord:
      return "word";
    case TokenKind::kValue:
      return "value";
    case TokenKind::kNumbered:
      return "numbered";
    case TokenKind::kString:
      return "string";
    case TokenKind::kMark:
      return "mark";
    case TokenKind::kBad:
      return "bad";
  }
  return "";
}

// All tokens up to the end, or up to one that is bad.
std::vector<Token> Tokens(absl::string_view text) {
  Lexer lexer(text);
  std::vector<Token> tokens;
  do {
    tokens.push_back(lexer.Next());
  } while (tokens.back().kind != TokenKind::kEnd && tokens.back().kind != TokenKind::kBad);
  return tokens;
}

// "word:a mark:( end:".
std::string Kinds(absl::string_view text) {
  return absl::StrJoin(Tokens(text), " ", [](std::string* out, const Token& token) {
    absl::StrAppend(out, NameOf(token.kind), ":", token.text);
  });
}

std::string Trouble(absl::string_view text) {
  const Token last = Tokens(text).back();
  return absl::StrCat(last.line, ":", last.column, ": ", NameOf(last.kind), " ", last.text);
}

TEST(Lexer, TellsKindsApart) {
  EXPECT_EQ(Kinds("func @f"), "word:func mark:@ word:f end:");
  EXPECT_EQ(Kinds("%x %7 %7a %dx.0"), "value:x numbered:7 value:7a value:dx.0 end:");
  EXPECT_EQ(Kinds(R"("a b" %"a b" %"7")"), "string:a b value:a b value:7 end:");
  EXPECT_EQ(Kinds("(){}[],:=@+"),
            "mark:( mark:) mark:{ mark:} mark:[ mark:] mark:, mark:: mark:= mark:@ mark:+ end:");
  EXPECT_EQ(Kinds("f32[8@dp,4]"),
            "word:f32 mark:[ word:8 mark:@ word:dp mark:, word:4 mark:] end:");
}

TEST(Lexer, WordsHoldNumbersAndPaths) {
  EXPECT_EQ(Kinds("-1 1e-05 0.5"), "word:-1 word:1e-05 word:0.5 end:");
  EXPECT_EQ(Kinds("a_b/c.d$0'e-f"), "word:a_b/c.d$0'e-f end:");
}

TEST(Lexer, EndsWhereTheTextDoes) {
  EXPECT_EQ(Kinds(""), "end:");
  EXPECT_EQ(Kinds(" \t\r\n "), "end:");
  EXPECT_EQ(Kinds("// nothing else"), "end:");
  Lexer lexer("a");
  lexer.Next();
  EXPECT_EQ(lexer.Next().kind, TokenKind::kEnd);
  EXPECT_EQ(lexer.Next().kind, TokenKind::kEnd);  // and stays there
}

TEST(Lexer, SkipsComments) {
  EXPECT_EQ(Kinds("a // b %c \"\n// d\nd"), "word:a word:d end:");
  EXPECT_EQ(Kinds("(//)\n)"), "mark:( mark:) end:");
  EXPECT_EQ(Kinds("a//b"), "word:a//b end:");  // within a word they are part of it
  EXPECT_EQ(Kinds(R"("//")"), "string:// end:");
}

TEST(Lexer, UnescapesTexts) {
  EXPECT_EQ(Tokens(R"("a\"b\\c\nd\te")")[0].text, "a\"b\\c\nd\te");
  EXPECT_EQ(Tokens(R"("\x41\x0a\x7F")")[0].text, "A\n\x7F");
  EXPECT_EQ(Tokens(R"("")")[0].text, "");
  EXPECT_EQ(Tokens(R"(%"a\"b")")[0].text, "a\"b");
}

TEST(Lexer, KnowsLinesAndColumns) {
  std::vector<std::string> positions;
  for (const Token& token : Tokens("a bc(\n  %d // e\n\n\"f\" g")) {
    positions.push_back(absl::StrCat(token.text, "@", token.line, ":", token.column));
  }
  EXPECT_THAT(positions,
              ElementsAre("a@1:1", "bc@1:3", "(@1:5", "d@2:3", "f@4:1", "g@4:5", "@4:6"));
}

TEST(Lexer, SaysWhatIsWrong) {
  EXPECT_EQ(Trouble("a #"), "1:3: bad the character '#'");
  EXPECT_EQ(Trouble("\n !"), "2:2: bad the character '!'");
  EXPECT_EQ(Trouble("% a"), "1:1: bad '%' without a name");
  EXPECT_EQ(Trouble("%"), "1:1: bad '%' without a name");
  EXPECT_EQ(Trouble("a \"b"), "1:3: bad a text without its closing quote");
  EXPECT_EQ(Trouble("a \"b\nc\""), "1:3: bad a text without its closing quote");
  EXPECT_EQ(Trouble("%\"b"), "1:1: bad a text without its closing quote");
  EXPECT_EQ(Trouble(R"("\q")"), "1:1: bad an unknown escape in a text");
  EXPECT_EQ(Trouble(R"("\x4")"), "1:1: bad an unknown escape in a text");
  EXPECT_EQ(Trouble("\"\\"), "1:1: bad an unknown escape in a text");
}

// Whatever the bytes, the lexer gets to the end of them, and places never go back.
TEST(Lexer, TakesAnyBytes) {
  constexpr unsigned kSeed = 4711;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  constexpr absl::string_view kBytes = "a7 %\"\\n x4/\n(){}@#\t.-'$\x80";
  std::uniform_int_distribution<size_t> length(0, 40), byte(0, kBytes.size());
  for (int i = 0; i < 3000; ++i) {
    std::string text(length(random), ' ');
    for (char& c : text) {
      const size_t at = byte(random);
      c = at < kBytes.size() ? kBytes[at] : '\0';
    }
    Lexer lexer(text);
    Token before;
    size_t tokens = 0;
    for (Token token = lexer.Next(); token.kind != TokenKind::kEnd; token = lexer.Next()) {
      ASSERT_LE(++tokens, text.size()) << testing::PrintToString(text);
      ASSERT_TRUE(tokens == 1 || token.line > before.line ||
                  (token.line == before.line && token.column > before.column))
          << testing::PrintToString(text);
      before = token;
    }
  }
}

}  // namespace
}  // namespace lexer_test_cc
}  // namespace orrery::ir
