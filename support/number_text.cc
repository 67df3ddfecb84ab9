#include "support/number_text.h"

#include <charconv>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"

namespace orrery {

std::string ShortestText(double value) {
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value).ptr;
  return std::string(buffer, end);
}

std::string FewestDigits(double value) {
  for (int digits = 1; digits < 17; ++digits) {
    const std::string text = absl::StrFormat("%.*g", digits, value);
    double read = 0;
    if (absl::SimpleAtod(text, &read) && read == value) return text;
  }
  return SeventeenDigits(value);
}

std::string SeventeenDigits(double value) { return absl::StrFormat("%.17g", value); }

}  // namespace orrery
