#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "support/paths_test_util.h"
#include "tests/cli/run.h"

// examples/profile_gpu.py, on the CPU, where PyTorch is installed.

namespace orrery::cli {
namespace profile_gpu_test_cc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// How Python ended, which runs in the folder of the test; what it printed is in python.txt.
int Python(const std::string& arguments) {
  const std::string line = absl::StrCat("cd ", Folder(), " && PATH=/usr/bin:$PATH timeout 300 ",
                                        "python3 ", arguments, " >python.txt 2>&1");
  const int status = std::system(line.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

const std::string kScript = SourceDir() + "/examples/profile_gpu.py ";
const std::string kTiny = kScript + "--device cpu --seconds 0.01 --like like.csv --out k.csv";

class ProfileGpu : public testing::Test {
 protected:
  void SetUp() override {
    Clear();
    if (Python("-c 'import torch'") != 0) {
      GTEST_SKIP() << "PyTorch is not installed: python3-torch of Debian";
    }
    Write("like.csv",
          "# of a device that has no types of 8 bits\n"
          "op,dtype,shape,layout,seconds,direction\n"
          "matmul,f32,32x128x64,TN,1,\n"
          "matmul,f32,32x128x64,NT,1,\n"
          "matmul,f32,32x128x64,TN,2,\n"
          "matmul,bf16,\"4,32,48,64\",NN,1,\n"
          "matmul,f8,32x32x32,TN,1,\n"
          "grouped,f32,4x16x32x64,TN,1,\n"
          "attention,f32,2x2x16x8,causal,1,\n"
          "attention,f32,2x2x16x8,causal,1,backward\n"
          "elementwise,f32,65536,,1,\n"
          "layer,f32,2x16x32x2x64,,1,forward\n"
          "layer,f32,2x16x32x2x64,,1,backward\n");
  }
};

TEST_F(ProfileGpu, MeasuresWhatSimulateReads) {
  ASSERT_EQ(Python(kTiny + " --name h100"), 0) << Contents("python.txt");
  const std::string table = Contents("k.csv");
  EXPECT_THAT(table, HasSubstr("# device cpu"));
  EXPECT_THAT(table, HasSubstr("\n# torch "));
  EXPECT_THAT(table, HasSubstr("\n# not measured: 1 of matmul f8: "));
  EXPECT_THAT(table, HasSubstr("\nmatmul,f32,32x128x64,NT,"));
  EXPECT_THAT(table, HasSubstr("\ngrouped,f32,4x16x32x64,TN,"));
  EXPECT_THAT(table, HasSubstr("\nelementwise,f32,65536,,"));
  // 2 x 16 rows of 64 into 128: the first product of the MLP. Once: rows of one kernel are one.
  const Finished finished = Execute(
      "simulate --model mlp:layers=1,dim=64 --batch-size 64 --dtype fp32 --cluster "
      "uniform:1@8Gbps,device=h100-80gb --json step.json --cost-model kernels:k.csv");
  ASSERT_EQ(finished.code, 0) << finished.err;
  const nlohmann::json step = nlohmann::json::parse(Contents("step.json"));
  EXPECT_GT(step["kernel_shares"]["interpolated"], 0.0);
  EXPECT_EQ(step["assumed"], "");
}

// As PyTorch 2 has it, which this one may lack: attention by products.
constexpr const char* kWithAttention =
    "import math, runpy, sys, torch\n"
    "def attend(q, k, v, is_causal=False):\n"
    "    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])\n"
    "    if is_causal:\n"
    "        scores = scores.masked_fill(torch.ones(scores.shape[-2:]).triu(1) > 0, -1e9)\n"
    "    return scores.softmax(-1) @ v\n"
    "torch.nn.functional.scaled_dot_product_attention = attend\n"
    "sys.argv = sys.argv[1:]\n"
    "runpy.run_path(sys.argv[0], run_name='__main__')\n";

TEST_F(ProfileGpu, MeasuresAttentionAndLayers) {
  Write("with_attention.py", kWithAttention);
  ASSERT_EQ(Python("with_attention.py " + kTiny), 0) << Contents("python.txt");
  const std::string table = Contents("k.csv");
  for (const char* row : {"\nattention,f32,2x2x16x8,causal,", "\nlayer,f32,2x16x32x2x64,,"}) {
    EXPECT_THAT(table, HasSubstr(row));
  }
  EXPECT_THAT(table, HasSubstr(",,backward,"));
  EXPECT_THAT(table, Not(HasSubstr("of attention")));
  EXPECT_EQ(
      Execute("simulate --model mlp:layers=1,dim=64 --batch-size 64 --cluster uniform:1@8Gbps "
              "--cost-model kernels:k.csv")
          .code,
      0);
}

// Interrupts a script once it says what it is about to do, and ends as it does.
constexpr const char* kInterrupt =
    "import signal, subprocess, sys\n"
    "signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
    "child = subprocess.Popen([sys.executable] + sys.argv[1:], stderr=subprocess.PIPE, text=True)\n"
    "print(child.stderr.readline())\n"
    "child.send_signal(signal.SIGINT)\n"
    "print(child.stderr.read())\n"
    "sys.exit(child.wait())\n";

TEST_F(ProfileGpu, LeavesNoHalfFile) {
  Write("interrupt.py", kInterrupt);
  const std::string slow = kScript + "--device cpu --seconds 60 --like like.csv --out k.csv";
  EXPECT_EQ(Python("interrupt.py " + slow), 130) << Contents("python.txt");
  EXPECT_THAT(Contents("python.txt"), HasSubstr("profile_gpu.py: stopped; nothing was written"));
  EXPECT_THAT(Left(), ElementsAre("python.txt"));
}

TEST_F(ProfileGpu, SaysWhatIsWrong) {
  EXPECT_EQ(Python(kScript + "--help"), 0);
  EXPECT_THAT(Contents("python.txt"), HasSubstr("Takes some 7 minutes with CUDA"));
  EXPECT_EQ(Python(kScript + "--device cpu --dtypes f64"), 1);
  EXPECT_THAT(Contents("python.txt"), HasSubstr("--dtypes 'f64': wanted some of bf16,f16,f32,f8"));
  Write("like.csv", "op,dtype,shape\nconv,f32,1x2x3\n");
  EXPECT_EQ(Python(kTiny), 1);
  EXPECT_THAT(Contents("python.txt"), HasSubstr("like.csv: got op 'conv'; wanted one of matmul"));
}

// Whose attention is of attention alone: where PyTorch cannot choose, all else is measured.
TEST_F(ProfileGpu, ChoosesAttentionOfAttentionAlone) {
  ASSERT_EQ(Python(kTiny + " --attention cudnn"), 0) << Contents("python.txt");
  const std::string table = Contents("k.csv");
  EXPECT_THAT(table, HasSubstr("# attention cudnn\n"));
  EXPECT_THAT(table, HasSubstr("matmul,f32,32x128x64,TN,"));
  EXPECT_THAT(table, HasSubstr("# not measured: 2 of attention f32: "));
  EXPECT_EQ(Python(kTiny + " --attention flash9"), 2);
  EXPECT_THAT(Contents("python.txt"), HasSubstr("invalid choice: 'flash9'"));
}

TEST_F(ProfileGpu, ReadsTheDriversVersion) {
  const std::string of = "-c 'import sys; sys.path.insert(0, \"" + SourceDir() +
                         "/examples\"); from profile_gpu import version_in; print(version_in(\"";
  Python(of + "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release\"))'");
  EXPECT_EQ(Contents("python.txt"), "580.159.04\n");
  Python(of + "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19\"))'");
  EXPECT_EQ(Contents("python.txt"), "535.104.05\n");
  Python(of + "\"))'");
  EXPECT_EQ(Contents("python.txt"), "unknown\n");
}

// examples/measure_steps.py wants a newer PyTorch than Debian has, and a GPU: says so, or names its
// rows.
TEST(MeasureSteps, SaysWhatItWants) {
  EXPECT_EQ(Python(SourceDir() + "/examples/measure_steps.py --only nosuchrow"), 1);
  EXPECT_THAT(Contents("python.txt"),
              testing::AnyOf(HasSubstr("wanted PyTorch 2.6 or newer"),
                             HasSubstr("--only 'nosuchrow' is in none of gpt2-124m-b1, ")));
}

}  // namespace
}  // namespace profile_gpu_test_cc
}  // namespace orrery::cli
