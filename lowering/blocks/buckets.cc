#include "lowering/blocks/buckets.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "lowering/blocks/task_name.h"
#include "support/check.h"

namespace orrery::lowering {
namespace buckets_cc {
namespace {

constexpr int32_t kNever = -1;  // made before backward: as early as anything

// What collectives of one depth must share to be one. A collective that waits for another one is
// deeper by one: the two are never in one bucket, and buckets never wait for each other in a
// circle.
using BucketKey =
    std::tuple<simulator::StreamKind, ir::AxisList, cost_models::CollectiveKind, ir::DType>;

struct Bucket {
  std::vector<size_t> members;  // tasks, first to last ready
  Bytes bytes;
  int32_t depth = 0;
  int32_t ready = kNever;  // the last task of backward that it waits for
  // Over hp, whose stream has all of backward's before it, or after such a one: what stands behind
  // it would wait for the end of backward, too.
  bool late = false;
};

// So many parameters: whose gradients, how they are merged, in which update, and what is told of
// it.
class BucketForming {
 public:
  BucketForming(const TaskTemplate& backward, Bytes bucket_size, TaskTemplate& update,
                simulator::Program& program, std::vector<cost_models::GradientSize>* sizes)
      : bucket_size_(bucket_size),
        update_(update),
        program_(program),
        sizes_(sizes),
        ready_(update.tasks.size(), kNever),
        depth_(update.tasks.size(), kKernel),
        bucket_of_(update.tasks.size(), 0),
        new_index_(update.tasks.size(), 0) {
    FindInputs(backward);
  }

  void Run() {
    const int32_t depths = FindDepths();
    for (int32_t depth = 0; depth < depths; ++depth) Fill(depth);
    std::sort(buckets_.begin(), buckets_.end(), [](const Bucket& a, const Bucket& b) {
      return std::tuple(a.late, a.ready, a.depth, a.members[0]) <
             std::tuple(b.late, b.ready, b.depth, b.members[0]);
    });
    Number();
    Rebuild();
  }

 private:
  static constexpr int32_t kKernel = -1;  // the depth of what stays where it is

  void FindInputs(const TaskTemplate& backward) {
    absl::flat_hash_map<ir::ValueId, int32_t> made;
    for (const TemplateValue& output : backward.outputs) {
      if (output.origin.valid()) made[output.origin] = output.task;
    }
    for (const TemplateValue& input : update_.inputs) {
      const auto found = made.find(input.origin);
      input_ready_.push_back(found == made.end() ? kNever : found->second);
    }
  }

  // How many collectives each one waits for in a row; returns the number of depths. One that waits
  // for a kernel waits for all of backward too, whose stream the kernel is on: it stays.
  int32_t FindDepths() {
    int32_t depths = 0;
    for (size_t t = 0; t < update_.tasks.size(); ++t) {
      const TemplateTask& task = update_.tasks[t];
      if (task.group.empty()) continue;
      int32_t depth = 0;
      for (const TemplateDependency& on : update_.DependenciesOf(task)) {
        const auto index = static_cast<size_t>(on.index);
        if (on.external || depth == kKernel) continue;
        depth = depth_[index] == kKernel ? kKernel : std::max(depth, depth_[index] + 1);
      }
      depth_[t] = depth;
      depths = std::max(depths, depth + 1);
    }
    return depths;
  }

  int32_t ReadyOf(const TemplateTask& task) const {
    int32_t ready = kNever;
    for (const TemplateDependency& on : update_.DependenciesOf(task)) {
      const auto index = static_cast<size_t>(on.index);
      ready =
          std::max(ready, on.external ? input_ready_[index] : buckets_[bucket_of_[index]].ready);
    }
    return ready;
  }

  bool IsLate(const TemplateTask& task) const {
    // Over hp, on a stream of its own or among the kernels.
    const bool horizontal = task.stream == simulator::StreamKind::kHorizontal ||
                            task.stream == simulator::StreamKind::kCompute;
    return horizontal ||
           std::ranges::any_of(update_.DependenciesOf(task), [&](const TemplateDependency& on) {
             return !on.external && buckets_[bucket_of_[static_cast<size_t>(on.index)]].late;
           });
  }

  // The buckets of one depth. Those of the depths before it are full already.
  void Fill(int32_t depth) {
    std::vector<size_t> tasks;
    for (size_t t = 0; t < update_.tasks.size(); ++t) {
      if (depth_[t] != depth) continue;
      ready_[t] = ReadyOf(update_.tasks[t]);
      tasks.push_back(t);
    }
    std::stable_sort(tasks.begin(), tasks.end(),
                     [&](size_t a, size_t b) { return ready_[a] < ready_[b]; });
    std::map<BucketKey, size_t> open;
    for (const size_t t : tasks) {
      const TemplateTask& task = update_.tasks[t];
      const BucketKey key{task.stream, task.group, task.collective, task.dtype};
      const auto [found, added] = open.try_emplace(key, buckets_.size());
      if (!added && buckets_[found->second].bytes + task.bytes > bucket_size_) {
        found->second = buckets_.size();
      }
      if (found->second == buckets_.size()) buckets_.emplace_back().depth = depth;
      Bucket& bucket = buckets_[found->second];
      bucket.late = bucket.late || IsLate(task);
      bucket.members.push_back(t);
      bucket.bytes += task.bytes;
      bucket.ready = ready_[t];
      bucket_of_[t] = found->second;
    }
  }

  void Number() {
    int32_t next = 0;
    for (const Bucket& bucket : buckets_) {
      for (const size_t t : bucket.members) new_index_[t] = next;
      ++next;
    }
    for (size_t t = 0; t < update_.tasks.size(); ++t) {
      if (depth_[t] == kKernel) new_index_[t] = next++;
    }
  }

  void Rebuild() {
    for (const Bucket& bucket : buckets_) {
      TemplateTask task = update_.tasks[bucket.members[0]];
      task.bytes = bucket.bytes;
      if (bucket.members.size() > 1) task.label = AddLabel(bucket);
      Append(task, bucket.members);
    }
    for (size_t t = 0; t < update_.tasks.size(); ++t) {
      if (depth_[t] == kKernel) Append(update_.tasks[t], {t});
    }
    if (sizes_ != nullptr) SumSizes();
    update_.tasks = std::move(tasks_);
    update_.dependencies = std::move(dependencies_);
    // Memory is told in the order of the tasks.
    for (TemplateMemory& memory : update_.memory) memory.task = NewIndex(memory.task);
    std::stable_sort(
        update_.memory.begin(), update_.memory.end(),
        [](const TemplateMemory& a, const TemplateMemory& b) { return a.task < b.task; });
    update_.RenumberMakers(new_index_);
  }

  void SumSizes() {
    std::vector<cost_models::GradientSize> sums(tasks_.size());
    for (size_t t = 0; t < sizes_->size(); ++t) {
      sums[static_cast<size_t>(new_index_[t])] += (*sizes_)[t];
    }
    *sizes_ = std::move(sums);
  }

  int32_t NewIndex(int32_t task) const { return new_index_[static_cast<size_t>(task)]; }

  // A task that replaces `members`, with what any of them waits for, each once.
  void Append(TemplateTask task, const std::vector<size_t>& members) {
    const auto begin = static_cast<ptrdiff_t>(dependencies_.size());
    for (const size_t member : members) {
      for (TemplateDependency on : update_.DependenciesOf(update_.tasks[member])) {
        if (!on.external) {
          on.index = NewIndex(on.index);
          ORRERY_CHECK(on.index < std::ssize(tasks_)) << "a bucket before what it waits for";
          if (tasks_[static_cast<size_t>(on.index)].stream == task.stream) continue;
        }
        dependencies_.push_back(on);
      }
    }
    const auto order = [](const TemplateDependency& a, const TemplateDependency& b) {
      return std::pair(!a.external, a.index) < std::pair(!b.external, b.index);
    };
    const auto same = [](const TemplateDependency& a, const TemplateDependency& b) {
      return a.external == b.external && a.index == b.index;
    };
    std::sort(dependencies_.begin() + begin, dependencies_.end(), order);
    dependencies_.erase(std::unique(dependencies_.begin() + begin, dependencies_.end(), same),
                        dependencies_.end());
    task.dependency_begin = static_cast<uint32_t>(begin);
    task.dependency_end = static_cast<uint32_t>(dependencies_.size());
    tasks_.push_back(task);
  }

  simulator::LabelId AddLabel(const Bucket& bucket) {
    simulator::TaskLabel label = program_.label(update_.tasks[bucket.members[0]].label);
    const std::string name = NameOfSeveral(label.name, bucket.members.size());
    label.name = name;
    label.bytes = bucket.bytes;
    return program_.AddLabel(label);
  }

  const Bytes bucket_size_;
  TaskTemplate& update_;
  simulator::Program& program_;
  std::vector<cost_models::GradientSize>* const sizes_;  // by task; or null
  std::vector<int32_t> input_ready_;  // by input: the task of backward that makes it
  std::vector<int32_t> ready_;        // by task
  std::vector<int32_t> depth_;        // by task
  std::vector<size_t> bucket_of_;     // by task, until the buckets are sorted
  std::vector<int32_t> new_index_;    // by task
  std::vector<Bucket> buckets_;
  std::vector<TemplateTask> tasks_;  // as they will be
  std::vector<TemplateDependency> dependencies_;
};

}  // namespace
}  // namespace buckets_cc

void FormBuckets(const TaskTemplate& backward, Bytes bucket_size, TaskTemplate& update,
                 simulator::Program& program, std::vector<cost_models::GradientSize>* sizes) {
  buckets_cc::BucketForming(backward, bucket_size, update, program, sizes).Run();
}

}  // namespace orrery::lowering
