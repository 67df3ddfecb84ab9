#ifndef ORRERY_SIMULATOR_PARAMETER_SERVER_KERNEL_TIMES_H_
#define ORRERY_SIMULATOR_PARAMETER_SERVER_KERNEL_TIMES_H_

#include <cstdint>
#include <vector>

#include "simulator/parameter_server/training.h"
#include "support/units.h"

namespace orrery::simulator::parameter_server {

/// By how much the kernels of each worker take longer in all steps: as a device, and as a slow one.
std::vector<double> LastingFactors(const Training& training);

/// How long the kernels of workers take in each step, by what disturbs them: the factors of
/// docs/stragglers.md, of the same draws as there.
class KernelTimes {
 public:
  /// `training` must outlive this.
  explicit KernelTimes(const Training& training);

  /// When the kernels of a segment end that could begin at `ready`, and whose worker's last ones
  /// ended at `last`. A pause that came due since `last` is before them. Calls for a worker come in
  /// the order of their times.
  Time FinishOf(int32_t worker, int32_t step, size_t segment, Time last, Time ready);

 private:
  double FactorOf(int32_t worker, int32_t step) const;
  Time AfterPauses(int32_t worker, Time last, Time ready);

  const Training& training_;
  std::vector<double> lasting_;    // by worker
  std::vector<int32_t> of_step_;   // by worker, whose factor is at hand
  std::vector<double> factors_;    // by worker
  std::vector<Time> next_pauses_;  // by worker; empty: there are none
};

}  // namespace orrery::simulator::parameter_server

#endif  // ORRERY_SIMULATOR_PARAMETER_SERVER_KERNEL_TIMES_H_
