#include "tools/validation/software_stack.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/model_facts.h"
#include "support/status.h"

namespace orrery::tools {
namespace software_stack_cc {
namespace {

constexpr const SoftwareStack* kStacks[] = {
#define ORRERY_SOFTWARE_STACK(Name, file) &k##Name##Stack,
#include "tools/validation/software_stacks.def"
#undef ORRERY_SOFTWARE_STACK
};

absl::StatusOr<const SoftwareStack*> Find(absl::string_view name) {
  for (const SoftwareStack* known : kStacks) {
    if (known->name == name) return known;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("there is no stack '", name, "'; wanted one of ", StackNames()));
}

lowering::StackMemory MemoryOf(const SoftwareStack& stack, const StackUse& use) {
  if (ir::SizeOf(use.dtype) > 2) return {};
  lowering::StackMemory memory = use.dtype == ir::DType::kF16 ? stack.fp16 : stack.bf16;
  if (use.splits_logits) memory.loss = stack.split_loss;
  return memory;
}

cost_models::ExtraTraffic TrafficOf(const SoftwareStack& stack, const StackUse& use) {
  if (ir::SizeOf(use.dtype) > 2) return {};
  return use.dtype == ir::DType::kF16 ? stack.fp16_traffic : stack.bf16_traffic;
}

}  // namespace
}  // namespace software_stack_cc

std::span<const SoftwareStack* const> AllSoftwareStacks() { return software_stack_cc::kStacks; }

StackUse StackUseOf(const ir::Function& step, int64_t hp) {
  StackUse use = {.splits_logits = hp > 1};
  use.dtype = ir::ComputeType(step).value_or(use.dtype);
  return use;
}

absl::StatusOr<lowering::StackMemory> StackMemoryOf(absl::string_view stack, const StackUse& use) {
  ORRERY_ASSIGN_OR_RETURN(const SoftwareStack* const known, software_stack_cc::Find(stack));
  return software_stack_cc::MemoryOf(*known, use);
}

absl::Status SetStack(absl::string_view stack, const StackUse& use,
                      lowering::LoweringOptions& options) {
  ORRERY_ASSIGN_OR_RETURN(const SoftwareStack* const known, software_stack_cc::Find(stack));
  options.stack_memory = software_stack_cc::MemoryOf(*known, use);
  options.kernels = {.fuses_pointwise = known->compiles,
                     .fuses_dropout_sums = known->fuses_dropout_sums,
                     .sums_in_products = known->adds_in_products,
                     .launch = Duration::FromSeconds(known->launch_us * 1e-6),
                     .choice = {.attention = known->attention,
                                .extra = software_stack_cc::TrafficOf(*known, use)}};
  return absl::OkStatus();
}

std::string StackNames() {
  return absl::StrJoin(
      software_stack_cc::kStacks, ", ",
      [](std::string* out, const SoftwareStack* stack) { absl::StrAppend(out, stack->name); });
}

}  // namespace orrery::tools
