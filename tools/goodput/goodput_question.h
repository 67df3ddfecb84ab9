#ifndef ORRERY_TOOLS_GOODPUT_GOODPUT_QUESTION_H_
#define ORRERY_TOOLS_GOODPUT_GOODPUT_QUESTION_H_

#include <boost/program_options.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "simulator/goodput/best_interval.h"
#include "simulator/goodput/run_spec.h"
#include "tools/flags.h"
#include "tools/goodput/run_texts.h"
#include "tools/plan_flags.h"

// What `goodput` is asked, and the run that follows from it.

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

/// --list-failures and --list-components.
std::vector<Listing> GoodputListings();

/// What is known of the job whose run it is. Rates are of bytes a second.
struct JobFacts {
  std::string name = {};  // "llama3-405b, batch 2048, on dgx-h100:2048"
  simulator::goodput::JobShape shape = {};
  int64_t devices = 0;
  int64_t spare_hosts = 0;  // that the cluster has beside them
  double step_s = 0;
  double slow_step_s = 0;  // where checkpoints have half of the cards between hosts; 0: not known
  double checkpoint_bytes = 0;
  double host_copy_rate = 0;  // of a device to the memory of its host
  double card_rate = 0;       // of all cards of a host, one way
  std::vector<std::string> notes = {};
};

/// Plays the step of the model, or takes the flags that stand for it.
absl::StatusOr<JobFacts> FactsOf(const GoodputFlags& flags);

/// A run to be played, as it is asked for.
struct GoodputQuestion {
  simulator::goodput::RunSpec spec = {};
  /// The tier that survives most: of its interval the best is told.
  std::string safest_tier = {};
  bool enough_spares = false;                  // nobody said how many there are
  simulator::goodput::BestInterval best = {};  // of that tier; 0 seconds: there is none
  std::vector<std::string> notes = {};
};

/// The run that follows from flags and facts, with the best interval where none is named: of runs
/// that are played so.
absl::StatusOr<GoodputQuestion> QuestionOf(const GoodputFlags& flags, const JobFacts& facts,
                                           const simulator::goodput::PlayManner& manner);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_GOODPUT_GOODPUT_QUESTION_H_
