#include "cost_models/collectives/rounds.h"

#include <algorithm>
#include <limits>

#include "support/check.h"

namespace orrery::cost_models {
namespace rounds_cc {
namespace {

// Dividend over a positive divisor, rounded down, and up.
int64_t Floor(int64_t dividend, int64_t divisor) {
  return dividend / divisor - (dividend % divisor < 0 ? 1 : 0);
}
int64_t Ceiling(int64_t dividend, int64_t divisor) { return -Floor(-dividend, divisor); }

}  // namespace
}  // namespace rounds_cc

int64_t ActiveRepetitions(const Transfer& transfer, const Round& round, int64_t parts) {
  if (!round.pipelined) return round.repeat;
  ORRERY_CHECK(round.shift > 0 && transfer.parts == transfer.messages)
      << "a pipeline that does not move on";
  const int64_t begin = rounds_cc::Ceiling(-transfer.first_part, round.shift);
  const int64_t end = rounds_cc::Ceiling(parts - transfer.first_part, round.shift);
  return std::max<int64_t>(0, std::min(end, round.repeat) - std::max<int64_t>(begin, 0));
}

int64_t FirstPart(const Transfer& transfer, const Round& round, int64_t repetition, int64_t parts) {
  const int64_t part = transfer.first_part + repetition * (round.shift + transfer.shift);
  if (round.pipelined) return part >= 0 && part < parts ? part : -1;
  return Wrap(part, parts);
}

int64_t Wrap(int64_t part, int64_t parts) {
  const int64_t rest = part % parts;
  return rest < 0 ? rest + parts : rest;
}

int64_t RepetitionCount(const Rounds& rounds) {
  int64_t count = 0;
  for (const Round& round : rounds.rounds) count += round.repeat;
  return count;
}

int64_t TransferCount(const Rounds& rounds) {
  double count = 0;
  for (const Round& round : rounds.rounds) {
    double transfers = static_cast<double>(round.transfers.size());
    if (round.all_pairs)
      transfers += static_cast<double>(int64_t{rounds.ranks} * (rounds.ranks - 1));
    count += static_cast<double>(round.repeat) * transfers;
  }
  return count < 9e18 ? static_cast<int64_t>(count) : std::numeric_limits<int64_t>::max();
}

}  // namespace orrery::cost_models
