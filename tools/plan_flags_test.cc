#include "tools/plan_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "support/sanitized_test_util.h"
#include "tools/flags.h"
#include "tools/presets.h"
#include "transforms/plan/plan_text.h"
#include "transforms/plan/random_plan_test_util.h"

namespace orrery::tools {
namespace plan_flags_test_cc {
namespace {

namespace po = boost::program_options;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using transforms::FindAxis;
using transforms::ParallelPlan;

// What a program with the flags of that form reads from `words`.
PlanFlags Read(const std::vector<std::string>& words, PlanForm form = PlanForm::kOne) {
  PlanFlags flags;
  po::options_description options;
  AddPlanFlags(options, form, {}, flags);
  po::variables_map values;
  po::store(po::command_line_parser(words).options(options).run(), values);
  po::notify(values);
  return flags;
}

// The plan, or the error.
std::string Plan(const std::vector<std::string>& words) {
  const absl::StatusOr<ParallelPlan> plan = ReadPlan(Read(words), {});
  return plan.ok() ? ToString(*plan) : std::string(plan.status().message());
}

std::string Help(PlanForm form, const ParallelPlan& base, const std::string& flag) {
  PlanFlags flags;
  po::options_description options;
  AddPlanFlags(options, form, base, flags);
  const po::option_description* const option = options.find_nothrow(flag, /*approx=*/false);
  return option == nullptr ? "" : option->description();
}

TEST(PlanFlags, HoldWhatIsGivenInItsOrder) {
  PlanFlags flags;
  const transforms::AxisInfo& pins = *FindAxis("shard");
  EXPECT_FALSE(flags.Has("shard"));
  EXPECT_EQ(flags.Given(pins), nullptr);
  flags.Give(pins, "b");
  flags.Give(pins, "a");
  EXPECT_TRUE(flags.Has("shard"));
  EXPECT_FALSE(flags.Has("shar"));
  ASSERT_NE(flags.Given(pins), nullptr);
  EXPECT_THAT(*flags.Given(pins), ElementsAre("b", "a"));
}

TEST(PlanFlags, MakeAPlanOfTheBase) {
  EXPECT_EQ(Plan({}), ToString(ParallelPlan()));
  EXPECT_EQ(Plan({"--dp", "2", "--tp", "4", "--zero=3", "--schedule", "gpipe"}),
            "--dp 2 --hp 4 --pp 1 --micro-batches 1 --schedule gpipe --zero 3");
  const ParallelPlan base = {.dp = 8, .blocking = true};
  EXPECT_EQ(ReadPlan(Read({"--pp=2"}), base).value(),
            (ParallelPlan{.dp = 8, .pp = 2, .blocking = true}));
}

// A list of slices says how many there are, unless it is said otherwise.
TEST(PlanFlags, FollowFromOthers) {
  const auto microbatches = [](const std::vector<std::string>& words) {
    return ReadPlan(Read(words), {.microbatches = 7}).value().microbatches;
  };
  EXPECT_EQ(microbatches({"--slices=8,4,2"}), 3);
  EXPECT_EQ(microbatches({"--slices=8,4,2", "--micro-batches=2"}), 2);
  EXPECT_EQ(microbatches({"--slices=balanced"}), 7);
}

TEST(PlanFlags, OfSwitchesNeedNoValue) {
  EXPECT_TRUE(ReadPlan(Read({"--blocking"}), {}).value().blocking);
  EXPECT_TRUE(ReadPlan(Read({"--blocking=1"}), {}).value().blocking);
  EXPECT_FALSE(ReadPlan(Read({"--blocking=0"}), {.blocking = true}).value().blocking);
}

TEST(PlanFlags, ThatRepeatAddUp) {
  EXPECT_THAT(*Read({"--shard", "a=hp@0", "--dp=2", "--shard", "b=hp@1"}).Given(*FindAxis("shard")),
              ElementsAre("a=hp@0", "b=hp@1"));
  EXPECT_EQ(ReadPlan(Read({"--shard", "a=hp@0", "--shard", "b=hp@1"}), {}).value().pins.size(), 2);
}

// No number is wrong usage, but a list of a search is read later.
TEST(PlanFlags, OfNumbersWantThem) {
  EXPECT_THROW(Read({"--dp", "two"}), po::error);
  EXPECT_THROW(Read({"--dp", "1,2"}), po::error);
  EXPECT_THROW(Read({"--dp", "1", "--dp", "2"}), po::error);
  EXPECT_NO_THROW(Read({"--dp", "1,2"}, PlanForm::kSpace));
  EXPECT_NO_THROW(Read({"--schedule", "nonsense"}));
}

TEST(PlanFlags, AreNamedByTheirErrors) {
  EXPECT_EQ(Plan({"--zero", "5"}), "--zero '5': wanted a stage from 0 to 3");
  EXPECT_EQ(Plan({"--bucket-size", "much"}),
            "--bucket-size 'much': wanted bytes, such as 25MiB, or none to reduce each gradient by "
            "itself");
  EXPECT_THAT(Plan({"--order", "dp"}), testing::StartsWith("--order"));
  EXPECT_TRUE(AtBoundary(absl::OkStatus()).ok());
  EXPECT_EQ(AtBoundary(absl::NotFoundError("zero '5'")), absl::NotFoundError("--zero '5'"));
}

// Flags of a step, of a search, and of one run.
TEST(PlanFlags, AreThoseOfTheProgram) {
  for (const transforms::AxisInfo* axis : transforms::AllAxes()) {
    SCOPED_TRACE(axis->flag);
    const std::string flag(axis->flag);
    EXPECT_NE(Help(PlanForm::kOne, {}, flag), "");
    EXPECT_EQ(Help(PlanForm::kSpace, {}, flag).empty(),
              axis->scope == transforms::AxisScope::kOneRun);
    EXPECT_EQ(Help(PlanForm::kStep, {}, flag).empty(), axis->scope != transforms::AxisScope::kStep);
  }
  EXPECT_EQ(Help(PlanForm::kOne, {}, "tp"), "the same as --hp");
}

TEST(PlanFlags, SayWhatHoldsWhereNoneIsGiven) {
  EXPECT_EQ(Help(PlanForm::kOne, {}, "dp"), "data-parallel degree: a number [1]");
  EXPECT_EQ(Help(PlanForm::kStep, {.dp = 8}, "dp"), "data-parallel degree: a number [8]");
  EXPECT_EQ(Help(PlanForm::kSpace, {.dp = 8}, "dp"),
            "data-parallel degree: a number; or several, with commas between [all that divide]");
  EXPECT_THAT(Help(PlanForm::kSpace, {}, "micro-batches"),
              HasSubstr("; or several, with commas between [all that divide]"));
  EXPECT_THAT(Help(PlanForm::kOne, {}, "micro-batches"), testing::EndsWith(" [1]"));
  EXPECT_THAT(Help(PlanForm::kSpace, {}, "zero"),
              testing::EndsWith("0, 1, 2 or 3; or several, with commas between [0]"));
  // Values of --algorithm have commas themselves.
  EXPECT_THAT(Help(PlanForm::kSpace, {}, "algorithm"), Not(HasSubstr("several")));
  EXPECT_EQ(Help(PlanForm::kOne, {}, "blocking"),
            "communication on the compute stream, no overlap");
  EXPECT_THAT(Help(PlanForm::kOne, {}, "split-at"), Not(testing::EndsWith("]")));
}

std::string CheckOf(const std::vector<std::string>& words, const ParallelPlan& preset = {}) {
  const PlanFlags flags = Read(words);
  return std::string(CheckFlags(flags, ReadPlan(flags, preset).value(), preset).message());
}

// Also where the value is the default.
TEST(CheckFlags, RefusesWhatMeansNothing) {
  EXPECT_EQ(CheckOf({}), "");
  EXPECT_EQ(CheckOf({"--dp=4", "--zero=1", "--zero-group=2"}), "");
  EXPECT_EQ(CheckOf({"--zero-group=0"}), "--zero-group 0: wanted ZeRO's stage 1, 2 or 3 beside it");
  EXPECT_EQ(CheckOf({"--dp=4", "--zero-group=2"}),
            "--zero-group 2: wanted ZeRO's stage 1, 2 or 3 beside it");
}

TEST(CheckFlags, RefusesASecondWordOnTheOrder) {
  EXPECT_EQ(CheckOf({"--schedule-file=a.csv"}), "");
  EXPECT_EQ(CheckOf({"--schedule-file=a.csv", "--schedule=1f1b"}),
            "--schedule 1f1b: wanted one word on the order of steps: schedule-file is another");
  EXPECT_EQ(CheckOf({"--schedule-file=a.csv"}, {.schedule = "gpipe"}), "");
  EXPECT_EQ(CheckOf({"--schedule-file=a.csv", "--schedule=gpipe"}, {.schedule = "gpipe"}), "");
}

TEST(CheckFlags, LeavesThePresetItsOwn) {
  EXPECT_EQ(CheckOf({"--zero-group=2"}, {.dp = 4, .zero_group = 2}), "");
  EXPECT_EQ(CheckOf({"--zero-group=3"}, {.dp = 4, .zero_group = 2}),
            "--zero-group 3: wanted ZeRO's stage 1, 2 or 3 beside it");
}

TEST(ReadSpace, ListsValues) {
  const search::Space space =
      ReadSpace(Read({"--dp", "1,4", "--zero", "3"}, PlanForm::kSpace), {.hp = 2}).value();
  EXPECT_EQ(space.base().hp, 2);
  std::vector<int64_t> degrees;
  for (const ParallelPlan& plan : space.Values(*FindAxis("dp"))) degrees.push_back(plan.dp);
  EXPECT_THAT(degrees, ElementsAre(1, 4));
  EXPECT_EQ(space.Values(*FindAxis("zero")).size(), 1);
  EXPECT_TRUE(space.Values(*FindAxis("pp")).empty());
  EXPECT_EQ(ReadSpace(Read({"--zero", "1,1"}, PlanForm::kSpace), {}).status().message(),
            "--zero '1,1': wanted stages from 0 to 3, each once, as in 0,1,3");
}

// A few texts of a few axes, as lists of a search.
PlanFlags RandomLists(std::mt19937& random) {
  PlanFlags flags;
  for (const transforms::AxisInfo* axis : transforms::AllAxes()) {
    if (axis->scope == transforms::AxisScope::kOneRun || random() % 3 != 0) continue;
    std::vector<std::string> texts = TextsOf(*axis);
    std::ranges::shuffle(texts, random);
    texts.resize(std::min<size_t>(texts.size(), axis->lists ? 1 + random() % 2 : 1));
    flags.Give(*axis, absl::StrJoin(texts, ","));
  }
  return flags;
}

// What `simulate` makes of the text of a plan; "" for what it takes as that plan.
std::string Refusal(const ParallelPlan& plan, const ParallelPlan& preset) {
  const std::string text = ToString(plan, preset);
  PlanFlags flags;
  for (const transforms::AxisInfo* axis : transforms::AllAxes()) {
    const std::string flag = absl::StrCat("--", axis->flag);
    if (!absl::StrContains(text + " ", flag + " ") && !absl::StrContains(text, flag + "="))
      continue;
    for (const absl::string_view value : absl::StrSplit(axis->print(plan), '\n')) {
      flags.Give(*axis, std::string(value));
    }
  }
  const absl::StatusOr<ParallelPlan> again = ReadPlan(flags, preset);
  if (!again.ok()) return std::string(again.status().message());
  if (*again != plan) return absl::StrCat("is read as ", ToString(*again, preset));
  return std::string(CheckFlags(flags, *again, preset).message());
}

// Whatever is listed, and whatever of it means something beside the rest.
TEST(ReadSpace, SpansPlansThatSimulateTakes) {
  std::mt19937 random(1);
  int64_t spaces = 0, settled = 0, checked = 0;
  for (const char* name : {"", "distir"}) {
    const ParallelPlan preset = PresetPlan(name).value();
    for (int trial = 0; trial < CasesToWalk(800); ++trial) {
      const absl::StatusOr<search::Space> space = ReadSpace(RandomLists(random), preset);
      if (!space.ok()) continue;
      const auto plans =
          search::Enumerate(*space, {.devices = 8, .batch_size = 16, .sequence = 64});
      if (!plans.ok() || !search::CheckListed(*space, *plans).ok()) continue;
      ++spaces;
      for (const ParallelPlan& plan : *plans) {
        ASSERT_EQ(Refusal(plan, preset), "") << ToString(plan, preset) << " of --preset " << name;
        ASSERT_EQ(transforms::ParsePlan(ToString(plan, preset), preset).value(), plan);
        ++checked;
        settled += plan.hp == 1 && !space->Values(*FindAxis("sequence-parallel")).empty();
      }
    }
  }
  EXPECT_GT(spaces, CasesToWalk(100));
  EXPECT_GT(settled, CasesToWalk(200));
  EXPECT_GT(checked, CasesToWalk(10'000));
}

std::vector<std::string> Words(const std::function<bool(const PresetFlag&)>& wants) {
  return PresetWords(*FindPreset("distir").value(), wants);
}

TEST(Presets, AreFoundByName) {
  EXPECT_EQ(FindPreset("distir").value()->name, "distir");
  EXPECT_EQ(FindPreset("").status().message(), "--preset '': wanted distir");
  EXPECT_THAT(PresetsHelp(), testing::StartsWith("distir: cost model distir, blocking"));
}

TEST(Presets, AreWordsOfACommandLine) {
  EXPECT_THAT(Words([](const PresetFlag& flag) { return flag.flag == "schedule"; }),
              ElementsAre("--schedule", "distir"));
  EXPECT_THAT(Words([](const PresetFlag& flag) { return flag.value.empty(); }),
              ElementsAre("--no-simplify", "--blocking"));
  EXPECT_THAT(Words([](const PresetFlag& flag) { return flag.of_searches; }),
              ElementsAre("--micro-batches", "distir"));
}

TEST(Presets, StandForAPlan) {
  EXPECT_EQ(PresetPlan("").value(), ParallelPlan());
  EXPECT_EQ(ToString(PresetPlan("distir").value()),
            "--dp 1 --hp 1 --pp 1 --micro-batches 1 --schedule distir --sharding distir "
            "--stages-by distir --order pp,hp,dp --blocking");
  EXPECT_EQ(PresetPlan("abacus").status().message(), "--preset 'abacus': wanted distir");
}

TEST(Presets, HaveFlagsOfModels) {
  const ModelFlags flags = PresetFlags("distir").value();
  EXPECT_EQ(flags.preset, "distir");
  EXPECT_EQ(flags.cost_model, "distir");
  EXPECT_EQ(flags.optimizer, "sgd");
  EXPECT_EQ(flags.loss.kind, "mse");
  EXPECT_EQ(flags.memory_limit, "none");
  EXPECT_TRUE(flags.no_simplify);
  EXPECT_FALSE(flags.no_fold);
  EXPECT_EQ(PresetFlags("abacus").status().message(), "--preset 'abacus': wanted distir");
}

}  // namespace
}  // namespace plan_flags_test_cc
}  // namespace orrery::tools
