#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/cli/run.h"

// --recompute, as a user has it.

namespace orrery::cli {
namespace recompute_test_cc {
namespace {

using nlohmann::json;

// Two microbatches of 4 samples of Korthikanti's 22B on 8 GPUs, of which memory is asked only where
// layers differ.
json Play(int layers, const std::string& flags) {
  const Finished finished = Execute(absl::StrCat(
      "simulate --model megatron-22b:dropout=0.1,layers=", layers,
      " --dtype fp16 --batch-size 8 --micro-batches 2 --hp 8 --cluster dgx-a100:1 --memory-limit "
      "none --sharding megatron --json r.json ",
      flags));
  EXPECT_EQ(finished.code, 0) << finished.err;
  return finished.code == 0 ? json::parse(Contents("r.json")) : json();
}

// What a layer adds: bytes of activations at the peak, and flops of one step.
struct Layer {
  double activations, flops;
};
Layer LayerOf(const std::string& flags) {
  const json few = Play(8, flags), many = Play(12, flags);
  const auto activations = [](const json& report) {
    return report["devices"][0]["memory"]["activations"].get<double>();
  };
  const auto flops = [](const json& report) {
    return report["hfu"].get<double>() * report["step_time_s"].get<double>();
  };
  return {.activations = (activations(many) - activations(few)) / 4,
          .flops = (flops(many) - flops(few)) / 4};
}

constexpr double s = 2048, b = 4, h = 6144, a = 64, t = 8;  // NOLINT: as the paper has them

// Queries and keys of 32 heads of 128 + 64, and values of 128: of 4 samples of 1024, in bf16.
TEST(Recompute, OfLatentAttentionKeepsWhatIsCompressed) {
  Clear();
  const auto activations = [](int layers, const std::string& modules) {
    const Finished finished = Execute(absl::StrCat(
        "simulate --model gpt:hidden=2048,heads=32,head_dim=128,seq=1024,vocab=512,mlp=swiglu,ffn="
        "2048,flash=1,attention=latent,q_rank=512,kv_rank=512,layers=",
        layers, " --dtype bf16 --batch-size 4 --cluster dgx-h100:1 --dp 1 --recompute ", modules,
        " --json r.json"));
    EXPECT_EQ(finished.code, 0) << finished.err;
    const json report = json::parse(Contents("r.json"));
    return report["devices"][0]["memory"]["activations"].get<double>();
  };
  const auto layer = [&](const std::string& modules) {
    return (activations(12, modules) - activations(8, modules)) / 4;
  };
  const double dropped = 4 * 1024 * 2 * 32 * (2 * (128 + 64) + 128);
  EXPECT_NEAR((layer("none") - layer("modules:mla_up_proj")) / dropped, 1, 0.01);
}

TEST(Recompute, SaysWhichModulesThereAre) {
  Clear();
  const auto error = [](const std::string& model, const std::string& modules) {
    return Execute(absl::StrCat("simulate --batch-size 8 --cluster dgx-a100:1 --model ", model,
                                " --recompute modules:", modules))
        .err;
  };
  EXPECT_EQ(error("gpt2-small", "mlp,moe"),
            "simulate: 'modules:mlp,moe': the model has no 'moe'; it has core_attn, mlp, "
            "layernorm; try --recompute match:REGEX\n");
  EXPECT_EQ(error("mlp:layers=4,dim=64", "mlp"),
            "simulate: 'modules:mlp': the model has no 'mlp'; wanted a built-in model: modules are "
            "known by its names; try --recompute match:REGEX\n");
  EXPECT_THAT(error("gpt2-small", "attn"),
              testing::HasSubstr("'attn' is no module; wanted core_attn, mlp, layernorm, moe, "));
}

// Korthikanti et al. 2022, table 2, as the report shows it.
TEST(Recompute, KeepsWhatTheFormulasSay) {
  Clear();
  const double core = 5 * a * s / h;
  const std::pair<const char*, double> expected[] = {
      {"--sequence-parallel=0 --recompute none", 10 + 24 / t + core / t},
      {"--sequence-parallel=0 --recompute selective", 10 + 24 / t},
      {"--sequence-parallel=0 --recompute modules:core_attn", 10 + 24 / t},
      {"--sequence-parallel=0 --recompute modules:mlp", 10 + (24 - 16) / t + core / t},
      {"--sequence-parallel=0 --recompute modules:layernorm", 10 - 4 + 24 / t + core / t},
      {"--sequence-parallel=0 --recompute modules:mlp,core_attn,layernorm", 6 + 8 / t},
      {"--sequence-parallel=0 --recompute full", 2},
      {"--sequence-parallel", (34 + core) / t},
      {"--sequence-parallel --recompute selective", 34 / t},
      {"--sequence-parallel --recompute full", 2 / t},
      {"--sequence-parallel=0 --recompute every:2", 1}};
  for (const auto& [flags, bytes] : expected) {
    EXPECT_NEAR(LayerOf(flags).activations / (s * b * h * bytes), 1, 0.01) << flags;
  }
}

// Full: forward once more, a third of what there is. Selective: both products of attention once
// more, of 72 s b h² (1 + s / 6h).
TEST(Recompute, CountsAsFlopsOfTheHardware) {
  Clear();
  const double plain = LayerOf("").flops;
  EXPECT_NEAR(LayerOf("--recompute full").flops / plain, 4.0 / 3, 0.01);
  // The first product of the feed-forward, 8 of 24 s b h² forward; as a whole both.
  const double all = 72 * (1 + s / (6 * h));
  EXPECT_NEAR(LayerOf("--recompute modules:mlp").flops / plain, 1 + 8 / all, 0.005);
  EXPECT_NEAR(LayerOf("--recompute modules:mlp --stack nemo").flops / plain, 1 + 16 / all, 0.005);
  EXPECT_NEAR(LayerOf("--recompute modules:layernorm").flops / plain, 1, 1e-4);
  const double more = 4 * s / h / (72 + 12 * s / h);
  EXPECT_NEAR(LayerOf("--recompute selective").flops / plain, 1 + more, 0.002);
}

TEST(Recompute, IsAnAxisOfASearch) {
  Clear();
  const Finished finished = Execute(
      "grid_search --model mlp:layers=4,dim=64 --batch-size 16 --cluster uniform:2@200Gbps --dp "
      "1,2 "
      "--pp 1 --hp 1 --micro-batches 1 --recompute none,every:1,every:2,'match:a[1,2]' --csv "
      "g.csv");
  ASSERT_EQ(finished.code, 0) << finished.err;
  std::vector<std::string> recompute;
  for (const absl::string_view line : absl::StrSplit(Contents("g.csv"), '\n', absl::SkipEmpty())) {
    std::vector<std::string> cells = absl::StrSplit(line, ",");
    recompute.push_back(cells[10]);  // behind the comma in the name of the model
  }
  EXPECT_THAT(recompute, testing::ElementsAre("zero", "none", "full", "every:2", "\"match:a[1",
                                              "none", "full", "every:2", "\"match:a[1"));
  EXPECT_THAT(finished.out, testing::HasSubstr("  every:2\n"));
}

// What simulate is told is what it prints, and opt shows the functions.
TEST(Recompute, IsShown) {
  Clear();
  const std::string model = " mlp:layers=4,dim=64 --batch-size 16 ";
  EXPECT_THAT(
      Execute("simulate --model" + model + "--cluster uniform:2@200Gbps --recompute every:1").out,
      testing::HasSubstr("--schedule 1f1b --recompute full\n"));
  const std::string stages = Execute("opt" + model + "--recompute every:4").out;
  EXPECT_THAT(stages, testing::HasSubstr("return %dl: saved, %l: loss, %a3: saved\n"));
  const Finished bad = Execute("opt" + model + "--recompute every");
  EXPECT_EQ(bad.code, 1);
}

}  // namespace
}  // namespace recompute_test_cc
}  // namespace orrery::cli
