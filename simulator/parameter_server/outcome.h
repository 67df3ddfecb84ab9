#ifndef ORRERY_SIMULATOR_PARAMETER_SERVER_OUTCOME_H_
#define ORRERY_SIMULATOR_PARAMETER_SERVER_OUTCOME_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "support/units.h"

namespace orrery::simulator::parameter_server {

/// What a worker waits for when it waits for a parameter, in the order in which it comes to pass:
/// its own gradient to reach the server; those of other workers that the policy wants; the server
/// to add up and update; the parameter to come.
enum class Cause : uint8_t { kPush, kOthers, kServer, kPull };
/// How many causes there are.
inline constexpr size_t kCauseCount = 4;

/// What a worker did once the run was under way (Outcome::warm).
struct WorkerFigures {
  int64_t steps = 0;    // that it finished, in the whole run
  int64_t skipped = 0;  // of these it left out as the others were ahead: it is a backup worker
  double rate = 0;      // steps a second
  Duration computing = {};
  std::array<Duration, kCauseCount> waits = {};

  Duration waiting() const;
};

/// What ran when, for a trace. `what`: of kCompute the segment, else the part.
struct Span {
  /// Kernels of a worker, a message one way or the other, what a server does with a gradient, or a
  /// message of one way or the other between workers of a host.
  enum class Kind : uint8_t { kCompute, kPush, kPull, kSum, kUpdate, kAddUp, kSpread };
  Kind kind = Kind::kCompute;
  int32_t worker = 0;
  int32_t server = -1;  // none of kCompute; where the part is
  int32_t what = 0;
  int32_t step = 0;
  Time start = {}, end = {};
};

/// A run, from its first step to the last that it was to do. Figures of rates and use are of the
/// time since `warm`, when a fifth of the steps were done, or the bound had held up who gets ahead.
/// So many fields: figures of a report.
struct Outcome {
  Time warm = {}, end = {};
  std::vector<WorkerFigures> workers = {};
  double update_rate = 0;                 // updates a second that a part gets
  std::vector<Duration> step_times = {};  // from one step of a worker to its next, since `warm`
  /// By gradients of the slowest worker that a step's parameters lacked (Versions::Lag): how many
  /// steps, of the whole run.
  std::vector<int64_t> lags = {};
  /// Updates of others between what a gradient was computed of and its own update: means by bytes,
  /// and the most. Of bulk updates 0.
  double mean_delay = 0;
  int64_t most_delay = 0;
  double dropped = 0;                   // share of the bytes of gradients that came too late
  std::vector<double> link_use = {};    // by link of Training::network, 0 to 1
  std::vector<double> server_use = {};  // by server, of its memory, 0 to 1
  int64_t events = 0;                   // that were simulated
  std::vector<Span> spans = {};         // of the steps that were to be traced, as they ended

  /// Steps a second of all workers together.
  double rate() const;
};

}  // namespace orrery::simulator::parameter_server

#endif  // ORRERY_SIMULATOR_PARAMETER_SERVER_OUTCOME_H_
