#include "lowering/blocks/pipelined_products.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "support/check.h"

namespace orrery::lowering {
namespace pipelined_products_cc {
namespace {

using cost_models::CollectiveKind;

// How a product becomes two tasks.
struct Parting {
  int32_t reads = -1;  // the gather that only its second part waits for
  int32_t makes = -1;  // the reduce-scatter that only waits for its first part
  double first = 0;    // the share of the first part; 0: it stays one
};

class Pipelining {
 public:
  Pipelining(std::span<const char> products, const ir::Mesh& mesh, TaskTemplate& task_template,
             simulator::Program& program)
      : products_(products),
        mesh_(mesh),
        template_(task_template),
        program_(program),
        partings_(task_template.tasks.size()),
        readers_(task_template.tasks.size()) {}

  void Run() {
    FindReaders();
    bool any = false;
    for (size_t t = 0; t < template_.tasks.size(); ++t) any |= Part(static_cast<int32_t>(t));
    if (any) Rewrite();
  }

 private:
  static constexpr int32_t kNone = -1;
  struct Readers {
    int32_t kernel = kNone;  // the first
    bool others = false;     // what is no kernel, or runs elsewhere
  };

  const TemplateTask& Task(int32_t task) const {
    return template_.tasks[static_cast<size_t>(task)];
  }
  Parting& PartingOf(int32_t task) { return partings_[static_cast<size_t>(task)]; }
  Readers& ReadersOf(int32_t task) { return readers_[static_cast<size_t>(task)]; }
  bool IsProduct(int32_t task) const { return products_[static_cast<size_t>(task)] != 0; }

  // Of each task the first kernel that waits for it, and whether anything else does.
  void FindReaders() {
    for (size_t t = 0; t < template_.tasks.size(); ++t) {
      const TemplateTask& task = template_.tasks[t];
      for (const TemplateDependency& on : template_.DependenciesOf(task)) {
        if (on.external) continue;
        Readers& readers = ReadersOf(on.index);
        if (!IsKernel(task)) readers.others = true;
        if (IsKernel(task) && readers.kernel == kNone) readers.kernel = static_cast<int32_t>(t);
      }
    }
    for (const TemplateValue& output : template_.outputs) {
      if (output.task >= 0) ReadersOf(output.task).others = true;
    }
    for (const TemplateSend& send : template_.sends) {
      if (send.has_maker && !send.made_by.external) ReadersOf(send.made_by.index).others = true;
    }
  }

  // Parts the product that a collective over tensor-parallel ranks reads or makes.
  bool Part(int32_t collective) {
    const TemplateTask& task = Task(collective);
    if (task.stream != simulator::StreamKind::kHorizontal || task.group.empty()) return false;
    const int64_t ranks = mesh_.size(task.group);
    const double a_part = 1.0 / static_cast<double>(ranks);
    const Readers& readers = ReadersOf(collective);
    if (ranks < 2 || task.unit != TemplateTask::kNoUnit || readers.kernel == kNone) return false;
    if (task.collective == CollectiveKind::kAllGather) {
      if (!IsProduct(readers.kernel)) return false;
      PartingOf(readers.kernel) = {.reads = collective, .first = 1 - a_part};
      return true;
    }
    // Kernels run after the second part, which ends later than a short sum over ranks.
    if (task.collective != CollectiveKind::kReduceScatter || readers.others) return false;
    const std::span<const TemplateDependency> made_by = template_.DependenciesOf(task);
    if (made_by.size() != 1 || made_by[0].external) return false;
    const int32_t maker = made_by[0].index;
    if (!IsProduct(maker) || PartingOf(maker).first > 0) return false;
    PartingOf(maker) = {.makes = collective, .first = a_part};
    return true;
  }

  void Rewrite() {
    for (size_t t = 0; t < template_.tasks.size(); ++t) {
      const auto task = static_cast<int32_t>(t);
      const Parting& parting = PartingOf(task);
      first_.push_back(static_cast<int32_t>(tasks_.size()));
      if (parting.first == 0) {
        Append(template_.tasks[t], template_.tasks[t].label, task);
      } else {
        AppendParts(task, parting);
      }
      last_.push_back(static_cast<int32_t>(tasks_.size()) - 1);
    }
    template_.tasks = std::move(tasks_);
    template_.dependencies = std::move(dependencies_);
    for (TemplateMemory& memory : template_.memory) {
      const bool at_start =
          simulator::MemoryEvent{.moment = memory.moment, .bytes = memory.bytes}.at_start();
      memory.task = (at_start ? first_ : last_)[static_cast<size_t>(memory.task)];
    }
    std::ranges::stable_sort(template_.memory, {}, &TemplateMemory::task);
    template_.RenumberMakers(last_);
    for (int32_t& task : template_.releases) task = LastOf(task);
  }

  int32_t LastOf(int32_t task) const { return last_[static_cast<size_t>(task)]; }

  // What waits for a product waits for its second part; only what is parted for it does not.
  void Depend(const TemplateDependency& on, int32_t reader) {
    TemplateDependency there = on;
    if (!on.external) {
      const bool begins = PartingOf(on.index).makes == reader;
      there.index = begins ? first_[static_cast<size_t>(on.index)] : LastOf(on.index);
    }
    dependencies_.push_back(there);
  }

  void Append(TemplateTask task, simulator::LabelId label, int32_t as) {
    const std::span<const TemplateDependency> after = template_.DependenciesOf(task);
    task.label = label;
    task.dependency_begin = static_cast<uint32_t>(dependencies_.size());
    for (const TemplateDependency& on : after) {
      if (on.external || on.index != PartingOf(as).reads) Depend(on, as);
    }
    task.dependency_end = static_cast<uint32_t>(dependencies_.size());
    tasks_.push_back(task);
  }

  void AppendParts(int32_t product, const Parting& parting) {
    TemplateTask first = Task(product), second = first;
    first.duration = Duration(
        static_cast<int64_t>(static_cast<double>(first.duration.picoseconds()) * parting.first));
    second.duration -= first.duration;
    const auto [of_first, of_second] = Shares(first.label, parting.first);
    Append(first, of_first, product);
    if (parting.reads != kNone) WaitAsTheGather(Task(parting.reads));
    second.label = of_second;
    second.dependency_begin = static_cast<uint32_t>(dependencies_.size());
    if (parting.reads != kNone) Depend({.external = false, .index = parting.reads}, product);
    second.dependency_end = static_cast<uint32_t>(dependencies_.size());
    tasks_.push_back(second);
  }

  // The part that a rank has is made by those who make what is gathered.
  void WaitAsTheGather(const TemplateTask& gather) {
    for (const TemplateDependency& on : template_.DependenciesOf(gather)) Depend(on, kNone);
    tasks_.back().dependency_end = static_cast<uint32_t>(dependencies_.size());
  }

  // Labels of a part and of the rest.
  std::pair<simulator::LabelId, simulator::LabelId> Shares(simulator::LabelId of, double share) {
    simulator::TaskLabel first = program_.label(of), second = first;
    first.flops = Flops(first.flops.count() * share);
    first.bytes = Bytes(static_cast<int64_t>(static_cast<double>(first.bytes.count()) * share));
    second.flops = Flops(second.flops.count() - first.flops.count());
    second.bytes -= first.bytes;
    return {program_.AddLabel(first), program_.AddLabel(second)};
  }

  const std::span<const char> products_;
  const ir::Mesh& mesh_;
  TaskTemplate& template_;
  simulator::Program& program_;
  std::vector<Parting> partings_;      // by task
  std::vector<Readers> readers_;       // by task
  std::vector<int32_t> first_, last_;  // the parts of a task, in tasks_
  std::vector<TemplateTask> tasks_;    // as they will be
  std::vector<TemplateDependency> dependencies_;
};

}  // namespace
}  // namespace pipelined_products_cc

void PipelineProducts(std::span<const char> products, const ir::Mesh& mesh,
                      TaskTemplate& task_template, simulator::Program& program) {
  ORRERY_CHECK(products.size() == task_template.tasks.size()) << "products of other tasks";
  pipelined_products_cc::Pipelining(products, mesh, task_template, program).Run();
}

void PipelineProducts(const ir::Function& function, TaskTemplate& task_template,
                      simulator::Program& program) {
  std::vector<char> products;
  products.reserve(task_template.tasks.size());
  for (const TemplateTask& task : task_template.tasks) {
    const ir::OpId op = function.order()[static_cast<size_t>(task.first_op)];
    products.push_back(IsKernel(task) && function.info(op).products != nullptr);
  }
  PipelineProducts(products, function.mesh(), task_template, program);
}

}  // namespace orrery::lowering
