#ifndef ORRERY_TOOLS_VALIDATION_ROWS_MEASURED_ROW_TEST_UTIL_H_
#define ORRERY_TOOLS_VALIDATION_ROWS_MEASURED_ROW_TEST_UTIL_H_

#include <string>

#include "tools/validation/rows/measured_steps.h"

namespace orrery::tools {

/// A row that can be predicted: of a small GPT, on 16 devices.
inline MeasuredStep MeasuredRow(const std::string& source = "paper") {
  MeasuredStep row;
  row.source = source;
  row.model = {.layers = 8, .hidden = 1024, .heads = 16, .seq = 512};
  row.device = "H100";
  row.devices = 16;
  row.global_batch = 64;
  row.micro_batch = 2;
  row.precision = "bf16";
  row.seconds = 1;
  return row;
}

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_VALIDATION_ROWS_MEASURED_ROW_TEST_UTIL_H_
