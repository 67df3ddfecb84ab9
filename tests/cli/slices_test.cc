#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/cli/run.h"

// Slices of the sequence, as one asks for them.

namespace orrery::cli {
namespace slices_test_cc {
namespace {

using testing::HasSubstr;

const std::string kGpt =
    "--model gpt:layers=8,hidden=256,heads=4,seq=2048,vocab=512,flash=1 --batch-size 1 --cluster "
    "dgx-a100:1 --dtype bf16 ";

TEST(SimulateSlices, CutsOneSample) {
  const Finished equal =
      Execute("simulate " + kGpt + "--pp 8 --micro-batches 16 --schedule terapipe --timeline");
  ASSERT_EQ(equal.code, 0) << equal.err;
  EXPECT_THAT(equal.out, HasSubstr("\n  slices                   16 of 128 positions\n"));
  EXPECT_THAT(equal.out, HasSubstr("0F15"));
  const Finished lengths = Execute("simulate " + kGpt +
                                   "--pp 2 --hp 2 --micro-batches 3 --schedule terapipe "
                                   "--slices 1024,640,384 --sequence-parallel --recompute full");
  ASSERT_EQ(lengths.code, 0) << lengths.err;
  EXPECT_THAT(lengths.out, HasSubstr("\n  slices                   1024,640,384 positions\n"));
}

TEST(SimulateSlices, SaysWhatCannotBeCut) {
  const std::string rest = " --cluster dgx-a100:1 --pp 2 --micro-batches 4 --schedule terapipe";
  const auto error = [&](const std::string& flags) {
    const Finished finished = Execute(absl::StrCat("simulate --model ", flags, rest));
    EXPECT_EQ(finished.code, 1) << flags;
    return finished.err;
  };
  EXPECT_THAT(error("bert:layers=2,hidden=64,heads=2,seq=16 --batch-size 4"),
              HasSubstr("infeasible (unsupported): bert: Attention %layer.0.attn.core is not "
                        "causal: a position sees later ones (positions are dimension 1 of %"));
  EXPECT_THAT(error("resnet:depth=18,width=4 --batch-size 4"), HasSubstr("(unsupported)"));
  EXPECT_THAT(error("gpt:layers=2,hidden=64,heads=2,seq=18 --batch-size 4"),
              HasSubstr("infeasible (divisibility): a sequence of 18 does not divide into 4"));
  EXPECT_THAT(error("gpt:layers=2,hidden=64,heads=2,seq=16 --batch-size 4 --cp 2"),
              HasSubstr("slices of the sequence with context parallelism"));
  EXPECT_THAT(error("gpt:layers=2,hidden=64,heads=2,seq=16 --batch-size 4 --offload activations"),
              HasSubstr("slices of the sequence with activations on the host"));
  EXPECT_THAT(error("gpt:layers=2,hidden=64,heads=2,seq=16 --batch-size 4 --slices long"),
              HasSubstr("--slices 'long': wanted equal, balanced, or the positions"));
  EXPECT_THAT(Execute("simulate --model gpt:layers=8,hidden=64,heads=2,seq=1048576,flash=1 "
                      "--batch-size 1 --cluster dgx-a100:1 --pp 2 --micro-batches 65536 "
                      "--schedule terapipe")
                  .err,
              HasSubstr("; at most 4194304 ops are simulated; try fewer slices"));
  EXPECT_THAT(Execute("simulate " + kGpt + "--pp 2 --slices balanced").err,
              HasSubstr("--slices balanced: wanted a schedule of slices, as terapipe is"));
}

// Many slices of a long sequence keep a pipeline full that one sample does not.
TEST(GridSearchSlices, CutsAsOftenAsItDivides) {
  const Finished found =
      Execute("grid_search " + kGpt + "--dp 1 --hp 1 --pp 8 --schedule 1f1b,terapipe");
  ASSERT_EQ(found.code, 0) << found.err;
  EXPECT_THAT(found.out, HasSubstr(": 8 candidates, 8 feasible"));
  EXPECT_THAT(found.out, HasSubstr("  terapipe  "));
}

// A list says how many slices there are, and the line of the best how they were cut.
TEST(GridSearchSlices, TakesAList) {
  const std::string flags = kGpt + "--schedule terapipe --slices 1024,640,384 ";
  const Finished found = Execute("grid_search " + flags + "--dp 1 --hp 1 --pp 2");
  ASSERT_EQ(found.code, 0) << found.err;
  EXPECT_THAT(found.out, HasSubstr(": 1 candidates, 1 feasible"));
  EXPECT_THAT(found.out, HasSubstr("\nbest: --dp 1 --hp 1 --pp 2 --slices 1024,640,384 "
                                   "--micro-batches 3 --schedule terapipe --dtype bf16\n"));

  const Finished played = Execute("simulate " + flags + "--pp 2 --json slices.json");
  ASSERT_EQ(played.code, 0) << played.err;
  EXPECT_THAT(played.out, HasSubstr("--micro-batches 3 "));
  EXPECT_EQ(nlohmann::json::parse(Contents("slices.json"))["slices"],
            (std::vector<int64_t>{1024, 640, 384}));
  EXPECT_THAT(Execute("simulate " + flags + "--pp 2 --micro-batches 2").err,
              HasSubstr("slices of 1024,640,384 are 3"));
  EXPECT_THAT(Execute("grid_search " + kGpt + "--schedule 1f1b --slices balanced").err,
              HasSubstr("--slices balanced: wanted a schedule of slices, as terapipe is"));
}

// Before orders of so many are made.
TEST(SimulateSlices, RefusesFarTooMany) {
  EXPECT_THAT(Execute("simulate --model gpt:layers=2,hidden=64,heads=2,seq=16777216,flash=1 "
                      "--batch-size 1 --cluster dgx-a100:1 --pp 2 --micro-batches 16777216 "
                      "--schedule terapipe")
                  .err,
              HasSubstr("16777216 slices of "));
}

}  // namespace
}  // namespace slices_test_cc
}  // namespace orrery::cli
