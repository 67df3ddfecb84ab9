#ifndef ORRERY_TOOLS_PARAMETER_SERVER_SERVER_RUN_H_
#define ORRERY_TOOLS_PARAMETER_SERVER_SERVER_RUN_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "search/parameter_server/worker_step.h"
#include "simulator/parameter_server/arithmetic.h"
#include "simulator/parameter_server/outcome.h"
#include "simulator/parameter_server/training.h"
#include "tools/flags.h"
#include "tools/jitter/jitter_flags.h"
#include "tools/parameter_server/server_flags.h"

// simulate --update ps: from flags to what is played, and what came of it.

namespace orrery::tools {

/// What a run by way of parameter servers is asked. So many fields: flags of several kinds.
struct ServerRunFlags {
  const ModelFlags& model;
  const PlanFlags& plan_axes;
  const ServerFlags& servers;
  const JitterFlags& jitter;
  const std::string& stack;
  bool cuda_graphs = false;
  bool traced = false;  // spans of the first steps are wanted
};

/// Steps that are played where --steps does not say it; and of each worker those that are traced.
inline constexpr int32_t kUsualServerSteps = 20;
inline constexpr int32_t kTracedSteps = 3;

/// What was played, and what came of it. So many fields: a report in all its parts.
struct ServerRun {
  std::string title;    // "gpt2-medium, batch 256, on switch:40@25gbe"
  std::string plan;     // "--dp 32 --update ps"
  int64_t samples = 0;  // of a worker in a step
  search::StepsQuestion disturbed = {};
  ServerQuestion question = {};
  search::WorkerStep step = {};
  simulator::parameter_server::Training training = {};
  simulator::parameter_server::Arithmetic arithmetic = {};
  simulator::parameter_server::Outcome outcome = {};
  int32_t servers_with_workers = 0;       // the first so many, on their hosts
  std::vector<Bytes> server_memory = {};  // by server: parameters, state, a sum of gradients
  std::vector<std::string> notes = {};    // a line each: what was assumed, what does not fit
};

/// Plays it: the step of a worker is that of the plan with one replica and its share of the batch,
/// lowered and priced like any other. An error of one line where a flag does not apply to parameter
/// servers.
absl::StatusOr<ServerRun> PlayServers(const ServerRunFlags& flags);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_PARAMETER_SERVER_SERVER_RUN_H_
