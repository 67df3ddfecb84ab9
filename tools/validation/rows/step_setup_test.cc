#include "tools/validation/rows/step_setup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tools/validation/rows/measured_row_test_util.h"
#include "transforms/plan/plan_text.h"

// What becomes of each thing that a row says; tests/validation has whole rows.

namespace orrery::tools {
namespace step_setup_test_cc {
namespace {

using testing::HasSubstr;
using testing::Not;
using transforms::ParallelPlan;

MeasuredStep Row() { return MeasuredRow(); }

ParallelPlan PlanOf(const MeasuredStep& row) {
  const absl::StatusOr<StepSetup> setup = SetupOf(row);
  EXPECT_TRUE(setup.ok()) << setup.status();
  return setup.ok() ? setup->plan : ParallelPlan();
}

std::string ModelOf(const MeasuredStep& row) { return SetupOf(row).value().flags.model; }

std::string ReasonOf(const MeasuredStep& row) {
  const absl::Status status = SetupOf(row).status();
  EXPECT_EQ(absl::IsFailedPrecondition(status), !status.ok());
  return std::string(status.message());
}

TEST(StepSetup, KnowsSoftwareByTheSource) {
  const auto stack = [](const std::string& source) {
    MeasuredStep row = Row();
    row.source = source;
    return SetupOf(row).value().stack;
  };
  EXPECT_EQ(stack("05_Torchtitan"), "torchtitan");
  MeasuredStep compiled = Row();
  compiled.source = "05_torchtitan";
  compiled.flags = "2d + torch.compile";
  EXPECT_EQ(SetupOf(compiled)->stack, "torchtitan-compile");
  compiled.flags = "asynctp torch.compile";
  EXPECT_EQ(SetupOf(compiled)->stack, "torchtitan-async");
  EXPECT_EQ(stack("14_simumax_b200"), "megatron-core");
  EXPECT_EQ(stack("17_maxtext_recipes"), "maxtext");
  EXPECT_EQ(stack("18_ironwood_tpu7x"), "maxtext");
  // A row of a file of several kinds of software says which.
  MeasuredStep row = Row();
  row.source = "06b_large_runs_megascale_mtnlg_bloom";
  const auto named = [&](const std::string& id) {
    row.id = id;
    return SetupOf(row).value().stack;
  };
  EXPECT_EQ(named("megascale-175b-Megatron-LM-256"), "megatron");
  EXPECT_EQ(named("megascale-175b-MegaScale-256"), "nemo");
  EXPECT_EQ(named("bloom-176b-384"), "deepspeed");
  EXPECT_EQ(stack("01_megatron_sc21"), "megatron-2021");
  EXPECT_EQ(stack("20_automodel_moe"), "nemo");
  EXPECT_EQ(stack("06c_bloom_sweep"), "deepspeed");
  EXPECT_EQ(stack("mosaic_foundry"), "fsdp");
  EXPECT_EQ(stack("07b_vtrain_single_node"), "megatron-deepspeed");
  for (const char* const source : {"03c_nemo", "03d_nvidia_dgxc", "12_mlperf", "megatron_bridge"}) {
    EXPECT_EQ(stack(source), "nemo");
  }
  EXPECT_EQ(stack(""), "megatron");
}

// Along ep as along hp: experts are not gathered to the tokens.
TEST(StepSetup, SplitsExpertsByThePattern) {
  MeasuredStep row = Row();
  row.model.experts = 8;
  row.ep = 4;
  EXPECT_EQ(PlanOf(row).sharding, transforms::ShardingMethod::kMegatron);
  row.ep = 1;
  EXPECT_NE(PlanOf(row).sharding, transforms::ShardingMethod::kMegatron);
}

TEST(StepSetup, SharesStateOverContextRanks) {
  MeasuredStep row = Row();
  row.zero = row.dp = 1;
  row.cp = 16;
  row.context = "p2p";
  EXPECT_EQ(PlanOf(row).zero, 1);
  EXPECT_EQ(PlanOf(row).context_attention, transforms::ContextAttention::kRing);
  row.context = "a2a";
  EXPECT_EQ(PlanOf(row).context_attention, transforms::ContextAttention::kAllToAll);
}

TEST(StepSetup, PadsVocabulariesAsMegatronDoes) {
  const auto vocabulary = [](int64_t said, int64_t tp, const std::string& source = "paper") {
    MeasuredStep row = Row();
    row.model.vocab = said;
    row.tp = tp;
    row.source = source;
    const std::string model = ModelOf(row);
    const size_t start = model.find("vocab=") + 6;
    return model.substr(start, model.find(',', start) - start);
  };
  EXPECT_EQ(vocabulary(0, 1), "50304");  // 393 times 128
  EXPECT_EQ(vocabulary(0, 8), "51200");  // 50 times 1024
  EXPECT_EQ(vocabulary(1024, 8), "1024");
  EXPECT_EQ(vocabulary(1025, 8), "2048");
  EXPECT_EQ(vocabulary(250000, 1), "250752");  // 250680 padded to 128
  EXPECT_EQ(vocabulary(128257, 8, "torchtitan"), "128257");
}

TEST(StepSetup, HasFlashButInOldMegatron) {
  const auto flash = [](const std::string& device, const std::string& source) {
    MeasuredStep row = Row();
    row.device = device;
    row.source = source;
    return ModelOf(row).find("flash=1") != std::string::npos;
  };
  EXPECT_TRUE(flash("H100", "paper"));
  EXPECT_FALSE(flash("A100", "paper"));
  EXPECT_FALSE(flash("V100", "bloom"));
  EXPECT_TRUE(flash("A100", "torchtitan"));
  EXPECT_TRUE(flash("V100", "foundry"));
  MeasuredStep sinks = Row();
  sinks.device = "H100";
  sinks.model.name = "GPT OSS 120B";
  EXPECT_NE(ModelOf(sinks).find("flash=1"), std::string::npos);
}

TEST(StepSetup, WritesTheModel) {
  const std::string head = "gpt:layers=8,hidden=1024,heads=16,seq=512,vocab=50304,flash=1";
  MeasuredStep row = Row();
  EXPECT_EQ(ModelOf(row), head + ",dropout=0.1");
  row.source = "bloom";
  EXPECT_EQ(ModelOf(row), head);
  row.model.kv_heads = 16;
  row.model.ffn = 4096;
  row.model.swiglu = true;
  EXPECT_EQ(ModelOf(row), head + ",ffn=4096,mlp=swiglu");
  row.model.kv_heads = 4;
  row.model.experts = 8;
  row.model.expert_ffn = 512;
  EXPECT_EQ(ModelOf(row), head + ",kv_heads=4,ffn=4096,experts=8,topk=1,expert_ffn=512,mlp=swiglu");
  row.model.topk = 2;
  EXPECT_THAT(ModelOf(row), HasSubstr(",topk=2,"));
  row.model.shared_ffn = 768;
  row.model.dense_layers = 1;
  EXPECT_THAT(ModelOf(row), HasSubstr(",topk=2,shared_ffn=768,dense_layers=1,expert_ffn=512,"));
  row.model.latent = true;
  row.model.q_rank = row.model.kv_rank = 32;
  row.model.head_dim = 16;
  row.model.rope_dim = row.model.v_dim = 8;
  EXPECT_THAT(ModelOf(row), HasSubstr(",head_dim=16,attention=latent,q_rank=32,kv_rank=32,"
                                      "rope_dim=8,v_dim=8,"));
}

TEST(StepSetup, CountsHeadsOf128) {
  MeasuredStep row = Row();
  row.model.heads = 0;
  EXPECT_THAT(ModelOf(row), HasSubstr(",heads=8,"));
  row.model.hidden = 1000;
  EXPECT_EQ(ReasonOf(row), "the model's heads are not said");
}

TEST(StepSetup, TakesTypesByHowTheyBegin) {
  const auto type = [](const std::string& precision) {
    MeasuredStep row = Row();
    row.precision = precision;
    return PlanOf(row).dtype;
  };
  using transforms::StepDType;
  EXPECT_EQ(type("bf16 mixed"), StepDType::kBF16);
  EXPECT_EQ(type("fp16"), StepDType::kF16);
  EXPECT_EQ(type("fp32"), StepDType::kF32);
  EXPECT_EQ(type("fp8"), StepDType::kF8Mixed);
  EXPECT_EQ(type("mxfp8"), StepDType::kF8Mixed);
  EXPECT_EQ(type("amp_fp8"), StepDType::kF8Mixed);
  EXPECT_EQ(type("amp_bf16"), StepDType::kBF16);
  EXPECT_EQ(type("float8 rowwise"), StepDType::kF8Mixed);
  EXPECT_EQ(type("nvfp4"), StepDType::kF4Mixed);
  EXPECT_EQ(type("fp8-sc"), StepDType::kF8Blocks);
  EXPECT_EQ(type("fp8 (blockwise)"), StepDType::kF8Blocks);
}

TEST(StepSetup, FillsInTheDegrees) {
  MeasuredStep row = Row();
  row.tp = 2;
  row.pp = 2;
  row.cp = 2;
  ParallelPlan plan = PlanOf(row);
  EXPECT_EQ(plan.hp, 2);
  EXPECT_EQ(plan.pp, 2);
  EXPECT_EQ(plan.cp, 2);
  EXPECT_EQ(plan.dp, 2);             // 16 / 8
  EXPECT_EQ(plan.microbatches, 16);  // 64 / (2 * 2)
  row.microbatches = 4;
  EXPECT_EQ(PlanOf(row).microbatches, 4);
  row.microbatches = 64;
  EXPECT_EQ(ReasonOf(row), "the batch does not divide");  // by 2 * 64
  row.microbatches = 32;
  EXPECT_EQ(ReasonOf(row), "");
  row.dp = 1;
  EXPECT_EQ(ReasonOf(row), "degrees do not multiply up to the devices");
  row.dp = 4;
  EXPECT_EQ(ReasonOf(row), "degrees do not multiply up to the devices");
  row.dp = 0;
  row.tp = 32;
  EXPECT_EQ(ReasonOf(row), "degrees do not multiply up to the devices");
}

// A microbatch of the whole batch would be none.
TEST(StepSetup, NeedsAMicrobatch) {
  MeasuredStep row = Row();
  row.micro_batch = 4;
  EXPECT_EQ(PlanOf(row).microbatches, 1);
  row.micro_batch = 5;
  EXPECT_EQ(ReasonOf(row), "the microbatch is not said");
}

TEST(StepSetup, SpreadsExpertsOverDataParallelRanks) {
  MeasuredStep row = Row();
  row.ep = 4;
  EXPECT_EQ(PlanOf(row).ep, 1);
  EXPECT_EQ(PlanOf(row).dp, 16);
  row.model.experts = 8;
  EXPECT_EQ(PlanOf(row).ep, 4);
  EXPECT_EQ(PlanOf(row).dp, 4);
  EXPECT_EQ(PlanOf(row).microbatches, 2);  // 64 / (16 * 2)
  row.tp = 4;
  row.ep = 8;
  EXPECT_EQ(PlanOf(row).ep, 4);
  EXPECT_EQ(PlanOf(row).hp, 4);
  row.ep = 3;
  EXPECT_EQ(ReasonOf(row), "experts are spread over more than data-parallel ranks");
}

TEST(StepSetup, ShardsStateWhereThereAreRanksToShareIt) {
  MeasuredStep row = Row();
  row.zero = 2;
  EXPECT_EQ(PlanOf(row).zero, 2);
  row.tp = 16;
  EXPECT_EQ(PlanOf(row).zero, 0);
}

// By Megatron's pattern; torchtitan's splits are pinned.
TEST(StepSetup, SharesTensorsAsTheSystemDoes) {
  MeasuredStep row = Row();
  EXPECT_TRUE(PlanOf(row).pins.empty());
  EXPECT_FALSE(PlanOf(row).by_pattern());
  row.tp = 2;
  EXPECT_TRUE(PlanOf(row).pins.empty());
  EXPECT_TRUE(PlanOf(row).by_pattern());
  EXPECT_EQ(PlanOf(row).sequence_parallel, transforms::SequenceParallel::kOff);
  row.sequence_parallel = true;
  EXPECT_EQ(PlanOf(row).sequence_parallel, transforms::SequenceParallel::kOn);
  row.sequence_parallel = std::nullopt;
  row.source = "nemo";
  EXPECT_EQ(PlanOf(row).sequence_parallel, transforms::SequenceParallel::kOn);
  row.sequence_parallel = false;
  EXPECT_EQ(PlanOf(row).sequence_parallel, transforms::SequenceParallel::kOff);
  row.source = "torchtitan";
  EXPECT_EQ(PlanOf(row).pins.size(), 5);
  EXPECT_FALSE(PlanOf(row).by_pattern());
}

TEST(StepSetup, OverlapsWhereTheSourceDid) {
  MeasuredStep row = Row();
  EXPECT_FALSE(PlanOf(row).blocking);
  EXPECT_FALSE(SetupOf(row)->graphs);
  row.overlaps = false;
  row.graphs = true;
  EXPECT_TRUE(PlanOf(row).blocking);
  EXPECT_TRUE(SetupOf(row)->graphs);
}

TEST(StepSetup, OrdersPipelinesByTheirName) {
  const auto schedule = [](const std::string& name, int64_t chunks, const std::string& source) {
    MeasuredStep row = Row();
    row.pp = 2;
    row.schedule = name;
    row.chunks = chunks;
    row.source = source;
    const ParallelPlan plan = PlanOf(row);
    return absl::StrCat(plan.schedule.name(), " ", plan.chunks);
  };
  EXPECT_EQ(schedule("", 0, "paper"), "1f1b 0");
  EXPECT_EQ(schedule("", 4, "paper"), "interleaved 4");
  EXPECT_EQ(schedule("1F1B", 1, "paper"), "1f1b 0");
  EXPECT_EQ(schedule("1F1B", 2, "paper"), "interleaved 2");
  EXPECT_EQ(schedule("1F1B-I", 4, "paper"), "interleaved 4");
  EXPECT_EQ(schedule("Interleaved", 1, "torchtitan"), "interleaved 2");
  EXPECT_EQ(schedule("Interleaved", 0, "paper"), "interleaved 5");  // a layer less at both ends
  EXPECT_EQ(schedule("GPipe", 2, "paper"), "gpipe 0");
  MeasuredStep row = Row();
  row.schedule = "abacus";
  EXPECT_EQ(PlanOf(row).schedule.name(), "1f1b");  // of one stage, any is
}

// "--layers-per-stage 1,2,1", or what else cuts the model.
std::string StagesOf(int64_t layers, int64_t pp) {
  MeasuredStep row = Row();
  row.model.layers = layers;
  row.devices = row.pp = pp;
  const ParallelPlan plan = PlanOf(row);
  return absl::StrCat(transforms::AxisText(*transforms::FindAxis("stages-by"), plan), "; ",
                      transforms::AxisText(*transforms::FindAxis("split-at"), plan), "; ",
                      transforms::AxisText(*transforms::FindAxis("layers-per-stage"), plan));
}

TEST(StepSetup, GivesTheEndsALayerLess) {
  EXPECT_EQ(PlanOf(Row()).stages_by, transforms::StagesBy::kCost);
  EXPECT_THAT(StagesOf(8, 4), testing::StartsWith("--stages-by layers; "));
  EXPECT_THAT(StagesOf(10, 4), testing::EndsWith("--layers-per-stage 2,3,3,2"));  // 12 / 4
  EXPECT_THAT(StagesOf(10, 4), Not(HasSubstr("--stages-by layers")));
  EXPECT_THAT(StagesOf(9, 2), HasSubstr("--stages-by layers"));
  EXPECT_THAT(StagesOf(7, 4), HasSubstr("--stages-by layers"));  // 9 is not 4 times any
  EXPECT_THAT(StagesOf(2, 4), HasSubstr("ln_f"));                // a layer each, and the ends
}

TEST(StepSetup, CountsWhatTheMeasurementCounts) {
  const auto overhead = [](MemoryMeasure measure, const std::string& source) {
    MeasuredStep row = Row();
    row.measure = measure;
    row.source = source;
    return SetupOf(row).value().flags.memory_overhead;
  };
  EXPECT_EQ(overhead(MemoryMeasure::kAllocated, "bloom"), "none");
  EXPECT_EQ(overhead(MemoryMeasure::kReserved, "bloom"), "fragmentation=0.05");
  EXPECT_EQ(overhead(MemoryMeasure::kDevice, "paper"), "usual");
  EXPECT_EQ(overhead(MemoryMeasure::kDevice, "bloom"), "usual,framework=2GiB,fragmentation=0.12");
  EXPECT_EQ(SetupOf(Row()).value().flags.memory_limit, "none");
  EXPECT_EQ(SetupOf(Row()).value().flags.batch_size, 64);
}

TEST(StepSetup, NeedsATimeOrAMemory) {
  MeasuredStep row = Row();
  row.seconds = 0;
  EXPECT_EQ(ReasonOf(row), "neither a time nor memory was measured");
  row.bytes = 1;
  EXPECT_EQ(ReasonOf(row), "");
  for (int64_t MeasuredStep::Model::*field :
       {&MeasuredStep::Model::layers, &MeasuredStep::Model::hidden, &MeasuredStep::Model::seq}) {
    MeasuredStep shapeless = Row();
    shapeless.model.*field = 0;
    EXPECT_EQ(ReasonOf(shapeless), "the model's shape is not said");
  }
}

}  // namespace
}  // namespace step_setup_test_cc
}  // namespace orrery::tools
