#include "search/walks/placer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "search/walks/beginnings.h"
#include "search/walks/walk.h"

namespace orrery::search {
namespace placer_test_cc {
namespace {

// Six things, of which two are like the others' opposite.
WalkChoices Choices() {
  return {.things = {{1}, {1}, {-1}, {1}, {-1}, {1}}, .labels = 3, .with = {}};
}

// How many things have the label that their feature wants.
double RightOnes(const std::vector<int>& labels) {
  double right = 0;
  for (size_t thing = 0; thing < labels.size(); ++thing) {
    right += labels[thing] == (Choices().things[thing][0] > 0 ? 2 : 0) ? 1 : 0;
  }
  return right;
}

double MeanOf(const Placer& placer, Draws& draws) {
  constexpr int kMany = 200;
  double sum = 0;
  for (int i = 0; i < kMany; ++i) sum += RightOnes(placer.Draw(draws).labels);
  return sum / kMany;
}

TEST(Placer, LearnsWhatIsRewarded) {
  double before = 0, after = 0;
  for (uint32_t seed = 1; seed <= 10; ++seed) {
    Draws draws(seed);
    Placer placer(Choices(), draws);
    before += MeanOf(placer, draws) / 10;
    for (int i = 0; i < 300; ++i) {
      const Placer::Drawn drawn = placer.Draw(draws);
      placer.Learn(drawn, RightOnes(drawn.labels));
    }
    after += MeanOf(placer, draws) / 10;
  }
  EXPECT_LT(before, 3);  // a third of six, if it draws blindly
  EXPECT_GT(after, 4.5);
}

TEST(Placer, DrawsOtherThingsThanItAvoids) {
  double same = 0;
  for (uint32_t seed = 1; seed <= 10; ++seed) {
    Draws draws(seed);
    Placer placer(Choices(), draws);
    const Placer::Drawn first = placer.Draw(draws);
    for (int i = 0; i < 100; ++i) placer.Avoid(first);
    for (int i = 0; i < 100; ++i) same += placer.Draw(draws).labels == first.labels ? 1 : 0;
  }
  EXPECT_LT(same, 100);  // of 1,000
}

TEST(Placer, GivesThingsOfAGroupOneLabel) {
  Draws draws(1);
  const Placer placer(Choices(), draws);
  EXPECT_EQ(placer.groups(), 3);
  EXPECT_EQ(placer.things(), 6);
  for (int i = 0; i < 50; ++i) {
    const Placer::Drawn drawn = placer.Draw(draws);
    for (size_t a = 0; a < 6; ++a) {
      EXPECT_LT(drawn.labels[a], 3);
      for (size_t b = 0; b < a; ++b) {
        const bool apart = drawn.groups[a] != drawn.groups[b];
        EXPECT_TRUE(apart || drawn.labels[a] == drawn.labels[b]);
      }
    }
  }
}

}  // namespace
}  // namespace placer_test_cc
}  // namespace orrery::search
