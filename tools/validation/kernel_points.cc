#include "tools/validation/kernel_points.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cost_models/kernels/attention_kernel.h"
#include "cost_models/kernels/expert_products.h"
#include "cost_models/kernels/kernel_rates.h"
#include "cost_models/kernels/matrix_product.h"
#include "ir/op_info.h"
#include "support/status.h"

namespace orrery::tools {
namespace kernel_points_cc {
namespace {

using cost_models::KernelRates;

double Figure(const PointFigures& figures, absl::string_view name, double otherwise = 0) {
  const auto found = figures.find(name);
  return found == figures.end() ? otherwise : found->second;
}

absl::Status CheckTogether(double product) {
  constexpr double kMost = 1e17;  // as program `kernel` has it
  if (product <= kMost) return absl::OkStatus();
  return absl::FailedPreconditionError("a kernel's sizes are together over 1e17");
}

// TensorRT-LLM's layer of products of 8 or 4 bits finds scales and quantizes x: so many passes
// that read 2 bytes an element and write the copy, and seconds to start them, fitted with the
// rates (MatrixProduct.IsAsMeasuredInBursts has the same).
struct Quantizing {
  double passes, start;
};

Quantizing QuantizingOf(const KernelPoints& kernels) {
  const bool hopper = absl::StartsWith(kernels.device.name, "h");
  switch (kernels.dtype) {
    case ir::DType::kF4:
      return {.passes = 1.244, .start = 4.67e-6};
    case ir::DType::kF8Block:
      return hopper ? Quantizing{.passes = 1.429, .start = 1.59e-6}
                    : Quantizing{.passes = 0.739, .start = 3.76e-6};
    default:
      return hopper ? Quantizing{.passes = 2.25, .start = 9.82e-6}
                    : Quantizing{.passes = 2.22, .start = 11.96e-6};
  }
}

// What a product writes: bytes stand in for a type that is as wide; 8, of a sum that is read, too.
ir::DType OutOf(const KernelPoints& kernels, const PointFigures& figures) {
  const bool wide = Figure(figures, "fp32_out") == 1;
  if (wide) return Figure(figures, "accumulate") == 1 ? ir::DType::kF64 : ir::DType::kF32;
  return ir::SizeOf(kernels.dtype) == 1 ? ir::DType::kBF16 : kernels.dtype;
}

}  // namespace
}  // namespace kernel_points_cc

absl::StatusOr<cluster::Device> DeviceOfName(absl::string_view name) {
  // What a name has in it; the first that fits. H800 and GH200 have cores of an H100.
  constexpr std::pair<absl::string_view, absl::string_view> kDevices[] = {
      {"A100-PCIe", "a100-80gb-pcie"},
      {"A100-SXM4-40GB", "a100-40gb"},
      {"A100", "a100-80gb"},
      {"GH200", "gh200"},
      {"GB200", "gb200"},
      {"GB300", "gb300"},
      {"B200", "b200"},
      {"B300", "b300"},
      {"H100 PCIe", "h100-80gb-pcie"},
      {"H100", "h100-80gb"},
      {"H200", "h200"},
      {"H800", "h800"},
      {"V100", "v100-32gb"},
      {"L40S", "l40s"},
      {"RTX-PRO-6000-Server", "rtx-pro-6000-server"},
      {"RTX 3090", "rtx-3090"},
      {"RTX 4090", "rtx-4090"},
      {"RTX 5090", "rtx-5090"},
      {"MI300X", "mi300x"},
      {"MI355X", "mi355x"}};
  for (const auto& [part, device] : kDevices) {
    if (absl::StrContains(name, part)) return cluster::FindDevice(device);
  }
  return absl::FailedPreconditionError(absl::StrCat("no device '", name, "'"));
}

absl::StatusOr<ir::DType> TypeOfName(absl::string_view name) {
  const std::string lower = absl::AsciiStrToLower(name);
  if (lower.empty() || absl::StartsWith(lower, "bf16") || lower == "bfloat16") {
    return ir::DType::kBF16;
  }
  if (absl::StartsWith(lower, "fp16") || lower == "float16") return ir::DType::kF16;
  const bool blocks = absl::StrContains(lower, "block") || absl::StrContains(lower, "fine-grained");
  if (absl::StartsWith(lower, "fp8")) return blocks ? ir::DType::kF8Block : ir::DType::kF8;
  if (lower == "nvfp4") return ir::DType::kF4;
  return absl::FailedPreconditionError(absl::StrCat("no kernels of type '", name, "'"));
}

absl::StatusOr<int64_t> SizeOfPoint(const PointFigures& figures, absl::string_view name,
                                    double otherwise) {
  constexpr double kMost = 1 << 24;
  const double size = kernel_points_cc::Figure(figures, name, otherwise);
  if (size >= 1 && size <= kMost && size == std::floor(size)) return static_cast<int64_t>(size);
  return absl::FailedPreconditionError(absl::StrCat("a kernel's ", name, " is no size"));
}

double QuantizeSeconds(const KernelPoints& kernels, double elements) {
  const double rate = static_cast<double>(kernels.device.memory_bandwidth.bytes_per_second()) *
                      cost_models::ProductRatesOf(kernels.device.rates, kernels.dtype).memory;
  return kernel_points_cc::QuantizingOf(kernels).passes * (2 + ir::BytesOf(kernels.dtype)) *
         elements / rate;
}

absl::StatusOr<double> PredictProduct(const KernelPoints& kernels, const PointFigures& figures) {
  ir::ProductShape shape;
  ORRERY_ASSIGN_OR_RETURN(shape.batch, SizeOfPoint(figures, "batch", 1));
  ORRERY_ASSIGN_OR_RETURN(shape.m, SizeOfPoint(figures, "m"));
  ORRERY_ASSIGN_OR_RETURN(shape.n, SizeOfPoint(figures, "n"));
  ORRERY_ASSIGN_OR_RETURN(shape.k, SizeOfPoint(figures, "k"));
  const auto m = static_cast<double>(shape.m), k = static_cast<double>(shape.k);
  ORRERY_RETURN_IF_ERROR(kernel_points_cc::CheckTogether(static_cast<double>(shape.batch) * m * k *
                                                         static_cast<double>(shape.n)));
  const cost_models::KernelRates& rates = kernels.device.rates;
  const cost_models::ProductTypes types = {
      .in = kernels.dtype,
      .out = kernel_points_cc::OutOf(kernels, figures),
      .along_k = kernel_points_cc::Figure(figures, "layout") != 2};
  const double clock = kernels.training ? cost_models::ClockOf(rates, kernels.dtype) : 1;
  const Duration time =
      kernels.experts.present
          ? PriceExpertProducts(shape, types, kernels.experts, kernels.device, clock)
          : PriceProduct(shape, types, kernels.device, clock).time;
  const double besides = kernels.quantizes ? kernel_points_cc::QuantizingOf(kernels).start +
                                                 QuantizeSeconds(kernels, m * k)
                                           : 0;
  return (time + rates.start).seconds() + besides;
}

absl::StatusOr<double> PredictGroupedProduct(const KernelPoints& kernels,
                                             const PointFigures& figures) {
  PointFigures product = figures;
  product["batch"] = figures.at("groups");
  const double m = figures.at("m"), n = figures.at("n"), k = figures.at("k");
  if (figures.at("stage") == 1) {
    product["n"] = k;
    product["k"] = n;
  } else if (figures.at("stage") == 2) {
    product["m"] = n;
    product["n"] = k;
    product["k"] = m;
    product["layout"] = 2;
    product["fp32_out"] = product["accumulate"] = 1;
  }
  return PredictProduct(kernels, product);
}

absl::StatusOr<double> PredictAttention(const KernelPoints& kernels, const PointFigures& figures) {
  cost_models::FusedAttention attention = {.kernel = kernels.attention, .dtype = kernels.dtype};
  ORRERY_ASSIGN_OR_RETURN(attention.batch, SizeOfPoint(figures, "batch"));
  ORRERY_ASSIGN_OR_RETURN(attention.heads, SizeOfPoint(figures, "heads"));
  ORRERY_ASSIGN_OR_RETURN(attention.queries, SizeOfPoint(figures, "seq"));
  const double said = kernel_points_cc::Figure(figures, "head_dim");
  ORRERY_ASSIGN_OR_RETURN(attention.width, SizeOfPoint(figures, "qk_head_dim", said));
  ORRERY_ASSIGN_OR_RETURN(const int64_t values,
                          SizeOfPoint(figures, "v_head_dim", static_cast<double>(attention.width)));
  attention.keys = attention.queries;
  const bool causal = kernel_points_cc::Figure(figures, "causal", 1) != 0;
  attention.visible = causal ? cost_models::VisibleShare(attention.queries, attention.keys) : 1;
  attention.backward = kernel_points_cc::Figure(figures, "backward") == 1;
  const auto seq = static_cast<double>(attention.queries), q = static_cast<double>(attention.width),
             v = static_cast<double>(values);
  const double heads = static_cast<double>(attention.batch * attention.heads);
  ORRERY_ASSIGN_OR_RETURN(const int64_t kv_heads,
                          SizeOfPoint(figures, "kv_heads", static_cast<double>(attention.heads)));
  const double all_kv_heads = static_cast<double>(attention.batch * kv_heads);
  ORRERY_RETURN_IF_ERROR(
      kernel_points_cc::CheckTogether(std::max(heads, all_kv_heads) * seq * seq * (q + v)));
  const double scores = heads * seq * seq;
  attention.flops = Flops(scores * (attention.backward ? 6 * q + 4 * v : 2 * q + 2 * v));
  // Queries and results of all heads, keys and values of theirs; backward all of them twice.
  const double elements = seq * (heads + all_kv_heads) * (q + v);
  attention.bytes = Bytes(static_cast<int64_t>(
      elements * static_cast<double>(ir::SizeOf(kernels.dtype)) * (attention.backward ? 2 : 1)));
  const cost_models::KernelRates& rates = kernels.device.rates;
  return (cost_models::PriceAttention(attention, kernels.device, rates) + rates.start).seconds();
}

}  // namespace orrery::tools
