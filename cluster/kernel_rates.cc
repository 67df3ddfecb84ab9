#include "cluster/kernel_rates.h"

#include <vector>

#include "absl/strings/match.h"

namespace orrery::cluster {
namespace kernel_rates_cc {
namespace {

constexpr Duration Nanoseconds(int64_t count) { return Duration(count * 1000); }

// Products: TensorRT-LLM's layers in bursts, aiconfigurator@095f58a51. Clocks under load: of B200
// and A100 PCIe TransformerEngine's products of training, SimuMax@4dcaae513; of A100 SXM and H100
// the 241 and 644 TFLOP/s that runs of Megatron and NeMo imply, over 266 and 805 of these bursts: a
// lone H100 that does nothing but products keeps 0.90 (data/measured/h100_kernels.csv).
// Of products of 8 bits what NeMo's steps on H100 and its and MLPerf's on B200 and GB200 imply.
// Fused attention: what more heads add to SimuMax's kernels of TransformerEngine on A100 PCIe and
// B200, 198 and 1,260 TFLOP/s of causal flops forward, 178 and 1,075 backward. On H100 all classes
// but the oldest are Shah et al. (2024), figures 5 and 6, which tests/data/attention_published.csv
// has, and of cuDNN and FlashAttention 2 what data/measured has, together. FlashAttention 2 on
// A100: Dao (2023), 73 % of the peak forward and 63 % backward; 1: there, 30 to 50 % and 25 to 35
// %; its port to Triton: 1.3 to 2.5 times slower than 2, forward less than backward. On H100 the
// two oldest are as much slower than 2 as on A100. Blackwell runs 2 by Ampere's instructions, at as
// many flops a core as Hopper. Other products: literature, not checked. Products with a scale for
// each 128 elements: the same bursts. Kernels that sort rows by expert: layers of experts of the
// same source (docs/kernels.md, layers of experts); on B200 SimuMax's permutation of tokens, 0.50
// of the peak, which those layers fit as well. Attention of 8 bits: 1.31 and 1.26 times cuDNN's on
// H100 and B200, the median of 53 and 61 forward kernels of TensorRT-LLM with heads of 128 and
// 2,048 positions or more (aiconfigurator@095f58a51).
//
// Unaligned: a step of GPT-2 with a vocabulary of 50,257 takes a quarter more than with 50,304
// (Karpathy, nanoGPT, 2023), of which logits are a third; products of many matrices: what heads of
// 108 and 150 add in BLOOM's sweep on A100 (attention in parts), 0.08 to 0.13 of its five steps.

constexpr Unaligned kUnalignedOnAmpere = {.even = 0.5, .odd = 0.5, .batch = 0.11};
// data/measured/h100_unaligned.csv: vocabularies of 50,257 to 50,264, heads of 100 to 152. Taken
// for Blackwell, too.
constexpr Unaligned kUnalignedOnHopper = {.even = 0.36, .odd = 0.165, .batch = 0.28};

// Kernels of Mamba-2 (causal_conv1d, mamba_ssm's in Triton) in training of Nemotron 3 Nano by NeMo
// AutoModel on 8 and on 6 H100: 71.5 and 256.3 ms a step, over the bytes of CausalConv,
// SelectiveScan and their gradients in 23 layers. Elsewhere the same is assumed: they are Triton's
// there, too.
constexpr double kScan = 0.36;

constexpr AttentionRates Flash1(double efficiency) {
  return {.efficiency = efficiency,
          .backward = 0.75,
          .fill = 200,
          .backward_fill = 200,
          .width_power = 0,
          .whole_heads = true};
}

constexpr AttentionRates Triton(double efficiency) {
  return {.efficiency = efficiency,
          .backward = 0.50,
          .fill = 200,
          .backward_fill = 200,
          .width_power = 0};
}

constexpr ProductRates kProductsOfA100 = {.efficiency = 0.906,
                                          .memory = 0.812,
                                          .fill = 192,
                                          .wave_weight = 0.689,
                                          .tile_penalty = 0.283,
                                          .step = Nanoseconds(340),
                                          .unaligned = kUnalignedOnAmpere};

constexpr AttentionRates kFlash2OnA100 = {
    .efficiency = 0.73, .backward = 0.86, .fill = 200, .backward_fill = 200, .width_power = 0.2};

constexpr AttentionRates kCudnnOnA100 = {
    .efficiency = 0.64, .backward = 0.9, .fill = 100, .backward_fill = 200, .width_power = 0.3};

KernelRates RatesOfA100(double sustained, absl::string_view source) {
  return {.source = std::string(source),
          .measured = true,
          .cores = 108,
          .start = Nanoseconds(2840),
          .sustained = sustained,
          .sustained_quarter = sustained,
          .sustained_eighth = sustained,
          .straggling = 0.006,
          .half = kProductsOfA100,
          .quarter = kProductsOfA100,
          .blocks = kProductsOfA100,
          .eighth = kProductsOfA100,
          .attention = {.cudnn = kCudnnOnA100,
                        .flash3 = kFlash2OnA100,
                        .flash2 = kFlash2OnA100,
                        .flash1 = Flash1(0.40),
                        .triton = Triton(0.50),
                        .cudnn8 = kCudnnOnA100},
          .copies_both_ways = false,
          .other_products = 0.40,
          .scan = kScan,
          .gather = 0.70};
}

// Under load, over a burst.
constexpr double kH100Clock = 0.80;

// Steps of NeMo with products of 8 bits imply so much less of a burst than those of 16.
constexpr double kQuarterOnH100 = 0.77 / 0.79;

constexpr ProductRates kQuarterProductsOfH100 = {.efficiency = 0.787,
                                                 .memory = 0.821,
                                                 .fill = 263,
                                                 .wave_weight = 0.329,
                                                 .tile_penalty = 0.0135,
                                                 .step = Nanoseconds(79),
                                                 .unaligned = kUnalignedOnHopper};

KernelRates RatesOfH100(double sustained, absl::string_view source) {
  return {
      .source = std::string(source),
      .measured = true,
      .cores = 132,
      .start = Nanoseconds(2580),
      .sustained = sustained,
      .sustained_quarter = sustained * kQuarterOnH100,
      .sustained_eighth = sustained * kQuarterOnH100,
      .straggling = 0.003,
      .half = {.efficiency = 0.816,
               .memory = 0.838,
               .fill = 110,
               .wave_weight = 0.189,
               .tile_penalty = 0.0259,
               .step = Nanoseconds(103),
               .unaligned = kUnalignedOnHopper},
      .quarter = kQuarterProductsOfH100,
      .blocks = {.efficiency = 0.655,
                 .memory = 0.790,
                 .fill = 574,
                 .wave_weight = 0.245,
                 .tile_penalty = 0.497,
                 .step = Nanoseconds(149),
                 .unaligned = kUnalignedOnHopper},
      .eighth = kQuarterProductsOfH100,
      .attention = {.cudnn = {.efficiency = 0.612,
                              .backward = 0.92,
                              .fill = 150,
                              .backward_fill = 330,
                              .width_power = 0.5},
                    .flash3 = {.efficiency = 0.70,
                               .backward = 0.87,
                               .fill = 260,
                               .backward_fill = 310,
                               .width_power = 0.43},
                    .flash2 = {.efficiency = 0.376,
                               .backward = 0.87,
                               .fill = 140,
                               .backward_fill = 240,
                               .width_power = 0.16},
                    .flash1 = Flash1(0.206),
                    .triton = Triton(0.257),
                    .cudnn8 = {.efficiency = 0.81,
                               .backward = 0.83,
                               .fill = 200,
                               .backward_fill = 200,
                               .width_power = 0.5}},
      .copies_both_ways = true,
      .other_products = 0.65,
      .scan = kScan,
      .gather = 0.60,
  };
}

constexpr AttentionRates kFlash2OnB200 = {
    .efficiency = 0.185, .backward = 0.87, .fill = 230, .backward_fill = 230, .width_power = 0.2};

constexpr ProductRates kBlockProductsOfB200 = {.efficiency = 0.647,
                                               .memory = 0.568,
                                               .fill = 94,
                                               .wave_weight = 0.803,
                                               .tile_penalty = 0.0067,
                                               .step = Nanoseconds(130),
                                               .unaligned = kUnalignedOnHopper};

// Clocks of training, by how many bits products have.
struct Clocks {
  double half, quarter, eighth;
};

KernelRates RatesOfB200(Clocks sustained, absl::string_view source) {
  return {
      .source = std::string(source),
      .measured = true,
      .cores = 148,
      .start = Nanoseconds(2040),
      .sustained = sustained.half,
      .sustained_quarter = sustained.quarter,
      .sustained_eighth = sustained.eighth,
      .straggling = 0.003,
      .half = {.efficiency = 0.686,
               .memory = 0.726,
               .fill = 30,
               .wave_weight = 0.283,
               .tile_penalty = 0.064,
               .step = Nanoseconds(77),
               .unaligned = kUnalignedOnHopper},
      .quarter = {.efficiency = 0.726,
                  .memory = 0.692,
                  .fill = 225,
                  .wave_weight = 0.559,
                  .tile_penalty = 0.116,
                  .step = Nanoseconds(119),
                  .unaligned = kUnalignedOnHopper},
      .blocks = kBlockProductsOfB200,
      .eighth = {.efficiency = 0.512,
                 .memory = 0.535,
                 .fill = 530,
                 .wave_weight = 0.375,
                 .tile_penalty = 0.423,
                 .step = Nanoseconds(441),
                 .unaligned = kUnalignedOnHopper},
      .attention = {.cudnn = {.efficiency = 0.56,
                              .backward = 0.83,
                              .fill = 200,
                              .backward_fill = 200,
                              .width_power = 0.5},
                    .flash3 = kFlash2OnB200,
                    .flash2 = kFlash2OnB200,
                    .flash1 = Flash1(0.101),
                    .triton = Triton(0.127),
                    .cudnn8 = {.efficiency = 0.706,
                               .backward = 0.83,
                               .fill = 200,
                               .backward_fill = 200,
                               .width_power = 0.5}},
      .copies_both_ways = false,
      .other_products = 0.55,
      .scan = kScan,
      .gather = 0.50,
  };
}

constexpr ProductRates kAssumed = {.efficiency = 0.8,
                                   .memory = 0.8,
                                   .fill = 120,
                                   .wave_weight = 0.3,
                                   .tile_penalty = 0.15,
                                   .step = Nanoseconds(150),
                                   .unaligned = kUnalignedOnAmpere};

constexpr AttentionRates kAssumedAttention = {
    .efficiency = 0.6, .backward = 0.83, .fill = 200, .backward_fill = 200, .width_power = 0.4};
constexpr AttentionRates kAssumedFlash2 = {
    .efficiency = 0.5, .backward = 0.86, .fill = 200, .backward_fill = 200, .width_power = 0.2};

// Between those that were measured.
KernelRates AssumedRates() {
  return {
      .source = "an assumption: no kernel of this device was measured",
      .measured = false,
      .cores = 128,
      .start = Nanoseconds(2600),
      .sustained = 0.8,
      .sustained_quarter = 0.78,
      .sustained_eighth = 0.78,
      .straggling = 0.003,
      .half = kAssumed,
      .quarter = kAssumed,
      .blocks = kAssumed,
      .eighth = kAssumed,
      .attention = {.cudnn = kAssumedAttention,
                    .flash3 = kAssumedFlash2,
                    .flash2 = kAssumedFlash2,
                    .flash1 = Flash1(0.3),
                    .triton = Triton(0.35),
                    .cudnn8 = kAssumedAttention},
      .copies_both_ways = false,
      .other_products = 0.5,
      .scan = kScan,
      .gather = 0.60,
  };
}

// The best product of MI300X is 668 of 1,307 TFLOP/s (stas00/ml-engineering, "maximum achievable
// FLOPS", bf16), which is taken for this generation and the next; attention reaches as much less
// than on NVIDIA's devices. Steps of MLPerf v5.1 on MI350X are not fitted on.
KernelRates RatesOfCdna() {
  KernelRates rates = AssumedRates();
  rates.source = "the best product of MI300X, which others are taken to be like";
  rates.measured = true;
  rates.half.efficiency = rates.quarter.efficiency = 0.639;
  rates.blocks.efficiency = rates.eighth.efficiency = 0.639;
  rates.sustained = rates.sustained_quarter = rates.sustained_eighth = 0.8;
  rates.attention.cudnn.efficiency = rates.attention.cudnn8.efficiency = 0.48;
  rates.attention.flash3.efficiency = rates.attention.flash2.efficiency = 0.40;
  rates.attention.flash1.efficiency = 0.24;
  rates.attention.triton.efficiency = 0.28;
  return rates;
}

// Products in fp32, without tensor cores: steps of an MLP in PyTorch (DistIR, microsoft/dist-ir at
// 7cfa1b0) take what the largest tiles, of 128 x 128, reach of the data sheet.
KernelRates RatesOfV100() {
  KernelRates rates = AssumedRates();
  rates.source = "steps of DistIR's MLP in fp32; attention is an assumption";
  rates.measured = true;
  rates.cores = 80;
  rates.sustained = rates.sustained_quarter = rates.sustained_eighth = 1;
  rates.half.efficiency = 0.86;
  rates.half.fill = 30;
  return rates;
}

// Products are what steps of Llama 3.1 8B take by MaxText (tpu-recipes, 8 to 128 chips).
KernelRates RatesOfTpuV6e() {
  KernelRates rates = AssumedRates();
  rates.source = "steps of MaxText's Llama 3.1 8B; all but products is an assumption";
  rates.measured = true;
  rates.half.efficiency = 0.775;
  return rates;
}

// The first prefix that fits: devices of one architecture have one kind of cores.
struct Line {
  absl::string_view prefix;
  KernelRates rates;
};

std::vector<Line> MakeLines() {
  const KernelRates a100 =
      RatesOfA100(0.91, "aiconfigurator's kernel tables; the clock of training runs");
  const KernelRates a100_pcie =
      RatesOfA100(0.85, "aiconfigurator's kernel tables of A100 SXM; the clock of SimuMax's");
  const KernelRates h100 =
      RatesOfH100(kH100Clock, "aiconfigurator's kernel tables; the clock of training runs");
  // Cores of the same kind, but fewer of them.
  KernelRates h100_pcie = RatesOfH100(
      kH100Clock, "aiconfigurator's kernel tables of H100 SXM; the clock of its training runs");
  h100_pcie.cores = 114;
  // At 500 W of 700: near its limit a chip's power goes with about the square of its clock.
  const KernelRates h100_at_500w = RatesOfH100(
      kH100Clock * 0.845, "aiconfigurator's kernel tables; the clock of training runs at 500 W");
  const KernelRates b200 = RatesOfB200({.half = 0.72, .quarter = 0.69, .eighth = 0.80},
                                       "aiconfigurator's kernel tables; the clock of SimuMax's");
  // The same cores with 1.4 kW where GB200 has 1.2: steps of Llama 3 70B in 8 bits, 8B, and GPT-OSS
  // (Megatron Bridge) take 1.15 to 1.25 times less.
  const KernelRates b300 =
      RatesOfB200({.half = 0.85, .quarter = 0.84, .eighth = 0.97},
                  "aiconfigurator's kernel tables of B200; the clock of training runs");
  return {{"v100-16gb", RatesOfV100()},
          {"a100-40gb-pcie", a100_pcie},
          {"a100-80gb-pcie", a100_pcie},
          {"a100-", a100},
          {"h100-80gb-pcie", h100_pcie},
          {"h100-96gb-hbm2e", h100_at_500w},
          {"h100-", h100},
          {"h200", h100},
          {"gh200", h100},
          {"h800", h100},
          {"b200", b200},
          {"gb200", b200},
          {"b300", b300},
          {"gb300", b300},
          {"mi300x", RatesOfCdna()},
          {"mi350x", RatesOfCdna()},
          {"mi355x", RatesOfCdna()},
          {"tpu-v6e", RatesOfTpuV6e()}};
}

}  // namespace
}  // namespace kernel_rates_cc

const KernelRates& AssumedKernelRates() {
  static const KernelRates& rates = *new KernelRates(kernel_rates_cc::AssumedRates());
  return rates;
}

const KernelRates& PresetKernelRates(absl::string_view device) {
  using kernel_rates_cc::Line;
  static const std::vector<Line>& lines = *new std::vector<Line>(kernel_rates_cc::MakeLines());
  for (const Line& line : lines) {
    if (absl::StartsWith(device, line.prefix)) return line.rates;
  }
  return AssumedKernelRates();
}

}  // namespace orrery::cluster
