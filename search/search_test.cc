#include "search/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "ir/models/model_test_util.h"
#include "search/settings/setting_test_util.h"
#include "search/spaces/space.h"
#include "transforms/plan/plan_test_util.h"

namespace orrery::search {
namespace search_test_cc {
namespace {

std::vector<ParallelPlan> Plans() {
  Space space(transforms::ByFlops({}));
  EXPECT_TRUE(space.List(*transforms::FindAxis("micro-batches"), "1,5,6").ok());
  EXPECT_TRUE(space.List(*transforms::FindAxis("schedule"), "1f1b,pipedream").ok());
  return Enumerate(space, {.devices = 8, .batch_size = 48}).value().All();
}

TEST(RunSearch, DoesNotDependOnTheNumberOfThreads) {
  const Setting setting = MlpSetting();
  const std::string expected = ResultsCsv(setting, RunSearch(setting, Plans()).value());
  for (int32_t threads = 2; threads <= 4; ++threads) {
    EXPECT_EQ(ResultsCsv(setting, RunSearch(setting, Plans(), {.threads = threads}).value()),
              expected);
  }
}

TEST(RunSearch, KeepsTheOrderOfThePlans) {
  const std::vector<ParallelPlan> plans = Plans();
  const std::vector<Result> results = RunSearch(MlpSetting(), plans, {.threads = 3}).value();
  ASSERT_EQ(results.size(), plans.size());
  for (size_t i = 0; i < results.size(); ++i) EXPECT_EQ(results[i].plan, plans[i]);
}

TEST(RunSearch, TellsItsProgress) {
  std::vector<size_t> seen;
  ASSERT_TRUE(RunSearch(MlpSetting(), Plans(),
                        {.threads = 3, .progress = [&](size_t done) { seen.push_back(done); }})
                  .ok());
  std::vector<size_t> expected;
  for (size_t i = 1; i <= Plans().size(); ++i) expected.push_back(i);
  EXPECT_EQ(seen, expected);
}

// An error is that of the first plan that has one, whatever thread found another first.
TEST(RunSearch, GivesTheFirstError) {
  std::vector<ParallelPlan> plans = Plans();
  plans[3].dp = 100;
  plans[7].dp = 200;
  for (const int32_t threads : {1, 4}) {
    EXPECT_THAT(
        std::string(RunSearch(MlpSetting(), plans, {.threads = threads}).status().message()),
        testing::HasSubstr("--dp 100"));
  }
}

// What is wrong with the question is told when a candidate meets it, not when all have been played.
TEST(RunSearch, EndsWithTheFirstError) {
  std::vector<ParallelPlan> plans = Plans();
  plans[3].dp = 100;
  size_t most = 0;
  const auto results = RunSearch(MlpSetting(), plans,
                                 {.progress = [&](size_t done) { most = std::max(most, done); }});
  EXPECT_FALSE(results.ok());
  EXPECT_EQ(most, 4);
}

// A candidate that no memory was left for, or that met a bug, does not take the others with it.
TEST(RunSearch, GoesOnWhereOneCandidateFails) {
  const std::vector<ParallelPlan> plans = Plans();
  const Setting setting = MlpSetting();
  const std::vector<Result> sound = RunSearch(setting, plans).value();
  for (const int32_t threads : {1, 4}) {
    const SettingOf setting_of = [&](const ParallelPlan& plan) -> const Setting& {
      if (plan == plans[2]) throw std::bad_alloc();
      if (plan == plans[5]) throw std::length_error("too long");
      return setting;
    };
    const std::vector<Result> results = RunSearch(setting_of, plans, {.threads = threads}).value();
    ASSERT_EQ(results.size(), plans.size());
    for (size_t i = 0; i < plans.size(); ++i) {
      EXPECT_EQ(results[i].plan, plans[i]);
      if (i == 2 || i == 5) {
        EXPECT_FALSE(results[i].feasible());
        EXPECT_THAT(results[i].infeasible.value().detail,
                    testing::HasSubstr(i == 2 ? "out of memory" : "too long"));
      } else {
        EXPECT_EQ(results[i].step_time, sound[i].step_time);
      }
    }
  }
}

// Threads beyond what the system has are not started; those that there are do the work. Who may do
// everything has no limit.
TEST(RunSearch, GetsByWithTheThreadsThatThereAre) {
  const auto search = [] {
    const rlimit own = {.rlim_cur = 1, .rlim_max = 1};
    if (geteuid() == 0 && setuid(65534) != 0) _exit(0);  // nobody, who has no process elsewhere
    if (setrlimit(RLIMIT_NPROC, &own) != 0) _exit(2);
    const auto results = RunSearch(MlpSetting(), Plans(), {.threads = 16});
    _exit(results.ok() && results->size() == Plans().size() ? 0 : 3);
  };
  EXPECT_EXIT(search(), testing::ExitedWithCode(0), "");
}

// What is known is not done again, what is done is told once, and both together are all results.
TEST(RunSearch, TakesWhatIsKnown) {
  const Setting setting = MlpSetting();
  const std::vector<ParallelPlan> plans = Plans();
  const auto relief = [](const ParallelPlan& plan) {
    ParallelPlan other = plan;
    other.microbatches = 2 * plan.microbatches;
    return std::vector<ParallelPlan>{other};
  };
  for (const int32_t threads : {1, 3}) {
    KnownResults all;
    const auto note = [&](size_t i, const std::vector<Result>& found) {
      EXPECT_TRUE(all.try_emplace(i, found).second);
    };
    const std::string whole = ResultsCsv(
        setting, RunSearch(setting, plans, {.threads = threads, .relief = relief, .finished = note})
                     .value());
    ASSERT_EQ(all.size(), plans.size());
    KnownResults half = all;
    std::erase_if(half, [](const auto& known) { return known.first % 2 == 0; });
    std::vector<size_t> found, done;
    const auto again = RunSearch(setting, plans,
                                 {.threads = threads,
                                  .progress = [&](size_t count) { done.push_back(count); },
                                  .relief = relief,
                                  .known = &half,
                                  .finished = [&](size_t i, const auto&) { found.push_back(i); }});
    EXPECT_EQ(ResultsCsv(setting, again.value()), whole);
    EXPECT_EQ(found.size(), plans.size() - half.size());
    EXPECT_EQ(done.back(), plans.size());
    for (const size_t i : found) EXPECT_FALSE(half.contains(i));
    const auto none = [](const ParallelPlan&) -> const Setting& { throw std::bad_alloc(); };
    EXPECT_EQ(ResultsCsv(setting, RunSearch(none, plans, {.known = &all}).value()), whole);
  }
}

TEST(RunSearch, BeginsNoneOnceItIsToStop) {
  const std::vector<ParallelPlan> plans = Plans();
  std::atomic<bool> stop = false;
  const auto finished = [&](size_t i, const auto&) { stop = i == 2; };
  const auto results = RunSearch(MlpSetting(), plans, {.finished = finished, .stop = &stop});
  ASSERT_TRUE(results.ok());
  EXPECT_EQ(results->size(), 3u);
}

TEST(RunSearch, DoesWhatItIsHanded) {
  const std::vector<ParallelPlan> plans = Plans();
  std::vector<size_t> left = {1, 4, 2};
  const auto next = [&]() -> std::optional<size_t> {
    if (left.empty()) return std::nullopt;
    const size_t i = left.back();
    left.pop_back();
    return i;
  };
  const auto results = RunSearch(MlpSetting(), plans, {.threads = 2, .next = next});
  ASSERT_EQ(results.value().size(), 3u);
  EXPECT_EQ((*results)[0].plan, plans[1]);
  EXPECT_EQ((*results)[1].plan, plans[2]);
  EXPECT_EQ((*results)[2].plan, plans[4]);
}

TEST(RunSearch, OfNothingIsNothing) {
  EXPECT_TRUE(RunSearch(MlpSetting(), {}, {.threads = 4}).value().empty());
  EXPECT_TRUE(Ranked(std::vector<Result>()).empty());
}

Result Fake(int64_t dp, int64_t picoseconds, bool fits = true) {
  Result result;
  result.plan.dp = dp;
  result.ran = true;
  result.fits = fits;
  result.step_time = Duration(picoseconds);
  return result;
}

TEST(Ranked, IsFastestFirstWithTiesInOrder) {
  const std::vector<Result> results = {Fake(1, 30),       Fake(2, 10), Fake(3, 30),
                                       Fake(4, 5, false), Fake(5, 10), Result()};
  std::vector<int64_t> ranked;
  for (const Result* result : Ranked(results)) ranked.push_back(result->plan.dp);
  EXPECT_THAT(ranked, testing::ElementsAre(2, 5, 1, 3));
}

TEST(Ranked, SharesOutLessOfTheModelOfEquallyFastOnes) {
  std::vector<Result> results(3);
  for (Result& result : results) result.ran = result.fits = true;
  results[0].plan = {.dp = 1, .hp = 8};
  results[1].plan = {.dp = 8};
  results[2].plan = {.dp = 2, .pp = 4};
  results[0].peak_memory = Bytes(1);  // memory counts after that
  results[1].peak_memory = Bytes(3);
  results[2].peak_memory = Bytes(2);
  EXPECT_EQ(Ranked(results)[0]->plan.dp, 8);
  EXPECT_EQ(Ranked(results)[1]->plan.pp, 4);
}

TEST(Ranked, TakesLessMemoryOfEquallyFastOnes) {
  std::vector<Result> results = {Fake(1, 30), Fake(2, 10), Fake(3, 10), Fake(4, 10)};
  results[1].peak_memory = Bytes(200);
  results[2].peak_memory = Bytes(100);
  results[3].peak_memory = Bytes(200);
  std::vector<int64_t> ranked;
  for (const Result* result : Ranked(results)) ranked.push_back(result->plan.dp);
  EXPECT_THAT(ranked, testing::ElementsAre(3, 2, 4, 1));
}

constexpr char kHeader[] =
    "model,world_size,batch_size,dp,hp,pp,num_microbatches,chunks,schedule,recompute,zero,"
    "step_time_s,throughput_samples_per_s,tokens_per_s,mfu,communication_overhead,"
    "exposed_communication_s,bubble_fraction,peak_memory_bytes,fits,reason,cp,ep,slices,"
    "schedule_file,zero_group,prefetch,offload,offload_prefetch,sharding,sequence_parallel,context_"
    "attention,"
    "shard,stages_by,split_at,layers_per_stage,order,blocking,bucket_size,algorithm,dtype";

// What stands behind the figures, of the default.
constexpr char kBehind[] =
    "1,1,equal,,0,1,none,1,auto,auto,auto,,cost,,,\"hp,dp,pp\",0,25MiB,auto,model";

// Columns of further axes come last.
TEST(ResultsCsv, HasARowAResultAndQuotesWhatNeedsIt) {
  Setting setting = MlpSetting();
  setting.model_name = "a \"b\", c";
  Result infeasible;
  infeasible.infeasible = {.reason = InfeasibleReason::kDivisibility, .detail = "no, never"};
  const std::vector<std::string> lines =
      absl::StrSplit(ResultsCsv(setting, {Fake(2, 1'500'000'000'000), infeasible}), '\n');
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_THAT(lines[0], testing::StartsWith(kHeader));
  EXPECT_THAT(lines[1],
              testing::StartsWith(absl::StrCat("\"a \"\"b\"\", c\",2,48,2,1,1,1,1,1f1b,none,0,1.5,"
                                               "0,0,0,0,0,0,0,true,,",
                                               kBehind)));
  EXPECT_THAT(lines[2], testing::StartsWith(
                            absl::StrCat("\"a \"\"b\"\", c\",1,48,1,1,1,1,1,1f1b,none,0,,,,,,,,,"
                                         "false,\"divisibility: no, never\",",
                                         kBehind)));
  EXPECT_EQ(lines[3], "");
}

TEST(ResultsCsv, DoublesReadBackAsThemselves) {
  const Setting setting = MlpSetting();
  const std::vector<Result> results =
      RunSearch(setting, {transforms::ByFlops({.dp = 2, .hp = 2, .pp = 2})}).value();
  const std::vector<std::string> lines = absl::StrSplit(ResultsCsv(setting, results), '\n');
  // One comma is in the name of the model.
  const std::vector<std::string> cells = absl::StrSplit(lines[1], ',');
  EXPECT_EQ(std::stod(cells[12]), results[0].step_time.seconds());
  EXPECT_EQ(std::stod(cells[13]), results[0].figures.throughput_samples_per_s);
  EXPECT_EQ(std::stod(cells[16]), results[0].communication_overhead);
}

TEST(ResultsJson, HasTheKeysOfTheHeader) {
  const Setting setting = MlpSetting();
  const auto rows = nlohmann::ordered_json::parse(ResultsJson(setting, {Fake(2, 5), Result()}));
  ASSERT_EQ(rows.size(), 2u);
  for (const auto& row : rows) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : row.items()) keys.push_back(key);
    EXPECT_THAT(absl::StrJoin(keys, ","), testing::StartsWith(kHeader));
  }
  EXPECT_EQ(rows[0]["step_time_s"], 5e-12);
  EXPECT_TRUE(rows[1]["step_time_s"].is_null());
  EXPECT_EQ(rows[1]["fits"], false);
  EXPECT_EQ(ResultsJson(setting, {}), "[]\n");
}

TEST(ResultsTable, RanksAndCounts) {
  const Setting setting = MlpSetting();
  Result divisibility;
  divisibility.plan.dp = 7;
  divisibility.infeasible = {.reason = InfeasibleReason::kDivisibility, .detail = "no"};
  Result memory = Fake(1, 9, false);
  memory.infeasible = {.reason = InfeasibleReason::kMemory, .detail = "needs more"};
  const std::vector<Result> results = {Fake(2, 2'000'000'000), divisibility, memory, divisibility,
                                       Fake(4, 1'000'000'000)};
  EXPECT_EQ(ResultsTable(setting, results, 1),
            "mlp:layers=4,dim=64, batch 48, on uniform:8@200Gbps: 5 candidates, 2 feasible\n"
            "\n"
            "   dp    hp    pp  micro  schedule           step  samples/s  compute  exposed   "
            "bubble     memory\n"
            "    4     1     1      1  1f1b            1.00 ms          0   100.0%     0.0%     "
            "0.0%        0 B\n"
            "\n"
            "3 of 5 candidates are infeasible:\n"
            "     2  divisibility, for example --dp 7 --hp 1 --pp 1 --micro-batches 1 --schedule "
            "1f1b: no\n"
            "     1  memory, for example --dp 1 --hp 1 --pp 1 --micro-batches 1 --schedule 1f1b: "
            "needs more\n");
}

}  // namespace
}  // namespace search_test_cc
}  // namespace orrery::search
