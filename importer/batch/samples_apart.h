#ifndef ORRERY_IMPORTER_BATCH_SAMPLES_APART_H_
#define ORRERY_IMPORTER_BATCH_SAMPLES_APART_H_

#include "ir/function.h"

namespace orrery::importer {

/// Whether no sample of a function that takes another batch knows of the others, but for sums over
/// them that leave one number, as losses are: none is held against another, none takes part in a
/// softmax with others, and none is lost among others where more than a number is left. Samples
/// that do may be no samples, but steps in time.
bool SamplesStayApart(const ir::Function& function);

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_BATCH_SAMPLES_APART_H_
