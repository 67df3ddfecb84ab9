#include "cost_models/gradient_compression.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "support/number_text.h"

namespace orrery::cost_models {
namespace gradient_compression_cc {
namespace {

using Method = GradientCompression::Method;

constexpr double kIndexBytes = 4;   // of an element that top-k keeps
constexpr int64_t kBlock = 256;     // elements that share a scale of 8 bits
constexpr int64_t kScaleBytes = 4;  // of that
constexpr int64_t kLeastGain = 2;   // of a matrix that PowerSGD compresses

Bytes Whole(double bytes) { return Bytes(static_cast<int64_t>(std::ceil(bytes))); }

CompressionStage Kernel(absl::string_view name, double flops, double moved) {
  return {.name = name, .flops = Flops(flops), .moved = Whole(moved)};
}

CompressionStage Exchange(CollectiveKind kind, double size) {
  return {.name = "", .collective = kind, .size = Whole(size)};
}

// n elements of s bytes on each of p ranks.
struct Extent {
  double n, s, p;
};

std::vector<CompressionStage> TopK(double share, const Extent& of) {
  const auto [n, s, p] = of;
  const double k = std::min(n, std::ceil(share * n));
  return {Kernel("top-k", 2 * n, 5 * n * s + k * (2 * s + kIndexBytes)),
          Exchange(CollectiveKind::kAllGather, p * k * (s + kIndexBytes)),
          Kernel("top-k sum", p * k, n * s + p * k * (3 * s + kIndexBytes))};
}

double QuantizedBytes(double n) { return n + kScaleBytes * std::ceil(n / kBlock); }

std::vector<CompressionStage> EightBits(const Extent& of) {
  const auto [n, s, p] = of;
  const double b = QuantizedBytes(n);
  return {Kernel("8-bit", 4 * n, 3 * n * s + b), Exchange(CollectiveKind::kAllToAll, b),
          Kernel("8-bit sum", 3 * n, b + b / p + 2 * n * s / p),
          Exchange(CollectiveKind::kAllGather, b), Kernel("8-bit back", n, b + n * s)};
}

std::vector<CompressionStage> PowerSgd(int64_t rank, const GradientSize& size, double s) {
  const auto r = static_cast<double>(rank), whole = static_cast<double>(size.of_matrices);
  const auto rows = static_cast<double>(size.rows), columns = static_cast<double>(size.columns);
  const double factors = (rows + columns) * r;
  std::vector<CompressionStage> stages;
  if (size.of_matrices > 0) {
    stages = {Kernel("power-sgd P", 2 * whole * r + whole, (4 * whole + factors) * s),
              Exchange(CollectiveKind::kAllReduce, rows * r * s),
              Kernel("power-sgd Q", 2 * whole * r + 2 * rows * r * r,
                     (whole + factors + 2 * rows * r) * s),
              Exchange(CollectiveKind::kAllReduce, columns * r * s),
              Kernel("power-sgd M", 2 * whole * r + whole, (3 * whole + factors) * s)};
  }
  const auto rest = static_cast<double>(size.elements - size.of_matrices);
  if (rest > 0) stages.insert(stages.begin(), Exchange(CollectiveKind::kAllReduce, rest * s));
  return stages;
}

absl::Status Unknown(absl::string_view text) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "': wanted none, top-k:0.01, 8-bit or power-sgd:4"));
}

}  // namespace
}  // namespace gradient_compression_cc

absl::StatusOr<GradientCompression> GradientCompression::Parse(absl::string_view text) {
  GradientCompression compression;
  absl::string_view value = text;
  if (text == "none") return compression;
  if (text == "8-bit") {
    compression.method = Method::kEightBits;
    return compression;
  }
  if (absl::ConsumePrefix(&value, "top-k:")) {
    compression.method = Method::kTopK;
    if (absl::SimpleAtod(value, &compression.share) && compression.share > 0 &&
        compression.share <= 1) {
      return compression;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "': wanted a share above 0, at most 1, as in top-k:0.01"));
  }
  if (absl::ConsumePrefix(&value, "power-sgd:")) {
    compression.method = Method::kPowerSgd;
    if (absl::SimpleAtoi(value, &compression.rank) && compression.rank >= 1 &&
        compression.rank <= 1 << 16) {
      return compression;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "': wanted a rank from 1 to 65536, as in power-sgd:4"));
  }
  return gradient_compression_cc::Unknown(text);
}

std::string GradientCompression::ToString() const {
  switch (method) {
    case Method::kNone:
      return "none";
    case Method::kTopK:
      return absl::StrCat("top-k:", ShortestText(share));
    case Method::kEightBits:
      return "8-bit";
    case Method::kPowerSgd:
      return absl::StrCat("power-sgd:", rank);
  }
  return "none";
}

GradientSize& GradientSize::operator+=(const GradientSize& other) {
  elements += other.elements;
  of_matrices += other.of_matrices;
  rows += other.rows;
  columns += other.columns;
  return *this;
}

GradientSize SizeOfGradient(const GradientCompression& compression, const ir::Dims& dims) {
  GradientSize size{.elements = ir::ElementCount(dims)};
  if (compression.method != GradientCompression::Method::kPowerSgd || dims.size() < 2) return size;
  const int64_t rows = dims[0], columns = rows == 0 ? 0 : size.elements / rows;
  const bool gains = static_cast<double>(gradient_compression_cc::kLeastGain * compression.rank) *
                         static_cast<double>(rows + columns) <
                     static_cast<double>(size.elements);
  if (!gains) return size;
  size.of_matrices = size.elements;
  size.rows = rows;
  size.columns = columns;
  return size;
}

std::vector<CompressionStage> StagesOf(const GradientCompression& compression,
                                       const GradientSize& size, ir::DType dtype, int64_t ranks) {
  const double s = ir::BytesOf(dtype);
  const gradient_compression_cc::Extent of{
      .n = static_cast<double>(size.elements), .s = s, .p = static_cast<double>(ranks)};
  switch (compression.method) {
    case GradientCompression::Method::kNone:
      return {};
    case GradientCompression::Method::kTopK:
      return gradient_compression_cc::TopK(compression.share, of);
    case GradientCompression::Method::kEightBits:
      return gradient_compression_cc::EightBits(of);
    case GradientCompression::Method::kPowerSgd:
      return gradient_compression_cc::PowerSgd(compression.rank, size, s);
  }
  return {};
}

Bytes KeptBytes(const GradientCompression& compression, const GradientSize& size, ir::DType dtype,
                int64_t ranks) {
  const double s = ir::BytesOf(dtype), n = static_cast<double>(size.elements);
  switch (compression.method) {
    case GradientCompression::Method::kNone:
      return Bytes(0);
    case GradientCompression::Method::kTopK:
      return gradient_compression_cc::Whole(n * s);
    case GradientCompression::Method::kEightBits:
      return gradient_compression_cc::Whole(n * s * (1 + 1 / static_cast<double>(ranks)));
    case GradientCompression::Method::kPowerSgd:
      return gradient_compression_cc::Whole(
          s * (static_cast<double>(size.of_matrices) +
               static_cast<double>(size.columns) * static_cast<double>(compression.rank)));
  }
  return Bytes(0);
}

}  // namespace orrery::cost_models
