#ifndef ORRERY_IR_OPS_CHANCE_H_
#define ORRERY_IR_OPS_CHANCE_H_

#include <cstdint>

// What dropout draws: the same on every run, and whichever part of a tensor a rank holds.

namespace orrery::ir {

/// A number in [0, 1) of each position: the finalizer of MurmurHash3 over seed and position.
inline double Chance(int64_t seed, int64_t position) {
  uint64_t bits =
      static_cast<uint64_t>(seed) * 0x9e3779b97f4a7c15U + static_cast<uint64_t>(position);
  for (const uint64_t factor : {0xff51afd7ed558ccdU, 0xc4ceb9fe1a85ec53U}) {
    bits = (bits ^ (bits >> 33)) * factor;
  }
  return static_cast<double>((bits ^ (bits >> 33)) >> 11) / 9007199254740992.0;  // 2^53
}

}  // namespace orrery::ir

#endif  // ORRERY_IR_OPS_CHANCE_H_
