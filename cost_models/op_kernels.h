#ifndef ORRERY_COST_MODELS_OP_KERNELS_H_
#define ORRERY_COST_MODELS_OP_KERNELS_H_

#include <array>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "cost_models/cost_model.h"
#include "cost_models/fused_attention.h"
#include "cost_models/kernels/matrix_product.h"
#include "support/enum_names.h"
#include "support/units.h"

// The kernels that an op is to the cost model `kernels`, one by one, with their sizes.

namespace orrery::cost_models {

/// Along which rows of a product's operands the sum runs: of both (forward, by weights that stand
/// as [out, in]), of the first alone (gradients of inputs), of neither (gradients of weights). The
/// names are cuBLAS's.
enum class ProductLayout : uint8_t { kTN, kNN, kNT };

/// The names of the layouts.
inline constexpr EnumNames<ProductLayout, 3> kProductLayoutNames({{"TN", ProductLayout::kTN},
                                                                  {"NN", ProductLayout::kNN},
                                                                  {"NT", ProductLayout::kNT}});

/// What a kernel is by what its time follows from. kGrouped: products of experts, of a matrix each,
/// by one kernel or several; kOther: convolutions, attention in parts.
enum class KernelForm : uint8_t { kProduct, kGrouped, kAttention, kMoving, kOther };

/// Whether its sizes are those of a product.
inline bool IsProduct(KernelForm form) {
  return form == KernelForm::kProduct || form == KernelForm::kGrouped;
}

/// One kernel of an op; of form kOther all that the op has. So many fields: three kinds of sizes.
struct OpKernel {
  KernelForm form = KernelForm::kMoving;
  Duration time;  // by `kernels`, its start included
  Duration host;  // the part of that by which the host is slower than a captured graph
  Flops flops;    // of attention those that a causal mask leaves
  Bytes bytes;    // to and from memory, once each
  ir::ProductShape shape = {};
  ProductTypes types = {};
  ProductLayout layout = ProductLayout::kTN;
  ExpertProducts experts = {};  // of kGrouped
  FusedAttention attention = {};
};

/// Whether software makes products of experts of the op: of as many matrices as its first dimension
/// says, in a model that has a mixture.
bool IsOfExperts(const OpView& op);

/// Those of one op.
using OpKernels = absl::InlinedVector<OpKernel, 2>;

/// The kernels of an op on `device`, in order; their times add up to what `kernels` says of the op.
/// Bytes that software moves besides a product are a kernel without a start. None for a view.
/// Requires a kernel, no collective.
OpKernels OpKernelsOf(const OpView& op, const cluster::Device& device);

/// Flops, bytes and time of a product, a fused attention, and one that moves bytes, each by itself.
OpKernel ProductKernel(const ir::ProductShape& shape, ProductTypes types, ProductLayout layout,
                       const cluster::Device& device);
/// The product of as many experts as its batch says.
OpKernel ExpertsKernel(OpKernel product, const ExpertProducts& experts,
                       const cluster::Device& device);
OpKernel AttentionKernel(const FusedAttention& attention, const cluster::Device& device);
OpKernel MovingKernel(Flops flops, Bytes bytes, const cluster::Device& device);

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_OP_KERNELS_H_
