#include "cost_models/summary.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ir/text/text.h"

namespace orrery::cost_models {
namespace summary_test_cc {
namespace {

// Two products with a view between them, and the backward of both.
constexpr char kStep[] = R"(
func @step (
  %x: f32[8,16] data,
  %z: f32[8,4] data,
  %w0: f32[16,16] parameter,
  %w1: f32[16,4] parameter,
  %scale: f32[4] buffer
) {
  %y0: f32[8,16] = MatMul(%x, %w0)
  %a0: f32[8,16] = Relu(%y0)
  %v: f32[8,16] = Identity(%a0)
  %y1: f32[8,4] = MatMul(%v, %w1)
  %p: f32[8,4] = Mul(%y1, %scale)
  %l: f32[8,4] = Loss(%p, %z) {batch=8}
  %dp: f32[8,4] = LossGrad(%p, %z) {batch=8}
  %dy1: f32[8,4] = Mul(%dp, %scale)
  %dv: f32[8,16], %dw1: f32[16,4] = MatMulGrad(%v, %w1, %dy1)
  %da: f32[8,16] = ReluGrad(%a0, %dv)
  %dw0: f32[16,16] = MatMul(%x, %da) {transpose_x=1}
  return %l: loss, %dw1: gradient(%w1), %dw0: gradient(%w0)
}
)";

Summary Of(const std::string& text) {
  const auto function = ir::ParseFunction(text);
  EXPECT_TRUE(function.ok()) << function.status();
  return Summarize(*function);
}

TEST(Summary, CountsByHand) {
  const Summary s = Of(kStep);
  EXPECT_EQ(s.parameters.elements, 16 * 16 + 16 * 4);
  EXPECT_EQ(s.parameters.bytes, Bytes(4 * (16 * 16 + 16 * 4)));
  EXPECT_EQ(s.buffers.elements, 4);
  const Work &forward = s.phase(Phase::kForward), &backward = s.phase(Phase::kBackward);
  EXPECT_EQ(forward.ops, 6);
  EXPECT_EQ(forward.kernels, 5);  // Identity is a view
  EXPECT_EQ(backward.ops, 5);
  EXPECT_EQ(backward.kernels, 6);  // MatMulGrad is two
  EXPECT_EQ(forward.model_flops, Flops(2 * 8 * 16 * 16 + 2 * 8 * 16 * 4));
  EXPECT_EQ(forward.flops, Flops(2 * 8 * 16 * 16 + 2 * 8 * 16 * 4 + 8 * 16 + 2 * 8 * 4));
  EXPECT_EQ(backward.model_flops, Flops(4 * 8 * 16 * 4 + 2 * 8 * 16 * 16));
  EXPECT_EQ(forward.moved, Bytes(4 * (8 * 16 * 2 + 16 * 16 + 8 * 16 * 2 + 8 * 16 + 16 * 4 + 8 * 4 +
                                      8 * 4 * 2 + 4 + 8 * 4 * 3)));
  // %a0, which %v is a view of, and %p; neither the data nor %y0.
  EXPECT_EQ(s.saved_activations, Bytes(4 * (8 * 16 + 8 * 4)));
}

TEST(Summary, IsOfOneRank) {
  const Summary s = Of(R"(
func @f mesh(dp=2, hp=4) (
  %x: f32[8@dp,16] data,
  %w: f32[16,8@hp] parameter
) {
  %y: f32[8@dp,8@hp] = MatMul(%x, %w)
  return %y: result
}
)");
  EXPECT_EQ(s.parameters.elements, 16 * 2);
  EXPECT_EQ(s.total().flops, Flops(2 * 4 * 16 * 2));
  EXPECT_EQ(s.saved_activations, Bytes(0));
}

TEST(Summary, Text) {
  EXPECT_EQ(absl::StrCat("\n", SummaryText(Of(kStep), "step.orr")), R"(
model              step.orr
parameters         320 (1.25 KiB)
buffers            4 (16 B)
saved activations  640 B

phase     ops  kernels  model flops   all flops  bytes moved  flops a byte
forward     6        5   5.12 kFLOP  5.31 kFLOP     4.52 KiB           1.1
backward    5        6   6.14 kFLOP  6.34 kFLOP     5.77 KiB           1.1
total      11       11   11.3 kFLOP  11.6 kFLOP     10.3 KiB           1.1

op          count  kernels       flops   share  bytes moved
MatMul          3        3  9.22 kFLOP  79.1 %     4.88 KiB
MatMulGrad      1        2  2.05 kFLOP  17.6 %     1.62 KiB
Relu            1        1    128 FLOP   1.1 %     1.00 KiB
ReluGrad        1        1    128 FLOP   1.1 %     1.50 KiB
Mul             2        2   64.0 FLOP   0.5 %        544 B
Loss            1        1   32.0 FLOP   0.3 %        384 B
LossGrad        1        1   32.0 FLOP   0.3 %        384 B
Identity        1        0           0   0.0 %          0 B
)");
}

TEST(Summary, Json) {
  EXPECT_EQ(absl::StrCat("\n", SummaryJson(Of(R"(
func @f (%x: bf16[8,16] data, %w: bf16[16,8] parameter) {
  %y: bf16[8,8] = MatMul(%x, %w)
  return %y: result
}
)"),
                                           "a \"b\"")),
            R"(
{
  "model": "a \"b\"",
  "parameters": 128,
  "parameter_bytes": 256,
  "buffers": 0,
  "buffer_bytes": 0,
  "optimizer_state_bytes": 0,
  "saved_activation_bytes": 0,
  "forward": {"ops": 1, "kernels": 1, "model_flops": 2048, "flops": 2048, "bytes_moved": 640, "intensity": 3.2000000000000002},
  "backward": {"ops": 0, "kernels": 0, "model_flops": 0, "flops": 0, "bytes_moved": 0, "intensity": 0},
  "optimizer": {"ops": 0, "kernels": 0, "model_flops": 0, "flops": 0, "bytes_moved": 0, "intensity": 0},
  "total": {"ops": 1, "kernels": 1, "model_flops": 2048, "flops": 2048, "bytes_moved": 640, "intensity": 3.2000000000000002},
  "kinds": {
    "MatMul": {"ops": 1, "kernels": 1, "model_flops": 2048, "flops": 2048, "bytes_moved": 640, "intensity": 3.2000000000000002}
  }
}
)");
}

// Names of files are any bytes; JSON is UTF-8.
TEST(Summary, JsonIsUtf8) {
  const std::string json = SummaryJson(Summary(), "é\xff.onnx");
  EXPECT_TRUE(absl::StartsWith(json, "{\n  \"model\": \"é\xEF\xBF\xBD.onnx\",\n")) << json;
}

}  // namespace
}  // namespace summary_test_cc
}  // namespace orrery::cost_models
