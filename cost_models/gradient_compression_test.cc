#include "cost_models/gradient_compression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

// Bytes on the wire and in memory, by hand from the papers' data layouts.

namespace orrery::cost_models {
namespace gradient_compression_test_cc {
namespace {

using testing::ElementsAre;

GradientCompression Of(absl::string_view text) {
  const auto compression = GradientCompression::Parse(text);
  EXPECT_TRUE(compression.ok()) << compression.status();
  return *compression;
}

// "all-gather 48", "top-k 16 flops 688 bytes".
std::vector<std::string> Lines(absl::string_view text, const std::vector<ir::Dims>& gradients,
                               ir::DType dtype, int64_t ranks) {
  GradientSize size;
  for (const ir::Dims& dims : gradients) size += SizeOfGradient(Of(text), dims);
  std::vector<std::string> lines;
  for (const CompressionStage& stage : StagesOf(Of(text), size, dtype, ranks)) {
    lines.push_back(
        stage.collective.has_value()
            ? absl::StrCat(GetCollectiveKind(*stage.collective).name, " ", stage.size.count())
            : absl::StrCat(stage.name, ": ", stage.flops.count(), " flops, ", stage.moved.count(),
                           " bytes"));
  }
  return lines;
}

TEST(GradientCompression, ReadsItsText) {
  for (const char* text : {"none", "top-k:0.01", "top-k:0.012345678", "8-bit", "power-sgd:4"}) {
    EXPECT_EQ(Of(text).ToString(), text);
  }
  EXPECT_FALSE(static_cast<bool>(Of("none")));
  const auto error = [](absl::string_view text) {
    return std::string(GradientCompression::Parse(text).status().message());
  };
  EXPECT_EQ(error("zip"), "'zip': wanted none, top-k:0.01, 8-bit or power-sgd:4");
  for (const char* text : {"top-k:0", "top-k:1.5", "top-k:", "top-k:nan"}) {
    EXPECT_EQ(error(text),
              absl::StrCat("'", text, "': wanted a share above 0, at most 1, as in top-k:0.01"));
  }
  for (const char* text : {"power-sgd:0", "power-sgd:x", "power-sgd:65537"}) {
    EXPECT_EQ(error(text),
              absl::StrCat("'", text, "': wanted a rank from 1 to 65536, as in power-sgd:4"));
  }
}

// A hundredth of 1000 elements of 4 bytes: 10 values and 10 places from each of 8 ranks.
TEST(GradientCompression, OfTopKGathersValuesAndPlaces) {
  EXPECT_THAT(Lines("top-k:0.01", {{10, 100}}, ir::DType::kF32, 8),
              ElementsAre(absl::StrCat("top-k: 2000 flops, ", 5 * 4000 + 10 * 12, " bytes"),
                          absl::StrCat("all-gather ", 8 * 10 * (4 + 4)),
                          absl::StrCat("top-k sum: 80 flops, ", 4000 + 80 * 16, " bytes")));
  EXPECT_EQ(KeptBytes(Of("top-k:0.01"), {.elements = 1000}, ir::DType::kBF16, 8), Bytes(2000));
  // Dense, it sends twice what it would without, and once from each rank.
  EXPECT_THAT(Lines("top-k:1", {{1000}}, ir::DType::kF32, 2)[1], "all-gather 16000");
}

// 1000 bytes and 4 scales; sums are rounded once more, and each rank adds up a quarter.
TEST(GradientCompression, OfEightBitsGoesAsShares) {
  EXPECT_THAT(
      Lines("8-bit", {{1000}}, ir::DType::kBF16, 4),
      ElementsAre(absl::StrCat("8-bit: 4000 flops, ", 3 * 2000 + 1016, " bytes"), "all-to-all 1016",
                  absl::StrCat("8-bit sum: 3000 flops, ", 1016 + 254 + 1000, " bytes"),
                  "all-gather 1016",
                  absl::StrCat("8-bit back: 1000 flops, ", 1016 + 2000, " bytes")));
  EXPECT_EQ(KeptBytes(Of("8-bit"), {.elements = 1000}, ir::DType::kBF16, 4), Bytes(2500));
}

// Of 64 by 32, P has 64 rows and Q 32, of 4 columns each; a bias goes as it is, and so does what
// two factors are not half of: 2 x 4 (16 + 16) = 256.
TEST(GradientCompression, OfPowerSgdReducesTwoFactors) {
  const double whole = 64 * 32, p = 64 * 4, q = 32 * 4;
  EXPECT_THAT(Lines("power-sgd:4", {{64, 32}, {16, 16}, {32}}, ir::DType::kF32, 8),
              ElementsAre(absl::StrCat("all-reduce ", (256 + 32) * 4),
                          absl::StrCat("power-sgd P: ", 2 * whole * 4 + whole, " flops, ",
                                       4 * (4 * whole + p + q), " bytes"),
                          absl::StrCat("all-reduce ", p * 4),
                          absl::StrCat("power-sgd Q: ", 2 * whole * 4 + 2 * 64 * 16, " flops, ",
                                       4 * (whole + p + q + 2 * p), " bytes"),
                          absl::StrCat("all-reduce ", q * 4),
                          absl::StrCat("power-sgd M: ", 2 * whole * 4 + whole, " flops, ",
                                       4 * (3 * whole + p + q), " bytes")));
  // Filters: 64 of 3 by 3 by 3 are a matrix of 64 by 27.
  const GradientSize filters = SizeOfGradient(Of("power-sgd:2"), {64, 3, 3, 3});
  EXPECT_EQ(filters.rows, 64);
  EXPECT_EQ(filters.columns, 27);
  EXPECT_EQ(KeptBytes(Of("power-sgd:2"), filters, ir::DType::kF32, 8),
            Bytes(4 * (64 * 27 + 27 * 2)));
  EXPECT_THAT(Lines("power-sgd:4", {{32}}, ir::DType::kF32, 8), ElementsAre("all-reduce 128"));
}

}  // namespace
}  // namespace gradient_compression_test_cc
}  // namespace orrery::cost_models
