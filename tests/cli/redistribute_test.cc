#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "support/file.h"
#include "support/paths_test_util.h"
#include "tests/cli/run.h"

// The program `redistribute`: the tables of tensorcraft's notebook, its other forms of layouts, and
// one line for each impossible question.

namespace orrery::cli {
namespace redistribute_test_cc {
namespace {

using testing::HasSubstr;

Finished Ask(const std::string& flags) { return Execute(absl::StrCat("redistribute ", flags)); }

TEST(Redistribute, PrintsTheTablesOfTheNotebook) {
  EXPECT_EQ(Ask("--mesh 2,4 --shape 50,50 --from 0,- --from-blocks 10,- --to -,0 --to-blocks -,10 "
                "--planner naive --cost tensorcraft:epsilon=1")
                .out,
            "Step #  Operation    Distribution         Cost  Memory Usage [MB]\n"
            "0                    D_[2,4]⊥{0,∅}(10,∅)  0     0.012\n"
            "1       allgather_*  D_[2,4]⊥{∅,∅}(∅,∅)   2501  0.02\n"
            "2       split_*      D_[2,4]⊥{∅,0}(∅,10)  0     0.012\n"
            "Total cost: 2501\n"
            "Peak: 2500 elements, 0.02 MB\n");
  EXPECT_EQ(Ask("--shape 100,100 --from 'D_[2,4]{0,-}(2,-)' --to 'D_[2,4]{-,0}(-,2)'").out,
            "Step #  Operation        Distribution        Cost  Memory Usage [MB]\n"
            "0                        D_[2,4]⊥{0,∅}(2,∅)  0     0.04\n"
            "1       alltoall_0_1_-1  D_[2,4]⊥{∅,0}(∅,2)  5001  0.04\n"
            "Total cost: 5001\n"
            "Peak: 5000 elements, 0.04 MB\n");
  EXPECT_EQ(
      Ask("--mesh 4,2,4 --shape 800,400,800,4 --from '(0,1),-,-,-' --from-blocks 100,-,-,- "
          "--to -,1,0,- --to-blocks -,100,100,- --memory-limit endpoints "
          "--cost tensorcraft:alpha=0.01,beta=0.0003199952000719989")
          .out,
      "Step #  Operation           Distribution                        Cost                Memory "
      "Usage [MB]\n"
      "0                           D_[4,2,4]⊥{(0,1),∅,∅,∅}(100,∅,∅,∅)  0                   1024\n"
      "1       split_3_2_1         D_[4,2,4]⊥{(0,1),∅,∅,2}(100,∅,∅,1)  0                   256\n"
      "2       alltoall_mf_0_1_-1  D_[4,2,4]⊥{0,1,∅,2}(200,100,∅,1)    10239.856402303965  256\n"
      "3       alltoall_0_2_100    D_[4,2,4]⊥{∅,1,0,2}(∅,100,100,1)    30719.559206911894  256\n"
      "4       allgather_2         D_[4,2,4]⊥{∅,1,0,∅}(∅,100,100,∅)    30719.559206911894  1024\n"
      "Total cost: 71678.97481612775\n"
      "Peak: 128000000 elements, 1024 MB\n");
}

// The third table, with what tensorcraft's layout demo prints of each step.
TEST(Redistribute, PricesStepsThatAreGiven) {
  const std::string question =
      "--mesh 4,2,4 --shape 800,400,800,4 --from '(0,1),-,-,-' --from-blocks 100,-,-,- "
      "--to -,1,0,- --to-blocks -,100,100,- --cost "
      "tensorcraft:alpha=0.01,beta=0.0003199952000719989 ";
  Clear();
  const std::string steps =
      "'slice a2: 3; all-to-all a1: 0->1; all-to-all a0: 0->2; all-gather a2: 3' ";
  EXPECT_EQ(Ask(question + "--json given.json --memory-limit endpoints --steps " + steps).out,
            "Step #  Operation           Distribution                        Cost                "
            "Volume   "
            "  Group  Memory Usage [MB]\n"
            "0                           D_[4,2,4]⊥{(0,1),∅,∅,∅}(100,∅,∅,∅)  0                     "
            "       "
            "         1024\n"
            "1       split_3_2_1         D_[4,2,4]⊥{(0,1),∅,∅,2}(100,∅,∅,1)  0                   0 "
            "       "
            "  0      256\n"
            "2       alltoall_mf_0_1_-1  D_[4,2,4]⊥{0,1,∅,2}(200,100,∅,1)    10239.856402303965  "
            "64000000 "
            "  2      256\n"
            "3       alltoall_0_2_100    D_[4,2,4]⊥{∅,1,0,2}(∅,100,100,1)    30719.559206911894  "
            "128000000"
            "  4      256\n"
            "4       allgather_2         D_[4,2,4]⊥{∅,1,0,∅}(∅,100,100,∅)    30719.559206911894  "
            "128000000"
            "  4      1024\n"
            "Total cost: 71678.97481612775\n"
            "Cheapest plan: 71678.97481612775, 4 steps\n"
            "Peak: 128000000 elements, 1024 MB\n");
  const nlohmann::json plan = nlohmann::json::parse(Contents("given.json"));
  EXPECT_EQ(plan["exact"], true);
  EXPECT_EQ(plan["steps"][1]["volume_elements"], 64000000);
  EXPECT_EQ(plan["steps"][1]["group_size"], 2);
  EXPECT_EQ(
      Ask(question + "--steps 'all-gather a1; slice a2: 3'").err,
      "redistribute: --steps: the steps end in D_[4,2,4]⊥{0,∅,∅,2}(200,∅,∅,1); wanted "
      "D_[4,2,4]⊥{∅,1,0,∅}(∅,100,100,∅); try, behind them, 'slice a1: 1; all-to-all a0: 0->2; "
      "all-gather a2: 3'\n");
  EXPECT_EQ(
      Ask(question + "--steps 'slice a1: 1'").err,
      "redistribute: --steps: step 1, 'slice a1: 1': does not apply to "
      "D_[4,2,4]⊥{(0,1),∅,∅,∅}(100,∅,∅,∅): a1 splits dimension 0, and has to replicate; wanted "
      "one of: slice a2: 0; slice a2: 1; slice a2: 2; slice a2: 3\n");
  EXPECT_EQ(Ask(question + "--memory-limit 1 --steps " + steps).err,
            "redistribute: --steps: a rank holds up to 128000000 elements; wanted at most 1, the "
            "memory limit\n");
  for (const std::string flag : {"planner naive", "compare", "frontier"}) {
    EXPECT_THAT(Ask(question + "--" + flag + " --steps " + steps).err,
                HasSubstr(": --steps says what the steps are; wanted one of the two\n"));
  }
}

// Sums over two axes are reduced at once where there is a group for that; creating one is worth it
// where it costs less than the wait that it saves.
TEST(Redistribute, MergesReductionsWhereTheirGroupIs) {
  const std::string question =
      "--mesh 2,8 --shape 1024,1024 --from P,P --to R,R --cost cluster:dgx-h100:2 ";
  EXPECT_THAT(Ask(question).out, HasSubstr("1       all-reduce a0.a1  R,R "));
  EXPECT_THAT(Ask(question + "--groups a0,a1,a1.a0").out, HasSubstr("all-reduce a0.a1"));
  const std::string apart = Ask(question + "--groups a0,a1 --straggler 50us").out;
  EXPECT_THAT(apart, testing::Not(HasSubstr("a0.a1")));
  EXPECT_EQ(Ask(question + "--groups a0,a1 --straggler 50us --group-price 5ms").out, apart);
  const std::string created =
      Ask(question + "--groups a0,a1 --straggler 50us --group-price 10us --parts").out;
  EXPECT_THAT(created, HasSubstr("1       all-reduce a0.a1  R,R "));
  EXPECT_THAT(created, HasSubstr("synchronization [us]  groups [us]\n"));
  EXPECT_THAT(created, HasSubstr("  50                    10\n"));
  EXPECT_EQ(
      Ask(question + "--groups a0,a1 --steps 'all-reduce a0.a1'").err,
      "redistribute: --steps: step 1, 'all-reduce a0.a1': does not apply to P,P: there is no group "
      "a0.a1, only a0, a1; the reduction is to be axis by axis, or its group in --groups, or to be "
      "created at a --group-price; wanted one of: all-reduce a0; all-reduce a1\n");
  Clear();
  EXPECT_THAT(Ask(question + "--groups a0,a1,a0.a1 --steps 'all-reduce a0; all-reduce a1' "
                             "--straggler 50us --json plan.json")
                  .out,
              HasSubstr("Steps 1 and 2 are two reductions of one kind, which a group a0.a1 does "
                        "as one\n"));
  const nlohmann::json plan = nlohmann::json::parse(Contents("plan.json"));
  double sum = 0;
  for (const auto& part : plan["steps"][0]["cost_parts"]) sum += part.get<double>();
  EXPECT_DOUBLE_EQ(sum, plan["steps"][0]["cost"]);
  EXPECT_EQ(plan["steps"][0]["cost_parts"]["synchronization"], 50);
  EXPECT_EQ(plan["steps"][0]["cost_parts"]["groups"], 0);
}

TEST(Redistribute, SaysWhichGroupsAndWaitsCannotBe) {
  const std::string ask = "--mesh 2,8 --shape 64,64 --from P,P --to R,R ";
  EXPECT_EQ(Ask(ask + "--groups a0,a2").err,
            "redistribute: --groups: got axis 'a2' in 'a2'; wanted each once of a0, a1 or its "
            "number, as in a0,a0.a1\n");
  EXPECT_EQ(Ask(ask + "--groups a0,a1,a0.a1").err,
            "redistribute: --groups: got a0.a1, of several axes, and steps of --cost dtensor are "
            "over one; wanted --cost dtensor:merge\n");
  EXPECT_EQ(Ask(ask + "--groups a0").err,
            "redistribute: no steps lead to the target within the groups a0; wanted more of them, "
            "or a --group-price\n");
  EXPECT_EQ(Ask(ask + "--group-price 5ms").err,
            "redistribute: --group-price: without --groups all groups exist; wanted it to say "
            "which do\n");
  EXPECT_EQ(Ask(ask + "--straggler -1us").err.substr(0, 26), "redistribute: --straggler:");
  EXPECT_EQ(Ask("--mesh 4 --shape 64 --from 0 --to - --straggler 5us").err,
            "redistribute: --straggler: got '5us'; wanted a number that is not negative: --cost "
            "tensorcraft has no unit\n");
  EXPECT_THAT(Ask("--mesh 4 --shape 64 --from 0 --to - --straggler 5").out,
              HasSubstr("Total cost: 55\n"));
  EXPECT_THAT(Ask(ask + "--groups a0,a1 --group-price 1us --frontier").err,
              HasSubstr("--group-price: --frontier has plans within groups that exist"));
  EXPECT_THAT(Ask(ask + "--groups a0,a1 --group-price 1us --ties local").err,
              HasSubstr("--ties: which groups to create is chosen by all that plans cost"));
  EXPECT_THAT(Ask(ask + "--compare --parts").err, HasSubstr("--parts: --compare has no steps"));
  EXPECT_THAT(Ask(ask + "--compare --groups a0.a1 --cost cluster:dgx-h100:2").out,
              HasSubstr("greedy: all-reduce a0: there is no group a0, only a0.a1\n"));
}

double CostOn(const std::string& devices) {
  Clear();
  const Finished finished =
      Ask("--mesh 8 --shape 4096,4096 --from S0 --to R --json on.json --cost cluster:dgx-h100:8" +
          (devices.empty() ? "" : " --devices " + devices));
  EXPECT_EQ(finished.err, "");
  return nlohmann::json::parse(Contents("on.json"))["total_cost"];
}

// A mesh in one node costs the same in each; one rank a node goes over the network.
TEST(Redistribute, TakesAMeshThatIsASliceOfALargerOne) {
  const double node = CostOn("");
  EXPECT_EQ(CostOn("0-7"), node);
  EXPECT_EQ(CostOn("24-31"), node);
  EXPECT_GT(CostOn("3-59:8"), 2 * node);
  EXPECT_GT(CostOn("4-11"), node);
  const std::string ask = "--mesh 8 --shape 64 --from S0 --to R --devices ";
  EXPECT_EQ(Ask(ask + "0-3 --cost cluster:dgx-h100:8").err,
            "redistribute: --devices: got 4 devices for a mesh of 8 ranks; wanted one each\n");
  EXPECT_EQ(Ask(ask + "0-6,6 --cost cluster:dgx-h100:8").err,
            "redistribute: --devices: device 6 stands twice in the group; wanted each once\n");
  EXPECT_EQ(Ask(ask + "57-64 --cost cluster:dgx-h100:8").err,
            "redistribute: --devices: device 64 is not of the cluster; wanted 0 to 63\n");
  EXPECT_EQ(Ask(ask + "0-7").err,
            "redistribute: --devices: got --cost dtensor, where all ranks are alike; wanted --cost "
            "cluster:SPEC\n");
}

// Both orders cost nothing in DTensor, and so does making summands of all or of a part.
TEST(Redistribute, BreaksTiesByThePartOfTheCostThatIsAskedFor) {
  const std::string question =
      "--mesh 2,8 --shape 8192,1024 --from R,R --to P,S0 --cost dtensor:partial_cost=7,"
      "memory_bandwidth=2000";
  EXPECT_THAT(Ask("--mesh 2,8 --shape 8192,1024 --from R,R --to P,S0").out,
              HasSubstr("1       local      P,R "));
  const std::string out = Ask(question + " --ties local").out;
  EXPECT_THAT(out, HasSubstr("1       local      R,S0 "));
  EXPECT_THAT(out, HasSubstr("Total cost: 10.90625 us\n"));
  EXPECT_EQ(Ask(question + " --ties compute").err,
            "redistribute: --ties: 'compute': wanted one of launches, latency, transfer, copy, "
            "reduction, synchronization, memory, local\n");
  for (const std::string flag : {"planner naive", "frontier", "steps 'slice a1: 0'"}) {
    EXPECT_EQ(Ask(question + " --ties local --" + flag).err,
              "redistribute: --ties local: the optimal planner breaks ties; wanted no --" +
                  flag.substr(0, flag.find(' ')) + " beside it\n");
  }
}

TEST(Redistribute, ReadsPlacements) {
  const Finished finished = Ask("--mesh 2,8 --shape 8192,1024 --itemsize 4 --from S0,S0 --to R,S0");
  EXPECT_EQ(finished.out,
            "Step #  Operation   Distribution  Cost [us]           Memory Usage [MB]\n"
            "0                   S0,S0         0                   2.097152\n"
            "1       all_to_all  S0,S1         31.286708950969214  2.097152\n"
            "2       all_gather  R,S1          110.52965688815176  4.194304\n"
            "3       all_to_all  R,S0          50.77341790193843   4.194304\n"
            "Total cost: 192.58978374105942 us\n"
            "Peak: 2097152 elements, 8.388608 MB\n");
}

TEST(Redistribute, ReadsAxesAndPartsOfThem) {
  const Finished finished =
      Ask("--mesh dp=2,hp=8 --from '[8192@hp:(2)4.dp,1024]' --to '[8192,1024@hp]' "
          "--cost cluster:dgx-h100:2,ideal-collectives");
  EXPECT_EQ(finished.err, "");
  EXPECT_THAT(finished.out, HasSubstr("  [8192@hp:(2)4.dp,1024] "));
  EXPECT_THAT(finished.out, HasSubstr("slice hp-0 to 1 "));
  EXPECT_THAT(finished.out, HasSubstr("  [8192@hp:(2)4.dp,1024@hp:(1)2] "));
  EXPECT_THAT(finished.out, HasSubstr("  [8192,1024@hp] "));
}

TEST(Redistribute, ComparesPlanners) {
  const Finished finished = Ask("--mesh 2,8 --shape 8192,1024 --from S0,S0 --to R,S0 --compare");
  EXPECT_EQ(finished.out,
            "Planner  Cost [us]           Cost / optimal  Steps  Peak [MB]\n"
            "optimal  192.58978374105942  1.00            3      8.388608\n"
            "greedy   985.8309267129678   5.12            3      50.331648\n"
            "naive    985.8309267129678   5.12            3      50.331648\n");
  EXPECT_EQ(Ask("--shape 100,100 --from 'D_[4]{0,-}(2,-)' --to 'D_[4]{-,0}(-,2)' --compare").out,
            "Planner  Cost  Cost / optimal  Steps  Peak [MB]\n"
            "optimal  7802  1.00            1      0.0208\n"
            "naive    7802  1.00            2      0.08\n"
            "greedy: source: dimension 0 is in blocks; wanted nested chunks, all that DTensor has; "
            "try --cost tensorcraft\n");
}

TEST(Redistribute, ShowsWhatMemoryCosts) {
  const std::string question =
      "--mesh 2,2 --shape 12,48 --from '-,(1,0)' --from-blocks -,8 --to '-,(0,1)' --to-blocks -,4 ";
  EXPECT_EQ(Ask(question + "--frontier").out,
            "Cost  Steps  Peak [MB]\n"
            "193   2      0.002304\n"
            "508   4      0.001536\n");
  EXPECT_THAT(Ask(question + "--memory-limit endpoints").out, HasSubstr("Total cost: 508\n"));
  EXPECT_THAT(Ask(question + "--memory-limit 1600B").out, HasSubstr("Total cost: 508\n"));
  EXPECT_THAT(Ask(question).out, HasSubstr("Total cost: 193\n"));
}

TEST(Redistribute, WritesJson) {
  ASSERT_EQ(Ask("--mesh 8 --shape 64,64 --from P --to S0 --json plan.json").code, 0);
  const auto json = nlohmann::json::parse(Contents("plan.json"));
  EXPECT_EQ(json["steps"].size(), 1U);
  const auto& step = json["steps"][0];
  EXPECT_EQ(step["op"], "reduce_scatter");
  EXPECT_EQ(step["kind"], "reduce-scatter");
  EXPECT_EQ(step["axes"], nlohmann::json::array({0}));
  EXPECT_EQ(step["elements"], 64 * 64 / 8);
  EXPECT_EQ(step["layout"], "S0");
  EXPECT_EQ(json["total_cost"], step["cost"]);
  EXPECT_EQ(json["peak_elements"], 64 * 64 + 64 * 64 / 8);
  double parts = 0;
  for (const auto& [name, part] : step["cost_parts"].items()) parts += part.get<double>();
  EXPECT_NEAR(parts, step["cost"].get<double>(), 1e-9);
}

// Every record of the goldens has an answer, in the columns that are promised.
TEST(Redistribute, PlansCases) {
  for (const char* const file : {"redistribution_tensorcraft", "redistribution_dtensor"}) {
    const std::string path = absl::StrCat(SourceDir(), "/tests/data/", file, ".json");
    const Finished finished = Ask(absl::StrCat("--cases ", path));
    const std::vector<std::string> rows = absl::StrSplit(finished.out, '\n', absl::SkipEmpty());
    EXPECT_EQ(rows[0], "name,total_cost,peak_elements,planning_s,note");
    const auto cases = nlohmann::json::parse(*ReadFile(path))["cases"];
    ASSERT_EQ(rows.size(), cases.size() + 1) << finished.err;
    size_t planned = 0;
    for (size_t i = 1; i < rows.size(); ++i) planned += absl::EndsWith(rows[i], ",") ? 1 : 0;
    EXPECT_EQ(planned, cases.size()) << finished.out;
  }
}

TEST(Redistribute, NamesWhatIsWrong) {
  const auto error = [](const std::string& flags) {
    const Finished finished = Ask(flags);
    EXPECT_EQ(finished.code, 1) << flags;
    EXPECT_EQ(finished.out, "") << flags;
    EXPECT_EQ(std::count(finished.err.begin(), finished.err.end(), '\n'), 1) << finished.err;
    return finished.err;
  };
  EXPECT_THAT(error("--mesh 2,8"), HasSubstr("--from and --to: wanted a layout each"));
  EXPECT_THAT(error("--mesh 0,8 --shape 8 --from S0 --to R"), HasSubstr("--mesh '0,8': wanted"));
  EXPECT_THAT(error("--mesh 2 --shape 8,x --from S0 --to R"), HasSubstr("--shape '8,x': wanted"));
  EXPECT_THAT(error("--mesh 2 --shape 8 --from S3 --to R"), HasSubstr("--from: at 2"));
  EXPECT_THAT(error("--mesh 2 --shape 8 --from [ --to R"), HasSubstr("written in two ways"));
  EXPECT_THAT(error("--mesh 2 --shape 8 --from S0 --to R --cost no"),
              HasSubstr("--cost: got 'no'; wanted tensorcraft"));
  EXPECT_THAT(error("--mesh 64 --shape 64 --from S0 --to R --cost cluster:dgx-h100:1"),
              HasSubstr("has 8 devices; wanted at least the 64 ranks"));
  EXPECT_THAT(error("--mesh 2 --shape 8 --from S0 --to R --planner no"),
              HasSubstr("--planner 'no': wanted optimal, naive or greedy"));
  EXPECT_THAT(error("--mesh 2 --shape 8 --from S0 --to R --memory-limit 3"),
              HasSubstr("no steps within 3 elements a rank; source and target take 4 and 8"));
  EXPECT_THAT(error("--mesh 2 --shape 8 --from S0 --to R --memory-limit 3x"),
              HasSubstr("--memory-limit"));
  EXPECT_THAT(error("--mesh 2 --shape 8 --itemsize 65 --from S0 --to R"),
              HasSubstr("--itemsize 65: wanted 1 to 64 bytes"));
  EXPECT_THAT(error("--cases /dev/null"), HasSubstr("wanted a JSON object with a list \"cases\""));
}

}  // namespace
}  // namespace redistribute_test_cc
}  // namespace orrery::cli
