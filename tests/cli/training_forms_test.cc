#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
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

// Numbers that a matrix has of its rows and its columns: of a layer four of 1024 x 1024 and two of
// 1024 x 4096, of the model a table and logits.
constexpr int64_t kRowsAndColumns =
    kLayers * (4 * 2 * kHidden + 2 * 5 * kHidden) + 2 * (kVocab + kHidden);
constexpr int64_t kMatrixElements = kLayers * 12 * kHidden * kHidden + 2 * kVocab * kHidden;

// A master copy, rows and columns of matrices, and a moment of vectors; in fp32 the last two alone.
TEST(Optimizers, AdafactorKeepsRowsAndColumns) {
  Clear();
  const int64_t parameters = Held(Play("--dp 1 --optimizer adam"), "optimizer") / 12;
  const int64_t vectors = parameters - kMatrixElements;
  EXPECT_GT(vectors, 0);
  const int64_t moments = 4 * (kRowsAndColumns + vectors);
  const json narrow = Play("--dp 1 --optimizer adafactor");
  EXPECT_EQ(Held(narrow, "optimizer"), 4 * parameters + moments);
  const std::string wide = absl::StrReplaceAll(kGpt, {{"--dtype bf16", ""}});
  EXPECT_EQ(
      Held(JsonOf(absl::StrCat("simulate ", wide, "--dp 1 --optimizer adafactor")), "optimizer"),
      moments);
  // Fewer bytes are moved than Adam's 30 an element: 22.
  EXPECT_LT(StepTime(narrow), StepTime(Play("--dp 1 --optimizer adam")));
}

// What ranks share out of it are master copies and moments of vectors, and of means one kind of
// each matrix: rows or columns are whole.
TEST(Optimizers, AdafactorSharesOutWhatIsNoMeanOverParts) {
  Clear();
  const int64_t whole = Held(Play("--dp 1 --optimizer adafactor"), "optimizer");
  for (const std::string plan :
       {"--dp 2 --zero 1", "--dp 2 --zero 2 --micro-batches 2", "--dp 2 --zero 3",
        "--dp 2 --hp 2 --zero 1", "--hp 2", "--hp 2 --sharding megatron",
        "--dp 2 --pp 2 --micro-batches 2 --zero 3 --recompute full"}) {
    SCOPED_TRACE(plan);
    const json report = Play(plan + " --optimizer adafactor");
    const int64_t held = Held(report, "optimizer");
    EXPECT_LT(held, whole);
    EXPECT_LT(held, Held(Play(plan + " --optimizer adagrad"), "optimizer"));
    if (plan.starts_with("--dp 2 --zero")) {
      EXPECT_GT(held, whole / 2);
      EXPECT_LT(held, whole / 2 + 4 * kRowsAndColumns);
    }
  }
}

// 16 heads on five ranks are twenty, whoever updates them.
TEST(Optimizers, AdafactorIsPaddedAsAdamIs) {
  Clear();
  const std::string plan = "--hp 5 --uneven pad --sharding megatron --optimizer ";
  const json padded = Play(plan + "adafactor"), adam = Play(plan + "adam");
  EXPECT_EQ(Held(padded, "parameters"), Held(adam, "parameters"));
  EXPECT_LT(Held(padded, "optimizer"), Held(adam, "optimizer") / 2);
}

TEST(Optimizers, AdafactorSaysWhereItIsNot) {
  Clear();
  EXPECT_THAT(Error("--dp 2 --zero 1 --optimizer adafactor --offload optimizer"),
              HasSubstr("Adafactor on the host has %"));
  EXPECT_THAT(
      Error("--dp 2 --zero 1 --optimizer adafactor --offload optimizer"),
      HasSubstr("wanted --hp 1, --ep 1 and --zero 0, --offload none or activations, or another "
                "optimizer\n"));
  EXPECT_EQ(Error("--dp 2 --optimizer adafactor --offload optimizer"), "");
  EXPECT_THAT(Error("--dp 2 --optimizer adafactor --update ps --server-place workers"),
              HasSubstr("servers update parts of weights, and Adafactor by means over whole ones; "
                        "wanted another --optimizer"));
}

}  // namespace
}  // namespace training_forms_test_cc
}  // namespace orrery::cli
