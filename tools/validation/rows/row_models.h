#ifndef ORRERY_TOOLS_VALIDATION_ROWS_ROW_MODELS_H_
#define ORRERY_TOOLS_VALIDATION_ROWS_ROW_MODELS_H_

#include <string>

#include "tools/validation/rows/measured_steps.h"

// Models of rows whose layers are of several kinds, so that a few numbers do not say them: they go
// by a preset of the library (ir/models/presets.def).

namespace orrery::tools {

/// Sets the preset of a model that goes by one, Nemotron-H and Nemotron 3, by its name; and where
/// the row does not say them, its layers, widths and experts.
void SetPreset(MeasuredStep::Model& model);

/// The preset of a row's model with what the row says of it: "nemotron-h-8b:seq=8192". Requires
/// one.
std::string PresetModelOf(const MeasuredStep& step);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_VALIDATION_ROWS_ROW_MODELS_H_
