#ifndef ORRERY_TESTS_DISTIR_ORACLE_H_
#define ORRERY_TESTS_DISTIR_ORACLE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

// DistIR's blocking simulation of the notebook's MLP as plain arithmetic: one clock a device, ops
// in program order, double seconds. It shares no code and no idea with the rest of Orrery, which is
// what makes it an oracle. Golden files hold it to DistIR itself.

namespace orrery::distir {

/// One configuration, as DistIR is asked for it.
struct Case {
  int64_t layers = 2;  // even where hp > 1: weights are split by columns and rows in turn
  int64_t dim = 16;
  int64_t batch = 64;
  int64_t dp = 1;
  int64_t hp = 1;
  int64_t pp = 1;
  int64_t microbatches = 1;
  bool optimizer = true;  // SGD
  double gigabits_per_second = 200;

  int64_t ranks() const { return dp * hp * pp; }
  std::string ToString() const;
};

/// What DistIR's simulation says.
struct Figures {
  double makespan_s = 0;
  std::vector<double> finish_s;       // by rank: dp slowest, then hp, then pp
  double communication_overhead = 0;  // communication over all durations, over all ranks
  int64_t send_bytes = 0;
  int64_t allreduce_tensor_bytes = 0;
  std::map<std::string, int64_t> ops;  // how many ran, by DistIR's names
};

/// Plays `c`. Requires that dp * microbatches divides the batch, hp the width and pp the layers.
Figures Simulate(const Case& c);

}  // namespace orrery::distir

#endif  // ORRERY_TESTS_DISTIR_ORACLE_H_
