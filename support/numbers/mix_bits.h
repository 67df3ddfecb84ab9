#ifndef ORRERY_SUPPORT_NUMBERS_MIX_BITS_H_
#define ORRERY_SUPPORT_NUMBERS_MIX_BITS_H_

#include <cstdint>

namespace orrery {

/// Spreads the bits of a number over all of another: neighbours become unlike numbers, no two the
/// same one; 0 stays 0 (the finalizer of SplitMix64, Steele, Lea & Flood 2014).
constexpr uint64_t MixBits(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// By how much the counter of SplitMix64 goes on: MixBits of its multiples are its numbers.
inline constexpr uint64_t kMixStep = 0x9e3779b97f4a7c15;

/// More than 0 and less than 1: an odd multiple of 2^-53, each as likely as any where the bits are.
constexpr double OpenUnit(uint64_t bits) {
  return (static_cast<double>(bits >> 12) + 0.5) * 0x1p-52;
}

}  // namespace orrery

#endif  // ORRERY_SUPPORT_NUMBERS_MIX_BITS_H_
