#ifndef ORRERY_SIMULATOR_PROGRAM_LINE_READER_H_
#define ORRERY_SIMULATOR_PROGRAM_LINE_READER_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "support/enum_names.h"

namespace orrery::simulator {

/// Reads one line of the text form of a Program, word by word. Words are apart by blanks; a word
/// that opens with a quote ends with the next one that is not escaped. What is not as wanted is an
/// error that names the line, the word, and what was wanted.
class LineReader {
 public:
  LineReader(absl::string_view line, int number)
      : rest_(absl::StripAsciiWhitespace(line)), number_(number) {
    Next();
  }

  int number() const { return number_; }
  /// The word at hand; empty at the end.
  absl::string_view word() const { return word_; }
  bool AtEnd() const { return word_.empty(); }
  /// Whether the word at hand is `kind` and a number: "task12".
  bool At(absl::string_view kind) const;
  /// Goes on to the next word.
  void Next();

  /// Passes the word at hand if it is `word`, and tells whether it was.
  bool Take(absl::string_view word);
  /// Passes `word`, which must be at hand.
  absl::Status Expect(absl::string_view word);
  /// Passes the id that the next thing of a table of `count` rows gets: "task" and `count`.
  absl::Status NextId(absl::string_view kind, int32_t count);
  /// OK at the end of the line.
  absl::Status End() const;

  absl::StatusOr<std::string> String();
  /// A whole number, `least` or more.
  absl::StatusOr<int64_t> Int64(int64_t least = std::numeric_limits<int64_t>::min());
  absl::StatusOr<int32_t> Int32();
  absl::StatusOr<double> Double();
  /// A row of a table of `count` rows: `kind` and its number.
  absl::StatusOr<int32_t> Row(absl::string_view kind, int32_t count);
  template <typename IdType>
  absl::StatusOr<IdType> IdOf(absl::string_view kind, int32_t count) {
    const absl::StatusOr<int32_t> row = Row(kind, count);
    if (!row.ok()) return row.status();
    return IdType(*row);
  }
  /// A value of an enumeration, by its name.
  template <typename E, size_t kCount>
  absl::StatusOr<E> Enum(const EnumNames<E, kCount>& names) {
    const std::optional<E> value = names.Find(word_);
    if (!value.has_value()) return Wanted(absl::StrCat("one of ", names.List(", ")));
    Next();
    return *value;
  }

  /// "line 7: found 'x', wanted ..." about the word at hand.
  absl::Status Wanted(absl::string_view what) const;

 private:
  absl::string_view rest_;  // after the word at hand
  absl::string_view word_;
  int number_;
};

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_PROGRAM_LINE_READER_H_
