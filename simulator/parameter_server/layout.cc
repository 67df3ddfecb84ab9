#include "simulator/parameter_server/layout.h"

#include <algorithm>
#include <limits>

namespace orrery::simulator::parameter_server {
namespace layout_cc {
namespace {

Duration TimeOf(Bytes moved, Bandwidth rate) {
  return rate == Bandwidth(0) ? Duration(0) : TransferTime(moved, rate);
}

}  // namespace
}  // namespace layout_cc

Layout LayoutOf(const Training& training) {
  const size_t segments = training.segments.size();
  const bool overlap = training.policy.overlap;
  Layout layout;
  layout.needs.resize(segments);
  layout.completes.resize(segments);
  std::vector<std::vector<int32_t>> of_key(training.keys.size());
  for (size_t p = 0; p < training.parts.size(); ++p) {
    of_key[static_cast<size_t>(training.parts[p].key)].push_back(static_cast<int32_t>(p));
    if (!overlap) layout.needs[0].push_back(static_cast<int32_t>(p));
  }
  std::vector<int32_t> first(training.keys.size(), std::numeric_limits<int32_t>::max());
  const auto add = [](const std::vector<int32_t>& parts, std::vector<int32_t>& to) {
    to.insert(to.end(), parts.begin(), parts.end());
  };
  for (size_t s = 0; s < segments; ++s) {
    for (const int32_t key : training.segments[s].needs) {
      const auto k = static_cast<size_t>(key);
      first[k] = std::min(first[k], static_cast<int32_t>(s));
      if (overlap) add(of_key[k], layout.needs[s]);
    }
    for (const int32_t key : training.segments[s].completes) {
      add(of_key[static_cast<size_t>(key)], layout.completes[overlap ? s : segments - 1]);
    }
  }
  const bool by_need = training.policy.order == Order::kNeed;
  for (const Part& part : training.parts) {
    const Bandwidth rate = training.rates[static_cast<size_t>(part.server)];
    layout.priorities.push_back(by_need ? first[static_cast<size_t>(part.key)] : 0);
    layout.sums.push_back(layout_cc::TimeOf(SumTraffic(part), rate));
    layout.updates.push_back(layout_cc::TimeOf(UpdateTraffic(part), rate));
  }
  return layout;
}

}  // namespace orrery::simulator::parameter_server
