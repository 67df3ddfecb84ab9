#include "cost_models/measured_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cost_models/kernels/measured_test_util.h"
#include "cost_models/op_fixture_test_util.h"
#include "ir/op_kind.h"

namespace orrery::cost_models {
namespace measured_kernels_test_cc {
namespace {

using ir::DType;
using testing::HasSubstr;

cluster::Device DeviceOf(absl::string_view name) { return *cluster::FindDevice(name); }

const cluster::Device& H100() {
  static const cluster::Device& device = *new cluster::Device(DeviceOf("h100-80gb"));
  return device;
}

OpKernel Product(int64_t m, int64_t n, int64_t k, ProductLayout layout = ProductLayout::kTN) {
  return ProductKernel({.m = m, .n = n, .k = k}, {.along_k = layout != ProductLayout::kNT}, layout,
                       H100());
}

OpKernel Attention(int64_t heads, int64_t rows, bool backward = false) {
  const double flops = 4.0 * static_cast<double>(heads * rows * rows * 128);
  return AttentionKernel({.heads = heads,
                          .queries = rows,
                          .keys = rows,
                          .width = 128,
                          .visible = VisibleShare(rows, rows),
                          .backward = backward,
                          .flops = Flops(flops),
                          .bytes = Bytes(4 * heads * rows * 128 * 2)},
                         H100());
}

double SecondsOf(const OpKernel& kernel) { return (kernel.time - kernel.host).seconds(); }

// What was measured of a kernel: so many times what the model says.
MeasuredKernel Measured(const OpKernel& kernel, double times) {
  return {.form = kernel.form,
          .layout = kernel.form == KernelForm::kProduct ? std::optional(kernel.layout)
                                                        : std::optional<ProductLayout>(),
          .backward = kernel.attention.backward,
          .sizes = SizesOf(kernel),
          .lines = {2},
          .seconds = times * SecondsOf(kernel)};
}

double RatioOf(const KernelPrice& price, const OpKernel& kernel) {
  return price.time.seconds() / SecondsOf(kernel);
}

TEST(MeasuredKernels, SaysWhatWasMeasured) {
  const OpKernel product = Product(4096, 4096, 4096), attention = Attention(32, 4096);
  const OpKernel moving = MovingKernel(Flops(1e6), Bytes(1 << 28), H100());
  const MeasuredKernels table(
      {Measured(product, 1.25), Measured(attention, 0.8), Measured(moving, 1.5)});
  for (const auto& [kernel, times] :
       {std::pair{product, 1.25}, std::pair{attention, 0.8}, std::pair{moving, 1.5}}) {
    const KernelPrice price = table.Price(kernel, H100());
    EXPECT_EQ(price.source, TimeSource::kMeasured);
    EXPECT_NEAR(RatioOf(price, kernel), times, 1e-6);
  }
  // Of another type, direction, mask or device nothing is known.
  OpKernel other = product;
  other.types.in = DType::kF32;
  EXPECT_EQ(table.Price(other, H100()).source, TimeSource::kModelled);
  EXPECT_EQ(table.Price(other, H100()).time, other.time);
  const OpKernel back = Attention(32, 4096, true);
  EXPECT_EQ(table.Price(back, H100()).time, back.time);
  MeasuredKernel elsewhere = Measured(product, 2);
  elsewhere.device = "b200";
  EXPECT_EQ(MeasuredKernels({elsewhere}).Price(product, H100()).time, product.time);
  EXPECT_FALSE(MeasuredKernels({elsewhere}).Has(H100()));
}

TEST(MeasuredKernels, ReachesADoublingOfEachSize) {
  const MeasuredKernels table({Measured(Product(4096, 4096, 4096), 1.25)});
  for (const OpKernel& near : {Product(8192, 4096, 4096), Product(2048, 8192, 2048),
                               Product(4096, 4096, 4096, ProductLayout::kNT)}) {
    const KernelPrice price = table.Price(near, H100());
    EXPECT_EQ(price.source, TimeSource::kInterpolated);
    EXPECT_NEAR(RatioOf(price, near), 1.25, 1e-6);
  }
  for (const OpKernel& far : {Product(8200, 4096, 4096), Product(4096, 2040, 4096)}) {
    const KernelPrice price = table.Price(far, H100());
    EXPECT_EQ(price.source, TimeSource::kModelled);
    EXPECT_EQ(price.time, far.time);
  }
}

TEST(MeasuredKernels, IsBetweenThoseBesideIt) {
  const OpKernel below = Product(2048, 4096, 4096), above = Product(8192, 4096, 4096);
  const MeasuredKernels table({Measured(below, 1.1), Measured(above, 1.3)});
  const OpKernel between = Product(4096, 4096, 4096), nearer = Product(3072, 4096, 4096);
  EXPECT_NEAR(RatioOf(table.Price(between, H100()), between), std::sqrt(1.1 * 1.3), 1e-3);
  EXPECT_LT(RatioOf(table.Price(nearer, H100()), nearer), 1.17);
  // One of five that is far off hardly counts.
  std::vector<MeasuredKernel> rows;
  for (const int64_t m : {3584, 3840, 4352, 4608})
    rows.push_back(Measured(Product(m, 4096, 4096), 1.1));
  rows.push_back(Measured(Product(4224, 4096, 4096), 2));
  EXPECT_LT(RatioOf(MeasuredKernels(rows).Price(between, H100()), between), 1.13);
  EXPECT_EQ(table.Nearest(nearer, H100(), 5)[0].measured->sizes, SizesOf(below));
  EXPECT_EQ(table.Nearest(nearer, H100(), 1).size(), 1u);
}

// Products of experts are near to each other, and to products of as many matrices, which are near
// to none of experts.
TEST(MeasuredKernels, OfExpertsTakeProductsOfManyMatricesToo) {
  const OpKernel batch =
      ProductKernel({.batch = 8, .m = 256, .n = 512, .k = 1024}, {}, ProductLayout::kTN, H100());
  const OpKernel one = ExpertsKernel(batch, {.present = true}, H100());
  const OpKernel each = ExpertsKernel(batch, {.present = true, .kernel_each = true}, H100());
  const MeasuredKernels of_experts({Measured(one, 3)}), of_matrices({Measured(batch, 2)});
  EXPECT_EQ(of_experts.Price(one, H100()).source, TimeSource::kMeasured);
  EXPECT_NEAR(of_experts.Price(one, H100()).time.seconds(), 3 * SecondsOf(one), 1e-9);
  EXPECT_EQ(of_experts.Price(batch, H100()).source, TimeSource::kModelled);
  EXPECT_NEAR(of_matrices.Price(one, H100()).time.seconds(), 2 * SecondsOf(one), 1e-9);
  EXPECT_EQ(of_matrices.Price(each, H100()).source, TimeSource::kInterpolated);
  EXPECT_NEAR(of_matrices.Price(each, H100()).time.seconds(), 2 * SecondsOf(each), 1e-9);
}

TEST(MeasuredKernels, TakesNoLessThanTheHost) {
  const OpKernel tiny = Product(64, 64, 64);
  const KernelPrice price = MeasuredKernels({Measured(tiny, 0.9)}).Price(tiny, H100());
  EXPECT_EQ(price.source, TimeSource::kMeasured);
  EXPECT_EQ(price.time, H100().launch_overhead);
}

// A table that is the model but for a factor is that everywhere in reach: as smooth, as monotone.
// And of any table a price is between the least and the most of what was measured over the model.
TEST(MeasuredKernels, AreAsWellBehavedAsTheModel) {
  std::mt19937 random(1);
  const auto size = [&random] { return int64_t{128} << (random() % 8); };
  for (int trial = 0; trial < 20; ++trial) {
    std::vector<MeasuredKernel> scaled, noisy;
    double least = 1, most = 1;
    for (int i = 0; i < 40; ++i) {
      const OpKernel kernel =
          Product(size(), size(), size(), static_cast<ProductLayout>(random() % 3));
      const double times = 0.5 + static_cast<double>(random() % 1000) / 500;
      scaled.push_back(Measured(kernel, 1.5));
      noisy.push_back(Measured(kernel, times));
      least = std::min(least, times);
      most = std::max(most, times);
    }
    const MeasuredKernels level(scaled), any(noisy);
    for (int i = 0; i < 50; ++i) {
      const OpKernel kernel = Product(size() + 8, size() - 8, size());
      const KernelPrice price = level.Price(kernel, H100());
      if (price.source != TimeSource::kModelled && price.time > H100().launch_overhead) {
        EXPECT_NEAR(RatioOf(price, kernel), 1.5, 1e-5);
      }
      const Duration time = any.Price(kernel, H100()).time;
      EXPECT_GE(time.seconds(), SecondsOf(kernel) * least * (1 - 1e-9));
      EXPECT_LE(time.seconds(),
                std::max(kernel.time.seconds(), SecondsOf(kernel) * most) * (1 + 1e-9) + 5e-6);
    }
  }
}

struct Row {
  OpKernel kernel;
  double by_model, seconds;
};
using Rows = std::vector<Row>;

// Line `fields` of a table: what is measured, and what the model says at the clock of training, or
// else of bursts.
Row RowOf(const std::vector<std::string>& fields, ProductTypes types, ProductLayout layout,
          bool training) {
  const cluster::Device device = DeviceOf(fields[0]);
  ir::ProductShape shape;
  Row row = {};
  EXPECT_TRUE(absl::SimpleAtoi(fields[2], &shape.m) && absl::SimpleAtoi(fields[3], &shape.n) &&
              absl::SimpleAtoi(fields[4], &shape.k) &&
              absl::SimpleAtod(fields.back(), &row.seconds));
  row.seconds /= 1e6;
  row.kernel = ProductKernel(shape, types, layout, device);
  row.by_model = training
                     ? SecondsOf(row.kernel)
                     : (PriceProduct(shape, types, device).time + device.rates.start).seconds();
  return row;
}

std::map<std::string, Rows> MeasuredRows() {
  std::map<std::string, Rows> rows;
  for (const std::vector<std::string>& fields : Lines("products_training.csv")) {
    const ProductLayout layout = *kProductLayoutNames.Find(fields[1]);
    const ProductTypes types = {.out = fields[5] == "2"   ? DType::kBF16
                                       : fields[5] == "4" ? DType::kF32
                                                          : DType::kF64,  // as wide as is moved
                                .along_k = layout != ProductLayout::kNT};
    rows[fields[0] + ", training"].push_back(RowOf(fields, types, layout, true));
  }
  for (const std::vector<std::string>& fields : Lines("products.csv")) {
    if (fields[1] != "bf16") continue;
    rows[fields[0] + ", bursts"].push_back(RowOf(fields, {}, ProductLayout::kTN, false));
  }
  return rows;
}

// The shapes of some rows, mixed: a half of them is theirs that are before the middle.
std::map<KernelSizes, bool> HalvesOf(const Rows& rows) {
  std::vector<KernelSizes> shapes;
  for (const Row& row : rows) shapes.push_back(SizesOf(row.kernel));
  std::ranges::sort(shapes);
  shapes.erase(std::unique(shapes.begin(), shapes.end()), shapes.end());
  std::mt19937 random(1);  // NOLINT: the same on each run
  std::map<KernelSizes, bool> halves;
  for (size_t left = shapes.size(); left > 0; --left) {
    std::swap(shapes[random() % left], shapes[left - 1]);
    halves[shapes[left - 1]] = left % 2 == 0;
  }
  return halves;
}

struct Errors {
  std::vector<double> by_model, by_table;
};

// Of the rows that one half of the table reaches of the other.
Errors ErrorsOf(const Rows& rows, const cluster::Device& device) {
  const std::map<KernelSizes, bool> halves = HalvesOf(rows);
  Errors errors;
  for (const bool known : {false, true}) {
    std::vector<MeasuredKernel> table;
    for (const Row& row : rows) {
      if (halves.at(SizesOf(row.kernel)) != known) continue;
      table.push_back(Measured(row.kernel, 1));
      table.back().seconds = row.seconds;
    }
    const MeasuredKernels measured(table);
    for (const Row& row : rows) {
      if (halves.at(SizesOf(row.kernel)) == known) continue;
      OpKernel kernel = row.kernel;  // in a captured graph
      kernel.time -= std::exchange(kernel.host, Duration(0));
      const KernelPrice price = measured.Price(kernel, device);
      if (price.source != TimeSource::kInterpolated) continue;
      errors.by_model.push_back(std::abs(row.by_model / row.seconds - 1));
      errors.by_table.push_back(std::abs(price.time.seconds() / row.seconds - 1));
    }
  }
  return errors;
}

double MeanOf(const std::vector<double>& errors) {
  return std::accumulate(errors.begin(), errors.end(), 0.0) / static_cast<double>(errors.size());
}

// Half of the shapes price the other half, and the other way around. The page has the errors, and
// says why those of B200 are not smaller than the model's.
TEST(MeasuredKernels, PriceTheOtherHalfOfATable) {
  const std::string page = KernelsPage();
  for (const auto& [name, rows] : MeasuredRows()) {
    const Errors errors = ErrorsOf(rows, DeviceOf(name.substr(0, name.find(','))));
    const double by_model = MedianOf(errors.by_model), by_table = MedianOf(errors.by_table);
    EXPECT_THAT(
        page, HasSubstr(absl::StrFormat("| %s | %d of %d | %.1f %% | %.1f %% | %.1f %% | %.1f %% |",
                                        name, errors.by_table.size(), rows.size(), 100 * by_model,
                                        100 * MeanOf(errors.by_model), 100 * by_table,
                                        100 * MeanOf(errors.by_table))));
    EXPECT_LT(MeanOf(errors.by_table), 1.06 * MeanOf(errors.by_model)) << name;
    EXPECT_LT(by_table, (name.starts_with("b200") ? 1.06 : 0.9) * by_model) << name;
  }
}

}  // namespace
}  // namespace measured_kernels_test_cc
}  // namespace orrery::cost_models
