#include "support/units.h"

#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace orrery {
namespace units_test_cc {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(TransferTime, RoundsUpOnce) {
  EXPECT_EQ(TransferTime(Bytes(0), Bandwidth(1)), Duration(0));
  EXPECT_EQ(TransferTime(Bytes(1), Bandwidth(1)), Duration(1'000'000'000'000));
  EXPECT_EQ(TransferTime(Bytes(1), Bandwidth(3)), Duration(333'333'333'334));
  EXPECT_EQ(TransferTime(Bytes(2), Bandwidth(3)), Duration(666'666'666'667));
  EXPECT_EQ(TransferTime(Bytes(3), Bandwidth(3)), Duration(1'000'000'000'000));
  EXPECT_EQ(TransferTime(Bytes(1), Bandwidth(kMax)), Duration(1));
}

TEST(TransferTime, OfAFraction) {
  // A ring of 8 moves 2*7/8 of 1 GiB a rank; at 25 GB/s that is 75.161927680 ms.
  const Bytes size(1 << 30);
  EXPECT_EQ(TransferTime(size, 14, 8, Bandwidth(25'000'000'000)), Duration(75'161'927'680));
  EXPECT_EQ(TransferTime(size, 0, 8, Bandwidth(1)), Duration(0));
  // Rounded once: a third of a byte three times is one byte.
  EXPECT_EQ(TransferTime(Bytes(3), 1, 3, Bandwidth(7)), TransferTime(Bytes(1), Bandwidth(7)));
}

// The least d with d * denominator * rate >= size * numerator * 1e12, checked by these inequalities
// in 128 bits rather than by another division.
void ExpectExact(int64_t size, int64_t numerator, int64_t denominator, int64_t rate) {
  using Wide = __int128;
  const Duration time = TransferTime(Bytes(size), numerator, denominator, Bandwidth(rate));
  const Wide wanted = static_cast<Wide>(size) * numerator * 1'000'000'000'000;
  const Wide unit = static_cast<Wide>(denominator) * rate;
  EXPECT_GE(unit * time.picoseconds(), wanted) << size << " " << numerator << "/" << denominator;
  EXPECT_LT(unit * (static_cast<Wide>(time.picoseconds()) - 1), wanted) << size << " " << rate;
}

TEST(TransferTime, IsExactForRandomSizesAndRates) {
  std::mt19937_64 random(7);
  const auto up_to = [&](size_t bits) {
    return static_cast<int64_t>(random() >> (63 - random() % bits)) + 1;  // of any length
  };
  for (int i = 0; i < 20000; ++i) {
    const int64_t ranks = up_to(10) + 1;
    // At most 2^44 bytes at 2^22 B/s or more: within 53 days.
    ExpectExact(up_to(43), 2 * (ranks - 1), ranks, (int64_t{1} << 22) + up_to(40));
    ExpectExact(up_to(20), 1, 1, up_to(30) + 1);
  }
}

TEST(TransferTimeDeathTest, RefusesWhatHasNoAnswer) {
  EXPECT_DEATH(TransferTime(Bytes(1), Bandwidth(0)), "CHECK failed");
  EXPECT_DEATH(TransferTime(Bytes(-1), Bandwidth(1)), "CHECK failed");
  EXPECT_DEATH(TransferTime(Bytes(1), 1, 0, Bandwidth(1)), "CHECK failed");
}

// Regression: the product wrapped around in 128 bits and gave a short time. It stops now.
TEST(TransferTime, IsAtMostTheLongest) {
  EXPECT_EQ(TransferTime(Bytes(kMax), Bandwidth(1)), kLongestDuration);
  EXPECT_EQ(TransferTime(Bytes(kMax), kMax, kMax, Bandwidth(kMax)), kLongestDuration);
  EXPECT_EQ(Duration::FromSeconds(1e7), kLongestDuration);
  EXPECT_EQ(Duration::FromSeconds(-1e300), Duration(-kLongestDuration.picoseconds()));
}

TEST(Duration, SumsEndAtTheLongest) {
  constexpr Duration kOne(1);
  EXPECT_EQ(SaturatedSum(Duration(3), Duration(4)), Duration(7));
  EXPECT_EQ(SaturatedSum(kLongestDuration - kOne - kOne, kOne), kLongestDuration - kOne);
  EXPECT_EQ(SaturatedSum(kLongestDuration - kOne, kOne), kLongestDuration);
  EXPECT_EQ(SaturatedSum(kLongestDuration, Duration(0)), kLongestDuration);
  EXPECT_EQ(SaturatedSum(kLongestDuration, kLongestDuration), kLongestDuration);
  EXPECT_EQ(SaturatedSum(kLongestDuration + kOne, kLongestDuration + kOne), kLongestDuration);
}

TEST(Duration, AddsAndScales) {
  Duration sum(5);
  sum += Duration(7);
  sum -= Duration(2);
  EXPECT_EQ(sum, Duration(10));
  EXPECT_EQ(sum + Duration(1) - Duration(3), Duration(8));
  EXPECT_EQ(sum * 3, Duration(30));
  EXPECT_LT(Duration(-1), Duration());
}

TEST(Duration, ConvertsToAndFromSeconds) {
  EXPECT_EQ(Duration::FromSeconds(0), Duration(0));
  EXPECT_EQ(Duration::FromSeconds(1.5), Duration(1'500'000'000'000));
  EXPECT_EQ(Duration::FromSeconds(1e-13), Duration(1));  // up
  EXPECT_EQ(Duration::FromSeconds(-1e-13), Duration(0));
  EXPECT_EQ(Duration::FromSeconds(0.5e-12), Duration(1));
  EXPECT_DOUBLE_EQ(Duration(2'500'000).microseconds(), 2.5);
  EXPECT_DOUBLE_EQ(Duration(2'500'000'000'000).seconds(), 2.5);
}

TEST(Duration, IsNeverShorterThanItsSeconds) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 10000; ++i) {
    const Duration duration(static_cast<int64_t>(random() >> (12 + random() % 50)));
    const Duration again = Duration::FromSeconds(duration.seconds());
    EXPECT_GE(again, duration);
    EXPECT_LE(again, duration + Duration(1));
  }
}

TEST(DurationDeathTest, RefusesWhatIsNoNumber) {
  EXPECT_EQ(Duration::FromSeconds(std::numeric_limits<double>::infinity()), kLongestDuration);
  EXPECT_DEATH(Duration::FromSeconds(std::numeric_limits<double>::quiet_NaN()), "nan s");
}

TEST(Duration, PrintsThreeFiguresAndAUnit) {
  const std::vector<std::pair<int64_t, std::string>> rows = {
      {0, "0.00 ns"},
      {1, "1 ps"},  // regression: was "0.00 ns"
      {-999, "-999 ps"},
      {1'000, "1.00 ns"},
      {12'340, "12.3 ns"},
      {123'400, "123 ns"},
      {1'520'000'000'000, "1.52 s"},
      {-12'340'000, "-12.3 us"},  // regression: was "-12.34 us"
      {9'996'000, "10.0 us"},     // regression: was "10.00 us"
      {99'960'000'000, "100 ms"},
      {999'600'000'000, "1.00 s"},  // regression: was "1000 ms"
      {999'400'000'000, "999 ms"},
      {4'000'000'000'000'000, "4000 s"},
  };
  for (const auto& [picoseconds, text] : rows) EXPECT_EQ(ToString(Duration(picoseconds)), text);
  std::ostringstream out;
  out << Duration(2'000'000) << " " << Bytes(512);
  EXPECT_EQ(out.str(), "2.00 us 512 B");
}

TEST(Bytes, PrintsThreeFiguresAndAUnit) {
  const std::vector<std::pair<int64_t, std::string>> rows = {
      {0, "0 B"},
      {1023, "1023 B"},
      {1024, "1.00 KiB"},
      {65536, "64.0 KiB"},
      {5'121'000'000, "4.77 GiB"},
      {int64_t{80} << 30, "80.0 GiB"},
      {int64_t{300} << 40, "300 TiB"},
      {-5, "-5 B"},
  };
  for (const auto& [count, text] : rows) EXPECT_EQ(ToString(Bytes(count)), text);
  EXPECT_EQ(ToString(Bandwidth(25'000'000'000)), "25.0 GB/s");
}

// One picosecond or byte on either side of where the text changes.
TEST(Duration, ChangesItsUnitWhereItWouldRoundToAThousand) {
  const std::vector<std::pair<int64_t, std::string>> rows = {
      {999, "999 ps"},
      {1'000, "1.00 ns"},
      {9'994, "9.99 ns"},
      {9'996, "10.0 ns"},
      {99'940, "99.9 ns"},
      {99'960, "100 ns"},
      {999'499, "999 ns"},
      {999'500, "1.00 us"},
      {999'499'999, "999 us"},
      {999'500'000, "1.00 ms"},
      {999'499'999'999, "999 ms"},
      {999'500'000'000, "1.00 s"},
      {-999'500'000'000, "-1.00 s"},
      {-1'000, "-1.00 ns"},
      {-1, "-1 ps"},
  };
  for (const auto& [picoseconds, text] : rows) EXPECT_EQ(ToString(Duration(picoseconds)), text);
}

TEST(Bytes, ChangeTheirUnitAtPowersOf1024) {
  const int64_t mib = int64_t{1} << 20, gib = int64_t{1} << 30, tib = int64_t{1} << 40;
  const std::vector<std::pair<int64_t, std::string>> rows = {
      {mib - 1, "1024 KiB"}, {mib, "1.00 MiB"}, {gib - 1, "1024 MiB"},    {gib, "1.00 GiB"},
      {tib - 1, "1024 GiB"}, {tib, "1.00 TiB"}, {5 * tib / 2, "2.50 TiB"}};
  for (const auto& [count, text] : rows) EXPECT_EQ(ToString(Bytes(count)), text);
  EXPECT_EQ(ToString(Bandwidth(9'994'000'000)), "9.99 GB/s");
  EXPECT_EQ(ToString(Bandwidth(1'250'000'000'000)), "1250 GB/s");
}

TEST(Bytes, AreLessThanNineQuintillion) {
  EXPECT_EQ(ParseBytes("8999999TB").value(), Bytes(8'999'999'000'000'000'000));
  EXPECT_FALSE(ParseBytes("9000000TB").ok());
  EXPECT_EQ(ParseBytes("0.5B").value(), Bytes(1));  // to the nearest, half up
  EXPECT_EQ(ParseBytes("0.49B").value(), Bytes(0));
  EXPECT_EQ(ParseBytes("1MiB").value(), Bytes(1 << 20));
  EXPECT_EQ(ParseBytes("1MB").value(), Bytes(1'000'000));
}

TEST(Bytes, Parses) {
  const std::vector<std::pair<std::string, int64_t>> rows = {
      {"0", 0},
      {"65536", 65536},
      {"64KiB", 65536},
      {"64 KiB", 65536},
      {"1.5GB", 1'500'000'000},
      {"80GiB", 85'899'345'920},
      {"2TiB", int64_t{2} << 40},
      {"2TB", 2'000'000'000'000},
      {"3KB", 3000},
      {"3kB", 3000},
      {"1e3B", 1000},
      {"7B", 7},
      {"9223372036854775807", kMax},
  };
  for (const auto& [text, count] : rows) {
    const auto bytes = ParseBytes(text);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    EXPECT_EQ(bytes->count(), count) << text;
  }
}

TEST(Bytes, RefusesGarbage) {
  for (const std::string text :
       {"",           " ",     "B",      "GB",    "-1",   "-1KiB", "1.5",    "12 parsecs",
        "10EB",       "64kib", "64KiBs", "1,5GB", "nanB", "infGB", "1e30GB", "9223372036854775808",
        "9000000TiB", "0x10B", "1e",     "64K"}) {
    EXPECT_EQ(ParseBytes(text).status().message(),
              "'" + text + "' is no size; wanted a number with a unit such as 64KiB or 80GB");
  }
}

TEST(Bandwidth, Parses) {
  const std::vector<std::pair<std::string, int64_t>> rows = {
      {"200Gbps", 25'000'000'000}, {"300GB/s", 300'000'000'000},    {"0.5Tbps", 62'500'000'000},
      {"8Mbps", 1'000'000},        {"3.35TB/s", 3'350'000'000'000}, {"12.5MB/s", 12'500'000},
  };
  for (const auto& [text, rate] : rows) {
    const auto bandwidth = ParseBandwidth(text);
    ASSERT_TRUE(bandwidth.ok()) << bandwidth.status();
    EXPECT_EQ(bandwidth->bytes_per_second(), rate) << text;
  }
  EXPECT_EQ(Bandwidth::FromGigabytesPerSecond(0.5), Bandwidth(500'000'000));
}

TEST(Bandwidth, RefusesGarbage) {
  for (const std::string text : {"", "200", "200Gb", "-200Gbps", "0GB/s", "GB/s", "fastGbps",
                                 "1e30TB/s", "nanGbps", "0x10Gbps", "200gbps", "200Gbps "}) {
    EXPECT_EQ(ParseBandwidth(text).status().message(),
              "'" + text +
                  "' is no bandwidth; wanted a positive number with a unit, such as "
                  "200Gbps (bits) or 300GB/s (bytes)");
  }
}

}  // namespace
}  // namespace units_test_cc
}  // namespace orrery
