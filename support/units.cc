#include "support/units.h"

#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "support/check.h"

namespace orrery {
namespace units_cc {
namespace {

constexpr int64_t kPicosecondsPerSecond = 1'000'000'000'000;

struct Scale {
  absl::string_view unit;
  double factor;
};

constexpr std::array<Scale, 10> kSizes = {{{"KiB", 1024.0},
                                           {"MiB", 1048576.0},
                                           {"GiB", 1073741824.0},
                                           {"TiB", 1099511627776.0},
                                           {"KB", 1e3},
                                           {"kB", 1e3},
                                           {"MB", 1e6},
                                           {"GB", 1e9},
                                           {"TB", 1e12},
                                           {"B", 1.0}}};
constexpr std::array<Scale, 6> kRates = {{{"Tbps", 1.25e11},
                                          {"Gbps", 1.25e8},
                                          {"Mbps", 1.25e5},
                                          {"TB/s", 1e12},
                                          {"GB/s", 1e9},
                                          {"MB/s", 1e6}}};

// The number before one of `scales`, in base units; nothing when it is no such thing or does not
// fit.
template <size_t N>
std::optional<int64_t> ParseScaled(absl::string_view text, const std::array<Scale, N>& scales) {
  for (const Scale& scale : scales) {
    absl::string_view number = text;
    if (!absl::ConsumeSuffix(&number, scale.unit)) continue;
    double value = 0;
    const bool hexadecimal = number.find_first_of("xX") != absl::string_view::npos;
    if (hexadecimal || !absl::SimpleAtod(number, &value) || !(value >= 0) ||
        value * scale.factor >= 9e18) {
      return std::nullopt;
    }
    return std::llround(value * scale.factor);
  }
  return std::nullopt;
}

// Three figures of `value` after rounding: 9.996 is "10.0".
std::string Scaled(double value, absl::string_view unit) {
  const double size = std::abs(value);
  return absl::StrFormat("%.*f %s", size < 9.995 ? 2 : size < 99.95 ? 1 : 0, value, unit);
}

}  // namespace
}  // namespace units_cc

Duration Duration::FromSeconds(double seconds) {
  const double picoseconds =
      std::ceil(seconds * static_cast<double>(units_cc::kPicosecondsPerSecond));
  ORRERY_CHECK(!std::isnan(picoseconds)) << seconds << " s";
  constexpr auto kLongest = static_cast<double>(kLongestDuration.picoseconds());
  if (std::abs(picoseconds) < kLongest) return Duration(static_cast<int64_t>(picoseconds));
  return picoseconds > 0 ? kLongestDuration : Duration(-kLongestDuration.picoseconds());
}

Bandwidth Bandwidth::FromGigabytesPerSecond(double gigabytes) {
  return Bandwidth(std::llround(gigabytes * 1e9));
}

Duration TransferTime(Bytes size, Bandwidth rate) { return TransferTime(size, 1, 1, rate); }

Duration TransferTime(Bytes size, int64_t numerator, int64_t denominator, Bandwidth rate) {
  ORRERY_CHECK(rate.bytes_per_second() > 0 && denominator > 0 && size.count() >= 0 &&
               numerator >= 0)
      << size << " at " << ToString(rate);
  using Wide = unsigned __int128;
  constexpr auto kPicoseconds = static_cast<Wide>(units_cc::kPicosecondsPerSecond);
  const Wide moved = static_cast<Wide>(size.count()) * static_cast<Wide>(numerator);
  if (moved > ~Wide{0} / kPicoseconds) return kLongestDuration;
  const Wide dividend = moved * kPicoseconds;
  const Wide divisor = static_cast<Wide>(denominator) * static_cast<Wide>(rate.bytes_per_second());
  const Wide picoseconds = dividend / divisor + (dividend % divisor == 0 ? 0 : 1);
  if (picoseconds > static_cast<Wide>(kLongestDuration.picoseconds())) return kLongestDuration;
  return Duration(static_cast<int64_t>(picoseconds));
}

absl::StatusOr<Bytes> ParseBytes(absl::string_view text) {
  if (int64_t count = 0; absl::SimpleAtoi(text, &count) && count >= 0) return Bytes(count);
  if (const auto count = units_cc::ParseScaled(text, units_cc::kSizes); count.has_value())
    return Bytes(*count);
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is no size; wanted a number with a unit such as 64KiB or 80GB"));
}

absl::StatusOr<Bandwidth> ParseBandwidth(absl::string_view text) {
  const auto rate = units_cc::ParseScaled(text, units_cc::kRates);
  if (rate.has_value() && *rate > 0) return Bandwidth(*rate);
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is no bandwidth; wanted a positive number with a unit, such as ",
                   "200Gbps (bits) or 300GB/s (bytes)"));
}

std::string ToString(Duration duration) {
  // The next unit begins where the one below would round to "1000".
  const double ps = static_cast<double>(duration.picoseconds());
  if (std::abs(ps) >= 0.9995e12) return units_cc::Scaled(ps * 1e-12, "s");
  if (std::abs(ps) >= 0.9995e9) return units_cc::Scaled(ps * 1e-9, "ms");
  if (std::abs(ps) >= 0.9995e6) return units_cc::Scaled(ps * 1e-6, "us");
  if (std::abs(ps) >= 1e3 || ps == 0) return units_cc::Scaled(ps * 1e-3, "ns");
  return absl::StrCat(duration.picoseconds(), " ps");
}

std::string ToString(Bytes size) {
  const double bytes = static_cast<double>(size.count());
  if (bytes >= 1099511627776.0) return units_cc::Scaled(bytes / 1099511627776.0, "TiB");
  if (bytes >= 1073741824.0) return units_cc::Scaled(bytes / 1073741824.0, "GiB");
  if (bytes >= 1048576.0) return units_cc::Scaled(bytes / 1048576.0, "MiB");
  if (bytes >= 1024.0) return units_cc::Scaled(bytes / 1024.0, "KiB");
  return absl::StrCat(size.count(), " B");
}

std::string ToString(Bandwidth rate) {
  return units_cc::Scaled(static_cast<double>(rate.bytes_per_second()) * 1e-9, "GB/s");
}

std::ostream& operator<<(std::ostream& out, Duration duration) { return out << ToString(duration); }
std::ostream& operator<<(std::ostream& out, Bytes size) { return out << ToString(size); }

}  // namespace orrery
