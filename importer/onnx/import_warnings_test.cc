#include "importer/onnx/import_warnings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "importer/import_notes.h"
#include "importer/onnx_test_util.h"

namespace orrery::importer {
namespace import_warnings_test_cc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string FormOf(const std::string& graph, int opset = 14, const std::string& producer = "") {
  onnx::ModelProto model = ModelOf(graph, opset);
  model.set_producer_name(producer);
  return EvaluationForm(model, opset).value_or("");
}

constexpr char kNorm[] = R"(
g (float[2,3,8,8] x) => (float[2,3,8,8] y)
<float[3] s = {1, 2, 3}, float[3] b = {1, 2, 3}, float[3] m = {1, 2, 3}, float[3] v = {1, 2, 3}> {
  y$more = BatchNormalization$mode(x, s, b, m, v)
})";

std::string NormOf(const std::string& mode, const std::string& more = "") {
  return absl::StrReplaceAll(kNorm, {{"$mode", mode}, {"$more", more}});
}

TEST(ImportWarnings, OfBatchNormsWithStoredStatistics) {
  EXPECT_EQ(FormOf(NormOf("")),
            "is in evaluation form: 1 of 1 BatchNormalization normalize with stored statistics "
            "('y'); a step of training made of it lacks batch statistics, and dropout if the model "
            "has some; try an export in training form");
  EXPECT_THAT(FormOf(NormOf(""), 14, "pytorch"), HasSubstr("torch.onnx.export(model.train(), "));
  EXPECT_EQ(FormOf(NormOf("<training_mode = 1>", ", mean, var")), "");
  // Before opset 14 more results than one are those of training.
  EXPECT_THAT(FormOf(NormOf(""), 13), HasSubstr("1 of 1 BatchNormalization"));
  EXPECT_EQ(FormOf(NormOf("", ", mean, var"), 13), "");
}

constexpr char kFolded[] = R"(
g (float[2,3,8,8] x) => (float[2,4,8,8] y, float[2,4,8,8] z)
<float[4,3,1,1] $w = {}, float[4] $b = {}, float[4,3,1,1] w = {}, float[4] b = {}> {
  y = Conv(x, $w, $b)
  z = Conv(x, w, b)
})";

std::string FoldedForm(const std::string& w, const std::string& b, const std::string& producer) {
  onnx::ModelProto model = ModelOf(absl::StrReplaceAll(kFolded, {{"$w", "w1"}, {"$b", "b1"}}));
  for (onnx::TensorProto& tensor : *model.mutable_graph()->mutable_initializer()) {
    if (tensor.name() == "w1") tensor.set_name(w);
    if (tensor.name() == "b1") tensor.set_name(b);
  }
  onnx::NodeProto& conv = *model.mutable_graph()->mutable_node(0);
  conv.set_input(1, w);
  conv.set_input(2, b);
  model.set_producer_name(producer);
  return EvaluationForm(model, 14).value_or("");
}

// Names that PyTorch gives to what it has computed of a batch norm, and to nothing else.
TEST(ImportWarnings, OfConvolutionsThatHoldABatchNorm) {
  EXPECT_THAT(FoldedForm("onnx::Conv_193", "onnx::Conv_194", "pytorch"),
              HasSubstr("1 of 2 Conv hold a folded batch norm ('y')"));
  EXPECT_EQ(FoldedForm("onnx::Conv_193", "onnx::Conv_194", "another"), "");
  EXPECT_EQ(FoldedForm("onnx::Conv_193", "conv.bias", "pytorch"), "");  // a weight norm
  EXPECT_EQ(FoldedForm("onnx::Conv_", "onnx::Conv_194", "pytorch"), "");
}

std::string DropoutOf(const std::string& ratio, const std::string& training) {
  return absl::StrReplaceAll(R"(
g (float[2,3] x) => (float[2,3] y) <float ratio = {$r}> {
  training = Constant<value = bool {$t}>()
  y = Dropout(x, ratio, training)
})",
                             {{"$r", ratio}, {"$t", training}});
}

TEST(ImportWarnings, OfDropoutsThatDropNothing) {
  EXPECT_EQ(FormOf(DropoutOf("0.1", "0")),
            "is in evaluation form: 1 of 1 Dropout drop nothing ('y'); a step of training made of "
            "it lacks dropout; try an export in training form");
  EXPECT_EQ(FormOf(DropoutOf("0.1", "1")), "");
  EXPECT_EQ(FormOf(DropoutOf("0", "0")), "");  // it never did
  EXPECT_THAT(FormOf("g (float[2] x) => (float[2] y) { y = Dropout(x) }"), HasSubstr("1 of 1"));
}

// What has neither norms nor dropouts says nothing.
TEST(ImportWarnings, OfNothingElse) {
  EXPECT_EQ(FormOf(R"(
g (float[2,3] x) => (float[2,3] y) <float[3,3] w = {}, float[3] b = {}> {
  h = MatMul(x, w)
  y = Add(h, b)
})",
                   14, "pytorch"),
            "");
}

// Weights among the inputs of a file with one sample: `cls` may be data, or a class token.
constexpr char kOneSample[] = R"(
g ($batch x, float[1,1,8] cls, float[8,8] w, float[1,3,8] positions) => (float[1,3,8] y) {
  axes = Constant<value_ints = [1, 1, 1]>()
  $repeat
  c = Concat<axis = 1>(token, x)
  h = MatMul(c, w)
  y = Add(h, positions)
})";

onnx::ModelProto OneSample(const std::string& repeat, const std::string& batch = "float[1,2,8]") {
  return ModelOf(absl::StrReplaceAll(kOneSample, {{"$repeat", repeat}, {"$batch", batch}}));
}

std::string Imported(const onnx::ModelProto& model, ImportNotes& notes,
                     const RolePatterns& roles = {}) {
  return ImportText(model, {.roles = roles, .notes = &notes});
}

TEST(ImportWarnings, OfInputsThatMayBeWeights) {
  ImportNotes notes;
  const std::string text = Imported(OneSample("token = Identity(cls)"), notes);
  EXPECT_THAT(text, HasSubstr("%cls: f32[1,1,8] data"));
  EXPECT_THAT(text, HasSubstr("%positions: f32[1,3,8] parameter"));  // behind a weight
  EXPECT_THAT(notes.warnings,
              ElementsAre(HasSubstr("a batch of 1, which 'cls' has too: taken as data; where")));
}

// What is repeated for each sample is none, even where there is one.
TEST(ImportWarnings, OfNoInputsThatSamplesShare) {
  for (const char* repeat : {"token = Tile(cls, axes)", "token = Expand(cls, axes)"}) {
    ImportNotes notes;
    EXPECT_THAT(Imported(OneSample(repeat), notes), HasSubstr("%cls: f32[1,1,8] parameter"));
    EXPECT_THAT(notes.warnings, IsEmpty()) << repeat;
  }
  // A module of which other weights are.
  onnx::ModelProto model = OneSample("token = Identity(cls)");
  for (onnx::ValueInfoProto& input : *model.mutable_graph()->mutable_input()) {
    if (input.name() != "x") input.set_name(absl::StrCat("body.", input.name()));
  }
  for (onnx::NodeProto& node : *model.mutable_graph()->mutable_node()) {
    for (std::string& name : *node.mutable_input()) {
      if (name == "cls" || name == "w" || name == "positions") name.insert(0, "body.");
    }
  }
  ImportNotes notes;
  EXPECT_THAT(Imported(model, notes), HasSubstr("%body.cls: f32[1,1,8] parameter"));
  EXPECT_THAT(notes.warnings, IsEmpty());
}

TEST(ImportWarnings, OfNoInputsThatTheUserNames) {
  ImportNotes notes;
  const onnx::ModelProto model = OneSample("token = Identity(cls)");
  EXPECT_THAT(Imported(model, notes, {.parameters = "^cls$"}), HasSubstr("%cls: f32[1,1,8] param"));
  EXPECT_THAT(Imported(model, notes, {.data = "^cls$"}), HasSubstr("%cls: f32[1,1,8] data"));
  EXPECT_THAT(notes.warnings, IsEmpty());
}

// Why samples cannot be told apart is known of a file with a dynamic batch.
TEST(ImportNotes, SayWhereTheBatchIsLost) {
  ImportNotes notes;
  ImportText(ModelOf(R"(
g (float[batch,4] x) => (float[batch,4] y) <float[4,4] w = {}> {
  first = Constant<value_ints = [0]>()
  one = Constant<value_ints = [1]>()
  row = Slice(x, first, one, first)
  h = MatMul(x, w)
  y = Add(h, row)
})"),
             {.symbols = {{"batch", 4}}, .notes = &notes});
  EXPECT_EQ(notes.batch_lost, "m: Slice 'row' cannot follow the batch: it takes part of the batch");
}

}  // namespace
}  // namespace import_warnings_test_cc
}  // namespace orrery::importer
