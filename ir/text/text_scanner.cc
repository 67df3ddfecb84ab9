#include "ir/text/text_scanner.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "ir/names.h"

namespace orrery::ir {
namespace text_scanner_cc {
namespace {

bool IsAlphanumeric(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)); }
bool IsLetter(char c) { return absl::ascii_isalpha(static_cast<unsigned char>(c)) || c == '_'; }
// A byte of UTF-8 that is not the first one of a character.
bool IsInsideCharacter(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

}  // namespace
}  // namespace text_scanner_cc

void TextScanner::Skip() {
  while (at_ < text_.size() && absl::ascii_isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
}

bool TextScanner::AtEnd() {
  Skip();
  return at_ >= text_.size();
}

bool TextScanner::Sees(absl::string_view mark) {
  Skip();
  return absl::StartsWith(text_.substr(at_), mark);
}

bool TextScanner::Take(absl::string_view mark) {
  if (!Sees(mark)) return false;
  before_ = at_;
  at_ += mark.size();
  return true;
}

absl::Status TextScanner::Expect(absl::string_view mark) {
  if (Take(mark)) return absl::OkStatus();
  return Expected(absl::StrCat("'", mark, "'"));
}

std::string TextScanner::Word() {
  Skip();
  before_ = at_;
  while (at_ < text_.size() &&
         (text_scanner_cc::IsAlphanumeric(text_[at_]) || text_[at_] == '_' || text_[at_] == '-')) {
    ++at_;
  }
  return std::string(text_.substr(before_, at_ - before_));
}

std::string TextScanner::Letters() {
  Skip();
  before_ = at_;
  while (at_ < text_.size() && text_scanner_cc::IsLetter(text_[at_])) ++at_;
  return std::string(text_.substr(before_, at_ - before_));
}

absl::StatusOr<int64_t> TextScanner::Number(absl::string_view wanted) {
  Skip();
  size_t end = at_;
  if (end < text_.size() && text_[end] == '-') ++end;
  while (end < text_.size() && absl::ascii_isdigit(static_cast<unsigned char>(text_[end]))) ++end;
  int64_t number = 0;
  if (!absl::SimpleAtoi(text_.substr(at_, end - at_), &number)) return Expected(wanted);
  before_ = at_;
  at_ = end;
  return number;
}

absl::Status TextScanner::Expected(absl::string_view wanted) {
  Skip();
  return Found(at_, wanted);
}

absl::Status TextScanner::ExpectedBefore(absl::string_view wanted) {
  return Found(before_, wanted);
}

absl::Status TextScanner::Found(size_t at, absl::string_view wanted) const {
  constexpr size_t kShown = 12;
  std::string found = "the end of the text";
  if (at < text_.size()) {
    size_t end = std::min(text_.size(), at + kShown);
    while (end < text_.size() && text_scanner_cc::IsInsideCharacter(text_[end])) ++end;
    found = Quote(text_.substr(at, end - at));
    if (end < text_.size()) absl::StrAppend(&found, "…");
  }
  return absl::InvalidArgumentError(
      absl::StrCat("at ", at + 1, ": found ", found, "; wanted ", wanted));
}

}  // namespace orrery::ir
