#include "tools/redistribution/redistribution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "ir/text/layout_text.h"
#include "support/file.h"

namespace orrery::tools {
namespace redistribution_test_cc {
namespace {

using redistribution::PackedLayout;
using testing::HasSubstr;
using testing::StartsWith;

// How source and target are printed, of so large elements; or the error.
std::string Read(const RedistributionText& text) {
  const absl::StatusOr<WrittenProblem> written = ParseRedistribution(text);
  if (!written.ok()) return std::string(written.status().message());
  return absl::StrCat(written->Text(PackedLayout(written->problem.from)), " -> ",
                      written->Text(PackedLayout(written->problem.to)), ", ",
                      written->problem.itemsize, " bytes");
}

RedistributionText Question(const std::string& mesh, const std::string& shape,
                            const std::string& from, const std::string& to, int64_t itemsize = 0) {
  RedistributionText text;
  text.mesh = mesh;
  text.shape = shape;
  text.from = from;
  text.to = to;
  text.itemsize = itemsize;
  return text;
}

TEST(ParseRedistribution, AnswersAsItWasAsked) {
  EXPECT_EQ(Read(Question("2,8", "8192,1024", "S0,S0", "R,Pmax")), "S0,S0 -> R,P(max), 4 bytes");
  EXPECT_EQ(Read(Question("2,8", "16,4", "(Shard(0), Replicate())", "_S(0, 1),S1", 2)),
            "S0,R -> S0,S1, 2 bytes");
  EXPECT_EQ(Read(Question("dp=2,hp=8", "", "[16@dp.hp]", "[16@hp]")),
            "[16@dp.hp] -> [16@hp], 4 bytes");
  EXPECT_EQ(Read(Question("", "8,8", "D_[2,4]{0,-}(2,-)", "D_[2,4]{-,(0,1)}(-,1)")),
            "D_[2,4]⊥{0,∅}(2,∅) -> D_[2,4]⊥{∅,(0,1)}(∅,1), 8 bytes");
  EXPECT_EQ(Read(Question("2,4", "8,8", "0,-", "(1),-", 1)),
            "D_[2,4]⊥{0,∅}(1,∅) -> D_[2,4]⊥{1,∅}(1,∅), 1 bytes");
}

TEST(ParseRedistribution, CutsAxesWhereEitherSideDoes) {
  EXPECT_EQ(Read(Question("dp=4,hp=2", "8", "[8@dp.hp]", "[8@dp:(1)2]")),
            "[8@dp.hp] -> [8@dp:(1)2], 4 bytes");
  EXPECT_EQ(Read(Question("dp=8", "", "[8] partial(dp:(2)2:avg)", "[8@dp:(4)2]")),
            "[8] partial(dp:(2)2:avg) -> [8@dp:(4)2], 4 bytes");
  // The whole axis is partial in its three parts.
  const WrittenProblem written =
      ParseRedistribution(Question("dp=8", "", "[8] partial(dp:max)", "[8@dp:(2)2]")).value();
  EXPECT_EQ(written.problem.mesh.axes().size(), 3);
  EXPECT_EQ(written.problem.from.partial.axes().size(), 3);
  EXPECT_EQ(written.problem.to.at(0).axes().size(), 1);
  EXPECT_EQ(written.problem.to.at(0).axes()[0], 1);
}

TEST(ParseRedistribution, WantsALayoutEachWrittenAlike) {
  const std::string wanted = "--from and --to: wanted a layout each, as in --from S0,S0 --to R,S0";
  EXPECT_EQ(Read(Question("2", "8", "", "S0")), wanted);
  EXPECT_EQ(Read(Question("2", "8", "S0", "")), wanted);
  EXPECT_EQ(Read(Question("2,2", "8", "S0,R", "(0,1)")),
            "--from 'S0,R' and --to '(0,1)' are written in two ways; wanted one of (0,1),- and "
            "S0,R and [64@dp,32]");
  EXPECT_THAT(Read(Question("2", "8", "[Shard(0)]", "[8]")), HasSubstr("in two ways"));
}

TEST(ParseRedistribution, WantsOneShapeOnOneMesh) {
  EXPECT_EQ(Read(Question("2,2", "4,4", "0,-", "0")),
            "--from has 2 dimensions, --to 1; wanted the 2 of --shape");
  EXPECT_EQ(Read(Question("2,2", "4", "0,-", "0")),
            "--from has 2 dimensions, --to 1; wanted the 1 of --shape");
  EXPECT_EQ(Read(Question("", "4,4", "D_[2,2]{0,-}", "D_[2,4]{0,-}")),
            "--from and --to are on two meshes; wanted one");
  const std::string unlike = "--from, --to and --shape have unlike sizes; wanted one shape";
  EXPECT_EQ(Read(Question("2", "", "[8@a0]", "[4@a0]")), unlike);
  EXPECT_EQ(Read(Question("2", "4", "[8@a0]", "[8]")), unlike);
  EXPECT_EQ(Read(Question("2", "8", "[8@a0]", "[8]")), "[8@a0] -> [8], 4 bytes");
}

TEST(ParseRedistribution, KnowsNoElementsBeyond64Bytes) {
  for (const int64_t size : {1, 64}) {
    EXPECT_EQ(Read(Question("2", "8", "S0", "R", size)), absl::StrCat("S0 -> R, ", size, " bytes"));
  }
  for (const int64_t size : {-1, 65}) {
    EXPECT_EQ(Read(Question("2", "8", "S0", "R", size)),
              absl::StrCat("--itemsize ", size, ": wanted 1 to 64 bytes"));
  }
}

TEST(ParseRedistribution, HoldsLimitsOfMeshAndShape) {
  for (const char* mesh : {"2,0", "2=2", "a=2,a=2", "a=2=2", "1048576,1048577", "2,", ""}) {
    EXPECT_EQ(Read(Question(mesh, "8", "R", "S0")),
              absl::StrCat("--mesh '", mesh,
                           "': wanted 1 to 7 sizes of at least 1, with or without names that "
                           "differ, and at most 2^40 ranks, as in 2,8 or dp=2,hp=8"));
  }
  EXPECT_EQ(Read(Question("1048576,1048576", "8", "R,R", "R,R")), "R,R -> R,R, 4 bytes");
  const std::string many = absl::StrJoin(std::vector<std::string>(30, "1"), ",");
  for (const std::string& shape :
       {std::string("0"), std::string("-4"), std::string("4,"), std::string("x"),
        std::string("72057594037927937"), std::string("268435456,268435457"), many + ",1"}) {
    EXPECT_EQ(Read(Question("2", shape, "R", "S0")),
              absl::StrCat("--shape '", shape,
                           "': wanted 1 to 30 sizes of at least 1, and at most 2^56 elements, as "
                           "in 8192,1024"));
  }
  for (const std::string& shape : {std::string("268435456,268435456"), many}) {
    EXPECT_EQ(Read(Question("2", shape, "R", "R")), "R -> R, 4 bytes");
  }
  const std::string ours = absl::StrCat("[", many, ",1]");
  EXPECT_EQ(
      Read(Question("2", "", ours, ours)),
      absl::StrCat("--from '", ours, "': wanted at most 30 sizes, and at most 2^56 elements"));
}

TEST(PlainNumber, HasNoExponentWhereItIsRead) {
  EXPECT_EQ(PlainNumber(0), "0");
  EXPECT_EQ(PlainNumber(1501), "1501");
  EXPECT_EQ(PlainNumber(-3), "-3");
  EXPECT_EQ(PlainNumber(71678.97481612775), "71678.97481612775");
  EXPECT_EQ(PlainNumber(0.0001), "0.0001");
  EXPECT_EQ(PlainNumber(0.00001), "1e-05");
  EXPECT_EQ(PlainNumber(999999999999999), "999999999999999");
  EXPECT_EQ(PlainNumber(1e15), "1000000000000000");
  EXPECT_EQ(PlainNumber(2e15), "2e+15");
  EXPECT_EQ(PlainNumber(std::numeric_limits<double>::infinity()), "inf");
}

redistribution::Problem Gather() {
  return ParseRedistribution(Question("2", "8", "S0", "R")).value().problem;
}

std::string CreateError(const std::string& cost, const std::string& model = "roofline") {
  return std::string(Redistributor::Create(Gather(), cost, model).status().message());
}

TEST(Redistributor, TakesOneOfThreeCosts) {
  EXPECT_EQ(Redistributor::Create(Gather(), "tensorcraft", "").value().unit(), "");
  EXPECT_EQ(Redistributor::Create(Gather(), "dtensor", "").value().unit(), "us");
  EXPECT_EQ(Redistributor::Create(Gather(), "cluster:dgx-h100:1", "roofline").value().unit(), "us");
  EXPECT_EQ(CreateError("abacus:1"),
            "--cost: got 'abacus:1'; wanted tensorcraft[:OPTIONS], dtensor[:OPTIONS] or "
            "cluster:SPEC, as in cluster:dgx-h100:2");
  EXPECT_THAT(CreateError("tensorcraft:x=1"), StartsWith("--cost: "));
  EXPECT_THAT(CreateError("dtensor:x=1"), StartsWith("--cost: "));
  EXPECT_THAT(CreateError("cluster:dgx-h100:1", "abacus"), StartsWith("--cost: "));
  EXPECT_EQ(CreateError("cluster:uniform:1@1Gbps"),
            "--cost: cluster uniform:1@1Gbps has 1 devices; wanted at least the 2 ranks of the "
            "mesh");
  EXPECT_EQ(CreateError("cluster:uniform:2@1Gbps"), "");
}

// Hops and elements: an all-gather over two ranks is one hop and half of what comes of it.
TEST(Redistributor, PlansByEachPlanner) {
  for (const char* planner : {"optimal", "naive", "greedy"}) {
    const Redistributor question = Redistributor::Create(Gather(), "tensorcraft", "").value();
    const redistribution::RedistributionPlan plan =
        question.Plan(planner, redistribution::kNoLimit).value();
    EXPECT_EQ(plan.steps.size(), 1) << planner;
    EXPECT_EQ(plan.cost, 1 + 8 / 2) << planner;
  }
  EXPECT_EQ(
      Redistributor::Create(Gather(), "dtensor", "").value().Plan("abacus", 0).status().message(),
      "--planner 'abacus': wanted optimal, naive or greedy");
}

// The gather of 4 elements into 8 holds both.
TEST(Redistributor, HoldsTheLimitOfTheOptimalPlanner) {
  const Redistributor question = Redistributor::Create(Gather(), "dtensor", "").value();
  EXPECT_EQ(question.Plan("optimal", 12).value().peak, 12);
  EXPECT_EQ(question.Plan("optimal", 11).status().message(),
            "no steps within 11 elements a rank; source and target take 4 and 8, wanted a limit "
            "above that");
  EXPECT_EQ(question.Plan("greedy", 11).value().peak, 12);
  EXPECT_EQ(question.Plan("naive", 11).value().peak, 12);
}

// Across hosts it takes longer, and by the greedy planner too.
TEST(Redistributor, HandsOptionsToItsPlanners) {
  for (const char* planner : {"optimal", "naive", "greedy"}) {
    const auto cost = [&](const std::string& options) {
      return Redistributor::Create(Gather(), absl::StrCat("dtensor", options), "")
          .value()
          .Plan(planner, redistribution::kNoLimit)
          .value()
          .cost;
    };
    EXPECT_LT(cost(""), cost(":devices_per_host=1")) << planner;
    EXPECT_EQ(cost(""), cost(":devices_per_host=8")) << planner;
  }
}

TEST(ParseElementLimit, CountsElementsOrBytes) {
  const Redistributor question = Redistributor::Create(Gather(), "dtensor", "").value();
  const auto limit = [&](absl::string_view text) {
    return ParseElementLimit(text, question).value();
  };
  EXPECT_EQ(limit(""), redistribution::kNoLimit);
  EXPECT_EQ(limit("endpoints"), 8);
  EXPECT_EQ(limit("0"), 0);
  EXPECT_EQ(limit("1500"), 1500);
  EXPECT_EQ(limit("47B"), 11);  // of 4 bytes each
  EXPECT_EQ(limit("1KiB"), 256);
  EXPECT_THAT(std::string(ParseElementLimit("-1", question).status().message()),
              StartsWith("--memory-limit: "));
}

// Rows of the file, without the seconds.
std::vector<std::string> Rows(const std::string& text, const RedistributionCases& flags = {}) {
  RedistributionCases cases = flags;
  cases.path = absl::StrCat(testing::TempDir(), "redistributions_", getpid(), ".json");
  if (cases.planner.empty()) cases.planner = "optimal";
  EXPECT_TRUE(WriteFile(cases.path, text).ok());
  const absl::StatusOr<std::string> csv = PlanRedistributionCases(cases);
  std::filesystem::remove(cases.path);
  if (!csv.ok()) return {absl::StrReplaceAll(csv.status().message(), {{cases.path, "FILE"}})};
  std::vector<std::string> rows = absl::StrSplit(*csv, '\n', absl::SkipEmpty());
  for (std::string& row : rows) {
    std::vector<std::string> cells = absl::StrSplit(row, absl::MaxSplits(',', 4));
    if (!cells[3].empty()) cells[3] = "s";
    row = absl::StrJoin(cells, ",");
  }
  return rows;
}

// A wait changes nothing but what steps that exchange something cost; what a planner cannot do it
// still cannot.
TEST(Stragglers, AddUpOverTheStepsOfPlannersThatKnowNothingOfThem) {
  int held = 0;
  for (const auto& question :
       {Question("4", "5", "S0", "P"), Question("2,2", "8,8", "S0,R", "R,S1"),
        Question("2,4", "16,8", "S0,S1", "S1,S0"), Question("4", "8", "P", "R")}) {
    const WrittenProblem written = ParseRedistribution(question).value();
    for (const std::string cost : {"dtensor", "tensorcraft", "cluster:dgx-h100:1"}) {
      for (const char* planner : {"greedy", "naive"}) {
        absl::StatusOr<Redistributor> created = Redistributor::Create(written.problem, cost, "");
        if (!created.ok()) continue;  // parts of one size only
        Redistributor& made = *created;
        const auto plain = made.Plan(planner, redistribution::kNoLimit);
        ASSERT_TRUE(made.WaitForStragglers(cost == "cluster:dgx-h100:1" ? "7us" : "7").ok() ||
                    made.WaitForStragglers("7us").ok());
        const auto waits = made.Plan(planner, redistribution::kNoLimit);
        ASSERT_EQ(waits.ok(), plain.ok());
        if (!plain.ok()) continue;
        ++held;
        double wanted = plain->cost;
        for (const auto& step : plain->steps) {
          wanted += redistribution::Communicates(step.step.kind) ? 7 : 0;
        }
        if (std::isinf(wanted)) {
          EXPECT_EQ(waits->cost, wanted) << cost << " " << planner;
        } else {
          EXPECT_NEAR(waits->cost, wanted, 1e-9 * wanted) << cost << " " << planner;
        }
      }
    }
  }
  EXPECT_GE(held, 12);
}

const char* const kHead = "name,total_cost,peak_elements,s,note";

// tensorcraft counts what a rank holds before or after a step, DTensor both.
TEST(RedistributionCases, AreReadInThreeFormats) {
  const double far = Redistributor::Create(Gather(), "dtensor:devices_per_host=1", "")
                         .value()
                         .Plan("optimal", redistribution::kNoLimit)
                         .value()
                         .cost;
  EXPECT_THAT(Rows(R"({"cases": [
      {"name": "text", "mesh": [2], "shape": [8], "source": "D_[2]{0}", "target": "D_[2]{-}"},
      {"name": "lists", "mesh": [2, 2], "shape": [4, 8], "source_mapping": [[], [0]],
       "source_blocks": [-1, 4], "target_mapping": [[], []], "target_blocks": [-1, -1]},
      {"mesh": [2], "shape": [8], "src": ["S0"], "dst": ["R"]},
      {"name": "a \"b\"\nc", "mesh": [2], "shape": [8], "src": ["S0"], "dst": ["R"],
       "src_shard_order": {"0": [0]}, "devices_per_host": 1}]})"),
              testing::ElementsAre(kHead, "text,5,8,s,", "lists,17,32,s,",
                                   "record 2,7.200169910617945,12,s,",
                                   absl::StrCat("\"a 'b' c\",", PlainNumber(far), ",12,s,")));
}

TEST(RedistributionCases, AreToldByTheirFlags) {
  const std::string text =
      R"({"cases": [{"mesh": [2], "shape": [8], "src": ["S0"], "dst": ["R"]}]})";
  RedistributionCases flags;
  flags.cost = "tensorcraft";
  EXPECT_EQ(Rows(text, flags).at(1), "record 0,5,8,s,");
  flags.limit = "endpoints";
  EXPECT_EQ(Rows(text, flags).at(1), "record 0,5,8,s,");
  flags.limit = "7";
  EXPECT_EQ(Rows(text, flags).at(1),
            "record 0,,,,\"no steps within 7 elements a rank; source and target take 4 and 8, "
            "wanted a limit above that\"");
  flags.planner = "abacus";
  EXPECT_THAT(Rows(text, flags).at(1), HasSubstr("--planner 'abacus'"));
}

TEST(RedistributionCases, EachMayBeWrong) {
  const std::vector<std::string> rows = Rows(R"({"cases": [5, {"name": "n", "mesh": "two"},
      {"name": "x \"y\"", "mesh": [2], "shape": [8], "src": ["S0"], "dst": ["X"]}]})");
  ASSERT_EQ(rows.size(), 4);
  EXPECT_THAT(rows[1], StartsWith("record 0,,,,\"[json.exception"));
  EXPECT_THAT(rows[2], StartsWith("n,,,,\"[json.exception"));
  EXPECT_THAT(rows[3], StartsWith("\"x 'y'\",,,,\"--to: at 1: found 'X'"));
  for (const char* text : {"", "[]", "{}", "{\"cases\": 3}"}) {
    EXPECT_THAT(Rows(text),
                testing::ElementsAre("FILE: wanted a JSON object with a list \"cases\", as in "
                                     "tests/data/redistribution_tensorcraft.json"));
  }
}

}  // namespace
}  // namespace redistribution_test_cc
}  // namespace orrery::tools
