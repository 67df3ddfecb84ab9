#include "simulator/traces/event_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <streambuf>

#include "nlohmann/json.hpp"

namespace orrery::simulator {
namespace event_text_test_cc {
namespace {

using nlohmann::json;

// Start and length as a reader has them.
std::pair<double, double> Read(Time start, Time finish) {
  const json span = json::parse("{" + SpanText(start, finish) + "}");
  return {span["ts"].get<double>(), span["dur"].get<double>()};
}

// Whichever way readers add: start and length, or both from where they begin to count.
TEST(SpanText, EndsBeforeWhatFollows) {
  std::mt19937_64 random(1);
  for (const int64_t longest : {int64_t{1'000'000}, int64_t{1'000'000'000'000}, int64_t{1} << 43,
                                int64_t{1} << 47, int64_t{1} << 53, int64_t{1} << 60}) {
    for (int i = 0; i < 2000; ++i) {
      const Time start(static_cast<int64_t>(random() % static_cast<uint64_t>(longest)));
      const Time finish = start + Duration(1 + static_cast<int64_t>(random() % 100'000'000));
      const auto [ts, dur] = Read(start, finish);
      const double next = Read(finish, finish + Duration(1000)).first;
      const double origin = static_cast<double>(start.picoseconds() / 2) / 1e6;
      EXPECT_LE(ts + dur, next) << longest;
      EXPECT_LE((ts - origin) + dur, next - origin) << longest;
    }
  }
}

TEST(SpanText, KeepsPicosecondsForASecond) {
  EXPECT_EQ(SpanText(Time(1'000'000), Time(3'000'002)), "\"ts\":1.000000,\"dur\":2.000001999");
  EXPECT_EQ(SpanText(Time(0), Time(1)), "\"ts\":0.000000,\"dur\":0.000000999");
}

// Remembers how much it was given at once.
class Widest : public std::streambuf {
 public:
  std::streamsize most = 0, all = 0;

 protected:
  std::streamsize xsputn(const char*, std::streamsize count) override {
    most = std::max(most, count);
    all += count;
    return count;
  }
};

TEST(EventText, HoldsLittle) {
  Widest widest;
  std::ostream out(&widest);
  EventText text(out);
  text.Begin("[");
  for (int i = 0; i < 200'000; ++i) text.Event("{\"name\":\"", i, "\"}");
  text.End("]");
  EXPECT_GT(widest.all, 3'000'000);
  EXPECT_LT(widest.most, 1 << 17);
}

}  // namespace
}  // namespace event_text_test_cc
}  // namespace orrery::simulator
