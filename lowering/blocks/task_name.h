#ifndef ORRERY_LOWERING_BLOCKS_TASK_NAME_H_
#define ORRERY_LOWERING_BLOCKS_TASK_NAME_H_

#include <cstddef>
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

/// Of so many tasks that are one: "A and 2 more"; empty where the first has no name.
std::string NameOfSeveral(absl::string_view first, size_t count);

/// Of tasks in a row that are one: "A … B"; empty where the first has no name.
std::string NameOfRow(absl::string_view first, absl::string_view last);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_BLOCKS_TASK_NAME_H_
