#ifndef ORRERY_LOWERING_BLOCKS_TEMPLATE_TEST_UTIL_H_
#define ORRERY_LOWERING_BLOCKS_TEMPLATE_TEST_UTIL_H_

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lowering/blocks/task_template.h"
#include "simulator/program/program.h"

// Task templates that a test writes down, and what they become as text.

namespace orrery::lowering {

/// Instead of a task: an input.
inline constexpr int32_t kInput = -1;

/// Adds a task called `label` that waits for the tasks before it with numbers `after`, or for
/// kInput.
inline void AddTask(TemplateTask task, const simulator::TaskLabel& label,
                    const std::vector<int32_t>& after, TaskTemplate& to,
                    simulator::Program& program) {
  task.label = program.AddLabel(label);
  task.dependency_begin = static_cast<uint32_t>(to.dependencies.size());
  for (const int32_t on : after) {
    to.dependencies.push_back({.external = on == kInput, .index = std::max(on, 0)});
  }
  task.dependency_end = static_cast<uint32_t>(to.dependencies.size());
  to.tasks.push_back(task);
}

/// " after 0 after input": what a task waits for.
inline std::string After(const TaskTemplate& of, const TemplateTask& task) {
  std::string text;
  for (const TemplateDependency& on : of.DependenciesOf(task)) {
    absl::StrAppend(&text, " after ", on.external ? "input" : absl::StrCat(on.index));
  }
  return text;
}

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_BLOCKS_TEMPLATE_TEST_UTIL_H_
