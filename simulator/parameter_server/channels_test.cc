#include "simulator/parameter_server/channels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "simulator/network/fluid_network.h"
#include "simulator/parameter_server/star_test_util.h"

namespace orrery::simulator::parameter_server {
namespace channels_test_cc {
namespace {

// A message on a channel of its own, and when it is sent.
struct Sent {
  Time start;
  Bytes size;
};

// When each message has been sent whole, by one network or the other.
std::vector<Time> ByChannels(const Program& network, const std::vector<Route>& routes,
                             const std::vector<Sent>& messages) {
  std::vector<const Route*> each;
  for (const Route& route : routes) each.push_back(&route);
  Channels channels(network, each);
  std::vector<Time> finishes(messages.size());
  std::vector<std::pair<int32_t, Message>> sent;
  Time now;
  const auto pass = [&](Time until) {
    for (auto next = channels.Next(now); next.has_value() && *next <= until;
         next = channels.Next(now)) {
      now = *next;
      sent.clear();
      channels.Advance(now, sent);
      for (const auto& [channel, message] : sent) finishes[static_cast<size_t>(channel)] = now;
    }
  };
  for (size_t m = 0; m < messages.size(); ++m) {
    pass(messages[m].start);
    now = messages[m].start;
    channels.Send(static_cast<int32_t>(m), {.size = messages[m].size}, now);
  }
  pass(kLongestDuration);
  return finishes;
}

std::vector<Time> ByFluidNetwork(const Program& network, const std::vector<Route>& routes,
                                 const std::vector<Sent>& messages) {
  FluidNetwork fluid(network);
  std::vector<Time> finishes(messages.size());
  Time now;
  const auto pass = [&](Time until) {
    for (auto next = fluid.NextCompletion(now); next.has_value() && *next <= until;
         next = fluid.NextCompletion(now)) {
      now = *next;
      for (const TaskId task : fluid.Advance(now)) {
        finishes[static_cast<size_t>(task.index())] = now;
      }
    }
  };
  for (size_t m = 0; m < messages.size(); ++m) {
    pass(messages[m].start);
    now = messages[m].start;
    fluid.Advance(now);
    Bandwidth alone(1'000'000'000'000);
    for (const Load& load : routes[m].loads) {
      alone = std::min(alone, network.resource(load.resource).capacity);
    }
    fluid.Start(TaskId(static_cast<int32_t>(m)),
                {.size = messages[m].size, .rate = alone, .loads = routes[m].loads});
  }
  pass(kLongestDuration);
  return finishes;
}

// Where each connection has one message, they are the flows of the network that steps are played
// on.
TEST(Channels, ShareLinksAsFlowsDo) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 300; ++i) {
    Program network;
    const int links = Draw(random, 1, 6), messages = Draw(random, 1, 12);
    for (int l = 0; l < links; ++l) {
      network.AddResource({.capacity = Bandwidth(1'000'000LL * Draw(random, 1, 5'000))});
    }
    std::vector<Route> routes(static_cast<size_t>(messages));
    std::vector<Sent> sent;
    for (Route& route : routes) {
      std::vector<int32_t> on(static_cast<size_t>(links));
      for (int l = 0; l < links; ++l) on[static_cast<size_t>(l)] = l;
      std::ranges::shuffle(on, random);
      on.resize(static_cast<size_t>(Draw(random, 1, std::min(links, 3))));
      for (const int32_t l : on) route.loads.push_back({.resource = ResourceId(l), .load = 1});
      sent.push_back({.start = Duration(1'000'000LL * Draw(random, 0, 3'000)),
                      .size = Bytes(Draw(random, 1, 5'000'000))});
    }
    std::ranges::sort(sent, {}, &Sent::start);
    const std::vector<Time> ours = ByChannels(network, routes, sent);
    const std::vector<Time> theirs = ByFluidNetwork(network, routes, sent);
    for (size_t m = 0; m < sent.size(); ++m) {
      const int64_t apart = (ours[m] - theirs[m]).picoseconds();
      EXPECT_LE(std::abs(apart), 20) << "case " << i << ", message " << m;
    }
  }
}

TEST(Channels, OneMessageAfterAnotherByPriority) {
  Program network;
  const ResourceId link = network.AddResource({.capacity = Bandwidth(1'000'000'000)});
  const Route route = {.loads = {{link, 1}}};
  Channels channels(network, {&route});
  for (const int32_t priority : {3, 2, 1, 2}) {
    channels.Send(0, {.priority = priority, .part = priority, .size = Bytes(1'000)}, Time(0));
  }
  std::vector<std::pair<int32_t, Message>> sent;
  for (Time now(0); const auto next = channels.Next(now);) {
    now = *next;
    channels.Advance(now, sent);
  }
  std::string text;
  for (const auto& [channel, message] : sent) {
    absl::StrAppend(&text, message.part, " from ", message.start.microseconds(), "; ");
  }
  EXPECT_EQ(text, "3 from 0; 1 from 1; 2 from 2; 2 from 3; ");  // what is under way goes on
  const auto carried = [&](Time now) { return channels.Carried(now).front(); };
  EXPECT_EQ(carried(Time(4'000'000)), 4'000);
  channels.Forget(Time(4'000'000));
  EXPECT_EQ(carried(Time(4'000'000)), 0);
  // Of one that is under way, what has been sent since.
  channels.Send(0, {.priority = 0, .part = 0, .size = Bytes(1'000)}, Time(4'000'000));
  channels.Next(Time(4'000'000));
  EXPECT_NEAR(carried(Time(4'250'000)), 250, 1e-6);
  channels.Forget(Time(4'250'000));
  EXPECT_NEAR(carried(Time(4'750'000)), 500, 1e-6);
  sent.clear();
  channels.Advance(Time(5'000'000), sent);
  EXPECT_NEAR(carried(Time(9'000'000)), 750, 1e-6);
}

// Without links a message is there at once.
TEST(Channels, WithoutLinksTakeNoTime) {
  Program network;
  const Route route;
  Channels channels(network, {&route});
  channels.Send(0, {.size = Bytes(7)}, Time(5));
  channels.Send(0, {.size = Bytes(7)}, Time(5));
  EXPECT_EQ(channels.Next(Time(5)), Time(5));
  std::vector<std::pair<int32_t, Message>> sent;
  channels.Advance(Time(5), sent);
  EXPECT_EQ(sent.size(), 2u);
  EXPECT_FALSE(channels.Next(Time(5)).has_value());
}

// Three connections of weights 1, 2 and 4 into one card: 7 MB of the last are there when there is
// as much of the first as is 1/4 of it.
TEST(Channels, ShareAFullLinkByTheirWeights) {
  Training training;
  AddStar({.workers = 3, .servers = 1, .server_card = 700'000'000}, training);
  std::vector<const Route*> routes;
  for (const Route& route : training.push) routes.push_back(&route);
  Channels channels(training.network, routes, {1, 2, 4});
  for (int32_t c = 0; c < 3; ++c) channels.Send(c, {.size = Bytes(4'000'000)}, Time(0));
  std::vector<std::pair<int32_t, Message>> sent;
  std::vector<double> milliseconds(3);
  for (auto next = channels.Next(Time(0)); next.has_value(); next = channels.Next(*next)) {
    sent.clear();
    channels.Advance(*next, sent);
    for (const auto& each : sent) {
      milliseconds[static_cast<size_t>(each.first)] = next->seconds() * 1e3;
    }
    const std::vector<double> carried = channels.Carried(*next);
    EXPECT_NEAR(carried.back(), next->seconds() * 700e6, 10);  // the card is full
  }
  // 100, 200 and 400 MB/s; then 233 and 467, of which 2 MB are left; then all for the last.
  EXPECT_NEAR(milliseconds[2], 10, 1e-6);
  EXPECT_NEAR(milliseconds[1], 10 + 2e6 / (700e6 * 2 / 3) * 1e3, 1e-6);
  EXPECT_NEAR(milliseconds[0], 12e6 / 700e6 * 1e3, 1e-6);
}

}  // namespace
}  // namespace channels_test_cc
}  // namespace orrery::simulator::parameter_server
