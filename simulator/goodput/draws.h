#ifndef ORRERY_SIMULATOR_GOODPUT_DRAWS_H_
#define ORRERY_SIMULATOR_GOODPUT_DRAWS_H_

#include <cmath>
#include <cstdint>

namespace orrery::simulator::goodput {

/// A length of time of which the ends are known: drawn evenly between them.
struct Spread {
  double low_s = 0, high_s = 0;

  double mean_s() const { return (low_s + high_s) / 2; }
};

/// Random numbers that follow from what they are for, a seed, a trial and a purpose, alone: the
/// same on any machine, and whichever thread draws them (SplitMix64, Steele et al. 2014).
class Draws {
 public:
  Draws(uint64_t seed, uint64_t trial, uint64_t purpose)
      : state_(Mix(Mix(Mix(seed) + trial) + purpose)) {}

  /// More than 0, at most 1.
  double Uniform() {
    state_ += kStep;
    return static_cast<double>((Mix(state_) >> 11) + 1) * 0x1p-53;
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
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15;

  static constexpr uint64_t Mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return (x ^ (x >> 31)) + kStep;
  }

  uint64_t state_;
};

}  // namespace orrery::simulator::goodput

#endif  // ORRERY_SIMULATOR_GOODPUT_DRAWS_H_
