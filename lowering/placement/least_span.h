#ifndef ORRERY_LOWERING_PLACEMENT_LEAST_SPAN_H_
#define ORRERY_LOWERING_PLACEMENT_LEAST_SPAN_H_

#include <cstddef>

#include "lowering/placement/stage.h"
#include "simulator/program/program.h"
#include "support/units.h"

namespace orrery::lowering {

/// How long that takes with all links to itself.
Duration TimeAlone(const TaskTime& time, const simulator::Program& program);

/// How long task `t` of a folded, priced template takes on the first kind of device, with all links
/// to itself.
Duration TimeAlone(const PricedTemplate& priced, size_t t, const simulator::Program& program);

/// How long one instance of a folded, priced template keeps the compute stream of its rank, at
/// least: the longest way from the start of its first task there to the end of its last, with all
/// links to itself. Where ranks run one template at a time, those of all that a rank runs add up to
/// no more than it takes, whatever their order: on its compute stream they follow each other.
Duration LeastSpan(const PricedTemplate& priced, const simulator::Program& program);

/// The same of all instances of a phase together, of so many microbatches in one batch.
Duration LeastSpan(const PhaseTemplates& phase, int64_t microbatches,
                   const simulator::Program& program);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_PLACEMENT_LEAST_SPAN_H_
