#ifndef ORRERY_SIMULATOR_JITTER_DRAWS_H_
#define ORRERY_SIMULATOR_JITTER_DRAWS_H_

#include <cstdint>

// Random numbers that follow from a seed and from what they are for, and from nothing else: not
// from which others were drawn before, nor on which thread. So a rank draws the same whether it is
// simulated by itself or among others, and taking one source of jitter away leaves the draws of
// all others as they are.

namespace orrery::simulator {

/// What a number is drawn for; each has numbers of its own.
enum class DrawFor : uint8_t { kKernel, kStep, kRank, kDevice, kPause };

/// The draws of a rank in a step, one an index. Of what is drawn once a run, step is -1; of what is
/// drawn for all ranks, rank is -1.
class Draws {
 public:
  Draws(uint64_t seed, DrawFor purpose, int32_t step, int32_t rank)
      : state_(Mix(Mix(Mix(seed + kOdd * (1 + static_cast<uint64_t>(purpose))) +
                       static_cast<uint32_t>(step)) +
                   static_cast<uint32_t>(rank))) {}

  /// Number `index`, more than 0 and less than 1: odd multiples of 2^-54, each as likely as any.
  double Uniform(int64_t index = 0) const {
    const uint64_t bits = Mix(state_ + kOdd * static_cast<uint64_t>(index));
    return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53;
  }

 private:
  static constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;

  // The finalizer of SplitMix64 (Steele, Lea & Flood 2014), by which its counter becomes a number.
  static constexpr uint64_t Mix(uint64_t x) {
    x += kOdd;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }

  uint64_t state_;
};

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_JITTER_DRAWS_H_
