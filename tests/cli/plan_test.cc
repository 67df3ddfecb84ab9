#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "support/paths_test_util.h"
#include "tests/cli/json_of.h"
#include "tests/cli/run.h"

// `plan` as a user runs it, and plans as files.

namespace orrery::cli {
namespace plan_test_cc {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const std::string kPlan =
    "plan --model mlp:layers=8,dim=1024 --batch-size 4096 --dtype bf16 "
    "--cluster dgx-a100:1 --micro-batches 1,2,4 ";

json Plan(const std::string& flags) { return JsonOf(kPlan + flags + " --out best.plan"); }

// The best of the space, as grid_search finds it.
double BestOfAll() {
  static const double best = [] {
    const Finished run =
        Execute("grid_search " + kPlan.substr(kPlan.find("--")) + "--csv all.csv --json all.json");
    EXPECT_EQ(run.code, 0) << run.err;
    double least = 1e9;
    for (const json& row : json::parse(Contents("all.json"))) {
      if (row["fits"] == true) least = std::min(least, row["step_time_s"].get<double>());
    }
    return least;
  }();
  return best;
}

class Methods : public testing::TestWithParam<const char*> {};

// No method is slower than the expert, whose plan it begins with, or faster than the best there is;
// the plan is the same on any number of threads, and plays as it was told.
TEST_P(Methods, FindPlansThatPlay) {
  const std::string method = absl::StrCat("--method ", GetParam(), " --budget 24 --seed 3");
  const json one = Plan(method + " --threads 1");
  const std::string plan = Contents("best.plan");
  const json two = Plan(method + " --threads 2");
  ASSERT_FALSE(one.empty() || two.empty());
  EXPECT_EQ(one["best"], two["best"]);
  EXPECT_EQ(one["expert"], two["expert"]);
  EXPECT_EQ(one["log"], two["log"]);
  const double best = one["best"]["step_time_s"].get<double>();
  EXPECT_LE(best, one["expert"]["step_time_s"].get<double>());
  const bool unequal = plan.find("--stage-meshes") != std::string::npos;
  if (!unequal) {
    EXPECT_GE(best, BestOfAll() * (1 - 1e-9));
  }
  ASSERT_FALSE(one["course"].empty());
  EXPECT_EQ(one["course"].back()["step_time_s"], one["best"]["step_time_s"]);
  const Finished played =
      Execute("simulate " + kPlan.substr(kPlan.find("--model"), kPlan.find("--micro") - 5) +
              " --plan-file best.plan --json played.json");
  ASSERT_EQ(played.code, 0) << played.err;
  EXPECT_NEAR(json::parse(Contents("played.json"))["step_time_s"].get<double>(), best, 1e-12);
}

INSTANTIATE_TEST_SUITE_P(, Methods,
                         testing::Values("expert", "exact", "exhaustive", "beam", "annealing",
                                         "mcmc", "evolution", "bayes", "reinforce"),
                         [](const auto& method) { return std::string(method.param); });

TEST(Plan, DrawsItsCourse) {
  const Finished run =
      Execute(kPlan + "--method evolution --budget 16 --report plan.html --plot plan.svg");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(Contents("plan.html"), HasSubstr("A plan of mlp:layers=8,dim=1024, batch 4096"));
  EXPECT_THAT(Contents("plan.svg"), HasSubstr("the expert"));
}

// A budget for all of them finds the best.
TEST(Plan, FindsTheBestOfAll) {
  for (const char* method : {"mcmc", "bayes"}) {
    const json all = Plan(absl::StrCat("--method ", method, " --budget 10000"));
    EXPECT_NEAR(all["best"]["step_time_s"].get<double>(), BestOfAll(), 1e-12) << method;
  }
}

// Stages with ranks of their own are in the space of no other method.
TEST(Plan, ExactFindsUnequalStagesOfUnlikeDevices) {
  const Finished run = Execute(
      absl::StrCat("plan --model mlp:layers=12,dim=2048 --batch-size 8192 --dtype bf16 "
                   "--micro-batches 8 --cluster ",
                   SourceDir(),
                   "/examples/clusters/fast_and_slow.textproto --method exact --budget 10000 "
                   "--json exact.json"));
  ASSERT_EQ(run.code, 0) << run.err;
  const json exact = json::parse(Contents("exact.json"));
  EXPECT_THAT(exact["best"]["plan"].get<std::string>(),
              testing::AnyOf(HasSubstr("--stage-meshes"), HasSubstr("--shares")));
  EXPECT_LT(exact["best"]["step_time_s"].get<double>(),
            exact["expert"]["step_time_s"].get<double>());
  EXPECT_GT(exact["played"].get<int64_t>(), 1);
}

// A seed is another way; a time ends it, too.
TEST(Plan, GoesByItsSeedAndItsTime) {
  const json one = Plan("--method mcmc --budget 24 --seed 1"),
             two = Plan("--method mcmc --budget 24 --seed 2"),
             brief = Plan("--method mcmc --budget 0.1s");
  EXPECT_NE(one["log"], two["log"]);
  EXPECT_LE(brief["best"]["step_time_s"].get<double>(),
            brief["expert"]["step_time_s"].get<double>());
  EXPECT_LE(brief["played"].get<int64_t>(), one["candidates"].get<int64_t>());
}

TEST(Plan, SaysHowItDiffersFromTheExperts) {
  const Finished run = Execute(kPlan + "--method mcmc --budget 16");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("the expert's: --dp "));
  EXPECT_THAT(run.out, HasSubstr("\nmcmc: 8 chains, "));
  EXPECT_THAT(run.out, HasSubstr("\nbest: --dp "));
  EXPECT_THAT(run.out,
              testing::AnyOf(HasSubstr("which is the expert's"), HasSubstr(" in place of ")));
  const Finished names = Execute("plan --list-methods");
  for (const char* method : {"expert", "exact", "mcmc", "reinforce"}) {
    EXPECT_THAT(names.out, HasSubstr(method));
  }
}

// `plan` with these flags, which on any number of threads finds what simulate plays so, no slower
// than the expert's.
json FoundBy(const std::string& model, const std::string& flags) {
  const std::string plan =
      absl::StrCat("plan ", model, flags, " --method mcmc --json found.json --out found.plan");
  const Finished run = Execute(plan + " --threads 1");
  EXPECT_EQ(run.code, 0) << run.err;
  if (run.code != 0) return {};
  const json found = json::parse(Contents("found.json"));
  EXPECT_EQ(Execute(plan + " --threads 2").code, 0);
  EXPECT_EQ(found["best"], json::parse(Contents("found.json"))["best"]);
  const double best = found["best"]["step_time_s"].get<double>();
  EXPECT_LE(best, found["expert"]["step_time_s"].get<double>());
  const Finished played =
      Execute(absl::StrCat("simulate ", model, " --plan-file found.plan --json played.json"));
  EXPECT_EQ(played.code, 0) << played.err;
  if (played.code != 0) return {};
  EXPECT_NEAR(json::parse(Contents("played.json"))["step_time_s"].get<double>(), best, 1e-12);
  return found;
}

TEST(Plan, SearchesStrategiesOfWeights) {
  const json found =
      FoundBy("--model mlp:layers=3,dim=1024 --batch-size 4096 --dtype bf16 --cluster dgx-a100:1 ",
              "--dp 1 --hp 8 --pp 1 --micro-batches 1 --strategies weights --budget 40");
  EXPECT_EQ(found["candidates"], 4 * 4 * 4);
  EXPECT_GE(found["played"].get<int64_t>(), 40);
}

// Branches that run at once, on the devices of a pipeline whose stages would not.
TEST(Plan, FindsThePlacementOfBranches) {
  const json found = FoundBy("--model inception-v3 --batch-size 64 --cluster dgx-a100:1 ",
                             "--dp 1 --hp 1 --pp 2 --micro-batches 1 --place-groups "
                             "'branch1x1;branch3x3dbl;branch7x7dbl;branch7x7;branch3x3' "
                             "--budget 20");
  EXPECT_EQ(found["candidates"], 32);
  EXPECT_THAT(found["best"]["plan"].get<std::string>(), HasSubstr("--placement"));
  EXPECT_LT(found["best"]["step_time_s"].get<double>(),
            0.75 * found["expert"]["step_time_s"].get<double>());
}

TEST(Plan, LearnsToPlaceGroups) {
  const std::string plan =
      "plan --model mlp:layers=4,dim=64 --batch-size 64 --cluster dgx-a100:1 --dp 1 --hp 2 --pp 4 "
      "--micro-batches 1 --place-groups '^y0;^y1;^y2' --method reinforce --budget 20 ";
  const json placed = JsonOf(plan);
  EXPECT_THAT(placed["log"].get<std::string>(),
              testing::StartsWith("a grouper of 3 things into 2 groups at most, and a placer of 4 "
                                  "labels: "));
  EXPECT_THAT(JsonOf(plan + "--strategies weights")["log"].get<std::string>(),
              testing::StartsWith("a grouper of 7 things into 4 groups at most"));
}

// 4 x 4 strategies of two weights, each with two places for two groups of ops.
TEST(Plan, SearchesStrategiesAndPlacementsAtOnce) {
  const json found =
      FoundBy("--model mlp:layers=2,dim=1024 --batch-size 4096 --dtype bf16 --cluster dgx-a100:1 ",
              "--dp 1 --hp 4 --pp 2 --micro-batches 1 --strategies weights --place-groups '^y0;^a' "
              "--budget 80");
  EXPECT_EQ(found["candidates"], 4 * 4 * 2 * 2);
  EXPECT_GE(found["played"].get<int64_t>(), 60);
}

// Patterns of all ops but the loss, which goes with the rest.
TEST(Plan, PlacesAllThatPatternsFind) {
  const json found = FoundBy("--model mlp:layers=4,dim=64 --batch-size 64 --cluster dgx-a100:1 ",
                             "--dp 1 --hp 1 --pp 2 --micro-batches 1 --place-groups '^y;^a' "
                             "--budget 10");
  EXPECT_EQ(found["candidates"], 4);
  EXPECT_GE(found["played"].get<int64_t>(), 4);
}

TEST(Plan, LeavesOutWhatIsTooStale) {
  const std::string plan =
      "grid_search --model mlp:layers=8,dim=1024 --batch-size 4096 --dtype bf16 --cluster "
      "dgx-a100:1 --dp 2 --hp 1 --pp 4 --schedule "
      "1f1b,pipedream,pipedream-2bw,pipemare --json stale.json --no-prune --micro-batches ";
  const auto run = [&](const std::string& flags) {
    const Finished finished = Execute(plan + flags);
    EXPECT_EQ(finished.code, 0) << finished.err;
    std::map<std::string, std::string> infeasible;
    for (const json& row : json::parse(Contents("stale.json"))) {
      const std::string reason = row.at("reason").get<std::string>();
      if (!reason.empty()) infeasible[row.at("schedule").get<std::string>()] = reason;
    }
    return infeasible;
  };
  EXPECT_THAT(run("8"), testing::IsEmpty());
  const auto stale = run("8 --max-staleness 1");
  ASSERT_EQ(stale.size(), 1);
  EXPECT_THAT(stale.at("pipedream"),
              HasSubstr("with pipedream gradients of stage 0 are 3 updates late; the limit is 1"));
  EXPECT_THAT(run("8 --max-staleness 0"), testing::SizeIs(3));
  // Of two microbatches a batch pipemare's first stage is two updates late, others less.
  const json details = JsonOf(
      "simulate --model mlp:layers=8,dim=1024 --batch-size 4096 --cluster dgx-a100:1 --pp 4 "
      "--schedule pipemare --micro-batches 2");
  std::vector<int> ages;
  for (const json& stage : details.at("weight_versions")) ages.push_back(stage.at("staleness"));
  EXPECT_THAT(ages, testing::ElementsAre(2, 1, 1, 0));
  const auto of_two = run("2 --max-staleness 1");
  EXPECT_THAT(of_two.at("pipemare"), HasSubstr("stage 0 are 2 updates late"));
  EXPECT_EQ(of_two.count("pipedream-2bw"), 0);
}

TEST(Plan, SaysWhatIsWrong) {
  for (const auto& [flags, error] : std::vector<std::pair<std::string, std::string>>{
           {"--method best", "--method 'best': wanted expert, exact, exhaustive, beam, "},
           {"--budget never", "--budget: 'never': wanted a time"},
           {"--seed -1", "--seed and --threads: wanted numbers of at least 0"},
           {"--space half", "--space 'half': wanted default or full"},
           {"--method exact --dp 2", "plan: --method exact: planners say themselves what dp"},
           {"--strategies ops", "--strategies: 'ops': wanted kinds or weights"},
           {"--strategies kinds --method exact",
            "--strategies: method exact goes from no plan to another; wanted one of exhaustive"},
           {"--strategies kinds --hp 1",
            "--strategies: no plan has weights that hp splits by cost"},
           {"--strategies kinds --place-groups 2 --hp 1",
            "--strategies: no plan has weights that hp splits by cost"},
           {"--strategies kinds --place-groups 2 --hp 2 --pp 1",
            "--place-groups: no plan has stages whose ops could be"},
           {"--place-groups 1", "--place-groups: '1': wanted 2 to 64 groups, or patterns"},
           {"--place-groups 99999999999999999999",
            "--place-groups: '99999999999999999999': wanted 2 to 64 groups, or patterns"},
           {"--place-groups 'y0;x'", "--place-groups: 'x' matches no forward op"},
           {"--place-groups y0 --pp 1", "--place-groups: no plan has stages whose ops could be"},
           {"--max-staleness few", "--max-staleness: 'few': wanted a number of updates, 0 or more"},
           {"--memory-limit 1kB", "no plan is feasible"}}) {
    const Finished run = Execute(kPlan + flags);
    EXPECT_EQ(run.code, 1) << flags;
    EXPECT_THAT(run.err, HasSubstr(error)) << flags;
    EXPECT_EQ(std::ranges::count(run.err, '\n'), 1) << run.err;
  }
}

// Of one plan all is played anyway.
TEST(NoSkip, ChangesNothing) {
  const std::string simulate =
      "simulate --model mlp:layers=8,dim=64 --batch-size 512 --cluster dgx-a100:1 --pp 4 "
      "--micro-batches 128 --json ";
  EXPECT_EQ(Execute(simulate + "a.json").code, 0);
  EXPECT_EQ(Execute(simulate + "b.json --no-skip").code, 0);
  json a = json::parse(Contents("a.json")), b = json::parse(Contents("b.json"));
  for (json* of : {&a, &b}) of->erase("wall_time_s");
  EXPECT_EQ(a, b);
}

// What is given beside a file counts; what the file says otherwise holds, and what simulate writes
// it reads.
TEST(PlanFile, IsOfTheFlagsOfAPlan) {
  const std::string simulate =
      "simulate --model mlp:layers=8,dim=64 --batch-size 64 --cluster dgx-a100:1 ";
  Write("a.plan", "# two stages\n--dp 2 --pp 2\n\n--micro-batches 4\n--schedule gpipe\n");
  const Finished file = Execute(simulate + "--plan-file a.plan --plan-text b.plan");
  EXPECT_EQ(file.code, 0) << file.err;
  EXPECT_THAT(file.out, HasSubstr("--dp 2 --hp 1 --pp 2 --micro-batches 4 --schedule gpipe\n"));
  const Finished again = Execute(simulate + "--plan-file b.plan --schedule 1f1b --tp 2");
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("--dp 2 --hp 2 --pp 2 --micro-batches 4 --schedule 1f1b\n"));
  for (const auto& [text, error] : std::vector<std::pair<std::string, std::string>>{
           {"", "bad.plan: no plan; wanted its flags, as in --dp 4 --pp 2"},
           {"# only this\n", "bad.plan: no plan"},
           {"--dp two", "bad.plan: dp: "},
           {"it's ``none``", "bad.plan: 's ``none``: wanted a quote that ends\n"},
           {"dp=2", "bad.plan: 'dp=2': wanted the flag of an axis"},
           {"--model gpt2-small", "bad.plan: '--model': wanted the flag of an axis"}}) {
    Write("bad.plan", text);
    const Finished bad = Execute(simulate + "--plan-file bad.plan");
    EXPECT_EQ(bad.code, 1) << text;
    EXPECT_THAT(bad.err, HasSubstr(error)) << text;
  }
  EXPECT_THAT(Execute(simulate + "--plan-file nothing.plan").err, HasSubstr("no such file"));
}

}  // namespace
}  // namespace plan_test_cc
}  // namespace orrery::cli
