#ifndef ORRERY_TOOLS_VALIDATION_SOFTWARE_STACK_H_
#define ORRERY_TOOLS_VALIDATION_SOFTWARE_STACK_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cost_models/kernels/kernel_choice.h"
#include "ir/function.h"
#include "ir/type.h"
#include "lowering/blocks/stack_memory.h"
#include "lowering/lower.h"
#include "tools/listings.h"

namespace orrery::tools {

/// How a training job is run, where that changes what software keeps.
struct StackUse {
  ir::DType dtype = ir::DType::kBF16;  // of parameters and activations
  bool experts = false;                // a mixture of them
};

/// Of a step, by ir::ComputeType and ir::CommonExperts.
StackUse StackUseOf(const ir::Function& step);

/// SoftwareStack::bucket_parameters of software that reduces all gradients after backward.
inline constexpr int64_t kAllGradients = 1'000'000'000'000;

/// What a stack holds beside a step: bytes an element, where tensors are of 16 bits. Steps in fp32
/// hold nothing more. And which kernels it makes one of.
/// So many fields: a figure each, with a line in tools/validation/stack_file.cc.
struct SoftwareStack {
  absl::string_view name;
  absl::string_view summary = "";              // one sentence
  lowering::StackMemory fp16 = {}, bf16 = {};  // by the type of parameters
  double split_loss = 0;            // instead of `loss` where logits are split over ranks
  bool compiles = false;            // element-wise kernels into one: StackKernels::fuses_pointwise
  bool copies_apart = false;        // StackKernels::copies_apart
  bool bounds_fusion = false;       // StackKernels::bounds_fusion
  bool batches_kernels = false;     // StackKernels::batches_kernels
  bool fuses_dropout_sums = false;  // StackKernels::fuses_dropout_sums
  double sum_share = 1;             // StackKernels::sum_share
  bool recomputes_whole = false;    // StackKernels::recomputes_whole
  bool waits_for_tensor_parallel = false;  // StackKernels::waits_for_tensor_parallel
  bool waits_for_sends = false;            // StackKernels::waits_for_sends
  bool pipelines_products = false;         // StackKernels::pipelines_products
  bool gathers_ahead = false;              // StackKernels::gathers_ahead
  bool copies_gathers = false;             // StackKernels::copies_gathers
  bool scatters_sends = false;             // StackKernels::scatters_sends
  bool sends_tokens_once = false;          // StackKernels::sends_tokens_once
  bool overlaps_experts = false;           // StackKernels::overlaps_experts
  bool reduces_after_backward = false;     // StackKernels::reduces_after_backward
  int64_t bucket_parameters = 0, bucket_parameters_a_rank = 0;  // likewise
  double slowdown = 0;                                          // StackKernels::slowdown
  double launch_us = 0;            // of the host, a kernel: StackKernels::launch
  bool waits_for_kernels = false;  // StackKernels::waits_for_kernels
  double collective_us = 0;        // a collective: StackKernels::collective
  double prepare_us = 0;           // of the host, a microbatch: StackKernels::prepare
  double step_us = 0;              // of the host, a step: StackKernels::step
  bool cuda_graphs = false;        // StackKernels::graphs, and no launches of the host
  bool expert_kernels = false;  // a product of each expert is a kernel: ExpertProducts::kernel_each
  double expert_call_us = 0;    // of the host, such a kernel: ExpertProducts::call
  double experts_us = 0;        // of the host, a layer of experts: StackKernels::experts
  cost_models::AttentionClass attention = cost_models::AttentionClass::kCudnn;  // of fused ones
  /// That kernels move besides what ops must, by the type of parameters.
  cost_models::ExtraTraffic fp16_traffic = {}, bf16_traffic = {};
};

#define ORRERY_SOFTWARE_STACK(Name, file) extern const SoftwareStack k##Name##Stack;
#include "tools/validation/software_stacks.def"
#undef ORRERY_SOFTWARE_STACK

/// How the stack carries out products of experts, of a model that has any or not.
cost_models::ExpertProducts ExpertProductsOf(const SoftwareStack& stack);

/// All stacks, in the order of software_stacks.def.
std::span<const SoftwareStack* const> AllSoftwareStacks();

/// Sets what the stack decides: what it holds beside a step, what it makes of ops.
void SetStack(const SoftwareStack& stack, const StackUse& use, lowering::LoweringOptions& options);

/// Likewise, of the stack of that name or file (tools/validation/stack_file.h). An error
/// lists the names.
absl::Status SetStack(absl::string_view stack, const StackUse& use,
                      lowering::LoweringOptions& options);

/// Has tokens go once to each node or rank (StackKernels::sends_tokens_once), whatever the stack
/// does. Rows come sorted by expert then, and are not sorted again.
void SendTokensOnce(lowering::LoweringOptions& options);

/// Has forward and backward captured as graphs, whatever the stack does (--cuda-graphs).
void CaptureGraphs(lowering::LoweringOptions& options);

/// What the stack of that name holds beside a step. In the file of each stands where its figures
/// come from; docs/validation_memory.md has the table. An error lists the names.
absl::StatusOr<lowering::StackMemory> StackMemoryOf(absl::string_view stack, const StackUse& use);

/// --list-stacks, for programs that have --stack.
Listing StackListing();

/// "ideal, megatron, …", for errors; and what --stack is, for help.
std::string StackNames();
std::string StackHelp();

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_VALIDATION_SOFTWARE_STACK_H_
