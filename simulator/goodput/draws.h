#ifndef ORRERY_SIMULATOR_GOODPUT_DRAWS_H_
#define ORRERY_SIMULATOR_GOODPUT_DRAWS_H_

#include <cmath>
#include <cstdint>

#include "support/numbers/mix_bits.h"

namespace orrery::simulator::goodput {

/// A length of time of which the ends are known: drawn evenly between them.
struct Spread {
  double low_s = 0, high_s = 0;

  double mean_s() const { return (low_s + high_s) / 2; }
};

/// Random numbers that follow from what they are for, a seed, a trial and a purpose, alone: the
/// same on any machine, and whichever thread draws them.
class Draws {
 public:
  Draws(uint64_t seed, uint64_t trial, uint64_t purpose)
      : state_(Next(Next(Next(seed) + trial) + purpose)) {}

  /// More than 0, less than 1.
  double Uniform() {
    state_ += kMixStep;
    return OpenUnit(MixBits(state_));
  }
  /// With that mean.
  double Exponential(double mean) { return -mean * std::log(Uniform()); }
  /// Evenly within it.
  double Within(Spread spread) {
    // Nothing is drawn where there is no choice.
    if (spread.low_s == spread.high_s) return spread.low_s;
    return spread.low_s + (spread.high_s - spread.low_s) * Uniform();
  }

 private:
  static constexpr uint64_t Next(uint64_t x) { return MixBits(x + kMixStep); }

  uint64_t state_;
};

}  // namespace orrery::simulator::goodput

#endif  // ORRERY_SIMULATOR_GOODPUT_DRAWS_H_
