#include "lowering/blocks/compressed_reductions.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "support/check.h"

namespace orrery::lowering {
namespace compressed_reductions_cc {
namespace {

using cost_models::CompressionStage;
using cost_models::GradientCompression;
using cost_models::GradientSize;

// The axes along which the op adds up what other samples have made; none where it does not.
ir::AxisList AxesOfGradients(const ir::Function& update, ir::OpId op) {
  ir::AxisList axes;
  if (update.kind(op) != ir::OpKind::kAllReduce) return axes;
  if (!ir::IsFloat(update.type(update.operands(op)[0]).dtype)) return axes;
  const absl::Status status = ir::ParseAxes(update.attributes(op), update.mesh(), axes);
  ORRERY_CHECK(status.ok()) << update.name() << ": " << status.ToString();
  const bool of_data = std::ranges::all_of(axes.axes(), [&](ir::AxisIndex axis) {
    const std::string& name = update.mesh().axes()[axis].name;
    return name == "dp" || name == "ep" || name == "cp";
  });
  return of_data && update.mesh().size(axes) > 1 ? axes : ir::AxisList();
}

GradientSize SizeOf(const GradientCompression& compression, const ir::Function& update,
                    ir::OpId op) {
  const ir::TensorType& type = update.type(update.operands(op)[0]);
  return cost_models::SizeOfGradient(compression, ir::LocalType(type, update.mesh()).dims);
}

class Compressing {
 public:
  Compressing(const CompressionContext& context, const std::vector<GradientSize>& sizes,
              TaskTemplate& task_template)
      : context_(context),
        sizes_(sizes),
        template_(task_template),
        first_(task_template.tasks.size()),
        last_(task_template.tasks.size()) {}

  void Run() {
    for (size_t t = 0; t < template_.tasks.size(); ++t) {
      first_[t] = static_cast<int32_t>(tasks_.size());
      if (sizes_[t].elements > 0) {
        Compress(template_.tasks[t], sizes_[t]);
      } else {
        tasks_.push_back(template_.tasks[t]);
        TakeDependencies(template_.tasks[t], tasks_.back());
      }
      last_[t] = static_cast<int32_t>(tasks_.size()) - 1;
    }
    for (TemplateMemory& memory : template_.memory) {
      const auto t = static_cast<size_t>(memory.task);
      memory.task = memory.bytes < 0 ? last_[t] : first_[t];
    }
    std::ranges::stable_sort(template_.memory, {}, &TemplateMemory::task);
    template_.tasks = std::move(tasks_);
    template_.dependencies = std::move(dependencies_);
    template_.RenumberMakers(last_);
  }

 private:
  // A stream runs in order: those behind the first wait for nothing else.
  void Compress(const TemplateTask& reduction, const GradientSize& size) {
    const int64_t ranks = context_.mesh.size(reduction.group);
    const std::vector<CompressionStage> stages =
        cost_models::StagesOf(context_.compression, size, reduction.dtype, ranks);
    for (size_t i = 0; i < stages.size(); ++i) {
      TemplateTask task = reduction;
      if (stages[i].collective.has_value()) {
        task.collective = *stages[i].collective;
        task.bytes = stages[i].size;
      } else {
        task.group = ir::AxisList();
        task.bytes = Bytes(0);
        task.duration = TimeOf(stages[i]);
      }
      task.label = AddLabel(reduction, stages[i]);
      task.dependency_begin = task.dependency_end = static_cast<uint32_t>(dependencies_.size());
      if (i == 0) TakeDependencies(reduction, task);
      tasks_.push_back(task);
    }
  }

  void TakeDependencies(const TemplateTask& from, TemplateTask& to) {
    const auto begin = static_cast<uint32_t>(dependencies_.size());
    for (TemplateDependency on : template_.DependenciesOf(from)) {
      if (!on.external) on.index = last_[static_cast<size_t>(on.index)];
      dependencies_.push_back(on);
    }
    to.dependency_begin = begin;
    to.dependency_end = static_cast<uint32_t>(dependencies_.size());
  }

  // As the cost model prices kernels of such bytes, or where it does not as the memory moves them.
  Duration TimeOf(const CompressionStage& stage) const {
    const std::optional<Duration> time =
        context_.cost_model.Fused(stage.flops, stage.moved, context_.device);
    if (time.has_value()) return *time;
    const double seconds = static_cast<double>(stage.moved.count()) /
                           static_cast<double>(context_.device.memory_bandwidth.bytes_per_second());
    return Duration::FromSeconds(seconds) + context_.device.launch_overhead;
  }

  simulator::LabelId AddLabel(const TemplateTask& reduction, const CompressionStage& stage) {
    simulator::TaskLabel label = context_.program.label(reduction.label);
    std::string name(label.name), communication(label.communication);
    if (stage.collective.has_value()) {
      label.bytes = stage.size;
      const size_t kind = communication.find(' ');
      communication = absl::StrCat(cost_models::GetCollectiveKind(*stage.collective).name,
                                   communication.substr(std::min(kind, communication.size())));
    } else {
      label.kind = simulator::TaskKind::kCompute;
      label.flops = stage.flops;
      label.bytes = stage.moved;
      label.kernels[static_cast<size_t>(simulator::KernelKind::kOther)] = 1;
      communication.clear();
      if (!name.empty()) absl::StrAppend(&name, " ", stage.name);
    }
    label.name = name;
    label.communication = communication;
    return context_.program.AddLabel(label);
  }

  const CompressionContext& context_;
  const std::vector<GradientSize>& sizes_;
  TaskTemplate& template_;
  std::vector<int32_t> first_, last_;  // of the tasks that stand for one as it was
  std::vector<TemplateTask> tasks_;
  std::vector<TemplateDependency> dependencies_;
};

}  // namespace
}  // namespace compressed_reductions_cc

std::vector<cost_models::GradientSize> GradientSizes(
    const cost_models::GradientCompression& compression, const ir::Function& update,
    const TaskTemplate& task_template) {
  std::vector<cost_models::GradientSize> sizes(task_template.tasks.size());
  for (size_t t = 0; t < sizes.size(); ++t) {
    const TemplateTask& task = task_template.tasks[t];
    const bool reduces = !task.group.empty() && task.first_op >= 0 &&
                         task.collective == cost_models::CollectiveKind::kAllReduce;
    if (!reduces) continue;
    const ir::OpId op = update.order()[static_cast<size_t>(task.first_op)];
    if (compressed_reductions_cc::AxesOfGradients(update, op).empty()) continue;
    sizes[t] = compressed_reductions_cc::SizeOf(compression, update, op);
  }
  return sizes;
}

void CompressReductions(const CompressionContext& context,
                        const std::vector<cost_models::GradientSize>& sizes,
                        TaskTemplate& task_template) {
  ORRERY_CHECK(sizes.size() == task_template.tasks.size()) << sizes.size();
  compressed_reductions_cc::Compressing(context, sizes, task_template).Run();
}

Bytes KeptByCompression(const cost_models::GradientCompression& compression,
                        const ir::Function& update) {
  Bytes kept;
  if (!compression) return kept;
  for (const ir::OpId op : update.order()) {
    const ir::AxisList axes = compressed_reductions_cc::AxesOfGradients(update, op);
    if (axes.empty()) continue;
    const ir::DType dtype = update.type(update.operands(op)[0]).dtype;
    kept += cost_models::KeptBytes(compression,
                                   compressed_reductions_cc::SizeOf(compression, update, op), dtype,
                                   update.mesh().size(axes));
  }
  return kept;
}

}  // namespace orrery::lowering
