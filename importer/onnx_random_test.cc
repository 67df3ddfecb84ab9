#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "importer/load_model.h"
#include "importer/onnx.h"
#include "importer/onnx/onnx_type.h"
#include "importer/onnx_inference_test_util.h"
#include "importer/onnx_test_util.h"
#include "ir/verifier.h"

// Random models import, with the types that ONNX's shape inference finds for their outputs; and
// they keep what does not depend on how they are lowered.

namespace orrery::importer {
namespace onnx_random_test_cc {
namespace {

constexpr uint64_t kSeed = 7;
constexpr int kModels = 200;

// Writes a random chain of layers over an activation [batch, width] in ONNX's text form.
class RandomModel {
 public:
  explicit RandomModel(uint64_t seed)
      : random_(seed), batch_(1 + Below(64)), width_(1 + Below(64)) {
    const int64_t input = width_;
    const int64_t layers = 1 + Below(12);
    for (int64_t i = 0; i < layers; ++i) Layer();
    text_ = absl::StrCat("g (float[", batch_, ",", input, "] v0) => (float[", batch_, ",", width_,
                         "] v", value_, ") <float[1] unused = {}", weights_, "> {\n", nodes_, "}");
  }

  const std::string& text() const { return text_; }
  int64_t batch() const { return batch_; }
  int64_t parameters() const { return parameters_; }

 private:
  int64_t Below(uint64_t limit) { return static_cast<int64_t>(random_() % limit); }

  std::string Weight(const std::string& dims) {
    const std::string name = absl::StrCat("w", parameters_++);
    absl::StrAppend(&weights_, ", float[", dims, "] ", name, " = {}");
    return name;
  }
  void Node(const std::string& op, const std::string& more) {
    absl::StrAppend(&nodes_, "  v", value_ + 1, " = ", op, "(v", value_, more, ")\n");
    ++value_;
  }

  void Layer() {
    switch (Below(6)) {
      case 0:
        return MatMul();
      case 1:
        return Gemm();
      case 2:
        return Node("Add", ", " + Weight(Below(2) == 0 ? absl::StrCat(width_) : "1"));
      case 3:
        return Node("Mul", absl::StrCat(", v", value_));
      case 4:
        Node("Transpose", "");
        return Node("Transpose <perm = [1, 0]> ", "");
      default:
        return Node(Below(2) == 0 ? "Relu" : "Identity", "");
    }
  }

  void MatMul() {
    const int64_t width = 1 + Below(64);
    Node("MatMul", absl::StrCat(", ", Weight(absl::StrCat(width_, ",", width))));
    width_ = width;
  }

  void Gemm() {
    const int64_t width = 1 + Below(64);
    const bool flip = Below(2) == 0;
    std::string more = absl::StrCat(
        ", ", Weight(flip ? absl::StrCat(width, ",", width_) : absl::StrCat(width_, ",", width)));
    if (Below(2) == 0) absl::StrAppend(&more, ", ", Weight(absl::StrCat(width)));
    Node(absl::StrCat("Gemm <alpha = ", Below(2) == 0 ? "1.0" : "0.25", ", transB = ", flip ? 1 : 0,
                      "> "),
         more);
    width_ = width;
  }

  std::mt19937_64 random_;
  int64_t batch_;
  int64_t width_;
  int64_t value_ = 0;
  int64_t parameters_ = 0;
  std::string weights_;
  std::string nodes_;
  std::string text_;
};

TEST(RandomModels, Import) {
  for (uint64_t seed = kSeed; seed < kSeed + kModels; ++seed) {
    const RandomModel model(seed);
    const std::string path = WriteTestFile(absl::StrCat("random", seed, ".onnx"),
                                           ModelOf(model.text()).SerializeAsString());
    const auto function = ImportOnnx(path);
    ASSERT_TRUE(function.ok()) << function.status() << "\n" << model.text();
    ASSERT_TRUE(ir::Verify(*function).ok()) << model.text();
    const auto inferred = InferWithOnnx(ModelOf(model.text()));
    ASSERT_TRUE(inferred.ok()) << inferred.status();
    const ir::TensorType& type = function->type(function->outputs()[0].value);
    EXPECT_TRUE(Agrees(inferred->output(0).type(), type)) << model.text();
    EXPECT_EQ(static_cast<int64_t>(function->inputs().size()), 1 + model.parameters())
        << model.text();
    const auto again = ir::ParseFunction(ir::Print(*function));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(ir::Print(*again), ir::Print(*function));
    // Another batch and back is the same function.
    const auto other = LoadModel({.model = path, .batch_size = 2 * model.batch()});
    ASSERT_TRUE(other.ok()) << other.status();
    const std::string text = WriteTestFile(absl::StrCat("random", seed, ".orr"), ir::Print(*other));
    EXPECT_EQ(TextOf(LoadModel({.model = text, .batch_size = model.batch()})),
              absl::StrCat("\n", ir::Print(*function)));
    std::filesystem::remove(path);
    std::filesystem::remove(text);
  }
}

}  // namespace
}  // namespace onnx_random_test_cc
}  // namespace orrery::importer
