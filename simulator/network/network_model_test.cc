#include "simulator/network/network_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "simulator/network/astra_networks.h"
#include "simulator/network/fluid_network.h"
#include "simulator/program/time_alone.h"
#include "simulator/testing/independent_flows.h"

// What an engine relies on, of every network model: each message that is started arrives once, no
// earlier than the model has said.

namespace orrery::simulator {
namespace network_model_test_cc {
namespace {

struct Model {
  absl::string_view name;
  std::unique_ptr<NetworkModel> (*make)(const Program& program);
  bool no_faster_than_alone;
};

template <typename Network>
std::unique_ptr<NetworkModel> Make(const Program& program) {
  return std::make_unique<Network>(program);
}

// Those of ASTRA-sim round down to whole nanoseconds.
constexpr Model kModels[] = {{"fluid", Make<FluidNetwork>, true},
                             {"independent", Make<IndependentFlows>, true},
                             {"astra unaware", Make<AstraUnaware>, false},
                             {"astra aware", Make<AstraAware>, false}};

struct Message {
  Time start;
  FlowId flow;
};

struct Traffic {
  Program program;
  std::vector<Message> messages;  // by their starts; message i is task i
};

// Three links, and messages over some of them; many start at once, some are empty.
Traffic RandomTraffic(unsigned seed, int count) {
  std::mt19937 random(seed);
  const auto number = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  Traffic traffic;
  std::vector<ResourceId> links;
  for (int i = 0; i < 3; ++i) {
    links.push_back(
        traffic.program.AddResource({.name = absl::StrCat("link", i),
                                     .kind = "port",
                                     .capacity = Bandwidth(number(1, 8) * 1'000'000'000),
                                     .latency = Duration(number(0, 2000))}));
  }
  for (int i = 0; i < count; ++i) {
    std::vector<Load> loads;
    for (const ResourceId link : links) {
      if (number(0, 1) == 1) loads.push_back({.resource = link});
    }
    const FlowId flow = traffic.program.AddFlow({.size = Bytes(number(0, 3) * number(0, 5000)),
                                                 .rate = Bandwidth(number(1, 8) * 1'000'000'000),
                                                 .latency = Duration(number(0, 3) * 1000),
                                                 .loads = loads});
    traffic.messages.push_back({.start = Time(number(0, 9) * 500'000), .flow = flow});
  }
  std::ranges::stable_sort(traffic.messages,
                           [](const Message& a, const Message& b) { return a.start < b.start; });
  return traffic;
}

// When each message arrives; plays them as an engine does and looks at every answer.
std::vector<Time> Arrivals(const Traffic& traffic, NetworkModel& network) {
  const auto count = static_cast<int32_t>(traffic.messages.size());
  std::vector<Time> arrivals(traffic.messages.size(), Time(-1));
  Time now;
  int32_t next = 0;
  for (int turns = 0; turns < 100 * (count + 1); ++turns) {
    for (; next < count && traffic.messages[static_cast<size_t>(next)].start == now; ++next) {
      network.Start(TaskId(next),
                    traffic.program.flow(traffic.messages[static_cast<size_t>(next)].flow));
    }
    const std::optional<Time> completion = network.NextCompletion(now);
    EXPECT_EQ(network.NextCompletion(now), completion) << "asking changes nothing";
    EXPECT_TRUE(!completion.has_value() || *completion >= now);
    if (!completion.has_value() && next == count) return arrivals;
    Time to = completion.value_or(kEndOfTime);
    if (next < count) to = std::min(to, traffic.messages[static_cast<size_t>(next)].start);
    now = to;
    int32_t last = -1;
    for (const TaskId task : network.Advance(to)) {
      EXPECT_TRUE(completion.has_value() && *completion == to) << task << " is early";
      EXPECT_GT(task.index(), last) << "not in the order of the starts";
      last = task.index();
      EXPECT_LT(last, next) << "has not been started";
      EXPECT_EQ(arrivals[static_cast<size_t>(last)], Time(-1)) << task << " arrives twice";
      arrivals[static_cast<size_t>(last)] = to;
    }
  }
  ADD_FAILURE() << "no end";
  return arrivals;
}

TEST(NetworkModel, EachMessageArrivesOnce) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const Traffic traffic = RandomTraffic(seed, 1 + static_cast<int>(seed) % 25);
    for (const Model& model : kModels) {
      SCOPED_TRACE(absl::StrCat(model.name, ", seed ", seed));
      const auto network = model.make(traffic.program);
      const std::vector<Time> arrivals = Arrivals(traffic, *network);
      for (size_t i = 0; i < arrivals.size(); ++i) {
        const Message& message = traffic.messages[i];
        ASSERT_GE(arrivals[i], message.start) << i;
        if (!model.no_faster_than_alone) continue;
        const Flow flow = traffic.program.flow(message.flow);
        ASSERT_GE(arrivals[i], message.start + TimeAlone(flow, traffic.program)) << i;
      }
    }
  }
}

// A model plays one run, and the same one again.
TEST(NetworkModel, DependsOnNothingElse) {
  const Traffic traffic = RandomTraffic(7, 40);
  for (const Model& model : kModels) {
    SCOPED_TRACE(model.name);
    const auto once = model.make(traffic.program), again = model.make(traffic.program);
    EXPECT_EQ(Arrivals(traffic, *once), Arrivals(traffic, *again));
  }
}

TEST(NetworkModel, HasNothingToDoWithoutMessages) {
  const Traffic traffic = RandomTraffic(1, 1);
  for (const Model& model : kModels) {
    SCOPED_TRACE(model.name);
    const auto network = model.make(traffic.program);
    EXPECT_EQ(network->NextCompletion(Time(0)), std::nullopt);
    EXPECT_TRUE(network->Advance(Time(100)).empty());
    EXPECT_EQ(network->NextCompletion(Time(100)), std::nullopt);
  }
}

// Alone, over one link of 1 GB/s: 1000 bytes are 1 us, and the latency is 2 us. All agree.
TEST(NetworkModel, AMessageAloneTakesItsTime) {
  Traffic traffic;
  const ResourceId link = traffic.program.AddResource({.name = "link",
                                                       .kind = "port",
                                                       .capacity = Bandwidth(1'000'000'000),
                                                       .latency = Duration(2'000'000)});
  const Load load = {.resource = link};
  const FlowId flow = traffic.program.AddFlow({.size = Bytes(1000),
                                               .rate = Bandwidth(1'000'000'000),
                                               .latency = Duration(2'000'000),
                                               .loads = {&load, 1}});
  traffic.messages.push_back({.start = Time(5000), .flow = flow});
  for (const Model& model : kModels) {
    SCOPED_TRACE(model.name);
    EXPECT_EQ(Arrivals(traffic, *model.make(traffic.program)), std::vector<Time>{Time(3'005'000)});
  }
}

}  // namespace
}  // namespace network_model_test_cc
}  // namespace orrery::simulator
