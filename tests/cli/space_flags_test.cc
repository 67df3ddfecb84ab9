#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "support/sanitized_test_util.h"
#include "tests/cli/run.h"

// grid_search over large spaces: all that applies, a budget, prices, several models at once.

namespace orrery::cli {
namespace space_flags_test_cc {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kSmall =
    "grid_search --model gpt:layers=4,hidden=64,heads=4,seq=64,vocab=512 --batch-size 8 "
    "--cluster uniform:4@200Gbps ";

std::vector<nlohmann::json> Rows(const std::string& file) {
  return nlohmann::json::parse(Contents(file)).get<std::vector<nlohmann::json>>();
}

// Rows that were played and fit.
int Played(const std::string& csv) {
  int played = 0;
  for (const absl::string_view line : absl::StrSplit(Contents(csv), '\n')) {
    played += absl::StrContains(line, ",true,") ? 1 : 0;
  }
  return played;
}

// The full space has the default's best, and more.
TEST(FullSpace, HasWhatTheDefaultHas) {
  if (CasesToWalk(2) < 2) GTEST_SKIP() << "what it walks other tests walk, too";
  Clear();
  const std::string some = "--hp 1 --pp 2 --micro-batches 2 --offload none ";
  ASSERT_EQ(Execute(kSmall + some + "--json default.json").code, 0);
  const Finished full = Execute(kSmall + some + "--space full --json full.json");
  ASSERT_EQ(full.code, 0) << full.err;
  const auto best = [](const std::vector<nlohmann::json>& rows) {
    double least = 1e9;
    for (const auto& row : rows) {
      if (row["fits"].is_boolean() && row["fits"])
        least = std::min(least, row["step_time_s"].get<double>());
    }
    return least;
  };
  const auto few = Rows("default.json"), all = Rows("full.json");
  EXPECT_GT(all.size(), 10 * few.size());
  EXPECT_LE(best(all), best(few));
}

// Over 100,000 candidates have a budget, unless all are asked for; here none of them fits.
TEST(FullSpace, HasABudgetWhereItIsLarge) {
  Clear();
  const std::string question =
      "grid_search --model gpt:layers=2,hidden=64,heads=4,seq=32,vocab=256 --cluster dgx-a100:4 "
      "--space full --memory-limit 1000 ";
  const std::string note = "candidates: the most promising within 9s";
  const Finished limited = Execute(question + "--batch-size 64");
  EXPECT_THAT(limited.err, HasSubstr(note));
  EXPECT_THAT(limited.err, HasSubstr("no candidate is feasible"));
  if (CasesToWalk(6) < 6) return;  // each lists 100,000 plans
  EXPECT_THAT(Execute(question + "--batch-size 64 --method annealing").err, HasSubstr(note));
  EXPECT_THAT(Execute(question + "--batch-size 32").err, Not(HasSubstr(note)));
  EXPECT_THAT(Execute(question + "--batch-size 64 --method exhaustive").err, Not(HasSubstr(note)));
  EXPECT_THAT(Execute(question + "--batch-size 64 --budget 100").err, Not(HasSubstr(note)));
  EXPECT_THAT(Execute(question + "--batch-size 64 --resume j").err, Not(HasSubstr(note)));
}

TEST(FullSpace, OfABudgetSaysHowSureItIs) {
  Clear();
  const std::string question =
      kSmall + "--space full --hp 1 --micro-batches 2 --offload none --budget 24 ";
  const Finished beam = Execute(question + "--threads 2 --csv beam.csv");
  ASSERT_EQ(beam.code, 0) << beam.err;
  EXPECT_LE(Played("beam.csv"), 24);
  EXPECT_GT(Played("beam.csv"), 4);
  EXPECT_THAT(beam.out, ContainsRegex("[0-9]+ of [0-9]+ candidates are left: the budget ended"));
  EXPECT_THAT(beam.out,
              ContainsRegex("\n(not sure: what is left takes|sure: nothing that is left)"));
  EXPECT_EQ(Execute(question + "--method beam --threads 1 --csv again.csv").out, beam.out);
  EXPECT_EQ(Contents("again.csv"), Contents("beam.csv"));
  for (const char* method : {"exhaustive", "annealing"}) {
    const Finished other = Execute(absl::StrCat(question, "--method ", method, " --seed 3"));
    EXPECT_EQ(other.code, 0) << other.err;
    EXPECT_THAT(other.out, HasSubstr("candidates are left"));
  }
}

// Bounds of time are a cost model's to promise: where it does not, nobody knows.
TEST(FullSpace, SaysWhereNoBoundIsKnown) {
  const Finished finished =
      Execute(kSmall + "--hp 1 --micro-batches 2 --budget 2 --cost-model distir");
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("\nnot sure: of what is left no bound of time is known\n"));
}

// What a budget has played stands in the journal: another adds to it.
TEST(FullSpace, GoesOnFromAJournal) {
  Clear();
  const std::string question = kSmall + "--space full --resume j ";
  const Finished first = Execute(question + "--budget 8");
  ASSERT_EQ(first.code, 0) << first.err;
  const size_t lines = std::vector<std::string>(absl::StrSplit(Contents("j"), '\n')).size();
  const Finished second = Execute(question + "--budget 8 --csv more.csv");
  ASSERT_EQ(second.code, 0) << second.err;
  const size_t more = std::vector<std::string>(absl::StrSplit(Contents("j"), '\n')).size();
  EXPECT_GT(more, lines);
  EXPECT_GT(Played("more.csv"), 8);
}

TEST(FullSpace, HasPrices) {
  Clear();
  const std::string question = kSmall + "--dp 2 --hp 1 --pp 1,2 --micro-batches 1,4 ";
  const Finished priced = Execute(question + "--price 3 --json p.json");
  ASSERT_EQ(priced.code, 0) << priced.err;
  EXPECT_THAT(priced.out, HasSubstr("price/sample"));
  for (const nlohmann::json& row : Rows("p.json")) {
    EXPECT_EQ(row["cluster"], "uniform:4@200Gbps");
    if (row["step_time_s"].is_null()) continue;
    const double devices = row["world_size"], seconds = row["step_time_s"];
    EXPECT_NEAR(row["price_per_sample"], 3.0 / 3600 * devices * seconds / 8, 1e-15);
  }
  ASSERT_EQ(Execute(question + "--json n.json").code, 0);
  EXPECT_TRUE(Rows("n.json")[0]["price_per_sample"].is_null());
}

// Each by itself has the same rows.
TEST(SeveralQuestions, AreSearchedOneAfterAnother) {
  Clear();
  const std::string rest = " --dp 2 --hp 1 --pp 1,2 --micro-batches 2 ";
  const Finished all = Execute(
      "grid_search --model mlp:layers=4,dim=64,mlp:layers=2,dim=32 --batch-size 16,32 --cluster "
      "uniform:4@200Gbps,ring:4@50GB/s,one-way --price 1,2 --csv all.csv --json all.json" +
      rest);
  ASSERT_EQ(all.code, 0) << all.err;
  EXPECT_THAT(all.out,
              HasSubstr("\nbest of each:\nmlp:layers=4,dim=64, batch 16, on uniform:4@200Gbps: "));
  EXPECT_THAT(all.out, HasSubstr("mlp:layers=2,dim=32, batch 32, on ring:4@50GB/s,one-way: "));
  std::string expected;
  size_t rows = 0;
  for (const char* model : {"mlp:layers=4,dim=64", "mlp:layers=2,dim=32"}) {
    for (const char* cluster : {"uniform:4@200Gbps --price 1", "ring:4@50GB/s,one-way --price 2"}) {
      for (const char* batch : {"16", "32"}) {
        const Finished one =
            Execute(absl::StrCat("grid_search --model ", model, " --batch-size ", batch,
                                 " --cluster ", cluster, rest, "--csv one.csv --json one.json"));
        ASSERT_EQ(one.code, 0) << one.err;
        const std::string csv = Contents("one.csv");
        expected += expected.empty() ? csv : csv.substr(csv.find('\n') + 1);
        rows += Rows("one.json").size();
      }
    }
  }
  EXPECT_EQ(Contents("all.csv"), expected);
  EXPECT_EQ(Rows("all.json").size(), rows);
  EXPECT_EQ(rows, 16u);
}

// One that has no answer does not stand in the way of the others.
TEST(SeveralQuestions, GoOnWhereOneHasNoAnswer) {
  const std::string rest = " --cluster uniform:4@200Gbps --dp 4 --hp 1 --pp 1 --micro-batches 1";
  const Finished some = Execute("grid_search --model mlp:layers=2,dim=8 --batch-size 3,8" + rest);
  EXPECT_EQ(some.code, 0) << some.err;
  EXPECT_THAT(some.out, HasSubstr("\nbest of each:\nmlp:layers=2,dim=8, batch 8, on "));
  const Finished none = Execute("grid_search --model mlp:layers=2,dim=8 --batch-size 3,5" + rest);
  EXPECT_EQ(none.code, 1);
  EXPECT_EQ(none.err, "grid_search: no candidate is feasible\n");
}

// What is wrong with one is told before another is searched.
TEST(SeveralQuestions, AreAllRightBeforeAnyIsSearched) {
  const std::string plan = " --cluster uniform:4@200Gbps --dp 4 --hp 1 --pp 1 --micro-batches 1";
  for (const auto& [question, error] : std::vector<std::pair<std::string, std::string>>{
           {"--model mlp:layers=2,dim=8,none.onnx --batch-size 8", "none.onnx: no such file"},
           {"--model mlp:layers=2,dim=8, --batch-size 8", "is no model"},
           {"--model mlp:layers=2,dim=8 --batch-size 8,0", "wanted at least 1 sample"}}) {
    const Finished finished = Execute(absl::StrCat("grid_search ", question, plan));
    EXPECT_EQ(finished.code, 1) << question;
    EXPECT_EQ(finished.out, "") << question;
    EXPECT_THAT(finished.err, HasSubstr(error));
  }
}

TEST(FullSpace, SaysWhatItDoesNotTake) {
  const auto error = [](const std::string& flags) {
    const Finished finished = Execute(kSmall + flags);
    EXPECT_EQ(finished.code, 1) << flags;
    EXPECT_EQ(finished.out, "") << flags;
    return finished.err;
  };
  EXPECT_EQ(error("--space all"), "grid_search: --space 'all': wanted default or full\n");
  EXPECT_EQ(error("--method best"),
            "grid_search: --method: 'best': wanted exhaustive, beam, annealing, mcmc, evolution, "
            "bayes or "
            "reinforce\n");
  EXPECT_THAT(error("--budget 0s"), HasSubstr("--budget: '0s': wanted a time, as in 60s"));
  EXPECT_THAT(error("--budget 5 --part 1/2"), HasSubstr("wanted no --part and no --merge beside"));
  EXPECT_THAT(error("--price free"), HasSubstr("wanted what a device costs an hour"));
  EXPECT_THAT(error("--price 1,2"), HasSubstr("2 prices for 1 clusters"));
  EXPECT_THAT(error("--seed -1"), HasSubstr("--seed -1: wanted a number from 0 to 4294967295"));
  const Finished usage = Execute(
      "grid_search --model mlp:layers=2,dim=8 --cluster "
      "uniform:4@200Gbps --batch-size 8,x");
  EXPECT_EQ(usage.code, 2);
  EXPECT_THAT(usage.err, HasSubstr("--batch-size 'x': wanted numbers of samples"));
  const Finished several = Execute(
      "grid_search --model mlp:layers=2,dim=8 --cluster "
      "uniform:4@200Gbps --batch-size 8,16 --resume j");
  EXPECT_EQ(several.code, 1);
  EXPECT_THAT(several.err, HasSubstr("wanted one of each beside --part, --resume"));
}

}  // namespace
}  // namespace space_flags_test_cc
}  // namespace orrery::cli
