#ifndef ORRERY_LOWERING_BLOCKS_TASK_NAME_H_
#define ORRERY_LOWERING_BLOCKS_TASK_NAME_H_

#include <string>

#include "absl/strings/string_view.h"
#include "ir/function.h"

namespace orrery::lowering {

/// What the task of an op is called: the op, a space, and its result; of a send, what is sent.
struct TaskName {
  absl::string_view op;
  absl::string_view value;

  friend bool operator==(const TaskName&, const TaskName&) = default;
};

std::string ToString(const TaskName& name);

/// Good as long as the function is.
TaskName NameOfTask(const ir::Function& function, ir::OpId op);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_BLOCKS_TASK_NAME_H_
