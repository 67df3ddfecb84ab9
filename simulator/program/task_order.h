#ifndef ORRERY_SIMULATOR_PROGRAM_TASK_ORDER_H_
#define ORRERY_SIMULATOR_PROGRAM_TASK_ORDER_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "simulator/program/program.h"

// Who waits for whom. A task waits for its dependencies and for the task before it on each of its
// streams; both are edges of one graph, and an order of its tasks, or a cycle in it, is what the
// engines and the verifier ask for.

namespace orrery::simulator {

/// For each task, the tasks that wait for it, in the order of their ids. One that waits twice (on a
/// stream and by a dependency, or on two streams) is named twice, and counted twice.
struct SuccessorRows {
  std::vector<uint32_t> begin;     // row t of the pool goes from begin[t] to begin[t + 1]
  std::vector<int32_t> pool;       // indices of tasks
  std::vector<int32_t> waits_for;  // by task: how many edges lead to it

  std::span<const int32_t> of(int32_t task) const {
    const size_t row = static_cast<size_t>(task);
    return std::span(pool).subspan(begin[row], begin[row + 1] - begin[row]);
  }
};

/// The graph of `program`, whose dependencies must be in range.
SuccessorRows Successors(const Program& program);

/// An order in which the tasks can run (the order of the ids if that is one, else first come first
/// served). Tasks that wait on a cycle, or behind one, are left out.
std::vector<TaskId> RunnableOrder(const Program& program);

/// A task for a message: `task3 "MatMul y0" (rank0 compute)`.
std::string Describe(const Program& program, TaskId task);

/// A cycle of tasks that wait for each other, each with what it waits on. `finished[t]` tells
/// whether task t ran; at least one did not, and none waits for a task outside the program.
std::string DescribeCycle(const Program& program, const std::vector<bool>& finished);

/// OK when all tasks can run; else the deadlock, with the tasks on it.
absl::Status VerifyAcyclic(const Program& program);

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_PROGRAM_TASK_ORDER_H_
