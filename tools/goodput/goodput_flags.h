#ifndef ORRERY_TOOLS_GOODPUT_GOODPUT_FLAGS_H_
#define ORRERY_TOOLS_GOODPUT_GOODPUT_FLAGS_H_

#include <boost/program_options.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/flags.h"
#include "tools/goodput/run_texts.h"
#include "tools/listings.h"
#include "tools/plan_flags.h"

namespace orrery::tools {

/// The flags as they were given. So many fields: a flag each.
struct GoodputFlags {
  ModelFlags model;
  PlanFlags plan_axes;
  std::string stack = "ideal";
  std::string step_time, checkpoint_bytes;  // in place of a model
  int64_t devices = 0, devices_per_host = 0, hosts_per_rack = 8;
  double days = 30;
  std::string mtbf = std::string(kUsualFailures), checkpoint = "pfs";
  std::string detect = "5m", restart = "5m", swap = "0", repair = "24h", when_short = "wait";
  std::string maintenance, preemption;
  int64_t spares = -1;  // as many as repairs need
  int64_t trials = 1'000, threads = 0;
  int64_t seed = 1;
};

/// Adds those of the run to `options`, bound to `flags`.
void AddRunFlags(boost::program_options::options_description& options, GoodputFlags& flags);
/// Adds those of a model whose step is played; or those that stand for one.
void AddPlayedStepFlags(boost::program_options::options_description& options, GoodputFlags& flags);
void AddGivenStepFlags(boost::program_options::options_description& options, GoodputFlags& flags);

/// --list-failures, --list-components and --list-tiers.
std::vector<Listing> GoodputListings();

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_GOODPUT_GOODPUT_FLAGS_H_
