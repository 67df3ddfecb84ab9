#ifndef ORRERY_IR_TEXT_TEXT_SCANNER_H_
#define ORRERY_IR_TEXT_TEXT_SCANNER_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace orrery::ir {

/// Takes a short text apart, from the left. Spaces between what is taken do not count.
class TextScanner {
 public:
  explicit TextScanner(absl::string_view text) : text_(text) {}

  bool AtEnd();
  /// Takes `mark` if it comes next.
  bool Take(absl::string_view mark);
  /// Whether `mark` comes next.
  bool Sees(absl::string_view mark);
  /// Takes `mark`, or says that it was wanted.
  absl::Status Expect(absl::string_view mark);
  /// The letters, digits, _ and - that come next; empty if there are none.
  std::string Word();
  /// The letters and _ that come next.
  std::string Letters();
  /// A whole number, with its sign.
  absl::StatusOr<int64_t> Number(absl::string_view wanted);
  /// "at 7: found ')'; wanted " and `wanted`.
  absl::Status Expected(absl::string_view wanted);
  /// The same of what was taken last.
  absl::Status ExpectedBefore(absl::string_view wanted);

 private:
  void Skip();
  absl::Status Found(size_t at, absl::string_view wanted) const;

  absl::string_view text_;
  size_t at_ = 0;
  size_t before_ = 0;  // where what was taken last begins
};

}  // namespace orrery::ir

#endif  // ORRERY_IR_TEXT_TEXT_SCANNER_H_
