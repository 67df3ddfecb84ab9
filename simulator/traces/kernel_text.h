#ifndef ORRERY_SIMULATOR_TRACES_KERNEL_TEXT_H_
#define ORRERY_SIMULATOR_TRACES_KERNEL_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "simulator/program/program.h"
#include "simulator/traces/trace_options.h"

// Names, categories and arguments as Kineto, the profiler of PyTorch, writes them, so that tools
// for its traces know what computes, what communicates and what copies: Holistic Trace Analysis
// takes for communication what begins with "nccl" and says "Kernel" (in older versions what has
// "ncclKernel" in it), for copies what begins with "Memcpy" or "Memset", and all else on a stream
// for computing.

namespace orrery::simulator {

/// Whether a stream copies between a device and its host; and whether the host computes on it.
inline bool IsCopyStream(StreamKind kind) {
  return kind == StreamKind::kHost || kind == StreamKind::kFromHost;
}
inline bool IsOfHost(StreamKind kind) {
  return IsCopyStream(kind) || kind == StreamKind::kHostCompute;
}

/// What a slice is in the eyes of a profiler.
struct KernelText {
  std::string name;
  absl::string_view category;  // "kernel", "gpu_memcpy"; "cpu_op" for what the host computes
};

/// What a task of that label is on a stream of that kind. A name that would be taken for something
/// else gets an underscore before it.
KernelText KernelTextOf(const TaskLabel& label, StreamKind stream);

/// "ncclKernel_AllReduce": what NCCL runs for communication of that label.
std::string NcclKernel(const TaskLabel& label);

/// Writes the arguments that Kineto has of a communication: kind, elements, group. Those of a group
/// are made once for each rank.
class NcclArguments {
 public:
  explicit NcclArguments(const TraceOptions& options) : options_(options) {}

  /// `,"Collective name":"allreduce",…` of a task on a stream of `rank`; empty of what computes.
  /// `sends`: of a message, it is who sends.
  std::string Of(const TaskLabel& label, int32_t rank, bool sends);

 private:
  struct Group {
    size_t size = 0;   // 0: not known
    std::string text;  // `,"Group size":8,"Process Group Name":"hp",…`
  };
  const Group& GroupOf(int32_t rank, absl::string_view communicator);

  const TraceOptions& options_;
  int32_t rank_ = -1;  // whose groups these are
  std::map<std::string, Group, std::less<>> groups_;
};

/// The communicator that a collective of that label runs in: "dp" of "all-reduce dp".
absl::string_view CommunicatorOf(const TaskLabel& label);

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_TRACES_KERNEL_TEXT_H_
