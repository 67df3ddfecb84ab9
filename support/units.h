#ifndef ORRERY_SUPPORT_UNITS_H_
#define ORRERY_SUPPORT_UNITS_H_

#include <compare>
#include <cstdint>
#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// Units are types. Time counts picoseconds and sizes count bytes, both exactly, in 64 bits: ±106
// days and ±8 EiB. What is computed in floating point is rounded once, up, by the functions at the
// end of this file; times that they compute end at kLongestDuration, 53 days.

namespace orrery {

/// A length of time in whole picoseconds.
class Duration {
 public:
  constexpr Duration() = default;
  constexpr explicit Duration(int64_t picoseconds) : picoseconds_(picoseconds) {}
  /// The least whole number of picoseconds that is not below `seconds`, at most kLongestDuration
  /// either way. Aborts unless `seconds` is a number.
  static Duration FromSeconds(double seconds);

  constexpr int64_t picoseconds() const { return picoseconds_; }
  constexpr double seconds() const { return static_cast<double>(picoseconds_) * 1e-12; }
  constexpr double microseconds() const { return static_cast<double>(picoseconds_) * 1e-6; }

  constexpr Duration& operator+=(Duration other) {
    picoseconds_ += other.picoseconds_;
    return *this;
  }
  constexpr Duration& operator-=(Duration other) {
    picoseconds_ -= other.picoseconds_;
    return *this;
  }
  friend constexpr Duration operator+(Duration a, Duration b) { return a += b; }
  friend constexpr Duration operator-(Duration a, Duration b) { return a -= b; }
  friend constexpr Duration operator*(Duration a, int64_t times) {
    return Duration(a.picoseconds_ * times);
  }
  friend constexpr auto operator<=>(Duration, Duration) = default;

 private:
  int64_t picoseconds_ = 0;
};

/// What takes longer takes this long: 2^62 - 1 ps, 53 days. Two of them can be added.
inline constexpr Duration kLongestDuration((int64_t{1} << 62) - 1);

/// The sum of two durations that are not negative, at most kLongestDuration.
constexpr Duration SaturatedSum(Duration a, Duration b) {
  return b < kLongestDuration - a ? a + b : kLongestDuration;
}

/// A moment, as the time since the step began.
using Time = Duration;

/// A number of bytes.
class Bytes {
 public:
  constexpr Bytes() = default;
  constexpr explicit Bytes(int64_t count) : count_(count) {}

  constexpr int64_t count() const { return count_; }
  constexpr Bytes& operator+=(Bytes other) {
    count_ += other.count_;
    return *this;
  }
  constexpr Bytes& operator-=(Bytes other) {
    count_ -= other.count_;
    return *this;
  }
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return a += b; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return a -= b; }
  friend constexpr Bytes operator*(Bytes a, int64_t times) { return Bytes(a.count_ * times); }
  friend constexpr auto operator<=>(Bytes, Bytes) = default;
  template <typename H>
  friend H AbslHashValue(H h, Bytes size) {
    return H::combine(std::move(h), size.count_);
  }

 private:
  int64_t count_ = 0;
};

/// A number of floating-point operations; a multiply-add counts as two. A double, because one step
/// of a large model does not fit 64 bits.
class Flops {
 public:
  constexpr Flops() = default;
  constexpr explicit Flops(double count) : count_(count) {}

  constexpr double count() const { return count_; }
  constexpr Flops& operator+=(Flops other) {
    count_ += other.count_;
    return *this;
  }
  friend constexpr Flops operator+(Flops a, Flops b) { return a += b; }
  friend constexpr auto operator<=>(Flops, Flops) = default;

 private:
  double count_ = 0;
};

/// Bytes per second, of a link or of memory.
class Bandwidth {
 public:
  constexpr Bandwidth() = default;
  constexpr explicit Bandwidth(int64_t bytes_per_second) : bytes_per_second_(bytes_per_second) {}
  /// Rates of memory are given in bytes: 2039 GB/s is 2039e9 bytes/s, rounded to whole ones.
  static Bandwidth FromGigabytesPerSecond(double gigabytes);

  constexpr int64_t bytes_per_second() const { return bytes_per_second_; }
  friend constexpr auto operator<=>(Bandwidth, Bandwidth) = default;

 private:
  int64_t bytes_per_second_ = 0;
};

/// Floating-point operations per second.
class FlopRate {
 public:
  constexpr FlopRate() = default;
  constexpr explicit FlopRate(double flops_per_second) : flops_per_second_(flops_per_second) {}
  constexpr double flops_per_second() const { return flops_per_second_; }
  friend constexpr auto operator<=>(FlopRate, FlopRate) = default;

 private:
  double flops_per_second_ = 0;
};

/// Time to move `size` at `rate`, rounded up; exact in integers, so that a message of any size is
/// off by less than one picosecond; at most kLongestDuration. Requires a positive rate.
Duration TransferTime(Bytes size, Bandwidth rate);

/// Time to move the fraction `numerator`/`denominator` of `size` at `rate`, rounded once, up: what
/// a ring moves a rank is 2(n-1)/n of the tensor. Requires positive rate and denominator.
Duration TransferTime(Bytes size, int64_t numerator, int64_t denominator, Bandwidth rate);

/// Reads "65536", "64KiB", "1.5GB", "80GiB" (decimal and binary prefixes up to T).
absl::StatusOr<Bytes> ParseBytes(absl::string_view text);

/// Reads "200Gbps" (bits) or "300GB/s" (bytes).
absl::StatusOr<Bandwidth> ParseBandwidth(absl::string_view text);

/// For people: three figures or the whole number, and a unit: "1.52 s", "4.77 GiB", "86400 s".
std::string ToString(Duration duration);
std::string ToString(Bytes size);
std::string ToString(Bandwidth rate);

std::ostream& operator<<(std::ostream& out, Duration duration);
std::ostream& operator<<(std::ostream& out, Bytes size);

}  // namespace orrery

#endif  // ORRERY_SUPPORT_UNITS_H_
