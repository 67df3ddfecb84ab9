#include "search/journal/result_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "search/journal/journal_test_util.h"

namespace orrery::search {
namespace result_record_test_cc {
namespace {

std::string Again(const std::string& text, const std::vector<ParallelPlan>& plans) {
  const absl::StatusOr<CandidateResults> read = ParseRecord(text, plans);
  if (!read.ok()) return read.status().ToString();
  return RecordText(*read, plans[read->candidate]);
}

// Text that is the same for the same results, and bits that come back.
TEST(ResultRecord, ReadsBackToTheBit) {
  const std::vector<ParallelPlan> plans = FewPlans(3);
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const CandidateResults done = RandomResults(seed, plans);
    const std::string text = RecordText(done, plans[done.candidate]);
    EXPECT_EQ(text.find('\n'), std::string::npos);
    const absl::StatusOr<CandidateResults> read = ParseRecord(text, plans);
    ASSERT_TRUE(read.ok()) << read.status() << "\n" << text;
    EXPECT_EQ(read->candidate, done.candidate);
    ASSERT_EQ(read->results.size(), done.results.size());
    for (size_t i = 0; i < done.results.size(); ++i) {
      EXPECT_TRUE(AreSame(read->results[i], done.results[i])) << text;
    }
    EXPECT_EQ(RecordText(*read, plans[done.candidate]), text);
  }
}

// Every field counts: what is changed in any of them alone is told, and read back. That the list
// of fields is whole the compiler sees.
TEST(ResultRecord, TellsEveryField) {
  const std::vector<ParallelPlan> plans = FewPlans(1);
  const std::vector<std::function<void(Result&)>> changes = {
      [](Result& r) { r.plan.zero = 3; },
      [](Result& r) { r.ran = true; },
      [](Result& r) { r.step_time = Duration(int64_t{1} << 60); },
      [](Result& r) { r.figures.throughput_samples_per_s = 0.1; },
      [](Result& r) { r.figures.tokens_per_s = 1e300; },
      [](Result& r) { r.figures.mfu = std::nextafter(0.5, 1); },
      [](Result& r) { r.figures.hfu = std::numeric_limits<double>::denorm_min(); },
      [](Result& r) { r.figures.wall_time_s = std::numeric_limits<double>::infinity(); },
      [](Result& r) { r.communication_overhead = -0.0; },
      [](Result& r) { r.exposed_communication_s = 1.0 / 3; },
      [](Result& r) { r.bubble_fraction = std::nan(""); },
      [](Result& r) { r.peak_memory = Bytes((int64_t{1} << 62) + 1); },
      [](Result& r) { r.simulated_tasks = 7; },
      [](Result& r) { r.fits = true; },
      [](Result& r) { r.gathered = "\xff a \"quoted\"\n"; },
      [](Result& r) { r.pruned = "beaten"; },
      [](Result& r) { r.infeasible = {.reason = InfeasibleReason::kDivisibility, .detail = ""}; },
      [](Result& r) { r.infeasible = {.reason = InfeasibleReason::kSchedule, .detail = "é\\n"}; }};
  Result none;
  none.plan = plans[0];
  const std::string nothing = RecordText({.candidate = 0, .results = {none}}, plans[0]);
  EXPECT_EQ(nothing, R"({"candidate":0,"results":[{}]})");
  std::vector<std::string> texts = {nothing};
  for (const auto& change : changes) {
    Result result = none;
    change(result);
    const std::string text = RecordText({.candidate = 0, .results = {result}}, plans[0]);
    EXPECT_THAT(texts, testing::Not(testing::Contains(text)));
    texts.push_back(text);
    EXPECT_EQ(Again(text, plans), text);
    EXPECT_TRUE(AreSame(ParseRecord(text, plans)->results[0], result)) << text;
  }
}

// Plans of candidates that are tried in place of others differ in any axis.
TEST(ResultRecord, ReadsPlansOfAllAxes) {
  const std::vector<ParallelPlan> plans = FewPlans(1);
  for (const transforms::AxisInfo* axis : transforms::AllAxes()) {
    for (const absl::string_view example : axis->examples) {
      Result result;
      result.plan = plans[0];
      ASSERT_TRUE(axis->parse(example, result.plan).ok()) << axis->flag << " " << example;
      const std::string text = RecordText({.candidate = 0, .results = {result}}, plans[0]);
      const auto read = ParseRecord(text, plans);
      ASSERT_TRUE(read.ok()) << read.status() << text;
      EXPECT_EQ(read->results[0].plan, result.plan) << text;
    }
  }
}

TEST(ResultRecord, RefusesOthers) {
  const std::vector<ParallelPlan> plans = FewPlans(2);
  for (const char* text :
       {"", "{}", R"({"candidate":0})", R"({"candidate":0,"results":[]})",
        R"({"candidate":2,"results":[{}]})", R"({"candidate":-1,"results":[{}]})",
        R"({"candidate":0,"results":[{"rann":true}]})",
        R"({"candidate":0,"results":[{"plan":{"none":"1"}}]})",
        R"({"candidate":0,"results":[{"plan":{"zero":"9"}}]})",
        R"({"candidate":0,"results":[{"infeasible":{"reason":9,"detail":""}}]})"}) {
    EXPECT_FALSE(ParseRecord(text, plans).ok()) << text;
  }
}

}  // namespace
}  // namespace result_record_test_cc
}  // namespace orrery::search
