#include "tools/validation/rows/row_models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tools/validation/rows/measured_row_test_util.h"
#include "tools/validation/rows/step_setup.h"

// Models of rows other than Megatron's and Llama's, which step_setup_test.cc has.

namespace orrery::tools {
namespace row_models_test_cc {
namespace {

using testing::HasSubstr;
using testing::Not;

MeasuredStep Row() { return MeasuredRow(); }

std::string ModelOf(const MeasuredStep& row) { return SetupOf(row).value().flags.model; }

// NeMo's adapters where the row does not say which.
TEST(RowModels, AdaptsWhatTheRowSays) {
  MeasuredStep row = Row();
  row.model.swiglu = true;
  row.task = "LoRA";
  EXPECT_THAT(ModelOf(row), testing::EndsWith(",mlp=swiglu,lora=32,lora_targets=qkv"));
  row.task = "Pre-Training Performance";
  EXPECT_THAT(ModelOf(row), Not(HasSubstr("lora")));
  row.model.name = "Llama3 8B LoRA";
  row.lora_rank = 16;
  row.lora_targets = "'*_proj'";
  EXPECT_THAT(ModelOf(row), testing::EndsWith(",lora=16,lora_targets=all"));
  row.model.experts = 8;
  row.model.topk = 2;
  EXPECT_THAT(ModelOf(row), HasSubstr(",experts=8,topk=2,"));
  EXPECT_THAT(ModelOf(row), testing::EndsWith(",lora=16,lora_targets=all"));
}

// DistIR's: no sequence, no heads, and no update.
TEST(RowModels, TakesPlainProductsToo) {
  MeasuredStep row = Row();
  row.source = "07c_distir_real_vs_sim";
  row.model = {.name = "MLP (Linear, no bias + ReLU)", .layers = 8, .hidden = 512};
  row.micro_batch = 0;
  EXPECT_EQ(ModelOf(row), "mlp:layers=8,dim=512");
  EXPECT_EQ(SetupOf(row)->plan.microbatches, 1);
  EXPECT_EQ(SetupOf(row)->flags.optimizer, "none");
  EXPECT_EQ(SetupOf(row)->stack, "ideal");
}

// By its name: rows do not say which layers are of which kind.
TEST(RowModels, GoByPresetsWhereLayersAreOfSeveralKinds) {
  MeasuredStep row = Row();
  row.source = "03b_megatron_bridge_perf_summary";
  row.model = {.name = "Nemotron_3_Nano", .seq = 8192};
  SetPreset(row.model);
  EXPECT_EQ(row.model.layers, 52);
  EXPECT_EQ(row.model.hidden, 2688);
  EXPECT_EQ(row.model.experts, 128);
  row.ep = 8;
  EXPECT_EQ(ModelOf(row), "nemotron-3-nano-30b-a3b:seq=8192");
  EXPECT_EQ(SetupOf(row)->plan.ep, 8);
  row.model = {.name = "Nemotron_3_Super", .seq = 4096};
  SetPreset(row.model);
  EXPECT_EQ(ModelOf(row), "nemotron-3-super-120b-a12b:seq=4096,predicted=2");
  row.source = "20_automodel_moe";
  EXPECT_EQ(ModelOf(row), "nemotron-3-super-120b-a12b:seq=4096");
  row.model.name = "Nemotron V3 Ultra 550B (26.04)";
  SetPreset(row.model);
  EXPECT_EQ(ModelOf(row), "nemotron-3-ultra-550b-a55b:seq=4096");
  row.model.name = "Nemotron-4 340B";
  SetPreset(row.model);
  EXPECT_EQ(row.model.preset, "");
}

}  // namespace
}  // namespace row_models_test_cc
}  // namespace orrery::tools
