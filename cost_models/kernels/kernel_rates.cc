#include "cost_models/kernels/kernel_rates.h"

#include "absl/strings/match.h"

namespace orrery::cost_models {
namespace kernel_rates_cc {
namespace {

constexpr Duration Nanoseconds(int64_t count) { return Duration(count * 1000); }

constexpr ProductRates kA100 = {.efficiency = 0.903,
                                .memory = 0.803,
                                .fill = 190,
                                .wave_weight = 0.69,
                                .tile_penalty = 0.274,
                                .step = Nanoseconds(336)};

// Products of TensorRT-LLM layers in bursts, aiconfigurator@095f58a51; sustained clocks from
// TransformerEngine's (B200; SimuMax@4dcaae513), from training runs (H100), and between both
// (A100); attention as training runs imply. Starts of H100 and B200 are of kernels in a CUDA graph.
constexpr KernelRates kRatesOfA100 = {
    .source = "aiconfigurator's and SimuMax's kernel tables of A100",
    .measured = true,
    .cores = 108,
    .start = Nanoseconds(2870),
    .sustained = 0.88,
    .half = kA100,
    .quarter = kA100,
    .attention = 0.40,
    .quantize_passes = 2.24,
    .quantize_start = Nanoseconds(9800),
};

constexpr KernelRates kRatesOfH100 = {
    .source = "aiconfigurator's kernel tables of H100; the sustained clock is of training runs",
    .measured = true,
    .cores = 132,
    .start = Nanoseconds(2590),
    .sustained = 0.77,
    .half = {.efficiency = 0.815,
             .memory = 0.838,
             .fill = 117,
             .wave_weight = 0.156,
             .tile_penalty = 0.0255,
             .step = Nanoseconds(103)},
    .quarter = {.efficiency = 0.781,
                .memory = 0.823,
                .fill = 255,
                .wave_weight = 0.283,
                .tile_penalty = 0.0135,
                .step = Nanoseconds(80)},
    .attention = 0.65,
    .quantize_passes = 2.24,
    .quantize_start = Nanoseconds(9800),
};

constexpr KernelRates kRatesOfB200 = {
    .source = "aiconfigurator's and SimuMax's kernel tables of B200",
    .measured = true,
    .cores = 148,
    .start = Nanoseconds(2060),
    .sustained = 0.72,
    .half = {.efficiency = 0.691,
             .memory = 0.734,
             .fill = 53,
             .wave_weight = 0.089,
             .tile_penalty = 0.222,
             .step = Nanoseconds(75)},
    .quarter = {.efficiency = 0.712,
                .memory = 0.698,
                .fill = 208,
                .wave_weight = 0.11,
                .tile_penalty = 0.737,
                .step = Nanoseconds(93)},
    .attention = 0.55,
    .quantize_passes = 2.26,
    .quantize_start = Nanoseconds(11840),
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
    .half = kAssumed,
    .quarter = kAssumed,
    .attention = 0.5,
    .quantize_passes = 2.24,
    .quantize_start = Nanoseconds(9800),
};

// The first prefix that fits: devices of one architecture have one kind of cores.
struct Line {
  absl::string_view prefix;
  const KernelRates& rates;
};

constexpr Line kLines[] = {
    {"a100-", kRatesOfA100}, {"h100-", kRatesOfH100}, {"h200", kRatesOfH100},
    {"b200", kRatesOfB200},  {"gb200", kRatesOfB200}, {"b300", kRatesOfB200},
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
