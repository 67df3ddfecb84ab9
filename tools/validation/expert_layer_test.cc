#include "tools/validation/expert_layer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cost_models/kernels/measured_test_util.h"

namespace orrery::tools {
namespace expert_layer_test_cc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

int64_t Sum(const std::vector<int64_t>& rows) {
  return std::accumulate(rows.begin(), rows.end(), int64_t{0});
}

// 6 tokens go to 2 of 8 experts each: 12 rows, one or two an expert; of 2 tokens four have one.
TEST(DrawRows, SpreadsThemEvenly) {
  EXPECT_THAT(DrawRows({.tokens = 6, .topk = 2, .experts = 8}, 1),
              ElementsAre(2, 1, 2, 1, 2, 1, 2, 1));
  EXPECT_THAT(DrawRows({.tokens = 2, .topk = 2, .experts = 8, .ranks = 2}, 1),
              ElementsAre(1, 0, 1, 0));
  EXPECT_EQ(DrawRows({.tokens = 1024, .topk = 8, .experts = 256, .ranks = 8}, 1),
            std::vector<int64_t>(32, 32));
}

// All rows are somebody's, none has more than there are tokens, and the rank is the fullest.
TEST(DrawRows, FollowsAPowerLaw) {
  for (const int64_t tokens : {3, 100, 8192}) {
    for (const double power : {0.8, 1.0, 1.01, 1.2}) {
      const Routing whole = {.tokens = tokens, .topk = 8, .experts = 128, .power = power};
      const std::vector<int64_t> rows = DrawRows(whole, 7);
      EXPECT_EQ(Sum(rows), 8 * tokens) << tokens << " " << power;
      EXPECT_LE(std::ranges::max(rows), tokens);
      EXPECT_GE(std::ranges::min(rows), 0);
      Routing shared = whole;
      shared.ranks = 16;
      const std::vector<int64_t> fullest = DrawRows(shared, 7);
      EXPECT_EQ(fullest.size(), 8u);
      EXPECT_GE(16 * Sum(fullest), Sum(rows));
      EXPECT_EQ(DrawRows(shared, 7), fullest);
    }
  }
  const Routing routing = {.tokens = 8192, .topk = 8, .experts = 128, .power = 1.2};
  EXPECT_GT(std::ranges::max(DrawRows(routing, 1)), 3 * 8192 * 8 / 128);
  EXPECT_NE(DrawRows(routing, 1), DrawRows(routing, 2));
}

TEST(PowerOfName, IsOfTheNamesOfTables) {
  EXPECT_EQ(*PowerOfName("balanced"), 0);
  EXPECT_EQ(*PowerOfName("power_law_1.01"), 1.01);
  EXPECT_EQ(PowerOfName("zipf").status().message(), "no distribution of tokens 'zipf'");
  EXPECT_FALSE(PowerOfName("power_law_x").ok());
}

KernelPoints On(const std::string& device, ir::DType dtype) {
  return {.device = *cluster::FindDevice(device),
          .dtype = dtype,
          .quantizes = ir::SizeOf(dtype) == 1,
          .distributions = {"balanced", "power_law_1.2"}};
}

const PointFigures kLayer = {{"tokens", 4096}, {"hidden", 7168},   {"inter", 2048},
                             {"topk", 8},      {"experts", 256},   {"tp", 1},
                             {"ep", 32},       {"distribution", 0}};

// Two products of 6 x 7168 x 2048 flops a row, and more where a rank has more rows.
TEST(ExpertLayer, TakesItsProductsAndMore) {
  const KernelPoints h100 = On("h100-80gb", ir::DType::kBF16);
  const double flops = 4096.0 * 8 / 32 * 6 * 7168 * 2048;
  const double even = PredictExpertLayer(h100, kLayer).value();
  EXPECT_GT(even, flops / 989e12 + 30e-6);
  EXPECT_LT(even, 4 * flops / 989e12);
  PointFigures other = kLayer;
  other["distribution"] = 1;
  EXPECT_GT(PredictExpertLayer(h100, other).value(), 1.5 * even);
  EXPECT_LT(PredictExpertLayer(On("h100-80gb", ir::DType::kF8), kLayer).value(), even);
  other = kLayer;
  other["tp"] = 2;
  EXPECT_LT(PredictExpertLayer(h100, other).value(), even);
}

TEST(ExpertLayer, WantsSizes) {
  const KernelPoints h100 = On("h100-80gb", ir::DType::kBF16);
  const auto error = [&](const std::string& name, double value) {
    PointFigures figures = kLayer;
    figures[name] = value;
    return std::string(PredictExpertLayer(h100, figures).status().message());
  };
  EXPECT_EQ(error("tokens", 0), "a kernel's tokens is no size");
  EXPECT_THAT(error("ep", 3), HasSubstr("none that ranks can share out"));
  EXPECT_THAT(error("topk", 512), HasSubstr("none that ranks can share out"));
  EXPECT_THAT(error("tp", 3), HasSubstr("none that ranks can share out"));
  PointFigures much = kLayer;
  much["inter"] = much["hidden"] = 1 << 24;
  EXPECT_EQ(PredictExpertLayer(h100, much).status().message(),
            "a layer's sizes are together over 1e17");
  EXPECT_EQ(error("distribution", 2), "a layer without a distribution of tokens");
  EXPECT_EQ(error("distribution", -1), "a layer without a distribution of tokens");
}

// None of these shapes had a part in the fit. The page has what is found here.
TEST(ExpertLayer, IsAsMeasured) {
  std::map<std::string, std::map<bool, std::vector<double>>> errors;
  for (const std::vector<std::string>& fields : cost_models::Lines("expert_layers.csv")) {
    KernelPoints kernels = On(fields[0], ir::ParseDType(fields[1]).value());
    kernels.distributions = {fields[2]};
    PointFigures figures = {{"distribution", 0}};
    const char* const names[] = {"tokens", "hidden", "inter", "topk", "experts", "tp", "ep"};
    for (size_t i = 0; i < std::size(names); ++i) {
      ASSERT_TRUE(absl::SimpleAtod(fields[3 + i], &figures[names[i]]));
    }
    double microseconds = 0;
    ASSERT_TRUE(absl::SimpleAtod(fields.back(), &microseconds));
    const double predicted = PredictExpertLayer(kernels, figures).value() * 1e6;
    errors[absl::StrCat(fields[0], " ", fields[1])][fields[2] == "balanced"].push_back(
        std::abs(predicted / microseconds - 1));
  }
  ASSERT_EQ(errors.size(), 8u);
  const std::string page = cost_models::KernelsPage();
  for (auto& [table, of_table] : errors) {
    const auto text = [](const std::vector<double>& some) {
      return some.empty() ? std::string("|  |  ")
                          : absl::StrFormat("| %d | %.1f %% ", some.size(), 100 * MedianOf(some));
    };
    EXPECT_LT(MedianOf(of_table[false]), 0.23) << table;
    EXPECT_THAT(page, HasSubstr(absl::StrCat("| ", table, " ", text(of_table[true]),
                                             text(of_table[false]), "|")));
  }
}

// A kernel for each expert, as TransformerEngine has them; `expert_call_us` was chosen on these.
TEST(GroupedProduct, IsAsMeasuredInTraining) {
  std::map<std::string, std::vector<double>> errors;
  for (const std::vector<std::string>& fields : cost_models::Lines("grouped_training.csv")) {
    KernelPoints kernels = {.device = *cluster::FindDevice(fields[0]), .training = true};
    kernels.experts = {.present = true, .kernel_each = true, .call = Duration::FromSeconds(10e-6)};
    PointFigures figures;
    const char* const names[] = {"groups", "m", "n", "k", "stage"};
    for (size_t i = 0; i < std::size(names); ++i) {
      ASSERT_TRUE(absl::SimpleAtod(fields[1 + i], &figures[names[i]]));
    }
    double microseconds = 0;
    ASSERT_TRUE(absl::SimpleAtod(fields.back(), &microseconds));
    const double predicted = PredictGroupedProduct(kernels, figures).value() * 1e6;
    errors[absl::StrCat("grouped, ", fields[0])].push_back(std::abs(predicted / microseconds - 1));
  }
  cost_models::ExpectMedians(errors, {{"grouped, a100-80gb-pcie", 0.07}, {"grouped, b200", 0.11}});
}

}  // namespace
}  // namespace expert_layer_test_cc
}  // namespace orrery::tools
