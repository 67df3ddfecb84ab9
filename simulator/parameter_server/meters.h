#ifndef ORRERY_SIMULATOR_PARAMETER_SERVER_METERS_H_
#define ORRERY_SIMULATOR_PARAMETER_SERVER_METERS_H_

#include <array>
#include <cstdint>
#include <vector>

#include "simulator/parameter_server/outcome.h"
#include "support/units.h"

namespace orrery::simulator::parameter_server {

/// When what a worker waits for came to pass.
struct Stages {
  Time pushed = {};    // its own gradient was at the server
  Time gathered = {};  // all gradients that it waited for were
  Time released = {};  // the server sent the parameter
};

/// What is counted while a run is played. So many fields: counters.
class Meters {
 public:
  explicit Meters(int32_t workers);

  /// A worker computed, or waited for a parameter, until `end`.
  void Computed(int32_t worker, Time start, Time end);
  void Waited(int32_t worker, Time start, Time end, const Stages& stages);
  /// It waited for the servers to have its gradients, of which no single one is to blame.
  void WaitedForPushes(int32_t worker, Time start, Time end);
  /// A worker was sent a parameter that lacks so many gradients of the slowest, for a step.
  void Lacks(int32_t worker, int32_t step, int32_t lag);
  void Delayed(int64_t updates, double bytes);
  void Came(double bytes, bool dropped);
  /// A worker has done a step, and goes on with another one than the next.
  void Finished(int32_t worker, int32_t step, Time now);
  void Skipped(int32_t worker, int32_t steps);

  /// A part, always the same one, was updated.
  void Updated(Time now) { updates_.Add(now, warm_); }

  /// From here on times and rates count.
  void Warm(Time now);
  Time warm() const { return outcome_.warm; }
  /// What came of it.
  Outcome Tell(Time end) &&;

 private:
  // What happens over and over.
  struct Repeated {
    Time first = {}, last = {};
    int64_t count = 0;  // since warm

    void Add(Time now, bool counts);
    // Those of before do not count, but one of this very moment, which is the first.
    void Begin(Time now, bool any);
    // By what lies between the first and the last; of one, by the time from `warm` to `end`.
    double Rate(Time warm, Time end) const;
  };

  Outcome outcome_;
  bool warm_ = false;
  std::vector<Repeated> finishes_;
  Repeated updates_;
  std::vector<std::array<int32_t, 2>> lags_;  // by worker, of its even and odd steps
  double delay_ = 0, delayed_bytes_ = 0;
  double dropped_bytes_ = 0, came_bytes_ = 0;
};

}  // namespace orrery::simulator::parameter_server

#endif  // ORRERY_SIMULATOR_PARAMETER_SERVER_METERS_H_
