#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tools/validation/measured_row_test_util.h"
#include "tools/validation/step_setup.h"

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

}  // namespace
}  // namespace row_models_test_cc
}  // namespace orrery::tools
