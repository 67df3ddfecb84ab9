#ifndef ORRERY_SIMULATOR_JITTER_DRAWS_H_
#define ORRERY_SIMULATOR_JITTER_DRAWS_H_

#include <cstdint>

#include "support/numbers/mix_bits.h"

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
      : state_(Next(Next(Next(seed + kMixStep * (1 + static_cast<uint64_t>(purpose))) +
                         static_cast<uint32_t>(step)) +
                    static_cast<uint32_t>(rank))) {}

  /// Number `index`, more than 0 and less than 1: odd multiples of 2^-54, each as likely as any.
  double Uniform(int64_t index = 0) const {
    return OpenUnit(Next(state_ + kMixStep * static_cast<uint64_t>(index)));
  }

 private:
  static constexpr uint64_t Next(uint64_t x) { return MixBits(x + kMixStep); }

  uint64_t state_;
};

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_JITTER_DRAWS_H_
