#ifndef ORRERY_SIMULATOR_PARAMETER_SERVER_ARITHMETIC_H_
#define ORRERY_SIMULATOR_PARAMETER_SERVER_ARITHMETIC_H_

#include <vector>

#include "simulator/parameter_server/training.h"

namespace orrery::simulator::parameter_server {

/// What one step of all workers takes each thing by itself, in seconds, by sums over bytes: no run
/// is faster than the longest, and a bulk synchronous step of workers that are alike takes, but for
/// latencies and for links that are full one after the other, no longer than all in a row. With S
/// servers whose cards have B bytes a second, and M bytes of W workers, push and pull are M·W/(S·B)
/// each where those are the limit.
struct Arithmetic {
  double compute_s = 0;           // of the slowest worker, without what varies from step to step
  double push_s = 0, pull_s = 0;  // on the link that takes longest
  ResourceId push_link = {}, pull_link = {};  // that; none: there are no links
  double link_s = 0;                          // both, of the link that takes longest with both
  ResourceId link = {};
  double server_s = 0;  // adding and updating, of the server that takes longest

  /// The longest: what a step of all workers takes at least.
  double least_s() const;
  /// One after the other.
  double sum_s() const { return compute_s + push_s + server_s + pull_s; }
  /// Steps of all workers in a second at most: each worker computes by itself, or where there is a
  /// bound all as fast as the slowest in the long run; all share servers and links, and without a
  /// bound those have most of a link that put least on it.
  double most_rate = 0;
};

/// Requires what Check accepts.
Arithmetic ArithmeticOf(const Training& training);

/// About how many events a run takes.
double ExpectedEvents(const Training& training);

/// For how many seconds of a step of all workers each link and then each server's memory is busy,
/// with these parts in place of the training's.
std::vector<double> BusySeconds(const Training& training, const std::vector<Part>& parts);

}  // namespace orrery::simulator::parameter_server

#endif  // ORRERY_SIMULATOR_PARAMETER_SERVER_ARITHMETIC_H_
