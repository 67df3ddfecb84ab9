#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <set>
#include <vector>

#include "search/walks/methods.h"
#include "search/walks/registry.h"
#include "search/walks/walk.h"

namespace orrery::search {
namespace placer_walk_test_cc {
namespace {

// Nine things in three clusters that features tell apart, with three labels: things of a cluster
// want one label, and labels want as many things each. One thing that moves alone costs more than
// it brings.
class Clusters {
 public:
  static constexpr size_t kThings = 9, kLabels = 3, kAll = 19'683;

  static size_t ClusterOf(size_t thing) { return thing % 3; }

  static std::array<size_t, kThings> LabelsOf(size_t i) {
    std::array<size_t, kThings> labels{};
    for (size_t& label : labels) {
      label = i % kLabels;
      i /= kLabels;
    }
    return labels;
  }

  static double TimeOf(size_t i) {
    const auto labels = LabelsOf(i);
    std::array<int, kLabels> loads{};
    int cut = 0;
    for (size_t a = 0; a < kThings; ++a) {
      ++loads[labels[a]];
      for (size_t b = a + 1; b < kThings; ++b) {
        cut += ClusterOf(a) == ClusterOf(b) && labels[a] != labels[b] ? 1 : 0;
      }
    }
    return 0.1 * *std::ranges::max_element(loads) + 0.2 * cut;
  }

  // How many are played until one of the six best is, 2,000 at most.
  static size_t PlaysUntilBest(uint32_t seed, bool tells_choices) {
    std::set<size_t> played;
    WalkQuestion question;
    question.promising.resize(kAll);
    std::iota(question.promising.begin(), question.promising.end(), uint32_t{0});
    question.is_open = [&](size_t i) { return !played.contains(i); };
    question.seed = seed;
    question.neighbours = [](size_t i) {
      std::vector<size_t> neighbours;
      size_t power = 1;
      for (const size_t label : LabelsOf(i)) {
        for (size_t other = 0; other < kLabels; ++other) {
          if (other != label) neighbours.push_back(i + power * other - power * label);
        }
        power *= kLabels;
      }
      return neighbours;
    };
    question.features = [](size_t i) {
      std::vector<double> features;
      for (const size_t label : LabelsOf(i)) {
        for (size_t one = 1; one < kLabels; ++one) features.push_back(label == one ? 1 : 0);
      }
      return features;
    };
    if (tells_choices) {
      for (size_t thing = 0; thing < kThings; ++thing) {
        const auto cluster = static_cast<double>(ClusterOf(thing));
        question.choices.things.push_back({cluster, cluster * cluster});
      }
      question.choices.labels = kLabels;
      question.choices.with = [](size_t, const std::vector<int>& labels) {
        size_t at = 0;
        for (size_t thing = kThings; thing-- > 0;) {
          at = at * kLabels + static_cast<size_t>(labels[thing]);
        }
        return at;
      };
    }
    const std::unique_ptr<Walk> walk = kReinforceMethod.make(question);
    constexpr double kBest = 0.3;
    while (played.size() < 2000) {
      for (const size_t i : walk->Next(8, 0)) {
        played.insert(i);
        walk->Found(i, WalkScore{.size = TimeOf(i)});
        if (TimeOf(i) < kBest + 1e-9) {
          return played.size();
        }
      }
    }
    return played.size();
  }
};

TEST(PlacerWalk, FindsWhatBelongsTogether) {
  size_t with = 0, without = 0;
  for (uint32_t seed = 1; seed <= 10; ++seed) {
    with += Clusters::PlaysUntilBest(seed, true);
    without += Clusters::PlaysUntilBest(seed, false);
  }
  EXPECT_LT(2 * with, without);
  EXPECT_LT(with, 10u * 60);  // drawing blindly takes 2,800
}

// Also where most labels lead to what is closed.
TEST(PlacerWalk, EndsWhereAllAreClosed) {
  std::set<size_t> played;
  WalkQuestion question;
  question.promising = {0, 1, 2, 3, 4, 5, 6, 7};
  question.neighbours = [](size_t) { return std::vector<size_t>(); };
  question.is_open = [&](size_t i) { return i % 2 == 0 && !played.contains(i); };
  question.choices = {
      .things = {{1}, {2}}, .labels = 2, .with = [](size_t, const std::vector<int>& labels) {
        return static_cast<size_t>(labels[0]) + 2 * static_cast<size_t>(labels[1]);
      }};
  const std::unique_ptr<Walk> walk = kReinforceMethod.make(question);
  for (std::vector<size_t> next = walk->Next(3, 0); !next.empty(); next = walk->Next(3, 0)) {
    EXPECT_LE(next.size(), 3u);
    for (const size_t i : next) {
      EXPECT_TRUE(question.is_open(i)) << i;
      played.insert(i);
    }
    for (const size_t i : next) {  // some do not fit, some cannot be played
      if (i == 6) walk->Found(i, std::nullopt);
      if (i != 6) walk->Found(i, WalkScore{.fits = i != 2, .size = 1});
    }
  }
  EXPECT_EQ(played, (std::set<size_t>{0, 2, 4, 6}));
}

}  // namespace
}  // namespace placer_walk_test_cc
}  // namespace orrery::search
