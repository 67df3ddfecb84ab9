#include "simulator/parameter_server/kernel_times.h"

#include <algorithm>
#include <cmath>

#include "simulator/jitter/draws.h"

namespace orrery::simulator::parameter_server {

std::vector<double> LastingFactors(const Training& training) {
  const Disturbances& by = training.disturbances;
  std::vector<double> factors(static_cast<size_t>(training.workers), 1.0);
  for (const SlowRank& slow : by.slow) factors[static_cast<size_t>(slow.rank)] = slow.factor;
  for (int32_t w = 0; w < training.workers && by.device.has_value(); ++w) {
    factors[static_cast<size_t>(w)] *=
        by.device->Factor(Draws(by.seed, DrawFor::kDevice, -1, w).Uniform());
  }
  return factors;
}

KernelTimes::KernelTimes(const Training& training)
    : training_(training),
      lasting_(LastingFactors(training)),
      of_step_(static_cast<size_t>(training.workers), -1),
      factors_(static_cast<size_t>(training.workers), 1.0) {
  const Disturbances& by = training.disturbances;
  for (int32_t w = 0; w < training.workers && by.pauses.has_value(); ++w) {
    const Draws draws(by.seed, DrawFor::kPause, -1, by.pauses->together ? -1 : w);
    next_pauses_.push_back(Time(static_cast<int64_t>(
        draws.Uniform() * static_cast<double>(by.pauses->every.picoseconds()))));
  }
}

double KernelTimes::FactorOf(int32_t worker, int32_t step) const {
  const Disturbances& by = training_.disturbances;
  double factor = lasting_[static_cast<size_t>(worker)];
  if (by.rank.has_value()) {
    factor *= by.rank->Factor(Draws(by.seed, DrawFor::kRank, step, worker).Uniform());
  }
  if (by.step.has_value()) {
    factor *= by.step->Factor(Draws(by.seed, DrawFor::kStep, step, -1).Uniform());
  }
  return factor;
}

// What is due while kernels run comes behind them; what is due while the worker waits, at once.
Time KernelTimes::AfterPauses(int32_t worker, Time last, Time ready) {
  const Pauses& pauses = *training_.disturbances.pauses;
  Time& next = next_pauses_[static_cast<size_t>(worker)];
  Time start = ready, end = last;
  for (; next <= start; next += pauses.every) {
    end = std::max(next, end) + pauses.length;
    start = std::max(start, end);
  }
  return start;
}

Time KernelTimes::FinishOf(int32_t worker, int32_t step, size_t segment, Time last, Time ready) {
  const Disturbances& by = training_.disturbances;
  const auto w = static_cast<size_t>(worker);
  if (of_step_[w] != step) {
    of_step_[w] = step;
    factors_[w] = FactorOf(worker, step);
  }
  const Segment& kernels = training_.segments[segment];
  double factor = factors_[w];
  if (by.kernel.has_value()) {
    const double mean = by.kernel->of->mean(by.kernel->spread);
    const double drawn = by.kernel->Factor(
        Draws(by.seed, DrawFor::kKernel, step, worker).Uniform(static_cast<int64_t>(segment)));
    factor *= mean + (drawn - mean) * kernels.spread_left;
  }
  const Time start = by.pauses.has_value() ? AfterPauses(worker, last, ready) : ready;
  if (factor == 1) return start + kernels.time;
  const double longer = std::ceil(static_cast<double>(kernels.time.picoseconds()) * factor);
  return start + Duration(static_cast<int64_t>(longer));
}

}  // namespace orrery::simulator::parameter_server
