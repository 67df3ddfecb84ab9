#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/cli/run.h"

// `opt --kernels`: what a stack makes of a function; and texts with dead ops.

namespace orrery::cli {
namespace opt_kernels_test_cc {
namespace {

using testing::HasSubstr;

// E = D + (A + B) C, by hand: nine tensors of 4 MiB op by op, five of one kernel.
constexpr char kChain[] = R"(func @chain (
  %A: f32[1024,1024] data, %B: f32[1024,1024] data, %C: f32[1024,1024] data, %D: f32[1024,1024] data
) {
  %s: f32[1024,1024] = Add(%A, %B)
  %p: f32[1024,1024] = Mul(%s, %C)
  %E: f32[1024,1024] = Add(%p, %D)
  return %E: result
})";

nlohmann::json Listed(const std::string& flags) {
  Write("chain.orr", kChain);
  const Finished finished = Execute(absl::StrCat("opt chain.orr --kernels --json ", flags));
  EXPECT_EQ(finished.code, 0) << finished.err;
  return nlohmann::json::parse(finished.out);
}

TEST(OptKernels, FuseAChain) {
  for (const char* stack : {"torch-compile", "nemo", "compiler"}) {
    const nlohmann::json listed = Listed(absl::StrCat("--device h100 --stack ", stack));
    EXPECT_EQ(listed["op_by_op"]["bytes"], 36 << 20) << stack;
    EXPECT_EQ(listed["total"]["bytes"], 20 << 20) << stack;
    EXPECT_EQ(listed["total"]["launches"], 1) << stack;
    EXPECT_EQ(listed["op_by_op"]["launches"], 3) << stack;
    EXPECT_DOUBLE_EQ(listed["total"]["flops_per_byte"].get<double>(), 3.0 / 20) << stack;
    EXPECT_DOUBLE_EQ(listed["op_by_op"]["flops_per_byte"].get<double>(), 3.0 / 36) << stack;
    EXPECT_EQ(listed["kernels"][0]["read_bytes"], 16 << 20) << stack;
    EXPECT_EQ(listed["kernels"][0]["inside"], 2) << stack;
  }
  const nlohmann::json ideal = Listed("--stack ideal");
  EXPECT_EQ(ideal["total"], ideal["op_by_op"]);
}

// A captured graph's kernel starts 2.58 us after the one before on an H100; by the host 5 us.
TEST(OptKernels, StartFasterInAGraph) {
  const nlohmann::json host = Listed("--device h100"),
                       graph = Listed("--device h100 --stack compiler");
  EXPECT_DOUBLE_EQ(host["start_s"], 5e-6);
  EXPECT_DOUBLE_EQ(graph["start_s"], 2.58e-6);
  EXPECT_DOUBLE_EQ(graph["host_start_s"], 5e-6);
  EXPECT_NEAR(host["total"]["time_s"].get<double>() - graph["total"]["time_s"].get<double>(),
              2.42e-6, 1e-11);
}

TEST(OptKernels, SayWhatIsNotPossible) {
  Write("chain.orr", kChain);
  EXPECT_THAT(Execute("opt chain.orr --stack compiler").err,
              HasSubstr("--stack, --device: wanted with --kernels alone"));
  EXPECT_THAT(Execute("opt chain.orr --kernels --summary").err,
              HasSubstr("--summary, --kernels: each prints something else"));
  EXPECT_THAT(Execute("opt chain.orr --summary --hp 2").err,
              HasSubstr("--summary: got --stages or a flag of plans"));
  for (const char* flags : {"--stages", "--hp 2", "--dp 4", "--pp 2 --stages", "--zero 1 --dp 2"}) {
    const Finished finished = Execute(absl::StrCat("opt chain.orr --kernels ", flags));
    EXPECT_EQ(finished.code, 1) << flags;
    EXPECT_EQ(finished.out, "") << flags;
    EXPECT_THAT(finished.err, HasSubstr("--kernels: got --stages or a flag of plans, which make "
                                        "functions of each stage; wanted one function"))
        << flags;
  }
  EXPECT_THAT(Execute("opt chain.orr --kernels --device abacus").err,
              HasSubstr("--device: device 'abacus' is unknown"));
  EXPECT_THAT(Execute("opt chain.orr --kernels --stack abacus").err,
              HasSubstr("--stack: there is no stack 'abacus'"));
}

// The step is the one that opt prints without --kernels, also of narrow products.
TEST(OptKernels, ListTheStepThatIsPrinted) {
  const std::string step = "opt mlp:layers=2,dim=256 --batch-size 256 --step --dtype fp8-mixed";
  EXPECT_THAT(Execute(step).out, HasSubstr(" Cast("));
  EXPECT_THAT(Execute(absl::StrCat(step, " --kernels --stack ideal")).out, HasSubstr("  Cast "));
}

// Gradients of a product are two kernels, each with a launch.
TEST(OptKernels, CountLaunches) {
  Write("back.orr", R"(func @f (
  %x: f32[8,16] data, %w: f32[16,4] parameter, %dy: f32[8,4] saved
) {
  %dx: f32[8,16], %dw: f32[16,4] = MatMulGrad(%x, %w, %dy)
  %y: f32[8,16] = Relu(%dx)
  return %y: result, %dw: result
})");
  const std::string text = Execute("opt back.orr --kernels").out;
  EXPECT_THAT(text, testing::ContainsRegex("MatMulGrad .* 1-2 "));
  EXPECT_THAT(text, HasSubstr("  launches      3; op by op 3\n"));
  const auto json = nlohmann::json::parse(Execute("opt back.orr --kernels --json").out);
  EXPECT_EQ(json["kernels"][0]["launches"], 2);
  EXPECT_EQ(json["kernels"][1]["launch"], 3);
  EXPECT_EQ(json["total"]["launches"], 3);
}

constexpr char kDead[] = R"(func @f (
  %x: f32[8,4] data
) {
  %a: f32[8,4] = Relu(%x)
  %b: f32[8,4] = Exp(%a)
  %y: f32[8,4] = Neg(%a)
  return %y: result
})";

TEST(Opt, RemovesDeadOpsOfAText) {
  Write("dead.orr", kDead);
  EXPECT_THAT(Execute("opt dead.orr").err,
              HasSubstr("dead.orr: f: %b (Exp): nothing uses its results; wanted no dead op; opt "
                        "FILE.orr --passes dead-code prints the text without it"));
  const Finished cleaned = Execute("opt dead.orr --passes dead-code --verify-each");
  EXPECT_EQ(cleaned.code, 0) << cleaned.err;
  EXPECT_EQ(cleaned.out, R"(func @f (
  %x: f32[8,4] data
) {
  %a: f32[8,4] = Relu(%x)
  %y: f32[8,4] = Neg(%a)
  return %y: result
}
)");
  EXPECT_THAT(Execute("opt dead.orr --passes simplify,dead-code").err, HasSubstr("dead op"));
  EXPECT_THAT(Execute("opt dead.orr --passes dead-code --batch-size 16").err,
              HasSubstr("dead.orr: has dead ops; wanted --passes dead-code without --batch-size"));
}

}  // namespace
}  // namespace opt_kernels_test_cc
}  // namespace orrery::cli
