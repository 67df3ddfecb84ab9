#include "transforms/strategies/testing/alpha_beta.h"

#include <cmath>

namespace orrery::transforms::strategies {
namespace alpha_beta_cc {
namespace {

double Sum(AlphaBetaStyle style, double time, double tie_break) {
  return (style == AlphaBetaStyle::kXla ? std::nearbyint(time) : time) + tie_break;
}

}  // namespace
}  // namespace alpha_beta_cc

// The order of the operations is that of the originals, so that the digits are.
double AlphaBeta::AllGather(double bytes) const {
  const auto n = static_cast<double>(ranks);
  return alpha_beta_cc::Sum(style, alpha + beta * (n - 1) / n * bytes, 0.1);
}

double AlphaBeta::AllReduce(double bytes) const {
  const auto n = static_cast<double>(ranks);
  return alpha_beta_cc::Sum(style, alpha + beta * 2 * (n - 1) / n * bytes, 0.01);
}

double AlphaBeta::ReduceScatter(double bytes) const {
  const auto n = static_cast<double>(ranks);
  return alpha_beta_cc::Sum(style, alpha + beta * (n - 1) / n * bytes, 0.001);
}

double AlphaBeta::AllToAll(double bytes) const {
  const auto n = static_cast<double>(ranks);
  return alpha_beta_cc::Sum(style, alpha + beta * (n - 1) / n / n * bytes * (n / 2), 0.001);
}

}  // namespace orrery::transforms::strategies
