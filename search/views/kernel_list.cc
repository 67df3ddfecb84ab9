#include "search/views/kernel_list.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "ir/op_info.h"
#include "lowering/blocks/kernel_costs.h"
#include "transforms/memory/offload.h"

namespace orrery::search {
namespace kernel_list_cc {
namespace {

using cost_models::OpKernel;

// Kernels that agree in this are alike.
auto KeyOf(const StepKernel& row) {
  const OpKernel& k = row.kernel;
  return std::tuple(row.op, row.dtype, k.form, k.layout, k.shape.batch, k.shape.m, k.shape.n,
                    k.shape.k, k.attention.batch, k.attention.heads, k.attention.queries,
                    k.attention.keys, k.attention.width, k.attention.backward, k.flops, k.bytes,
                    k.time);
}
using Rows = std::map<decltype(KeyOf(StepKernel())), StepKernel>;

bool IsKernel(const ir::Function& function, ir::OpId op) {
  const ir::OpClass op_class = function.info(op).op_class;
  return (op_class == ir::OpClass::kCompute || op_class == ir::OpClass::kOptimizer) &&
         transforms::HostWorkOf(function, op) == transforms::HostWork::kNone;
}

// Integers where there is no other operand and no other result.
ir::DType TypeOf(const cost_models::OpView& view) {
  for (const auto types : {view.operands, view.results}) {
    for (const ir::TensorType* type : types) {
      if (ir::IsFloat(type->dtype)) return type->dtype;
    }
  }
  return view.results[0]->dtype;
}

// Of each op of a part of a stage, which runs `count` times.
void Add(const Setting& setting, const ir::Function& function, int64_t count, Rows& rows) {
  const cluster::Device& device = setting.cluster.device;
  const lowering::LocalTypes local(function);
  const lowering::TemplateContext context = {
      .cost_model = *setting.cost_model, .device = &device, .kernels = setting.lowering.kernels};
  lowering::KernelCosts costs(function, local, context);
  for (const ir::OpId op : function.order()) {
    if (!IsKernel(function, op)) continue;
    const cost_models::OpView view = costs.View(op);
    const cost_models::OpKernels kernels = cost_models::OpKernelsOf(view, device);
    Duration by_kernels(0);
    for (const OpKernel& kernel : kernels) by_kernels += kernel.time;
    const double all = setting.cost_model->Compute(view, device).seconds();
    for (OpKernel kernel : kernels) {
      if (by_kernels > Duration(0)) {
        kernel.time = Duration::FromSeconds(all * (kernel.time.seconds() / by_kernels.seconds()));
      }
      StepKernel row = {
          .op = std::string(function.info(op).name), .dtype = TypeOf(view), .kernel = kernel};
      auto key = KeyOf(row);
      rows.try_emplace(std::move(key), std::move(row)).first->second.count += count;
    }
  }
}

}  // namespace
}  // namespace kernel_list_cc

std::vector<StepKernel> KernelsOfStep(const Setting& setting, const Run& run) {
  kernel_list_cc::Rows rows;
  const transforms::PipelinedStep& step = run.pipelined;
  const int64_t microbatches = step.slices.empty() ? step.microbatches : std::ssize(step.slices);
  for (const transforms::PipelineStage& stage : step.stages) {
    for (const transforms::StageFunction* part : stage.parts()) {
      const int64_t count = part == &stage.update ? 1 : microbatches;
      kernel_list_cc::Add(setting, part->function, count, rows);
    }
  }
  std::vector<StepKernel> kernels;
  for (auto& [key, row] : rows) kernels.push_back(std::move(row));
  std::ranges::stable_sort(kernels, std::greater<>(), &StepKernel::seconds);
  return kernels;
}

}  // namespace orrery::search
