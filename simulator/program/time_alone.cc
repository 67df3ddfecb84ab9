#include "simulator/program/time_alone.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "support/check.h"

namespace orrery::simulator {
namespace time_alone_cc {
namespace {

using Wide = unsigned __int128;

constexpr Wide kPicosecondsPerSecond = 1'000'000'000'000;
constexpr int kPicosecondBits = 40;  // of that number
constexpr int kSlackParts = 1024;
constexpr double kSlack = 1.0 / kSlackParts;

Duration Saturated(Wide picoseconds) {
  const Wide end = static_cast<Wide>(kEndOfTime.picoseconds());
  return Duration(static_cast<int64_t>(std::min(picoseconds, end)));
}

// All but a rest of `slack`, which counts as none.
Duration RoundedUp(Wide dividend, Wide divisor, Wide slack) {
  return Saturated(dividend / divisor + (dividend % divisor <= slack ? 0 : 1));
}

// A positive number as whole × 2^exponent, with the least whole number that does.
struct Binary {
  uint64_t whole;
  int exponent;
};

Binary Split(double number) {
  int exponent = 0;
  const double fraction = std::frexp(number, &exponent);
  const auto whole = static_cast<uint64_t>(std::ldexp(fraction, 53));
  const int zeros = std::countr_zero(whole);
  return {.whole = whole >> zeros, .exponent = exponent - 53 + zeros};
}

// Whether a load is as it was meant. One of more digits, such as 20/11, was rounded itself.
bool IsShort(const Binary& load) {
  constexpr int kShortBits = 32;
  return std::bit_width(load.whole) <= kShortBits;
}

// size × load / capacity, rounded up. What a rounded load adds to a whole number of picoseconds
// counts for nothing: two flows of half the load, which share, do not see it either.
Duration SendTime(Bytes size, double load, Bandwidth capacity) {
  const Binary times = Split(load);
  const auto bytes = static_cast<uint64_t>(size.count());
  const auto rate = static_cast<uint64_t>(capacity.bytes_per_second());
  const auto up = static_cast<unsigned>(std::max(times.exponent, 0));
  const auto down = static_cast<unsigned>(std::max(-times.exponent, 0));
  const bool fits =
      std::bit_width(bytes) + std::bit_width(times.whole) + kPicosecondBits + up < 128;
  if (fits && std::bit_width(rate) + down < 128) {
    const Wide divisor = static_cast<Wide>(rate) << down;
    return RoundedUp((static_cast<Wide>(bytes) * times.whole * kPicosecondsPerSecond) << up,
                     divisor, IsShort(times) ? Wide{0} : divisor / kSlackParts);
  }
  const double picoseconds = static_cast<double>(bytes) * load / static_cast<double>(rate) * 1e12;
  if (picoseconds >= static_cast<double>(kEndOfTime.picoseconds())) return kEndOfTime;
  return Duration(static_cast<int64_t>(std::ceil(picoseconds - kSlack)));
}

}  // namespace
}  // namespace time_alone_cc

Duration TimeAlone(const Flow& flow) {
  ORRERY_CHECK(flow.rate > Bandwidth(0) && flow.size >= Bytes(0)) << flow.size;
  const Duration send = time_alone_cc::SendTime(flow.size, 1, flow.rate);
  return Later(send, flow.latency);
}

Duration TimeAlone(const Flow& flow, const Program& program) {
  if (!flow.legs.empty()) {
    Duration all;
    for (const Leg& leg : flow.legs) {
      all = Later(all, leg.before);
      if (!leg.flow.valid()) continue;
      all = Later(all, std::max(TimeAlone(program.flow(leg.flow), program), leg.beside));
    }
    return all;
  }
  return Later(SendTimeAlone(flow, program), flow.latency);
}

Duration LegDelayOfTask(const LegDelay& delay, const Program& program) {
  const Flow chain = program.flow(program.flow_of(delay.task));
  const Leg& leg = chain.legs[static_cast<size_t>(delay.leg)];
  const Duration alone = TimeAlone(program.flow(leg.flow), program);
  return std::max(alone + delay.time, leg.beside) - std::max(alone, leg.beside);
}

Duration SendTimeAlone(const Flow& flow, const Program& program) {
  ORRERY_CHECK(flow.rate > Bandwidth(0) && flow.size >= Bytes(0)) << flow.size;
  Duration longest = time_alone_cc::SendTime(flow.size, 1, flow.rate);
  // The division is dear, and most links of a route are as fast as the narrowest or faster.
  double lowest = static_cast<double>(flow.rate.bytes_per_second());
  for (const Load& load : flow.loads) {
    const Bandwidth capacity = program.resource(load.resource).capacity;
    if (static_cast<double>(capacity.bytes_per_second()) >= lowest * load.load) continue;
    lowest = static_cast<double>(capacity.bytes_per_second()) / load.load;
    longest = std::max(longest, time_alone_cc::SendTime(flow.size, load.load, capacity));
  }
  return longest;
}

}  // namespace orrery::simulator
