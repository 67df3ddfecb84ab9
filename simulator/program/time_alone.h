#ifndef ORRERY_SIMULATOR_PROGRAM_TIME_ALONE_H_
#define ORRERY_SIMULATOR_PROGRAM_TIME_ALONE_H_

#include <algorithm>
#include <cstdint>

#include "simulator/program/program.h"
#include "simulator/program/trace.h"
#include "support/units.h"

// How long a flow takes that has the network to itself: what every network model comes back to when
// nothing is shared. All of these stop at `kEndOfTime`, however large the flow.

namespace orrery::simulator {

/// No run goes on beyond this moment (53 days). Two such times add up without overflow.
inline constexpr Time kEndOfTime = kLongestDuration;

/// So long after a moment, or the end of time.
constexpr Time Later(Time time, Duration duration) {
  return std::min(kEndOfTime, time + std::min(duration, kEndOfTime));
}

/// Time of a message that has its path to itself, or of a flow that loads nothing: latency + size /
/// rate (the Hockney model, 1994), rounded up.
Duration TimeAlone(const Flow& flow);

/// The same for a flow of `program`, whose resources bound its rate too, to capacity / load:
/// latency
/// + size / (the lowest rate), rounded up; exact in integers wherever a load is a whole number or
/// a short binary fraction. Of a chain, all that is in it, one after the other.
Duration TimeAlone(const Flow& flow, const Program& program);

/// The part of that during which bytes enter the links: all but the latency. Of no chain.
Duration SendTimeAlone(const Flow& flow, const Program& program);

/// By how much a flow that took longer made the task of its chain take longer: what goes on beside
/// it hides the rest.
Duration LegDelayOfTask(const LegDelay& delay, const Program& program);

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_PROGRAM_TIME_ALONE_H_
