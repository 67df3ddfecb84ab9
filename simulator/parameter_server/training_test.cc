#include "simulator/parameter_server/training.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace orrery::simulator::parameter_server {
namespace training_test_cc {
namespace {

TEST(SpreadKeys, NoServersDifferByMoreThanTheLargestPart) {
  std::mt19937_64 random(1);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int i = 0; i < 300; ++i) {
    std::vector<Key> keys(static_cast<size_t>(draw(1, 40)));
    for (Key& key : keys) {
      const int64_t bytes = draw(1, 5'000);
      key = {.gradient = Bytes(bytes), .parameter = Bytes(bytes), .state = Bytes(2 * bytes)};
    }
    const int64_t most = draw(0, 1) * draw(1, 2'000);
    const auto servers = static_cast<int32_t>(draw(1, 9));
    const std::vector<Part> parts = SpreadKeys(keys, servers, Bytes(most));
    std::vector<int64_t> by_server(static_cast<size_t>(servers));
    std::vector<Key> sums(keys.size());
    int64_t largest = 0;
    for (const Part& part : parts) {
      by_server[static_cast<size_t>(part.server)] += part.gradient.count();
      largest = std::max(largest, part.gradient.count());
      Key& sum = sums[static_cast<size_t>(part.key)];
      sum.gradient += part.gradient;
      sum.parameter += part.parameter;
      sum.state += part.state;
    }
    for (size_t k = 0; k < keys.size(); ++k) {
      EXPECT_EQ(sums[k].gradient, keys[k].gradient);
      EXPECT_EQ(sums[k].parameter, keys[k].parameter);
      EXPECT_EQ(sums[k].state, keys[k].state);
    }
    if (most > 0) {
      EXPECT_LE(largest, most);
    }
    const auto [least, fullest] = std::ranges::minmax_element(by_server);
    EXPECT_LE(*fullest - *least, largest);
    // The smallest part of the fullest server came last, when that one had least.
    int64_t smallest = largest;
    for (const Part& part : parts) {
      if (part.server != fullest - by_server.begin()) continue;
      smallest = std::min(smallest, part.gradient.count());
    }
    EXPECT_LE(*fullest - smallest, *least);
  }
}

// Each part went to the one that was least full for its share: so many had as much, but for a part.
TEST(SpreadKeys, ServersHaveTheirSharesButForParts) {
  std::mt19937_64 random(2);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int i = 0; i < 300; ++i) {
    std::vector<Key> keys(static_cast<size_t>(draw(1, 40)));
    int64_t all = 0;
    for (Key& key : keys) {
      const int64_t bytes = draw(1, 5'000);
      key = {.gradient = Bytes(bytes), .parameter = Bytes(bytes)};
      all += bytes;
    }
    std::vector<double> shares;
    for (int64_t s = draw(1, 9); s > 0; --s) shares.push_back(static_cast<double>(draw(0, 4)));
    shares.push_back(1);
    double sum = 0;
    for (const double share : shares) sum += share;
    const std::vector<Part> parts = SpreadKeys(keys, shares, Bytes(draw(0, 1) * draw(1, 2'000)));
    std::vector<double> bytes(shares.size());
    double largest = 0;
    for (const Part& part : parts) {
      const auto of_part = static_cast<double>(part.gradient.count());
      bytes[static_cast<size_t>(part.server)] += of_part;
      largest = std::max(largest, of_part);
    }
    for (size_t s = 0; s < shares.size(); ++s) {
      const double most = static_cast<double>(all) + largest * static_cast<double>(shares.size());
      EXPECT_LE(bytes[s], most * shares[s] / sum * (1 + 1e-9)) << "case " << i;
    }
  }
}

// Few keys, of workers that add up on their hosts: servers have as many each, and so have the
// workers of a host, as far as that goes.
TEST(SpreadKeys, FewPartsGoToAllServersAndAllLanes) {
  for (const int32_t servers : {1, 2, 3, 4, 6}) {
    for (const int32_t lanes : {1, 2, 4, 8}) {
      for (const int32_t count : {servers, 2 * servers, servers * lanes}) {
        Training training;
        training.servers = servers;
        training.adding.lanes = lanes;
        training.keys.resize(static_cast<size_t>(count),
                             {.gradient = Bytes(8), .parameter = Bytes(8), .state = Bytes(0)});
        std::map<int32_t, int> of_server, of_lane;
        std::set<std::pair<int32_t, int32_t>> places;
        for (const Part& part : SpreadKeys(training, Bytes(0))) {
          ++of_server[part.server];
          ++of_lane[part.lane];
          places.emplace(part.server, part.lane);
        }
        SCOPED_TRACE(absl::StrCat(count, " keys, ", servers, " servers, ", lanes, " lanes"));
        EXPECT_EQ(of_server.size(), static_cast<size_t>(servers));
        for (const auto& [server, parts] : of_server) EXPECT_EQ(parts, count / servers);
        EXPECT_GE(of_lane.size(), static_cast<size_t>(std::min(lanes, servers)));
        // No place comes twice before all have come.
        EXPECT_EQ(places.size(), static_cast<size_t>(std::min(count, servers * lanes)));
      }
    }
  }
}

TEST(Traffic, OfAnAddAndOfAdam) {
  const Part part = {.gradient = Bytes(4), .parameter = Bytes(4), .state = Bytes(8)};
  EXPECT_EQ(SumTraffic(part), Bytes(12));     // two read, one written
  EXPECT_EQ(UpdateTraffic(part), Bytes(28));  // g; p, m and v, read and written
}

}  // namespace
}  // namespace training_test_cc
}  // namespace orrery::simulator::parameter_server
