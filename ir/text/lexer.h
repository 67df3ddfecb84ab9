#ifndef ORRERY_IR_TEXT_LEXER_H_
#define ORRERY_IR_TEXT_LEXER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace orrery::ir {

/// What a token is.
enum class TokenKind : uint8_t {
  kEnd,
  kWord,      // letters, digits and _ . / $ ' -: names, numbers, keywords
  kValue,     // %name, %"any text", %7; text is the name
  kNumbered,  // %7: a value without a name; text is the digits
  kString,    // "text", unescaped
  kMark,      // one character of ( ) { } [ ] , : = @ + *
  kBad,       // anything else; text says what is wrong with it
};

/// A token with where it begins, line and column from 1.
struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;
  int line = 1;
  int column = 1;
};

/// What errors call it: "')'", "the end of the text".
std::string Show(const Token& token);

/// Splits the text form of the IR into tokens; skips white space and `//` comments.
class Lexer {
 public:
  explicit Lexer(absl::string_view text) : text_(text) {}
  /// The next token; kEnd at the end of the text, however often it is asked for.
  Token Next();

 private:
  void Skip();
  Token Word(Token token);
  Token Text(Token token);
  char Take();
  bool AtEnd() const { return at_ >= text_.size(); }
  char Peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  absl::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  int column_ = 1;
};

}  // namespace orrery::ir

#endif  // ORRERY_IR_TEXT_LEXER_H_
