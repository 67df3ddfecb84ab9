#include "simulator/parameter_server/balance.h"

#include <algorithm>
#include <vector>

#include "simulator/parameter_server/arithmetic.h"
#include "support/check.h"

namespace orrery::simulator::parameter_server {
namespace balance_cc {
namespace {

// What is busy for so long if the servers of one kind, or of the other, have all keys: with a share
// of them, for so much of each.
struct Busy {
  double beside = 0, apart = 0;

  double With(double share) const { return share * beside + (1 - share) * apart; }
};

// Seconds of each link and memory if all keys lie on servers `first` to `end` - 1.
std::vector<double> SecondsIfAllOn(const Training& training, int32_t first, int32_t end) {
  Part all;
  for (const Key& key : training.keys) {
    all.gradient += key.gradient;
    all.parameter += key.parameter;
    all.state += key.state;
  }
  // As much for each as there is of all, so that bytes stay whole.
  std::vector<Part> parts;
  const int32_t lanes = training.adding.lanes;
  for (all.server = first; all.server < end; ++all.server) {
    for (all.lane = 0; all.lane < lanes; ++all.lane) parts.push_back(all);
  }
  std::vector<double> seconds = BusySeconds(training, parts);
  for (double& each : seconds) each /= static_cast<double>(end - first) * lanes;
  return seconds;
}

// The least share of the servers beside workers at which the fullest is the least full: the lowest
// point of the upper one of straight lines.
double LeastFull(const std::vector<Busy>& busy) {
  double low = 0, high = 1;
  constexpr double kEven = 1e-9;  // what rounding makes of a line that neither rises nor falls
  const auto falls_at = [&](double share) {
    const Busy& top =
        *std::ranges::max_element(busy, {}, [&](const Busy& each) { return each.With(share); });
    return top.beside < top.apart * (1 - kEven);
  };
  if (!falls_at(low)) return low;
  if (falls_at(high)) return high;
  for (int i = 0; i < 50; ++i) {
    const double middle = (low + high) / 2;
    (falls_at(middle) ? low : high) = middle;
  }
  return high;
}

}  // namespace
}  // namespace balance_cc

void BalanceShares(int32_t beside, Training& training) {
  ORRERY_CHECK(0 < beside && beside < training.servers) << beside << " of " << training.servers;
  const std::vector<double> on_beside = balance_cc::SecondsIfAllOn(training, 0, beside);
  const std::vector<double> on_others =
      balance_cc::SecondsIfAllOn(training, beside, training.servers);
  std::vector<balance_cc::Busy> busy;
  for (size_t i = 0; i < on_beside.size(); ++i) busy.push_back({on_beside[i], on_others[i]});
  const double share = balance_cc::LeastFull(busy);
  training.shares.assign(static_cast<size_t>(training.servers), share / beside);
  std::fill(training.shares.begin() + beside, training.shares.end(),
            (1 - share) / (training.servers - beside));
}

}  // namespace orrery::simulator::parameter_server
