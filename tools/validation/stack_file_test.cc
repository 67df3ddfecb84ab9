#include "tools/validation/stack_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace orrery::tools {
namespace stack_file_test_cc {
namespace {

using testing::HasSubstr;

std::string Error(const std::string& text) {
  return std::string(ParseStack(text, "mine.json").status().message());
}

TEST(StackFile, SaysWhatDiffers) {
  const SoftwareStack stack =
      ParseStack(R"({"like": "nemo", "launch_us": 2.5, "step_us": 7, "gathers_ahead": false,
                     "bucket_parameters": 1000, "fp16": {"loss": 8},
                     "attention": "flash2", "bf16_traffic": {"update": 9}})",
                 "mine.json")
          .value();
  const SoftwareStack nemo = FindStack("nemo").value();
  EXPECT_EQ(stack.launch_us, 2.5);
  EXPECT_EQ(stack.step_us, 7);
  EXPECT_FALSE(stack.gathers_ahead);
  EXPECT_EQ(stack.bucket_parameters, 1000);
  EXPECT_EQ(stack.fp16.loss, 8);
  EXPECT_EQ(stack.attention, cost_models::AttentionClass::kFlash2);
  EXPECT_EQ(stack.bf16_traffic.update, 9);
  EXPECT_EQ(stack.bf16_traffic.loss, nemo.bf16_traffic.loss);
  EXPECT_EQ(stack.fp16.gradient, nemo.fp16.gradient);
  EXPECT_TRUE(stack.pipelines_products);
  EXPECT_EQ(ParseStack("{}", "mine.json")->fp16, FindStack("ideal")->fp16);
}

// The text of each says all of it: a field that has no key would be lost.
TEST(StackFile, SaysAllOfEach) {
  for (const SoftwareStack* stack : AllSoftwareStacks()) {
    const std::string text = StackText(*stack);
    const SoftwareStack read = ParseStack(text, "mine.json").value();
    EXPECT_EQ(StackText(read), text) << stack->name;
    for (const ir::DType dtype : {ir::DType::kF16, ir::DType::kBF16}) {
      const StackUse use = {.dtype = dtype, .experts = true};
      lowering::LoweringOptions there, back;
      ASSERT_TRUE(SetStack(stack->name, use, there).ok());
      SetStack(read, use, back);
      EXPECT_EQ(back.stack_memory, there.stack_memory) << stack->name;
      EXPECT_EQ(back.kernels, there.kernels) << stack->name;
    }
  }
}

TEST(StackFile, SaysWhatIsWrong) {
  EXPECT_THAT(Error("[]"), HasSubstr("mine.json: found no JSON object; wanted one, such as {"));
  EXPECT_THAT(Error("{"), HasSubstr("mine.json: found no JSON object"));
  EXPECT_THAT(Error(R"({"like": "abacus"})"),
              HasSubstr("mine.json: like: there is no stack 'abacus'; wanted one of ideal, "));
  EXPECT_THAT(Error(R"({"like": 3})"), HasSubstr("mine.json: like: found 3; wanted ideal, "));
  EXPECT_THAT(
      Error(R"({"lunch_us": 3})"),
      HasSubstr("mine.json: found 'lunch_us'; wanted one of like, fp16, bf16, fp16_traffic, "
                "bf16_traffic, attention, split_loss"));
  EXPECT_EQ(Error(R"({"launch_us": "3"})"),
            "mine.json: launch_us: found \"3\"; wanted a number from 0 to 1e+06");
  EXPECT_EQ(Error(R"({"launch_us": -1})"),
            "mine.json: launch_us: found -1; wanted a number from 0 to 1e+06");
  EXPECT_EQ(Error(R"({"launch_us": 1e300})"),
            "mine.json: launch_us: found 1e+300; wanted a number from 0 to 1e+06");
  EXPECT_EQ(Error(R"({"sum_share": 2})"),
            "mine.json: sum_share: found 2; wanted a number from 0 to 1");
  EXPECT_EQ(Error(R"({"compiles": 1})"), "mine.json: compiles: found 1; wanted true or false");
  EXPECT_EQ(Error(R"({"bucket_parameters": 1.5})"),
            "mine.json: bucket_parameters: found 1.5; wanted a whole number from 0 to 1e+12");
  EXPECT_EQ(Error(R"({"bf16": 4})"),
            "mine.json: bf16: found 4; wanted {gradient, loss, update, sent}");
  EXPECT_EQ(Error(R"({"bf16": {"los": 4}})"),
            "mine.json: bf16: found 'los'; wanted one of gradient, loss, update, sent");
  EXPECT_EQ(Error(R"({"attention": "flash9"})"),
            "mine.json: attention: found \"flash9\"; wanted one of cudnn, flash3, flash2, flash1, "
            "triton, cudnn-fp8");
  EXPECT_EQ(Error(R"({"bf16_traffic": {"loss": -4}})"),
            "mine.json: bf16_traffic.loss: found -4; wanted a number from 0 to 1000");
  EXPECT_THAT(std::string(FindStack("no such.json").status().message()), HasSubstr("no such.json"));
  EXPECT_THAT(std::string(FindStack("abacus").status().message()),
              HasSubstr("or a file that ends in .json"));
}

}  // namespace
}  // namespace stack_file_test_cc
}  // namespace orrery::tools
