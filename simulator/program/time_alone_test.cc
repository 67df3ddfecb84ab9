#include "simulator/program/time_alone.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace orrery::simulator {
namespace time_alone_test_cc {
namespace {

constexpr Duration kForever(std::numeric_limits<int64_t>::max());

// A link: what it can carry, and how often a flow crosses it.
struct Link {
  int64_t capacity = 0;
  double load = 1;
};

// The times of a flow of that size, rate and latency that loads these links.
struct Alone {
  Alone(int64_t size, int64_t rate, const std::vector<Link>& links, Duration latency = {}) {
    Program program;
    std::vector<Load> loads;
    for (const Link& link : links) {
      loads.push_back({program.AddResource({.capacity = Bandwidth(link.capacity)}), link.load});
    }
    const Flow flow{
        .size = Bytes(size), .rate = Bandwidth(rate), .latency = latency, .loads = loads};
    time = TimeAlone(flow, program);
    send = SendTimeAlone(flow, program);
  }

  Duration time, send;
};

TEST(TimeAlone, IsLatencyAndSizeOverRateRoundedUp) {
  const auto time = [](int64_t size, int64_t rate, int64_t latency_ps) {
    return TimeAlone(
        {.size = Bytes(size), .rate = Bandwidth(rate), .latency = Duration(latency_ps)});
  };
  EXPECT_EQ(time(1000, 1'000'000'000'000, 7), Duration(1007));
  EXPECT_EQ(time(10, 3, 5), Duration(3'333'333'333'334 + 5));
  EXPECT_EQ(time(1, 1'000'000'000'001, 0), Duration(1));
  EXPECT_EQ(time(0, 1, 9), Duration(9));
  EXPECT_EQ(time(5'000'000, 25'000'000'000, 500), Duration(200'000'000 + 500));
}

TEST(TimeAlone, EndsAtTheEndOfTime) {
  const Flow late{.size = Bytes(1), .rate = Bandwidth(1), .latency = kForever};
  EXPECT_EQ(TimeAlone(late), kEndOfTime);
  EXPECT_EQ(TimeAlone(late, Program()), kEndOfTime);
  const Flow large{.size = Bytes(int64_t{1} << 60), .rate = Bandwidth(1), .latency = Duration(5)};
  EXPECT_EQ(TimeAlone(large), kEndOfTime);
  EXPECT_EQ(TimeAlone(large, Program()), kEndOfTime);
  EXPECT_EQ(SendTimeAlone(large, Program()), kEndOfTime);
  // 2^22 s are within, 2^23 s are not.
  EXPECT_EQ(SendTimeAlone({.size = Bytes(1 << 22), .rate = Bandwidth(1)}, Program()),
            Duration(4'194'304'000'000'000'000));
  EXPECT_EQ(SendTimeAlone({.size = Bytes(1 << 23), .rate = Bandwidth(1)}, Program()), kEndOfTime);
}

// 600 bytes: 100 bytes/s take 6 s.
TEST(TimeAlone, IsThatOfTheNarrowestResource) {
  constexpr int64_t kSecond = 1'000'000'000'000;
  const auto send = [](const std::vector<Link>& links) { return Alone(600, 100, links).send; };
  EXPECT_EQ(send({}), Duration(6 * kSecond));
  EXPECT_EQ(send({{.capacity = 200}}), Duration(6 * kSecond));
  EXPECT_EQ(send({{.capacity = 60}}), Duration(10 * kSecond));
  EXPECT_EQ(send({{.capacity = 150, .load = 3}}), Duration(12 * kSecond));
  EXPECT_EQ(send({{.capacity = 60, .load = 0.5}}), Duration(6 * kSecond));
  EXPECT_EQ(send({{.capacity = 300}, {.capacity = 50}, {.capacity = 60}}), Duration(12 * kSecond));
  EXPECT_EQ(send({{.capacity = 30, .load = 0.5}, {.capacity = 40}}), Duration(15 * kSecond));
  EXPECT_EQ(send({{.capacity = 75, .load = 1.5}, {.capacity = 99}}), Duration(12 * kSecond));
}

TEST(TimeAlone, HasTheLatencyOnTopOfTheSending) {
  const Alone alone(600, 100, {{.capacity = 60}}, Duration(77));
  EXPECT_EQ(alone.send, Duration(10'000'000'000'000));
  EXPECT_EQ(alone.time, Duration(10'000'000'000'077));
}

// By the meaning of rounding up: t picoseconds are enough, and one less is not.
TEST(TimeAlone, IsExactForLoadsThatAreShortFractions) {
  using Wide = __int128;
  constexpr Wide kPicoseconds = 1'000'000'000'000;
  std::mt19937_64 random(4);
  for (int round = 0; round < 2000; ++round) {
    const auto size = static_cast<int64_t>(1 + random() % (uint64_t{1} << (1 + random() % 36)));
    const auto capacity = static_cast<int64_t>(1'000'000 + random() % 100'000'000'000);
    const auto eighths = static_cast<int64_t>(1 + random() % 1'000);
    const Alone alone(size, std::numeric_limits<int64_t>::max(),
                      {{.capacity = capacity, .load = static_cast<double>(eighths) / 8}});
    const Wide time = alone.send.picoseconds();
    const Wide work = Wide{size} * eighths * kPicoseconds;
    EXPECT_GE(time * capacity * 8, work) << size << " x " << eighths << "/8 at " << capacity;
    EXPECT_LT((time - 1) * capacity * 8, work) << size << " x " << eighths << "/8 at " << capacity;
  }
}

// 2,102,925 bytes at 27.5 GB/s are 76,470,000 ps; 20/11 is no binary fraction, and the next one is
// a little more. Half a picosecond is one still.
TEST(TimeAlone, ARoundedLoadAddsNothing) {
  constexpr int64_t kFast = int64_t{1} << 62;
  const auto send = [](int64_t size, const Link& link) { return Alone(size, kFast, {link}).send; };
  constexpr int64_t kRate = 50'000'000'000;
  EXPECT_EQ(send(2'102'925, {.capacity = kRate, .load = 20.0 / 11}), Duration(76'470'000));
  EXPECT_EQ(send(2'102'925, {.capacity = kRate, .load = 10.0 / 11}), Duration(38'235'000));
  EXPECT_EQ(send(1, {.capacity = 2'000'000'000'000 / 11 * 20, .load = 20.0 / 11}), Duration(1));
}

TEST(TimeAlone, TakesLoadsOfManyAndOfFewTransfers) {
  constexpr int64_t kFast = int64_t{1} << 62;
  const auto send = [](int64_t size, const Link& link) { return Alone(size, kFast, {link}).send; };
  // 2^20 transfers of 3 bytes at 2^20 bytes/s; a 2^20th of 2^30 bytes at 1024 bytes/s.
  EXPECT_EQ(send(3, {.capacity = 1 << 20, .load = 1 << 20}), Duration(3'000'000'000'000));
  EXPECT_EQ(send(1 << 30, {.capacity = 1024, .load = 1.0 / (1 << 20)}),
            Duration(1'000'000'000'000));
  // 80 TiB, a tenth of it at 8 TiB/s: the product leaves 128 bits. To the picosecond, although a
  // tenth is no binary fraction.
  EXPECT_EQ(send(10 * (int64_t{1} << 43), {.capacity = int64_t{1} << 43, .load = 0.1}),
            Duration(1'000'000'000'000));
  EXPECT_EQ(send(10 * (int64_t{1} << 43), {.capacity = int64_t{1} << 45, .load = 0.3}),
            Duration(750'000'000'000));
}

// A product of 2^128 and a little more must not wrap around to nothing.
TEST(TimeAlone, OfAHugeLoadIsTheEndOfTime) {
  constexpr int64_t kSize = 618'970'019'642'691;  // times 2^39 and 10^12: just above 2^128
  EXPECT_EQ(Alone(kSize, 1'000'000'000'000,
                  {{.capacity = 1'000'000'000, .load = static_cast<double>(int64_t{1} << 39)}})
                .send,
            kEndOfTime);
}

TEST(TimeAloneDeathTest, NeedsARateAndASize) {
  EXPECT_DEATH(TimeAlone({.size = Bytes(1)}), "1 B");
  EXPECT_DEATH(TimeAlone({.size = Bytes(-1), .rate = Bandwidth(1)}, Program()), "-1 B");
}

}  // namespace
}  // namespace time_alone_test_cc
}  // namespace orrery::simulator
