#include "cost_models/kernels/attention_kernel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "cost_models/kernels/measured_test_util.h"

namespace orrery::cost_models {
namespace attention_kernel_test_cc {
namespace {

cluster::Device H100() { return *cluster::FindDevice("h100-80gb"); }

Duration PriceOnH100(const FusedAttention& attention) {
  return PriceAttention(attention, H100(), KernelRatesOf("h100-80gb"));
}

double Ratio(Duration a, Duration b) { return a.seconds() / b.seconds(); }

TEST(PriceAttention, IsInProportionWhereThereIsMuch) {
  const auto of = [](int64_t heads, int64_t keys) {
    return FusedAttention{.heads = heads,
                          .queries = keys,
                          .keys = keys,
                          .width = 128,
                          .visible = 0.5,
                          .flops = Flops(4.0 * 128 * static_cast<double>(heads * keys * keys))};
  };
  EXPECT_NEAR(Ratio(PriceOnH100(of(128, 8192)), PriceOnH100(of(64, 8192))), 2, 0.01);
  EXPECT_NEAR(Ratio(PriceOnH100(of(64, 65536)), PriceOnH100(of(64, 32768))), 4, 0.05);
  // Shah et al. (2024): 500 to 650 TFLOP/s of causal flops.
  const double rate = of(64, 8192).flops.count() / 2 / PriceOnH100(of(64, 8192)).seconds();
  EXPECT_GT(rate, 500e12);
  EXPECT_LT(rate, 650e12);
  FusedAttention back = of(64, 8192);
  back.backward = true;
  EXPECT_GT(PriceOnH100(back), PriceOnH100(of(64, 8192)));
  // Without matrix units for wide numbers.
  FusedAttention wide = of(64, 8192);
  wide.dtype = ir::DType::kF32;
  EXPECT_NEAR(Ratio(PriceOnH100(wide), PriceOnH100(of(64, 8192))),
              H100().fp16.flops_per_second() / H100().fp32.flops_per_second(), 0.01);
  FusedAttention narrow = of(64, 8192);
  narrow.width = 64;
  EXPECT_GT(PriceOnH100(narrow), PriceOnH100(of(64, 8192)));
  // Few tiles leave cores idle: the longest says how long.
  EXPECT_GT(PriceOnH100(of(1, 1024)) * 8, PriceOnH100(of(64, 1024)));
}

TEST(PriceAttention, TakesWhatMemoryTakes) {
  const FusedAttention one{.batch = 64,
                           .heads = 8,
                           .queries = 1,
                           .keys = 8192,
                           .width = 128,
                           .flops = Flops(4.0 * 64 * 8 * 8192 * 128),
                           .bytes = Bytes(int64_t{64} * 8 * 8192 * 128 * 4)};
  const double rate = static_cast<double>(one.bytes.count()) / PriceOnH100(one).seconds();
  EXPECT_LE(rate, static_cast<double>(H100().memory_bandwidth.bytes_per_second()));
}

// The rates are of what more heads add to these; the page has what is found here.
TEST(PriceAttention, IsAsMeasuredUnderLoad) {
  std::map<std::string, std::vector<double>> errors;
  for (const std::vector<std::string>& fields : Lines("attention_training.csv")) {
    ASSERT_EQ(fields.size(), 9u) << fields[0];
    const auto number = [&](size_t at) {
      double value = 0;
      EXPECT_TRUE(absl::SimpleAtod(fields[at], &value)) << fields[at];
      return value;
    };
    const double seq = number(2), scores = number(1) * number(3) * seq * seq;
    const bool backward = fields[7] == "1";
    const FusedAttention attention{
        .batch = static_cast<int64_t>(number(1)),
        .heads = static_cast<int64_t>(number(3)),
        .queries = static_cast<int64_t>(seq),
        .keys = static_cast<int64_t>(seq),
        .width = static_cast<int64_t>(number(5)),
        .visible = 0.5,
        .backward = backward,
        .flops = Flops(scores *
                       (backward ? 6 * number(5) + 4 * number(6) : 2 * number(5) + 2 * number(6)))};
    const KernelRates& rates = KernelRatesOf(fields[0]);
    const Duration time =
        PriceAttention(attention, *cluster::FindDevice(fields[0]), rates) + rates.start;
    errors[fields[0]].push_back(std::abs(time.microseconds() / number(8) - 1));
  }
  ExpectMedians(errors, {{"a100-80gb-pcie", 0.13}, {"b200", 0.1}});
}

}  // namespace
}  // namespace attention_kernel_test_cc
}  // namespace orrery::cost_models
