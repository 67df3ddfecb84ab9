#include "search/walks/methods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "search/walks/registry.h"
#include "search/walks/walk.h"

namespace orrery::search {
namespace methods_test_cc {
namespace {

// 400 candidates in a square whose times fall towards one of them, with ripples on the way. What
// their bounds promise has nothing to do with it.
class Square {
 public:
  static constexpr size_t kSide = 20, kAll = kSide * kSide, kBest = 13 * kSide + 4;

  static WalkScore ScoreOf(size_t i) {
    const size_t column = i % kSide, row = i / kSide;
    const auto x = static_cast<double>(column), y = static_cast<double>(row);
    const double away = std::hypot(x - 4, y - 13);
    const double ripple = i == kBest ? 0 : 0.8 + 0.6 * std::sin(2 * x) * std::cos(3 * y);
    return {.size = 1 + 0.05 * away + 0.05 * ripple};
  }

  WalkQuestion Question(uint32_t seed) {
    WalkQuestion question;
    question.promising.resize(kAll);
    std::iota(question.promising.begin(), question.promising.end(), uint32_t{0});
    question.neighbours = [](size_t i) {
      std::vector<size_t> neighbours;
      if (i % kSide > 0) neighbours.push_back(i - 1);
      if (i % kSide + 1 < kSide) neighbours.push_back(i + 1);
      if (i >= kSide) neighbours.push_back(i - kSide);
      if (i + kSide < kAll) neighbours.push_back(i + kSide);
      return neighbours;
    };
    question.family = [](size_t i) { return uint64_t{i / kSide / 5}; };
    question.is_open = [this](size_t i) { return !played_.contains(i); };
    question.seed = seed;
    question.features = [](size_t i) {
      const size_t column = i % kSide, row = i / kSide;
      return std::vector<double>{static_cast<double>(column), static_cast<double>(row)};
    };
    return question;
  }

  // How many are asked for, one by one, until the best is found, where three are always under way.
  size_t AskedUntilBest(Method method, uint32_t seed) {
    const std::unique_ptr<Walk> walk = method->make(Question(seed));
    std::deque<size_t> under_way;
    while (true) {
      const double spent = static_cast<double>(played_.size()) / kAll;
      const std::vector<size_t> next = walk->Next(1, spent);
      for (const size_t i : next) {
        EXPECT_TRUE(played_.insert(i).second) << "twice: " << i;
        under_way.push_back(i);
      }
      if (under_way.size() < 3 && !next.empty()) continue;
      if (under_way.empty()) break;
      const size_t first = under_way.front();
      under_way.pop_front();
      walk->Found(first, ScoreOf(first));
      if (first == kBest) break;
    }
    EXPECT_TRUE(played_.contains(kBest)) << method->name;
    return played_.size();
  }

  // How many are played until the best is.
  size_t PlaysUntilBest(Method method, uint32_t seed) {
    const std::unique_ptr<Walk> walk = method->make(Question(seed));
    while (!played_.contains(kBest)) {
      const double spent = static_cast<double>(played_.size()) / kAll;
      const std::vector<size_t> batch = walk->Next(8, spent);
      EXPECT_FALSE(batch.empty());
      EXPECT_LE(batch.size(), 8u);
      if (batch.empty()) break;
      for (const size_t i : batch) EXPECT_TRUE(played_.insert(i).second) << "twice: " << i;
      for (const size_t i : batch) walk->Found(i, ScoreOf(i));
    }
    return played_.size();
  }

 private:
  std::set<size_t> played_;
};

// Of ten seeds.
void ExpectFewPlays(Method method, size_t all) {
  // Drawing blindly takes 200; these are what they take, and a third more.
  const std::map<absl::string_view, size_t> limits = {{"beam", 75},  {"annealing", 185},
                                                      {"mcmc", 130}, {"evolution", 70},
                                                      {"bayes", 35}, {"reinforce", 110}};
  const auto limit = limits.find(method->name);
  EXPECT_LT(all, 10 * (limit != limits.end() ? limit->second : 185)) << method->name;
}

TEST(Walk, FindsTheBestLongBeforeTheEnd) {
  EXPECT_EQ(Square().PlaysUntilBest(&kExhaustiveMethod, 1), 272u);  // in the order of promises
  EXPECT_LT(Square().PlaysUntilBest(&kBeamMethod, 1), 160u);
  for (const Method method : AllMethods()) {
    if (method->by_bounds) continue;
    size_t all = 0;
    for (uint32_t seed = 1; seed <= 10; ++seed) all += Square().PlaysUntilBest(method, seed);
    ExpectFewPlays(method, all);
  }
}

// What is under way is not found yet, and others are asked for all the same.
TEST(Walk, HasAChainForEachThatIsUnderWay) {
  std::set<size_t> asked;
  WalkQuestion question = Square().Question(1);
  question.is_open = [&](size_t i) { return !asked.contains(i); };
  const std::unique_ptr<Walk> walk = kMcmcMethod.make(question);
  for (int i = 0; i < 3; ++i) asked.insert(walk->Next(1, 0).at(0));
  ASSERT_EQ(asked.size(), 3u);
  const std::set<size_t> all = asked;
  for (const size_t i : all) walk->Found(i, Square::ScoreOf(i));
  EXPECT_THAT(walk->Log(), testing::StartsWith("3 chains, 3 proposals, 3 accepted"));
}

TEST(Walk, FindsTheBestWhileOthersAreUnderWay) {
  for (const Method method : AllMethods()) {
    size_t all = 0;
    for (uint32_t seed = 1; seed <= 10; ++seed) all += Square().AskedUntilBest(method, seed);
    if (!method->by_bounds) ExpectFewPlays(method, all);
  }
}

// Where there are no neighbours, features alone say what is good: who learns from them comes to
// play the best tenth or so, and not an even choice.
TEST(Walk, LearnsFromFeatures) {
  constexpr size_t kAll = 4000, kPlays = 160, kLast = 40;
  const auto place = [](size_t i) { return static_cast<double>((i * 1237) % kAll) / kAll; };
  for (const Method method : {&kBayesMethod, &kReinforceMethod}) {
    std::set<size_t> played;
    WalkQuestion question;
    question.promising.resize(kAll);
    std::iota(question.promising.begin(), question.promising.end(), uint32_t{0});
    question.neighbours = [](size_t) { return std::vector<size_t>(); };
    question.features = [&](size_t i) { return std::vector<double>{place(i), 1.0}; };
    question.is_open = [&](size_t i) { return !played.contains(i); };
    const std::unique_ptr<Walk> walk = method->make(question);
    double sum = 0;
    while (played.size() < kPlays) {
      for (const size_t i : walk->Next(4, 0)) {
        if (played.size() >= kPlays - kLast) sum += place(i);
        played.insert(i);
        walk->Found(i, WalkScore{.size = 2 - place(i)});
      }
    }
    EXPECT_GT(sum / kLast, 0.8) << method->name;
  }
}

// Where nothing fits, what needs less comes first: so what fits is found.
TEST(Walk, GoesWhereLessIsNeeded) {
  for (const Method method : {&kBeamMethod, &kAnnealingMethod}) {
    std::set<size_t> played;
    WalkQuestion question = Square().Question(1);
    question.family = [](size_t) { return uint64_t{0}; };
    question.is_open = [&](size_t i) { return !played.contains(i); };
    const std::unique_ptr<Walk> walk = method->make(question);
    while (!played.contains(Square::kBest) && played.size() < Square::kAll) {
      const std::vector<size_t> batch = walk->Next(8, 0.5);
      played.insert(batch.begin(), batch.end());
      for (const size_t i : batch) {
        walk->Found(i, WalkScore{.fits = false, .size = 1e9 * Square::ScoreOf(i).size});
      }
    }
    EXPECT_LT(played.size(), 240u) << method->name;
  }
  EXPECT_LT((WalkScore{.fits = true, .size = 1e12}), (WalkScore{.fits = false, .size = 1}));
}

// Neighbours that are likely to be fast come first, and no family is begun that is not, as long as
// there is anything else.
TEST(Walk, GoesWhereItIsLikelyToBeFast) {
  std::set<size_t> played;
  WalkQuestion question;
  question.promising = {0, 2, 1, 3, 4};
  question.family = [](size_t i) { return uint64_t{i}; };
  question.neighbours = [](size_t i) {
    return i == 0 ? std::vector<size_t>{4, 3} : std::vector<size_t>();
  };
  question.likely = [](size_t i) { return std::vector<double>{1, 1.1, 9, 2, 3}[i]; };
  question.is_open = [&](size_t i) { return !played.contains(i); };
  const std::unique_ptr<Walk> walk = kBeamMethod.make(question);
  std::vector<size_t> order;
  for (std::vector<size_t> one = walk->Next(1, 0); !one.empty(); one = walk->Next(1, 0)) {
    order.push_back(one.front());
    played.insert(one.front());
    walk->Found(one.front(), WalkScore{.size = question.likely(one.front())});
  }
  EXPECT_EQ(order, (std::vector<size_t>{0, 3, 1, 4, 2}));
}

// One at a time, too: neighbours of the best, or of where it is, are among the first.
TEST(Walk, TakesTurnsOneAtATime) {
  for (const Method method : {&kBeamMethod, &kAnnealingMethod}) {
    std::set<size_t> played;
    WalkQuestion question = Square().Question(1);
    question.family = [](size_t i) { return uint64_t{i}; };  // all begin one
    question.is_open = [&](size_t i) { return !played.contains(i); };
    const std::unique_ptr<Walk> walk = method->make(question);
    for (int turn = 0; turn < 8; ++turn) {
      const std::vector<size_t> one = walk->Next(1, 0);
      ASSERT_EQ(one.size(), 1u);
      played.insert(one.front());
      walk->Found(one.front(), Square::ScoreOf(one.front()));
    }
    // Beginnings are in the first row.
    const auto below = std::ranges::count_if(played, [](size_t i) { return i >= Square::kSide; });
    EXPECT_GT(below, 0) << method->name;
  }
}

TEST(Walk, EndsWhereAllAreClosed) {
  for (const Method method : AllMethods()) {
    std::set<size_t> played;
    WalkQuestion question = Square().Question(1);
    question.is_open = [&](size_t i) { return i % 3 == 0 && !played.contains(i); };
    const std::unique_ptr<Walk> walk = method->make(question);
    for (std::vector<size_t> batch = walk->Next(8, 0); !batch.empty(); batch = walk->Next(8, 0)) {
      played.insert(batch.begin(), batch.end());
      for (const size_t i : batch) {  // some do not fit
        walk->Found(i, i % 2 == 0 ? std::optional(Square::ScoreOf(i)) : std::nullopt);
      }
    }
    EXPECT_EQ(played.size(), (Square::kAll + 2) / 3) << method->name;
  }
}

TEST(ParseMethod, ReadsNames) {
  for (const Method method : AllMethods()) {
    EXPECT_EQ(ParseMethod(method->name).value(), method);
  }
  EXPECT_EQ(ParseMethod("best").status().message(),
            "'best': wanted exhaustive, beam, annealing, mcmc, evolution, bayes or reinforce");
}

TEST(ParseBudget, ReadsTimesAndNumbers) {
  EXPECT_EQ(ParseBudget("60s").value(), SearchBudget{.seconds = 60});
  EXPECT_EQ(ParseBudget("1.5min").value(), SearchBudget{.seconds = 90});
  EXPECT_EQ(ParseBudget("2h").value(), SearchBudget{.seconds = 7200});
  EXPECT_EQ(ParseBudget("500").value(), SearchBudget{.candidates = 500});
  for (const char* text : {"60s", "500", "0.25s"}) {
    EXPECT_EQ(ToString(ParseBudget(text).value()), text);
  }
  for (const char* bad : {"", "0", "-1", "0s", "s", "1d", "inf s", "nans", "1e300h", "1.5"}) {
    EXPECT_THAT(std::string(ParseBudget(bad).status().message()),
                testing::HasSubstr("wanted a time, as in 60s, 10min or 2h, or a number of "))
        << bad;
  }
}

}  // namespace
}  // namespace methods_test_cc
}  // namespace orrery::search
