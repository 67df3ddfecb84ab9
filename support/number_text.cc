#include "support/number_text.h"

#include <charconv>
#include <cmath>
#include <iterator>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
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

std::string ShortNumber(double value) {
  constexpr absl::string_view kPrefixes[] = {"", " k", " M", " G", " T"};
  // Rounded first: 9999.96 has four figures as 10 k.
  double rounded = value;
  if (absl::SimpleAtod(absl::StrFormat("%.4g", value), &rounded) && std::abs(rounded) < 1e4) {
    return absl::StrFormat("%.4g", value);
  }
  size_t prefix = 0;
  for (; std::abs(rounded) >= 1e3 && prefix + 1 < std::size(kPrefixes); ++prefix) rounded /= 1e3;
  return absl::StrCat(absl::StrFormat("%.4g", rounded), kPrefixes[prefix]);
}

}  // namespace orrery
