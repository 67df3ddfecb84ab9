#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tests/cli/run.h"

// `redistribute`: one question in all the forms in which it can be put, and records in files.

namespace orrery::cli {
namespace redistribute_forms_test_cc {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Finished Ask(const std::string& flags) { return Execute(absl::StrCat("redistribute ", flags)); }

// The one line of an error, which must be all there is.
std::string ErrorOf(const std::string& flags) {
  const Finished finished = Ask(flags);
  EXPECT_EQ(finished.code, 1) << flags;
  EXPECT_EQ(finished.out, "") << flags;
  EXPECT_EQ(std::count(finished.err.begin(), finished.err.end(), '\n'), 1) << finished.err;
  return finished.err;
}

// Flags that another one leaves nothing to do.
TEST(RedistributeForms, FlagsWithoutWhatTheyNeedAreErrors) {
  EXPECT_EQ(
      ErrorOf("--mesh 2,8 --shape 64,32 --from S0,S0 --to R,S0 --from-blocks 4,-"),
      "redistribute: --from-blocks '4,-': --from is 'S0,S0'; wanted one written as (0,1),-\n");
  EXPECT_EQ(ErrorOf("--mesh 2,8 --shape 64,32 --from S0,S0 --to R,S0 --to-blocks 4,-"),
            "redistribute: --to-blocks '4,-': --to is 'R,S0'; wanted one written as (0,1),-\n");
  const std::string cases = "--cases cases.json ";
  for (const char* flag : {"--mesh 2", "--compare", "--json plan.json"}) {
    EXPECT_THAT(ErrorOf(cases + flag),
                HasSubstr(": --cases has problems of its own, and prints CSV"));
  }
}

TEST(RedistributeForms, OfPlacementsAreOneQuestion) {
  const std::string question = "--mesh 2,8 --shape 8192,1024 ";
  const Finished wanted = Ask(question + "--from S0,S0 --to R,S0");
  ASSERT_EQ(wanted.code, 0) << wanted.err;
  for (const char* const form :
       {"--from 'Shard(0),Shard(0)' --to 'Replicate,Shard(0)'",
        "--from '[Shard(dim=0), Shard(dim=0)]' --to '[Replicate(), Shard(dim=0)]'",
        "--from '(Shard(dim=0), Shard(dim=0))' --to '(Replicate(), Shard(dim=0))'",
        "--from 'S(-2), S-2' --to 'R, _S(0, 1)'", "--from 'S0,S0 order(0:0.1)' --to '[R,S0]'"}) {
    EXPECT_EQ(Ask(question + form).out, wanted.out) << form;
  }
  // The name of an axis is not printed; a mesh with names is the same mesh.
  EXPECT_EQ(Ask("--mesh dp=2,hp=8 --shape 8192,1024 --from S0,S0 --to R,S0").out, wanted.out);
  EXPECT_EQ(Ask(question + "--from S0,S0 --to R,S0 --itemsize 4").out, wanted.out);
  EXPECT_NE(Ask(question + "--from S0,S0 --to R,S0 --itemsize 2").out, wanted.out);
  EXPECT_NE(Ask(question + "--from 'S0,S0 order(0:1.0)' --to R,S0").out, wanted.out);
}

TEST(RedistributeForms, OfMappingsAreOneQuestion) {
  const Finished wanted =
      Ask("--shape 100,100 --from 'D_[2,4]{0,-}(2,-)' --to 'D_[2,4]{-,0}(-,2)'");
  ASSERT_EQ(wanted.code, 0) << wanted.err;
  for (const char* const form :
       {"--from 'D_[2,4]⊥{0,∅}(2,∅)' --to 'D_[2,4]⊥{∅,(0,)}(∅,2)'",
        "--mesh 2,4 --from 0,- --from-blocks 2,- --to -,0 --to-blocks -,2",
        "--mesh dp=2,hp=4 --from '(0,),()' --from-blocks 2,-1 --to '∅,0' --to-blocks -,2",
        "--mesh 2,4 --from '(0),-' --from-blocks 2,- --to 'D_[2,4]{-,0}(-,2)'"}) {
    EXPECT_EQ(Ask(absl::StrCat("--shape 100,100 ", form)).out, wanted.out) << form;
  }
  // Doubles, if nothing else is said: a quarter of it as half-precision.
  EXPECT_THAT(wanted.out, HasSubstr("Peak: 5000 elements, 0.04 MB\n"));
  EXPECT_THAT(
      Ask("--shape 100,100 --itemsize 2 --from 'D_[2,4]{0,-}(2,-)' --to 'D_[2,4]{-,0}(-,2)'").out,
      HasSubstr("Peak: 5000 elements, 0.01 MB\n"));
}

// Ours needs no shape; cut at the same positions from both ends.
TEST(RedistributeForms, OfAxes) {
  EXPECT_EQ(Ask("--mesh dp=4 --from '[8@dp:(1)2]' --to '[8@dp:(2)2]'").out,
            "Step #  Operation   Distribution  Cost [us]          Memory Usage [MB]\n"
            "0                   [8@dp:(1)2]   0                  1.6e-05\n"
            "1       all_gather  [8]           7.200169910617945  3.2e-05\n"
            "2       local       [8@dp:(2)2]   0                  1.6e-05\n"
            "Total cost: 7.200169910617945 us\n"
            "Peak: 12 elements, 4.8e-05 MB\n");
  EXPECT_EQ(Ask("--mesh 2,2 --shape 8 --from S0,R --to R,Pmax").out,
            "Step #  Operation   Distribution  Cost [us]          Memory Usage [MB]\n"
            "0                   S0,R          0                  1.6e-05\n"
            "1       local       S0,P(max)     0                  1.6e-05\n"
            "2       all_gather  R,P(max)      7.200169910617945  3.2e-05\n"
            "Total cost: 7.200169910617945 us\n"
            "Peak: 12 elements, 4.8e-05 MB\n");
  const std::string sum = "--from '[8] partial(dp:(1)2:avg)' --to '[8@dp:(1)2]'";
  const Finished scattered = Ask("--mesh dp=4 " + sum);
  EXPECT_THAT(scattered.out, AllOf(HasSubstr("[8] partial(dp:(1)2:avg)"),
                                   HasSubstr("reduce_scatter  [8@dp:(1)2]")));
  EXPECT_EQ(Ask("--mesh dp=4 --shape 8 " + sum).out, scattered.out);
  // An axis that both have whole is not cut, and one that one side cuts is cut in both.
  EXPECT_THAT(Ask("--mesh dp=4,hp=2 --from '[8@dp.hp]' --to '[8@dp:(1)2]'").out,
              AllOf(HasSubstr("  [8@dp.hp] "), HasSubstr("  [8@dp:(1)2] ")));
  EXPECT_EQ(Ask("--mesh 2 --from '[]' --to '[]'").out,
            "Step #  Operation  Distribution  Cost [us]  Memory Usage [MB]\n"
            "0                  []            0          4e-06\n"
            "Total cost: 0 us\n"
            "Peak: 1 elements, 4e-06 MB\n");
}

// Whatever the form, the limits are one: no question overflows.
TEST(RedistributeForms, HoldTheLimits) {
  const std::vector<std::string> ones(31, "1");
  const std::string many = absl::StrJoin(ones, ",");
  const std::string huge = "9999999999999,99999999999999";
  for (const std::string& dims : {many, huge}) {
    for (const char* const cost : {"dtensor", "cluster:dgx-h100:1"}) {
      EXPECT_EQ(ErrorOf(absl::StrCat("--mesh 2 --from '[", dims, "]' --to '[", dims,
                                     "@a0]' --cost ", cost)),
                absl::StrCat("redistribute: --from '[", dims,
                             "]': wanted at most 30 sizes, and at most 2^56 elements\n"));
    }
    EXPECT_EQ(ErrorOf(absl::StrCat("--mesh 2 --shape ", dims, " --from R --to S0")),
              absl::StrCat("redistribute: --shape '", dims,
                           "': wanted 1 to 30 sizes of at least 1, and at most 2^56 elements, as "
                           "in 8192,1024\n"));
  }
  for (const char* const shape : {"0", "-4", "4,", "x", "72057594037927937"}) {
    EXPECT_THAT(ErrorOf(absl::StrCat("--mesh 2 --shape=", shape, " --from R --to S0")),
                HasSubstr(absl::StrCat("--shape '", shape, "': wanted 1 to 30 sizes")));
  }
  EXPECT_EQ(Ask("--mesh 2 --shape 72057594037927936 --itemsize 1 --from R --to S0").code, 0);
  for (const char* const mesh :
       {"2,0", "2=2", "a=2,a=2", "a=2=2", "1,1,1,1,1,1,1,1", "1048576,1048577", "2,"}) {
    EXPECT_THAT(ErrorOf(absl::StrCat("--mesh ", mesh, " --shape 8 --from R --to S0")),
                HasSubstr(absl::StrCat("--mesh '", mesh, "': wanted 1 to 7 sizes")));
  }
}

TEST(RedistributeForms, MustFitTogether) {
  EXPECT_THAT(ErrorOf("--mesh 2 --from '[8@a0]' --to '[4@a0]'"),
              HasSubstr("--from, --to and --shape have unlike sizes; wanted one shape"));
  EXPECT_THAT(ErrorOf("--mesh 2 --shape 4 --from '[8@a0]' --to '[8]'"),
              HasSubstr("--from, --to and --shape have unlike sizes; wanted one shape"));
  EXPECT_THAT(ErrorOf("--mesh 2,2 --shape 4,4 --from 0,- --to 0"),
              HasSubstr("--from has 2 dimensions, --to 1; wanted the 2 of --shape"));
  EXPECT_THAT(ErrorOf("--mesh 2,2 --shape 4 --from 0,- --to 1,-"),
              HasSubstr("--from has 2 dimensions, --to 2; wanted the 1 of --shape"));
  EXPECT_THAT(ErrorOf("--shape 4,4 --from 'D_[2,2]{0,-}' --to 'D_[4]{0,-}'"),
              HasSubstr("--from and --to are on two meshes; wanted one"));
  EXPECT_THAT(ErrorOf("--mesh dp=6 --from '[8@dp:(1)2]' --to '[8@dp:(1)3]'"),
              HasSubstr("--mesh: axis dp is cut after 2 and after 3 parts"));
  EXPECT_THAT(ErrorOf("--mesh 2 --from '[8@a0]' --to '[8@a1]'"),
              HasSubstr("--to: at 4: found \"a1]\"; wanted an axis of mesh(a0=2)"));
  EXPECT_THAT(ErrorOf("--mesh 2,2 --shape 8 --from S0,R --to '(0,1)'"),
              HasSubstr("are written in two ways; wanted one of (0,1),- and S0,R and [64@dp,32]"));
  EXPECT_THAT(ErrorOf("--mesh 2,2 --shape 8 --from '(S0,R)' --to 'D_[2,2]{-}'"),
              HasSubstr("written in two ways"));
  EXPECT_THAT(ErrorOf("--mesh 2,2 --shape 8 --from S0,R --to S0"), HasSubstr("--to: at 3: found"));
  EXPECT_THAT(ErrorOf("--mesh 2 --shape 8 --from S0"), HasSubstr("wanted a layout each"));
  EXPECT_THAT(ErrorOf("--mesh 2 --shape 8 --to S0"), HasSubstr("wanted a layout each"));
  EXPECT_THAT(ErrorOf("--mesh 2 --shape 8 --itemsize -1 --from S0 --to R"),
              HasSubstr("--itemsize -1: wanted 1 to 64 bytes"));
}

// The limit is for the optimal planner: without its plan there is nothing to compare with.
TEST(RedistributeForms, OfLimits) {
  const std::string question = "--mesh 2 --shape 8 --from S0 --to R ";
  EXPECT_EQ(Ask(question + "--planner naive --compare --memory-limit 3").out,
            "Planner  Cost [us]          Cost / optimal  Steps  Peak [MB]\n"
            "greedy   7.200169910617945  -               1      4.8e-05\n"
            "naive    7.200169910617945  -               1      4.8e-05\n"
            "optimal: no steps within 3 elements a rank; source and target take 4 and 8, wanted a "
            "limit above that\n");
  EXPECT_THAT(ErrorOf(question + "--memory-limit endpoints"), HasSubstr("no steps within 8 "));
  EXPECT_THAT(ErrorOf(question + "--memory-limit 11"), HasSubstr("no steps within 11 "));
  EXPECT_THAT(ErrorOf(question + "--memory-limit 47B"), HasSubstr("no steps within 11 "));
  for (const char* const limit : {"12", "48B", "1KiB", "9223372036854775807"}) {
    EXPECT_EQ(Ask(absl::StrCat(question, "--memory-limit ", limit)).out, Ask(question).out);
  }
  EXPECT_THAT(ErrorOf(question + "--memory-limit=-1"), HasSubstr("--memory-limit"));
  EXPECT_EQ(Ask("--mesh 2,2 --shape 8 --from R,R --to R,R --compare").out,
            "Planner  Cost [us]  Cost / optimal  Steps  Peak [MB]\n"
            "optimal  0          1.00            0      3.2e-05\n"
            "greedy   0          1.00            0      3.2e-05\n"
            "naive    0          1.00            0      3.2e-05\n");
}

// The rows of `--cases`, without the seconds.
std::vector<std::string> Rows(const std::vector<nlohmann::json>& cases, const std::string& flags) {
  Write("cases.json", nlohmann::json({{"cases", cases}}).dump());
  const Finished finished = Ask("--cases cases.json" + flags);
  EXPECT_EQ(finished.code, 0) << finished.err;
  std::vector<std::string> rows;
  for (const absl::string_view line : absl::StrSplit(finished.out, '\n', absl::SkipEmpty())) {
    std::vector<std::string> cells = absl::StrSplit(line, absl::MaxSplits(',', 4));
    if (cells.size() > 3 && !cells[3].empty()) cells[3] = "s";
    rows.push_back(absl::StrJoin(cells, ","));
  }
  EXPECT_FALSE(rows.empty());
  if (!rows.empty()) rows.erase(rows.begin());
  return rows;
}

// Each record is what its line of flags would be, in all three formats.
TEST(RedistributeForms, OfRecords) {
  const nlohmann::json placements = {{"name", "fsdp"},        {"mesh", {2, 8}},
                                     {"shape", {8192, 1024}}, {"itemsize", 4},
                                     {"src", {"S0", "S0"}},   {"dst", {"R", "S0"}}};
  nlohmann::json unnamed = placements, ordered = placements, half = placements, far = placements;
  unnamed.erase("name");
  unnamed.erase("itemsize");
  ordered["src_shard_order"] = {{"0", {1, 0}}};
  ordered["dst_shard_order"] = nullptr;
  half["itemsize"] = 2;
  half["name"] = "a \"b\"";
  far["devices_per_host"] = 2;
  const nlohmann::json mapping = {
      {"name", "mapping"},        {"mesh", {2, 4}},
      {"shape", {100, 100}},      {"source_mapping", {{0}, nlohmann::json::array()}},
      {"source_blocks", {2, -1}}, {"target_mapping", {nlohmann::json::array(), {0}}},
      {"target_blocks", {-1, 2}}};
  const nlohmann::json text = {{"name", "text"},
                               {"mesh", {2, 4}},
                               {"shape", {100, 100}},
                               {"source", "D_[2,4]⊥{0,∅}(2,∅)"},
                               {"target", "D_[2,4]⊥{∅,0}(∅,2)"}};
  const auto row = [](const std::string& name, const std::string& flags) {
    EXPECT_EQ(Ask(flags + " --json plan.json").code, 0) << flags;
    const auto plan = nlohmann::json::parse(Contents("plan.json"));
    return absl::StrCat(name, ",", plan["total_cost"].dump(), ",", plan["peak_elements"].dump(),
                        ",s,");
  };
  const std::string question = "--mesh 2,8 --shape 8192,1024 --to R,S0 --from ";
  EXPECT_THAT(
      Rows({placements, unnamed, ordered, half, far}, ""),
      testing::ElementsAre(row("fsdp", question + "S0,S0"), row("record 1", question + "S0,S0"),
                           row("fsdp", question + "'S0,S0 order(0:1.0)'"),
                           row("\"a 'b'\"", question + "S0,S0 --itemsize 2"),
                           row("fsdp", question + "S0,S0 --cost dtensor:devices_per_host=2")));
  EXPECT_THAT(Rows({mapping, text}, ""),
              testing::ElementsAre("mapping,5001,5000,s,", "text,5001,5000,s,"));
  EXPECT_THAT(Rows({text}, " --cost tensorcraft:alpha=0 --planner naive"),
              testing::ElementsAre("text,5000,10000,s,"));
}

// What is wrong with one is its note, and the others have their answers.
TEST(RedistributeForms, OfRecordsMayBeWrong) {
  const nlohmann::json good = {
      {"name", "good"}, {"mesh", {2}}, {"shape", {8}}, {"src", {"S0"}}, {"dst", {"R"}}};
  nlohmann::json shapeless = good, mesh = good, order = good, name = good;
  shapeless.erase("shape");
  mesh["mesh"] = "two";
  order["src_shard_order"] = {{"0", "x"}};
  name["name"] = 7;
  name["dst"] = {"X"};
  const std::vector<std::string> rows = Rows({good, shapeless, 5, mesh, order, name, good}, "");
  ASSERT_EQ(rows.size(), 7U);
  EXPECT_EQ(rows[0], "good,7.200169910617945,12,s,");
  EXPECT_THAT(rows[1], testing::StartsWith("good,,,,\""));
  EXPECT_THAT(rows[1], HasSubstr("key 'shape' not found"));
  EXPECT_THAT(rows[2], testing::StartsWith("record 2,,,,\""));
  EXPECT_THAT(rows[3], testing::StartsWith("good,,,,\""));
  EXPECT_THAT(rows[4], testing::StartsWith("good,,,,\""));
  EXPECT_THAT(rows[5], AllOf(testing::StartsWith("record 5,,,,\"--to: at 1: found 'X'; wanted a"),
                             testing::EndsWith("\"")));
  EXPECT_EQ(rows[6], rows[0]);
  const std::vector<std::string> limited = Rows({good}, " --memory-limit 3");
  ASSERT_EQ(limited.size(), 1U);
  EXPECT_EQ(limited[0],
            "good,,,,\"no steps within 3 elements a rank; source and target take 4 and 8, wanted a "
            "limit above that\"");
  Write("cases.json", "{\"cases\": 3}");
  EXPECT_THAT(ErrorOf("--cases cases.json"), HasSubstr("wanted a JSON object with a list"));
  Write("cases.json", "[");
  EXPECT_THAT(ErrorOf("--cases cases.json"), HasSubstr("wanted a JSON object with a list"));
  EXPECT_THAT(ErrorOf("--cases missing.json"), HasSubstr("missing.json"));
}

}  // namespace
}  // namespace redistribute_forms_test_cc
}  // namespace orrery::cli
