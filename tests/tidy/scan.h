#ifndef ORRERY_TESTS_TIDY_SCAN_H_
#define ORRERY_TESTS_TIDY_SCAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

// Reads C++ sources well enough to count: a scanner of comments, strings and braces, not a parser.
// It relies on clang-format's layout in nothing but preprocessor lines.

namespace orrery::tidy {

/// A source of the repository.
struct Source {
  std::string path;  // from the root of the repository, as "ir/function.h"
  std::string text;
};

/// `text` with the characters of comments, of strings and of preprocessor lines blanked; line ends
/// stay. What is left is code.
std::string BlankNonCode(absl::string_view text);

/// Lines of a source by what stands on them.
struct LineCounts {
  int64_t code = 0;     // anything but blanks and comments; preprocessor lines too
  int64_t comment = 0;  // a comment alone, or behind code
  int64_t total = 0;
};
LineCounts CountLines(absl::string_view text);

/// A function with its body, or a lambda outside of functions.
struct FunctionSpan {
  std::string head;   // the start of its signature: for messages
  int32_t line = 0;   // of its signature, from 1
  int32_t lines = 0;  // from its signature to its closing brace
};

/// The functions of a source in the order of their ends. Lambdas inside functions are part of
/// those.
std::vector<FunctionSpan> FindFunctions(absl::string_view text);

/// What is wrong with the text itself: tabs, trailing blanks, no line end, paths that leave the
/// repository, a header without the guard that its path asks for. "ir/type.h:12: trailing blank".
std::vector<std::string> TextFaults(const Source& source);

/// Whether the source is part of the tests: "ir/type_test.cc", "tests/ir_text/golden.h".
bool IsTest(absl::string_view path);

}  // namespace orrery::tidy

#endif  // ORRERY_TESTS_TIDY_SCAN_H_
