#include "importer/onnx/onnx_type.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "importer/onnx/symbols.h"
#include "importer/onnx_test_util.h"

namespace orrery::importer {
namespace onnx_type_test_cc {
namespace {

// The type of the first input of a graph, as ONNX's text form writes it.
onnx::ValueInfoProto Input(const std::string& type) {
  return ModelOf(absl::StrCat("g (", type, " x) => (", type, " x) { }")).graph().input(0);
}

const ir::Mesh kNoMesh;

TEST(TypeOf, EachElementType) {
  const std::pair<const char*, const char*> types[] = {
      {"float", "f32"}, {"float16", "f16"}, {"bfloat16", "bf16"}, {"double", "f64"},
      {"bool", "bool"}, {"int8", "i8"},     {"int32", "i32"},     {"int64", "i64"},
      {"int16", "i16"}, {"uint8", "u8"},    {"uint16", "u16"},    {"uint32", "u32"},
      {"uint64", "u64"}};
  for (const auto& [onnx_name, ir_name] : types) {
    const auto type = TypeOf(Input(absl::StrCat(onnx_name, "[2,3]")));
    ASSERT_TRUE(type.ok()) << type.status();
    EXPECT_EQ(ir::ToString(*type, kNoMesh), absl::StrCat(ir_name, "[2,3]"));
  }
  for (const char* name : {"string", "complex64", "complex128"}) {
    EXPECT_FALSE(TypeOf(Input(absl::StrCat(name, "[2]"))).ok()) << name;
  }
}

TEST(Agrees, WhereTheDeclarationSaysSomething) {
  const ir::TensorType type{ir::DType::kF32, {8, 16}, {}};
  EXPECT_TRUE(Agrees(onnx::TypeProto(), type));
  EXPECT_TRUE(Agrees(Input("float[8,16]").type(), type));
  EXPECT_TRUE(Agrees(Input("float[N,16]").type(), type));
  EXPECT_TRUE(Agrees(Input("float[]").type(), type));  // of any rank, in that text form
  EXPECT_FALSE(Agrees(Input("float[8,17]").type(), type));
  EXPECT_FALSE(Agrees(Input("float[8]").type(), type));
  EXPECT_FALSE(Agrees(Input("double[8,16]").type(), type));
  onnx::TypeProto sequence;
  sequence.mutable_sequence_type();
  EXPECT_FALSE(Agrees(sequence, type));
}

TEST(ToString, AsFarAsItIsKnown) {
  EXPECT_EQ(ToString(onnx::TypeProto()), "of no type");
  EXPECT_EQ(ToString(Input("float[N,16]").type()), "f32[N,16]");
  EXPECT_EQ(ToString(Input("uint8[2]").type()), "u8[2]");
  EXPECT_EQ(ToString(Input("string[2]").type()), "STRING[2]");
  EXPECT_EQ(ToString(Input("float[]").type()), "f32[of unknown rank]");
  onnx::ValueInfoProto unnamed = Input("float[N]");
  unnamed.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->clear_dim_param();
  EXPECT_EQ(ToString(unnamed.type()), "f32[?]");
  EXPECT_EQ(SymbolOf(unnamed, 0), "x.0");
}

TEST(CheckSize, UpTo2To60Bytes) {
  const auto size = [](std::initializer_list<int64_t> dims) {
    ir::TensorType type;
    type.dims.assign(dims.begin(), dims.end());
    return CheckSize(type);
  };
  EXPECT_TRUE(size({}).ok());
  EXPECT_TRUE(size({int64_t{1} << 30, int64_t{1} << 28}).ok());
  EXPECT_FALSE(size({int64_t{1} << 30, int64_t{1} << 29}).ok());
  EXPECT_FALSE(size({int64_t{1} << 62, int64_t{1} << 62}).ok());
  EXPECT_TRUE(size({0}).ok());
  EXPECT_TRUE(size({0, int64_t{1} << 57}).ok());
  EXPECT_FALSE(size({0, int64_t{1} << 59}).ok());
  EXPECT_FALSE(size({-1, -1}).ok());
}

// The first input, bound, and the symbol of the batch: "f32[8,M] N".
std::string FirstBound(const std::string& inputs, const ImportOptions& options) {
  const onnx::GraphProto graph =
      ModelOf(absl::StrCat("g (", inputs, ") => (float[N] y) { }")).graph();
  const auto symbols = FindSymbols(options, graph);
  if (!symbols.ok()) return std::string(symbols.status().message());
  return absl::StrCat(ToString(Bound(*symbols, graph.input(0)).type()), " ",
                      absl::StrJoin(symbols->batch, "+"));
}

// Without a name that says so, it is the batch where all inputs start with it: anything else might
// be a sequence length.
TEST(FindSymbols, BatchOnlyWhereItIsPlain) {
  const std::map<std::string, int64_t> m = {{"M", 7}}, both = {{"M", 7}, {"N", 2}};
  EXPECT_EQ(FirstBound("float[N,M] x, float[N] z", {.symbols = m, .batch_size = 4}), "f32[4,7] N");
  for (const char* other : {"M", "8"}) {
    EXPECT_EQ(FirstBound(absl::StrCat("float[N,M] x, float[", other, "] z"),
                         {.symbols = m, .batch_size = 4}),
              "no value for the dynamic dimension 'N' (dimension 0 of 'x'); try `symbol` N=VALUE");
  }
  EXPECT_EQ(FirstBound("float[N,M] x, float[M] z", {.symbols = both}), "f32[2,7] N");
}

// Two towers, each with a batch of its own name.
TEST(FindSymbols, BatchByItsName) {
  constexpr char kInputs[] = "float[text_batch,8] x, float[batch,3] z";
  EXPECT_EQ(FirstBound(kInputs, {.batch_size = 4}), "f32[4,8] text_batch+batch");
  EXPECT_EQ(FirstBound(kInputs, {.symbols = {{"batch", 2}, {"text_batch", 3}}}),
            "f32[3,8] text_batch");
  EXPECT_EQ(FirstBound(kInputs, {}),
            "no value for the dynamic dimensions 'text_batch' (dimension 0 of 'x'), 'batch' "
            "(dimension 0 of 'z'); try `batch-size` N");
}

TEST(FindSymbols, BatchAndSymbolDisagree) {
  EXPECT_EQ(
      FirstBound("float[seq,batch] x", {.symbols = {{"seq", 9}, {"batch", 2}}, .batch_size = 4}),
      "batch 4 and symbol 'seq'=9 disagree about dimension 0 of 'x', which is the batch; try "
      "one of both, or batch_first=True where dimension 0 is time");
}

}  // namespace
}  // namespace onnx_type_test_cc
}  // namespace orrery::importer
