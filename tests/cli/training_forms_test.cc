#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/cli/json_of.h"
#include "tests/cli/run.h"

// --lora, --frozen-dtype, --compress and optimizers, as a user has them.

namespace orrery::cli {
namespace training_forms_test_cc {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// Two layers of 12 matrices of 1024 x 1024, in fours as up and down; a table, and logits.
constexpr int64_t kHidden = 1024, kLayers = 2, kVocab = 32768;
const std::string kGpt =
    "--model gpt:layers=2,hidden=1024,heads=16,seq=512,vocab=32768,tied_embeddings=0,flash=1,"
    "position=rotary --dtype bf16 --batch-size 16 --cluster dgx-h100:1 ";

json Play(const std::string& flags) { return JsonOf(absl::StrCat("simulate ", kGpt, flags)); }
int64_t Held(const json& report, const char* kind) {
  return report["devices"][0]["memory"][kind].get<int64_t>();
}
double StepTime(const json& report) { return report.value("step_time_s", 0.0); }
std::string Error(const std::string& flags) {
  return Execute(absl::StrCat("simulate ", kGpt, flags)).err;
}

// Of rank 8: queries, keys, values and what attention gives have 1024 rows and columns, up and down
// 1024 and 4096.
constexpr int64_t kPairs = kLayers * 8 * (4 * 2 * kHidden + 2 * 5 * kHidden);

TEST(Lora, TrainsPairsAlone) {
  Clear();
  const json full = Play("--dp 1"), adapted = Play("--dp 1 --lora rank=8");
  EXPECT_EQ(Held(adapted, "parameters"), Held(full, "parameters") + 2 * kPairs);
  EXPECT_EQ(Held(adapted, "optimizer"), 12 * kPairs);
  EXPECT_LT(StepTime(adapted), StepTime(full));
  const json queries = Play("--dp 1 --lora rank=8,alpha=16,match=attn.q");
  EXPECT_EQ(Held(queries, "optimizer"), 12 * kLayers * 8 * 2 * kHidden);
}

// Logits have no pair, whether there is a loss or not.
TEST(Lora, LeavesLogitsAloneInForwardPasses) {
  Clear();
  EXPECT_EQ(Held(Play("--dp 1 --loss none --lora rank=8"), "parameters"),
            Held(Play("--dp 1 --loss none"), "parameters") + 2 * kPairs);
}

TEST(Lora, SaysWhatItWants) {
  Clear();
  const std::string wanted = "; wanted rank=16, or as in rank=16,alpha=32,match=attn\n";
  EXPECT_EQ(Error("--lora rank=0"),
            "simulate: --lora 'rank=0': rank is '0', no number from 1 to 1048576" + wanted);
  EXPECT_EQ(
      Error("--lora rank=8,alpha=1e10"),
      "simulate: --lora 'rank=8,alpha=1e10': alpha is '1e10', no number above 0, at most 1e9" +
          wanted);
  EXPECT_EQ(Error("--lora rank=8,rank=16"),
            "simulate: --lora 'rank=8,rank=16': rank is there twice" + wanted);
  EXPECT_THAT(Error("--lora rank=8,match=nowhere"),
              HasSubstr("--lora match='nowhere' is the name of no product with a weight"));
}

// Frozen matrices are shared by hp as trained ones are: eighths, but for the table, which is whole
// where it is looked up fastest.
TEST(Frozen, WeightsAreSharedByTensorParallelism) {
  Clear();
  constexpr int64_t kTable = kVocab * kHidden,
                    kMatrices = kTable + kLayers * 12 * kHidden * kHidden;
  for (const std::string sharding : {"--sharding auto", "--sharding megatron"}) {
    SCOPED_TRACE(sharding);
    const json report = Play(absl::StrCat("--hp 8 --lora rank=8 ", sharding));
    EXPECT_GE(Held(report, "parameters"), 2 * kMatrices / 8);
    EXPECT_LE(Held(report, "parameters"), 2 * (kMatrices / 8 + kTable + kPairs + 64 * kHidden));
  }
  const json pattern = Play("--hp 8 --lora rank=8 --sharding megatron");
  EXPECT_LE(Held(pattern, "parameters"), 2 * ((kMatrices + kTable) / 8 + kPairs + 64 * kHidden));
}

// What is made of a quantized weight is a weight: ranks share it, and no rank has rows of all of
// it. To make it takes time.
TEST(Frozen, WeightsInFewerBitsTakeLessMemoryAndMoreTime) {
  Clear();
  for (const std::string plan :
       {"--hp 8", "--hp 8 --sharding megatron", "--hp 2 --dp 4", "--dp 8"}) {
    const json wide = Play(plan + " --lora rank=8");
    for (const std::string dtype : {"nf4", "int8"}) {
      SCOPED_TRACE(absl::StrCat(plan, " ", dtype));
      const json narrow = Play(absl::StrCat(plan, " --lora rank=8 --frozen-dtype ", dtype));
      EXPECT_GE(StepTime(narrow), StepTime(wide));
      EXPECT_LT(Held(narrow, "parameters"), Held(wide, "parameters"));
    }
  }
}

TEST(Frozen, DTypesWantFrozenWeights) {
  Clear();
  EXPECT_THAT(Error("--frozen-dtype nf4"), HasSubstr("no frozen matrix that products alone read"));
  EXPECT_THAT(Error("--lora rank=8 --frozen-dtype int4"),
              HasSubstr("--frozen-dtype int4: wanted none, int8 or nf4"));
}

// Over a slow network: fewer bytes, and what is left out is kept.
TEST(Compression, TakesThePlaceOfAllReduces) {
  Clear();
  const std::string plan = "--dp 8 --cluster uniform:8@10Gbps --compress ";
  const std::string model = kGpt.substr(0, kGpt.find("--cluster"));
  const auto play = [&](const std::string& method) {
    return JsonOf(absl::StrCat("simulate ", model, plan, method));
  };
  const json none = play("none");
  for (const std::string method : {"top-k:0.01", "8-bit", "power-sgd:4"}) {
    SCOPED_TRACE(method);
    const json report = play(method);
    EXPECT_LT(StepTime(report), StepTime(none));
    EXPECT_GT(report["peak_memory_bytes"].get<double>(), none["peak_memory_bytes"].get<double>());
  }
}

// A share comes back as it was given.
TEST(Compression, IsPrintedAsItIsRead) {
  Clear();
  const std::string share = "top-k:0.012345678";
  EXPECT_THAT(Execute(absl::StrCat("simulate ", kGpt, "--dp 8 --compress ", share)).out,
              HasSubstr("--compress " + share));
  const Finished search =
      Execute(absl::StrCat("grid_search ", kGpt, "--dp 8 --hp 1 --pp 1 --micro-batches 1 ",
                           "--compress none,", share, " --csv g.csv"));
  ASSERT_EQ(search.code, 0) << search.err;
  EXPECT_THAT(Contents("g.csv"), HasSubstr(share));
}

TEST(Compression, SaysWhatItWants) {
  Clear();
  EXPECT_EQ(Error("--dp 8 --compress zip"),
            "simulate: --compress 'zip': wanted none, top-k:0.01, 8-bit or power-sgd:4\n");
  EXPECT_THAT(Error("--dp 8 --zero 1 --compress 8-bit"),
              HasSubstr("gradients that are added up once a step"));
}

// Bytes of state: of Muon's matrices a momentum and a master copy, of all else Adam's.
TEST(Optimizers, KeepWhatTheySay) {
  Clear();
  const auto state = [](const std::string& optimizer) {
    return Held(Play("--dp 1 --optimizer " + optimizer), "optimizer");
  };
  constexpr int64_t kOfLayers = kLayers * 12 * kHidden * kHidden;
  const int64_t adam = state("adam");
  EXPECT_EQ(adam % 12, 0);
  EXPECT_EQ(state("adagrad"), adam / 12 * 8);
  EXPECT_EQ(state("lion"), adam / 12 * 8);
  EXPECT_EQ(state("muon"), adam - 4 * kOfLayers);
  EXPECT_GT(StepTime(Play("--dp 1 --optimizer muon")), StepTime(Play("--dp 1 --optimizer adam")));
}

}  // namespace
}  // namespace training_forms_test_cc
}  // namespace orrery::cli
