#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>

#include "absl/strings/numbers.h"
#include "importer/load_model.h"
#include "importer/onnx.h"
#include "importer/onnx_test_util.h"
#include "ir/verifier.h"
#include "support/file.h"
#include "support/paths_test_util.h"

// No file crashes the importer: real models with bytes flipped, cut, moved and repeated give a
// function that verifies or an error of one line. ORRERY_FUZZ_ROUNDS=100000 runs longer.

namespace orrery::importer {
namespace onnx_fuzz_test_cc {
namespace {

constexpr uint64_t kSeed = 20240607;

int Rounds(int usual) {
  const char* text = std::getenv("ORRERY_FUZZ_ROUNDS");
  int rounds = 0;
  return text != nullptr && absl::SimpleAtoi(text, &rounds) ? rounds : usual;
}

// Small, so that most bytes matter, and with something of each kind.
std::string SmallModel() {
  return ModelOf(R"(
g (float[N,16] x, float[N] z) => (float[N,4] y, float[4,N] t)
<float[16,4] w = {}, float[4] b = {1.0, 2.0, 3.0, 4.0}, int64[2] i = {1, 2}> {
  h = Gemm <alpha = 0.5, transB = 0> (x, w, b)
  s = Constant <value = float {0.5}> ()
  k = Constant <value_ints = [1, 2]> ()
  m = Mul(h, s)
  y = Relu(m)
  t = Transpose <perm = [1, 0]> (y)
})")
      .SerializeAsString();
}

std::string RealModel() {
  const auto bytes = ReadFile(SourceDir() + "/examples/models/mlp_64x512.onnx");
  ORRERY_CHECK(bytes.ok()) << bytes.status();
  return *bytes;
}

class Damager {
 public:
  explicit Damager(uint64_t seed) : random_(seed) {}

  std::string Damage(std::string bytes) {
    const size_t times = 1 + Below(4);
    for (size_t i = 0; i < times && !bytes.empty(); ++i) Once(bytes);
    return bytes;
  }

 private:
  size_t Below(size_t limit) { return static_cast<size_t>(random_() % limit); }

  void Once(std::string& bytes) {
    const size_t at = Below(bytes.size());
    const size_t length = 1 + Below(std::min<size_t>(16, bytes.size() - at));
    switch (Below(6)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << Below(8)));
        return;
      case 1:
        bytes[at] = static_cast<char>(Below(256));
        return;
      case 2:
        bytes.resize(at);
        return;
      case 3:
        bytes.erase(at, length);
        return;
      case 4:
        bytes.insert(Below(bytes.size()), bytes.substr(at, length));
        return;
      default:
        bytes.replace(Below(bytes.size()), length, bytes.substr(at, length));
    }
  }

  std::mt19937_64 random_;
};

struct Outcomes {
  int imported = 0;
  int refused = 0;
};

Outcomes Fuzz(const std::string& bytes, int rounds) {
  Outcomes outcomes;
  Damager damager(kSeed);
  for (int round = 0; round < rounds; ++round) {
    // A new file each time: some file systems wait for the disk when one is overwritten.
    const std::string path =
        WriteTestFile(absl::StrCat("fuzz", round, ".onnx"), damager.Damage(bytes));
    const auto function = LoadModel({.model = path, .batch_size = 8, .dtype = ir::DType::kBF16});
    std::filesystem::remove(path);
    if (function.ok()) {
      ++outcomes.imported;
      EXPECT_TRUE(ir::Verify(*function).ok()) << "seed " << kSeed << " round " << round;
      continue;
    }
    ++outcomes.refused;
    const std::string message(function.status().message());
    EXPECT_EQ(message.find('\n'), std::string::npos) << "round " << round << ": " << message;
    EXPECT_EQ(message.rfind(path, 0), 0) << "round " << round << ": " << message;
  }
  return outcomes;
}

TEST(OnnxFuzz, SmallModel) {
  const Outcomes outcomes = Fuzz(SmallModel(), Rounds(3000));
  EXPECT_GT(outcomes.imported, 0);
  EXPECT_GT(outcomes.refused, 0);
}

TEST(OnnxFuzz, RealModel) {
  const Outcomes outcomes = Fuzz(RealModel(), Rounds(600));
  EXPECT_GT(outcomes.imported, 0);
  EXPECT_GT(outcomes.refused, 0);
}

}  // namespace
}  // namespace onnx_fuzz_test_cc
}  // namespace orrery::importer
