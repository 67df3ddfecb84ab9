#include "tools/terminal/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace orrery::tools {
namespace terminal_cc {
namespace {

Manner of_program;

// Empty where it is not set.
std::string Variable(const TerminalFacts& facts, const char* name) {
  const char* const value = facts.variable ? facts.variable(name) : nullptr;
  return value == nullptr ? "" : value;
}

size_t ColumnsOf(const TerminalFacts& facts) {
  constexpr size_t kLeast = 20, kMost = 1000, kUsual = 80;
  size_t columns = 0;
  const bool said = absl::SimpleAtoi(Variable(facts, "COLUMNS"), &columns);
  if (!said || columns < kLeast) columns = facts.columns;
  return columns == 0 ? kUsual : std::clamp(columns, kLeast, kMost);
}

bool HasUnicode(const TerminalFacts& facts) {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string value = absl::AsciiStrToLower(Variable(facts, name));
    if (value.empty()) continue;
    return absl::StrContains(value, "utf-8") || absl::StrContains(value, "utf8");
  }
  return false;
}

// Open MPI gives each of its processes a terminal of its own, which nobody looks at.
bool IsTerminal(int file) {
  return isatty(file) != 0 && std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr;
}

TerminalFacts FactsOf(int file) {
  TerminalFacts facts = {.is_terminal = IsTerminal(file), .variable = std::getenv};
  winsize size = {};
  if (facts.is_terminal && ioctl(file, TIOCGWINSZ, &size) == 0) facts.columns = size.ws_col;
  return facts;
}

// Bytes that continue a character of UTF-8 begin with 10.
bool Begins(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; }

// Where the character number `columns` begins.
size_t ByteOf(absl::string_view text, size_t columns) {
  size_t at = 0;
  for (size_t seen = 0; at < text.size(); ++at) {
    if (Begins(text[at]) && seen++ == columns) break;
  }
  return at;
}

void WrapLine(absl::string_view line, size_t indent, size_t columns, std::string* text) {
  bool first = true;
  while (true) {
    const size_t room = first ? columns : columns - indent;
    if (!first) text->append(indent, ' ');
    if (TextWidth(line) <= room) break;
    // The last blank that leaves something before it; a word that is too long stays whole.
    const size_t end = ByteOf(line, room + 1);
    const size_t begun = line.find_first_not_of(' ');
    size_t blank = line.substr(0, end).rfind(' ');
    if (blank == absl::string_view::npos || blank < begun) blank = line.find(' ', begun);
    if (blank == absl::string_view::npos) break;
    absl::StrAppend(text, absl::StripTrailingAsciiWhitespace(line.substr(0, blank)), "\n");
    line = absl::StripLeadingAsciiWhitespace(line.substr(blank));
    first = false;
  }
  absl::StrAppend(text, line);
}

}  // namespace
}  // namespace terminal_cc

Terminal TerminalFrom(const TerminalFacts& facts) {
  if (!facts.is_terminal) return {};
  const std::string kind = terminal_cc::Variable(facts, "TERM");
  const bool plain = kind.empty() || kind == "dumb";
  return {.is_terminal = true,
          .columns = terminal_cc::ColumnsOf(facts),
          .colours = !plain && terminal_cc::Variable(facts, "NO_COLOR").empty(),
          .unicode = terminal_cc::HasUnicode(facts)};
}

Terminal OutputTerminal() { return TerminalFrom(terminal_cc::FactsOf(STDOUT_FILENO)); }
Terminal ErrorTerminal() { return TerminalFrom(terminal_cc::FactsOf(STDERR_FILENO)); }

size_t ColumnsOfTables() {
  const Terminal terminal = OutputTerminal();
  return terminal.is_terminal ? terminal.columns : std::numeric_limits<size_t>::max();
}

std::string Paint(absl::string_view text, Colour colour, const Terminal& terminal) {
  constexpr absl::string_view kCodes[] = {"", "1", "2", "31", "32", "33", "34", "35", "36"};
  const absl::string_view code = kCodes[static_cast<size_t>(colour)];
  if (!terminal.colours || code.empty() || text.empty()) return std::string(text);
  return absl::StrCat("\x1b[", code, "m", text, "\x1b[0m");
}

size_t TextWidth(absl::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, terminal_cc::Begins));
}

std::string CutText(absl::string_view text, size_t columns, const Terminal& terminal) {
  if (TextWidth(text) <= columns) return std::string(text);
  if (columns == 0) return "";
  return absl::StrCat(text.substr(0, terminal_cc::ByteOf(text, columns - 1)),
                      terminal.unicode ? "…" : ".");
}

std::string WrapLines(absl::string_view text, size_t indent, const Terminal& terminal) {
  if (!terminal.is_terminal) return std::string(text);
  const size_t most = terminal.columns / 2;
  std::string wrapped;
  bool first = true;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!first) wrapped.push_back('\n');
    first = false;
    terminal_cc::WrapLine(line, std::min(indent, most), terminal.columns, &wrapped);
  }
  return wrapped;
}

void SetManner(Manner manner) { terminal_cc::of_program = manner; }
Manner ProgramManner() { return terminal_cc::of_program; }

bool ShowsProgress() {
  const Manner manner = ProgramManner();
  return !manner.quiet && (manner.progress || terminal_cc::IsTerminal(STDERR_FILENO));
}

bool ShowsCharts() { return !ProgramManner().quiet && terminal_cc::IsTerminal(STDOUT_FILENO); }

void Note(absl::string_view text) {
  if (ProgramManner().quiet) return;
  std::cerr << Paint("note:", Colour::kCyan, ErrorTerminal()) << " " << text << "\n";
}

void Warn(absl::string_view text) {
  std::cerr << Paint("warning:", Colour::kYellow, ErrorTerminal()) << " " << text << "\n";
}

}  // namespace orrery::tools
