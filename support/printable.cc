#include "support/printable.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace orrery {
namespace printable_cc {
namespace {

// Whether a terminal shows the character on the line where it stands, and UTF-8 of `length` bytes
// is its shortest spelling (RFC 3629).
bool Prints(uint32_t character, size_t length) {
  constexpr uint32_t kFirstOfLength[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = character >= 0xd800 && character <= 0xdfff;
  const bool control = character < 0xa0;
  const bool ends_line = character == 0x2028 || character == 0x2029;
  return character >= kFirstOfLength[length] && character <= 0x10ffff && !surrogate && !control &&
         !ends_line;
}

// How many bytes the character at the start of `text` has; 0 for one that does not print.
size_t PrintableBytes(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return byte(0) >= 0x20 && byte(0) != 0x7f ? 1 : 0;
  const size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || length > text.size()) return 0;
  uint32_t character = byte(0) & (0x7fU >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    character = character << 6 | (byte(i) & 0x3fU);
  }
  return Prints(character, length) ? length : 0;
}

// UTF-8 whose start and end say enough.
std::string WithoutMiddle(const std::string& line) {
  constexpr size_t kLongest = 1000, kStart = 600, kEnd = 300;
  if (line.size() <= kLongest) return line;
  const auto inside = [&](size_t i) {
    return (static_cast<unsigned char>(line[i]) & 0xc0) == 0x80;
  };
  size_t start = kStart, end = line.size() - kEnd;
  while (inside(start)) --start;
  while (inside(end)) ++end;
  return absl::StrCat(line.substr(0, start), " ... ", line.substr(end));
}

}  // namespace
}  // namespace printable_cc

std::string Printable(absl::string_view text) {
  constexpr size_t kLongest = 400;
  std::string printable;
  for (const char c : text.substr(0, kLongest)) {
    if (c >= 0x20 && c < 0x7f) {
      printable += c;
    } else {
      absl::StrAppend(&printable, "\\x", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
    }
  }
  return text.size() > kLongest ? printable + "..." : printable;
}

std::string OneLine(absl::string_view text) {
  std::string line;
  while (!text.empty()) {
    const size_t bytes = printable_cc::PrintableBytes(text);
    if (bytes == 0) {
      const auto byte = static_cast<unsigned char>(text[0]);
      absl::StrAppend(&line, "\\x", absl::Hex(byte, absl::kZeroPad2));
    } else {
      line.append(text.data(), bytes);
    }
    text.remove_prefix(std::max<size_t>(bytes, 1));
  }
  return printable_cc::WithoutMiddle(line);
}

std::string ShellWord(absl::string_view text) {
  constexpr absl::string_view kPlain = "+,-./:=@_";
  const bool plain = std::all_of(text.begin(), text.end(), [&](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains(kPlain, c);
  });
  if (plain && !text.empty()) return std::string(text);
  if (OneLine(text) == text) {
    return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
  }
  return absl::StrCat("$'", OneLine(absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}})),
                      "'");
}

std::string Show(absl::string_view name) { return absl::StrCat("'", Printable(name), "'"); }

}  // namespace orrery
