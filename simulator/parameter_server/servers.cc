#include "simulator/parameter_server/servers.h"

#include <algorithm>
#include <utility>

#include "support/check.h"

namespace orrery::simulator::parameter_server {
namespace servers_cc {
namespace {

// Of a heap whose first work is at the front.
bool Later(const Work& a, const Work& b) {
  return std::pair(a.priority, a.sequence) > std::pair(b.priority, b.sequence);
}

}  // namespace
}  // namespace servers_cc

std::optional<Time> Servers::Add(int32_t s, const Work& work, Time now) {
  Server& server = servers_[static_cast<size_t>(s)];
  server.queue.push_back(work);
  std::ranges::push_heap(server.queue, servers_cc::Later);
  if (server.now.has_value()) return std::nullopt;
  return Next(s, now);
}

std::optional<Time> Servers::Next(int32_t s, Time now) {
  Server& server = servers_[static_cast<size_t>(s)];
  ORRERY_CHECK(!server.now.has_value()) << "server " << s << " is at work";
  if (server.queue.empty()) return std::nullopt;
  std::ranges::pop_heap(server.queue, servers_cc::Later);
  server.now = server.queue.back();
  server.queue.pop_back();
  server.now->start = now;
  return now + server.now->length;
}

Work Servers::Take(int32_t s, Time now) {
  Server& server = servers_[static_cast<size_t>(s)];
  ORRERY_CHECK(server.now.has_value()) << "server " << s << " has nothing to do";
  server.busy += now - std::max(server.now->start, forgotten_);
  return *std::exchange(server.now, std::nullopt);
}

std::vector<double> Servers::Use(double seconds) const {
  std::vector<double> use;
  for (const Server& server : servers_) {
    use.push_back(seconds > 0 ? server.busy.seconds() / seconds : 0);
  }
  return use;
}

void Servers::Forget(Time now) {
  forgotten_ = now;
  for (Server& server : servers_) server.busy = Duration(0);
}

}  // namespace orrery::simulator::parameter_server
