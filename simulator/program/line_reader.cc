#include "simulator/program/line_reader.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "support/status.h"

namespace orrery::simulator {
namespace line_reader_cc {
namespace {

// The length of the word that `text` starts with.
size_t WordSize(absl::string_view text) {
  if (text.empty() || text.front() != '"') return std::min(text.find_first_of(" \t"), text.size());
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '"') return i + 1;
    if (text[i] == '\\') ++i;
  }
  return text.size();
}

}  // namespace
}  // namespace line_reader_cc

bool LineReader::At(absl::string_view kind) const {
  return absl::StartsWith(word_, kind) && word_.size() > kind.size() &&
         absl::ascii_isdigit(static_cast<unsigned char>(word_[kind.size()]));
}

void LineReader::Next() {
  rest_ = absl::StripLeadingAsciiWhitespace(rest_);
  word_ = rest_.substr(0, line_reader_cc::WordSize(rest_));
  rest_.remove_prefix(word_.size());
}

bool LineReader::Take(absl::string_view word) {
  if (word_ != word) return false;
  Next();
  return true;
}

absl::Status LineReader::Expect(absl::string_view word) {
  return Take(word) ? absl::OkStatus() : Wanted(absl::StrCat("'", word, "'"));
}

absl::Status LineReader::NextId(absl::string_view kind, int32_t count) {
  const std::string id = absl::StrCat(kind, count);
  if (Take(id)) return absl::OkStatus();
  return Wanted(absl::StrCat("'", id, "', as ids count up from 0"));
}

absl::Status LineReader::End() const {
  return AtEnd() ? absl::OkStatus() : Wanted("the end of the line");
}

absl::StatusOr<std::string> LineReader::String() {
  std::string text;
  const bool quoted = word_.size() >= 2 && word_.front() == '"' && word_.back() == '"';
  if (!quoted || !absl::CUnescape(word_.substr(1, word_.size() - 2), &text)) {
    return Wanted("a name in double quotes");
  }
  Next();
  return text;
}

absl::StatusOr<int64_t> LineReader::Int64(int64_t least) {
  int64_t value = 0;
  if (!absl::SimpleAtoi(word_, &value) || value < least) {
    return Wanted(least == std::numeric_limits<int64_t>::min()
                      ? "a whole number"
                      : absl::StrCat("a whole number, ", least, " or more"));
  }
  Next();
  return value;
}

absl::StatusOr<int32_t> LineReader::Int32() {
  int32_t value = 0;
  if (!absl::SimpleAtoi(word_, &value)) return Wanted("a whole number of 32 bits");
  Next();
  return value;
}

absl::StatusOr<double> LineReader::Double() {
  double value = 0;
  if (!absl::SimpleAtod(word_, &value) || !std::isfinite(value)) return Wanted("a number");
  Next();
  return value;
}

absl::StatusOr<int32_t> LineReader::Row(absl::string_view kind, int32_t count) {
  int32_t row = 0;
  if (!At(kind) || !absl::SimpleAtoi(word_.substr(kind.size()), &row)) {
    return Wanted(absl::StrCat("the id of a ", kind, " such as '", kind, "0'"));
  }
  if (row >= count) {
    return Wanted(absl::StrCat("one of the ", count, " ids of a ", kind,
                               " that there are so far; try adding it above"));
  }
  Next();
  return row;
}

absl::Status LineReader::Wanted(absl::string_view what) const {
  constexpr size_t kMostShown = 80;  // of a word that nobody wants to read whole
  return absl::InvalidArgumentError(absl::StrCat(
      "line ", number_, ": found ",
      AtEnd() ? "the end of the line" : absl::StrCat("'", word_.substr(0, kMostShown), "'"),
      ", wanted ", what));
}

}  // namespace orrery::simulator
