#include "simulator/parameter_server/connections.h"

#include <algorithm>

namespace orrery::simulator::parameter_server {

Connections::Connections(const Training& training)
    : training_(training),
      workers_(training.workers),
      servers_(training.servers),
      lanes_(training.adding.lanes) {
  for (const Route& route : training.push) routes_.push_back(&route);
  for (const Route& route : training.pull) routes_.push_back(&route);
  for (const Route& route : training.adding.routes) routes_.push_back(&route);
}

int32_t Connections::Of(Message::Way way, const Ends& ends) const {
  const int32_t pairs = workers_ * servers_;
  const auto beside = [&](int32_t from, int32_t to) {
    return 2 * pairs + from * lanes_ + to % lanes_;
  };
  switch (way) {
    case Message::Way::kPush:
      return ends.worker * servers_ + ends.server;
    case Message::Way::kPull:
      return pairs + ends.worker * servers_ + ends.server;
    case Message::Way::kAddUp:
      return beside(ends.worker, ends.agent);
    case Message::Way::kSpread:
      break;
  }
  return beside(ends.agent, ends.worker);
}

std::vector<double> Connections::Weights() const {
  std::vector<double> weights;
  const std::vector<double>& shares = training_.shares;
  if (shares.empty()) return weights;
  const double most = *std::ranges::max_element(shares);
  constexpr double kLeast = 1e-6;  // of a server without any, to which nothing is sent
  weights.assign(routes_.size(), 1);
  for (size_t r = 0; r < training_.push.size() + training_.pull.size(); ++r) {
    weights[r] = std::max(shares[r % shares.size()] / most, kLeast);
  }
  return weights;
}

}  // namespace orrery::simulator::parameter_server
