#include "cluster/quantity.h"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

namespace orrery::cluster {
namespace quantity_cc {
namespace {

struct Unit {
  absl::string_view name;
  int64_t size;  // in base units
};

// The largest first.
constexpr Unit kTimes[] = {
    {"ms", 1'000'000'000}, {"us", 1'000'000}, {"ns", 1'000}, {"ps", 1}, {"s", 1'000'000'000'000}};
constexpr Unit kSizes[] = {
    {"TB", 1'000'000'000'000}, {"GB", 1'000'000'000}, {"MB", 1'000'000}, {"KB", 1'000}, {"B", 1}};
constexpr Unit kRates[] = {
    {"TB/s", 1'000'000'000'000}, {"GB/s", 1'000'000'000}, {"MB/s", 1'000'000}};
constexpr double kMostTime = 86400e12;  // a day, in picoseconds
constexpr double kMostFlops = 1e21;

// SimpleAtod would take "nan", "0x10" and "1e5"; here a person writes digits and one point.
bool ParseDecimal(absl::string_view text, double& value) {
  if (text.empty() || text.size() > 30) return false;
  for (const char c : text) {
    if ((c < '0' || c > '9') && c != '.') return false;
  }
  return absl::SimpleAtod(text, &value);
}

// `count` in the unit, with as many digits behind the point as it needs.
std::string InUnit(int64_t count, const Unit& unit) {
  std::string text = absl::StrCat(count / unit.size);
  if (count % unit.size != 0) {
    const std::string rest = absl::StrCat(unit.size + count % unit.size);
    absl::StrAppend(&text, ".", rest.substr(1));
    text.erase(text.find_last_not_of('0') + 1);
  }
  return absl::StrCat(text, unit.name);
}

// In the largest unit of which there is at least one, else in the smallest.
std::string PrintCount(int64_t count, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    if (count >= unit.size) return InUnit(count, unit);
  }
  return InUnit(count, units.back());
}

}  // namespace
}  // namespace quantity_cc

absl::StatusOr<Duration> ParseDuration(absl::string_view text) {
  for (const quantity_cc::Unit& unit : quantity_cc::kTimes) {
    absl::string_view number = text;
    if (!absl::ConsumeSuffix(&number, unit.name)) continue;
    double value = 0;
    if (!quantity_cc::ParseDecimal(number, value)) break;
    const double picoseconds = value * static_cast<double>(unit.size);
    if (picoseconds > quantity_cc::kMostTime) break;
    return Duration(std::llround(picoseconds));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "'", text, "' is no duration; wanted 0 or more with a unit, such as 1.8us or 500ns"));
}

absl::StatusOr<FlopRate> ParseFlopRate(absl::string_view text) {
  absl::string_view number = text;
  double scale = 0;
  if (absl::ConsumeSuffix(&number, "Tflops")) scale = 1e12;
  if (absl::ConsumeSuffix(&number, "Pflops")) scale = 1e15;
  double value = 0;
  if (scale > 0 && quantity_cc::ParseDecimal(number, value) && value > 0 &&
      value * scale <= quantity_cc::kMostFlops) {
    return FlopRate(value * scale);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "'", text, "' is no rate of compute; wanted more than 0 with a unit, such as 989Tflops"));
}

std::string Print(Duration duration) {
  if (duration == Duration(0)) return "0us";
  return quantity_cc::PrintCount(duration.picoseconds(), std::span(quantity_cc::kTimes).first(4));
}

std::string Print(Bytes size) { return quantity_cc::PrintCount(size.count(), quantity_cc::kSizes); }

std::string Print(Bandwidth rate) {
  return quantity_cc::PrintCount(rate.bytes_per_second(), quantity_cc::kRates);
}

std::string Print(FlopRate rate) {
  const double tera = rate.flops_per_second() / 1e12;
  for (const int digits : {6, 9, 12, 15}) {
    const std::string text = absl::StrFormat("%.*f", digits, tera);
    double back = 0;
    if (!absl::SimpleAtod(text, &back) || back * 1e12 != rate.flops_per_second()) continue;
    return absl::StrCat(absl::StripSuffix(text.substr(0, text.find_last_not_of('0') + 1), "."),
                        "Tflops");
  }
  return absl::StrFormat("%.17fTflops", tera);
}

}  // namespace orrery::cluster
