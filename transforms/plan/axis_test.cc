#include "transforms/plan/axis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "transforms/plan/mesh.h"
#include "transforms/plan/plan_text.h"
#include "transforms/plan/random_plan_test_util.h"

namespace orrery::transforms {
namespace axis_test_cc {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;

std::vector<std::string> PrintsOf(const ParallelPlan& plan) {
  std::vector<std::string> prints;
  for (const AxisInfo* axis : AllAxes()) prints.push_back(axis->print(plan));
  return prints;
}

// The axes whose values differ.
std::vector<std::string> Differing(const ParallelPlan& a, const ParallelPlan& b) {
  std::vector<std::string> flags;
  for (const AxisInfo* axis : AllAxes()) {
    if (axis->print(a) != axis->print(b)) flags.emplace_back(axis->flag);
  }
  return flags;
}

TEST(Axes, SayAllThatIsWantedOfThem) {
  for (const AxisInfo* axis : AllAxes()) {
    SCOPED_TRACE(axis->flag);
    EXPECT_FALSE(axis->flag.empty());
    for (const char c : axis->flag)
      EXPECT_TRUE(absl::ascii_islower(static_cast<unsigned char>(c)) || c == '-') << c;
    EXPECT_FALSE(axis->summary.empty());
    EXPECT_FALSE(absl::EndsWith(axis->summary, "."));
    EXPECT_FALSE(axis->values.empty());
    EXPECT_FALSE(absl::EndsWith(axis->values, "."));
    ASSERT_NE(axis->parse, nullptr);
    ASSERT_NE(axis->print, nullptr);
    ASSERT_NE(axis->copy, nullptr);
    EXPECT_EQ(axis->applies == nullptr, axis->needs.empty());
    EXPECT_FALSE(axis->split != nullptr && !axis->lists);
    if (axis->left_open == LeftOpen::kDividesDevices) {
      EXPECT_NE(axis->degree, nullptr);
    }
    ASSERT_FALSE(axis->examples.empty());
    EXPECT_NE(ExampleOf(*axis), ParallelPlan()) << "the first example is the default";
  }
}

TEST(Axes, HaveNamesAndColumnsOfTheirOwn) {
  std::set<std::string> flags, columns;
  std::set<int> positions;
  for (const AxisInfo* axis : AllAxes()) {
    EXPECT_TRUE(flags.emplace(axis->flag).second) << axis->flag;
    if (!axis->alias.empty()) {
      EXPECT_TRUE(flags.emplace(axis->alias).second) << axis->alias;
    }
    EXPECT_TRUE(columns.insert(axis->Column()).second) << axis->Column();
    EXPECT_FALSE(absl::StrContains(axis->Column(), "-")) << axis->Column();
    EXPECT_GE(axis->column_position, 0);
    if (axis->column_position == 0) continue;
    EXPECT_TRUE(positions.insert(axis->column_position).second) << axis->flag;
  }
}

TEST(FindAxis, KnowsFlagsAndAliases) {
  for (const AxisInfo* axis : AllAxes()) {
    EXPECT_EQ(FindAxis(axis->flag), axis);
    if (!axis->alias.empty()) {
      EXPECT_EQ(FindAxis(axis->alias), axis);
    }
  }
  EXPECT_EQ(FindAxis("tp"), FindAxis("hp"));
  for (const char* name : {"", "--dp", "DP", "num_microbatches", "mp"}) {
    EXPECT_EQ(FindAxis(name), nullptr) << name;
  }
}

// Of equal values the same text, which is read again as what it was printed from.
TEST(Axes, ReadWhatTheyPrint) {
  for (const AxisInfo* axis : AllAxes()) {
    for (const std::string& text : TextsOf(*axis)) {
      SCOPED_TRACE(absl::StrCat(axis->flag, " ", text));
      ParallelPlan plan;
      const absl::Status read = axis->parse(text, plan);
      ASSERT_TRUE(read.ok()) << read;
      const std::string printed = axis->print(plan);
      ParallelPlan again;
      ASSERT_TRUE(axis->parse(printed, again).ok()) << printed;
      EXPECT_EQ(axis->print(again), printed);
      EXPECT_EQ(again, plan);
      EXPECT_EQ(again == ParallelPlan(), printed == axis->print(ParallelPlan()));
    }
  }
}

TEST(Axes, SetNothingButTheirOwn) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const ParallelPlan plan = RandomPlan(seed), other = RandomPlan(1000 + seed);
    for (const AxisInfo* axis : AllAxes()) {
      SCOPED_TRACE(absl::StrCat(axis->flag, " seed ", seed));
      for (const std::string& text : TextsOf(*axis)) {
        ParallelPlan set = plan;
        ASSERT_TRUE(axis->parse(text, set).ok());
        for (const std::string& flag : Differing(plan, set)) EXPECT_EQ(flag, axis->flag);
      }
      ParallelPlan copied = plan;
      axis->copy(other, copied);
      EXPECT_EQ(axis->print(copied), axis->print(other));
      for (const std::string& flag : Differing(plan, copied)) EXPECT_EQ(flag, axis->flag);
    }
  }
}

// All axes together are the whole plan.
TEST(Axes, CopyAllThereIs) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    const ParallelPlan plan = RandomPlan(seed);
    ParallelPlan copied = RandomPlan(1000 + seed);
    for (const AxisInfo* axis : AllAxes()) axis->copy(plan, copied);
    EXPECT_EQ(copied, plan);
    EXPECT_EQ(PrintsOf(copied), PrintsOf(plan));
  }
}

// Axes that take any text have no mistake.
TEST(Axes, SayWhatTheyDoNotTake) {
  int64_t mistakes = 0;
  for (const AxisInfo* axis : AllAxes()) {
    if (axis->mistake.text == nullptr) continue;
    SCOPED_TRACE(axis->flag);
    ++mistakes;
    const ParallelPlan plan = RandomPlan(1);
    ParallelPlan same = plan;
    const absl::Status status = axis->parse(axis->mistake.text, same);
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(axis->mistake.error)));
    EXPECT_FALSE(axis->mistake.error.empty());
    EXPECT_EQ(same, plan);
  }
  EXPECT_GE(mistakes, 27);
}

// What is chosen beside a plan differs from it in this axis alone, and is each there once.
TEST(Axes, ChooseNothingButTheirOwn) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    const ParallelPlan plan = RandomPlan(seed);
    for (const AxisInfo* axis : AllAxes()) {
      if (axis->choices == nullptr) continue;
      std::vector<ParallelPlan> given;
      for (const std::string& text : TextsOf(*axis)) {
        ASSERT_TRUE(axis->parse(text, given.emplace_back()).ok());
      }
      const SpaceQuestion question = {{.devices = 16, .batch_size = 64, .sequence = 2048}};
      for (const auto& choices :
           {axis->choices(question, plan, {}), axis->choices(question, plan, given)}) {
        SCOPED_TRACE(absl::StrCat(axis->flag, " seed ", seed));
        EXPECT_FALSE(choices.empty());
        std::set<std::string> values;
        for (const ParallelPlan& choice : choices) {
          for (const std::string& flag : Differing(plan, choice)) EXPECT_EQ(flag, axis->flag);
          EXPECT_TRUE(values.insert(axis->print(choice)).second) << axis->print(choice);
        }
      }
    }
  }
}

TEST(Suggestions, AreThoseOfAFewAxes) {
  std::set<std::string> flags;
  for (const AxisInfo* axis : AllAxes()) {
    if (axis->suggest != nullptr) flags.emplace(axis->flag);
  }
  EXPECT_THAT(flags,
              UnorderedElementsAre("hp", "pp", "micro-batches", "zero", "recompute", "offload"));
}

// Each is a plan that the cluster has room for, written down as the flags that make it.
TEST(Suggestions, LeaveThePlanValid) {
  const SuggestionQuestion question = {.devices = 16, .batch_size = 96, .sequence = 48};
  int suggested = 0;
  for (uint32_t seed = 0; seed < 600; ++seed) {
    ParallelPlan plan = RandomPlan(seed);
    plan.dp = 1 + seed % 2 * 3;
    plan.hp = 1 + seed / 2 % 2;
    plan.pp = 1 + seed / 4 % 2;
    plan.cp = plan.ep = 1;
    if (seed % 8 != 0) plan.stage_meshes = {};  // few plans have the degrees of both
    if (seed % 8 != 0) plan.shares = {};
    if (seed % 8 != 0) plan.placement = {};
    if (seed % 4 != 0) plan.compression = {};
    plan.microbatches = plan.schedule->slices_sequence ? 3 : 6;
    if (!CheckPlan(plan).ok()) continue;
    for (const AxisInfo* axis : AllAxes()) {
      if (axis->suggest == nullptr) continue;
      std::vector<Suggestion> suggestions;
      axis->suggest(*axis, question, plan, suggestions);
      for (const Suggestion& suggestion : suggestions) {
        SCOPED_TRACE(absl::StrCat(ToString(plan), ": ", suggestion.change));
        ++suggested;
        EXPECT_TRUE(CheckPlan(suggestion.plan).ok()) << CheckPlan(suggestion.plan);
        EXPECT_TRUE(MakeMesh(suggestion.plan).ok());
        EXPECT_LE(suggestion.plan.ranks(), question.devices);
        EXPECT_NE(suggestion.plan, plan);
        EXPECT_TRUE(absl::StartsWith(suggestion.change, absl::StrCat("--", axis->flag, " ")));
        EXPECT_EQ(ParsePlan(suggestion.change, plan).value(), suggestion.plan);
        const MemoryShares& shares = suggestion.shares;
        EXPECT_LT(
            std::min({shares.parameters, shares.gradients, shares.optimizer, shares.activations}),
            1);
        EXPECT_GE(suggestion.rank, 0);
      }
    }
  }
  EXPECT_GT(suggested, 500);
}

TEST(Suggest, NamesTheAxisFirstAndThenWhatElseDiffers) {
  const ParallelPlan from = {.dp = 4}, to = {.dp = 2, .pp = 2};
  EXPECT_EQ(Suggest(*FindAxis("pp"), from, to).change, "--pp 2 --dp 2");
  EXPECT_EQ(Suggest(*FindAxis("pp"), from, to).plan, to);
}

// What a value contradicts, or means nothing beside, in words.
TEST(CheckPlan, SaysWhatMakesNoSense) {
  const auto error = [](const ParallelPlan& plan, const ParallelPlan& base = {}) {
    return std::string(CheckPlan(plan, base).message());
  };
  EXPECT_EQ(error({}), "");
  EXPECT_EQ(error({.dp = 4, .zero = 1, .zero_group = 2}), "");
  EXPECT_EQ(error({.dp = 4, .zero_group = 2}),
            "zero-group 2: wanted ZeRO's stage 1, 2 or 3 beside it");
  EXPECT_EQ(error({.dp = 4, .zero_group = 2}, {.zero_group = 2}), "");
  EXPECT_EQ(error({.slices = {.balanced = true}}),
            "slices balanced: wanted a schedule of slices, as terapipe is");
  EXPECT_EQ(error({.slices = {.balanced = true}, .schedule = "terapipe"}), "");
  EXPECT_EQ(error({.context_attention = ContextAttention::kRing}),
            "context-attention ring: wanted a context-parallel degree (cp) of at least 2");
  EXPECT_EQ(error({.hp = 2, .sharding = ShardingMethod::kMegatron, .pins = {{"w0", 1}}}),
            "shard: sharding by Megatron's pattern places all; wanted auto");
  EXPECT_EQ(error({.split_at = "h", .layers_per_stage = {1}}),
            "split-at: a pattern of first ops and layers of each stage each say where stages "
            "begin; wanted one");
}

// What gives way is what fails, and nothing else.
TEST(Settled, IsAPlanThatMakesSense) {
  int64_t settled = 0;
  for (uint32_t seed = 0; seed < 400; ++seed) {
    const ParallelPlan plan = RandomPlan(seed), sensible = Settled(plan, {});
    EXPECT_TRUE(CheckPlan(sensible).ok()) << CheckPlan(sensible);
    EXPECT_EQ(sensible == plan, CheckPlan(plan).ok()) << ToString(plan);
    EXPECT_EQ(Settled(sensible, {}), sensible);
    for (const AxisInfo* axis : AllAxes()) {
      if (axis->applies == nullptr && axis->check == nullptr) {
        EXPECT_EQ(axis->print(sensible), axis->print(plan)) << axis->flag;
      }
    }
    settled += sensible == plan ? 0 : 1;
  }
  EXPECT_GT(settled, 100);
}

// What is found out for one value of a detail, an axis that says only how a plan is carried out,
// holds for all: no other axis reads it.
TEST(Axes, ReadNoDetailsOfEachOther) {
  int details = 0;
  for (const AxisInfo* axis : AllAxes()) details += axis->detail ? 1 : 0;
  EXPECT_GT(details, 5);
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const ParallelPlan plan = RandomPlan(seed);
    for (const AxisInfo* detail : AllAxes()) {
      if (!detail->detail) continue;
      for (const absl::string_view text : detail->examples) {
        ParallelPlan other = plan;
        ASSERT_TRUE(detail->parse(text, other).ok()) << detail->flag << " " << text;
        for (const AxisInfo* axis : AllAxes()) {
          if (axis == detail) continue;
          EXPECT_EQ(CheckAxis(*axis, other).ok(), CheckAxis(*axis, plan).ok())
              << detail->flag << " " << text << ", " << axis->flag << ": " << ToString(plan);
        }
      }
    }
  }
}

}  // namespace
}  // namespace axis_test_cc
}  // namespace orrery::transforms
