#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "ir/infer_test_util.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/cost_test_util.h"
#include "ir/tensor.h"

// Mamba-2's convolution and scan. That gradients are derivatives and that ranks compute what one
// device does, the examples in tests/ir_text/ops show.

namespace orrery::ir {
namespace selective_scan_test_cc {
namespace {

constexpr int64_t kSeq = 7, kHeads = 4, kWidth = 3, kGroups = 2, kState = 5;

Tensor Random(Dims dims, std::mt19937& random) {
  Tensor tensor(DType::kF64, std::move(dims));
  for (double& value : tensor.floats()) {
    value = static_cast<double>(random() % 2001) / 1000 - 1;
  }
  return tensor;
}

std::vector<Tensor> Operands(int64_t batch) {
  std::mt19937 random(5);
  return {Random({batch, kSeq, kHeads, kWidth}, random),
          Random({batch, kSeq, kHeads}, random),
          Random({batch, kSeq, kGroups, kState}, random),
          Random({batch, kSeq, kGroups, kState}, random),
          Random({kHeads}, random),
          Random({kHeads}, random),
          Random({kHeads}, random)};
}

Tensor Scan(const std::vector<Tensor>& operands, int64_t chunk) {
  std::vector<const Tensor*> pointers;
  for (const Tensor& operand : operands) pointers.push_back(&operand);
  std::vector<Tensor> results = {Tensor(DType::kF64, operands[0].dims())};
  const AttributeSet attributes = {{"chunk", chunk}};
  Evaluation evaluation{.attributes = attributes, .operands = pointers, .results = results};
  EXPECT_TRUE(GetOpInfo(OpKind::kSelectiveScan).evaluate(evaluation).ok());
  return results[0];
}

// The recurrence as the paper has it, one position after the other.
Tensor Recurrence(const std::vector<Tensor>& o) {
  Tensor y(DType::kF64, o[0].dims());
  const int64_t batch = o[0].dims()[0];
  for (int64_t i = 0; i < batch * kHeads; ++i) {
    const int64_t sample = i / kHeads, head = i % kHeads, group = head / (kHeads / kGroups);
    double state[kWidth][kState] = {};
    for (int64_t t = 0; t < kSeq; ++t) {
      const int64_t row = sample * kSeq + t, x = (row * kHeads + head) * kWidth;
      const int64_t bc = (row * kGroups + group) * kState;
      const double dt =
          std::log(1 + std::exp(o[1].Number(row * kHeads + head) + o[6].Number(head)));
      const double a = -std::exp(o[4].Number(head));
      for (int64_t p = 0; p < kWidth; ++p) {
        double sum = o[5].Number(head) * o[0].Number(x + p);
        for (int64_t n = 0; n < kState; ++n) {
          state[p][n] =
              std::exp(dt * a) * state[p][n] + dt * o[2].Number(bc + n) * o[0].Number(x + p);
          sum += state[p][n] * o[3].Number(bc + n);
        }
        y.SetNumber(x + p, sum);
      }
    }
  }
  return y;
}

// However long chunks are: one position, some, with a shorter last one, all.
TEST(SelectiveScan, ComputesTheRecurrence) {
  const std::vector<Tensor> operands = Operands(2);
  const Tensor wanted = Recurrence(operands);
  for (const int64_t chunk : {1, 2, 3, 7, 128}) {
    const Tensor y = Scan(operands, chunk);
    for (int64_t i = 0; i < y.size(); ++i) {
      EXPECT_NEAR(y.Number(i), wanted.Number(i), 1e-12) << "chunk " << chunk << ", " << i;
    }
  }
}

TEST(SelectiveScan, HasTypes) {
  const std::string x = "f16[8@dp,6,4@hp,3]", of_heads = "; f32[4@hp]; f32[4@hp]; f32[4@hp]";
  const std::string operands =
      x + "; f16[8@dp,6,4@hp]; f16[8@dp,6,4@hp,2]; f16[8@dp,6,4@hp,2]" + of_heads;
  Expect({
      {"SelectiveScan", operands, x},
      {"SelectiveScanGrad", operands + "; " + x,
       x + "; f16[8@dp,6,4@hp]; f16[8@dp,6,4@hp,2]; f16[8@dp,6,4@hp,2]; f32[4@hp] partial(dp); "
           "f32[4@hp] partial(dp); f32[4@hp] partial(dp)"},
      {"SelectiveScan",
       "f32[8,4@hp,4,3]; f32[8,4,4]; f32[8,4,2,2]; f32[8,4,2,2]; f32[4]; f32[4]; f32[4]",
       "dimension 1 of operand 0 is split over hp; it must be whole"},
      {"SelectiveScan",
       "f32[8,6,4]; f32[8,6,4]; f32[8,6,2,2]; f32[8,6,2,2]; f32[4]; f32[4]; f32[4]",
       "x and B have shapes [8,6,4] and [8,6,2,2]; wanted [batch,seq,heads,width] and "
       "[batch,seq,groups,state]"},
      {"SelectiveScan",
       "f32[8,6,4,3]; f32[8,6,4]; f32[8,6,3,2]; f32[8,6,3,2]; f32[4]; f32[4]; f32[4]",
       "got 4 heads in 3 groups; wanted as many in each"},
      {"SelectiveScan {chunk=0}",
       "f32[8,6,4,3]; f32[8,6,4]; f32[8,6,2,2]; f32[8,6,2,2]; f32[4]; f32[4]; f32[4]",
       "chunk=0; wanted a positive number"},
      {"SelectiveScan",
       "f32[8,6,4,3]; f32[8,6,2]; f32[8,6,2,2]; f32[8,6,2,2]; f32[4]; f32[4]; f32[4]",
       "operand 1 has shape [8,6,2]; wanted [8,6,4] (one a head)"},
      {"SelectiveScan",
       "f32[8,6,4,3]; f32[8,6,4]; f32[8,6,2,2]; f32[8,6,2,3]; f32[4]; f32[4]; f32[4]",
       "operand 3 has shape [8,6,2,3]; wanted [8,6,2,2] (that of B)"},
      {"SelectiveScan",
       "f32[8,6,4,3]; f32[8,6,4]; f32[8,6,2,2]; f16[8,6,2,2]; f32[4]; f32[4]; f32[4]",
       "element types differ; got f32 and f16"},
  });
}

// Of each position and head: B and x into the state, C out of it, and x by the scores of a chunk of
// 4; of each group the scores.
TEST(SelectiveScan, Costs) {
  const std::string operands =
      "f32[2,8,4,3]; f32[2,8,4]; f32[2,8,2,5]; f32[2,8,2,5]; f32[4]; f32[4]; f32[4]";
  constexpr double kStates = 2 * 16 * 4 * 3 * 5, kScores = 2 * 16 * 4 * 3 * 4,
                   kOfGroups = 2 * 16 * 2 * 5 * 4;
  constexpr double kForward = 2 * kStates + kScores + kOfGroups;
  ExpectFlops({
      {"SelectiveScan {chunk=4}", operands, kForward},
      {"SelectiveScanGrad {chunk=4}", operands + "; f32[2,8,4,3]",
       2 * kForward + kStates + kOfGroups},
      // A chunk is no longer than the sequence.
      {"SelectiveScan", operands, 2 * kStates + 2 * kScores + 2 * kOfGroups},
  });
  // x twice and y; the states of 4 chunks written wide, read, written and read; B and C twice;
  // scores of groups written and read; steps.
  constexpr double kX = 16 * 4 * 3, kState = 4 * 4 * 3 * 5, kB = 16 * 2 * 5, kScore = 16 * 2 * 4;
  ExpectBytes({{"SelectiveScan {chunk=4}", operands,
                4 * (3 * kX + 4 * kState + 4 * kB + 2 * kScore + 8 * 16 * 4)},
               {"SelectiveScanGrad {chunk=4}", operands + "; f32[2,8,4,3]",
                4 * (11 * kX + 11 * kState + 9 * kB + 6 * kScore + 20 * 16 * 4)}});
}

TEST(CausalConv, SeesItselfAndThoseBefore) {
  const Tensor x = Tensor::OfFloats(DType::kF64, {1, 4, 2}, {1, 10, 2, 20, 3, 30, 4, 40});
  const Tensor w = Tensor::OfFloats(DType::kF64, {2, 3}, {100, 10, 1, 0, 0, 2});
  const Tensor bias = Tensor::OfFloats(DType::kF64, {2}, {0, 0.5});
  const std::vector<const Tensor*> operands = {&x, &w, &bias};
  std::vector<Tensor> results = {Tensor(DType::kF64, x.dims())};
  Evaluation evaluation{.attributes = {}, .operands = operands, .results = results};
  ASSERT_TRUE(GetOpInfo(OpKind::kCausalConv).evaluate(evaluation).ok());
  EXPECT_EQ(results[0].floats(), (std::vector<double>{1, 20.5, 12, 40.5, 123, 60.5, 234, 80.5}));
}

TEST(CausalConv, HasTypes) {
  Expect({
      {"CausalConv", "f16[8@dp,6,4@hp]; f16[4@hp,3]; f16[4@hp]", "f16[8@dp,6,4@hp]"},
      {"CausalConvGrad", "f16[8@dp,6,4@hp]; f16[4@hp,3]; f16[4@hp]; f16[8@dp,6,4@hp]",
       "f16[8@dp,6,4@hp]; f16[4@hp,3] partial(dp); f16[4@hp] partial(dp)"},
      {"CausalConv", "f32[8,4@hp,4]; f32[4,3]; f32[4]",
       "dimension 1 of operand 0 is split over hp; it must be whole"},
      {"CausalConv", "f32[8,6,4]; f32[3,4]; f32[4]",
       "got shapes [8,6,4] and [3,4]; wanted [batch,seq,channels] and [channels,width]"},
      {"CausalConv", "f32[8,6,4]; f32[4,3]; f32[3]",
       "operand 2 has shape [3]; wanted [4] (one a channel)"},
      {"CausalConv", "f32[8,6,4]; f16[4,3]; f32[4]", "element types differ; got f32 and f16"},
      {"CausalConv {activation=\"relu\"}", "f32[8,6,4]; f32[4,3]; f32[4]",
       "activation=\"relu\"; wanted \"silu\" or none"},
      {"CausalConvGrad", "f32[8,6,4]; f32[4,3]; f32[4]; f32[8,6,3]",
       "operand 3 has shape [8,6,3]; wanted [8,6,4] (that of x)"},
  });
}

TEST(CausalConv, Costs) {
  ExpectFlops({
      {"CausalConv", "f32[2,3,5]; f32[5,4]; f32[5]", 2 * 4 * 30},
      {"CausalConv {activation=\"silu\"}", "f32[2,3,5]; f32[5,4]; f32[5]", (2 * 4 + 4 + 3) * 30},
      {"CausalConvGrad", "f32[2,3,5]; f32[5,4]; f32[5]; f32[2,3,5]", 3 * 2 * 4 * 30},
  });
}

}  // namespace
}  // namespace selective_scan_test_cc
}  // namespace orrery::ir
