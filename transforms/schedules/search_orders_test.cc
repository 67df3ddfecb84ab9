#include "transforms/schedules/search_orders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "support/file.h"
#include "support/paths_test_util.h"
#include "transforms/schedules/order_judge.h"
#include "transforms/schedules/orders.h"
#include "transforms/schedules/testing/slots.h"
#include "transforms/schedules/text.h"

// The schedules that come out of a search: against those of the published generators, and what must
// hold of each for any shape and any durations.

namespace orrery::transforms {
namespace search_orders_test_cc {
namespace {

using nlohmann::json;
const PipelineSchedule& Schedule(absl::string_view name) { return *FindSchedule(name).value(); }

// Orders of a schedule for steps of some durations, and what comes of them.
// So many parameters: it is what tests vary.
struct Searched {
  Searched(absl::string_view name, int32_t ranks, int32_t microbatches,
           const StepDurations& durations = {}, int64_t live_limit = 0)
      : schedule(Schedule(name)), shape(schedule.ShapeOf(ranks, microbatches)) {
    shape.durations = durations;
    shape.live_limit = live_limit;
    orders = schedule.OrdersOf(shape);
    for (const auto& order : orders) live.push_back(PeakLive(order));
  }

  Timing Time(const StepDurations& durations) const {
    return TimeOrders(orders, schedule.placement, shape, durations);
  }
  int64_t MostLive() const { return *std::max_element(live.begin(), live.end()); }

  const PipelineSchedule& schedule;
  PipelineShape shape;
  RankOrders orders;
  std::vector<int64_t> live;
};

constexpr StepDurations kUnit = {};
const std::vector<std::string> kSearched = {"zb-h1",  "zb-h2", "zb-1p", "zbv-auto",
                                            "v-half", "v-min", "1f1b-v"};

// What each stands for, in activations of one stage and one microbatch.
int64_t LimitOf(absl::string_view name, int64_t ranks) {
  if (name == "zb-h1" || name == "zb-1p") return ranks;
  if (name == "v-half") return 2 * (ranks / 2 + 1);
  if (name == "v-min") return 2 * ((ranks + 1) / 3 + 1);
  if (name == "1f1b-v") return 2 * (2 * ranks / 3 + 1);
  return 2 * ranks;
}

// The published orders of one shape, and ours.
struct Comparison {
  explicit Comparison(const json& golden)
      : name(OurNames().at(golden["name"])),
        ranks(golden["p"]),
        microbatches(golden["m"]),
        time(golden["unit_time_check"]["F1_I1_W1"]["makespan"].get<double>()),
        transformer_time(golden["unit_time_check"]["F10_I12_W8"]["makespan"].get<double>()),
        live(golden["peak_inflight_activations_until_W"]),
        theirs(ParseOrders(TextOf(golden)).value().orders),
        ours(name, ranks, microbatches),
        told(name, ranks, microbatches, kTransformerDurations) {}

  static std::string TextOf(const json& golden) {
    std::string text;
    for (const json& rank : golden["ranks"]) {
      absl::StrAppend(&text, absl::StrJoin(rank.get<std::vector<std::string>>(), ","), "\n");
    }
    return text;
  }

  static const std::map<std::string, std::string>& OurNames() {
    static const auto* names =
        new std::map<std::string, std::string>{{"ZB-H1(max_mem=p*F)", "zb-h1"},
                                               {"ZB-H2(max_mem=2p*F)", "zb-h2"},
                                               {"ZBV(zb)", "zbv-auto"},
                                               {"V-Half", "v-half"},
                                               {"V-Min", "v-min"},
                                               {"1F1B-V", "1f1b-v"}};
    return *names;
  }

  OrderJudge Bounds() const {
    BlockPipeline pipeline = {.ranks = static_cast<size_t>(ranks),
                              .microbatches = static_cast<size_t>(microbatches),
                              .chunks = static_cast<size_t>(ours.shape.chunks),
                              .splits_backward = name != "1f1b-v"};
    const int64_t limit = LimitOf(name, ranks);
    const bool is_v = absl::StrContains(name, "v-") && name != "zbv-auto";
    pipeline.live_limits = is_v ? LimitsOfV(ours.shape, limit)
                                : std::vector<int64_t>(static_cast<size_t>(ranks), limit);
    return {pipeline, kUnit};
  }

  std::string name;
  int32_t ranks, microbatches;
  double time, transformer_time;
  std::vector<int64_t> live;
  RankOrders theirs;
  Searched ours, told;
};

std::vector<Comparison> Comparisons() {
  const std::string text =
      ReadFile(absl::StrCat(SourceDir(), "/tests/data/schedules.json")).value();
  std::vector<Comparison> comparisons;
  const json file = json::parse(text);
  for (const json& golden : file["schedules"]) {
    if (Comparison::OurNames().count(golden["name"]) > 0) comparisons.emplace_back(golden);
  }
  return comparisons;
}

TEST(SearchOrders, AreNoLongerAndKeepNoMoreThanThePublishedOnes) {
  const std::vector<Comparison> comparisons = Comparisons();
  EXPECT_EQ(comparisons.size(), 37u);
  for (const Comparison& row : comparisons) {
    SCOPED_TRACE(absl::StrCat(row.name, " p=", row.ranks, " m=", row.microbatches));
    EXPECT_LE(row.ours.Time(kUnit).makespan, row.time);
    EXPECT_LE(row.ours.Time(kTransformerDurations).makespan, row.transformer_time);
    EXPECT_LE(row.told.Time(kTransformerDurations).makespan, row.transformer_time);
    for (size_t rank = 0; rank < row.live.size(); ++rank) {
      EXPECT_LE(row.ours.live[rank], row.live[rank]) << "rank " << rank;
      EXPECT_LE(row.told.live[rank], row.live[rank]) << "rank " << rank;
    }
  }
}

// "8", or "7 8 8 8" where ranks differ.
std::string LiveText(const std::vector<int64_t>& live) {
  const bool equal = std::count(live.begin(), live.end(), live.front()) == std::ssize(live);
  return equal ? absl::StrCat(live.front()) : absl::StrJoin(live, " ");
}

std::string Row(const Comparison& row) {
  const OrderJudge bounds = row.Bounds();
  return absl::StrCat("| `", row.name, "` | ", row.ranks, " | ", row.microbatches, " | ", row.time,
                      ", ", row.ours.Time(kUnit).makespan, ", ", bounds.LowerBound(kUnit), " | ",
                      row.transformer_time, ", ", row.ours.Time(kTransformerDurations).makespan,
                      ", ", row.told.Time(kTransformerDurations).makespan, ", ",
                      bounds.LowerBound(kTransformerDurations), " | ", LiveText(row.live), " | ",
                      LiveText(row.ours.live), " |\n");
}

const std::string kPage = SourceDir() + "/docs/schedules_search.md";

// The table of the page that has this head is this. ORRERY_BLESS=1 rewrites it.
void ExpectTable(const std::string& head, const std::string& rows) {
  const std::string page = ReadFile(kPage).value();
  const size_t begin = page.find(head);
  ASSERT_NE(begin, std::string::npos) << head;
  const size_t end = page.find("\n\n", begin) + 1;
  const char* bless = std::getenv("ORRERY_BLESS");
  if (bless != nullptr && std::string(bless) == "1") {
    const std::string blessed = absl::StrCat(page.substr(0, begin), head, rows, page.substr(end));
    ASSERT_TRUE(WriteFile(kPage, blessed).ok());
    return;
  }
  EXPECT_EQ(page.substr(begin, end - begin), head + rows);
}

TEST(SearchOrders, ThePageHasThemBesideThePublishedOnes) {
  const std::vector<Comparison> comparisons = Comparisons();
  std::string rows;
  for (const std::string& name : kSearched) {
    for (const Comparison& row : comparisons) {
      if (row.name == name) rows += Row(row);
    }
  }
  ExpectTable(
      "| schedule | p | m | time: theirs, ours, bound | F=10 I=12 W=8: theirs, ours, told, bound "
      "| live: theirs | ours |\n|---|---|---|---|---|---|---|\n",
      rows);
}

// How many of some makespans are longer than others, and by how much.
struct Tally {
  void Add(int64_t ours, int64_t theirs) {
    if (ours > theirs) ++longer;
    if (ours < theirs) ++shorter;
    most = std::max(most, static_cast<double>(ours) / static_cast<double>(theirs) - 1);
  }
  std::string Text() const {
    return absl::StrFormat(" %d | %d | %.1f %% |", longer, shorter, 100 * most);
  }

  int longer = 0;
  int shorter = 0;
  double most = 0;
};

TEST(SearchOrders, ThePageSaysHowTheyFareUnderOtherDurations) {
  const std::vector<Comparison> comparisons = Comparisons();
  std::string rows;
  for (const auto& [forward, input_gradient, weight_gradient, send] :
       std::vector<std::array<int64_t, 4>>{{10, 20, 10, 0},
                                           {10, 15, 10, 0},
                                           {10, 13, 7, 0},
                                           {10, 15, 5, 0},
                                           {10, 9, 11, 0},
                                           {10, 8, 12, 0},
                                           {10, 10, 20, 0},
                                           {2, 2, 1, 0},
                                           {13, 17, 7, 0},
                                           {10, 10, 10, 1},
                                           {10, 12, 8, 3}}) {
    const StepDurations durations = {.forward = forward,
                                     .input_gradient = input_gradient,
                                     .weight_gradient = weight_gradient,
                                     .send = send};
    Tally untold;
    Tally told;
    for (const Comparison& row : comparisons) {
      const Searched& ours = row.ours;
      const int64_t theirs =
          TimeOrders(row.theirs, ours.schedule.placement, ours.shape, durations).makespan;
      untold.Add(ours.Time(durations).makespan, theirs);
      told.Add(Searched(row.name, row.ranks, row.microbatches, durations).Time(durations).makespan,
               theirs);
    }
    absl::StrAppend(&rows, "| ", forward, " | ", input_gradient, " | ", weight_gradient, " | ",
                    send, " |", untold.Text(), told.Text(), "\n");
    EXPECT_LE(told.longer, 1);
    EXPECT_LE(told.most, 0.02);
  }
  ExpectTable(
      "| F | I | W | send | longer | shorter | by at most | told: longer | shorter | by at most |\n"
      "|---|---|---|---|---|---|---|---|---|---|\n",
      rows);
}

template <typename Check>
void ForEachShape(Check check) {
  for (const int32_t ranks : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16}) {
    for (const int32_t microbatches : {1, 2, 3, 5, 8, 13, 20, 37}) {
      SCOPED_TRACE(absl::StrCat(ranks, " ranks, ", microbatches, " microbatches"));
      check(ranks, microbatches);
    }
  }
}

TEST(SearchOrders, KeepTheirLimitsWhateverStepsLast) {
  ForEachShape([](int32_t ranks, int32_t microbatches) {
    if (ranks * microbatches > 120) return;
    for (const StepDurations& durations :
         {kUnit, StepDurations{.forward = 7, .input_gradient = 30, .weight_gradient = 1, .send = 3},
          StepDurations{.forward = 30, .input_gradient = 1, .weight_gradient = 0},
          StepDurations{.forward = 123'456'789'012,
          .input_gradient = 222'222'222'222,
          .weight_gradient = 99'999'999'999,
          .send = 5'555'555'555}}) {
      for (const std::string& name : kSearched) {
        const Searched searched(name, ranks, microbatches, durations);
        const absl::Status status =
            VerifyOrders(searched.orders, searched.schedule.placement, searched.shape);
        EXPECT_TRUE(status.ok()) << name << ": " << status;
        EXPECT_LE(searched.MostLive(), LimitOf(name, ranks)) << name;
      }
    }
  });
}

// What no schedule with forwards in all of one stage a rank falls short of: the last rank starts
// late. And a rank that has no bubble but before it starts.
TEST(SearchOrders, ZbH2HasNoBubbleInsideARank) {
  ForEachShape([](int32_t ranks, int32_t microbatches) {
    if (microbatches < 2 * ranks - 1) return;
    const Timing timing = Searched("zb-h2", ranks, microbatches).Time(kUnit);
    EXPECT_EQ(timing.makespan, ranks - 1 + 3 * microbatches);
    EXPECT_THAT(timing.idle_inside, testing::Each(0));
  });
}

// A third of 1F1B's bubble of (p-1)(F+I+W): (p-1)(F+I-W), here with F, I and W alike.
TEST(SearchOrders, ZbH1HasAThirdOfTheBubbleOf1f1b) {
  ForEachShape([](int32_t ranks, int32_t microbatches) {
    if (microbatches < ranks) return;
    const Searched searched("zb-h1", ranks, microbatches);
    EXPECT_EQ(searched.Time(kUnit).makespan, ranks - 1 + 3 * microbatches);
    const StepDurations durations = {.forward = 5, .input_gradient = 6, .weight_gradient = 4};
    EXPECT_EQ(searched.Time(durations).makespan, (ranks - 1) * (5 + 6 - 4) + 15 * microbatches);
  });
}

// The V of zbv: the rule waits for nothing either from 2p-1 microbatches on; with fewer the search
// is shorter, and never longer.
TEST(SearchOrders, ZbvAutoIsNoLongerThanTheRule) {
  ForEachShape([](int32_t ranks, int32_t microbatches) {
    const Searched rule("zbv", ranks, microbatches);
    const Searched searched("zbv-auto", ranks, microbatches);
    const int64_t makespan = searched.Time(kUnit).makespan;
    EXPECT_LE(makespan, rule.Time(kUnit).makespan);
    EXPECT_LE(searched.Time(kTransformerDurations).makespan,
              rule.Time(kTransformerDurations).makespan);
    if (ranks == 1 || microbatches < 2 * ranks - 1) return;
    EXPECT_EQ(makespan, ranks - 1 + 6 * microbatches);
    EXPECT_EQ(rule.Time(kUnit).makespan, makespan);
  });
  // Where steps last unequally the rule gives way to what is shorter.
  const PipelineSchedule& zbv = **FindSchedule("zbv");
  PipelineShape shape = zbv.ShapeOf(8, 4);
  shape.durations = kTransformerDurations;
  const auto makespan = [&](const RankOrders& orders) {
    return TimeOrders(orders, StagePlacement::kV, shape, kTransformerDurations).makespan;
  };
  EXPECT_LT(makespan(zbv.OrdersOf(shape)), makespan(zbv.OrdersOf(zbv.ShapeOf(8, 4))));
  EXPECT_EQ(Searched("zbv", 8, 4).Time(kUnit).makespan, 46);
  EXPECT_EQ(Searched("zbv-auto", 8, 4).Time(kUnit).makespan, 39);
}

// What is gained and lost is at the two ends.
TEST(SearchOrders, TheBubbleDoesNotGrowWithMicrobatches) {
  for (const std::string& name : kSearched) {
    for (const int32_t ranks : {2, 4, 7, 8, 12}) {
      const auto bubble = [&](int32_t microbatches) {
        const Searched searched(name, ranks, microbatches);
        return searched.Time(kUnit).makespan - 3 * searched.shape.chunks * microbatches;
      };
      const int64_t of_few = bubble(2 * ranks);
      EXPECT_EQ(bubble(3 * ranks), of_few) << name << " of " << ranks;
      EXPECT_EQ(bubble(20 * ranks), of_few) << name << " of " << ranks;
      EXPECT_LE(of_few, 3 * Schedule(name).chunks * (ranks - 1)) << name << " of " << ranks;
    }
  }
}

// The more memory, the less bubble, down to one microbatch at a time.
TEST(SearchOrders, Zb1pObeysItsLimitAndUsesIt) {
  for (const int32_t ranks : {1, 2, 3, 5, 8}) {
    for (const int32_t microbatches : {1, 4, 9, 20}) {
      int64_t before = (3 * int64_t{ranks} - ranks + 1) * microbatches;  // F and I of all, one W
      for (int64_t limit = 1; limit <= 2 * ranks + 1; ++limit) {
        const Searched searched("zb-1p", ranks, microbatches, kUnit, limit);
        const int64_t makespan = searched.Time(kUnit).makespan;
        EXPECT_LE(searched.MostLive(), limit);
        EXPECT_LE(makespan, before) << ranks << " " << microbatches << " " << limit;
        before = makespan;
      }
      EXPECT_EQ(before, Searched("zb-h2", ranks, microbatches).Time(kUnit).makespan);
    }
  }
}

TEST(SearchOrders, DurationsThatAreKnownShortenTheOrders) {
  const StepDurations durations = {
      .forward = 10, .input_gradient = 15, .weight_gradient = 5, .send = 2};
  int shorter = 0;
  for (const std::string& name : kSearched) {
    for (const auto& [ranks, microbatches] : {std::pair(4, 8), std::pair(8, 16), std::pair(6, 9)}) {
      const int64_t told = Searched(name, ranks, microbatches, durations).Time(durations).makespan;
      const int64_t untold = Searched(name, ranks, microbatches).Time(durations).makespan;
      EXPECT_LE(told, untold + untold / 100) << name << " " << ranks << " " << microbatches;
      if (told < untold) ++shorter;
    }
  }
  EXPECT_GE(shorter, 8);
}

TEST(SearchOrders, SayThatTheyReadDurations) {
  for (const std::string& name : kSearched) EXPECT_TRUE(Schedule(name).weighs_durations) << name;
}

TEST(LimitsOfV, AreLessWithFewMicrobatches) {
  const PipelineShape shape = {.ranks = 5, .microbatches = 3, .chunks = 2};
  EXPECT_THAT(LimitsOfV(shape, 8), testing::ElementsAre(4, 5, 6, 6, 6));
  EXPECT_THAT(LimitsOfV(shape, 5), testing::ElementsAre(4, 5, 5, 5, 5));
}

TEST(SearchOrdersDeathTest, ARankMustHoldAMicrobatchOnEachOfItsStages) {
  const std::vector<BlockGaps> starts(1);
  const PipelineShape shape = {.ranks = 2, .microbatches = 2, .chunks = 2};
  EXPECT_DEATH(
      SearchOrders(shape,
                   {.placement = StagePlacement::kV, .live_limits = {2, 1}, .starts = starts}),
      "at most 1 live");
}

}  // namespace
}  // namespace search_orders_test_cc
}  // namespace orrery::transforms
