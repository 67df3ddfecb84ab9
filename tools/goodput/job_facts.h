#ifndef ORRERY_TOOLS_GOODPUT_JOB_FACTS_H_
#define ORRERY_TOOLS_GOODPUT_JOB_FACTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "simulator/goodput/run_spec.h"
#include "tools/goodput/goodput_flags.h"

namespace orrery::tools {

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

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_GOODPUT_JOB_FACTS_H_
