#include "tools/validation/rows/measured_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "support/file.h"

namespace orrery::tools {
namespace measured_steps_test_cc {
namespace {

// The row of a file with one, whose fields are `fields`.
MeasuredStep Read(const std::string& fields, const std::string& how = "") {
  return ParseMeasuredSteps(absl::StrCat(R"({"how_measured": ")", how,
                                         R"(", "rows": [{"id": "a", )", fields, "}]}"),
                            "x.json")
      .value()
      .at(0);
}

TEST(MeasuredSteps, HaveEveryFieldInItsPlace) {
  const MeasuredStep step = Read(R"(
      "model": {"layers": 1, "hidden": 2, "heads": 3, "kv_heads": 4, "ffn": 5, "vocab": 6, "seq": 7,
                "experts": 8, "topk": 9, "moe_ffn": 10},
      "hw": {"gpu": "H100", "gpus": 11},
      "par": {"tp": 12, "pp": 13, "dp": 14, "cp": 15, "ep": 16, "vp": 17, "zero": 18},
      "batch": {"global_batch": 19, "micro_batch": 20, "num_microbatches": 21},
      "schedule": "1F1B", "recompute": "Full", "precision": "BF16")");
  const MeasuredStep::Model& m = step.model;
  EXPECT_THAT((std::vector<int64_t>{m.layers,
                                    m.hidden,
                                    m.heads,
                                    m.kv_heads,
                                    m.ffn,
                                    m.vocab,
                                    m.seq,
                                    m.experts,
                                    m.topk,
                                    m.expert_ffn,
                                    step.devices,
                                    step.tp,
                                    step.pp,
                                    step.dp,
                                    step.cp,
                                    step.ep,
                                    step.chunks,
                                    step.zero,
                                    step.global_batch,
                                    step.micro_batch,
                                    step.microbatches}),
              testing::ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18,
                                   19, 20, 21));
  EXPECT_EQ(step.device + step.schedule + step.recompute + step.precision, "H1001F1BFullbf16");
  EXPECT_FALSE(step.model.swiglu);
  EXPECT_FALSE(step.sequence_parallel);
}

// As many layers as make the size that is printed, of those that stages divide: of BLOOM's sweep.
TEST(MeasuredSteps, CountLayersByTheSizeOfASweep) {
  const auto layers = [](const std::string& size, int64_t pp, const std::string& file) {
    const std::string row = absl::StrCat(R"({"rows": [{"id": "a", "par": {"pp": )", pp,
                                         R"(}, "model": {"hidden": 14400, "vocab": 250000, )",
                                         R"("name": ")", size, R"("}}]})");
    return ParseMeasuredSteps(row, file).value().at(0).model;
  };
  EXPECT_EQ(layers("191B", 7, "06c_bloom.json").layers, 77);
  EXPECT_EQ(layers("194B", 6, "06c_bloom.json").layers, 78);
  EXPECT_EQ(layers("195B", 11, "06c_bloom.json").layers, 77);
  EXPECT_EQ(layers("183B", 12, "06c_bloom.json").layers, 72);
  EXPECT_EQ(layers("200B", 10, "06c_bloom.json").layers, 80);
  EXPECT_EQ(layers("200B", 10, "06c_bloom.json").heads, 96);
  EXPECT_EQ(layers("200B", 10, "other.json").layers, 0);
  EXPECT_EQ(layers("GPT", 10, "06c_bloom.json").layers, 0);
}

TEST(MeasuredSteps, AreOfSwigluByEitherField) {
  EXPECT_TRUE(Read(R"("model": {"mlp": "SwiGLU"})").model.swiglu);
  EXPECT_TRUE(Read(R"("model": {"mlp": "swiglu with bias"})").model.swiglu);
  EXPECT_TRUE(Read(R"("model": {"swiglu": true})").model.swiglu);
  EXPECT_FALSE(Read(R"("model": {"mlp": "gelu", "swiglu": 1})").model.swiglu);
}

// Widths of latent attention that a row leaves out are DeepSeek-V3's.
TEST(MeasuredSteps, KnowLatentAttention) {
  const MeasuredStep::Model all = Read(R"("model": {"attention": "mla", "q_lora_rank": null,
      "kv_lora_rank": 256, "qk_head_dim": 96, "qk_rope_head_dim": 32, "v_head_dim": 80})")
                                      .model;
  EXPECT_TRUE(all.latent);
  EXPECT_THAT(
      (std::vector<int64_t>{all.head_dim, all.q_rank, all.kv_rank, all.rope_dim, all.v_dim}),
      testing::ElementsAre(96, 0, 256, 32, 80));
  const MeasuredStep::Model none = Read(R"("model": {"attn": "MLA"})").model;
  EXPECT_TRUE(none.latent);
  EXPECT_THAT(
      (std::vector<int64_t>{none.head_dim, none.q_rank, none.kv_rank, none.rope_dim, none.v_dim}),
      testing::ElementsAre(128, 1536, 512, 64, 128));
  EXPECT_FALSE(Read(R"("model": {"attn": "alternating full / 128-token window"})").model.latent);
}

// A stage of ZeRO as a number or in words, and how attention gets by with long sequences.
TEST(MeasuredSteps, SayHowStateIsShared) {
  const auto zero = [](const std::string& value) {
    return Read(absl::StrCat(R"("par": {"zero": )", value, "}")).zero;
  };
  EXPECT_EQ(zero("2"), 2);
  EXPECT_EQ(zero("\"FSDP2 (ZeRO-2: no reshard after forward)\""), 2);
  EXPECT_EQ(zero("\"FSDP2 (ZeRO-3)\""), 3);
  EXPECT_EQ(zero("\"FSDP2 (reshard not stated)\""), 3);
  EXPECT_EQ(zero("\"none\""), 0);
  const auto replicas = [](const std::string& par) {
    return Read(absl::StrCat(R"("par": {"zero": 3, )", par, "}")).dp;
  };
  EXPECT_EQ(replicas(R"("fsdp": 128, "dp": 4)"), 512);
  EXPECT_EQ(replicas(R"("fsdp": 128, "dp": 128)"), 128);
  EXPECT_EQ(replicas(R"("fsdp": 0, "dp": 8)"), 8);
  const MeasuredStep step = Read(R"("par": {"cp_comm": "a2a"}, "hw": {"inter": "4x 100 Gb/s"},
                                    "model": {"name": "Llama 3 8B LoRA"}, "task": "SFT")");
  EXPECT_EQ(step.context, "a2a");
  EXPECT_EQ(step.fabric, "4x 100 Gb/s");
  EXPECT_EQ(step.task, "SFT");
  EXPECT_EQ(step.model.name, "Llama 3 8B LoRA");
  EXPECT_EQ(Read(R"("measured": {"peak_alloc_gib": 2})").bytes, 2.0 * (1 << 30));
}

TEST(MeasuredSteps, SayWhatSoftwareDoes) {
  const auto graphs = [](const std::string& options) {
    return Read(absl::StrCat(R"("options": ")", options, "\"")).graphs;
  };
  EXPECT_TRUE(graphs("CUDA graphs"));
  EXPECT_TRUE(graphs("fp8 attention, CUDA graphs"));
  EXPECT_TRUE(Read(R"("options": "fp8 attention, CUDA graphs")").attention_in_8_bits);
  EXPECT_FALSE(Read(R"("options": "CUDA graphs")").attention_in_8_bits);
  EXPECT_FALSE(graphs("HybridEP, CUDA graphs on router and preprocess"));
  const MeasuredStep step = Read(R"("hw": {"gpus": 4, "cores": 8, "intra": "PCIe"},
      "options": {"lora_rank": "16", "lora_targets": "'*_proj'", "context": "device",
                  "query_proj": "offload", "kernels": "TE"})");
  EXPECT_EQ(step.devices, 8);
  EXPECT_EQ(step.links, "PCIe");
  EXPECT_EQ(step.lora_rank, 16);
  EXPECT_EQ(step.lora_targets, "'*_proj'");
  EXPECT_THAT(step.kept, testing::ElementsAre(testing::Pair("context", "device"),
                                              testing::Pair("query_proj", "offload")));
}

// What was measured comes before what was derived.
TEST(MeasuredSteps, TakeTheMeasuredTime) {
  EXPECT_EQ(Read(R"("measured": {"iter_time_s": 2}, "derived": {"iter_time_s": 3})").seconds, 2);
  EXPECT_EQ(Read(R"("measured": {"iter_time_s": 0}, "derived": {"iter_time_s": 3})").seconds, 3);
}

// What nobody measured is as what nobody said: errors are numbers.
TEST(MeasuredSteps, TakeNoTimeOrMemoryThatCannotBe) {
  for (const char* number : {"-1", "1e-320", "1e308", "\"2\"", "null"}) {
    const MeasuredStep step = Read(
        absl::StrCat(R"("measured": {"iter_time_s": )", number, R"(, "memory_gb": )", number, "}"));
    EXPECT_EQ(step.seconds, 0) << number;
    EXPECT_EQ(step.bytes, 0) << number;
  }
}

// Of several memories the first of the list, allocated before device; GiB are 2^30 bytes.
TEST(MeasuredSteps, TakeOneMemory) {
  const MeasuredStep all = Read(
      R"("measured": {"memory_gib": 4, "memory_gb": 3, "memory_gb_max": 2, "mem_max_allocated_gb": 1})");
  EXPECT_EQ(all.bytes, 1e9);
  EXPECT_EQ(all.measure, MemoryMeasure::kAllocated);
  const MeasuredStep device =
      Read(R"("measured": {"memory_gib": 4, "memory_gb": 3, "memory_gb_max": 2})");
  EXPECT_EQ(device.bytes, 2e9);
  EXPECT_EQ(device.measure, MemoryMeasure::kDevice);
  EXPECT_EQ(Read(R"("measured": {"memory_gib": 4, "memory_gb": 3})").bytes, 3e9);
  EXPECT_EQ(Read(R"("measured": {"memory_gib": 4})").bytes, 4294967296);
  EXPECT_EQ(Read(R"("measured": {"memory_gib": -4, "memory_gb": -1})").bytes, 0);
  EXPECT_EQ(Read(R"("measured": {"memory_gb_max": 2})", "what is reserved").measure,
            MemoryMeasure::kReserved);
}

TEST(MeasuredSteps, SayWhetherCommunicationOverlapped) {
  EXPECT_TRUE(Read(R"("seq": 1)", "with overlap").overlaps);
  EXPECT_FALSE(Read(R"("seq": 1)", "mean of 3; no overlap of TP, p2p").overlaps);
}

TEST(MeasuredSteps, HaveMixturesAndLatentAttention) {
  const MeasuredStep::Model model = Read(R"("model": {"experts": 8, "moe_ffn": 3, "dense_layers": 1,
      "shared_experts": 2, "attention": "mla", "q_lora_rank": 4, "kv_lora_rank": 5,
      "qk_head_dim": 6, "qk_rope_head_dim": 7, "v_head_dim": 9})")
                                        .model;
  EXPECT_EQ(model.dense_layers, 1);
  EXPECT_EQ(model.shared_ffn, 6);
  EXPECT_TRUE(model.latent);
  EXPECT_EQ(model.q_rank, 4);
  EXPECT_EQ(model.kv_rank, 5);
  EXPECT_EQ(model.head_dim, 6);
  EXPECT_EQ(model.rope_dim, 7);
  EXPECT_EQ(model.v_dim, 9);
  const MeasuredStep::Model plain =
      Read(
          R"("model": {"head_dim": 64, "moe_ffn": 3, "shared_expert_ffn": 5, "shared_experts": 2})")
          .model;
  EXPECT_EQ(plain.shared_ffn, 5);
  EXPECT_EQ(plain.head_dim, 64);
  EXPECT_FALSE(plain.latent);
}

// Where a row does not say, families are known by name.
TEST(MeasuredSteps, KnowFamiliesWithGates) {
  const auto gated = [](const std::string& model) {
    return Read(absl::StrCat(R"("model": {)", model, "}")).model.swiglu;
  };
  EXPECT_TRUE(gated(R"("name": "LLAMA3_70B")"));
  EXPECT_TRUE(gated(R"("name": "GPT OSS 120B")"));
  EXPECT_TRUE(gated(R"("name": "Qwen3_30B_a3B")"));
  EXPECT_FALSE(gated(R"("name": "GPT-3 175B")"));
  EXPECT_FALSE(gated(R"("name": "LLAMA3_70B", "mlp": "gelu")"));
}

TEST(MeasuredSteps, TellWhatTheyDoNotSay) {
  EXPECT_FALSE(Read(R"("par": {"sequence_parallel": null})").sequence_parallel.has_value());
  EXPECT_EQ(Read(R"("par": {"sequence_parallel": false})").sequence_parallel, false);
  EXPECT_EQ(Read(R"("par": {"sequence_parallel": true})").sequence_parallel, true);
}

TEST(MeasuredSteps, CountToABillion) {
  EXPECT_EQ(Read(R"("hw": {"gpus": 1000000000})").devices, 1000000000);
  EXPECT_EQ(Read(R"("hw": {"gpus": 1000000001})").devices, 0);
  EXPECT_EQ(Read(R"("hw": {"gpus": 16.0})").devices, 16);
  EXPECT_EQ(Read(R"("hw": {"gpus": "16"})").devices, 0);
  EXPECT_EQ(Read(R"("hw": 16)").devices, 0);
}

// Files of a folder by name; what is no list of rows is passed over, unless it is the only one.
TEST(MeasuredSteps, OfAFolderAreThoseOfItsLists) {
  const std::string folder = absl::StrCat(testing::TempDir(), "measured_", getpid(), "/");
  const auto write = [&](const std::string& name, const std::string& text) {
    ASSERT_TRUE(WriteFile(folder + name, text).ok());
  };
  const auto error = [&] {
    return absl::StrReplaceAll(ReadMeasuredSteps(folder).status().message(), {{folder, "F/"}});
  };
  std::filesystem::create_directories(folder);
  EXPECT_EQ(error(), "F/: holds no files *.json");
  write("notes.txt", "{");
  EXPECT_EQ(error(), "F/: holds no files *.json");
  write("b.json", "{");
  EXPECT_EQ(error(), "F/b.json: is not JSON; wanted {\"rows\": [...]}");
  write("b.json", R"({"rows": 1})");
  EXPECT_EQ(error(), "F/b.json: has no list \"rows\"; wanted {\"rows\": [{\"id\": ...}, ...]}");
  write("c.json", R"({"rows": [{"id": "3"}, {"id": ""}, {"id": 4}, {"id": "5"}]})");
  write("a.json", R"({"rows": [{"id": "1", "split": "holdout"}]})");
  const std::vector<MeasuredStep> steps = ReadMeasuredSteps(folder).value();
  std::string ids;
  for (const MeasuredStep& step : steps) absl::StrAppend(&ids, step.source, step.id, " ");
  EXPECT_EQ(ids, "a1 c3 c5 ");
  EXPECT_EQ(steps.at(0).split, "holdout");
  EXPECT_EQ(ReadMeasuredSteps(folder + "c.json").value().size(), 2);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace measured_steps_test_cc
}  // namespace orrery::tools
