#include "cost_models/kernels/kernel_rates.h"

#include "absl/strings/match.h"

namespace orrery::cost_models {
namespace kernel_rates_cc {
namespace {

constexpr Duration Nanoseconds(int64_t count) { return Duration(count * 1000); }

// Products: TensorRT-LLM's layers in bursts, aiconfigurator@095f58a51. Clocks under load: of B200
// and A100 PCIe TransformerEngine's products of training, SimuMax@4dcaae513; of A100 SXM and H100
// the 241 and 620 TFLOP/s that runs of Megatron and NeMo imply, over 266 and 805 of these bursts.
// Fused attention: what more heads add to SimuMax's kernels of TransformerEngine on A100 PCIe and
// B200, 198 and 1,260 TFLOP/s of causal flops forward, 164 and 1,075 backward; H100's from Shah et
// al. (2024), 550 and 640 TFLOP/s at 4k and 16k. Other products: literature, not checked.

constexpr ProductRates kProductsOfA100 = {.efficiency = 0.906,
                                          .memory = 0.812,
                                          .fill = 192,
                                          .wave_weight = 0.689,
                                          .tile_penalty = 0.283,
                                          .step = Nanoseconds(340)};

constexpr KernelRates RatesOfA100(double sustained, absl::string_view source) {
  return {.source = source,
          .measured = true,
          .cores = 108,
          .start = Nanoseconds(2840),
          .sustained = sustained,
          .straggling = 0.006,
          .half = kProductsOfA100,
          .quarter = kProductsOfA100,
          .attention = {.efficiency = 0.64, .backward = 0.83, .fill = 100, .width_power = 0.3},
          .copies_both_ways = false,
          .other_products = 0.40};
}

constexpr KernelRates kRatesOfA100 =
    RatesOfA100(0.91, "aiconfigurator's kernel tables; the clock of training runs");
constexpr KernelRates kRatesOfA100Pcie =
    RatesOfA100(0.85, "aiconfigurator's kernel tables of A100 SXM; the clock of SimuMax's");

constexpr KernelRates kRatesOfH100 = {
    .source = "aiconfigurator's kernel tables; the clock of training runs",
    .measured = true,
    .cores = 132,
    .start = Nanoseconds(2580),
    .sustained = 0.77,
    .straggling = 0.003,
    .half = {.efficiency = 0.816,
             .memory = 0.838,
             .fill = 110,
             .wave_weight = 0.189,
             .tile_penalty = 0.0259,
             .step = Nanoseconds(103)},
    .quarter = {.efficiency = 0.787,
                .memory = 0.821,
                .fill = 263,
                .wave_weight = 0.329,
                .tile_penalty = 0.0135,
                .step = Nanoseconds(79)},
    .attention = {.efficiency = 0.62, .backward = 0.83, .fill = 200, .width_power = 0.5},
    .copies_both_ways = true,
    .other_products = 0.65,
};

constexpr KernelRates kRatesOfB200 = {
    .source = "aiconfigurator's kernel tables; the clock of SimuMax's",
    .measured = true,
    .cores = 148,
    .start = Nanoseconds(2040),
    .sustained = 0.72,
    .straggling = 0.003,
    .half = {.efficiency = 0.686,
             .memory = 0.726,
             .fill = 30,
             .wave_weight = 0.283,
             .tile_penalty = 0.064,
             .step = Nanoseconds(77)},
    .quarter = {.efficiency = 0.726,
                .memory = 0.692,
                .fill = 225,
                .wave_weight = 0.559,
                .tile_penalty = 0.116,
                .step = Nanoseconds(119)},
    .attention = {.efficiency = 0.56, .backward = 0.83, .fill = 200, .width_power = 0.5},
    .copies_both_ways = false,
    .other_products = 0.55,
};

constexpr ProductRates kAssumed = {.efficiency = 0.8,
                                   .memory = 0.8,
                                   .fill = 120,
                                   .wave_weight = 0.3,
                                   .tile_penalty = 0.15,
                                   .step = Nanoseconds(150)};

// Between those that were measured.
constexpr KernelRates kAssumedRates = {
    .source = "an assumption: no kernel of this device was measured",
    .measured = false,
    .cores = 128,
    .start = Nanoseconds(2600),
    .sustained = 0.8,
    .straggling = 0.003,
    .half = kAssumed,
    .quarter = kAssumed,
    .attention = {.efficiency = 0.6, .backward = 0.83, .fill = 200, .width_power = 0.4},
    .copies_both_ways = false,
    .other_products = 0.5,
};

// The first prefix that fits: devices of one architecture have one kind of cores.
struct Line {
  absl::string_view prefix;
  const KernelRates& rates;
};

constexpr Line kLines[] = {
    {"a100-40gb-pcie", kRatesOfA100Pcie},
    {"a100-80gb-pcie", kRatesOfA100Pcie},
    {"a100-", kRatesOfA100},
    {"h100-", kRatesOfH100},
    {"h200", kRatesOfH100},
    {"b200", kRatesOfB200},
    {"gb200", kRatesOfB200},
    {"b300", kRatesOfB200},
};

}  // namespace
}  // namespace kernel_rates_cc

const ProductRates& KernelRates::products(ir::DType dtype) const {
  return ir::SizeOf(dtype) == 1 ? quarter : half;
}

const KernelRates& KernelRatesOf(absl::string_view device) {
  for (const kernel_rates_cc::Line& line : kernel_rates_cc::kLines) {
    if (absl::StartsWith(device, line.prefix)) return line.rates;
  }
  return kernel_rates_cc::kAssumedRates;
}

}  // namespace orrery::cost_models
