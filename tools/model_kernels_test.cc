#include "tools/model_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cost_models/kernel_table.h"
#include "cost_models/measured_kernels.h"

namespace orrery::tools {
namespace model_kernels_test_cc {
namespace {

using search::StepKernel;
using testing::HasSubstr;
using testing::Not;

cluster::Device Device() { return *cluster::FindDevice("h100-80gb"); }

// A product, attention, one that moves bytes, and one without flops.
std::vector<StepKernel> Some() {
  const cluster::Device device = Device();
  const cost_models::FusedAttention attention = {.batch = 2,
                                                 .heads = 8,
                                                 .queries = 1024,
                                                 .keys = 1024,
                                                 .width = 64,
                                                 .visible = 0.5,
                                                 .flops = Flops(4.0 * 16 * 1024 * 1024 * 64),
                                                 .bytes = Bytes(4 * 16 * 1024 * 64 * 2)};
  return {
      {.op = "Linear",
       .kernel = cost_models::ProductKernel({.m = 4096, .n = 1024, .k = 4096}, {},
                                            cost_models::ProductLayout::kTN, device),
       .count = 12},
      {.op = "Attention", .kernel = cost_models::AttentionKernel(attention, device), .count = 12},
      {.op = "Add",
       .kernel = cost_models::MovingKernel(Flops(1e6), Bytes(6'000'000), device),
       .count = 24},
      {.op = "Gather",
       .kernel = cost_models::MovingKernel(Flops(0), Bytes(4'000'000), device),
       .count = 1}};
}

// What is written is a table of kernels that price themselves.
TEST(KernelsCsv, IsATable) {
  const std::vector<StepKernel> kernels = Some();
  const std::string csv = KernelsCsv(kernels);
  EXPECT_THAT(csv, HasSubstr("\nmatmul,bf16,4096x1024x4096,TN,"));
  EXPECT_THAT(csv, HasSubstr("\nattention,bf16,2x8x1024x64,causal,"));
  const auto table = cost_models::ParseKernelTable(csv, "f.csv");
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->size(), kernels.size());
  const cost_models::MeasuredKernels measured(*table);
  for (const StepKernel& row : kernels) {
    const cost_models::KernelPrice price = measured.Price(row.kernel, Device());
    EXPECT_EQ(price.source, TimeSource::kMeasured) << row.op;
    EXPECT_NEAR(price.time.seconds(), row.kernel.time.seconds(), 1e-5 * price.time.seconds());
  }
}

TEST(KernelsText, ShowsTheLongest) {
  const std::string text = KernelsText(Some(), Device(), 2);
  EXPECT_THAT(text, HasSubstr("Linear 4096x1024x4096 TN"));
  EXPECT_THAT(text, HasSubstr("Attention 2x8x1024x64 causal"));
  EXPECT_THAT(text, HasSubstr("% of flops\n"));
  EXPECT_THAT(text, HasSubstr("and 2 others: "));
  EXPECT_THAT(KernelsText(Some(), Device(), 4), Not(HasSubstr("others")));
}

TEST(KernelsJson, HasSharesOfOne) {
  const nlohmann::json kernels = nlohmann::json::parse(KernelsJson(Some()))["kernels"];
  double shares = 0;
  for (const nlohmann::json& kernel : kernels) shares += kernel["share"].get<double>();
  EXPECT_NEAR(shares, 1, 1e-9);
  EXPECT_EQ(kernels[0]["group"], "products");
  EXPECT_DOUBLE_EQ(kernels[0]["flops_per_byte"].get<double>(),
                   kernels[0]["flops"].get<double>() / kernels[0]["bytes"].get<double>());
}

TEST(RooflinePlot, KeepsPointsBelowTheRoofs) {
  const Plot plot = RooflinePlot(Some(), Device(), "a model's");
  EXPECT_THAT(plot.commands, HasSubstr("set title 'a model''s'"));
  EXPECT_THAT(plot.commands, HasSubstr("bf16: 989 TFLOP/s, 3.35 TB/s"));
  EXPECT_THAT(plot.commands, HasSubstr("set xrange [0.1:1000]"));
  ASSERT_EQ(plot.tables.size(), 3u);
  size_t points = 0;
  for (const PlotTable& table : plot.tables) {
    for (const std::vector<PlotCell>& row : table.rows) {
      const double intensity = std::get<double>(row[0]), rate = std::get<double>(row[1]);
      EXPECT_LT(rate, std::min(989e12, intensity * 3.35e12));
      EXPECT_GT(std::get<double>(row[2]), 0.4);
      ++points;
    }
  }
  EXPECT_EQ(points, 3u);  // one has no flops
  const absl::StatusOr<std::string> drawn = DrawPlot(plot, PlotFormat::kSvg);
  ASSERT_TRUE(drawn.ok()) << drawn.status();
  EXPECT_THAT(*drawn, HasSubstr("attention"));
}

}  // namespace
}  // namespace model_kernels_test_cc
}  // namespace orrery::tools
