#include "cost_models/kernels/matrix_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "support/file.h"

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
  std::string table;
  cluster::Device device;
  ProductTypes types;
  ProductShape shape;
  double microseconds = 0;
};

std::vector<Row> Rows() {
  std::vector<Row> rows;
  const std::string text = *ReadFile(absl::StrCat(ORRERY_SOURCE_DIR, "/tests/data/products.csv"));
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> fields = absl::StrSplit(line, ',');
    Row row;
    if (fields.size() != 6 || !absl::SimpleAtoi(fields[2], &row.shape.m)) continue;
    EXPECT_TRUE(absl::SimpleAtoi(fields[3], &row.shape.n) &&
                absl::SimpleAtoi(fields[4], &row.shape.k) &&
                absl::SimpleAtod(fields[5], &row.microseconds))
        << line;
    row.table = absl::StrCat(fields[0], " ", fields[1]);
    row.device = DeviceOf(fields[0]);
    row.types.in = fields[1] == "f8" ? DType::kF8 : DType::kBF16;
    rows.push_back(std::move(row));
  }
  return rows;
}

double Predicted(const Row& row) {
  const bool quantized = row.types.in == DType::kF8;
  const Duration start = KernelRatesOf(row.device.name).start;
  const Duration other = quantized ? QuantizeTime(row.shape.m * row.shape.k, row.device) : start;
  return (PriceProduct(row.shape, row.types, row.device).time + other +
          (quantized ? start : Duration(0)))
      .microseconds();
}

// The median error of each table, of rows that it was fitted on; docs/kernels.md has those of rows
// that it was not.
TEST(MatrixProduct, IsAsMeasured) {
  std::map<std::string, std::vector<double>> errors;
  for (const Row& row : Rows()) {
    errors[row.table].push_back(std::abs(Predicted(row) / row.microseconds - 1));
  }
  const std::map<std::string, double> bounds = {{"a100-80gb bf16", 0.07},
                                                {"b200 bf16", 0.06},
                                                {"b200 f8", 0.05},
                                                {"h100-80gb bf16", 0.045},
                                                {"h100-80gb f8", 0.03}};
  ASSERT_EQ(errors.size(), bounds.size());
  for (auto& [table, of_table] : errors) {
    std::ranges::sort(of_table);
    ASSERT_GE(of_table.size(), 100u) << table;
    const double median = of_table[of_table.size() / 2];
    EXPECT_LE(median, bounds.at(table)) << table;
    RecordProperty(table, absl::StrCat(median));
  }
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

TEST(MatrixProduct, TakesMoreForMore) {
  std::mt19937 random(2);
  for (int i = 0; i < 2000; ++i) {
    const auto next = [&random](unsigned most) {
      return 1 + static_cast<int64_t>(random() % most);
    };
    ProductShape small;
    small.batch = next(8);
    small.m = next(4000);
    small.n = next(4000);
    small.k = next(4000);
    ProductShape large = small;
    large.batch += next(3) - 1;
    large.m += next(300) - 1;
    large.n += next(300) - 1;
    large.k += next(300) - 1;
    ASSERT_GE(TimeOf(large), TimeOf(small)) << small.m << "," << small.n << "," << small.k;
  }
}

// 132 cores: 132 tiles of 128 x 256 are a wave, one more begins another.
TEST(MatrixProduct, OneBlockMoreBeginsAWave) {
  const ProductTime full =
      PriceProduct({.m = 12 * 256, .n = 11 * 128 * 2, .k = 8192}, {}, DeviceOf("h100-80gb"));
  EXPECT_DOUBLE_EQ(full.waves, std::round(full.waves));
  EXPECT_EQ(full.splits, 1);
  EXPECT_EQ(full.limit(), "products");
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

}  // namespace
}  // namespace matrix_product_test_cc
}  // namespace orrery::cost_models
