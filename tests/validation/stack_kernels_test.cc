#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "search/evaluate.h"
#include "tools/flags.h"
#include "tools/validation/software_stack.h"
#include "tools/validation/stack_file.h"

// Which kernels stacks have, and what these move besides.

namespace orrery::tools {
namespace stack_kernels_test_cc {
namespace {

using cost_models::AttentionClass;
using ir::DType;

cost_models::KernelChoice ChoiceOf(const std::string& stack, DType dtype) {
  lowering::LoweringOptions options;
  EXPECT_TRUE(SetStack(stack, {.dtype = dtype}, options).ok()) << stack;
  return options.kernels.choice;
}

double SecondsOf(const SoftwareStack& stack, bool flash, DType dtype = DType::kBF16) {
  ModelFlags flags;
  flags.model = std::string("gpt:layers=4,hidden=4096,heads=32,seq=4096,vocab=512,flash=") +
                (flash ? "1" : "0");
  flags.batch_size = 8;
  flags.cluster = "dgx-a100:1";
  flags.memory_limit = "none";
  flags.cost_model = "kernels";
  const transforms::ParallelPlan plan = {
      .microbatches = 8,
      .dtype = dtype == DType::kF16 ? transforms::StepDType::kF16 : transforms::StepDType::kBF16};
  search::Setting setting = MakeSetting(flags, plan).value();
  SetStack(stack, StackUseOf(setting.step), setting.lowering);
  setting.lowering.stack_memory = {};
  return search::Play(setting, plan).value().report.step_time.seconds();
}

double SecondsOf(const std::string& stack, bool flash) {
  return SecondsOf(FindStack(stack).value(), flash);
}

TEST(StackKernels, AreOfTheStackAndTheType) {
  EXPECT_EQ(ChoiceOf("ideal", DType::kBF16), cost_models::KernelChoice());
  EXPECT_EQ(ChoiceOf("nemo", DType::kBF16).attention, AttentionClass::kCudnn);
  EXPECT_EQ(ChoiceOf("torchtitan", DType::kBF16).attention, AttentionClass::kFlash2);
  EXPECT_EQ(ChoiceOf("deepspeed", DType::kBF16).attention, AttentionClass::kFlash1);
  EXPECT_EQ(ChoiceOf("fsdp", DType::kBF16).attention, AttentionClass::kTriton);
  EXPECT_EQ(ChoiceOf("deepspeed", DType::kBF16).extra.gradient_sum, 12);
  EXPECT_EQ(ChoiceOf("deepspeed", DType::kF16).extra.gradient_sum, 0);
  for (const char* stack : {"torchtitan", "torchtitan-compile", "torchtitan-async"}) {
    EXPECT_EQ(ChoiceOf(stack, DType::kBF16).extra.reduction, 2) << stack;
  }
  const cost_models::ExtraTraffic maxtext = ChoiceOf("maxtext", DType::kBF16).extra;
  EXPECT_EQ(maxtext.update, 10);
  EXPECT_EQ(maxtext.loss, 4);
  EXPECT_EQ(maxtext.reduction, 0);
  EXPECT_GT(ChoiceOf("megatron", DType::kF16).extra.update,
            ChoiceOf("megatron", DType::kBF16).extra.update);
  for (const SoftwareStack* stack : AllSoftwareStacks()) {
    EXPECT_EQ(ChoiceOf(std::string(stack->name), DType::kF32).extra, cost_models::ExtraTraffic())
        << stack->name;
  }
}

// A step takes what its kernels take, whoever asks: `simulate --stack` and `validate` set the same.
TEST(StackKernels, DecideHowLongAStepTakes) {
  const double ideal = SecondsOf("ideal", true);
  EXPECT_GT(SecondsOf("fsdp", true), 1.03 * ideal);
  EXPECT_GT(SecondsOf("megatron", true), ideal);
  // Sums of seven of eight microbatches, 12 bytes a parameter more in bf16.
  SoftwareStack sums = FindStack("deepspeed").value();
  SoftwareStack plain = sums;
  plain.bf16_traffic.gradient_sum = 0;
  const double extra = SecondsOf(sums, false) - SecondsOf(plain, false);
  const double parameters = 4.0 * 12 * 4096 * 4096;
  EXPECT_NEAR(extra, 7 * 12 * parameters / (2.0e12 * 0.812), 0.05 * extra);
}

// DeepSpeed's host waits for each kernel: a step takes all its launches besides.
TEST(StackKernels, OfAHostThatWaitsTakeTheirLaunchesBesides) {
  SoftwareStack waits = FindStack("deepspeed").value();
  SoftwareStack none = waits, runs_ahead = waits;
  none.launch_us = 0;
  runs_ahead.waits_for_kernels = false;
  const double launches =
      (SecondsOf(waits, false) - SecondsOf(none, false)) / (waits.launch_us * 1e-6);
  EXPECT_NEAR(launches, std::round(launches), 1e-3);
  EXPECT_GT(launches, 8 * 4 * (10 + 15));  // of a layer and a microbatch 10 forward, 15 backward
  EXPECT_LT(SecondsOf(runs_ahead, false), SecondsOf(waits, false));
}

// TransformerEngine calls cuBLAS for each expert; torchtitan has one kernel for all, and a model
// without a mixture none of either.
TEST(StackKernels, OfExpertsAreOneOrMany) {
  const auto of = [](const std::string& stack, bool experts) {
    lowering::LoweringOptions options;
    EXPECT_TRUE(SetStack(stack, {.experts = experts}, options).ok()) << stack;
    return options.kernels.choice.experts;
  };
  for (const std::string stack : {"nemo", "megatron-core"}) {
    EXPECT_TRUE(of(stack, true).kernel_each && of(stack, true).present);
    EXPECT_EQ(of(stack, true).call, Duration::FromSeconds(10e-6));
    EXPECT_FALSE(of(stack, false).present);
  }
  EXPECT_EQ(of("torchtitan", true), (cost_models::ExpertProducts{.present = true}));
  EXPECT_EQ(of("ideal", true), (cost_models::ExpertProducts{.present = true}));
  lowering::LoweringOptions captured;
  EXPECT_TRUE(SetStack("nemo", {.experts = true}, captured).ok());
  CaptureGraphs(captured);
  EXPECT_EQ(captured.kernels.choice.experts.call, Duration(0));
  EXPECT_TRUE(captured.kernels.choice.experts.kernel_each);
}

double MixtureSeconds(const std::string& file) {
  ModelFlags flags;
  flags.model =
      "gpt:layers=1,hidden=1024,heads=8,seq=256,vocab=512,ffn=512,mlp=swiglu,experts=64,topk=2,"
      "flash=1";
  flags.batch_size = 4;
  flags.cluster = "dgx-h100:1";
  const transforms::ParallelPlan plan = {.dtype = transforms::StepDType::kBF16};
  search::Setting setting = MakeSetting(flags, plan).value();
  SetStack(ParseStack(file, "mine.json").value(), StackUseOf(setting.step), setting.lowering);
  return search::Play(setting, plan).value().report.step_time.seconds();
}

// 64 experts have nine products, three forward and six backward, in as many kernels.
TEST(StackKernels, OfManyExpertsWaitForTheHost) {
  const double one = MixtureSeconds("{}");
  const double each = MixtureSeconds(R"({"expert_kernels": true})");
  const double called = MixtureSeconds(R"({"expert_kernels": true, "expert_call_us": 100})");
  EXPECT_GT(each, one + 9 * 63 * 2e-6);
  EXPECT_NEAR(called, one + 9 * 64 * 100e-6, 0.05 * called);
  EXPECT_EQ(MixtureSeconds(R"({"expert_call_us": 100})"), one);
}

double SmallSeconds(const std::string& stack, bool graphs) {
  ModelFlags flags;
  flags.model = "gpt:layers=4,hidden=64,heads=2,seq=64,vocab=512,flash=1";
  flags.batch_size = 1;
  flags.cluster = "dgx-a100:1";
  flags.optimizer = "none";
  const transforms::ParallelPlan plan = {.dtype = transforms::StepDType::kBF16};
  search::Setting setting = MakeSetting(flags, plan).value();
  EXPECT_TRUE(SetStack(stack, StackUseOf(setting.step), setting.lowering).ok());
  if (graphs) CaptureGraphs(setting.lowering);
  return search::Play(setting, plan).value().report.step_time.seconds();
}

// Kernels begin 2.84 us after each other and not 5, so many of them as there are.
TEST(StackKernels, OfGraphsWaitForNoHost) {
  const double saved = (SmallSeconds("ideal", false) - SmallSeconds("ideal", true)) / 2.16e-6;
  EXPECT_NEAR(saved, std::round(saved), 1e-3);
  EXPECT_GT(saved, 4 * (8 + 12));  // of a layer 8 forward, and no fewer backward than that
  EXPECT_LT(saved, 200);
  // Of launches nothing is left, of what the host prepares all.
  constexpr double kPrepare = 2e-3;
  EXPECT_GT(SmallSeconds("megatron-deepspeed", true), kPrepare);
  EXPECT_LT(10 * (SmallSeconds("megatron-deepspeed", true) - kPrepare),
            SmallSeconds("megatron-deepspeed", false) - kPrepare);
}

}  // namespace
}  // namespace stack_kernels_test_cc
}  // namespace orrery::tools
