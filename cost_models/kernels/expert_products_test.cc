#include "cost_models/kernels/expert_products.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/device.h"

namespace orrery::cost_models {
namespace expert_products_test_cc {
namespace {

constexpr ExpertProducts kOne = {.present = true};
constexpr ExpertProducts kEach = {.present = true, .kernel_each = true};

cluster::Device B200() { return *cluster::FindDevice("b200"); }

// Experts of DeepSeek-V3, few rows of each.
constexpr ir::ProductShape kSmall = {.batch = 256, .m = 128, .n = 7168, .k = 2048};

TEST(ExpertProducts, InOneKernelAreProductsOfManyMatrices) {
  const double clock = B200().rates.sustained;
  EXPECT_EQ(PriceExpertProducts(kSmall, {}, kOne, B200()),
            PriceProduct(kSmall, {}, B200(), clock).time);
}

// Each starts by itself, with a tile of its own; cores that one leaves idle are the next one's.
TEST(ExpertProducts, InAKernelEachTakeThatManyTimesOne) {
  const cluster::Device device = B200();
  const ir::ProductShape one = {.m = 128, .n = 7168, .k = 2048};
  const ProductTime alone = PriceProduct(one, {}, device, device.rates.sustained);
  const Duration start = device.rates.start;
  EXPECT_LT(alone.shared, alone.time);
  EXPECT_EQ(PriceExpertProducts(kSmall, {}, kEach, device), (alone.shared + start) * 256 - start);
  EXPECT_GT(PriceExpertProducts(kSmall, {}, kEach, device).seconds(),
            1.3 * PriceExpertProducts(kSmall, {}, kOne, device).seconds());
  // A block or two leave more idle than four streams fill.
  const ir::ProductShape tiny = {.batch = 64, .m = 16, .n = 64, .k = 4096};
  const Duration least = PriceProduct({.m = 16, .n = 64, .k = 4096}, {}, device, 1).time;
  EXPECT_GT(PriceExpertProducts(tiny, {}, kEach, device), least * 16);
  // Of many rows it makes no difference.
  const ir::ProductShape large = {.batch = 8, .m = 16384, .n = 7168, .k = 2048};
  EXPECT_NEAR(PriceExpertProducts(large, {}, kEach, device).seconds() /
                  PriceExpertProducts(large, {}, kOne, device).seconds(),
              1, 0.02);
}

TEST(ExpertProducts, TakeNoLessThanTheirCalls) {
  ExpertProducts called = kEach;
  called.call = Duration::FromSeconds(50e-6);
  const double seconds = PriceExpertProducts(kSmall, {}, called, B200()).seconds();
  EXPECT_NEAR(seconds, 256 * 50e-6, 3e-6);
  called.call = Duration::FromSeconds(1e-6);
  EXPECT_EQ(PriceExpertProducts(kSmall, {}, called, B200()),
            PriceExpertProducts(kSmall, {}, kEach, B200()));
  // One kernel is one call.
  called.kernel_each = false;
  called.call = Duration::FromSeconds(50e-6);
  EXPECT_EQ(PriceExpertProducts(kSmall, {}, called, B200()),
            PriceExpertProducts(kSmall, {}, kOne, B200()));
}

}  // namespace
}  // namespace expert_products_test_cc
}  // namespace orrery::cost_models
