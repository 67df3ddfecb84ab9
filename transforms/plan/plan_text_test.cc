#include "transforms/plan/plan_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "transforms/plan/random_plan_test_util.h"

namespace orrery::transforms {
namespace plan_text_test_cc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

TEST(ToString, IsFlags) {
  EXPECT_EQ(ToString(ParallelPlan()), "--dp 1 --hp 1 --pp 1 --micro-batches 1 --schedule 1f1b");
  EXPECT_EQ(
      ToString(ParallelPlan{.dp = 4, .hp = 2, .pp = 2, .microbatches = 8, .schedule = "gpipe"}),
      "--dp 4 --hp 2 --pp 2 --micro-batches 8 --schedule gpipe");
  EXPECT_EQ(ToString(ParallelPlan{.cp = 2, .zero = 3, .blocking = true}),
            "--dp 1 --hp 1 --pp 1 --cp 2 --micro-batches 1 --schedule 1f1b --zero 3 --blocking");
}

TEST(ToString, QuotesWhatAShellWouldReadOtherwise) {
  const std::string rest = "--dp 1 --hp 1 --pp 1 --micro-batches 1 --schedule 1f1b --recompute ";
  const auto text = [](const char* policy) {
    return ToString(ParallelPlan{.recompute = ParseRecomputePolicy(policy).value()});
  };
  EXPECT_EQ(text("every:2"), rest + "every:2");
  EXPECT_EQ(text("match:it's|b"), rest + "'match:it'\\''s|b'");
  EXPECT_EQ(ShellQuoted("a_b-c+d=e:f,g.h/i@j%1"), "a_b-c+d=e:f,g.h/i@j%1");
  EXPECT_EQ(ShellQuoted(""), "''");
  EXPECT_EQ(ShellQuoted("$HOME"), "'$HOME'");
  EXPECT_EQ(ShellQuoted("a b"), "'a b'");
}

TEST(ToString, NamesEachPin) {
  const ParallelPlan plan = {.hp = 2, .pins = {{"w0$", 1}, {"w1", ShardingPin::kWhole}}};
  EXPECT_EQ(ToString(plan),
            "--dp 1 --hp 2 --pp 1 --micro-batches 1 --schedule 1f1b --shard 'w0$=hp@1' --shard "
            "w1=hp@whole");
}

TEST(ToString, OfOrdersFromAFileNamesIt) {
  EXPECT_EQ(ToString(ParallelPlan{.pp = 2, .schedule_file = "o.csv"}),
            "--dp 1 --hp 1 --pp 2 --micro-batches 1 --schedule-file o.csv");
}

TEST(ToString, LeavesOutWhatTheBaseHas) {
  const ParallelPlan base = {
      .schedule = "distir", .stages_by = StagesBy::kDistir, .order = "pp,hp,dp", .blocking = true};
  ParallelPlan plan = base;
  plan.dp = 2;
  EXPECT_EQ(ToString(plan, base), "--dp 2 --hp 1 --pp 1 --micro-batches 1 --schedule distir");
  plan.stages_by = StagesBy::kCost;
  EXPECT_EQ(ToString(plan, base),
            "--dp 2 --hp 1 --pp 1 --micro-batches 1 --schedule distir --stages-by cost");
  EXPECT_EQ(ToString(plan),
            "--dp 2 --hp 1 --pp 1 --micro-batches 1 --schedule distir --order pp,hp,dp "
            "--blocking");
}

TEST(ToString, SaysThatASwitchOfTheBaseIsOff) {
  const ParallelPlan base = {.blocking = true};
  const std::string text = ToString(ParallelPlan{}, base);
  EXPECT_EQ(text, "--dp 1 --hp 1 --pp 1 --micro-batches 1 --schedule 1f1b --blocking=0");
  EXPECT_EQ(ParsePlan(text, base).value(), ParallelPlan{});
}

TEST(ParsePlan, ReadsFlagsInAnyOrder) {
  const ParallelPlan plan = {.dp = 2, .hp = 4, .zero = 3, .blocking = true};
  EXPECT_EQ(ParsePlan("--zero 3 --blocking --hp 4 --dp 2").value(), plan);
  EXPECT_EQ(ParsePlan("  --tp=4\t--dp=2 --zero=3\n--blocking").value(), plan);
  EXPECT_EQ(ParsePlan("").value(), ParallelPlan());
  EXPECT_EQ(ParsePlan("--dp 3", plan)->dp, 3);
  EXPECT_EQ(ParsePlan("--dp 3", plan)->zero, 3);
  EXPECT_EQ(ParsePlan("--dp 3 --dp 5")->dp, 5);
  EXPECT_EQ(ParsePlan("--shard w0=tp@1 --shard w1=hp@0").value(),
            (ParallelPlan{.pins = {{"w0", 1}, {"w1", 0}}}));
}

TEST(ParsePlan, ReadsQuotes) {
  const auto split_at = [](const char* text) { return ParsePlan(text).value().split_at; };
  EXPECT_EQ(split_at("--split-at 'a b'"), "a b");
  EXPECT_EQ(split_at("--split-at a' 'b"), "a b");
  EXPECT_EQ(split_at("--split-at 'it'\\''s'"), "it's");
  EXPECT_EQ(split_at("--split-at a\\ b"), "a b");
  EXPECT_EQ(split_at("--split-at ''"), "");
  EXPECT_EQ(split_at("--split-at='h\\.8'"), "h\\.8");
}

TEST(ParsePlan, SaysWhatIsWrong) {
  const auto error = [](const char* text) {
    const absl::Status status = ParsePlan(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    return std::string(status.message());
  };
  EXPECT_EQ(error("--xp 2"), "'--xp': wanted the flag of an axis, as in --dp 4");
  EXPECT_EQ(error("dp 2"), "'dp': wanted the flag of an axis, as in --dp 4");
  EXPECT_EQ(error("--dp 2 4"), "'4': wanted the flag of an axis, as in --dp 4");
  EXPECT_EQ(error("--"), "'--': wanted the flag of an axis, as in --dp 4");
  EXPECT_EQ(error("--dp"), "--dp: wanted a number");
  EXPECT_EQ(error("--dp 2 --zero"), "--zero: wanted 0, 1, 2 or 3");
  EXPECT_THAT(error("--dp two"), StartsWith("dp: 'two': wanted a number"));
  EXPECT_THAT(error("--tp x"), StartsWith("hp: 'x': wanted a number"));
  EXPECT_EQ(error("--zero 5"), "zero: '5': wanted a stage from 0 to 3");
  EXPECT_THAT(error("--schedule foo"), StartsWith("schedule: schedule 'foo' is unknown; wanted"));
  EXPECT_EQ(error(absl::StrCat("--dp 2\n'", std::string(50, 'x'), "\n--pp 2").c_str()),
            absl::StrCat("'", std::string(39, 'x'), "…: wanted a quote that ends"));
  EXPECT_EQ(error("--split-at 'a"), "'a: wanted a quote that ends");
}

TEST(Plan, TextReadsBack) {
  for (uint32_t seed = 0; seed < 500; ++seed) {
    ParallelPlan plan = RandomPlan(seed);
    SCOPED_TRACE(ToString(plan));
    // Orders from a file are those of no schedule.
    if (!plan.schedule_file.empty()) plan.schedule = ScheduleChoice();
    const absl::StatusOr<ParallelPlan> read = ParsePlan(ToString(plan));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, plan);
    EXPECT_EQ(ToString(*read), ToString(plan));
  }
}

// On top of another plan, as that of a preset; of what adds up and what is only switched on, it has
// no more than the plan.
TEST(Plan, TextReadsBackOnABase) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    ParallelPlan plan = RandomPlan(seed), base = RandomPlan(1000 + seed);
    plan.schedule_file = base.schedule_file = "";
    base.pins.clear();
    base.blocking = base.blocking && plan.blocking;
    SCOPED_TRACE(ToString(plan, base));
    const absl::StatusOr<ParallelPlan> read = ParsePlan(ToString(plan, base), base);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, plan);
  }
}

std::string CellText(const AxisCell& cell) {
  if (const auto* number = std::get_if<int64_t>(&cell)) return absl::StrCat(*number);
  return std::get<std::string>(cell);
}

std::map<std::string, std::string> ColumnTexts(const ParallelPlan& plan) {
  const PlanColumns columns = ColumnsOf(plan);
  std::map<std::string, std::string> texts;
  for (const auto* part : {&columns.before, &columns.behind}) {
    for (const PlanColumn& column : *part) {
      EXPECT_TRUE(texts.emplace(column.name, CellText(column.value)).second) << column.name;
    }
  }
  return texts;
}

TEST(ColumnsOf, AreBeforeAndBehindTheFigures) {
  const auto names = [](const std::vector<PlanColumn>& columns) {
    std::vector<std::string> all;
    for (const PlanColumn& column : columns) all.push_back(column.name);
    return all;
  };
  const PlanColumns columns = ColumnsOf(ParallelPlan{.dp = 4, .zero = 3});
  EXPECT_THAT(names(columns.before), ElementsAre("dp", "hp", "pp", "num_microbatches", "chunks",
                                                 "schedule", "recompute", "zero"));
  const std::vector<std::string> first = {"cp",
                                          "ep",
                                          "slices",
                                          "schedule_file",
                                          "zero_group",
                                          "prefetch",
                                          "offload",
                                          "offload_prefetch",
                                          "sharding",
                                          "sequence_parallel",
                                          "context_attention",
                                          "shard",
                                          "stages_by",
                                          "split_at",
                                          "layers_per_stage",
                                          "order",
                                          "blocking",
                                          "bucket_size",
                                          "algorithm",
                                          "dtype"};
  std::vector<std::string> behind = names(columns.behind);
  ASSERT_GE(behind.size(), first.size());
  behind.resize(first.size());  // columns of further axes come last
  EXPECT_EQ(behind, first);
  EXPECT_EQ(columns.before[0].value, AxisCell(int64_t{4}));
  EXPECT_EQ(columns.before[5].value, AxisCell("1f1b"));
  EXPECT_EQ(columns.before[7].value, AxisCell(int64_t{3}));
}

// The column says how many chunks there are, also where the plan leaves that to its schedule.
TEST(ColumnsOf, NameTheChunksThatThereAre) {
  EXPECT_EQ(ColumnTexts({}).at("chunks"), "1");
  EXPECT_EQ(ColumnTexts({.pp = 4, .schedule = "zbv"}).at("chunks"), "2");
  EXPECT_EQ(ColumnTexts({.schedule = "zbv"}).at("chunks"), "1");  // on one rank
  EXPECT_EQ(ColumnTexts({.schedule = "interleaved", .chunks = 5}).at("chunks"), "5");
}

TEST(Plan, ColumnsReadBack) {
  for (uint32_t seed = 0; seed < 500; ++seed) {
    const ParallelPlan plan = RandomPlan(seed);
    SCOPED_TRACE(ToString(plan));
    const std::map<std::string, std::string> columns = ColumnTexts(plan);
    const absl::StatusOr<ParallelPlan> read = PlanOfColumns(columns);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(ColumnTexts(*read), columns);
    ParallelPlan same = *read;
    same.chunks = plan.chunks;  // of several that mean the same it has one
    EXPECT_EQ(same, plan);
  }
}

TEST(PlanOfColumns, LeavesTheDefaultWhereThereIsNone) {
  EXPECT_EQ(PlanOfColumns({}).value(), ParallelPlan());
  EXPECT_EQ(PlanOfColumns({{"dp", "4"}, {"num_microbatches", "8"}}).value(),
            (ParallelPlan{.dp = 4, .microbatches = 8}));
  EXPECT_EQ(PlanOfColumns({{"shard", "w0=hp@1\nw1=hp@0"}, {"blocking", "1"}}).value(),
            (ParallelPlan{.pins = {{"w0", 1}, {"w1", 0}}, .blocking = true}));
}

TEST(PlanOfColumns, SaysWhatIsWrong) {
  const auto error = [](const std::map<std::string, std::string>& columns) {
    const absl::Status status = PlanOfColumns(columns).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    return std::string(status.message());
  };
  EXPECT_EQ(error({{"dp", "2"}, {"xp", "2"}}), "column 'xp': no axis of a plan has it; got '2'");
  EXPECT_EQ(error({{"micro-batches", "2"}}),
            "column 'micro-batches': no axis of a plan has it; got '2'");
  EXPECT_THAT(error({{"zero", "7"}}), HasSubstr("zero: '7': wanted a stage from 0 to 3"));
  EXPECT_THAT(error({{"recompute", "all"}}), HasSubstr("recompute: 'all': wanted none, "));
}

// Plans are equal where all axes are, and then their hashes are.
TEST(Plan, EqualsAndHashesByAllAxes) {
  const absl::Hash<ParallelPlan> hash;
  for (const AxisInfo* axis : AllAxes()) {
    SCOPED_TRACE(axis->flag);
    absl::flat_hash_set<ParallelPlan> plans;
    std::map<std::string, size_t> hashes;  // by what the axis has
    for (const std::string& text : TextsOf(*axis)) {
      ParallelPlan plan, again;
      ASSERT_TRUE(axis->parse(text, plan).ok());
      ASSERT_TRUE(axis->parse(text, again).ok());
      EXPECT_EQ(plan, again);
      EXPECT_EQ(hash(plan), hash(again));
      plans.insert(plan);
      hashes[axis->print(plan)] = hash(plan);
    }
    EXPECT_EQ(plans.size(), hashes.size());
    absl::flat_hash_set<size_t> distinct;
    for (const auto& [text, value] : hashes) distinct.insert(value);
    EXPECT_EQ(distinct.size(), hashes.size());
  }
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const ParallelPlan a = RandomPlan(seed), b = RandomPlan(seed + 1), same = RandomPlan(seed);
    EXPECT_EQ(a, same);
    EXPECT_EQ(hash(a), hash(same));
    EXPECT_NE(a, b);
  }
}

TEST(SetAxis, SetsOneAndNamesItInAnError) {
  ParallelPlan plan;
  EXPECT_TRUE(SetAxis(*FindAxis("micro-batches"), "8", plan).ok());
  EXPECT_EQ(plan, (ParallelPlan{.microbatches = 8}));
  EXPECT_EQ(std::string(SetAxis(*FindAxis("recompute"), "some", plan).message()),
            "recompute: 'some': wanted none, selective, full, every:K with K of at least 1, "
            "modules:NAME,…, or match:REGEX");
}

}  // namespace
}  // namespace plan_text_test_cc
}  // namespace orrery::transforms
