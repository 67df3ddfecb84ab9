#include "ir/text/lexer.h"

#include <cctype>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "ir/names.h"

namespace orrery::ir {
namespace lexer_cc {
namespace {

bool IsWordCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         (c != '\0' && absl::string_view("_./$'-").find(c) != absl::string_view::npos);
}

bool AllDigits(absl::string_view text) {
  for (const char c : text) {
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) return false;
  }
  return !text.empty();
}

}  // namespace
}  // namespace lexer_cc

std::string Show(const Token& token) {
  switch (token.kind) {
    case TokenKind::kEnd:
      return "the end of the text";
    case TokenKind::kBad:
      return token.text;
    case TokenKind::kValue:
    case TokenKind::kNumbered:
      return absl::StrCat("'%", token.text, "'");
    case TokenKind::kString:
      return Quote(token.text);
    default:
      return absl::StrCat("'", token.text, "'");
  }
}

char Lexer::Take() {
  const char c = text_[at_++];
  if (c == '\n') {
    ++line_;
    column_ = 1;
  } else {
    ++column_;
  }
  return c;
}

void Lexer::Skip() {
  while (!AtEnd()) {
    if (Peek() == '/' && Peek(1) == '/') {
      while (!AtEnd() && Peek() != '\n') Take();
    } else if (std::isspace(static_cast<unsigned char>(Peek())) != 0) {
      Take();
    } else {
      return;
    }
  }
}

Token Lexer::Word(Token token) {
  while (!AtEnd() && lexer_cc::IsWordCharacter(Peek())) token.text += Take();
  return token;
}

// The rest of a quoted text, from its opening quote on.
Token Lexer::Text(Token token) {
  Take();
  while (!AtEnd() && Peek() != '"' && Peek() != '\n') {
    char c = Take();
    if (c != '\\') {
      token.text += c;
      continue;
    }
    c = AtEnd() ? '\0' : Take();
    if (c == 'n') {
      token.text += '\n';
    } else if (c == 't') {
      token.text += '\t';
    } else if (c == 'x' && std::isxdigit(static_cast<unsigned char>(Peek())) != 0 &&
               std::isxdigit(static_cast<unsigned char>(Peek(1))) != 0) {
      const char digits[] = {Take(), Take(), '\0'};
      token.text += static_cast<char>(std::stoi(digits, nullptr, 16));
    } else if (c == '"' || c == '\\') {
      token.text += c;
    } else {
      return {TokenKind::kBad, "an unknown escape in a text", token.line, token.column};
    }
  }
  if (Peek() != '"')
    return {TokenKind::kBad, "a text without its closing quote", token.line, token.column};
  Take();
  return token;
}

Token Lexer::Next() {
  Skip();
  Token token{.kind = TokenKind::kEnd, .text = "", .line = line_, .column = column_};
  if (AtEnd()) return token;
  const char c = Peek();
  if (c == '%') {
    Take();
    token.kind = TokenKind::kValue;
    if (Peek() == '"') return Text(token);
    token = Word(token);
    if (token.text.empty())
      return {TokenKind::kBad, "'%' without a name", token.line, token.column};
    if (lexer_cc::AllDigits(token.text)) token.kind = TokenKind::kNumbered;
    return token;
  }
  if (c == '"') {
    token.kind = TokenKind::kString;
    return Text(token);
  }
  if (lexer_cc::IsWordCharacter(c)) {
    token.kind = TokenKind::kWord;
    return Word(token);
  }
  Take();
  token.text = std::string(1, c);
  const bool mark = absl::string_view("(){}[],:=@+*").find(c) != absl::string_view::npos;
  token.kind = mark ? TokenKind::kMark : TokenKind::kBad;
  if (!mark) token.text = absl::StrCat("the character '", token.text, "'");
  return token;
}

}  // namespace orrery::ir
