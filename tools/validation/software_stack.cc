#include "tools/validation/software_stack.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/model_facts.h"
#include "support/status.h"
#include "tools/validation/stack_file.h"

namespace orrery::tools {
namespace software_stack_cc {
namespace {

constexpr const SoftwareStack* kStacks[] = {
#define ORRERY_SOFTWARE_STACK(Name, file) &k##Name##Stack,
#include "tools/validation/software_stacks.def"
#undef ORRERY_SOFTWARE_STACK
};

lowering::StackMemory MemoryOf(const SoftwareStack& stack, const StackUse& use) {
  if (ir::SizeOf(use.dtype) > 2) return {};
  lowering::StackMemory memory = use.dtype == ir::DType::kF16 ? stack.fp16 : stack.bf16;
  memory.split_loss = stack.split_loss;
  return memory;
}

cost_models::ExtraTraffic TrafficOf(const SoftwareStack& stack, const StackUse& use) {
  if (ir::SizeOf(use.dtype) > 2) return {};
  return use.dtype == ir::DType::kF16 ? stack.fp16_traffic : stack.bf16_traffic;
}

}  // namespace
}  // namespace software_stack_cc

std::span<const SoftwareStack* const> AllSoftwareStacks() { return software_stack_cc::kStacks; }

StackUse StackUseOf(const ir::Function& step) {
  StackUse use;
  use.dtype = ir::ComputeType(step).value_or(use.dtype);
  use.experts = ir::CommonExperts(step) > 0;
  return use;
}

absl::StatusOr<lowering::StackMemory> StackMemoryOf(absl::string_view stack, const StackUse& use) {
  ORRERY_ASSIGN_OR_RETURN(const SoftwareStack known, FindStack(stack));
  return software_stack_cc::MemoryOf(known, use);
}

cost_models::ExpertProducts ExpertProductsOf(const SoftwareStack& stack) {
  return {.kernel_each = stack.expert_kernels,
          .call = Duration::FromSeconds(stack.expert_call_us * 1e-6)};
}

void SetStack(const SoftwareStack& stack, const StackUse& use, lowering::LoweringOptions& options) {
  options.stack_memory = software_stack_cc::MemoryOf(stack, use);
  options.kernels = {.fuses_pointwise = stack.compiles,
                     .copies_apart = stack.copies_apart,
                     .bounds_fusion = stack.bounds_fusion,
                     .batches_kernels = stack.batches_kernels,
                     .fuses_dropout_sums = stack.fuses_dropout_sums,
                     .sum_share = stack.sum_share,
                     .recomputes_whole = stack.recomputes_whole,
                     .waits_for_tensor_parallel = stack.waits_for_tensor_parallel,
                     .waits_for_sends = stack.waits_for_sends,
                     .overlaps_experts = stack.overlaps_experts,
                     .scatters_sends = stack.scatters_sends,
                     .reduces_after_backward = stack.reduces_after_backward,
                     .copies_gathers = stack.copies_gathers,
                     .pipelines_products = stack.pipelines_products,
                     .gathers_ahead = stack.gathers_ahead,
                     .bucket_parameters = stack.bucket_parameters,
                     .bucket_parameters_a_rank = stack.bucket_parameters_a_rank,
                     .slowdown = stack.slowdown,
                     .launch = Duration::FromSeconds(stack.launch_us * 1e-6),
                     .waits_for_kernels = stack.waits_for_kernels,
                     .collective = Duration::FromSeconds(stack.collective_us * 1e-6),
                     .prepare = Duration::FromSeconds(stack.prepare_us * 1e-6),
                     .step = Duration::FromSeconds(stack.step_us * 1e-6),
                     .experts = Duration::FromSeconds(stack.experts_us * 1e-6),
                     .choice = {.attention = stack.attention,
                                .experts = ExpertProductsOf(stack),
                                .extra = software_stack_cc::TrafficOf(stack, use)}};
  options.kernels.choice.experts.present = use.experts;
  if (stack.sends_tokens_once) SendTokensOnce(options);
  if (stack.cuda_graphs) CaptureGraphs(options);
}

void SendTokensOnce(lowering::LoweringOptions& options) {
  options.kernels.sends_tokens_once = true;
  options.kernels.choice.extra.sorting = 0;
}

void CaptureGraphs(lowering::LoweringOptions& options) {
  options.kernels.graphs = true;
  options.kernels.launch = options.kernels.experts = Duration(0);
  options.kernels.choice.experts.call = Duration(0);
}

absl::Status SetStack(absl::string_view stack, const StackUse& use,
                      lowering::LoweringOptions& options) {
  ORRERY_ASSIGN_OR_RETURN(const SoftwareStack known, FindStack(stack));
  SetStack(known, use, options);
  return absl::OkStatus();
}

Listing StackListing() {
  return {
      .flag = "list-stacks", .about = "names all software stacks", .of = {"stack"}, .things = [] {
        std::vector<NamedThing> things;
        for (const SoftwareStack* stack : software_stack_cc::kStacks) {
          things.push_back({std::string(stack->name), std::string(stack->summary)});
        }
        return things;
      }};
}

std::string StackNames() {
  return absl::StrJoin(
      software_stack_cc::kStacks, ", ",
      [](std::string* out, const SoftwareStack* stack) { absl::StrAppend(out, stack->name); });
}

std::string StackHelp() {
  return "software, by what it holds beside the step, fuses and overlaps: one of --list-stacks, or "
         "a file that ends in .json [ideal]";
}

}  // namespace orrery::tools
