#include "ir/op_info.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/names.h"
#include "ir/op_kind.h"
#include "ir/text/text.h"
#include "tests/ir_text/golden.h"

namespace orrery::ir {
namespace op_info_test_cc {
namespace {

TEST(OpRecords, AreComplete) {
  std::set<std::string> names;
  for (int k = 0; k < OpKindCount(); ++k) {
    const OpInfo& info = GetOpInfo(static_cast<OpKind>(k));
    const std::string name(info.name);
    EXPECT_TRUE(names.insert(name).second) << name << " is the name of two ops";
    EXPECT_EQ(FindOp(name), static_cast<OpKind>(k));
    EXPECT_TRUE(IsPlainName(name)) << name;
    EXPECT_FALSE(info.summary.empty()) << name;
    EXPECT_GE(info.operands, OpInfo::kVariadic) << name;
    EXPECT_GE(info.results, OpInfo::kVariadic) << name;
    EXPECT_TRUE(info.infer != nullptr || info.operands == 0)
        << name << ": an op that infers no type has no operands";
    EXPECT_FALSE(info.sharding != nullptr && info.infer_sharding != nullptr)
        << name << ": one of sharding and infer_sharding";
    EXPECT_FALSE(info.op_class == OpClass::kView && info.flops != nullptr)
        << name << ": a view does no work";
  }
  EXPECT_FALSE(FindOp("NoSuchOp").has_value());
  EXPECT_FALSE(FindOp("").has_value());
}

struct Application {
  std::vector<const TensorType*> operands;
  TypeList results;
};

Application Apply(const Function& function, OpId op) {
  Application application;
  for (const ValueId operand : function.operands(op)) {
    application.operands.push_back(&function.type(operand));
  }
  for (int32_t i = 0; i < function.result_count(op); ++i) {
    application.results.push_back(function.type(function.result(op, i)));
  }
  return application;
}

// Of each op in the golden texts: flops are no negative number, and a sharding rule has a factor
// for each dimension of each operand and result. The sizes of one factor go into each other: fewer
// heads of keys than of queries are split alike.
void CheckRecord(const Function& function, OpId op) {
  const OpInfo& info = function.info(op);
  const Application a = Apply(function, op);
  const OpTypes types{
      .attributes = function.attributes(op), .operands = a.operands, .mesh = function.mesh()};
  if (info.flops != nullptr) {
    EXPECT_GE(info.flops(types, a.results), 0) << info.name;
  }
  if (info.sharding == nullptr) return;
  const ShardingRule rule = info.sharding(types, a.results);
  ASSERT_EQ(rule.operands.size(), a.operands.size()) << info.name;
  ASSERT_EQ(rule.results.size(), a.results.size()) << info.name;
  std::vector<int64_t> sizes(32, 0);
  const auto check = [&](const ShardingRule::Factors& factors, const Dims& dims) {
    ASSERT_EQ(factors.size(), dims.size()) << info.name;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (factors[d] == kNoFactor) continue;
      int64_t& size = sizes.at(static_cast<size_t>(factors[d]));
      EXPECT_TRUE(size == 0 || size % dims[d] == 0 || dims[d] % size == 0)
          << info.name << ": factor " << int{factors[d]};
      size = std::max(size, dims[d]);
    }
  };
  for (size_t i = 0; i < a.operands.size(); ++i) check(rule.operands[i], a.operands[i]->dims);
  for (size_t j = 0; j < a.results.size(); ++j) check(rule.results[j], a.results[j].dims);
}

TEST(OpRecords, HoldForEachGoldenText) {
  for (const std::string& text : golden::Texts()) {
    const auto functions = ParseFunctions(text);
    ASSERT_TRUE(functions.ok()) << functions.status();
    for (const Function& function : *functions) {
      for (const OpId op : function.order()) CheckRecord(function, op);
    }
  }
}

// The flops of the first op of a body over x: f32[6,4,8] and w: f32[8,16].
double FlopsOf(absl::string_view body) {
  const auto function = ParseFunction(
      absl::StrCat("func @f (%x: f32[6,4,8] data, %w: f32[8,16] parameter, %dy: f32[6,4,16] data, "
                   "%t: f32[16,8] parameter) {",
                   body, "}"));
  if (!function.ok()) {
    ADD_FAILURE() << function.status();
    return -1;
  }
  const OpId op = function->order()[0];
  const Application a = Apply(*function, op);
  return function->info(op).flops(
      {.attributes = function->attributes(op), .operands = a.operands, .mesh = function->mesh()},
      a.results);
}

TEST(Flops, OfAMultiplyAddAreTwo) {
  const double m = 6 * 4, k = 8, n = 16;
  EXPECT_EQ(FlopsOf("%y: f32[6,4,16] = MatMul(%x, %w) return %y: result"), 2 * m * k * n);
  EXPECT_EQ(FlopsOf("%y: f32[6,4,16] = MatMul(%x, %t) {transpose_w=1} return %y: result"),
            2 * m * k * n);
  EXPECT_EQ(FlopsOf("%dx: f32[6,4,8], %dw: f32[8,16] = MatMulGrad(%x, %w, %dy) return %dx: result"),
            4 * m * k * n);
  EXPECT_EQ(FlopsOf("%dx: f32[6,4,8], %dw: f32[16,8] = MatMulGrad(%x, %t, %dy) {transpose_w=1} "
                    "return %dx: result"),
            4 * m * k * n);
}

TEST(Flops, OfTheOthersAreAFewAnElement) {
  EXPECT_EQ(FlopsOf("%y: f32[6,4,8] = Relu(%x) return %y: result"), 6 * 4 * 8);
  EXPECT_EQ(FlopsOf("%y: f32[6,8] = ReduceSum(%x) {axes=[1]} return %y: result"), 6 * 4 * 8);
  EXPECT_EQ(FlopsOf("%a: f32[8,16] = Sgd(%w, %w) {parameters=1} return %a: result"), 2 * 8 * 16);
  EXPECT_EQ(FlopsOf("%a: f32[8,16], %b: f32[8,16], %c: f32[8,16] = Adam(%w, %w, %w, %w) "
                    "{parameters=1} return %a: result"),
            12 * 8 * 16);
}

// The error of an op over inputs of the types given, without where it stands.
std::string InferError(absl::string_view op, const std::vector<std::string>& types,
                       absl::string_view attributes = "") {
  std::string inputs, operands;
  for (size_t i = 0; i < types.size(); ++i) {
    absl::StrAppend(&inputs, i == 0 ? "" : ", ", "%x", i, ": ", types[i], " data");
    absl::StrAppend(&operands, i == 0 ? "" : ", ", "%x", i);
  }
  const auto functions =
      ParseFunctions(absl::StrCat("func @f mesh(dp=2, hp=2) (", inputs, ") { %y: f32[] = ", op, "(",
                                  operands, ") ", attributes, " return %y: result }"));
  const std::string message(functions.status().message());
  const std::string where = absl::StrCat("f: %y (", op, "): ");
  return message.rfind(where, 0) == 0 ? message.substr(where.size()) : message;
}

TEST(InferErrors, OfProducts) {
  EXPECT_EQ(InferError("MatMul", {"f32[8,4]", "f32[8,4]"}), "inner dimensions differ; got 4 and 8");
  EXPECT_EQ(InferError("MatMul", {"f32[8,4]", "f32[8,4]"}, "{transpose_x=1, transpose_w=1}"),
            "inner dimensions differ; got 8 and 4");
  EXPECT_EQ(InferError("MatMul", {"f32[4]", "f32[4,4]"}),
            "got shapes [4] and [4,4]; wanted [..,m,k] and [..,k,n]");
  EXPECT_EQ(InferError("MatMul", {"f32[]", "f32[]"}),
            "got shapes [] and []; wanted [..,m,k] and [..,k,n]");
  EXPECT_EQ(InferError("MatMul", {"f32[2,4,4]", "f32[3,4,4]"}),
            "leading dimensions of [2,4,4] and [3,4,4] do not broadcast");
  EXPECT_EQ(InferError("MatMul", {"f32[8,4]", "bf16[4,8]"}),
            "element types differ; got f32 and bf16");
  EXPECT_EQ(InferError("MatMul", {"f32[8,4]"}), "got 1 operands; wanted 2");
  for (const char* op : {"MatMul", "MatMulWeightGrad"}) {
    EXPECT_EQ(InferError(op, {"f8[4,4]", "f8[4,4]"}, "{out=\"i32\"}"),
              "out=\"i32\"; wanted a floating-point type such as \"bf16\"");
  }
  EXPECT_EQ(InferError("Linear", {"f8[8,4]", "f8[4,2]", "f8[2]"}, "{out=\"bf16\"}"),
            "the bias is of f8; wanted bf16, as the result is");
}

TEST(InferErrors, OfElementwiseOps) {
  EXPECT_EQ(InferError("Add", {"f32[8,4]", "f32[8]"}), "shapes [8,4] and [8] do not broadcast");
  EXPECT_EQ(InferError("Add", {"f32[8,4]", "f16[4]"}), "element types differ; got f32 and f16");
  EXPECT_EQ(InferError("Mul", {"f32[2,3]", "f32[3,2]"}), "shapes [2,3] and [3,2] do not broadcast");
  EXPECT_EQ(InferError("ReluGrad", {"f32[8,4]", "f32[4]"}), "shapes differ; got [8,4] and [4]");
}

TEST(InferErrors, OfLosses) {
  EXPECT_EQ(InferError("Loss", {"f32[8]", "f32[4]"}, "{batch=8}"),
            "prediction and target differ in shape; got [8] and [4]");
  for (const std::string attributes : {"", "{batch=0}", "{batch=-8}", "{batch=8.0}"}) {
    EXPECT_EQ(InferError("Loss", {"f32[8]", "f32[8]"}, attributes),
              "the attribute batch is missing; wanted the global batch size");
  }
}

TEST(InferErrors, OfShapes) {
  for (const std::string perm : {"[0]", "[0,0]", "[1,2]", "[-1,0]", "[]", "7"}) {
    const std::string shown = perm == "7" ? "[]" : perm;
    EXPECT_EQ(InferError("Transpose", {"f32[2,3]"}, absl::StrCat("{perm=", perm, "}")),
              absl::StrCat("perm=", shown, " does not permute 2 dimensions"));
  }
  EXPECT_EQ(InferError("ReduceSum", {"f32[2,3]"}, "{axes=[0,2]}"),
            "axis 2 is none of the 2 dimensions");
  EXPECT_EQ(InferError("ReduceSum", {"f32[2,3]"}, "{axes=[-1]}"),
            "axis -1 is none of the 2 dimensions");
}

TEST(InferErrors, OfOptimizers) {
  const std::string wanted =
      "; wanted as many gradients as parameters, and whole groups of state between";
  EXPECT_EQ(InferError("Sgd", {"f32[2]", "f32[2]"}), "got 2 operands and parameters=0" + wanted);
  EXPECT_EQ(InferError("Sgd", {"f32[2]"}, "{parameters=1}"),
            "got 1 operands and parameters=1" + wanted);
  EXPECT_EQ(InferError("Sgd", {}, "{parameters=9223372036854775807}"),
            "got 0 operands and parameters=9223372036854775807" + wanted);
  EXPECT_EQ(InferError("Adam", {"f32[2]", "f32[2]", "f32[2]"}, "{parameters=2}"),
            "got 3 operands and parameters=2" + wanted);
  EXPECT_EQ(InferError("Momentum", {"f32[2]", "f32[2]", "f32[3]"}, "{parameters=1}"),
            "operand 2 differs in shape from its parameter, operand 0");
  EXPECT_EQ(InferError("Sgd", {"f32[2]", "f32[2] partial(dp)"}, "{parameters=1}"),
            "operand 1 is partial over dp; it must be reduced first");
  EXPECT_EQ(InferError("Sgd", {"f32[2]", "f32[2@dp]"}, "{parameters=1}"),
            "operand 1 is not split as its parameter, operand 0, is");
}

TEST(InferErrors, OfCollectives) {
  EXPECT_EQ(InferError("AllReduce", {"f32[2]"}, "{axes=\"dp\"}"),
            "its operand is not partial over dp");
  EXPECT_EQ(InferError("AllReduce", {"f32[2] partial(dp)"}, "{axes=\"dp.hp\"}"),
            "its operand is not partial over hp");
  EXPECT_EQ(InferError("AllReduce", {"f32[2] partial(dp)"}),
            "the attribute axes is missing; wanted the axes to work along");
  EXPECT_EQ(InferError("AllReduce", {"f32[2] partial(dp)"}, "{axes=\"pp\"}"),
            "axes=\"pp\" are no axes of mesh(dp=2, hp=2)");
  EXPECT_EQ(InferError("AllReduce", {"f32[2] partial(dp)"}, "{axes=\"dp.dp\"}"),
            "axes=\"dp.dp\" are no axes of mesh(dp=2, hp=2)");
  EXPECT_EQ(InferError("AllGather", {"f32[2,4@dp]"}, "{axes=\"dp\", dim=0}"),
            "dimension 0 of its operand is not split over dp");
  EXPECT_EQ(InferError("AllGather", {"f32[2,4@dp.hp]"}, "{axes=\"hp.dp\", dim=1}"),
            "dimension 1 of its operand is not split over hp.dp");
  EXPECT_EQ(InferError("AllGather", {"f32[2,4@dp]"}, "{axes=\"dp\", dim=2}"),
            "dim=2 is no dimension of its operand");
}

TEST(InferErrors, OfRedistributions) {
  EXPECT_EQ(InferError("AllGather", {"f32[2,4@dp.hp]"}, "{axes=\"dp\", dim=1}"),
            "dimension 1 of its operand is not split over dp");
  EXPECT_EQ(InferError("AllSlice", {"f32[2,4@dp]"}, "{axes=\"dp\", dim=0}"),
            "its operand is sharded over dp");
  EXPECT_EQ(InferError("AllSlice", {"f32[2@dp,4]"}, "{axes=\"hp\", dim=0}"),
            "dimension 0 (2) does not divide over dp.hp");
  EXPECT_EQ(InferError("ReduceScatter", {"f32[2,4]"}, "{axes=\"dp\", dim=0}"),
            "its operand is not partial over dp");
  EXPECT_EQ(InferError("ReduceScatter", {"f32[3,4] partial(dp)"}, "{axes=\"dp\", dim=0}"),
            "dimension 0 (3) does not divide over dp");
  EXPECT_EQ(InferError("AllToAll", {"f32[2@dp,4]"}, "{axes=\"dp\", from=0, to=0}"),
            "from=0 and to=0 are one dimension; wanted two");
  EXPECT_EQ(InferError("AllToAll", {"f32[2@dp,4]"}, "{axes=\"dp\", from=1, to=0}"),
            "dimension 1 of its operand is not split over dp");
  EXPECT_EQ(InferError("AllToAll", {"f32[2@dp,4]"}, "{axes=\"dp\", from=0}"),
            "to=-1 is no dimension of its operand");
  EXPECT_EQ(InferError("Permute", {"f32[2@dp,4]"}, "{axes=\"dp.hp\", to=\"hp\"}"),
            "to=\"hp\" has 1 lists of axes; wanted one a dimension, 2");
  EXPECT_EQ(InferError("Permute", {"f32[2@dp,4]"}, "{axes=\"dp.hp\", to=\"dp.hp;\"}"),
            "to=\"dp.hp;\" splits dimension 0 into 4 parts; wanted 2, as it is");
  EXPECT_EQ(InferError("Permute", {"f32[2@dp,4]"}, "{axes=\"dp\", to=\"hp;\"}"),
            "to=\"hp;\" changes axes of dimension 0 beyond dp");
  EXPECT_EQ(InferError("Permute", {"f32[2@dp,4] partial(hp)"}, "{axes=\"dp.hp\", to=\"hp;\"}"),
            "to=\"hp;\" has hp twice, or it is partial");
  EXPECT_EQ(InferError("MakePartial", {"f32[2@dp,4]"}, "{axes=\"dp\", reduction=\"sum\"}"),
            "its operand is sharded over dp; wanted replicas along it");
  EXPECT_EQ(InferError("MakePartial", {"f32[2@dp,4]"}, "{axes=\"hp\", reduction=\"median\"}"),
            "reduction=\"median\" is none");
  EXPECT_EQ(
      InferError("Reblock", {"f32[8@dp,4]"}, "{axes=\"dp.hp\", block=2, dim=0}"),
      "dimension 0 is split over dp and then over dp; wanted both over axes=\"dp.hp\", in any "
      "order");
  EXPECT_EQ(InferError("Reblock", {"f32[8@dp,4]"}, "{axes=\"dp\", block=-2, dim=0}"),
            "block=-2; wanted a size, 0 for nested chunks or -1 for balanced ones");
  EXPECT_EQ(InferError("AllSlice", {"f32[8@dp,4]"}, "{axes=\"hp\", block=2, dim=0}"),
            "dimension 0 of its operand is split over dp; blocks are dealt to all ranks at once");
}

// Parts that are not alike lie at the same places only where dimensions are of one size.
TEST(InferErrors, OfUnevenParts) {
  const auto verify = [](absl::string_view op) {
    const auto functions = ParseFunctions(absl::StrCat(
        "func @f mesh(hp=4) (%w: f32[6@hp,4] parameter) { %y: ", op, " return %y: result }"));
    return std::string(functions.status().message());
  };
  EXPECT_EQ(verify("f32[6@hp,4] = Add(%w, %w)"), "");
  EXPECT_THAT(verify("f32[24@hp] = Reshape(%w) {shape=[24]}"),
              testing::HasSubstr("dimensions of 6 and 24 are split as one into 4 parts, which do "
                                 "not divide them"));
}

TEST(InferErrors, OfMicrobatches) {
  EXPECT_EQ(InferError("Accumulate", {"f32[2]", "f32[2] partial(dp)"}),
            "the sum is f32[2] and the summand f32[2] partial(dp); wanted one type");
  for (const std::string part : {"f32[3,4]", "f32[2,5]", "f32[2]", "f16[2,4]"}) {
    EXPECT_EQ(InferError("Collect", {"f32[8,4]", part}),
              absl::StrCat("cannot collect ", part,
                           " into f32[8,4]; wanted whole parts along dimension 0"));
  }
  // Regression: the part was let be sharded otherwise than the batch.
  EXPECT_EQ(InferError("Collect", {"f32[8@dp,4]", "f32[2,4@hp]"}),
            "cannot collect f32[2,4@hp] into f32[8@dp,4]; wanted both sharded alike");
}

TEST(InferTypesDeathTest, OfAnOpWithoutATypeOfItsOwn) {
  TypeList results;
  EXPECT_DEATH(InferTypes(OpKind::kReceive, {{}, {}, Mesh()}, results).IgnoreError(),
               "Receive has no type of its own accord");
}

}  // namespace
}  // namespace op_info_test_cc
}  // namespace orrery::ir
