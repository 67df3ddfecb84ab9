#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/builder.h"
#include "ir/infer_test_util.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/tensor.h"

// Types, shardings and errors of Lstm, Gru and Rnn: 3 steps of 2 samples, 4 wide, and 5 units. Over
// mesh(dp=2, hp=4).

namespace orrery::ir {
namespace recurrent_types_test_cc {
namespace {

const char kLstm[] = "f32[3,2,4]; f32[1,20,4]; f32[1,20,5]";
const char kGru[] = "f32[3,2,4]; f32[1,15,4]; f32[1,15,5]";
const char kRnn[] = "f32[3,2,4]; f32[1,5,4]; f32[1,5,5]";
const char kY[] = "; f32[3,1,2,5]";

std::string Of(const char* types, const std::string& more) { return absl::StrCat(types, more); }

TEST(RecurrentTypes, OfEachNet) {
  const std::string last = "; f32[1,2,5]";
  Expect({
      {"Rnn", kRnn, "f32[3,1,2,5]" + last},
      {"Gru", kGru, "f32[3,1,2,5]" + last + "; f32[3,1,2,15]"},
      // What comes out of the recurrent product is kept, too.
      {"Gru {linear_before_reset=1}", kGru, "f32[3,1,2,5]" + last + "; f32[3,1,2,20]"},
      {"Lstm", kLstm, "f32[3,1,2,5]" + last + last + "; f32[3,1,2,20]; f32[3,1,2,5]"},
      {"Rnn {direction=\"reverse\"}", kRnn, "f32[3,1,2,5]" + last},
      {"Rnn {direction=\"bidirectional\"}", "f16[3,2,4]; f16[2,5,4]; f16[2,5,5]",
       "f16[3,2,2,5]; f16[2,2,5]"},
      {"Rnn {given=\"bias,sequence_lens,initial_h\"}", Of(kRnn, "; f32[1,10]; i32[2]; f32[1,2,5]"),
       "f32[3,1,2,5]" + last},
      {"Rnn {given=\"initial_h,bias\"}", Of(kRnn, "; f32[1,2,5]; f32[1,10]"),
       "f32[3,1,2,5]" + last},
      {"Lstm {given=\"bias,peepholes,initial_c\"}", Of(kLstm, "; f32[1,40]; f32[1,15]; f32[1,2,5]"),
       "f32[3,1,2,5]" + last + last + "; f32[3,1,2,20]; f32[3,1,2,5]"},
  });
}

// Each sample is by itself; weights are whole, and their gradients sums over samples.
TEST(RecurrentTypes, AreSplitBySamples) {
  const std::string weights = "; f32[1,5,4]; f32[1,5,5]", y = "; f32[3,1,2@dp,5]";
  Expect({
      {"Rnn {given=\"bias,sequence_lens,initial_h\"}",
       "f32[3,2@dp,4]" + weights + "; f32[1,10]; i32[2@dp]; f32[1,2@dp,5]",
       "f32[3,1,2@dp,5]; f32[1,2@dp,5]"},
      {"Rnn", "f32[3,2,4]; f32[1,5,4@hp]; f32[1,5,5]",
       "dimension 2 of operand 1 is split over hp; it must be whole"},
      {"Rnn", "f32[4@hp,2,4]" + weights,
       "dimension 0 of operand 0 is split over hp; it must be whole"},
      {"RnnGrad {given=\"bias\", gradients=\"y\"}",
       "f32[3,2@dp,4]" + weights + "; f32[1,10]" + y + y,
       "f32[3,2@dp,4]; f32[1,5,4] partial(dp); f32[1,5,5] partial(dp); f32[1,10] partial(dp)"},
      {"RnnGrad {given=\"initial_h\", gradients=\"y_h\", without=\"w,r\"}",
       "f32[3,2@dp,4]" + weights + "; f32[1,2@dp,5]" + y + "; f32[1,2@dp,5]",
       "f32[3,2@dp,4]; f32[1,2@dp,5]"},
  });
}

TEST(RecurrentTypes, OfShapesThatDoNotFit) {
  const std::string w = " [directions,gates·hidden,input]", r = " [directions,gates·hidden,hidden]";
  Expect({
      {"Rnn", "f32[3,2,4]; f32[1,5,4]", "got 2 operands; wanted 3, as the attributes name them"},
      {"Rnn {given=\"bias\"}", kRnn, "got 3 operands; wanted 4, as the attributes name them"},
      {"Rnn", "i32[3,2,4]; f32[1,5,4]; f32[1,5,5]", "operand 0 is of i32; wanted floating point"},
      {"Rnn", "f32[3,2,4]; f32[1,5,4]; i32[1,5,5]", "operand 2 is of i32; wanted floating point"},
      {"Rnn", "f32[2,4]; f32[1,5,4]; f32[1,5,5]", "operand 0 has shape [2,4]; wanted 3 dimensions"},
      {"Rnn", "f32[3,2,4]; f32[1,5,4]; f32[5,5]", "operand 2 has shape [5,5]; wanted 3 dimensions"},
      {"Rnn {direction=\"both\"}", kRnn,
       "direction is \"both\"; wanted forward, reverse or bidirectional"},
      {"Rnn {direction=\"bidirectional\"}", kRnn,
       "operand 1 has shape [1,5,4]; wanted [2,5,4]" + w},
      {"Gru", kRnn, "operand 1 has shape [1,5,4]; wanted [1,15,4]" + w},
      {"Gru", "f32[3,2,4]; f32[1,15,4]; f32[1,14,5]",
       "operand 2 has shape [1,14,5]; wanted [1,15,5]" + r},
      {"Gru", "f32[3,2,4]; f32[1,15,3]; f32[1,15,5]",
       "operand 1 has shape [1,15,3]; wanted [1,15,4]" + w},
      {"Rnn", "f32[1,1,1]; f32[1,1,1]; f32[1,1,1099511627776]",
       "operand 1 has shape [1,1,1]; wanted [1,1099511627776,1]" + w},
      {"Rnn", "f32[1,1,1]; f32[1,1,1]; f32[1,1,1099511627777]",
       "got a hidden size of 1099511627777"},
  });
}

TEST(RecurrentTypes, OfWhatIsGivenBesides) {
  const auto named = [](const std::string& name) {
    return absl::StrCat("given names \"", name, "\", which is no operand of it, or twice");
  };
  Expect({
      {"Rnn {given=\"bias\"}", Of(kRnn, "; f32[1,5]"),
       "operand 3 has shape [1,5]; wanted [1,10] (bias)"},
      {"Rnn {given=\"bias\"}", Of(kRnn, "; i32[1,10]"),
       "operand 3 is of i32; wanted floating point"},
      {"Rnn {given=\"sequence_lens\"}", Of(kRnn, "; f32[2]"),
       "operand 3 is of f32; wanted a type of whole numbers"},
      {"Rnn {given=\"sequence_lens\"}", Of(kRnn, "; i32[3]"),
       "operand 3 has shape [3]; wanted [2] (sequence_lens)"},
      {"Rnn {given=\"initial_h\"}", Of(kRnn, "; f32[2,5]"),
       "operand 3 has shape [2,5]; wanted [1,2,5] (initial_h)"},
      {"Lstm {given=\"peepholes\"}", Of(kLstm, "; f32[1,20]"),
       "operand 3 has shape [1,20]; wanted [1,15] (peepholes)"},
      {"Lstm {given=\"initial_c\"}", Of(kLstm, "; f32[1,2,4]"),
       "operand 3 has shape [1,2,4]; wanted [1,2,5] (initial_c)"},
      {"Gru {given=\"peepholes\"}", Of(kGru, "; f32[1,15]"), named("peepholes")},
      {"Rnn {given=\"initial_c\"}", Of(kRnn, "; f32[1,2,5]"), named("initial_c")},
      {"Rnn {given=\"bias,bias\"}", Of(kRnn, "; f32[1,10]; f32[1,10]"), named("bias")},
      {"Lstm {given=\"bias,initial_h,bias\"}", Of(kLstm, "; f32[1,40]; f32[1,2,5]; f32[1,40]"),
       named("bias")},
      {"Lstm {linear_before_reset=1}", kLstm,
       "linear_before_reset=1; wanted 0, as there is no reset"},
      {"Gru {activations=\"Tanh\"}", kGru, "got 1 activations; wanted 2"},
      {"Gru {activations=\"sigmoid,softplus\"}", kGru, "f32[3,1,2,5]; f32[1,2,5]; f32[3,1,2,15]"},
      {"Lstm {activations=\"Tanh,Tanh,Tanh,Tanh\"}", kLstm, "got 4 activations; wanted 3"},
      {"Rnn {activations=\"Tanh\", direction=\"bidirectional\"}",
       "f32[3,2,4]; f32[2,5,4]; f32[2,5,5]", "got 1 activations; wanted 2"},
      {"Rnn {activations=\"Sine\"}", kRnn, "activation \"Sine\" is unknown"},
  });
}

TEST(RecurrentTypes, OfBackward) {
  const std::string saved = absl::StrCat(kY, "; f32[3,1,2,15]"), gru = absl::StrCat(kGru, saved);
  const std::string lstm = absl::StrCat(kLstm, kY, "; f32[3,1,2,20]", kY);
  Expect({
      {"GruGrad {gradients=\"y\"}", gru + kY, kGru},
      {"GruGrad {gradients=\"y,y_h\"}", gru + kY + "; f32[1,2,5]", kGru},
      {"GruGrad {gradients=\"y\", without=\"x,r\"}", gru + kY, "f32[1,15,4]"},
      // There is nothing to differentiate by in lengths.
      {"RnnGrad {given=\"sequence_lens,bias\", gradients=\"y\"}",
       absl::StrCat(kRnn, "; i32[2]; f32[1,10]", kY, kY), absl::StrCat(kRnn, "; f32[1,10]")},
      {"LstmGrad {gradients=\"y_c\"}", lstm + "; f32[1,2,5]", kLstm},
      {"GruGrad {gradients=\"y_c\"}", gru + "; f32[1,2,5]",
       "gradients names \"y_c\"; wanted y, y_h or y_c"},
      {"GruGrad {gradients=\"h\"}", gru + kY, "gradients names \"h\"; wanted y, y_h or y_c"},
      {"GruGrad {gradients=\"gates\"}", gru + kY,
       "gradients names \"gates\"; wanted y, y_h or y_c"},
      {"GruGrad {gradients=\"y,y\"}", gru + kY + kY,
       "gradients names \"y\" twice; wanted y, y_h or y_c"},
      {"GruGrad {gradients=\"y\"}", gru, "got 5 operands; wanted 6, as the attributes name them"},
      {"GruGrad {gradients=\"y\"}", Of(kGru, "; f32[3,1,2,5]; f32[3,1,2,20]; f32[3,1,2,5]"),
       "operand 4 has shape [3,1,2,20]; wanted [3,1,2,15] (gates)"},
      {"GruGrad {gradients=\"y\"}", Of(kGru, "; f32[3,2,5]; f32[3,1,2,15]; f32[3,1,2,5]"),
       "operand 3 has shape [3,2,5]; wanted [3,1,2,5] (y)"},
      {"GruGrad {gradients=\"y_h\"}", gru + kY,
       "operand 5 has shape [3,1,2,5]; wanted [1,2,5] (dy_h)"},
      {"GruGrad {gradients=\"y\"}", gru + "; i32[3,1,2,5]",
       "operand 5 is of i32; wanted floating point"},
      {"LstmGrad {gradients=\"y\"}", absl::StrCat(kLstm, kY, "; f32[3,1,2,20]; f32[1,2,5]", kY),
       "operand 5 has shape [1,2,5]; wanted [3,1,2,5] (cells)"},
      {"GruGrad {gradients=\"y\", without=\"bias\"}", gru + kY,
       "without names \"bias\", which is no operand of the forward"},
      {"GruGrad {gradients=\"y\", without=\"x,y\"}", gru + kY,
       "without names \"y\", which is no operand of the forward"},
  });
}

TEST(RecurrentErrors, OfLengthsThatAreNone) {
  const AttributeSet attributes = {{"given", std::string("sequence_lens")}};
  const Tensor x(DType::kF32, {3, 2, 1}), w(DType::kF32, {1, 1, 1});
  const std::vector<TensorType> results = {{DType::kF32, {3, 1, 2, 1}, {}},
                                           {DType::kF32, {1, 2, 1}, {}}};
  const auto error = [&](int64_t length) {
    const Tensor lengths = Tensor::OfInts(DType::kI64, {2}, {3, length});
    const std::vector<const Tensor*> operands = {&x, &w, &w, &lengths};
    return std::string(Evaluate(OpKind::kRnn, attributes, operands, results).status().message());
  };
  EXPECT_EQ(error(0), "");
  EXPECT_EQ(error(3), "");
  EXPECT_EQ(error(4), "sequence_lens has 4; wanted 0 to 3");
  EXPECT_EQ(error(-1), "sequence_lens has -1; wanted 0 to 3");
}

// What is kept for backward is no result that a model may train by.
TEST(RecurrentErrors, OfGradientsOfWhatIsKept) {
  const auto error = [](int32_t seeded) {
    Builder b("f");
    const auto input = [&](const char* name, Dims dims) {
      return b.Parameter(name, {DType::kF32, std::move(dims), {}});
    };
    const ValueId operands[] = {input("x", {3, 2, 4}), input("w", {1, 20, 4}),
                                input("r", {1, 20, 5})};
    const OpId op = b.Ops(OpKind::kLstm, operands, {}, {});
    std::vector<ValueId> seeds(5);
    const ValueId result = b.function().result(op, seeded);
    seeds[static_cast<size_t>(seeded)] = b.Data("dy", b.type(result));
    IdTable<ValueId, char> needed(b.function().value_limit(), 1);
    GradientContext context(b, op, seeds, needed);
    return std::string(GetOpInfo(OpKind::kLstm).gradient(context).message());
  };
  for (const int32_t result : {0, 1, 2}) EXPECT_EQ(error(result), "") << result;
  EXPECT_EQ(error(3), "no gradient of gates, which are there for the backward");
  EXPECT_EQ(error(4), "no gradient of cells, which are there for the backward");
}

}  // namespace
}  // namespace recurrent_types_test_cc
}  // namespace orrery::ir
