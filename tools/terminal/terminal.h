#ifndef ORRERY_TOOLS_TERMINAL_TERMINAL_H_
#define ORRERY_TOOLS_TERMINAL_TERMINAL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

// What stands at the other end of a stream: somebody at a terminal, or a file or pipe, which get
// plain text that never changes with the environment.

namespace orrery::tools {

/// A stream as whoever reads it sees it.
struct Terminal {
  bool is_terminal = false;
  size_t columns = 80;   // of a terminal its width
  bool colours = false;  // of terminals alone
  bool unicode = false;  // whether there is more than ASCII
};

/// What a terminal says of itself.
struct TerminalFacts {
  bool is_terminal = false;
  size_t columns = 0;  // 0: it does not say
  /// The variables of the environment; null or empty where there is none of that name.
  std::function<const char*(const char*)> variable = {};
};

/// No terminal: 80 columns, plain. Of a terminal, columns as COLUMNS says where it is a number of
/// at least 20, or as it says itself, or 80. Colours unless NO_COLOR has a value (no-color.org) or
/// TERM is none or "dumb". Unicode where LC_ALL, else LC_CTYPE, else LANG names UTF-8.
Terminal TerminalFrom(const TerminalFacts& facts);

/// That of standard output, and of standard error.
Terminal OutputTerminal();
Terminal ErrorTerminal();

/// How wide a table on standard output may be: as the terminal, or as it likes.
size_t ColumnsOfTables();

/// Colours are the eight that all terminals have, so that they suit light and dark ones.
enum class Colour : uint8_t { kPlain, kBold, kDim, kRed, kGreen, kYellow, kBlue, kMagenta, kCyan };

/// The text in that colour, where the terminal has colours.
std::string Paint(absl::string_view text, Colour colour, const Terminal& terminal);

/// How many columns `text` takes: its characters of UTF-8.
size_t TextWidth(absl::string_view text);

/// `text` cut to `columns` characters, the last of them "…" (or ".") where something is missing.
std::string CutText(absl::string_view text, size_t columns, const Terminal& terminal);

/// On a terminal, lines that are longer than it is wide go on below, cut at blanks, behind `indent`
/// blanks; else `text` as it is.
std::string WrapLines(absl::string_view text, size_t indent, const Terminal& terminal);

/// How much a program says beside its results.
struct Manner {
  bool quiet = false;     // no progress, notes and charts
  bool progress = false;  // also where standard error is no terminal
};

/// That of this program, as its flags say. Set before it works; for the whole process, since a
/// message may come from anywhere.
void SetManner(Manner manner);
Manner ProgramManner();

/// Whether progress goes to standard error: to a terminal, or where the manner asks for it.
bool ShowsProgress();

/// Whether charts go to standard output.
bool ShowsCharts();

/// Prints "note: …" on standard error, unless the program is quiet.
void Note(absl::string_view text);

/// Prints "warning: …" on standard error, also of a quiet program: an answer may not be what one
/// takes it for.
void Warn(absl::string_view text);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_TERMINAL_TERMINAL_H_
