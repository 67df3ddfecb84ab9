#ifndef ORRERY_TOOLS_VALIDATION_STEP_FEATURES_H_
#define ORRERY_TOOLS_VALIDATION_STEP_FEATURES_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "search/settings/setting.h"

namespace orrery::tools {

/// What of a step tells which measured steps are like it. So many fields: what its predictions may
/// be off by.
struct StepFeatures {
  std::string device;  // kind, as "h100-80gb"; of several, the first
  std::string dtype;   // as --dtype spells it
  std::string stack;   // as --stack
  bool mixture = false;
  bool forward = false;    // by itself, without a loss
  int64_t parameters = 0;  // numbers
  int64_t devices = 1;
  int64_t tp = 1, pp = 1, dp = 1, cp = 1, ep = 1;  // dp: with the ranks of ep
  int64_t tokens = 1;                              // a sample: positions of a sequence

  friend bool operator==(const StepFeatures&, const StepFeatures&) = default;
};

/// Those of a plan under a setting, with the software that --stack names.
StepFeatures FeaturesOf(const search::Setting& setting, const transforms::ParallelPlan& plan,
                        absl::string_view stack);

/// The generation of a device's cores, whose kernels have much in common: "Ampere", "Hopper"; of
/// others the name of the device.
std::string ArchitectureOf(absl::string_view device);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_VALIDATION_STEP_FEATURES_H_
