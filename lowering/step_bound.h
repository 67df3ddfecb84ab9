#ifndef ORRERY_LOWERING_STEP_BOUND_H_
#define ORRERY_LOWERING_STEP_BOUND_H_

#include "support/units.h"

namespace orrery::lowering {

/// What is known of a step before it is played.
struct StepBound {
  Duration time;             // at least (TimesOf)
  Duration likely_time;      // about (TimesOf)
  Bytes peak;                // of the fullest rank at least (BoundPeaks), with what is fragmented
  bool may_fit = true;       // no rank's is more than it has
  Bytes likely_peak;         // about, likewise
  double communication = 0;  // about, as in Report: communication_overhead
};

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_STEP_BOUND_H_
