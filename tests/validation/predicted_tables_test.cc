#include "tools/validation/predicted_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cost_models/kernels/kernel_rates.h"
#include "cost_models/kernels/matrix_product.h"
#include "cost_models/measured_curves.h"
#include "support/file.h"
#include "support/paths_test_util.h"
#include "tools/measurements.h"
#include "tools/validation/kernel_points.h"
#include "tools/validation/validation_report.h"

namespace orrery::tools {
namespace predicted_tables_test_cc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

const std::string kFile = SourceDir() + "/tests/data/validation_tables.json";

const std::vector<PredictedTable>& Tables() {
  static const auto& kTables = *new std::vector<PredictedTable>(*PredictAllTables(kFile));
  return kTables;
}

const PredictedTable& Named(const std::string& name, size_t which = 0) {
  for (const PredictedTable& table : Tables()) {
    if (table.name == name && which-- == 0) return table;
  }
  ADD_FAILURE() << "no table " << name;
  return Tables().front();
}

// Of 4096 x 12288 x 12288, with its start.
double ProductOnH100(ir::DType dtype) {
  const cluster::Device device = *cluster::FindDevice("h100-80gb");
  return (cost_models::PriceProduct({.m = 4096, .n = 12288, .k = 12288}, {.in = dtype}, device)
              .time +
          device.rates.start)
      .seconds();
}

TEST(PredictedTables, ProductsOfBursts) {
  const PredictedTable& table = Named("H100-SXM5-80GB bfloat16");
  EXPECT_EQ(table.source, "validation_tables");
  EXPECT_EQ(table.split, "reference");
  ASSERT_EQ(table.points.size(), 2u);
  EXPECT_EQ(table.points[0].what, "m=4096,n=12288,k=12288");
  EXPECT_DOUBLE_EQ(table.points[0].measured, 1560e-6);
  EXPECT_DOUBLE_EQ(table.points[0].predicted, ProductOnH100(ir::DType::kBF16));
  EXPECT_THAT(table.skipped, ElementsAre(Pair("a kernel's m is no size", 1),
                                         Pair("a point is no list of the table's fields", 1)));
}

// TensorRT-LLM's layers make the 8 bits, at three bytes an element and pass; other tables do not.
TEST(PredictedTables, ProductsOfEightBitsWithWhatMakesThem) {
  const double alone = ProductOnH100(ir::DType::kF8);
  EXPECT_DOUBLE_EQ(Named("H100-SXM5-80GB fp8", 1).points[0].predicted, alone);
  const double quantizes = Named("H100-SXM5-80GB fp8").points[0].predicted - alone;
  EXPECT_GT(quantizes, 9.82e-6 + 2.25 * 3 * 4096 * 12288 / 3.35e12);
  EXPECT_LT(quantizes, 9.82e-6 + 2.25 * 3 * 4096 * 12288 / (0.5 * 3.35e12));
}

// The clock of training, and sums in fp32 that are read and written.
TEST(PredictedTables, ProductsOfTraining) {
  const PredictedTable& table = Named("B200-SXM-180GB gemm");
  const cluster::Device device = *cluster::FindDevice("b200");
  const cost_models::KernelRates rates = cluster::FindDevice("b200")->rates;
  const Duration slow = cost_models::PriceProduct({.m = 8192, .n = 8192, .k = 8192}, {}, device,
                                                  cost_models::ClockOf(rates, ir::DType::kBF16))
                            .time;
  EXPECT_DOUBLE_EQ(table.points[0].predicted, (slow + rates.start).seconds());
  EXPECT_GT(table.points[1].predicted, table.points[0].predicted);
  // Three products of as many flops each.
  const PredictedTable& grouped = Named("B200-SXM-180GB grouped_gemm");
  ASSERT_EQ(grouped.points.size(), 3u);
  for (const PredictedPoint& point : grouped.points) {
    EXPECT_NEAR(point.predicted / grouped.points[0].predicted, 1, 0.25) << point.what;
  }
}

// Products with scales of blocks, and whole layers of experts.
TEST(PredictedTables, BlocksAndExperts) {
  const PredictedPoint& blocks = Named("H100-SXM5-80GB fp8_block").points.at(0);
  EXPECT_GT(blocks.predicted, ProductOnH100(ir::DType::kF8Block) + 1.59e-6);
  EXPECT_GT(blocks.predicted, Named("H100-SXM5-80GB fp8").points[0].predicted);
  const PredictedTable& layer = Named("H100-SXM5-80GB bfloat16", 1);
  ASSERT_EQ(layer.points.size(), 1u);
  EXPECT_THAT(layer.points[0].what, HasSubstr("tokens=4096,hidden=7168"));
  EXPECT_NEAR(layer.points[0].predicted, 350e-6, 100e-6);
}

TEST(PredictedTables, Attention) {
  const PredictedTable& both = Named("B200-SXM-180GB attention");
  ASSERT_EQ(both.points.size(), 2u);
  EXPECT_GT(both.points[1].predicted, 1.5 * both.points[0].predicted);
  const PredictedTable& a100 = Named("A100-SXM4-80GB bfloat16");
  // Causal flops at 50 to 250 TFLOP/s.
  const double flops = 2.0 * 4096 * 4096 * 32 * 128;
  EXPECT_GT(flops / a100.points[0].predicted, 50e12);
  EXPECT_LT(flops / a100.points[0].predicted, 250e12);
}

// What `collective` says of the same sweep.
TEST(PredictedTables, Collectives) {
  const PredictedTable& table = Named("A100-SXM4-80GB NCCL 2.27.3 all_reduce");
  const PredictedTable& sweep = Named("ring");
  ASSERT_EQ(table.points.size(), 2u);
  ASSERT_EQ(sweep.points.size(), 2u);
  EXPECT_EQ(sweep.split, "calibration");
  EXPECT_EQ(table.points[1].what, "gpus=8,bytes=536870912");
  EXPECT_DOUBLE_EQ(table.points[1].predicted, sweep.points[1].predicted);
  const auto curves = cost_models::ParseMeasuredCurves(*ReadFile(kFile), kFile);
  ASSERT_TRUE(curves.ok()) << curves.status();
  EXPECT_DOUBLE_EQ(sweep.points[0].predicted, (*PredictCurve(curves->curves[0]))[0]);
}

TEST(PredictedTables, RowsOfAKernelEach) {
  const PredictedTable& best = Named("NVIDIA H100 SXM bf16 gemm (best shape found)");
  ASSERT_EQ(best.points.size(), 1u);
  EXPECT_NEAR(best.points[0].measured, 2.0 * 2048 * 2048 * 13312 / 794.5e12, 1e-12);
  EXPECT_NEAR(best.points[0].predicted / best.points[0].measured, 1, 0.2);
  const PredictedTable& flash = Named("H100 bf16 attention forward (FA3)");
  EXPECT_NEAR(flash.points[0].predicted / flash.points[0].measured, 1, 0.2);
}

TEST(PredictedTables, SkipWithAReason) {
  const std::string text = TableText(Tables());
  for (const std::string reason :
       {"     2  no kernels of type 'int4'\n", "     1  no device 'abacus'\n",
        "     1  no collective 'gossip'\n", "     1  no sweep of sizes of a collective\n",
        "     1  no single kernel has tokens, us\n", "     1  no distribution of tokens 'zipf'\n",
        "     1  a table without \"fields\" and \"points\"\n"}) {
    EXPECT_THAT(text, HasSubstr(reason));
  }
  EXPECT_EQ(TableText({}), "");
}

TEST(PredictedTables, Figures) {
  const PredictedTable table = {
      .source = "s",
      .split = "holdout",
      .name = "t",
      .points = {{"a", 1, 1.1}, {"b", 2, 1.6}, {"c", 1, 1.0}, {"d", 1, 1.3}}};
  const TableFigures figures = FiguresOf(table);
  EXPECT_EQ(figures.errors.count, 4);
  EXPECT_NEAR(figures.median, 0.15, 1e-12);
  EXPECT_NEAR(figures.errors.mean, 0.15, 1e-12);
  EXPECT_NEAR(figures.errors.worst, 0.3, 1e-12);
  EXPECT_NEAR(figures.errors.bias, 0.05, 1e-12);
  EXPECT_EQ(TableText({&table, 1}), R"(
source  table  split    points  median    mean   worst    bias
s       t      holdout       4  15.00%  15.00%  30.00%  +5.00%
)");
  const ValidationReport report = {.steps = {}, .tables = {table}};
  EXPECT_THAT(ReportCsv(report), HasSubstr("\nt b,2,1.6,-0.2000,,,,,s,holdout,,,,,,\n"));
  EXPECT_THAT(ReportJson(report), HasSubstr("\"points\": 4"));
}

TEST(PredictedTables, WantJson) {
  EXPECT_EQ(PredictTables("nothing", "f.json").status().message(),
            "f.json: is not JSON; wanted {\"tables\": [...]}");
  EXPECT_TRUE(PredictTables("[1, 2]", "f.json")->empty());
  EXPECT_TRUE(
      PredictTables(
          R"({"rows": [1, {"op": 3}, {"op": "gemm", "shape": {"m": 1}, "measured": {"tflops": 1}}], "tables": [4, {}]})",
          "f.json")
          .ok());
}

TEST(KernelPoints, SizesAreSizes) {
  const KernelPoints kernels = {.device = *cluster::FindDevice("h100-80gb")};
  const auto error = [&](const PointFigures& figures) {
    return std::string(PredictProduct(kernels, figures).status().message());
  };
  EXPECT_EQ(error({{"m", 1.5}, {"n", 2}, {"k", 2}}), "a kernel's m is no size");
  EXPECT_EQ(error({{"m", 1}, {"n", 2}}), "a kernel's k is no size");
  EXPECT_EQ(error({{"m", 1 << 24}, {"n", 1 << 24}, {"k", 1 << 24}}),
            "a kernel's sizes are together over 1e17");
  EXPECT_FALSE(PredictAttention(kernels, {{"batch", 1}, {"heads", 1}, {"seq", 64}}).ok());
  const PointFigures much = {
      {"batch", 1 << 20}, {"heads", 1}, {"seq", 1 << 16}, {"head_dim", 64}, {"kv_heads", 1 << 20}};
  EXPECT_EQ(PredictAttention(kernels, much).status().message(),
            "a kernel's sizes are together over 1e17");
  EXPECT_EQ(DeviceOfName("GB300")->name, "gb300");
  EXPECT_EQ(DeviceOfName("H100-SXM5-80GB (inferred)")->name, "h100-80gb");
  EXPECT_EQ(*TypeOfName("FP8 (`float8_e4m3fn`)"), ir::DType::kF8);
  EXPECT_EQ(*TypeOfName("fp8 e4m3, fine-grained scales, bf16 out"), ir::DType::kF8Block);
  EXPECT_EQ(*TypeOfName("fp8_block"), ir::DType::kF8Block);
  EXPECT_EQ(*TypeOfName("nvfp4"), ir::DType::kF4);
  EXPECT_FALSE(TypeOfName("int4").ok());
}

}  // namespace
}  // namespace predicted_tables_test_cc
}  // namespace orrery::tools
