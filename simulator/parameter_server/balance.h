#ifndef ORRERY_SIMULATOR_PARAMETER_SERVER_BALANCE_H_
#define ORRERY_SIMULATOR_PARAMETER_SERVER_BALANCE_H_

#include <cstdint>

#include "simulator/parameter_server/training.h"

namespace orrery::simulator::parameter_server {

/// Sets `shares` where the first `beside` servers stand with workers and the others by themselves:
/// each of one kind has as much as the next, and how much the kinds have makes what is fullest in a
/// step, a link or a server's memory, the least full that it can be; of several such shares the one
/// that leaves most to servers by themselves.
///
/// With n workers on hosts of their own, as many servers beside them, k others, cards of B bytes a
/// second and M bytes, 0 <= k <= n, that is the optimum of BytePS (Jiang et al., "A Unified
/// Architecture for Accelerating Distributed DNN Training in Heterogeneous GPU/CPU Clusters", OSDI
/// 2020, section 4): with D = n² + kn - 2k a server beside a worker has (n - k)/D of all, another
/// 2(n - 1)/D, and all cards are busy for 2n(n - 1)/D · M/B.
///
/// Requires 0 < beside < servers, and keys, rates, network, routes and policy; `parts` are not
/// read.
void BalanceShares(int32_t beside, Training& training);

}  // namespace orrery::simulator::parameter_server

#endif  // ORRERY_SIMULATOR_PARAMETER_SERVER_BALANCE_H_
