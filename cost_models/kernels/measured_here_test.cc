#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "cost_models/cost_model.h"
#include "cost_models/kernels/attention_kernel.h"
#include "cost_models/kernels/matrix_product.h"
#include "cost_models/kernels/measured_test_util.h"

// Kernels that examples/profile_gpu.py has measured on an H100 (data/measured), against rates of
// which those of attention and of rows that are not aligned were chosen on them, and no others.

namespace orrery::cost_models {
namespace measured_here_test_cc {
namespace {

using Errors = std::map<std::string, std::vector<double>>;

// A row of such a file, with the columns that it has there.
struct Row {
  std::string op, dtype, layout;
  std::vector<int64_t> sizes;
  double seconds = 0, burst_seconds = 0;
  bool backward = false;
};

std::vector<Row> RowsOf(const std::string& file) {
  std::vector<Row> rows;
  for (const std::vector<std::string>& fields : Lines(file, "data/measured")) {
    EXPECT_EQ(fields.size(), 8u) << fields[0];
    Row row = {.op = fields[0],
               .dtype = fields[1],
               .layout = fields[3],
               .sizes = {},
               .backward = fields[6] == "backward"};
    for (const absl::string_view size : absl::StrSplit(fields[2], 'x')) {
      EXPECT_TRUE(absl::SimpleAtoi(size, &row.sizes.emplace_back())) << fields[2];
    }
    EXPECT_TRUE(absl::SimpleAtod(fields[4], &row.seconds)) << fields[4];
    EXPECT_TRUE(absl::SimpleAtod(fields[7], &row.burst_seconds)) << fields[7];
    rows.push_back(std::move(row));
  }
  return rows;
}

cluster::Device H100() { return *cluster::FindDevice("h100-80gb"); }

ir::ProductShape ShapeOf(const Row& row) {
  const size_t at = row.sizes.size() - 3;
  return {.batch = at == 1 ? row.sizes[0] : 1,
          .m = row.sizes[at],
          .n = row.sizes[at + 1],
          .k = row.sizes[at + 2]};
}

ProductTypes TypesOf(const Row& row) {
  return {.in = row.dtype == "f8" ? ir::DType::kF8 : ir::DType::kBF16,
          .along_k = row.layout != "NT"};
}

bool IsAligned(const Row& row) {
  return RowAlignment(ShapeOf(row), TypesOf(row)) == kFullAlignment;
}

double ProductSeconds(const Row& row) {
  return PriceProduct(ShapeOf(row), TypesOf(row), H100()).time.seconds();
}

double AttentionSeconds(const Row& row, AttentionClass kernel) {
  const int64_t keys = row.sizes[2];
  const double scores = static_cast<double>(row.sizes[0] * row.sizes[1] * keys * keys);
  const FusedAttention attention{
      .batch = row.sizes[0],
      .heads = row.sizes[1],
      .queries = keys,
      .keys = keys,
      .width = row.sizes[3],
      .visible = row.layout == "causal" ? VisibleShare(keys, keys) : 1,
      .backward = row.backward,
      .kernel = kernel,
      .flops = Flops(scores * static_cast<double>(row.sizes[3]) * (row.backward ? 10 : 4))};
  return (PriceAttention(attention, H100(), H100().rates) + H100().rates.start).seconds();
}

double MemorySeconds(const Row& row) {
  return static_cast<double>(row.sizes[0]) /
         (static_cast<double>(H100().memory_bandwidth.bytes_per_second()) *
          H100().rates.half.memory);
}

void Add(double predicted, double measured, std::vector<double>& errors) {
  errors.push_back(std::abs(predicted / measured - 1));
}

TEST(MeasuredHere, KernelsTakeWhatThePageSays) {
  Errors errors;
  const auto add_product = [&](const Row& row) {
    const std::string kind = IsAligned(row) ? "of " + row.dtype : "that are not aligned";
    Add(ProductSeconds(row), row.burst_seconds, errors["products " + kind]);
  };
  for (const Row& row : RowsOf("h100_unaligned.csv")) add_product(row);
  for (const Row& row : RowsOf("h100_kernels.csv")) {
    if (row.op == "matmul") {
      add_product(row);
    } else if (row.op == "attention") {
      Add(AttentionSeconds(row, AttentionClass::kFlash2), row.seconds, errors["flash2"]);
    } else if (row.op == "elementwise" && row.sizes[0] >= 1 << 25) {
      Add(MemorySeconds(row), row.seconds, errors["of 32 MiB and more"]);
    }
  }
  for (const Row& row : RowsOf("h100_attention_cudnn.csv")) {
    Add(AttentionSeconds(row, AttentionClass::kCudnn), row.seconds, errors["cudnn"]);
  }
  ExpectMedians(errors, {{"products of bf16", 0.05},
                         {"products of f8", 0.12},
                         {"flash2", 0.1},
                         {"cudnn", 0.05},
                         {"of 32 MiB and more", 0.06},
                         {"products that are not aligned", 0.12}});
}

// What a loop of products keeps of a burst, where power does not let it have all of its clock.
TEST(MeasuredHere, ALoneDeviceKeepsMoreOfItsClockThanOnesInTraining) {
  std::vector<double> kept;
  for (const Row& row : RowsOf("h100_kernels.csv")) {
    const bool is_long = row.op == "matmul" && row.dtype == "bf16" && row.seconds >= 4e-4;
    if (!is_long || !IsAligned(row)) continue;
    kept.push_back(row.burst_seconds / row.seconds);
  }
  EXPECT_NEAR(MedianOf(kept), 0.90, 0.01) << kept.size();
  EXPECT_LT(H100().rates.sustained, MedianOf(kept));
}

}  // namespace
}  // namespace measured_here_test_cc
}  // namespace orrery::cost_models
