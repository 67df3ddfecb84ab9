#include "cost_models/kernels/matrix_product.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cost_models/kernels/measured_test_util.h"

namespace orrery::cost_models {
namespace matrix_product_test_cc {
namespace {

using ir::DType;
using ir::ProductShape;

cluster::Device DeviceOf(absl::string_view name) { return *cluster::FindDevice(name); }

Duration TimeOf(const ProductShape& shape, absl::string_view device = "h100-80gb") {
  return PriceProduct(shape, {}, DeviceOf(device)).time;
}

struct Row {
  std::string table;  // "A100 bf16"
  cluster::Device device;
  ProductTypes types;
  ProductShape shape;
  double microseconds = 0;
};

// A line whose third field on are m, n, k, and the last the time.
Row RowOf(const std::vector<std::string>& fields) {
  Row row;
  row.device = DeviceOf(fields[0]);
  EXPECT_TRUE(absl::SimpleAtoi(fields[2], &row.shape.m) &&
              absl::SimpleAtoi(fields[3], &row.shape.n) &&
              absl::SimpleAtoi(fields[4], &row.shape.k) &&
              absl::SimpleAtod(fields.back(), &row.microseconds));
  row.table = absl::StrCat(absl::AsciiStrToUpper(fields[0].substr(0, 4)), " ", fields[1]);
  return row;
}

// What a layer of products of 8 or 4 bits does besides: kernels that find a scale and quantize x,
// in so many passes that read 2 bytes an element and write the copy, with so many microseconds to
// start them. They were fitted with the rates.
double QuantizeMicroseconds(const Row& row) {
  if (row.types.in == DType::kBF16) return 0;
  const std::map<std::string, std::pair<double, double>> kernels = {{"H100 f8", {2.25, 9.82}},
                                                                    {"H100 f8b", {1.429, 1.59}},
                                                                    {"B200 f8", {2.22, 11.96}},
                                                                    {"B200 f8b", {0.739, 3.76}},
                                                                    {"B200 f4", {1.244, 4.67}}};
  const auto [passes, start] = kernels.at(row.table);
  const double rate = static_cast<double>(row.device.memory_bandwidth.bytes_per_second()) *
                      ProductRatesOf(row.device.rates, row.types.in).memory;
  const double bytes =
      (2 + ir::BytesOf(row.types.in)) * static_cast<double>(row.shape.m * row.shape.k);
  return start + passes * bytes / rate * 1e6;
}

double ErrorOf(const Row& row, double clock, double besides) {
  const double start = row.device.rates.start.microseconds();
  const double predicted =
      PriceProduct(row.shape, row.types, row.device, clock).time.microseconds() + start + besides;
  return std::abs(predicted / row.microseconds - 1);
}

double MeanOf(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// None of these rows was fitted on. The page has what is found here.
TEST(MatrixProduct, IsAsMeasuredInBursts) {
  std::map<std::string, std::vector<double>> all, of_training_size;
  for (const std::vector<std::string>& fields : Lines("products.csv")) {
    Row row = RowOf(fields);
    row.types.in = ir::ParseDType(fields[1]).value();
    const double error = ErrorOf(row, 1, QuantizeMicroseconds(row));
    all[row.table].push_back(error);
    const ProductShape& s = row.shape;
    if (s.m >= 512 && s.n >= 1024 && s.k >= 1024) of_training_size[row.table].push_back(error);
  }
  const std::map<std::string, double> wanted = {
      {"A100 bf16", 0.07},  {"B200 bf16", 0.06}, {"B200 f4", 0.065},  {"B200 f8", 0.05},
      {"H100 bf16", 0.045}, {"H100 f8", 0.03},   {"B200 f8b", 0.075}, {"H100 f8b", 0.07}};
  ASSERT_EQ(all.size(), wanted.size());
  const std::string page = KernelsPage();
  for (const auto& [table, errors] : all) {
    EXPECT_LE(MedianOf(errors), wanted.at(table)) << table;
    EXPECT_THAT(page, testing::HasSubstr(absl::StrFormat(
                          "| %s | %d | %.1f %% | %.1f %% | %.1f %% |", table, errors.size(),
                          100 * MedianOf(errors), 100 * MeanOf(errors),
                          100 * MedianOf(of_training_size[table]))));
  }
}

// Of training's layouts, back to back: the clock was chosen on these.
TEST(MatrixProduct, IsAsMeasuredUnderLoad) {
  std::map<std::string, std::vector<double>> errors;
  for (const std::vector<std::string>& fields : Lines("products_training.csv")) {
    Row row = RowOf(fields);
    row.table = fields[0];
    // Bytes that are written stand in for a type that is as wide; 8, of a sum that is read too.
    row.types.out = fields[5] == "2" ? DType::kBF16 : fields[5] == "4" ? DType::kF32 : DType::kF64;
    errors[row.table].push_back(ErrorOf(row, row.device.rates.sustained, 0));
  }
  ExpectMedians(errors, {{"a100-80gb-pcie", 0.03}, {"b200", 0.06}});
}

TEST(MatrixProduct, IsNeverFasterThanTheDataSheet) {
  std::mt19937 random(1);
  const auto size = [&random] { return int64_t{1} << (random() % 15); };
  for (int i = 0; i < 2000; ++i) {
    const int64_t m = size(), n = size(), k = size();
    const ProductShape shape = {.m = m + static_cast<int64_t>(random() % 7), .n = n, .k = k};
    for (const cluster::Device& device : cluster::AllDevices()) {
      const double flops = 2.0 * static_cast<double>(shape.m) * static_cast<double>(n * k);
      ASSERT_GE(PriceProduct(shape, {}, device).time.seconds() * 1.000001 + 1e-12,
                flops / device.fp16.flops_per_second())
          << device.name << " " << shape.m << "," << n << "," << k;
    }
  }
}

// Of large ones the peak decides, of one row the bytes: 9 sixteenths of one and not 2.
TEST(MatrixProduct, OfFourBitsReadsLessAndRunsFaster) {
  const cluster::Device device = DeviceOf("b200");
  const auto seconds = [&](int64_t m, DType in) {
    return PriceProduct({.m = m, .n = 16384, .k = 16384}, {.in = in}, device).time.seconds();
  };
  const KernelRates rates = cluster::FindDevice("b200")->rates;
  EXPECT_NEAR(seconds(16384, DType::kBF16) / seconds(16384, DType::kF4),
              4 * rates.eighth.efficiency / rates.half.efficiency, 0.15);
  EXPECT_NEAR(seconds(1, DType::kBF16) / seconds(1, DType::kF4),
              2 / 0.5625 * rates.eighth.memory / rates.half.memory, 0.3);
}

// Blocks of all experts share waves: four that leave cores idle take less than four kernels.
TEST(GroupedProduct, SharesWaves) {
  const cluster::Device device = DeviceOf("h100-80gb");
  const std::vector<int64_t> rows(4, 384);
  const ProductTime all = PriceGroupedProduct({.rows = rows, .n = 384, .k = 8192}, {}, device);
  const ProductTime one = PriceProduct({.m = 384, .n = 384, .k = 8192}, {}, device);
  EXPECT_GT(all.waves, one.waves);
  EXPECT_LT(all.time.seconds(), 2.5 * one.time.seconds());
  const ProductTime batch = PriceProduct({.batch = 4, .m = 384, .n = 384, .k = 8192}, {}, device);
  EXPECT_EQ(all.time, batch.time);
}

// Rows that are spread unevenly fill more tiles, and experts without rows read no matrix.
TEST(GroupedProduct, CountsTilesAndMatricesOfEach) {
  const cluster::Device device = DeviceOf("h100-80gb");
  const auto seconds = [&](const std::vector<int64_t>& rows) {
    return PriceGroupedProduct({.rows = rows, .n = 4096, .k = 4096}, {}, device).time.seconds();
  };
  EXPECT_GT(seconds({4000, 32, 32, 32}), seconds({1024, 1024, 1024, 1024}));
  EXPECT_LT(seconds({8, 0, 0, 0}), 0.3 * seconds({2, 2, 2, 2}));
  EXPECT_EQ(seconds({8, 0, 0, 0}), seconds({8}));
}

// An element of 8 bits and a scale for each 128 along k.
TEST(MatrixProduct, OfBlocksReadsTheirScales) {
  const cluster::Device device = DeviceOf("h100-80gb");
  EXPECT_EQ(MatrixPeak(DType::kF8Block, device).flops_per_second(), device.fp8.flops_per_second());
  const auto memory = [&](DType in) {
    return PriceProduct({.m = 1, .n = 16384, .k = 16384}, {.in = in}, device).memory.seconds();
  };
  const KernelRates rates = device.rates;
  EXPECT_NEAR(memory(DType::kF8Block) / memory(DType::kF8),
              1.03125 * rates.quarter.memory / rates.blocks.memory, 0.01);
}

TEST(MatrixProduct, TakesMoreForMore) {
  std::mt19937 random(2);
  for (int i = 0; i < 2000; ++i) {
    const auto next = [&random](unsigned most) {
      return 1 + static_cast<int64_t>(random() % most);
    };
    ProductShape small;
    small.batch = next(8);
    small.m = next(4000);
    // All rows begin at multiples of 16 bytes: others take longer than longer ones that do.
    small.n = 8 * next(500);
    small.k = 8 * next(500);
    ProductShape large = small;
    large.batch += next(3) - 1;
    large.m += next(300) - 1;
    large.n += 8 * (next(40) - 1);
    large.k += 8 * (next(40) - 1);
    ASSERT_GE(TimeOf(large), TimeOf(small)) << small.m << "," << small.n << "," << small.k;
  }
}

// 108 cores: 12 x 9 tiles of 256 x 128 are a wave. One column more begins another, of which most
// counts on an A100: no other tile or split makes up for it.
TEST(MatrixProduct, OneBlockMoreBeginsAWave) {
  const cluster::Device device = DeviceOf("a100-80gb");
  const ProductTime full = PriceProduct({.m = 3072, .n = 1152, .k = 8192}, {}, device);
  EXPECT_EQ(full.waves, 1);
  EXPECT_EQ(full.splits, 1);
  EXPECT_EQ(full.limit(), "products");
  const ProductTime more = PriceProduct({.m = 3072, .n = 1153, .k = 8192}, {}, device);
  EXPECT_GT(more.waves, 1);
  EXPECT_GT(more.time.seconds(), 1.1 * full.time.seconds());
}

TEST(MatrixProduct, OfFewTilesIsSplitAlongK) {
  const ProductTime time =
      PriceProduct({.m = 256, .n = 256, .k = 65536}, {}, DeviceOf("h100-80gb"));
  EXPECT_GT(time.splits, 1);
  EXPECT_GT(time.reductions, Duration(0));
}

TEST(MatrixProduct, OfOneRowIsLimitedByMemory) {
  const ProductTime time =
      PriceProduct({.m = 1, .n = 16384, .k = 16384}, {}, DeviceOf("h100-80gb"));
  EXPECT_EQ(time.limit(), "memory");
  EXPECT_GT(time.time.seconds(), 2.0 * 16384 * 16384 / 3.35e12);
}

TEST(MatrixProduct, OfWeightGradientsWritesItsResult) {
  const ProductShape shape = {.m = 8192, .n = 8192, .k = 64};
  const cluster::Device device = DeviceOf("a100-80gb");
  EXPECT_GT(PriceProduct(shape, {.out = DType::kF32}, device).time,
            PriceProduct(shape, {}, device).time);
}

TEST(MatrixProduct, SlowerClocksSlowProductsAndNotMemory) {
  const cluster::Device device = DeviceOf("b200");
  const ProductShape square = {.m = 8192, .n = 8192, .k = 8192};
  EXPECT_NEAR(PriceProduct(square, {}, device, 0.5).time.seconds(),
              2 * PriceProduct(square, {}, device).time.seconds(), 1e-5);
  const ProductShape row = {.m = 1, .n = 16384, .k = 16384};
  EXPECT_NEAR(PriceProduct(row, {}, device, 0.7).time.seconds() /
                  PriceProduct(row, {}, device).time.seconds(),
              1, 0.1);
}

TEST(MatrixProduct, OfRowsThatDoNotBeginAtSixteenBytesIsSlower) {
  const ProductTypes half, weights = {.along_k = false};
  EXPECT_EQ(RowAlignment({.m = 7, .n = 8, .k = 16}, half), kFullAlignment);
  EXPECT_LT(RowAlignment({.m = 8, .n = 8, .k = 12}, half), kFullAlignment);
  EXPECT_LT(RowAlignment({.m = 8, .n = 50257, .k = 768}, half), kFullAlignment);
  EXPECT_EQ(RowAlignment({.m = 8, .n = 8, .k = 7}, weights), kFullAlignment);
  EXPECT_LT(RowAlignment({.m = 7, .n = 8, .k = 8}, weights), kFullAlignment);
  EXPECT_LT(RowAlignment({.m = 8, .n = 8, .k = 8}, {.in = DType::kF8}), kFullAlignment);
  EXPECT_EQ(RowAlignment({.m = 7, .n = 32, .k = 32}, {.in = DType::kF4}), kFullAlignment);
  EXPECT_EQ(RowAlignment({.m = 32, .n = 32, .k = 16}, {.in = DType::kF4}), 8);
  EXPECT_EQ(RowAlignment({.m = 32, .n = 32, .k = 17}, {.in = DType::kF4}), 0);
  EXPECT_EQ(RowAlignment({.m = 8, .n = 7, .k = 16}, {.in = DType::kF8}), 1);
  EXPECT_EQ(RowAlignment({.m = 7, .n = 7, .k = 7}, {.in = DType::kF32}), kFullAlignment);
  EXPECT_EQ(RowAlignment({.m = 8, .n = 8, .k = 50258}, half), 4);
  EXPECT_EQ(RowAlignment({.m = 8, .n = 50257, .k = 8}, half), 2);
  const cluster::Unaligned left = cluster::FindDevice("h100-80gb")->rates.half.unaligned;
  const auto seconds = [](const ProductShape& shape) { return TimeOf(shape).seconds(); };
  const double aligned = seconds({.m = 4096, .n = 50264, .k = 4096});
  EXPECT_NEAR(seconds({.m = 4096, .n = 50257, .k = 4096}) / aligned, 1 / left.odd, 0.1);
  EXPECT_NEAR(seconds({.m = 4096, .n = 50258, .k = 4096}) / aligned, 1 / left.even, 0.1);
  EXPECT_NEAR(seconds({.batch = 64, .m = 4096, .n = 4096, .k = 4092}) /
                  seconds({.batch = 64, .m = 4096, .n = 4096, .k = 4096}),
              1 / left.batch, 0.2);
}

}  // namespace
}  // namespace matrix_product_test_cc
}  // namespace orrery::cost_models
