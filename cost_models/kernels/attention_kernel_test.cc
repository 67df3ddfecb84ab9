#include "cost_models/kernels/attention_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
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
  return PriceAttention(attention, H100(), H100().rates);
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
  EXPECT_NEAR(Ratio(PriceOnH100(of(1024, 8192)), PriceOnH100(of(512, 8192))), 2, 0.01);
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
  // Cores end one after the other: half of a longest tile besides, whatever there is to do.
  const Duration more = PriceOnH100(of(128, 8192)) - PriceOnH100(of(64, 8192));
  const Duration tail = PriceOnH100(of(64, 8192)) - more;
  EXPECT_GT(tail, Duration(0));
  EXPECT_NEAR(Ratio(PriceOnH100(of(192, 8192)) - more * 3, tail), 1, 0.001);
  EXPECT_NEAR(Ratio(tail, PriceOnH100(of(1, 8192))), 0.5, 0.01);
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
    const cluster::Device device = *cluster::FindDevice(fields[0]);
    const Duration time = PriceAttention(attention, device, device.rates) + device.rates.start;
    errors[fields[0]].push_back(std::abs(time.microseconds() / number(8) - 1));
  }
  ExpectMedians(errors, {{"a100-80gb-pcie", 0.13}, {"b200", 0.1}});
}

// Shah et al.'s figures, which H100's rates of FlashAttention 2 and 3 were read off.
TEST(PriceAttention, IsAsPublishedByClass) {
  std::map<std::string, std::vector<double>> errors;
  for (const std::vector<std::string>& fields : Lines("attention_published.csv")) {
    ASSERT_EQ(fields.size(), 7u) << fields[0];
    const auto number = [&](size_t at) {
      double value = 0;
      EXPECT_TRUE(absl::SimpleAtod(fields[at], &value)) << fields[at];
      return value;
    };
    const auto name = std::ranges::find(kAttentionClassNames, fields[1]);
    ASSERT_NE(name, kAttentionClassNames.end()) << fields[1];
    const double width = number(2), seq = number(5), visible = fields[3] == "1" ? 0.5 : 1;
    const bool backward = fields[4] == "1";
    const double flops = 4 * 16384 * seq * 2048 * (backward ? 2.5 : 1);
    const FusedAttention attention{
        .batch = static_cast<int64_t>(16384 / seq),
        .heads = static_cast<int64_t>(2048 / width),
        .queries = static_cast<int64_t>(seq),
        .keys = static_cast<int64_t>(seq),
        .width = static_cast<int64_t>(width),
        .visible = visible,
        .backward = backward,
        .kernel = static_cast<AttentionClass>(name - kAttentionClassNames.begin()),
        .flops = Flops(flops)};
    const double rate = flops * visible / PriceOnH100(attention).seconds() / 1e12;
    errors[fields[1]].push_back(std::abs(rate / number(6) - 1));
  }
  ExpectMedians(errors, {{"cudnn", 0.09}, {"flash2", 0.05}, {"flash3", 0.05}});
}

// Where each core has one tile, none ends late; and what a tile takes besides its keys is of one
// direction.
TEST(PriceAttention, HasNoTailOfOneTileACore) {
  const auto of = [](int64_t heads) {
    return FusedAttention{.heads = heads,
                          .queries = 128,
                          .keys = 8192,
                          .width = 128,
                          .flops = Flops(4.0 * 128 * 128 * 8192 * static_cast<double>(heads))};
  };
  EXPECT_EQ(PriceOnH100(of(132)), PriceOnH100(of(1)));
  EXPECT_GT(PriceOnH100(of(133)), PriceOnH100(of(132)));
  cluster::Device device = H100();
  FusedAttention forward = of(512), backward = of(512);
  backward.backward = true;
  const auto both = [&] {
    return std::pair(PriceAttention(forward, device, device.rates),
                     PriceAttention(backward, device, device.rates));
  };
  const auto before = both();
  device.rates.attention.cudnn.backward_fill *= 2;
  const auto after = both();
  EXPECT_EQ(after.first, before.first);
  EXPECT_GT(after.second, before.second);
}

// Of two waves of heads the second takes as long as the first, however few there are.
TEST(PriceAttention, OfWholeHeadsGoesInWaves) {
  const auto time = [](int64_t heads, AttentionClass kernel) {
    const FusedAttention attention{
        .heads = heads,
        .queries = 4096,
        .keys = 4096,
        .width = 64,
        .kernel = kernel,
        .flops = Flops(4.0 * 64 * 4096 * 4096 * static_cast<double>(heads))};
    const cluster::Device a100 = *cluster::FindDevice("a100-80gb");
    return PriceAttention(attention, a100, a100.rates).seconds();
  };
  const auto first = [&](int64_t heads) { return time(heads, AttentionClass::kFlash1); };
  const auto second = [&](int64_t heads) { return time(heads, AttentionClass::kFlash2); };
  EXPECT_NEAR(first(16), first(108), 1e-9);
  EXPECT_NEAR(first(109), 2 * first(108), 1e-9);
  EXPECT_NEAR((second(216) - second(108)) * 16, (second(32) - second(16)) * 108, 1e-6);
  EXPECT_GT(first(16), 8 * second(16));
}

}  // namespace
}  // namespace attention_kernel_test_cc
}  // namespace orrery::cost_models
