#include "simulator/parameter_server/meters.h"

#include <algorithm>
#include <utility>

namespace orrery::simulator::parameter_server {

Duration WorkerFigures::waiting() const {
  Duration sum(0);
  for (const Duration wait : waits) sum += wait;
  return sum;
}

double Outcome::rate() const {
  double sum = 0;
  for (const WorkerFigures& worker : workers) sum += worker.rate;
  return sum;
}

Meters::Meters(int32_t workers)
    : finishes_(static_cast<size_t>(workers)), lags_(static_cast<size_t>(workers)) {
  outcome_.workers.resize(static_cast<size_t>(workers));
}

void Meters::Computed(int32_t worker, Time start, Time end) {
  start = std::max(start, warm());
  if (end > start) outcome_.workers[static_cast<size_t>(worker)].computing += end - start;
}

void Meters::Waited(int32_t worker, Time start, Time end, const Stages& stages) {
  auto& waits = outcome_.workers[static_cast<size_t>(worker)].waits;
  Time at = std::max(start, warm());
  const std::array<Time, kCauseCount> until = {stages.pushed, stages.gathered, stages.released,
                                               end};
  for (size_t cause = 0; cause < kCauseCount; ++cause) {
    const Time to = std::min(until[cause], end);
    if (to <= at) continue;
    waits[cause] += to - at;
    at = to;
  }
}

void Meters::WaitedForPushes(int32_t worker, Time start, Time end) {
  Waited(worker, start, end, {.pushed = end, .gathered = end, .released = end});
}

void Meters::Lacks(int32_t worker, int32_t step, int32_t lag) {
  int32_t& most = lags_[static_cast<size_t>(worker)][static_cast<size_t>(step & 1)];
  most = std::max(most, lag);
}

void Meters::Delayed(int64_t updates, double bytes) {
  delay_ += static_cast<double>(updates) * bytes;
  delayed_bytes_ += bytes;
  outcome_.most_delay = std::max(outcome_.most_delay, updates);
}

void Meters::Came(double bytes, bool dropped) {
  came_bytes_ += bytes;
  if (dropped) dropped_bytes_ += bytes;
}

void Meters::Finished(int32_t worker, int32_t step, Time now) {
  const auto w = static_cast<size_t>(worker);
  ++outcome_.workers[w].steps;
  const auto lag = static_cast<size_t>(std::exchange(lags_[w][static_cast<size_t>(step & 1)], 0));
  if (outcome_.lags.size() <= lag) outcome_.lags.resize(lag + 1);
  ++outcome_.lags[lag];
  Repeated& of = finishes_[w];
  if (warm_ && of.count > 0) outcome_.step_times.push_back(now - of.last);
  of.Add(now, warm_);
}

void Meters::Skipped(int32_t worker, int32_t steps) {
  outcome_.workers[static_cast<size_t>(worker)].skipped += steps;
}

void Meters::Repeated::Add(Time now, bool counts) {
  if (counts && count++ == 0) first = now;
  last = now;
}

void Meters::Repeated::Begin(Time now, bool any) {
  count = 0;
  if (!any || last != now) return;
  first = now;
  count = 1;
}

// Of two or more no part of one is at the ends.
double Meters::Repeated::Rate(Time warm, Time end) const {
  const double between = (last - first).seconds(), all = (end - warm).seconds();
  if (count >= 2 && between > 0) return static_cast<double>(count - 1) / between;
  return all > 0 ? static_cast<double>(count) / all : 0;
}

void Meters::Warm(Time now) {
  warm_ = true;
  outcome_.warm = now;
  outcome_.step_times.clear();
  updates_.Begin(now, updates_.last > Time(0));
  for (size_t w = 0; w < finishes_.size(); ++w) {
    WorkerFigures& worker = outcome_.workers[w];
    finishes_[w].Begin(now, worker.steps > 0);
    worker.computing = Duration(0);
    worker.waits = {};
  }
}

Outcome Meters::Tell(Time end) && {
  outcome_.end = end;
  for (size_t w = 0; w < finishes_.size(); ++w) {
    outcome_.workers[w].rate = finishes_[w].Rate(outcome_.warm, end);
  }
  outcome_.update_rate = updates_.Rate(outcome_.warm, end);
  if (delayed_bytes_ > 0) outcome_.mean_delay = delay_ / delayed_bytes_;
  if (came_bytes_ > 0) outcome_.dropped = dropped_bytes_ / came_bytes_;
  return std::move(outcome_);
}

}  // namespace orrery::simulator::parameter_server
