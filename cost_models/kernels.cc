#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cost_models/fused_attention.h"
#include "cost_models/kernels/attention_kernel.h"
#include "cost_models/kernels/expert_products.h"
#include "cost_models/kernels/kernel_rates.h"
#include "cost_models/kernels/matrix_product.h"
#include "cost_models/least_time.h"
#include "cost_models/op_kernels.h"
#include "cost_models/over_links.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "support/check.h"

// What kernels of training reach: matrix products by their shape, attention and convolutions at a
// share of the peak, all else at a share of the memory's, at the clock that power leaves them.

namespace orrery::cost_models {
namespace kernels_cc {
namespace {

// At a share of the peak of memory.
double MemorySeconds(Bytes bytes, const cluster::Device& device, double share) {
  return static_cast<double>(bytes.count()) /
         (static_cast<double>(device.memory_bandwidth.bytes_per_second()) * share);
}

Duration MemoryTime(Bytes bytes, const cluster::Device& device, double share) {
  return Duration::FromSeconds(MemorySeconds(bytes, device, share));
}

// The share of the peak of memory that kernels of an op reach; `in_order`, of those that read and
// write one element behind the other.
double MemoryShare(const ir::OpInfo& info, const KernelRates& rates, double in_order) {
  switch (info.access) {
    case ir::MemoryAccess::kSorting:
      return rates.gather;
    case ir::MemoryAccess::kAlongSequence:
      return rates.scan;
    default:
      return in_order;
  }
}

// A kernel begins when the one before has ended, and no sooner than the host can launch it.
Duration Start(const cluster::Device& device) {
  return std::max(device.launch_overhead, device.rates.start);
}

Duration HostShareOf(const cluster::Device& device) { return Start(device) - device.rates.start; }

// Whether rows of an operand are of that length: what is summed up over lies side by side.
// Gradients of weights sum up over rows.
bool HasRowsOf(const OpView& op, int64_t length) {
  return std::ranges::any_of(op.operands, [length](const ir::TensorType* operand) {
    return !operand->dims.empty() && operand->dims.back() == length;
  });
}

class Kernels final : public OverLinks, public LeastTimes {
 public:
  Duration Compute(const OpView& op, const cluster::Device& device) const override {
    const ir::OpInfo& info = ir::GetOpInfo(op.kind);
    if (info.op_class == ir::OpClass::kView) return Duration(0);
    ORRERY_CHECK(info.op_class == ir::OpClass::kCompute || info.op_class == ir::OpClass::kOptimizer)
        << info.name << " is no kernel";
    return WorkOf(op, info, device) + Start(device) * (LaunchesOf(op) + OtherPasses(op));
  }

  std::optional<Duration> Fused(Flops flops, Bytes bytes,
                                const cluster::Device& device) const override {
    return Moving(flops, bytes, device, device.rates.half.memory) + Start(device);
  }

  LeastTime LeastOf(const OpView& op, const cluster::Device& device) const override {
    const ir::OpInfo& info = ir::GetOpInfo(op.kind);
    if (info.op_class == ir::OpClass::kView) return {};
    LeastTime least;
    int launches = LaunchesOf(op) + OtherPasses(op);
    if (info.products != nullptr) {
      least = LeastProducts(op, device);
    } else if (IsFusedAttention(op)) {
      least.kernels = {LeastAttention(FusedAttentionOf(op), device, device.rates)};
    } else if (IsAttentionInParts(op)) {
      least = LeastAttentionInParts(AttentionInPartsOf(op), device, device.rates);
      launches = LeastKernelsOf(AttentionInPartsOf(op));
    } else {
      least.kernels = {info.matrix_product ? OtherKernel(op, info, device)
                                           : LeastMoving(op, info, device)};
    }
    least.starts_s = (Start(device) * launches).seconds();
    return least;
  }

  double Straggling(const cluster::Device& device) const override {
    return device.rates.straggling;
  }

  // That an op without products moves.
  static Bytes BytesOf(const OpView& op, const cluster::Device& device) {
    return BytesMovedBy(op) + ExtraBytesOf(op) + BytesOfOtherCopy(op, device);
  }

  std::string DoubtAbout(const cluster::Device& device) const override {
    const KernelRates& rates = device.rates;
    if (rates.measured) return "";
    return absl::StrCat(
        "rates of kernels, between those of A100, H100 and B200: none was measured on ",
        device.name);
  }

 private:
  static Duration WorkOf(const OpView& op, const ir::OpInfo& info, const cluster::Device& device) {
    if (info.products != nullptr) return Products(op, device);
    if (IsFusedAttention(op)) {
      return PriceAttention(FusedAttentionOf(op), device, device.rates);
    }
    if (IsAttentionInParts(op)) {
      return PriceAttentionInParts(AttentionInPartsOf(op), device, device.rates);
    }
    if (info.matrix_product) return OtherProduct(op, info, device);
    return Moving(FlopsOf(op), BytesOf(op, device), device,
                  MemoryShare(info, device.rates, device.rates.half.memory));
  }

  // See KernelRates::copies_both_ways. Copies with a scale a block are always made in both orders,
  // as blocks run along what is summed up over. Of 4 bits that along columns is of what a Hadamard
  // transform has mixed, and a pass before both finds the largest elements (TransformerEngine's
  // NVFP4BlockScaling).
  static Bytes BytesOfOtherCopy(const OpView& op, const cluster::Device& device) {
    if (op.kind != ir::OpKind::kCast) return Bytes(0);
    const ir::DType dtype = op.results[0]->dtype;
    const bool both = dtype == ir::DType::kF4 || dtype == ir::DType::kF8Block ||
                      (dtype == ir::DType::kF8 && device.rates.copies_both_ways);
    const Bytes read = ir::SizeOf(*op.operands[0]) * OtherPasses(op);
    return both ? ir::SizeOf(*op.results[0]) + read : Bytes(0);
  }

  // Kernels that read what a copy is made of, besides the one that an op stands for.
  static int OtherPasses(const OpView& op) {
    const bool copies = op.kind == ir::OpKind::kCast && op.results[0]->dtype == ir::DType::kF4;
    return copies ? 2 : 0;
  }

  // Of experts with a kernel each, too: what the last wave of one leaves idle others take. What
  // software moves besides is not in it: of shares it is rounded down.
  static LeastTime LeastProducts(const OpView& op, const cluster::Device& device) {
    ProductTypes types = {.in = op.operands[0]->dtype, .out = op.results[0]->dtype};
    LeastTime least;
    for (const ir::ProductShape& shape : ProductsOf(op)) {
      if (shape.batch < 1 || shape.m < 1 || shape.n < 1 || shape.k < 1) continue;
      types.along_k = HasRowsOf(op, shape.k);
      least.kernels.push_back(LeastProduct(shape, types, device, ClockOf(device.rates, types.in)));
    }
    return least;
  }

  static Duration Products(const OpView& op, const cluster::Device& device) {
    ProductTypes types = {.in = op.operands[0]->dtype, .out = op.results[0]->dtype};
    Duration sum = MemoryTime(ExtraBytesOf(op), device, device.rates.half.memory);
    for (const ir::ProductShape& shape : ProductsOf(op)) {
      if (shape.batch < 1 || shape.m < 1 || shape.n < 1 || shape.k < 1) continue;
      types.along_k = HasRowsOf(op, shape.k);
      sum += IsOfExperts(op)
                 ? PriceExpertProducts(shape, types, op.choice->experts, device)
                 : PriceProduct(shape, types, device, ClockOf(device.rates, types.in)).time;
    }
    return sum;
  }

  static Duration OtherProduct(const OpView& op, const ir::OpInfo& info,
                               const cluster::Device& device) {
    return Duration::FromSeconds(OtherKernel(op, info, device).seconds());
  }

  static LeastKernel OtherKernel(const OpView& op, const ir::OpInfo& info,
                                 const cluster::Device& device) {
    const KernelRates& rates = device.rates;
    const ir::DType dtype = op.operands[0]->dtype;
    const double rate = MatrixPeak(dtype, device).flops_per_second() * rates.other_products;
    const double share = MemoryShare(info, rates, ProductRatesOf(rates, dtype).memory);
    return {.arithmetic_s = FlopsOf(op).count() / rate,
            .memory_s = MemorySeconds(BytesMovedBy(op), device, share)};
  }

  static LeastKernel LeastMoving(const OpView& op, const ir::OpInfo& info,
                                 const cluster::Device& device) {
    const double share = MemoryShare(info, device.rates, device.rates.half.memory);
    const Bytes bytes = BytesMovedBy(op) + BytesOfOtherCopy(op, device);
    return {.arithmetic_s = FlopsOf(op).count() / device.fp32.flops_per_second(),
            .memory_s = MemorySeconds(bytes, device, share)};
  }

  static Duration Moving(Flops flops, Bytes bytes, const cluster::Device& device, double share) {
    return std::max(Duration::FromSeconds(flops.count() / device.fp32.flops_per_second()),
                    MemoryTime(bytes, device, share));
  }
};

std::unique_ptr<const CostModel> Make() { return std::make_unique<Kernels>(); }

// Of the op's product number `index`. An op with two is a gradient: of the input, then of weights.
// Software keeps weights as [out, in] whatever the order here: it is backward that transposes.
ProductLayout LayoutOf(const OpView& op, size_t index, size_t count, bool along_k) {
  if (!along_k) return ProductLayout::kNT;
  if (count > 1 && index == 0) return ProductLayout::kNN;
  const bool transposed =
      op.kind == ir::OpKind::kMatMul && op.attributes.Int("transpose_w", 0) != 0;
  return transposed ? ProductLayout::kNN : ProductLayout::kTN;
}

OpKernels ProductsAlone(const OpView& op, const cluster::Device& device) {
  OpKernels kernels;
  ProductTypes types = {.in = op.operands[0]->dtype, .out = op.results[0]->dtype};
  const ir::ProductShapes shapes = ProductsOf(op);
  for (size_t i = 0; i < shapes.size(); ++i) {
    const ir::ProductShape& shape = shapes[i];
    if (shape.batch < 1 || shape.m < 1 || shape.n < 1 || shape.k < 1) continue;
    types.along_k = HasRowsOf(op, shape.k);
    const ProductLayout layout = LayoutOf(op, i, shapes.size(), types.along_k);
    const OpKernel kernel = ProductKernel(shape, types, layout, device);
    kernels.push_back(IsOfExperts(op) ? ExpertsKernel(kernel, op.choice->experts, device) : kernel);
  }
  return kernels;
}

}  // namespace
}  // namespace kernels_cc

bool IsOfExperts(const OpView& op) {
  if (op.choice == nullptr || !op.choice->experts.present) return false;
  if (op.kind != ir::OpKind::kMatMul || op.operands.size() < 2) return false;
  const ir::Dims &x = op.operands[0]->dims, &w = op.operands[1]->dims;
  return x.size() == 3 && w.size() == 3 && x[0] == w[0] && x[0] > 1;
}

OpKernel ProductKernel(const ir::ProductShape& shape, ProductTypes types, ProductLayout layout,
                       const cluster::Device& device) {
  const double clock = ClockOf(device.rates, types.in);
  const auto batch = static_cast<double>(shape.batch), m = static_cast<double>(shape.m),
             n = static_cast<double>(shape.n), k = static_cast<double>(shape.k);
  const double in = ir::BytesOf(types.in), out = ir::BytesOf(types.out);
  const double bytes = batch * (in * (m * k + k * n) + out * m * n);
  return {.form = KernelForm::kProduct,
          .time = PriceProduct(shape, types, device, clock).time + kernels_cc::Start(device),
          .host = kernels_cc::HostShareOf(device),
          .flops = Flops(2 * batch * m * n * k),
          .bytes = Bytes(static_cast<int64_t>(std::min(bytes, 9e18))),
          .shape = shape,
          .types = types,
          .layout = layout};
}

OpKernel ExpertsKernel(OpKernel product, const ExpertProducts& experts,
                       const cluster::Device& device) {
  product.form = KernelForm::kGrouped;
  product.experts = experts;
  product.time = PriceExpertProducts(product.shape, product.types, experts, device) +
                 kernels_cc::Start(device);
  return product;
}

OpKernel AttentionKernel(const FusedAttention& attention, const cluster::Device& device) {
  return {.form = KernelForm::kAttention,
          .time = PriceAttention(attention, device, device.rates) + kernels_cc::Start(device),
          .host = kernels_cc::HostShareOf(device),
          .flops = Flops(attention.flops.count() * attention.visible),
          .bytes = attention.bytes,
          .attention = attention};
}

OpKernel MovingKernel(Flops flops, Bytes bytes, const cluster::Device& device) {
  return {.form = KernelForm::kMoving,
          .time = *kernels_cc::Kernels().Fused(flops, bytes, device),
          .host = kernels_cc::HostShareOf(device),
          .flops = flops,
          .bytes = bytes};
}

OpKernels OpKernelsOf(const OpView& op, const cluster::Device& device) {
  const ir::OpInfo& info = ir::GetOpInfo(op.kind);
  if (info.op_class == ir::OpClass::kView) return {};
  if (IsFusedAttention(op)) return {AttentionKernel(FusedAttentionOf(op), device)};
  OpKernels kernels;
  if (info.products != nullptr) kernels = kernels_cc::ProductsAlone(op, device);
  // What is left: all of an op without products, and else what is moved besides.
  Duration rest = kernels_cc::Kernels().Compute(op, device);
  const Bytes bytes =
      info.products != nullptr ? ExtraBytesOf(op) : kernels_cc::Kernels::BytesOf(op, device);
  for (const OpKernel& kernel : kernels) rest -= std::min(rest, kernel.time);
  if (rest == Duration(0)) return kernels;
  const bool other = IsAttentionInParts(op) || (info.matrix_product && kernels.empty());
  kernels.push_back({.form = other ? KernelForm::kOther : KernelForm::kMoving,
                     .time = rest,
                     .host = kernels.empty() ? kernels_cc::HostShareOf(device) : Duration(0),
                     .flops = kernels.empty() ? FlopsOf(op) : Flops(0),
                     .bytes = bytes});
  return kernels;
}

extern const CostModelInfo kKernelsCostModel = {
    .name = "kernels",
    .summary =
        "what kernels of training reach: products by tiles, waves and depth, the rest at achieved "
        "rates",
    .source = "fitted on kernel tables, docs/kernels.md",
    .make = kernels_cc::Make,
};

}  // namespace orrery::cost_models
