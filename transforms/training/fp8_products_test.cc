#include "transforms/training/fp8_products.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "ir/models/mlp.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/text/text.h"
#include "transforms/training/training_step.h"

namespace orrery::transforms {
namespace fp8_products_test_cc {
namespace {

using ir::Function;
using ir::OpId;
using ir::OpKind;

constexpr char kTwoLayers[] = R"(func @f (
  %x: bf16[32,64] data,
  %w0: bf16[64,32] parameter,
  %w1: bf16[32,48] parameter
) {
  %h: bf16[32,32] = MatMul(%x, %w0)
  %a: bf16[32,32] = Gelu(%h)
  %y: bf16[32,48] = MatMul(%a, %w1)
  return %y: result
}
)";

Function Parsed(const std::string& text) {
  const auto function = ir::ParseFunction(text);
  EXPECT_TRUE(function.ok()) << function.status();
  return *function;
}

// "h:2 y:2; a": the products with how many operands they read in 8 bits, and what is not wanted in
// 16. Behind it weights with copies for the whole step, which without an optimizer only frozen ones
// have.
std::string Found(const std::string& text) {
  const Function function = Parsed(text);
  const Fp8Products found = FindFp8Products(function);
  std::vector<std::string> products, only;
  for (const OpId op : function.order()) {
    const ir::ValueId result = function.result(op);
    const std::string name(function.value_name(result));
    if (found.operands[op] > 0) products.push_back(absl::StrCat(name, ":", found.operands[op]));
    if (found.only_in_copies[result] != 0) only.push_back(name);
  }
  std::string copied;
  for (const ir::Input& input : function.inputs()) {
    if (found.weights.contains(input.value)) {
      absl::StrAppend(&copied, "; ", function.value_name(input.value));
    }
  }
  return absl::StrCat(absl::StrJoin(products, " "), "; ", absl::StrJoin(only, " "), copied);
}

std::string FoundWith(const std::vector<std::pair<std::string, std::string>>& changes) {
  return Found(absl::StrReplaceAll(kTwoLayers, changes));
}

TEST(FindFp8Products, AreLinearLayers) {
  EXPECT_EQ(Found(kTwoLayers), "h:2 y:2; a");
  EXPECT_EQ(FoundWith({{"bf16", "f16"}}), "h:2 y:2; a");
}

TEST(FindFp8Products, HaveWeightsOf16Bits) {
  EXPECT_EQ(FoundWith({{"bf16", "f32"}}), "; ");
  const std::string frozen = "%w0: bf16[64,32] buffer";
  EXPECT_EQ(FoundWith({{"%w0: bf16[64,32] parameter", frozen}}), "h:2 y:2; a; w0");
  EXPECT_EQ(FoundWith({{"%w0: bf16[64,32] parameter", frozen},
                       {"return %y: result", "return %y: result, %w0: updated(%w0)"}}),
            "y:2; a")
      << "what changes is no weight";
  EXPECT_EQ(FoundWith({{"%w1: bf16[32,48] parameter", "%w1: bf16[32,48] data"}}), "h:2; ");
}

// Multiples of 16 all three: of rows, of columns, of what is summed over.
TEST(FindFp8Products, HaveSizesThatKernelsTake) {
  EXPECT_EQ(FoundWith({{"[32,48]", "[32,40]"}}), "h:2; ");
  EXPECT_EQ(FoundWith({{"[32,48]", "[32,16]"}}), "h:2 y:2; a");
  EXPECT_EQ(FoundWith({{"x: bf16[32,64]", "x: bf16[32,72]"}, {"[64,32]", "[72,32]"}}), "y:2; a");
  // 24 rows, of both.
  EXPECT_EQ(FoundWith({{"x: bf16[32,64]", "x: bf16[24,64]"},
                       {"h: bf16[32,32]", "h: bf16[24,32]"},
                       {"a: bf16[32,32]", "a: bf16[24,32]"},
                       {"y: bf16[32,48]", "y: bf16[24,48]"}}),
            "; ");
  EXPECT_EQ(kFp8Multiple, 16);
  // Products in 4 bits want multiples of 32.
  const Function function = Parsed(absl::StrReplaceAll(kTwoLayers, {{"[32,48]", "[32,64]"}}));
  const auto count = [](const Function& f, ir::DType copies) {
    const Fp8Products found = FindFp8Products(f, copies);
    int products = 0;
    for (const OpId op : f.order()) products += found.operands[op] > 0 ? 1 : 0;
    return products;
  };
  EXPECT_EQ(count(function, ir::DType::kF4), 2);
  EXPECT_EQ(count(Parsed(kTwoLayers), ir::DType::kF4), 1);
  EXPECT_EQ(count(Parsed(kTwoLayers), ir::DType::kF8), 2);
  // Those with a scale a block of 128.
  EXPECT_EQ(count(function, ir::DType::kF8Block), 0);
  EXPECT_EQ(kFp8BlockMultiple, 128);
}

// What each rank has counts: 64 rows on 4 ranks do, 32 do not.
TEST(FindFp8Products, CountWhatARankHas) {
  const auto on_ranks = [](int64_t rows) {
    return Found(absl::StrReplaceAll(R"(func @f mesh(dp=4) (
  %x: bf16[N@dp,64] data,
  %w: bf16[64,32] parameter
) {
  %y: bf16[N@dp,32] = MatMul(%x, %w)
  return %y: result
}
)",
                                     {{"N", absl::StrCat(rows)}}));
  };
  EXPECT_EQ(on_ranks(64), "y:2; ");
  EXPECT_EQ(on_ranks(32), "; ");
}

// With the last layer's result as what goes into a softmax, as it is or by way of a bias.
TEST(FindFp8Products, AreNoLogits) {
  EXPECT_EQ(FoundWith({{"  return %y: result",
                        "  %p: bf16[32,48] = Softmax(%y) {axis=1}\n  return %p: result"}}),
            "h:2; ");
  EXPECT_EQ(FoundWith({{"  %w1:", "  %b: bf16[48] parameter,\n  %w1:"},
                       {"  return %y: result",
                        "  %z: bf16[32,48] = Add(%y, %b)\n"
                        "  %p: bf16[32,48] = Softmax(%z) {axis=1}\n  return %p: result"}}),
            "h:2; ");
}

// A residual stream goes on to the logits, and its layers are products all the same.
TEST(FindFp8Products, AreWhatAResidualStreamAddsUp) {
  EXPECT_EQ(FoundWith({{"[32,48]", "[32,32]"},
                       {"  return %y: result",
                        "  %z: bf16[32,32] = Add(%y, %h)\n"
                        "  %p: bf16[32,32] = Softmax(%z) {axis=1}\n  return %p: result"}}),
            "h:2 y:2; a");
}

// One product that has to read a weight in 16 bits is enough for all that read it.
TEST(FindFp8Products, AgreeAboutAWeight) {
  EXPECT_EQ(
      FoundWith({{"  %w1:", "  %x2: bf16[24,64] data,\n  %w1:"},
                 {"  return %y: result",
                  "  %h2: bf16[24,32] = MatMul(%x2, %w0)\n  return %y: result, %h2: result"}}),
      "y:2; a");
}

// What something else reads, too, is wanted in 16 bits.
TEST(FindFp8Products, LeaveWhatOthersRead) {
  EXPECT_EQ(FoundWith({{"return %y: result", "return %y: result, %a: result"}}), "h:2 y:2; ");
  EXPECT_EQ(FoundWith({{"  return %y: result",
                        "  %t: bf16[32,32] = Gelu(%a)\n  return %y: result, %t: result"}}),
            "h:2 y:2; ");
}

Function MlpStep(int64_t dim, const std::string& optimizer) {
  Function step =
      ir::Mlp({.layers = 4, .dim = dim, .batch = 192, .dtype = ir::DType::kBF16}).value();
  EXPECT_TRUE(AppendOptimizer(step, optimizer).value());
  return step;
}

// Forward and both products of backward, of each layer; the update copies each weight.
TEST(FindFp8Products, AreThoseOfBackwardToo) {
  for (const char* optimizer : {"sgd", "adam"}) {
    const Function step = MlpStep(64, optimizer);
    const Fp8Products found = FindFp8Products(step);
    int forward = 0;
    for (const OpId op : step.order()) {
      const OpKind kind = step.kind(op);
      const int wanted = kind == OpKind::kMatMulGrad                                    ? 3
                         : kind == OpKind::kMatMul || kind == OpKind::kMatMulWeightGrad ? 2
                                                                                        : 0;
      EXPECT_EQ(found.operands[op], wanted) << step.info(op).name;
      forward += kind == OpKind::kMatMul ? 1 : 0;
    }
    EXPECT_GE(forward, 4);
    EXPECT_EQ(found.weights.size(), 4u) << optimizer;
  }
  const Fp8Products none = FindFp8Products(MlpStep(40, "sgd"));
  EXPECT_TRUE(none.weights.empty());
  EXPECT_EQ(std::ranges::count(none.operands.rows(), 0), none.operands.size());
}

constexpr char kMoves[] = R"(func @f mesh(dp=2) (
  %x: bf16[8@dp,16] data
) {
  %gathered: bf16[8,16] = AllGather(%x) {axes="dp", dim=0}
  %turned: bf16[16,8] = Transpose(%gathered) {perm=[1, 0]}
  %flat: bf16[128] = Reshape(%turned) {shape=[128]}
  %same: bf16[128] = Identity(%flat)
  %sum: bf16[128] = Add(%same, %flat)
  %gelu: bf16[128] = Gelu(%sum)
  %copy: f8[128] = Cast(%gelu) {to="f8"}
  %wide: f32[128] = Cast(%copy) {to="f32"}
  %again: f8[128] = Cast(%copy) {to="f8"}
  return %wide: result, %again: result
}
)";

TEST(MovesCopies, WhereElementsAreOnlyMoved) {
  const Function function = Parsed(kMoves);
  std::vector<std::string> moves, copies;
  for (const OpId op : function.order()) {
    const std::string name(function.value_name(function.result(op)));
    if (MovesCopies(function, op)) moves.push_back(name);
    if (MakesCopy(function, op)) copies.push_back(name);
  }
  EXPECT_THAT(moves, testing::ElementsAre("gathered", "turned", "flat", "same"));
  EXPECT_THAT(copies, testing::ElementsAre("copy"));  // of something wider
}

}  // namespace
}  // namespace fp8_products_test_cc
}  // namespace orrery::transforms
